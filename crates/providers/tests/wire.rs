//! What providers send, recorded at the socket.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails at that place")]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_providers::contract::{
    Access, Calls, Context, Provider, ProviderError, RemoteKey, Scope, SecretMap, SecretsClient,
};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_types::SecretBytes;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Each Secret NAME holds the token `token-of-NAME`.
struct Cluster;

#[async_trait]
impl Access for Cluster {
    async fn secret(&self, _: &str, name: &str) -> Result<Arc<SecretMap>, String> {
        let value = SecretBytes::from(format!("token-of-{name}"));
        Ok(Arc::new(SecretMap::from([("token".to_owned(), value)])))
    }

    async fn config_map(&self, _: &str, _: &str) -> Result<BTreeMap<String, String>, String> {
        Err("there is none".to_owned())
    }

    async fn service_account_token(
        &self,
        _: &str,
        _: &str,
        _: &[String],
        _: i64,
    ) -> Result<SecretBytes, String> {
        Err("there is none".to_owned())
    }

    async fn pod_token(&self) -> Result<SecretBytes, String> {
        Ok(SecretBytes::from("token-of-the-pod".to_owned()))
    }
}

struct Uncounted;

impl Calls for Uncounted {
    fn observe(&self, _: &'static str, _: &'static str, _: bool) {}
}

/// A specification of `provider` for a server, whose credentials are in the Secret `owner`.
fn spec(provider: &str, server: &str, owner: &str) -> Json {
    let selector = json!({"name": owner, "key": "token"});
    match provider {
        "kubernetes" => json!({"server": {"url": server}, "auth": {"token": {"bearerToken": selector}}}),
        _ => json!({"server": server, "path": "kv", "auth": {"tokenSecretRef": selector}}),
    }
}

fn provider(key: &str) -> Arc<dyn Provider> {
    coffer_providers::all().into_iter().find(|provider| provider.key() == key).unwrap()
}

async fn connect(key: &str, server: &str, owner: &str) -> Arc<dyn SecretsClient> {
    let scope = Scope { cluster: false, store: "s".to_owned(), namespace: "ns".to_owned() };
    let context = Context {
        access: Arc::new(Cluster),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::default()),
        calls: Arc::new(Uncounted),
        retry: None,
    };
    provider(key).connect(&spec(key, server, owner), &scope, &context).await.unwrap()
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    (listener, server)
}

/// The headers of the one request that comes, which is answered with `answer`.
async fn serve(listener: &TcpListener, answer: &str) -> BTreeMap<String, String> {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = vec![0; 8192];
    let read = stream.read(&mut head).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    let head = String::from_utf8(head[..read].to_vec()).unwrap();
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect()
}

fn found() -> String {
    let body = r#"{"data":{"data":{"k":"v"},"metadata":{"version":1}},"metadata":{"resourceVersion":"1"}}"#;
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn key() -> RemoteKey {
    RemoteKey { key: "db".to_owned(), ..RemoteKey::default() }
}

/// Each provider with the header of its credential, what stands before the token in it, and its other headers.
const PROVIDERS: [(&str, &str, &str, &[&str]); 3] = [
    ("vault", "x-vault-token", "", &["host", "x-vault-request"]),
    ("openBao", "x-vault-token", "", &["host", "x-vault-request"]),
    ("kubernetes", "authorization", "Bearer ", &["accept", "host"]),
];

#[tokio::test]
async fn s31_each_request_starts_from_nothing_and_carries_its_own_credential_alone() {
    for (name, header, prefix, others) in PROVIDERS {
        let (listener, server) = listen().await;
        let (one, two) = (connect(name, &server, "one").await, connect(name, &server, "two").await);
        // By turns: nothing of one connection stays for another.
        for (client, owner) in [(&one, "one"), (&two, "two"), (&one, "one")] {
            let (remote, answer) = (key(), found());
            let (sent, result) = tokio::join!(serve(&listener, &answer), client.fetch(&remote));
            result.unwrap();
            assert_eq!(sent[header], format!("{prefix}token-of-{owner}"), "{name}");
            let names: Vec<&str> = sent.keys().map(String::as_str).filter(|sent| *sent != header).collect();
            assert_eq!(names, others, "{name}");
        }
    }
}

#[tokio::test]
async fn s7_no_provider_follows_a_redirect_or_tells_a_body() {
    for (name, ..) in PROVIDERS {
        for status in
            ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
        {
            let (listener, server) = listen().await;
            let (elsewhere, target) = listen().await;
            let client = connect(name, &server, "one").await;
            let answer = format!(
                "HTTP/1.1 {status}\r\nlocation: {target}/canary-path\r\ncontent-length: 11\r\nconnection: close\r\n\r\ncanary-body"
            );
            let remote = key();
            let (_, result) = tokio::join!(serve(&listener, &answer), client.fetch(&remote));
            let error = result.err().unwrap();
            assert!(matches!(error, ProviderError::Retryable(_)), "{name} {status}: {error:?}");
            let text = error.to_string();
            assert!(text.contains("redirect") && text.contains(&status[..3]), "{name}: {text}");
            assert!(!text.contains("canary") && !text.contains("token-of"), "{name}: {text}");
            // Whoever had come would stand in the queue, which is asked without waiting.
            let came = elsewhere.into_std().unwrap().accept().map(|_| ());
            assert_eq!(came.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "{name} {status}");
        }
    }
}
