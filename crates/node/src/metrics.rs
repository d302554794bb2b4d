//! What the node counts.

use std::sync::Arc;

use coffer_runtime::metrics::{Family, Registry, SECONDS};

/// The node's metrics.
pub(crate) struct Metrics {
    /// From learning of a Secret's version to its files.
    pub(crate) propagation: Arc<Family>,
    /// Warnings about pods, by reason.
    pub(crate) pod_warnings: Arc<Family>,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry) -> Self {
        Self {
            propagation: registry.histogram(
                "coffer_node_secret_propagation_seconds",
                "Time from the event about a Secret to the flip of a volume made of it",
                &[],
                SECONDS,
            ),
            pod_warnings: registry.counter(
                "coffer_node_pod_warnings_total",
                "Warnings about what pods ask for, by reason of the event",
                &["reason"],
            ),
        }
    }
}
