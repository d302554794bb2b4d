//! The listener: TLS, HTTP/2 and HTTP/1.1, silent clients, panics, and the in-process connection of `kube`.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::support::{Client, FastClock, server, server_with, wait};
use crate::wire_client::{certificate, files, listening};

#[tokio::test]
async fn both_protocols_are_offered_and_certificates_are_swapped() {
    let listening = listening(server().await).await;
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
async fn s41_a_silent_handshake_is_cut_off() {
    let listening = listening(server_with(Arc::new(FastClock::new())).await).await;
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
