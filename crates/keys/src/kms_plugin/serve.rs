//! The three methods over gRPC.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use coffer_crypto::kms::KmsEncrypted;
use coffer_crypto::kms::wire::v2::{
    DECRYPT_METHOD, DecryptRequest, DecryptResponse, ENCRYPT_METHOD, EncryptRequest, EncryptResponse,
    STATUS_METHOD, StatusRequest, StatusResponse,
};
use coffer_types::SecretBytes;
use futures::future::BoxFuture;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use prost::Message;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::{Backend, BackendError};

const VERSION: &str = "v2";
const WELL: &str = "ok";
/// Far more than a seed, which is 32 bytes, and what one server has on its way.
const LARGEST_REQUEST: usize = 1 << 20;
/// How many servers may be connected: one plugin serves the server beside it, or a few in a test.
const MOST_CONNECTIONS: usize = 64;

/// Answers on `listener` until `stop`.
pub async fn serve(listener: UnixListener, backend: Arc<dyn Backend>, stop: CancellationToken) {
    let plugin = Plugin { backend, known: Arc::default() };
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: waiting for one to end is all that helps.
                    tracing::warn!(%error, "a connection could not be accepted");
                    connections.join_next().await;
                    continue;
                }
            },
        };
        if MOST_CONNECTIONS <= connections.len() {
            tracing::warn!(limit = MOST_CONNECTIONS, "a connection was refused: there are too many");
            continue;
        }
        let (plugin, stop) = (plugin.clone(), stop.clone());
        connections.spawn(async move {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(plugin));
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    while connections.join_next().await.is_some() {}
}

#[derive(Clone)]
struct Plugin {
    backend: Arc<dyn Backend>,
    /// The last key that the backend named: what `Status` names while the backend is away.
    known: Arc<Mutex<String>>,
}

impl tower::Service<http::Request<Incoming>> for Plugin {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            Ok(match request.uri().path() {
                STATUS_METHOD => answer(request, move |asked| plugin.clone().status(asked)).await,
                ENCRYPT_METHOD => answer(request, move |asked| plugin.clone().encrypt(asked)).await,
                DECRYPT_METHOD => answer(request, move |asked| plugin.clone().decrypt(asked)).await,
                path => Status::unimplemented(format!("unknown method {path}")).into_http(),
            })
        })
    }
}

/// Decodes the question, asks `method`, encodes the answer.
async fn answer<Q, A, F>(
    request: http::Request<Incoming>,
    method: impl Fn(Q) -> F + Clone + Send + 'static,
) -> http::Response<Body>
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    let method = service_fn(move |request: Request<Q>| {
        let answered = method(request.into_inner());
        async move { answered.await.map(Response::new) }
    });
    Grpc::new(ProstCodec::<A, Q>::default())
        .max_decoding_message_size(LARGEST_REQUEST)
        .unary(method, request)
        .await
}

impl Plugin {
    /// Always an answer: a server that gets none cannot tell a sick backend from a dead plugin.
    async fn status(self, _: StatusRequest) -> Result<StatusResponse, Status> {
        let healthz = match self.backend.current_key_id().await {
            Ok(key_id) => {
                *self.known.lock() = key_id;
                WELL.to_owned()
            }
            Err(error) => {
                tracing::warn!(%error, "the backend is not well");
                error.to_string()
            }
        };
        let key_id = self.known.lock().clone();
        Ok(StatusResponse { version: VERSION.to_owned(), healthz, key_id })
    }

    async fn encrypt(self, request: EncryptRequest) -> Result<EncryptResponse, Status> {
        let EncryptRequest { plaintext, uid } = request;
        let plaintext = SecretBytes::new(plaintext);
        let encrypted =
            self.backend.encrypt(&plaintext).await.map_err(|error| refused("Encrypt", &uid, &error))?;
        let KmsEncrypted { ciphertext, key_id, annotations } = encrypted;
        Ok(EncryptResponse { ciphertext, key_id, annotations })
    }

    async fn decrypt(self, request: DecryptRequest) -> Result<DecryptResponse, Status> {
        let DecryptRequest { ciphertext, uid, key_id, annotations } = request;
        let encrypted = KmsEncrypted { ciphertext, key_id, annotations };
        let plaintext =
            self.backend.decrypt(&encrypted).await.map_err(|error| refused("Decrypt", &uid, &error))?;
        Ok(DecryptResponse { plaintext: plaintext.expose().to_vec() })
    }
}

fn refused(method: &'static str, uid: &str, error: &BackendError) -> Status {
    tracing::warn!(method, uid, %error, "a call failed");
    let code = match error {
        BackendError::Denied(_) => Code::PermissionDenied,
        BackendError::Unavailable(_) => Code::Unavailable,
        BackendError::NoSuchKey(_) => Code::FailedPrecondition,
        BackendError::Invalid(_) => Code::InvalidArgument,
    };
    Status::new(code, error.to_string())
}
