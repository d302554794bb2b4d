//! What is counted about encryption at rest, under upstream's names.

use std::sync::Arc;
use std::time::Duration;

use coffer_crypto::kms::Direction;
use coffer_crypto::{Failure, Successes, TransformObserver};
use coffer_runtime::metrics::{Family, One, Registry};

/// 5 µs, doubled.
const DURATIONS: &[f64] = &[
    5e-6, 1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 6.4e-4, 1.28e-3, 2.56e-3, 5.12e-3, 1.024e-2, 2.048e-2,
    4.096e-2, 8.192e-2, 0.16384, 0.32768, 0.65536, 1.31072, 2.62144, 5.24288, 10.48576, 20.97152, 41.94304,
    83.88608,
];

/// Counts transformations.
pub(super) struct TransformMetrics {
    operations: Arc<Family>,
    durations: Arc<Family>,
}

impl TransformMetrics {
    /// In this registry.
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            operations: registry.counter(
                "apiserver_storage_transformation_operations_total",
                "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string when the transformation fails. The status, resource, and transformation_type fields can be used for alerting purposes.",
                &["resource", "transformation_type", "transformer_prefix", "status"],
            ),
            durations: registry.histogram(
                "apiserver_storage_transformation_duration_seconds",
                "Latencies in seconds of value transformation operations.",
                &["transformation_type", "transformer_prefix"],
                DURATIONS,
            ),
        }
    }
}

impl TransformObserver for TransformMetrics {
    fn successes(&self, resource: &str, direction: Direction, prefix: &str) -> Box<dyn Successes> {
        Box::new(Counted {
            operations: self.operations.one(&[resource, direction.name(), prefix, "OK"]),
            durations: self.durations.one(&[direction.name(), prefix]),
        })
    }

    fn failed(&self, resource: &str, direction: Direction, prefix: &str, failure: &Failure) {
        self.operations.increment(&[resource, direction.name(), prefix, failure.code()]);
    }
}

/// What is counted of one resource, direction and prefix.
struct Counted {
    operations: One,
    durations: One,
}

impl Successes for Counted {
    fn count(&self, took: Duration) {
        self.operations.add(1.0);
        self.durations.observe(took.as_secs_f64());
    }
}
