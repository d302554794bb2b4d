//! What is counted about configurations, under upstream's names where it has one.

use std::sync::Arc;

use coffer_runtime::metrics::Family;
use coffer_types::time::Clock;

use super::loader::Loader;
use super::{InUse, OnDisk};

/// The server has no identity of its own, as a kube-apiserver without one.
const SERVER: &str = "";

pub(super) struct Metrics {
    clock: Arc<dyn Clock>,
    reloads: Arc<Family>,
    last: Arc<Family>,
    info: Arc<Family>,
    differs: Arc<Family>,
    keys: Arc<Family>,
}

impl Metrics {
    pub(super) fn new(loader: &Loader) -> Self {
        let registry = loader.metrics();
        Self {
            clock: Arc::clone(loader.clock()),
            reloads: registry.counter(
                "apiserver_encryption_config_controller_automatic_reloads_total",
                "Total number of reload successes and failures of encryption configuration split by apiserver identity.",
                &["status", "apiserver_id_hash"],
            ),
            last: registry.gauge(
                "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                "Timestamp of the last successful or failed automatic reload of encryption configuration split by apiserver identity.",
                &["status", "apiserver_id_hash"],
            ),
            info: registry.gauge(
                "apiserver_encryption_config_controller_last_config_info",
                "Information about the last applied encryption configuration with hash as label, split by apiserver identity.",
                &["apiserver_id_hash", "hash"],
            ),
            differs: registry.gauge(
                "coffer_encryption_config_file_differs",
                "1 while the encryption configuration on disk is not the one that is in use.",
                &[],
            ),
            keys: registry.gauge(
                "coffer_encryption_key_info",
                "Keys of the encryption configuration that is in use, by check value: equal ones are equal keys.",
                &["provider", "key", "check_value"],
            ),
        }
    }

    pub(super) fn reloaded(&self, success: bool) {
        let labels = [if success { "success" } else { "failure" }, SERVER];
        self.reloads.increment(&labels);
        #[allow(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
        self.last.set(&labels, self.clock.now().as_second() as f64);
    }

    pub(super) fn in_use(&self, now: &InUse) {
        self.info.remove(|_| true);
        self.info.set(&[SERVER, now.hash()], 1.0);
        self.keys.remove(|_| true);
        for provider in now.rules().iter().flat_map(|rule| &rule.providers) {
            for key in &provider.keys {
                self.keys.set(&[provider.provider.name(), &key.name, &key.check_value], 1.0);
            }
        }
    }

    pub(super) fn on_disk(&self, now: &OnDisk) {
        self.differs.set(&[], f64::from(u8::from(*now != OnDisk::InUse)));
    }
}
