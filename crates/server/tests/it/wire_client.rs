//! A server on a socket, and clients that speak raw TLS to it.

use std::net::SocketAddr;
use std::sync::Arc;

use coffer_server::api::ApiServer;
use coffer_server::pki::{self, Files, Wanted};
use coffer_server::serve::tls::ServerCertificate;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;

/// A server that listens.
pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    ca: Vec<u8>,
    pub(crate) api: ApiServer,
    pub(crate) certificate: Arc<ServerCertificate>,
}

/// A server certificate with its chain.
pub(crate) fn certificate(files: &Files) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(files["server.crt"].expose()).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(files["server.key"].expose());
    (chain.expect("a chain"), key.expect("a key"))
}

/// New keys and certificates.
pub(crate) fn files() -> Files {
    let mut files = Files::new();
    let now = coffer_types::time::Timestamp::now();
    pki::complete(&mut files, &Wanted::default(), now).expect("complete");
    files
}

/// Serves on a free port.
pub(crate) async fn listening(api: ApiServer) -> Listening {
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
    /// A connection with one protocol offered.
    pub(crate) async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
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

    /// The answer to one HTTP/1.1 request, as bytes.
    pub(crate) async fn ask_bytes(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect(b"http/1.1").await;
        stream.write_all(request).await.expect("sends");
        rest(&mut stream).await
    }

    /// The answer to one HTTP/1.1 request, as text.
    pub(crate) async fn ask(&self, request: &str) -> String {
        String::from_utf8_lossy(&self.ask_bytes(request.as_bytes()).await).into_owned()
    }
}

/// What comes until the server closes the connection.
pub(crate) async fn rest(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
    let mut answer = Vec::new();
    // The server may end without a TLS goodbye.
    let _read = stream.read_to_end(&mut answer).await;
    answer
}
