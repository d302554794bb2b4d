//! The listener: TLS, HTTP/2 and HTTP/1.1, silent clients, panics, and the in-process connection of `kube`.

use std::sync::Arc;
use std::time::Duration;

use coffer_server::pki::{self, Files, Wanted};
use coffer_server::serve::tls::ServerCertificate;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Client, FastClock, server, server_with, wait};

struct Listening {
    address: std::net::SocketAddr,
    ca: Vec<u8>,
    api: coffer_server::api::ApiServer,
    certificate: Arc<ServerCertificate>,
}

fn certificate(files: &Files) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(files["server.crt"].expose()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(files["server.key"].expose());
    (chain.expect("a chain"), key.expect("a key"))
}

fn files() -> Files {
    let mut files = Files::new();
    let now = coffer_types::time::Timestamp::now();
    pki::complete(&mut files, &Wanted::default(), now).expect("complete");
    files
}

async fn listening() -> Listening {
    listening_with(server().await).await
}

async fn listening_with(api: coffer_server::api::ApiServer) -> Listening {
    let files = files();
    let (chain, key) = certificate(&files);
    let certificate = ServerCertificate::new(chain, key).expect("a certificate");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (serving, own) = (api.clone(), Arc::clone(&certificate));
    tokio::spawn(async move { serving.serve(listener, own).await.expect("serves") });
    Listening { address, ca: files["ca.crt"].expose().to_vec(), api, certificate }
}

impl Listening {
    async fn connect(&self, protocol: &[u8]) -> tokio_rustls::client::TlsStream<TcpStream> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.ca).expect("a CA")).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let socket = TcpStream::connect(self.address).await.expect("connects");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("shakes hands")
    }

    /// The answer to one HTTP/1.1 request, as text.
    async fn ask(&self, request: &str) -> String {
        let mut stream = self.connect(b"http/1.1").await;
        stream.write_all(request.as_bytes()).await.expect("sends");
        let mut answer = Vec::new();
        // The server may end without a TLS goodbye.
        let _read = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[tokio::test]
async fn both_protocols_are_offered_and_certificates_are_swapped() {
    let listening = listening().await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let stream = listening.connect(protocol).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    }
    let answer = listening.ask("GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 401 Unauthorized"), "{answer}");
    assert!(answer.contains(r#""message":"Unauthorized","reason":"Unauthorized","code":401"#), "{answer}");
    let before = listening.connect(b"h2").await.get_ref().1.peer_certificates().expect("one")[0].to_vec();
    let (chain, key) = certificate(&files());
    let leaf = chain[0].to_vec();
    listening.certificate.replace(chain, key).expect("replaced");
    assert_ne!(leaf, before);
    listening.api.shutdown();
    let address = listening.address;
    wait(|| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).is_err()).await;
}

#[tokio::test]
async fn s41_silent_clients_do_not_keep_others_out() {
    let listening = listening().await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(TcpStream::connect(listening.address).await.expect("connects"));
    }
    let started = std::time::Instant::now();
    let answer = listening.ask("GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(silent);
}

#[tokio::test]
async fn s41_a_silent_handshake_is_cut_off() {
    let listening = listening_with(server_with(Arc::new(FastClock::new())).await).await;
    let mut socket = TcpStream::connect(listening.address).await.expect("connects");
    let mut buffer = [0_u8; 16];
    let limit = coffer_server::serve::listener::HANDSHAKE_DEADLINE;
    let read = tokio::time::timeout(limit, socket.read(&mut buffer)).await.expect("cut off in time");
    assert_eq!(read.unwrap_or(0), 0);
}

#[tokio::test]
async fn kube_works_over_the_in_process_connection() {
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::{ListParams, PostParams};

    let api = server().await;
    let user = coffer_server::ports::UserInfo { name: "admin".to_owned(), ..Default::default() };
    let client = kube::Client::new(api.in_process(user), "default");
    let secrets: kube::Api<Secret> = kube::Api::namespaced(client, "default");
    let mut secret = Secret::default();
    secret.metadata.name = Some("s".to_owned());
    secret.string_data = Some([("k".to_owned(), "v".to_owned())].into());
    let created = secrets.create(&PostParams::default(), &secret).await.expect("created");
    assert_eq!(created.data.expect("data")["k"].0, b"v");
    assert_eq!(secrets.list(&ListParams::default()).await.expect("listed").items.len(), 1);
    let missing = secrets.get_opt("none").await.expect("answered");
    assert!(missing.is_none());
    assert_eq!(Client::new(&api).get("/api/v1/namespaces/default/secrets/s").await.code, 200);
}

#[tokio::test]
async fn a_panic_is_an_answer_and_the_server_lives_on() {
    let api = server().await;
    let client = Client::new(&api);
    let answer = client.get("/panic").await;
    assert_eq!(answer.code, 500);
    assert_eq!(answer.text, "This request caused apiserver to panic. Look in the logs for details.\n");
    assert_eq!(client.get("/livez").await.code, 200);
}
