//! Leases: how long each lasts and when it ends, on the injected clock.
//!
//! As with etcd, the ends are not on disk: after a restart each lease gets its whole time again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Command, Shared};
use crate::kv::{KvError, LeaseId};

/// The longest lease, as etcd limits it (about 285 years).
pub(crate) const MAX_TTL_SECONDS: u64 = 9_000_000_000;

/// How long to wait before ended leases are tried again after the disk refused.
const RETRY: Duration = Duration::from_secs(1);

/// A lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    /// How long it lasts.
    pub(crate) ttl: Duration,
    /// When it ends, in the clock's monotonic time.
    pub(crate) end: Duration,
}

/// All leases.
#[derive(Default)]
pub(crate) struct Leases {
    all: Mutex<HashMap<LeaseId, Lease>>,
    /// There is a new one, which may end before those known so far.
    added: Notify,
}

impl Leases {
    pub(crate) fn contains(&self, lease: LeaseId) -> bool {
        self.all.lock().contains_key(&lease)
    }

    pub(crate) fn insert(&self, id: LeaseId, lease: Lease) {
        self.all.lock().insert(id, lease);
        self.added.notify_one();
    }

    pub(crate) fn remove(&self, id: LeaseId) -> Option<Lease> {
        self.all.lock().remove(&id)
    }

    /// Starts a lease's time anew.
    pub(crate) fn renew(&self, id: LeaseId, now: Duration) -> Result<Duration, KvError> {
        let mut all = self.all.lock();
        match all.get_mut(&id) {
            // One that has ended does not come back, though its keys may not be deleted yet.
            Some(lease) if now < lease.end => {
                lease.end = now + lease.ttl;
                Ok(lease.ttl)
            }
            _ => Err(KvError::LeaseNotFound),
        }
    }

    /// Those that have ended.
    pub(crate) fn ended(&self, now: Duration) -> Vec<LeaseId> {
        let mut ended: Vec<_> =
            self.all.lock().iter().filter(|(_, lease)| lease.end <= now).map(|(id, _)| *id).collect();
        ended.sort_unstable();
        ended
    }

    fn next_end(&self) -> Option<Duration> {
        self.all.lock().values().map(|lease| lease.end).min()
    }
}

/// Ends leases on time, until the store is closed.
pub(crate) async fn expire(shared: Arc<Shared>, queue: tokio::sync::mpsc::WeakSender<Command>) {
    loop {
        let added = shared.leases.added.notified();
        let now = shared.clock.monotonic();
        match shared.leases.next_end() {
            None => added.await,
            Some(end) if now < end => tokio::select! {
                () = added => {}
                () = shared.clock.sleep(end - now) => {}
            },
            Some(_) => {
                let Some(queue) = queue.upgrade() else { return };
                let (reply, answer) = tokio::sync::oneshot::channel();
                if queue.send(Command::Expire(reply)).await.is_err() {
                    return;
                }
                drop(queue);
                match answer.await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "leases that have ended could not be removed yet");
                        shared.clock.sleep(RETRY).await;
                    }
                    Err(_) => return,
                }
            }
        }
    }
}
