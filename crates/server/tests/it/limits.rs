//! What a client may take: connections, time, size, places; and what it gets when that is used up.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coffer_runtime::clock::SystemClock;
use coffer_server::api::{ApiServer, Route};
use coffer_server::health::HealthCheck;
use coffer_server::serve::MAX_READS;
use coffer_server::serve::body::MAX_BODY;
use coffer_server::serve::listener::MAX_HALF_OPEN;
use coffer_types::time::Clock as _;
use futures::StreamExt as _;
use futures::stream;
use http_body_util::BodyExt as _;
use rustix::process::{Resource, Rlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{
    ADMIN_TOKEN, Client, FastClock, USER_TOKEN, secured, secured_with, server_of, server_with, wait,
};
use crate::wire_client::{listening, rest};

const LIVEZ: &str = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Longer than any deadline on the fast clock. Only a connection that is never cut off waits for it.
const NEVER: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s41_10_000_silent_connections_keep_nobody_out() {
    const SILENT: usize = 10_000;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("raised");
    let room = limit.maximum.unwrap_or(u64::MAX);
    assert!(12_000 <= room, "this test needs 12000 file descriptors, and {room} are allowed (ulimit -Hn)");

    let listening = listening(secured().await).await;
    let mut silent = Vec::with_capacity(SILENT);
    for number in 0..SILENT {
        silent.push(TcpStream::connect(listening.address).await.expect("connects"));
        if number % 2_500 == 0 {
            assert!(listening.ask(LIVEZ).await.starts_with("HTTP/1.1 200 OK"), "after {number}");
        }
    }
    assert!(listening.ask(LIVEZ).await.starts_with("HTTP/1.1 200 OK"));
    // What the server holds is bounded: the others have been cut off.
    let held = || silent.iter().filter(|stream| is_open(stream)).count();
    wait(|| held() <= MAX_HALF_OPEN).await;
    assert!(0 < held());
}

fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    matches!(stream.try_read(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s41_slow_headers_are_cut_off() {
    let clock = Arc::new(FastClock::new());
    let listening = listening(server_with(clock.clone()).await).await;
    // In HTTP/2: nothing, the preface alone, the beginning of a frame of headers. In HTTP/1.1:
    // nothing, a request line, a request whose successor never comes.
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let frame = [preface, &[0, 0, 100, 1, 0, 0, 0, 0, 1, 0x82]].concat();
    let cases: [(&[u8], &[u8]); 6] = [
        (b"h2", b""),
        (b"h2", preface),
        (b"h2", &frame),
        (b"http/1.1", b""),
        (b"http/1.1", b"GET /livez HTTP/1.1\r\nhost: x\r\n"),
        (b"http/1.1", b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n"),
    ];
    for (protocol, bytes) in cases {
        clock.hold();
        let mut stream = listening.connect(protocol).await;
        stream.write_all(bytes).await.expect("sends");
        stream.flush().await.expect("sends");
        clock.go();
        let ended = tokio::time::timeout(NEVER, rest(&mut stream)).await;
        assert!(ended.is_ok(), "{}", String::from_utf8_lossy(bytes));
    }
    // One byte of a header at a time is no activity.
    clock.hold();
    let stream = listening.connect(b"http/1.1").await;
    clock.go();
    let (mut read, mut write) = tokio::io::split(stream);
    let drip = tokio::spawn(async move {
        let mut sent = write.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nx: ").await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            sent = write.write_all(b"a").await;
            let _flushed = write.flush().await;
        }
    });
    let ended = tokio::time::timeout(NEVER, read.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "dripping headers");
    drip.await.expect("the other side is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s41_slow_bodies_are_cut_off() {
    let clock = Arc::new(FastClock::new());
    let listening = listening(secured_with(clock.clone(), Vec::new()).await).await;
    for (token, code) in [(ADMIN_TOKEN, "504 Gateway Timeout"), (USER_TOKEN, "403 Forbidden")] {
        clock.hold();
        let mut stream = listening.connect(b"http/1.1").await;
        let head = format!(
            "POST {SECRETS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: 100000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sends");
        stream.flush().await.expect("sends");
        clock.go();
        let (mut read, mut write) = tokio::io::split(stream);
        let drip = tokio::spawn(async move {
            let mut sent = Ok(());
            while sent.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
                sent = write.write_all(b"{").await;
                let _flushed = write.flush().await;
            }
        });
        let mut answer = Vec::new();
        let ended = tokio::time::timeout(NEVER, read.read_to_end(&mut answer)).await;
        assert!(ended.is_ok(), "{code}");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
        drip.await.expect("the other side is closed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s29_limits_come_before_authentication_and_can_be_read() {
    let listening = listening(secured().await).await;
    let head = |token: &str, length: usize| {
        format!(
            "POST {SECRETS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    for (token, length, expected) in [
        // Nobody is asked for a token first.
        ("no-such-token", MAX_BODY + 1, "413 Payload Too Large"),
        (ADMIN_TOKEN, MAX_BODY + 1, "413 Payload Too Large"),
        (ADMIN_TOKEN, 3 * MAX_BODY, "413 Payload Too Large"),
        ("no-such-token", MAX_BODY, "401 Unauthorized"),
        (USER_TOKEN, MAX_BODY, "403 Forbidden"),
        (ADMIN_TOKEN, MAX_BODY, "400 Bad Request"),
    ] {
        // The client sends all of the body before it reads, as simple clients do.
        let mut request = head(token, length).into_bytes();
        request.resize(request.len() + length, b'x');
        let answer = listening.ask_bytes(&request).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{token} {length}: {answer}");
        assert!(answer.contains("\"kind\":\"Status\""), "{answer}");
    }
    // Nested values are refused by depth, not by memory.
    let nested = "[".repeat(MAX_BODY / 2);
    let request = format!("{}{nested}", head(ADMIN_TOKEN, nested.len()));
    let answer = listening.ask(&request).await;
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request"), "{answer}");
}

/// A document that never comes.
fn hanging() -> Route {
    Route::new("/hang", "text/plain", Box::new(|_| Box::pin(std::future::pending())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_places_are_told_to_come_back() {
    let listening = listening(secured_with(Arc::new(SystemClock::new()), vec![hanging()]).await).await;
    let api: &ApiServer = &listening.api;
    let admin = Client::in_groups(api, "admin", &["system:masters", "system:authenticated"]);
    let admin = Arc::new(admin);
    let mut hanging = tokio::task::JoinSet::new();
    for _ in 0..MAX_READS {
        let admin = Arc::clone(&admin);
        hanging.spawn(async move { admin.get("/hang").await });
    }
    let ask = |method: &str, path: &str, token: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        let listening = &listening;
        async move { listening.ask(&request).await }
    };
    // The places fill up while the tasks start.
    let mut answer = String::new();
    for _ in 0..1000 {
        answer = ask("GET", SECRETS, USER_TOKEN).await;
        if answer.starts_with("HTTP/1.1 429") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
    assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nToo many requests, please try again later.\n"), "{answer}");
    // Nobody is counted who is not known.
    assert!(ask("GET", SECRETS, "no-such-token").await.starts_with("HTTP/1.1 401"));
    // Writes, watches, probes and administrators have places of their own.
    for (method, path, token, expected) in [
        ("DELETE", "/api/v1/namespaces/default/secrets/none", USER_TOKEN, "403"),
        ("GET", "/api/v1/secrets?watch=1&timeoutSeconds=1", USER_TOKEN, "403"),
        ("GET", "/livez", USER_TOKEN, "200"),
        ("GET", SECRETS, ADMIN_TOKEN, "200"),
    ] {
        let answer = ask(method, path, token).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{method} {path}: {answer}");
    }
    hanging.shutdown().await;
    assert!(ask("GET", SECRETS, USER_TOKEN).await.starts_with("HTTP/1.1 403"));
}

/// A document may take longer than a request: only its beginning has to be there in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_document_has_no_deadline_and_ends_with_the_server() {
    let clock = Arc::new(FastClock::new());
    let pieces = {
        let clock = Arc::clone(&clock);
        move |_| -> futures::future::BoxFuture<'static, _> {
            let clock = Arc::clone(&clock);
            let pieces = stream::unfold((), move |()| {
                let clock = Arc::clone(&clock);
                async move {
                    clock.sleep(Duration::from_secs(50)).await;
                    Some((bytes::Bytes::from_static(b"piece\n"), ()))
                }
            });
            Box::pin(async move { Ok(pieces.boxed()) })
        }
    };
    let route = Route::streamed("/pieces", "application/x-ndjson", Box::new(pieces));
    let api = secured_with(clock, vec![route]).await;
    let admin = Client::in_groups(&api, "admin", &["system:masters", "system:authenticated"]);
    let response = admin.open("GET", "/pieces", &[], b"").await;
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let mut body = response.into_body();
    for _ in 0..5 {
        let frame = body.frame().await.expect("goes on").expect("no failure");
        assert_eq!(frame.into_data().expect("data"), "piece\n");
    }
    api.shutdown();
    while let Some(frame) = body.frame().await {
        assert!(frame.is_ok());
    }
}

/// A check that never ends, and how many wait for it.
#[derive(Default)]
struct Hanging(AtomicUsize);

#[async_trait]
impl HealthCheck for Hanging {
    fn name(&self) -> &str {
        "hang"
    }

    async fn check(&self) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_health_probes_have_places_of_their_own() {
    const PLACES: usize = 20;
    let check = Arc::new(Hanging::default());
    let api = server_of(Arc::new(SystemClock::new()), Vec::new(), Vec::new(), vec![check.clone()]).await;
    let ann = Arc::new(Client::named(&api, "ann"));
    let mut probes = tokio::task::JoinSet::new();
    for count in 1..=PLACES {
        assert_eq!(ann.get("/livez/ping").await.code, 200, "{} probes under way", count - 1);
        let ann = Arc::clone(&ann);
        probes.spawn(async move { ann.get("/readyz/hang").await });
        wait(|| check.0.load(Ordering::SeqCst) == count).await;
    }
    for path in ["/livez/ping", "/readyz", "/healthz"] {
        let answer = ann.get(path).await;
        assert_eq!((answer.code, answer.header("retry-after")), (429, "1"), "{path}");
    }
    // Other requests have theirs, and the administrators are never kept out.
    assert_eq!(ann.get(SECRETS).await.code, 200);
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    assert_eq!(admin.get("/livez/ping").await.code, 200);
    probes.shutdown().await;
    assert_eq!(ann.get("/livez/ping").await.code, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_answers_are_compressed_for_those_who_ask() {
    let listening = listening(secured().await).await;
    let admin = Client::in_groups(&listening.api, "admin", &["system:masters"]);
    let value = "QUJD".repeat(50_000);
    let secret = format!(r#"{{"metadata":{{"name":"large"}},"data":{{"k":"{value}"}}}}"#);
    assert_eq!(admin.post(SECRETS, &secret).await.code, 201);
    let small = r#"{"metadata":{"name":"small"},"data":{"k":"QUJD"}}"#;
    assert_eq!(admin.post(SECRETS, small).await.code, 201);
    for (name, accept, compressed) in [
        ("large", "accept-encoding: gzip\r\n", true),
        ("large", "accept-encoding: deflate, gzip;q=0.5\r\n", true),
        ("large", "", false),
        ("large", "accept-encoding: br\r\n", false),
        ("small", "accept-encoding: gzip\r\n", false),
    ] {
        let request = format!(
            "GET {SECRETS}/{name} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
             {accept}connection: close\r\n\r\n"
        );
        let answer = listening.ask_bytes(request.as_bytes()).await;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an end of the headers");
        let (head, body) = (String::from_utf8_lossy(&answer[..end]).into_owned(), &answer[end + 4..]);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert_eq!(head.contains("\r\ncontent-encoding: gzip"), compressed, "{accept}: {head}");
        let mut plain = Vec::new();
        if compressed {
            assert!(body.len() < value.len() / 10);
            flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("gzip");
        } else {
            plain.extend_from_slice(body);
        }
        let object: serde_json::Value = serde_json::from_slice(&plain).expect("JSON");
        assert_eq!(
            object["data"]["k"].as_str().map(str::len),
            Some(if name == "large" { 200_000 } else { 4 })
        );
    }
}
