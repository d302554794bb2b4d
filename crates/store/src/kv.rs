//! etcd's data model as a port: what both engines promise.
//!
//! Keys and values are bytes. Every write transaction that changes something
//! gets the next revision; a key remembers the revision of its creation and of
//! its last change. Revisions never go back, and what was acknowledged is on
//! stable storage.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::stream::BoxStream;

/// A revision of the whole store.
pub type Revision = i64;

/// A lease; 0 means none.
pub type LeaseId = i64;

/// A key with its value and history.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Bytes,
    /// The value, as written; ciphertext where it is encrypted. Empty when only keys were asked for.
    pub value: Bytes,
    /// Revision of the creation.
    pub create_revision: Revision,
    /// Revision of the last change.
    pub mod_revision: Revision,
    /// 1 at creation, one more with each change.
    pub version: i64,
    /// The lease that ends the key, or 0.
    pub lease: LeaseId,
}

impl std::fmt::Debug for KeyValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value may be plaintext (identity), so it is never printed.
        formatter
            .debug_struct("KeyValue")
            .field("key", &self.key)
            .field("mod_revision", &self.mod_revision)
            .finish_non_exhaustive()
    }
}

/// What to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeRequest {
    /// First key.
    pub start: Bytes,
    /// First key past the end; empty means just `start`.
    pub end: Bytes,
    /// Read as of this revision; 0 means the latest.
    pub revision: Revision,
    /// At most so many; 0 means all.
    pub limit: i64,
    /// Count only.
    pub count_only: bool,
    /// Leave the values out.
    pub keys_only: bool,
    /// May be answered without a round trip to the quorum.
    pub serializable: bool,
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeResponse {
    /// The store's revision when it answered.
    pub revision: Revision,
    /// In key order.
    pub items: Vec<KeyValue>,
    /// How many keys the range holds, whatever the limit.
    pub count: i64,
    /// Whether the limit cut the answer.
    pub more: bool,
}

/// One condition on a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The last change was at this revision; 0 means that the key does not exist.
    ModRevision(Bytes, Revision),
    /// The version is this; 0 means that the key does not exist.
    Version(Bytes, i64),
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a key.
    Put {
        /// The key.
        key: Bytes,
        /// The value.
        value: SharedValue,
        /// Lease to attach; 0 detaches.
        lease: LeaseId,
    },
    /// Deletes one key.
    Delete {
        /// The key.
        key: Bytes,
    },
    /// Deletes all keys of `[start, end)`.
    DeleteRange {
        /// First key.
        start: Bytes,
        /// First key past the end.
        end: Bytes,
    },
    /// Reads.
    Range(RangeRequest),
}

/// A value on its way in; `Debug` prints its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedValue(pub Bytes);

impl std::fmt::Debug for SharedValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} bytes", self.0.len())
    }
}

/// If all of `compare` hold then `success` else `failure`, at one revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Txn {
    /// The conditions.
    pub compare: Vec<Compare>,
    /// When all hold.
    pub success: Vec<Op>,
    /// When one does not.
    pub failure: Vec<Op>,
}

impl Txn {
    /// Whether both branches only read.
    pub fn changes_nothing(&self) -> bool {
        self.success.iter().chain(&self.failure).all(|op| matches!(op, Op::Range(_)))
    }
}

/// What a transaction did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxnResponse {
    /// The store's revision afterwards: of this transaction, if it changed something.
    pub revision: Revision,
    /// Which branch ran.
    pub succeeded: bool,
    /// One answer for each step of that branch; empty for a put.
    pub responses: Vec<OpResponse>,
}

/// The answer to one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResponse {
    /// Written.
    Put,
    /// How many keys were deleted.
    Deleted(i64),
    /// What was read.
    Range(RangeResponse),
}

/// What to watch.
#[derive(Debug, Clone, Default)]
pub struct WatchRequest {
    /// First key.
    pub start: Bytes,
    /// First key past the end; empty means just `start`.
    pub end: Bytes,
    /// First revision to report; 0 means from now on.
    pub from: Revision,
    /// Report the value before each change.
    pub previous: bool,
    /// Report progress when nothing happens.
    pub progress: bool,
}

/// What a watch yields. Events of one revision come in one batch and are never torn apart.
#[derive(Debug, Clone)]
pub enum WatchMessage {
    /// The watch exists: every change after this revision (or from `from`) will be reported.
    Created(Revision),
    /// Changes, in order of revision.
    Events(Vec<KvEvent>),
    /// Everything up to this revision has been reported.
    Progress(Revision),
}

/// One change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvEvent {
    /// After the change. For a deletion: the key and the revision of the deletion, no value.
    pub kv: KeyValue,
    /// Before the change, if asked for and if there was one.
    pub previous: Option<KeyValue>,
    /// Whether the key was deleted.
    pub deleted: bool,
}

impl KvEvent {
    /// Whether the key was created by this change.
    pub fn created(&self) -> bool {
        !self.deleted && self.kv.version == 1
    }
}

/// A watch. It ends with an error, or when it is dropped.
pub type WatchStream = BoxStream<'static, Result<WatchMessage, KvError>>;

/// Why the store did not do what was asked. Whether a write took effect is
/// unknown for [`KvError::Unavailable`] and [`KvError::Timeout`], and it did not for the others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// The revision has been compacted; the oldest that can be read is given (0 if unknown).
    #[error("etcdserver: mvcc: required revision has been compacted")]
    Compacted(Revision),
    /// The revision has not happened yet.
    #[error("etcdserver: mvcc: required revision is a future revision")]
    FutureRevision,
    /// No such lease.
    #[error("etcdserver: requested lease not found")]
    LeaseNotFound,
    /// The request is too large.
    #[error("etcdserver: request is too large")]
    TooLarge,
    /// No space is left, or a write or sync failed: nothing was written.
    #[error("the store refused the write: {0}")]
    Refused(String),
    /// No server answered.
    #[error("etcd cluster is unavailable or misconfigured: {0}")]
    Unavailable(String),
    /// The server did not answer in time.
    #[error("etcdserver: request timed out")]
    Timeout,
    /// Anything else, in the engine's words.
    #[error("{0}")]
    Other(String),
}

/// The store. Shared by all of the server behind an `Arc`.
#[async_trait]
pub trait Kv: Send + Sync + 'static {
    /// Reads a range.
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError>;

    /// Runs a transaction; acknowledged means durable.
    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError>;

    /// Watches a range.
    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError>;

    /// Asks the watches of this client that begin at the key `start` and report progress to do so now.
    async fn request_progress(&self, start: &Bytes) -> Result<(), KvError>;

    /// Makes a lease that ends after `ttl` (whole seconds) unless kept alive.
    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, KvError>;

    /// Ends a lease and deletes its keys.
    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), KvError>;

    /// Starts a lease's time anew and gives what is left.
    async fn lease_keep_alive(&self, lease: LeaseId) -> Result<Duration, KvError>;

    /// Forgets the history before `revision`.
    async fn compact(&self, revision: Revision) -> Result<(), KvError>;

    /// Bytes that the store takes on disk.
    async fn size(&self) -> Result<u64, KvError>;

    /// Whether progress requests can be trusted (etcd 3.4.31 and later in 3.4, 3.5.13 and later).
    fn supports_progress(&self) -> bool;

    /// Why the store takes no writes for now, in etcd's words. A cluster answers for itself: none is known of it.
    async fn alarm(&self) -> Option<String> {
        None
    }
}

/// What a call of an engine comes to, be it that it panics: whoever waits for a task that calls it is
/// told, and the task goes on.
pub(crate) async fn contained<T>(call: impl Future<Output = Result<T, KvError>>) -> Result<T, KvError> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the engine of the store has panicked");
        Err(KvError::Unavailable("the engine has panicked".to_owned()))
    })
}

/// The first key past all keys that begin with `prefix`.
pub fn prefix_end(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Bytes::from(end);
        }
        end.pop();
    }
    // Past every key.
    Bytes::from_static(&[0])
}
