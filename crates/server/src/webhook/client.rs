//! One POST to a webhook.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use coffer_types::time::Clock;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;

use super::pieces::Pieces;
use super::service::Resolve;
use super::target::Target;
use crate::quote;

/// Go's words for a time that is over.
const OVERDUE: &str = "context deadline exceeded";
/// The largest answer.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;
/// Idle connections that are kept.
const IDLE: usize = 4;

/// A client of one webhook, with connections of its own.
pub(crate) struct WebhookClient {
    target: Target,
    client: Client<HttpsConnector<Dial>, Pieces>,
    clock: Arc<dyn Clock>,
    answer_limit: usize,
    /// What is said of a webhook that does not answer in time.
    pub(crate) overdue: &'static str,
}

impl WebhookClient {
    pub(crate) fn new(
        target: Target,
        services: Arc<dyn Resolve>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(&target.bundle)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Dial { service: target.service.clone(), services });
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(IDLE).build(connector);
        Ok(Self { target, client, clock, answer_limit: ANSWER_LIMIT, overdue: OVERDUE })
    }

    /// Sends JSON and gives the JSON that is answered. `limit` is for all of it, the answer included.
    pub(crate) async fn post(&self, body: Pieces, limit: Duration) -> Result<Bytes, CallError> {
        let url = self.target.url(limit);
        let failed = |why: String| CallError { text: format!("Post {}: {why}", quote(&url)), code: None };
        let request = Request::post(&url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(body)
            .map_err(|_| failed("the address is not valid".to_owned()))?;
        let mut answered = false;
        let exchange = self.exchange(request, &mut answered);
        let outcome = tokio::select! {
            outcome = exchange => Some(outcome),
            () = self.clock.sleep(limit) => None,
        };
        match outcome {
            Some(Ok(body)) => Ok(body),
            Some(Err(Failure::Call(why))) => Err(failed(why)),
            Some(Err(Failure::Answer(text))) => Err(CallError { text, code: None }),
            Some(Err(Failure::Refused(code))) => Err(CallError { text: refused(code), code: Some(code) }),
            None if answered => Err(CallError { text: unreadable(OVERDUE), code: None }),
            None => Err(failed(self.overdue.to_owned())),
        }
    }

    async fn exchange(&self, request: Request<Pieces>, answered: &mut bool) -> Result<Bytes, Failure> {
        let response = self.client.request(request).await;
        let response = response.map_err(|error| Failure::Call(cause(&error)))?;
        *answered = true;
        let code = response.status().as_u16();
        if !(200..300).contains(&code) {
            return Err(Failure::Refused(code));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let body = Limited::new(response.into_body(), self.answer_limit).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).map_err(|error| {
            Failure::Answer(if error.is::<http_body_util::LengthLimitError>() {
                format!("the answer is larger than {} bytes", self.answer_limit)
            } else {
                unreadable("unexpected EOF")
            })
        })?;
        if body.is_empty() {
            let text = format!("0-length response with status code: {code} and content type: {kind}");
            return Err(Failure::Answer(text));
        }
        Ok(body)
    }
}

/// Why a call gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallError {
    /// In upstream's words, without anything of what was sent or answered.
    pub(crate) text: String,
    /// The status code, when that is why.
    pub(crate) code: Option<u16>,
}

fn unreadable(why: &str) -> String {
    format!("unexpected error when reading response body. Please retry. Original error: {why}")
}

enum Failure {
    /// There was no answer.
    Call(String),
    /// The answer cannot be used.
    Answer(String),
    /// The answer has this code.
    Refused(u16),
}

/// What upstream's client makes of a status code when nothing else is known. It quotes the answer; here
/// an answer is never shown.
fn refused(code: u16) -> String {
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "unknown".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        406 => "the server was unable to respond with a content type that the client supports".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the \
                request"
            .to_owned(),
        code if 500 <= code => {
            "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned()
        }
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}

fn tls(bundle: &[u8]) -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if bundle.is_empty() {
        let builder = builder.with_platform_verifier().map_err(|error| error.to_string())?;
        return Ok(builder.with_no_client_auth());
    }
    const UNREADABLE: &str = "unable to load root certificates: unable to parse bytes as PEM block";
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        let certificate = certificate.map_err(|_| UNREADABLE.to_owned())?;
        roots.add(certificate).map_err(|_| UNREADABLE.to_owned())?;
    }
    if roots.is_empty() {
        return Err(UNREADABLE.to_owned());
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Opens connections: to where the address says, or to an endpoint of the service.
#[derive(Clone)]
struct Dial {
    service: Option<(String, String, u16)>,
    services: Arc<dyn Resolve>,
}

/// Why no connection was opened, in Go's words.
#[derive(Debug)]
struct DialError(String);

impl fmt::Display for DialError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for DialError {}

impl tower::Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dial = self.clone();
        Box::pin(async move { dial.open(&uri).await.map(TokioIo::new).map_err(DialError) })
    }
}

impl Dial {
    async fn open(&self, uri: &Uri) -> Result<TcpStream, String> {
        let (host, port) = match &self.service {
            Some((namespace, name, port)) => self.services.endpoint(namespace, name, *port).await?,
            None => {
                let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
                (host.to_owned(), uri.port_u16().unwrap_or(default))
            }
        };
        let addresses = tokio::net::lookup_host((host.as_str(), port)).await;
        let addresses: Vec<_> =
            addresses.map_err(|_| format!("dial tcp: lookup {host}: no such host"))?.collect();
        let mut failure = format!("dial tcp: lookup {host}: no such host");
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    // Small requests that are answered at once.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Err(error) => failure = format!("dial tcp {address}: connect: {}", in_go(&error)),
            }
        }
        Err(failure)
    }
}

fn in_go(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => "connection failed".to_owned(),
    }
}

/// The cause of a failed call: ours, or what TLS says, or that the connection broke.
fn cause(error: &(dyn Error + 'static)) -> String {
    known_cause(error).unwrap_or_else(|| "EOF".to_owned())
}

fn known_cause(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(dial) = error.downcast_ref::<DialError>() {
        return Some(dial.0.clone());
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(tls_cause(tls));
    }
    // What an error of the system wraps is not its source.
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    if let Some(inner) = wrapped
        && let Some(found) = known_cause(inner)
    {
        return Some(found);
    }
    error.source().and_then(known_cause)
}

fn tls_cause(error: &rustls::Error) -> String {
    const FAILED: &str = "tls: failed to verify certificate: x509: ";
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
            format!("{FAILED}certificate signed by unknown authority")
        }
        rustls::Error::InvalidCertificate(
            rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. },
        ) => format!("{FAILED}certificate has expired or is not yet valid"),
        rustls::Error::InvalidCertificate(
            rustls::CertificateError::NotValidForName
            | rustls::CertificateError::NotValidForNameContext { .. },
        ) => format!("{FAILED}certificate is not valid for the host"),
        rustls::Error::InvalidCertificate(_) => format!("{FAILED}certificate is not valid"),
        _ => "tls: handshake failure".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use coffer_runtime::clock::SystemClock;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    struct At(u16);

    #[async_trait]
    impl Resolve for At {
        async fn endpoint(&self, namespace: &str, name: &str, _: u16) -> Result<(String, u16), String> {
            match (namespace, name) {
                ("ns", "hook") => Ok(("127.0.0.1".to_owned(), self.0)),
                _ => Err(format!("service {} not found", quote(name))),
            }
        }
    }

    fn target(url: &str) -> Target {
        Target::of(&coffer_types::Value::from([("url", url)])).expect("a target")
    }

    fn client(target: Target, port: u16) -> WebhookClient {
        WebhookClient::new(target, Arc::new(At(port)), Arc::new(SystemClock::new())).expect("a client")
    }

    /// Serves one connection with `answer`, and tells what came.
    async fn serve(answer: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let task = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.expect("a request");
            stream.write_all(answer).await.expect("written");
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        (port, task)
    }

    #[tokio::test]
    async fn a_call_is_one_post() {
        let (port, server) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let hook = client(target(&format!("http://127.0.0.1:{port}/convert")), 0);
        assert_eq!(hook.post(b"{}".to_vec().into(), LIMIT).await.as_deref(), Ok(&b"{}"[..]));
        let sent = server.await.expect("served");
        assert!(sent.starts_with("POST /convert?timeout=30s HTTP/1.1\r\n"), "{sent}");
        assert!(sent.contains("content-type: application/json\r\n"), "{sent}");
    }

    #[tokio::test]
    async fn a_service_is_asked_for_at_its_endpoint() {
        let (port, server) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        let service = coffer_types::Value::from([(
            "service",
            coffer_types::Value::from([("namespace", "ns"), ("name", "hook"), ("path", "/c")]),
        )]);
        let mut hook = Target::of(&service).expect("a target");
        // Without TLS, to see the request.
        hook.scheme = "http".to_owned();
        assert_eq!(client(hook, port).post(Vec::new().into(), LIMIT).await.as_deref(), Ok(&b"{}"[..]));
        let sent = server.await.expect("served");
        assert!(sent.contains("host: hook.ns.svc:443\r\n"), "{sent}");
        let other = coffer_types::Value::from([(
            "service",
            coffer_types::Value::from([("namespace", "ns"), ("name", "other")]),
        )]);
        let error = client(Target::of(&other).expect("a target"), port).post(Vec::new().into(), LIMIT).await;
        let expected = "Post \"https://other.ns.svc:443/?timeout=30s\": service \"other\" not found";
        assert_eq!(error.expect_err("no service").text, expected);
    }

    #[tokio::test]
    async fn failures_are_worded_as_upstream_and_tell_no_answer() {
        for (answer, expected) in [
            (
                &b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"[..],
                "the server responded with the status code 302 but did not return more information",
            ),
            (
                b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 6\r\n\r\nsecret",
                "an error on the server (\"unknown\") has prevented the request from succeeding",
            ),
            (
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 6\r\n\r\nsecret",
                "the server could not find the requested resource",
            ),
        ] {
            let (port, _server) = serve(answer).await;
            let hook = client(target(&format!("http://127.0.0.1:{port}/")), 0);
            assert_eq!(hook.post(Vec::new().into(), LIMIT).await.expect_err("refused").text, expected);
        }
        let (port, server) = serve(b"").await;
        server.abort();
        let _ = server.await;
        let hook = client(target(&format!("https://127.0.0.1:{port}/x")), 0);
        let expected = format!(
            "Post \"https://127.0.0.1:{port}/x?timeout=30s\": dial tcp 127.0.0.1:{port}: connect: connection refused"
        );
        assert_eq!(hook.post(Vec::new().into(), LIMIT).await.expect_err("nobody there").text, expected);
    }

    #[tokio::test]
    async fn a_webhook_that_hangs_is_left_after_its_time() {
        let limit = Duration::from_millis(50);
        for (answer, expected) in [
            (&b""[..], "Post \"URL?timeout=1s\": context deadline exceeded"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{",
                "unexpected error when reading response body. Please retry. Original error: context deadline exceeded",
            ),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let _hangs = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let _request = stream.read(&mut [0; 4096]).await.expect("a request");
                stream.write_all(answer).await.expect("written");
                std::future::pending::<()>().await;
            });
            let url = format!("http://127.0.0.1:{port}/");
            let error = client(target(&url), 0).post(Vec::new().into(), limit).await.expect_err("it hangs");
            assert_eq!(error.text.replace(&url, "URL"), expected);
        }
    }

    #[tokio::test]
    async fn an_empty_answer_is_none() {
        let (port, _server) =
            serve(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 0\r\n\r\n").await;
        let hook = client(target(&format!("http://127.0.0.1:{port}/")), 0);
        let error = hook.post(Vec::new().into(), LIMIT).await.expect_err("nothing");
        assert_eq!(error.text, "0-length response with status code: 200 and content type: text/plain");
    }

    #[tokio::test]
    async fn an_answer_has_a_largest_size() {
        let (port, _server) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nhello world").await;
        let mut hook = client(target(&format!("http://127.0.0.1:{port}/")), 0);
        hook.answer_limit = 10;
        assert_eq!(
            hook.post(Vec::new().into(), LIMIT).await.expect_err("too large").text,
            "the answer is larger than 10 bytes"
        );
    }

    #[test]
    fn a_bundle_must_be_readable() {
        let mut hook = target("https://127.0.0.1:1/");
        hook.bundle = b"junk".to_vec();
        let made = WebhookClient::new(hook, Arc::new(At(0)), Arc::new(SystemClock::new()));
        let expected = "unable to load root certificates: unable to parse bytes as PEM block";
        assert_eq!(made.err().as_deref(), Some(expected));
    }
}
