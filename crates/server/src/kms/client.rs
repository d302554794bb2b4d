//! Both versions of the plugin protocol, as a client over a Unix socket.
//!
//! A call waits for the plugin to come up, as long as its time allows: a plugin that starts
//! after the server, or starts anew, is no error.

use std::os::linux::net::SocketAddrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_crypto::kms::wire::{v1, v2};
use coffer_crypto::kms::{CallError, KmsEncrypted, KmsStatus, KmsV1Service, KmsV2Service};
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::net::UnixStream;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::calls::CallThread;
use super::endpoint::socket_name;
use super::metrics::Metrics;

/// Between two tries to connect.
const RETRY: Duration = Duration::from_millis(50);

/// A plugin's socket, connected when it is needed.
#[derive(Clone)]
pub(super) struct Connection {
    provider: Arc<str>,
    channel: Channel,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    calls: Arc<CallThread>,
}

impl Connection {
    pub(super) fn new(
        provider: &str,
        endpoint: &str,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
        calls: &Arc<CallThread>,
    ) -> Result<Self, String> {
        let socket: Arc<str> = socket_name(endpoint)?.into();
        let connect = service_fn(move |_: Uri| {
            let socket = Arc::clone(&socket);
            async move { connect(&socket).await.map(TokioIo::new) }
        });
        let runtime = calls.handle().ok_or("the calls have ended")?;
        // The channel's tasks start where it is made.
        let _entered = runtime.enter();
        Ok(Self {
            provider: provider.into(),
            // Only the authority is used: Go's clients name Unix sockets so.
            channel: Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect),
            timeout,
            clock: Arc::clone(clock),
            calls: Arc::clone(calls),
        })
    }

    /// One question, one answer, in the plugin's time.
    fn call<Q, A>(&self, path: &'static str, question: Q) -> Result<A, (Code, CallError)>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let this = self.clone();
        let call = async move {
            let answered = this.in_time(path, question).await;
            Ok(answered.map_err(|status| (status.code(), call_error(&status))))
        };
        match self.calls.wait(call) {
            Ok(answered) => answered,
            Err(error) => Err((Code::Cancelled, error)),
        }
    }

    async fn in_time<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        tokio::select! {
            answered = self.until_connected(path, question) => answered,
            () = self.clock.sleep(self.timeout) => Err(Status::deadline_exceeded("context deadline exceeded")),
        }
    }

    async fn until_connected<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        loop {
            match self.once(path, question.clone()).await {
                // Statuses that the plugin sent have no cause on this side. Every method may be
                // called twice: none changes anything in the plugin.
                Err(status) if std::error::Error::source(&status).is_some() => {
                    tracing::debug!(provider = %self.provider, %status, "the KMS plugin is not reached");
                    self.clock.sleep(RETRY).await;
                }
                answered => return answered,
            }
        }
    }

    async fn once<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut client = Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = client.unary(Request::new(question), PathAndQuery::from_static(path), codec).await?;
        Ok(answer.into_inner())
    }
}

async fn connect(socket: &str) -> std::io::Result<UnixStream> {
    let Some(name) = socket.strip_prefix('@') else { return UnixStream::connect(socket).await };
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// In the words of Go's client.
fn call_error(status: &Status) -> CallError {
    CallError::new(code_name(status.code()), status.message())
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

/// Version 2.
pub(super) struct ClientV2 {
    connection: Connection,
    metrics: Arc<Metrics>,
}

impl ClientV2 {
    pub(super) fn new(connection: Connection, metrics: Arc<Metrics>) -> Self {
        Self { connection, metrics }
    }

    fn call<Q, A>(&self, path: &'static str, question: Q) -> Result<A, CallError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let started = self.connection.clock.monotonic();
        let answered = self.connection.call(path, question);
        let took = self.connection.clock.monotonic().saturating_sub(started);
        let code = answered.as_ref().map_or_else(|(code, _)| *code, |_| Code::Ok);
        self.metrics.called(&self.connection.provider, path, code_name(code), took);
        answered.map_err(|(_, error)| error)
    }
}

impl KmsV2Service for ClientV2 {
    fn status(&self) -> Result<KmsStatus, CallError> {
        let answer: v2::StatusResponse = self.call(v2::STATUS_METHOD, v2::StatusRequest {})?;
        let v2::StatusResponse { version, healthz, key_id } = answer;
        Ok(KmsStatus { version, healthz, key_id })
    }

    fn encrypt(&self, uid: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        let question = v2::EncryptRequest { plaintext: plaintext.expose().to_vec(), uid: uid.to_owned() };
        let answer: v2::EncryptResponse = self.call(v2::ENCRYPT_METHOD, question)?;
        let v2::EncryptResponse { ciphertext, key_id, annotations } = answer;
        Ok(KmsEncrypted { ciphertext, key_id, annotations })
    }

    fn decrypt(&self, uid: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        let KmsEncrypted { ciphertext, key_id, annotations } = encrypted.clone();
        let question = v2::DecryptRequest { ciphertext, uid: uid.to_owned(), key_id, annotations };
        let answer: v2::DecryptResponse = self.call(v2::DECRYPT_METHOD, question)?;
        Ok(SecretBytes::new(answer.plaintext))
    }
}

/// Version 1.
pub(super) struct ClientV1 {
    connection: Connection,
    /// Whether the plugin has said once that it speaks our version.
    agreed: AtomicBool,
}

impl ClientV1 {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection, agreed: AtomicBool::new(false) }
    }

    fn agree(&self) -> Result<(), CallError> {
        if self.agreed.load(Ordering::Acquire) {
            return Ok(());
        }
        let question = v1::VersionRequest { version: v1::VERSION.to_owned() };
        let answer: v1::VersionResponse =
            self.connection.call(v1::VERSION_METHOD, question).map_err(|(_, error)| CallError {
                text: format!("failed get version from remote KMS provider: {error}"),
            })?;
        if answer.version != v1::VERSION {
            let text = format!(
                "KMS provider api version {} is not supported, only {} is supported now",
                answer.version,
                v1::VERSION
            );
            return Err(CallError { text });
        }
        self.agreed.store(true, Ordering::Release);
        Ok(())
    }
}

impl KmsV1Service for ClientV1 {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        self.agree()?;
        let question =
            v1::EncryptRequest { version: v1::VERSION.to_owned(), plain: plaintext.expose().to_vec() };
        let answer: Result<v1::EncryptResponse, _> = self.connection.call(v1::ENCRYPT_METHOD, question);
        answer.map(|answer| answer.cipher).map_err(|(_, error)| error)
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.agree()?;
        let question = v1::DecryptRequest { version: v1::VERSION.to_owned(), cipher: ciphertext.to_vec() };
        let answer: Result<v1::DecryptResponse, _> = self.connection.call(v1::DECRYPT_METHOD, question);
        answer.map(|answer| SecretBytes::new(answer.plain)).map_err(|(_, error)| error)
    }
}
