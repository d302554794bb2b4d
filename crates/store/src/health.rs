//! Whether the store answers: the checks `etcd` (healthz, livez, readyz) and `etcd-readiness` (readyz).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;

use crate::kv::{Kv, RangeRequest};

/// `--etcd-healthcheck-timeout` and `--etcd-readycheck-timeout` where none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads one key, not more often than twice in its timeout; in between the last result stands.
pub struct HealthCheck {
    kv: Arc<dyn Kv>,
    clock: Arc<dyn Clock>,
    key: Bytes,
    timeout: Duration,
    last: Mutex<Last>,
}

struct Last {
    /// When the store was asked last (monotonic).
    asked: Option<Duration>,
    result: Result<(), String>,
}

impl HealthCheck {
    /// `prefix` is `--etcd-prefix`.
    pub fn new(kv: Arc<dyn Kv>, clock: Arc<dyn Clock>, prefix: &str, timeout: Duration) -> Self {
        let last = Last { asked: None, result: Err("etcd client connection not yet established".to_owned()) };
        Self { kv, clock, key: probe_key(prefix), timeout, last: Mutex::new(last) }
    }

    /// The error is upstream's text.
    pub async fn check(&self) -> Result<(), String> {
        let now = self.clock.monotonic();
        {
            let mut last = self.last.lock();
            if last.asked.is_some_and(|asked| now < asked + self.timeout / 2) {
                return last.result.clone();
            }
            last.asked = Some(now);
        }
        let request = RangeRequest { start: self.key.clone(), limit: 1, ..RangeRequest::default() };
        let result = tokio::select! {
            answer = self.kv.range(request) => {
                answer.map(drop).map_err(|error| format!("error getting data from etcd: {error}"))
            }
            () = self.clock.sleep(self.timeout) => {
                Err("error getting data from etcd: context deadline exceeded".to_owned())
            }
        };
        self.last.lock().result = result.clone();
        result
    }
}

/// `<prefix>/health`: read, never written.
pub(crate) fn probe_key(prefix: &str) -> Bytes {
    let mut key = String::new();
    for segment in prefix.split('/').filter(|segment| !segment.is_empty()) {
        key.push('/');
        key.push_str(segment);
    }
    key.push_str("/health");
    Bytes::from(key)
}
