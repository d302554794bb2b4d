//! The HTTPS client of every provider.
//!
//! Each request starts from an empty header map, no redirect is followed, an
//! answer has a largest size and a latest time, and neither a body nor a header
//! is ever part of an error or a log line.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::contract::{ProviderError, config};

/// The largest answer. A secret is at most 1 MiB in Kubernetes; lists of names are larger.
pub const BODY_LIMIT: usize = 16 * 1024 * 1024;
/// How long one request may take, its answer included.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle connections that are kept for each host.
const IDLE: usize = 4;

/// Whom to trust and who to be.
#[derive(Default)]
pub struct Tls {
    /// PEM of the CA; `None` for the system's roots.
    pub authority: Option<Vec<u8>>,
    /// PEM of a client certificate and its key.
    pub identity: Option<(Vec<u8>, SecretBytes)>,
}

/// Why there was no answer. Never holds a body, a header or a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpsError {
    /// The request or the TLS material is wrong.
    #[error("{0}")]
    Invalid(String),
    /// No connection, or it broke.
    #[error("{0}")]
    Unreachable(String),
    /// It took longer than the deadline.
    #[error("no answer within {0} s")]
    TimedOut(u64),
    /// The answer is larger than the limit.
    #[error("the answer is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    /// The server sent the client elsewhere.
    #[error("the server answered with a redirect ({0}), which is not followed")]
    Redirect(u16),
}

/// A header that holds a credential.
pub(crate) fn credential(parts: &[&[u8]]) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_bytes(&parts.concat())
        .map_err(|_| ProviderError::Auth("the token is not a valid header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The request with `body` as JSON, or without one; `wrong` when a part of it is not valid.
pub(crate) fn with_json(
    request: http::request::Builder,
    body: Option<Vec<u8>>,
    wrong: &str,
) -> Result<Request<Vec<u8>>, ProviderError> {
    let request = match &body {
        Some(_) => request.header(http::header::CONTENT_TYPE, "application/json"),
        None => request,
    };
    request.body(body.unwrap_or_default()).map_err(|_| config(wrong))
}

/// Escapes one segment of a path or a value of a query: everything but unreserved characters.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// An answer.
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: SecretBytes,
}

/// The client.
pub struct Https {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    clock: Arc<dyn Clock>,
}

impl Https {
    /// A client with connections of its own.
    pub fn new(tls: Tls, clock: Arc<dyn Clock>) -> Result<Self, HttpsError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls.config()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(IDLE).build(connector);
        Ok(Self { client, clock })
    }

    /// Sends one request.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Answer, HttpsError> {
        let request = request.map(|body| Full::new(Bytes::from(body)));
        tokio::select! {
            answer = self.exchange(request) => answer,
            () = self.clock.sleep(DEADLINE) => Err(HttpsError::TimedOut(DEADLINE.as_secs())),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, HttpsError> {
        let response = self.client.request(request).await.map_err(|error| unreachable(&error))?;
        let (head, body) = response.into_parts();
        let status = head.status.as_u16();
        // 304 is an answer of its own, not a redirect.
        if head.status.is_redirection() && status != 304 {
            return Err(HttpsError::Redirect(status));
        }
        let mut body = Limited::new(body, BODY_LIMIT);
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<http_body_util::LengthLimitError>() {
                    HttpsError::TooLarge
                } else {
                    HttpsError::Unreachable("the connection broke while the answer arrived".to_owned())
                }
            })?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data);
            }
        }
        Ok(Answer { status, headers: head.headers, body: SecretBytes::new(bytes) })
    }
}

fn unreachable(error: &hyper_util::client::legacy::Error) -> HttpsError {
    // The chain of causes names hosts, addresses and TLS alerts, never content.
    let mut text = String::new();
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        cause = error.source();
    }
    HttpsError::Unreachable(text)
}

impl Tls {
    fn config(&self) -> Result<rustls::ClientConfig, HttpsError> {
        let invalid = |what: &str| HttpsError::Invalid(what.to_owned());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| invalid("TLS is not available"))?;
        let builder = match &self.authority {
            None => builder
                .with_platform_verifier()
                .map_err(|_| invalid("the system's trust store cannot be read"))?,
            Some(pem) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate
                        .map_err(|_| invalid("failed to parse the new certificate, not valid pem data"))?;
                    roots.add(certificate).map_err(|_| invalid("failed to validate certificate"))?;
                }
                if roots.is_empty() {
                    return Err(invalid("failed to parse the new certificate, not valid pem data"));
                }
                builder.with_root_certificates(roots)
            }
        };
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|_| invalid("the client certificate is not valid PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(key.expose())
            .map_err(|_| invalid("the client key is not valid PEM"))?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|_| invalid("the client certificate and key do not fit"))
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use coffer_types::time::{Sleep, Timestamp};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Time that stands still, or is over at once.
    struct Fixed(bool);

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> Sleep {
            if self.0 { Box::pin(std::future::ready(())) } else { Box::pin(pending()) }
        }
    }

    /// Serves one connection with `answer` and returns what the client sent and got.
    async fn exchange(answer: &'static [u8], late: bool) -> (String, Result<Answer, HttpsError>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let _ = stream.write_all(answer).await;
            String::from_utf8(request[..read].to_vec()).unwrap()
        });
        let https = Https::new(Tls { authority: None, identity: None }, Arc::new(Fixed(late))).unwrap();
        let request = Request::get(format!("http://{address}/v1/x")).body(Vec::new()).unwrap();
        let result = https.send(request).await;
        if late {
            server.abort();
            return (String::new(), result);
        }
        (server.await.unwrap(), result)
    }

    #[tokio::test]
    async fn s7_a_redirect_is_an_error() {
        let answer = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n";
        let (_, result) = exchange(answer, false).await;
        assert_eq!(result.err(), Some(HttpsError::Redirect(307)));
    }

    #[tokio::test]
    async fn s31_a_request_carries_no_header_of_anybody_else() {
        let (sent, result) = exchange(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", false).await;
        assert_eq!(result.ok().map(|answer| answer.body.expose().to_vec()), Some(b"hi".to_vec()));
        let headers: Vec<&str> = sent.lines().skip(1).filter(|line| !line.is_empty()).collect();
        assert!(headers.len() == 1 && headers[0].to_lowercase().starts_with("host:"), "{headers:?}");
    }

    #[tokio::test]
    async fn an_answer_has_a_largest_size() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 16777217\r\n\r\n";
        let (_, result) = exchange(answer, false).await;
        let error = result.err().unwrap();
        assert!(matches!(error, HttpsError::TooLarge | HttpsError::Unreachable(_)), "{error:?}");
    }

    #[tokio::test]
    async fn an_answer_has_a_latest_time() {
        let (_, result) = exchange(b"", true).await;
        assert_eq!(result.err(), Some(HttpsError::TimedOut(30)));
    }

    #[test]
    fn bad_material_is_refused() {
        let cases = [
            Tls { authority: Some(b"junk".to_vec()), identity: None },
            Tls { authority: None, identity: Some((b"junk".to_vec(), SecretBytes::from("junk".to_owned()))) },
        ];
        for tls in cases {
            assert!(matches!(Https::new(tls, Arc::new(Fixed(false))), Err(HttpsError::Invalid(_))));
        }
    }
}
