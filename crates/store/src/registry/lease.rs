//! Leases for objects that end by themselves (events): one lease serves many objects.

use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use tokio::sync::Mutex;

use crate::kv::{Kv, KvError, LeaseId};
use crate::statistics::Histogram;

/// How many objects share a lease at most, so that its end is not one huge deletion.
pub const MAX_OBJECTS_PER_LEASE: u32 = 1000;
/// How long a lease is reused at most (`--lease-reuse-duration-seconds`).
pub const REUSE_DURATION: Duration = Duration::from_secs(60);

/// The lease that is handed out at present.
pub(crate) struct Leases {
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    /// How many objects a lease had when it was replaced; of the first one, the one that asked for it.
    shared_by: Arc<Histogram>,
    /// Held while a new lease is asked for, so that many writers wait for one lease.
    current: Mutex<Option<Lease>>,
}

struct Lease {
    id: LeaseId,
    ends: Duration,
    objects: u32,
}

impl Leases {
    pub(crate) fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>, shared_by: Arc<Histogram>) -> Self {
        Self { kv, clock, shared_by, current: Mutex::new(None) }
    }

    /// A lease that lasts at least `ttl` from now and not much longer.
    pub(crate) async fn lease(&self, ttl: Duration) -> Result<LeaseId, KvError> {
        let slack = slack(ttl);
        let mut current = self.current.lock().await;
        let now = self.clock.monotonic();
        let mut objects = 1;
        if let Some(lease) = current.as_mut() {
            // Counted even if the write then fails, as upstream does.
            lease.objects += 1;
            objects = lease.objects;
            if now + ttl < lease.ends
                && lease.ends <= now + ttl + slack
                && lease.objects <= MAX_OBJECTS_PER_LEASE
            {
                return Ok(lease.id);
            }
        }
        let ttl = ttl + slack;
        let id = self.kv.lease_grant(ttl).await?;
        self.shared_by.observe(f64::from(objects));
        *current = Some(Lease { id, ends: now + ttl, objects: 1 });
        Ok(id)
    }
}

/// What a lease lasts beyond its first object's time: TestGetReuseDurationSeconds.
fn slack(ttl: Duration) -> Duration {
    REUSE_DURATION.min(Duration::from_secs(ttl.as_secs() * 5 / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    // TestGetReuseDurationSeconds
    #[test]
    fn slack_is_a_twentieth_up_to_a_minute() {
        for (ttl, expected) in [(0, 0), (10, 0), (100, 5), (200, 10), (1200, 60), (3600, 60)] {
            assert_eq!(slack(Duration::from_secs(ttl)), Duration::from_secs(expected), "{ttl} s");
        }
    }
}
