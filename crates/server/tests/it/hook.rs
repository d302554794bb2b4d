//! A webhook on a socket of its own, for conversions and for admission.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What a webhook answers to the objects of a review; an error is the message of a failure.
type Convert = dyn Fn(&str, Vec<Value>) -> Result<Vec<Value>, String> + Send + Sync;

/// What a webhook makes of a path and a review.
type Answer = dyn Fn(&str, Value) -> Value + Send + Sync;

/// A running webhook.
pub(crate) struct Hook {
    pub(crate) port: u16,
    /// `caBundle`.
    pub(crate) bundle: String,
    calls: Arc<AtomicUsize>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Hook {
    /// Starts one that converts.
    pub(crate) async fn start(
        convert: impl Fn(&str, Vec<Value>) -> Result<Vec<Value>, String> + Send + Sync + 'static,
    ) -> Self {
        Self::answering(move |_, review| converted(&review, &convert)).await
    }

    /// Starts one that is known as 127.0.0.1 and as the service `hook` in `default`. It does not answer to
    /// what it makes `null` of.
    pub(crate) async fn answering(answer: impl Fn(&str, Value) -> Value + Send + Sync + 'static) -> Self {
        let names = vec!["127.0.0.1".to_owned(), "hook.default.svc".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("a configuration");
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let hook = Self {
            port: listener.local_addr().expect("an address").port(),
            bundle: base64::engine::general_purpose::STANDARD.encode(made.cert.pem()),
            calls: Arc::default(),
            answer: Arc::new(Mutex::new(Arc::new(answer))),
        };
        let (calls, answer) = (Arc::clone(&hook.calls), Arc::clone(&hook.answer));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (acceptor, calls, answer) = (acceptor.clone(), Arc::clone(&calls), Arc::clone(&answer));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service =
                        hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                            let (calls, answer) = (Arc::clone(&calls), Arc::clone(&*answer.lock()));
                            async move {
                                let path = request.uri().path().to_owned();
                                let body = request.into_body().collect().await.expect("a body").to_bytes();
                                calls.fetch_add(1, Ordering::SeqCst);
                                let review = serde_json::from_slice(&body).expect("a review");
                                let answer = answer(&path, review);
                                if answer.is_null() {
                                    std::future::pending::<()>().await;
                                }
                                let answer = answer.to_string();
                                Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from(answer))))
                            }
                        });
                    let io = TokioIo::new(stream);
                    let _served =
                        hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
                });
            }
        });
        hook
    }

    /// Converts otherwise from now on.
    pub(crate) fn becomes(
        &self,
        convert: impl Fn(&str, Vec<Value>) -> Result<Vec<Value>, String> + Send + Sync + 'static,
    ) {
        *self.answer.lock() = Arc::new(move |_: &str, review: Value| converted(&review, &convert));
    }

    /// How often it was called.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// A `clientConfig` that calls a path.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://127.0.0.1:{}{path}", self.port), "caBundle": self.bundle})
    }

    /// A `conversion` of a definition that calls it by its address.
    pub(crate) fn conversion(&self) -> Value {
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": {"url": format!("https://127.0.0.1:{}/convert", self.port), "caBundle": self.bundle}}})
    }
}

fn converted(review: &Value, convert: &Convert) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version");
    let objects = request["objects"].as_array().expect("objects").clone();
    let result = match convert(desired, objects) {
        Ok(objects) => {
            json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}})
        }
        Err(message) => json!({"uid": request["uid"], "result": {"status": "Failure", "message": message}}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": result})
}
