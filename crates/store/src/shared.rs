//! What all resources of one store share: the store itself, the clock, and what is asked of it for all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::kv::{Kv, Revision, contained};
use crate::round_trips::RoundTrips;
use crate::statistics::{Histogram, LEASE_OBJECTS};

/// How often progress is asked for while a read waits for it.
pub const PROGRESS_PERIOD: Duration = Duration::from_millis(100);

/// Shared by all resources of a store.
pub(crate) struct Shared {
    pub(crate) kv: Arc<dyn Kv>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) round_trips: RoundTrips,
    pub(crate) progress: ProgressRequests,
    /// How many objects shared a lease.
    pub(crate) lease_objects: Arc<Histogram>,
    compacted: AtomicI64,
}

impl Shared {
    /// `probe` is the key that is read to learn the current revision; it need not exist.
    pub(crate) fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>, probe: Bytes) -> Self {
        Self {
            round_trips: RoundTrips::new(kv.clone(), probe),
            progress: ProgressRequests::new(kv.clone(), clock.clone()),
            lease_objects: Arc::new(Histogram::new(LEASE_OBJECTS)),
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
    /// How many wait for each watch, by the first key that it watches.
    by_start: BTreeMap<Bytes, usize>,
    asking: bool,
}

/// Progress is asked for while this lives.
pub(crate) struct Asking {
    progress: Arc<ProgressInner>,
    start: Bytes,
}

impl ProgressRequests {
    fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>) -> Self {
        let inner = ProgressInner { kv, clock, waiting: Mutex::default(), ask: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Asks the watch that begins at `start` now and then every [`PROGRESS_PERIOD`]. The others are left alone:
    /// each report has its cache look at its revision and wake whoever waits.
    pub(crate) fn ask(&self, start: Bytes) -> Asking {
        let begin = {
            let mut waiting = self.inner.waiting.lock();
            *waiting.by_start.entry(start.clone()).or_default() += 1;
            !std::mem::replace(&mut waiting.asking, true)
        };
        self.inner.ask.notify_one();
        if begin {
            tokio::spawn(request_while_wanted(self.inner.clone()));
        }
        Asking { progress: self.inner.clone(), start }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut waiting = self.progress.waiting.lock();
        if let Some(count) = waiting.by_start.get_mut(&self.start) {
            *count -= 1;
            if *count == 0 {
                waiting.by_start.remove(&self.start);
            }
        }
    }
}

async fn request_while_wanted(progress: Arc<ProgressInner>) {
    loop {
        tokio::select! {
            () = progress.ask.notified() => {}
            () = progress.clock.sleep(PROGRESS_PERIOD) => {}
        }
        let starts: Vec<Bytes> = {
            let mut waiting = progress.waiting.lock();
            if waiting.by_start.is_empty() {
                waiting.asking = false;
                return;
            }
            waiting.by_start.keys().cloned().collect()
        };
        for start in starts {
            if let Err(error) = contained(progress.kv.request_progress(&start)).await {
                tracing::debug!(%error, "progress of watches could not be asked for");
            }
        }
    }
}
