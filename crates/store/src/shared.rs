//! What all resources of one store share: the store itself, the clock, and the round trips to it
//! that many requests can share.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::kv::{Kv, KvError, RangeRequest, Revision};

/// How often progress is asked for while a read waits for it.
pub const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// Shared by all resources of a store.
pub(crate) struct Shared {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) read_index: ReadIndex,
    pub(crate) progress: ProgressRequests,
    compacted: AtomicI64,
}

impl Shared {
    /// `probe` is the key that is read to learn the current revision; it need not exist.
    pub(crate) fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>, probe: Bytes) -> Self {
        Self {
            read_index: ReadIndex::new(kv.clone(), probe),
            progress: ProgressRequests::new(kv.clone(), clock.clone()),
            compacted: AtomicI64::new(0),
            kv,
            clock,
        }
    }

    /// Nothing below this revision is served from memory, as the store does not serve it either.
    pub(crate) fn compacted(&self) -> Revision {
        self.compacted.load(Ordering::Relaxed)
    }

    /// The store's history before `revision` has been compacted.
    pub(crate) fn note_compacted(&self, revision: Revision) {
        self.compacted.fetch_max(revision, Ordering::Relaxed);
    }
}

/// Finds out the store's current revision; requests that come together share one round trip.
///
/// A request never uses an answer to a question that was asked before it came:
/// while one question is out, all who come wait for the next.
pub(crate) struct ReadIndex {
    inner: Arc<ReadIndexInner>,
}

struct ReadIndexInner {
    kv: Arc<dyn Kv>,
    probe: Bytes,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    asking: bool,
    requests: Vec<oneshot::Sender<Result<Revision, KvError>>>,
}

impl ReadIndex {
    fn new(kv: Arc<dyn Kv>, probe: Bytes) -> Self {
        Self { inner: Arc::new(ReadIndexInner { kv, probe, waiting: Mutex::default() }) }
    }

    /// A revision that is not below what was acknowledged to anyone before this call.
    pub(crate) async fn current(&self) -> Result<Revision, KvError> {
        let (sender, receiver) = oneshot::channel();
        let ask = {
            let mut waiting = self.inner.waiting.lock();
            waiting.requests.push(sender);
            !std::mem::replace(&mut waiting.asking, true)
        };
        if ask {
            // A task of its own, because the request that asks may be given up while others wait.
            tokio::spawn(ask_while_wanted(self.inner.clone()));
        }
        receiver.await.unwrap_or_else(|_| Err(KvError::Unavailable("the store is closed".to_owned())))
    }
}

async fn ask_while_wanted(index: Arc<ReadIndexInner>) {
    loop {
        let requests = {
            let mut waiting = index.waiting.lock();
            if waiting.requests.is_empty() {
                waiting.asking = false;
                return;
            }
            std::mem::take(&mut waiting.requests)
        };
        let request = RangeRequest { start: index.probe.clone(), limit: 1, ..RangeRequest::default() };
        let answer = match index.kv.range(request).await {
            Ok(response) if response.revision <= 0 => {
                Err(KvError::Other("the current resource version must be greater than 0".to_owned()))
            }
            Ok(response) => Ok(response.revision),
            Err(error) => Err(error),
        };
        for request in requests {
            // Whoever has given up does not need the answer.
            let _ = request.send(answer.clone());
        }
    }
}

/// Asks the store for progress as long as anyone waits for it.
pub(crate) struct ProgressRequests {
    inner: Arc<ProgressInner>,
}

struct ProgressInner {
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    waiting: Mutex<ProgressWaiting>,
    /// Someone new waits: ask at once.
    ask: Notify,
}

#[derive(Default)]
struct ProgressWaiting {
    count: usize,
    asking: bool,
}

/// Progress is asked for while this lives.
pub(crate) struct Asking(Arc<ProgressInner>);

impl ProgressRequests {
    fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>) -> Self {
        let inner = ProgressInner { kv, clock, waiting: Mutex::default(), ask: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Asks now and then every [`PROGRESS_PERIOD`].
    pub(crate) fn ask(&self) -> Asking {
        let start = {
            let mut waiting = self.inner.waiting.lock();
            waiting.count += 1;
            !std::mem::replace(&mut waiting.asking, true)
        };
        self.inner.ask.notify_one();
        if start {
            tokio::spawn(request_while_wanted(self.inner.clone()));
        }
        Asking(self.inner.clone())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.waiting.lock().count -= 1;
    }
}

async fn request_while_wanted(progress: Arc<ProgressInner>) {
    loop {
        tokio::select! {
            () = progress.ask.notified() => {}
            () = progress.clock.sleep(PROGRESS_PERIOD) => {}
        }
        {
            let mut waiting = progress.waiting.lock();
            if waiting.count == 0 {
                waiting.asking = false;
                return;
            }
        }
        if let Err(error) = progress.kv.request_progress().await {
            tracing::debug!(%error, "progress of watches could not be asked for");
        }
    }
}
