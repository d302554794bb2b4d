//! The etcd engine: a client for clusters of version 3.4 to 3.6 and later.
//!
//! * Reads move on to the next endpoint when one does not answer. Writes do so only when the request
//!   cannot have reached a server; otherwise the caller is told that the outcome is unknown.
//! * Every call has a deadline on the injected clock. Connections send keepalives while idle, so a
//!   watch over a dead connection ends with an error instead of staying silent.
//! * A watch that breaks ends; whoever watches knows best where to start again.
//!
//! Absent on purpose: authentication by name and password, discovery, and retries of writes.

mod endpoint;
mod error;
mod line;
mod version;
mod watch;
pub(crate) mod wire;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use futures::future::{Either, join_all, select};
use parking_lot::Mutex;
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Request, Status, Streaming};

use self::endpoint::{Endpoint, KEEPALIVE_TIME, KEEPALIVE_TIMEOUT};
use self::error::CallError;
use self::watch::Asker;
use crate::kv::{
    Kv, KvError, LeaseId, OpResponse, RangeRequest, RangeResponse, Revision, Txn, TxnResponse, WatchRequest,
    WatchStream,
};

/// How long a call may take; etcd itself gives up after 7 seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take, so that the next endpoint gets its turn within a request's deadline.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Where etcd is and how to reach it.
#[derive(Clone)]
pub struct EtcdConfig {
    /// URLs (`http` or `https`), or `host:port`.
    pub endpoints: Vec<String>,
    /// Certificates (PEM) that vouch for the servers; the system's if there are none.
    pub ca: Option<Vec<u8>>,
    /// The client's certificate and key (PEM).
    pub identity: Option<(Vec<u8>, SecretBytes)>,
    /// For deadlines.
    pub clock: Arc<dyn Clock>,
    /// How long a call may take.
    pub request_timeout: Duration,
    /// How long making a connection may take.
    pub dial_timeout: Duration,
    /// A connection on which nothing was heard for so long is asked for a sign of life,
    pub keepalive_time: Duration,
    /// and given up when there is none after this.
    pub keepalive_timeout: Duration,
}

impl EtcdConfig {
    /// Servers without TLS, and kube-apiserver's keepalive.
    pub fn new(endpoints: Vec<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            endpoints,
            ca: None,
            identity: None,
            clock,
            request_timeout: REQUEST_TIMEOUT,
            dial_timeout: DIAL_TIMEOUT,
            keepalive_time: KEEPALIVE_TIME,
            keepalive_timeout: KEEPALIVE_TIMEOUT,
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The list of endpoints is empty.
    #[error("--etcd-servers must be specified")]
    NoEndpoint,
    /// An endpoint or its certificates make no sense.
    #[error("invalid etcd endpoint {endpoint}: {reason}")]
    InvalidEndpoint {
        /// The endpoint as it was given.
        endpoint: String,
        /// What is wrong.
        reason: String,
    },
    /// None of the endpoints answered.
    #[error("no etcd server answered: {0}")]
    Unreachable(String),
}

/// The engine.
pub struct EtcdKv {
    endpoints: Vec<Arc<Endpoint>>,
    /// The one that answered last.
    preferred: AtomicUsize,
    /// Watches that report progress.
    askers: Mutex<Vec<Weak<Asker>>>,
    supports_progress: AtomicBool,
    clock: Arc<dyn Clock>,
    request_timeout: Duration,
}

impl std::fmt::Debug for EtcdKv {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let urls = self.endpoints.iter().map(|endpoint| &endpoint.url);
        formatter.debug_list().entries(urls).finish()
    }
}

/// Whether a call may be made again elsewhere when its outcome is unknown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// It changes nothing.
    Safe,
    /// It may have changed something.
    Never,
}

impl EtcdKv {
    /// Asks every endpoint for its version; at least one must answer.
    pub async fn connect(config: EtcdConfig) -> Result<Self, ConnectError> {
        let endpoints = config
            .endpoints
            .iter()
            .map(|url| Endpoint::new(url, &config).map(Arc::new))
            .collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            return Err(ConnectError::NoEndpoint);
        }
        let engine = Self {
            endpoints,
            preferred: AtomicUsize::new(0),
            askers: Mutex::new(Vec::new()),
            supports_progress: AtomicBool::new(true),
            clock: config.clock,
            request_timeout: config.request_timeout,
        };
        let answers = join_all(engine.endpoints.iter().map(|endpoint| engine.status(endpoint))).await;
        match answers.iter().position(Result::is_ok) {
            Some(first) => engine.preferred.store(first, Ordering::Relaxed),
            None => {
                let texts: Vec<_> =
                    answers.iter().filter_map(|answer| Some(answer.as_ref().err()?.to_string())).collect();
                return Err(ConnectError::Unreachable(texts.join("; ")));
            }
        }
        Ok(engine)
    }

    /// Waits for an answer until the deadline.
    async fn deadline<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, CallError> {
        match select(std::pin::pin!(call), self.clock.sleep(self.request_timeout)).await {
            Either::Left((result, _)) => result.map_err(CallError::Status),
            Either::Right(((), _)) => Err(CallError::Deadline),
        }
    }

    /// Asks one server for its version and size.
    async fn status(&self, endpoint: &Endpoint) -> Result<wire::StatusResponse, KvError> {
        let call = endpoint
            .unary::<_, wire::StatusResponse>("/etcdserverpb.Maintenance/Status", wire::StatusRequest {});
        let status = self.deadline(call).await.map_err(|error| match error.meaning(&endpoint.url) {
            KvError::Timeout => KvError::Unavailable(format!("{}: no answer in time", endpoint.url)),
            error => error,
        })?;
        if !version::supports_progress(&status.version) {
            self.supports_progress.store(false, Ordering::Relaxed);
        }
        Ok(status)
    }

    /// Calls the endpoints in turn, from the one that answered last.
    async fn call<T, F>(
        &self,
        repeat: Repeat,
        mut call: impl FnMut(Arc<Endpoint>) -> F,
    ) -> Result<(T, String), KvError>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failures = Vec::new();
        for turn in 0..self.endpoints.len() {
            let number = (first + turn) % self.endpoints.len();
            let endpoint = &self.endpoints[number];
            if !endpoint.known.load(Ordering::Relaxed) {
                // It may be of an older version than those known so far.
                if let Err(error) = self.status(endpoint).await {
                    failures.push(error);
                    continue;
                }
            }
            match self.deadline(call(Arc::clone(endpoint))).await {
                Ok(answer) => {
                    self.preferred.store(number, Ordering::Relaxed);
                    return Ok((answer, endpoint.url.clone()));
                }
                Err(error) => {
                    let another = error.not_sent() || (repeat == Repeat::Safe && error.of_endpoint());
                    if error.of_endpoint() {
                        // Others start with the next one.
                        self.preferred.store((number + 1) % self.endpoints.len(), Ordering::Relaxed);
                    }
                    failures.push(error.meaning(&endpoint.url));
                    if !another {
                        break;
                    }
                }
            }
        }
        // If all are down say which is how; otherwise the last one's answer counts.
        let unavailable = |error: &KvError| matches!(error, KvError::Unavailable(_));
        if failures.iter().all(unavailable) {
            let texts: Vec<_> = failures
                .into_iter()
                .map(|error| match error {
                    KvError::Unavailable(text) => text,
                    error => error.to_string(),
                })
                .collect();
            return Err(KvError::Unavailable(texts.join("; ")));
        }
        Err(failures.pop().unwrap_or_else(|| KvError::Unavailable("no endpoint".into())))
    }

    async fn unary<Q, A>(&self, repeat: Repeat, path: &'static str, request: Q) -> Result<A, KvError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let call = |endpoint: Arc<Endpoint>| {
            let request = request.clone();
            async move { endpoint.unary(path, request).await }
        };
        Ok(self.call(repeat, call).await?.0)
    }
}

/// Turns the answers of a transaction around.
fn txn_response(response: wire::TxnResponse) -> Result<TxnResponse, KvError> {
    let responses = response.responses.into_iter().map(|response| match response.response {
        Some(wire::ResponseKind::Range(range)) => Ok(OpResponse::Range(range.into())),
        Some(wire::ResponseKind::Put(_)) => Ok(OpResponse::Put),
        Some(wire::ResponseKind::DeleteRange(deleted)) => Ok(OpResponse::Deleted(deleted.deleted)),
        None => Err(KvError::Other("etcd answered a step with nothing".into())),
    });
    Ok(TxnResponse {
        revision: wire::revision(response.header),
        succeeded: response.succeeded,
        responses: responses.collect::<Result<_, _>>()?,
    })
}

#[async_trait]
impl Kv for EtcdKv {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        let request = wire::RangeRequest::from(&request);
        let response: wire::RangeResponse =
            self.unary(Repeat::Safe, "/etcdserverpb.KV/Range", request).await?;
        Ok(response.into())
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        let repeat = if txn.changes_nothing() { Repeat::Safe } else { Repeat::Never };
        let request = wire::TxnRequest::from(&txn);
        txn_response(self.unary(repeat, "/etcdserverpb.KV/Txn", request).await?)
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let open = |endpoint: Arc<Endpoint>| {
            let (asker, requests) = watch::requests(&request);
            let mut requests = Request::new(requests);
            // A server that has lost its cluster shall end the watch instead of keeping silent.
            requests.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
            async move {
                let mut responses: Streaming<wire::WatchResponse> =
                    endpoint.streaming("/etcdserverpb.Watch/Watch", requests).await?;
                let first = responses.message().await?;
                Ok((first, responses, asker))
            }
        };
        let ((first, responses, asker), endpoint) = self.call(Repeat::Safe, open).await?;
        let first = watch::created(first.as_ref())?;
        if request.progress {
            let mut askers = self.askers.lock();
            watch::running(&mut askers);
            askers.push(Arc::downgrade(&asker));
        }
        Ok(watch::run(first, responses, endpoint, request.progress, asker))
    }

    async fn request_progress(&self, start: &Bytes) -> Result<(), KvError> {
        for asker in watch::running(&mut self.askers.lock()) {
            asker.ask(start);
        }
        Ok(())
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, KvError> {
        let ttl = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX).max(1);
        let granted: wire::LeaseGrantResponse = self
            .unary(Repeat::Never, "/etcdserverpb.Lease/LeaseGrant", wire::LeaseGrantRequest { ttl })
            .await?;
        if granted.error.is_empty() { Ok(granted.id) } else { Err(KvError::Other(granted.error)) }
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), KvError> {
        let _done: wire::LeaseRevokeResponse = self
            .unary(Repeat::Never, "/etcdserverpb.Lease/LeaseRevoke", wire::LeaseRequest { id: lease })
            .await?;
        Ok(())
    }

    async fn lease_keep_alive(&self, lease: LeaseId) -> Result<Duration, KvError> {
        let call = |endpoint: Arc<Endpoint>| async move {
            let requests = Request::new(tokio_stream::once(wire::LeaseRequest { id: lease }));
            let mut answers: Streaming<wire::LeaseKeepAliveResponse> =
                endpoint.streaming("/etcdserverpb.Lease/LeaseKeepAlive", requests).await?;
            answers.message().await?.ok_or_else(|| Status::unavailable("the server ended the lease's stream"))
        };
        // Starting the time anew twice is the same as once.
        let (answer, _) = self.call(Repeat::Safe, call).await?;
        match u64::try_from(answer.ttl) {
            Ok(0) | Err(_) => Err(KvError::LeaseNotFound),
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
        }
    }

    async fn compact(&self, revision: Revision) -> Result<(), KvError> {
        let _done: wire::CompactionResponse = self
            .unary(Repeat::Never, "/etcdserverpb.KV/Compact", wire::CompactionRequest { revision })
            .await?;
        Ok(())
    }

    async fn size(&self) -> Result<u64, KvError> {
        let call = |endpoint: Arc<Endpoint>| async move {
            let path = "/etcdserverpb.Maintenance/Status";
            endpoint.unary::<_, wire::StatusResponse>(path, wire::StatusRequest {}).await
        };
        let (status, _) = self.call(Repeat::Safe, call).await?;
        Ok(u64::try_from(status.db_size).unwrap_or(0))
    }

    fn supports_progress(&self) -> bool {
        self.supports_progress.load(Ordering::Relaxed)
    }
}
