//! Upstream's metrics by their names.

use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::Calls;
use coffer_runtime::metrics::{Family, Registry};

use crate::external_secret::spec::Condition;

const OBJECT: &[&str] = &["name", "namespace"];
const CONDITION: &[&str] = &["name", "namespace", "condition", "status"];

/// The metrics of one kind.
pub(crate) struct KindMetrics {
    condition: Arc<Family>,
    duration: Arc<Family>,
}

/// All metrics of the operator.
pub(crate) struct Metrics {
    pub(crate) external_secret: KindMetrics,
    pub(crate) secret_store: KindMetrics,
    pub(crate) cluster_secret_store: KindMetrics,
    sync_calls: Arc<Family>,
    sync_errors: Arc<Family>,
    provider_calls: Arc<Family>,
    queue_depth: Arc<Family>,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        let kind = |condition, duration| KindMetrics {
            condition: registry.gauge(condition, "The status condition of a specific object", CONDITION),
            duration: registry.gauge(
                duration,
                "The duration time to reconcile the object, in nanoseconds",
                OBJECT,
            ),
        };
        Self {
            external_secret: kind("externalsecret_status_condition", "externalsecret_reconcile_duration"),
            secret_store: kind("secretstore_status_condition", "secretstore_reconcile_duration"),
            cluster_secret_store: kind(
                "clustersecretstore_status_condition",
                "clustersecretstore_reconcile_duration",
            ),
            sync_calls: registry.counter(
                "externalsecret_sync_calls_total",
                "Total number of sync calls",
                OBJECT,
            ),
            sync_errors: registry.counter(
                "externalsecret_sync_calls_error",
                "Total number of sync errors",
                OBJECT,
            ),
            provider_calls: registry.counter(
                "externalsecret_provider_api_calls_count",
                "Number of API calls towards the secret provider",
                &["provider", "call", "status"],
            ),
            queue_depth: registry.gauge("workqueue_depth", "Current depth of workqueue", &["name"]),
        }
    }

    pub(crate) fn synced(&self, name: &str, namespace: &str) {
        self.sync_calls.increment(&[name, namespace]);
    }

    pub(crate) fn failed(&self, name: &str, namespace: &str) {
        self.sync_errors.increment(&[name, namespace]);
    }

    pub(crate) fn depth(&self, queue: &str, depth: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a depth is far below 2^52")]
        self.queue_depth.set(&[queue], depth as f64);
    }

    /// Everything of an ExternalSecret that is gone, but upstream's mark that it was deleted.
    pub(crate) fn forget(&self, name: &str, namespace: &str) {
        let gone = |labels: &[String]| labels[0] == name && labels[1] == namespace;
        self.sync_calls.remove(gone);
        self.sync_errors.remove(gone);
        self.external_secret.duration.remove(gone);
        self.external_secret.condition.remove(gone);
        self.external_secret.condition.set(&[name, namespace, "Deleted", "False"], 1.0);
    }
}

impl KindMetrics {
    pub(crate) fn took(&self, name: &str, namespace: &str, duration: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "upstream's gauge is a float of nanoseconds, too")]
        self.duration.set(&[name, namespace], duration.as_nanos() as f64);
    }

    pub(crate) fn condition(&self, name: &str, namespace: &str, condition: &Condition) {
        let opposite = if condition.status == "True" { "False" } else { "True" };
        self.condition.set(&[name, namespace, &condition.kind, &condition.status], 1.0);
        self.condition.set(&[name, namespace, &condition.kind, opposite], 0.0);
    }

    pub(crate) fn forget(&self, name: &str, namespace: &str) {
        let gone = |labels: &[String]| labels[0] == name && labels[1] == namespace;
        self.condition.remove(gone);
        self.duration.remove(gone);
    }
}

impl Calls for Metrics {
    fn observe(&self, provider: &'static str, call: &'static str, success: bool) {
        self.provider_calls.increment(&[provider, call, if success { "success" } else { "error" }]);
    }
}
