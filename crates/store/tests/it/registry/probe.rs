//! A [`Kv`] between the store and the engine: counts reads, holds back watches, fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_store::kv::{
    Kv, KvError, LeaseId, RangeRequest, RangeResponse, Revision, Txn, TxnResponse, WatchRequest, WatchStream,
};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) struct Probe {
    inner: Arc<dyn Kv>,
    ranges: Mutex<Vec<RangeRequest>>,
    /// Transactions that only read.
    reads: AtomicUsize,
    leases: AtomicUsize,
    held: watch::Sender<bool>,
    /// Breaks all watches that there are when it is raised, with this error.
    broken: watch::Sender<(u64, Option<KvError>)>,
    /// Progress is not to be relied on.
    pub(crate) no_progress: AtomicBool,
    /// Reads fail.
    pub(crate) unavailable: AtomicBool,
    /// Whom progress was asked of.
    progress_asked: Mutex<Vec<Bytes>>,
    /// So many reads panic.
    pub(crate) panics: AtomicUsize,
    /// Reads wait until it is lifted.
    gate: watch::Sender<bool>,
}

impl Probe {
    pub(crate) fn new(inner: Arc<dyn Kv>) -> Self {
        Self {
            inner,
            ranges: Mutex::default(),
            reads: AtomicUsize::new(0),
            leases: AtomicUsize::new(0),
            held: watch::Sender::new(false),
            broken: watch::Sender::new((0, None)),
            no_progress: AtomicBool::new(false),
            unavailable: AtomicBool::new(false),
            progress_asked: Mutex::default(),
            panics: AtomicUsize::new(0),
            gate: watch::Sender::new(false),
        }
    }

    /// The engine itself.
    pub(crate) fn inner(&self) -> &dyn Kv {
        &*self.inner
    }

    /// The reads since the last call.
    pub(crate) fn take_ranges(&self) -> Vec<RangeRequest> {
        std::mem::take(&mut self.ranges.lock())
    }

    /// The round trips of reads since the last call.
    pub(crate) fn take_trips(&self) -> usize {
        self.take_ranges().len() + self.reads.swap(0, Ordering::SeqCst)
    }

    pub(crate) fn leases(&self) -> usize {
        self.leases.load(Ordering::SeqCst)
    }

    /// Whose progress was asked for since the last call, by their watches' first keys.
    pub(crate) fn take_progress_asked(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.progress_asked.lock())
    }

    /// While held, the cache learns nothing of what happens.
    pub(crate) fn hold_watches(&self, hold: bool) {
        self.held.send_replace(hold);
    }

    pub(crate) fn break_watches(&self, error: KvError) {
        self.broken.send_modify(|(count, last)| {
            *count += 1;
            *last = Some(error);
        });
    }

    async fn admitted(&self) -> Result<(), KvError> {
        let _ = self.gate.subscribe().wait_for(|closed| !closed).await;
        match self.unavailable.load(Ordering::SeqCst) {
            true => Err(KvError::Unavailable("as the test wants it".to_owned())),
            false => Ok(()),
        }
    }

    /// While closed, reads wait.
    pub(crate) fn close_gate(&self, closed: bool) {
        self.gate.send_replace(closed);
    }
}

#[async_trait]
impl Kv for Probe {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        self.ranges.lock().push(request.clone());
        self.admitted().await?;
        let panics = self.panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(panics.is_err(), "as the test wants it");
        self.inner.range(request).await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        if txn.changes_nothing() {
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.admitted().await?;
        }
        self.inner.txn(txn).await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        let inner = self.inner.watch(request).await?;
        let held = self.held.subscribe();
        let broken = self.broken.subscribe();
        let stream = futures::stream::unfold(Some((inner, held, broken)), |state| async move {
            let (mut inner, mut held, mut broken) = state?;
            tokio::select! {
                biased;
                _ = broken.changed() => {
                    let error = broken.borrow().1.clone();
                    error.map(|error| (Err(error), None))
                }
                message = async {
                    let message = inner.next().await;
                    // What is under way when the watch is held stays under way.
                    let _ = held.wait_for(|held| !held).await;
                    message
                } => message.map(|message| (message, Some((inner, held, broken)))),
            }
        });
        Ok(stream.boxed())
    }

    async fn request_progress(&self, start: &Bytes) -> Result<(), KvError> {
        self.progress_asked.lock().push(start.clone());
        self.inner.request_progress(start).await
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, KvError> {
        self.leases.fetch_add(1, Ordering::SeqCst);
        self.inner.lease_grant(ttl).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), KvError> {
        self.inner.lease_revoke(lease).await
    }

    async fn lease_keep_alive(&self, lease: LeaseId) -> Result<Duration, KvError> {
        self.inner.lease_keep_alive(lease).await
    }

    async fn compact(&self, revision: Revision) -> Result<(), KvError> {
        self.inner.compact(revision).await
    }

    async fn size(&self) -> Result<u64, KvError> {
        self.inner.size().await
    }

    fn supports_progress(&self) -> bool {
        !self.no_progress.load(Ordering::SeqCst) && self.inner.supports_progress()
    }
}
