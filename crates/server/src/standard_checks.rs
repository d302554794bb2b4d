//! The health checks that every server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use coffer_store::Storage;
use tokio_util::sync::CancellationToken;

use crate::health::{HealthCheck, Simple};

pub(crate) fn all(storage: &Arc<Storage>, stop: &CancellationToken) -> Vec<Arc<dyn HealthCheck>> {
    let caches = Arc::clone(storage);
    // As upstream: a kind that is defined later takes nobody's server away while its cache is filled.
    let filled = AtomicBool::new(false);
    let stopping = stop.clone();
    vec![
        Arc::new(Simple { name: "ping", ready_only: false, check: Box::new(|| Ok(())) }),
        Arc::new(Simple { name: "log", ready_only: false, check: Box::new(|| Ok(())) }),
        Arc::new(Simple {
            name: "informer-sync",
            ready_only: true,
            check: Box::new(move || {
                if filled.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let missing = caches.not_ready();
                if !missing.is_empty() {
                    return Err(format!("not filled: {}", missing.join(", ")));
                }
                filled.store(true, Ordering::Relaxed);
                Ok(())
            }),
        }),
        Arc::new(StoredObjects(Arc::clone(storage))),
        Arc::new(Space(Arc::clone(storage))),
        Arc::new(Simple {
            name: "shutdown",
            ready_only: true,
            check: Box::new(move || {
                if stopping.is_cancelled() { Err("process is shutting down".to_owned()) } else { Ok(()) }
            }),
        }),
    ]
}

/// Whether everything that is stored can be read. It never fails: one lost key must not take the
/// server from those whose objects are well. It says so where somebody looks.
struct StoredObjects(Arc<Storage>);

#[async_trait]
impl HealthCheck for StoredObjects {
    fn name(&self) -> &str {
        "stored-objects"
    }

    async fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn detail(&self) -> Option<String> {
        let unreadable = self.0.unreadable();
        let counts: Vec<String> =
            unreadable.iter().map(|(resource, count)| format!("{count} {resource}")).collect();
        (!counts.is_empty()).then(|| format!("cannot be read: {}", counts.join(", ")))
    }

    fn ready_only(&self) -> bool {
        true
    }
}

/// Whether the store takes writes: a full disk leaves reading and deleting.
struct Space(Arc<Storage>);

#[async_trait]
impl HealthCheck for Space {
    fn name(&self) -> &str {
        "storage-space"
    }

    async fn check(&self) -> Result<(), String> {
        self.0.alarm().await.map_or(Ok(()), Err)
    }

    fn ready_only(&self) -> bool {
        true
    }
}
