//! The embedded engine: etcd's data model in one file, for one process.
//!
//! * One writer thread takes whatever has queued up, runs it in order, and commits it as one
//!   transaction of the database with one sync; then it acknowledges each ([`writer`]).
//! * An index of all keys and their revisions is in memory ([`index`]); values are read from the
//!   database through its cache, whose size is an option. So memory grows with the number of keys
//!   and revisions (about 200 bytes for a key with two), and not with the size of the values.
//! * Readers and watches see a revision once it is on stable storage, and not before.
//! * When a write or sync fails, the commit is taken back ([`backend`]), its writers get an error,
//!   and reading goes on; if the disk refuses even that, reading goes on without the disk being
//!   written, until it can be.
//!
//! * On a full disk writes are refused and deletions go on ([`reserve`]).
//!
//! Absent on purpose: quotas, users, and anything about more than one member.

mod backend;
mod directory;
mod disk;
mod error;
mod index;
mod lease;
mod open;
mod read;
mod recovery;
mod reserve;
mod rows;
mod watch;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_types::time::Clock;
use parking_lot::{Mutex, RwLock};
use prost::Message;
use redb::Database;
use tokio::sync::{mpsc, oneshot};

pub use directory::{DATA_FILE, Lock};
pub use disk::{Disk, FileDisk, MemoryDisk};
pub use error::OpenError;

use self::backend::Journal;
use self::index::KeyIndex;
use self::lease::{Leases, MAX_TTL_SECONDS};
use self::read::Fault;
use self::watch::Hub;
use crate::kv::{
    Kv, KvError, LeaseId, Op, RangeRequest, RangeResponse, Revision, Txn, TxnResponse, WatchRequest,
    WatchStream,
};
use crate::limits::{MAX_REQUEST_BYTES, REQUEST_OVERHEAD, check_range, check_txn};

/// Writers wait when so many requests have queued up.
const QUEUE: usize = 4096;

/// Reads of at most this many keys are done at once; larger ones on a thread that may block.
const READ_INLINE: i64 = 16;

/// How to run the engine.
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// For leases and progress reports.
    pub clock: Arc<dyn Clock>,
    /// How much of the file may be cached in memory.
    pub cache_bytes: usize,
    /// How often an idle watch reports its progress, if it asked for that; zero means only on request.
    pub progress_interval: Duration,
    /// How much space is kept for deletions on a full disk, in a file beside the store.
    pub reserve_bytes: u64,
}

impl EmbeddedOptions {
    /// A cache that keeps small stores in memory, and kube-apiserver's progress interval.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            cache_bytes: 32 << 20,
            progress_interval: Duration::from_secs(5),
            reserve_bytes: 16 << 20,
        }
    }
}

/// The engine. Dropping it finishes what is queued and closes the file.
pub struct Embedded {
    shared: Arc<Shared>,
    /// `None` once the engine is being dropped.
    queue: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
    expiry: tokio::task::JoinHandle<()>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Embedded").field("disk", &self.shared.journal).finish_non_exhaustive()
    }
}

/// What readers see.
pub(crate) struct State {
    index: KeyIndex,
    /// The last revision that is on stable storage. The index may hold later ones for the writer.
    visible: Revision,
    /// The oldest revision that can be read.
    compacted: Revision,
}

/// What writer, readers and watches share.
///
/// Locks are taken in the order in which they stand here.
pub(crate) struct Shared {
    /// Written only to close or reopen the database; `None` when it is closed.
    database: RwLock<Option<Database>>,
    /// How often the database was opened again.
    opened: AtomicU64,
    /// Watches.
    hub: Hub,
    /// Written by the writer thread only, for moments.
    state: RwLock<State>,
    leases: Leases,
    journal: Arc<Journal>,
    cache_bytes: usize,
    clock: Arc<dyn Clock>,
    progress_interval: Duration,
    /// For readers that find the database broken. Weak, so that it does not keep the writer alive.
    healer: mpsc::WeakSender<Command>,
    /// Whether the disk is full.
    full: Arc<AtomicBool>,
    /// Let go of after the database.
    directory: Mutex<Option<directory::Directory>>,
}

type Reply<T> = oneshot::Sender<Result<T, KvError>>;

/// What the writer is asked to do.
pub(crate) enum Command {
    /// Runs a transaction.
    Txn(Txn, Reply<TxnResponse>),
    /// Makes a lease of so many seconds.
    Grant(u64, Reply<LeaseId>),
    /// Ends a lease.
    Revoke(LeaseId, Reply<()>),
    /// Ends the leases whose time has come.
    Expire(Reply<()>),
    /// Forgets history.
    Compact(Revision, Reply<()>),
    /// Looks whether a full disk has space again.
    Look(Reply<()>),
    /// Reopens the database if it still is the one that a reader could not read.
    Heal(u64, oneshot::Sender<()>),
    /// Ends the writer.
    Close,
}

/// Reads on a thread that may block; if the database proves broken, has it reopened and reads again.
async fn heal<T: Send + 'static>(
    shared: &Arc<Shared>,
    read: impl Fn() -> Result<T, Fault> + Clone + Send + 'static,
) -> Result<T, Fault> {
    let run = |read| async {
        tokio::task::spawn_blocking(read)
            .await
            .unwrap_or_else(|failed| Err(Fault::Disk(format!("reading failed: {failed}"))))
    };
    let opened = shared.opened.load(Ordering::Acquire);
    match run(read.clone()).await {
        Err(Fault::Disk(reason) | Fault::Full(reason)) => {
            let Some(queue) = shared.healer.upgrade() else { return Err(Fault::Disk(reason)) };
            let (reply, answer) = oneshot::channel();
            if queue.send(Command::Heal(opened, reply)).await.is_err() {
                return Err(Fault::Disk(reason));
            }
            drop(queue);
            // Whether it worked shows when reading again.
            let _tried = answer.await;
            run(read).await
        }
        done => done,
    }
}

impl Fault {
    fn of_read(self) -> KvError {
        match self {
            Self::Kv(error) => error,
            Self::Disk(reason) | Self::Full(reason) => KvError::Unavailable(reason),
        }
    }
}

impl Embedded {
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, KvError> {
        let closed = || KvError::Unavailable("the store was closed".into());
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(command(reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    async fn read<T: Send + 'static>(
        &self,
        small: bool,
        read: impl Fn(&Shared) -> Result<T, Fault> + Clone + Send + 'static,
    ) -> Result<T, KvError> {
        if small {
            match read(&self.shared) {
                Err(Fault::Disk(_) | Fault::Full(_)) => {}
                done => return done.map_err(Fault::of_read),
            }
        }
        let shared = Arc::clone(&self.shared);
        heal(&self.shared, move || read(&shared)).await.map_err(Fault::of_read)
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.expiry.abort();
        if let Some(queue) = self.queue.take() {
            // Others may hold the queue for a moment, so its end does not tell the writer to end.
            let mut close = Command::Close;
            while let Err(mpsc::error::TrySendError::Full(again)) = queue.try_send(close) {
                close = again;
                std::thread::yield_now();
            }
        }
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer of the embedded store had panicked");
        }
        self.shared.hub.close();
        drop(self.shared.database.write().take());
        drop(self.shared.directory.lock().take());
    }
}

/// Whether a read touches few keys.
fn small(request: &RangeRequest) -> bool {
    request.end.is_empty() || (0 < request.limit && request.limit <= READ_INLINE && !request.count_only)
}

/// Whether a transaction that only reads takes no longer than one small read may.
fn all_small(txn: &Txn) -> bool {
    let count = i64::try_from(txn.success.len() + txn.failure.len()).unwrap_or(i64::MAX);
    count <= READ_INLINE
        && txn.success.iter().chain(&txn.failure).all(|op| match op {
            Op::Range(request) => request.end.is_empty(),
            Op::Put { .. } | Op::Delete { .. } | Op::DeleteRange { .. } => false,
        })
}

#[async_trait]
impl Kv for Embedded {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        check_range(&request)?;
        self.read(small(&request), move |shared| shared.range(&request)).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        check_txn(&txn)?;
        if txn.changes_nothing() {
            return self.read(all_small(&txn), move |shared| shared.read_only(&txn)).await;
        }
        let bytes = crate::etcd::wire::TxnRequest::from(&txn).encoded_len();
        if MAX_REQUEST_BYTES < bytes + REQUEST_OVERHEAD {
            return Err(KvError::TooLarge);
        }
        self.ask(|reply| Command::Txn(txn, reply)).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        if request.start.is_empty() {
            return Err(KvError::Other("etcdserver: key is not provided".into()));
        }
        Ok(watch::open(&self.shared, request))
    }

    async fn request_progress(&self, start: &Bytes) -> Result<(), KvError> {
        self.shared.hub.request_progress(start);
        Ok(())
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, KvError> {
        if MAX_TTL_SECONDS < ttl.as_secs() {
            return Err(KvError::Other("etcdserver: too large lease TTL".into()));
        }
        self.ask(|reply| Command::Grant(ttl.as_secs().max(1), reply)).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), KvError> {
        self.ask(|reply| Command::Revoke(lease, reply)).await
    }

    async fn lease_keep_alive(&self, lease: LeaseId) -> Result<Duration, KvError> {
        self.shared.leases.renew(lease, self.shared.clock.monotonic())
    }

    async fn compact(&self, revision: Revision) -> Result<(), KvError> {
        self.ask(|reply| Command::Compact(revision, reply)).await
    }

    async fn size(&self) -> Result<u64, KvError> {
        self.shared.journal.len().map_err(|error| KvError::Unavailable(error.to_string()))
    }

    fn supports_progress(&self) -> bool {
        true
    }

    async fn alarm(&self) -> Option<String> {
        if !self.shared.full.load(Ordering::Acquire) {
            return None;
        }
        // It may be over by now; whether the looking failed shows in the same place.
        let _looked = self.ask(Command::Look).await;
        self.shared.full.load(Ordering::Acquire).then(|| format!("ALARM NOSPACE: {}", reserve::NO_SPACE))
    }
}
