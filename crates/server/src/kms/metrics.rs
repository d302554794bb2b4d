//! What is counted about plugins, under upstream's names.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use coffer_crypto::kms::{Direction, KmsObserver};
use coffer_runtime::metrics::{Family, Registry};
use coffer_types::time::Clock;
use parking_lot::Mutex;

/// 5 µs, doubled: upstream's buckets of making keys.
const GENERATION: &[f64] = &[
    5e-6, 1e-5, 2e-5, 4e-5, 8e-5, 1.6e-4, 3.2e-4, 6.4e-4, 1.28e-3, 2.56e-3, 5.12e-3, 1.024e-2, 2.048e-2,
    4.096e-2,
];
/// A minute, doubled.
const INTER_ARRIVAL: &[f64] = &[60., 120., 240., 480., 960., 1920., 3840., 7680., 15360., 30720.];
/// 0.1 ms, doubled.
const CALLS: &[f64] = &[
    1e-4, 2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 1.28e-2, 2.56e-2, 5.12e-2, 0.1024, 0.2048, 0.4096,
    0.8192, 1.6384, 3.2768, 6.5536, 13.1072, 26.2144, 52.4288,
];
/// How many sets of labels with a key's hash are kept, as upstream.
const MOST_KEYS: usize = 100;
/// The server has no identity of its own, as a kube-apiserver without one.
const SERVER: &str = "";

/// The metrics of all plugins.
pub(super) struct Metrics {
    clock: Arc<dyn Clock>,
    misses: Arc<Family>,
    generation: Arc<Family>,
    generation_failures: Arc<Family>,
    fill: Arc<Family>,
    inter_arrival: Arc<Family>,
    calls: Arc<Family>,
    key_total: Arc<Family>,
    key_last: Arc<Family>,
    status_last: Arc<Family>,
    invalid: Arc<Family>,
    sources: Arc<Family>,
    /// Labels that hold a key's hash, the least recently used first.
    used: Mutex<VecDeque<[String; 4]>>,
    in_status: Mutex<VecDeque<[String; 3]>>,
}

impl Metrics {
    pub(super) fn new(registry: &Registry, clock: Arc<dyn Clock>) -> Self {
        const KEY: &[&str] = &["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"];
        Self {
            clock,
            misses: registry.counter(
                "apiserver_storage_envelope_transformation_cache_misses_total",
                "Total number of cache misses while accessing key decryption key(KEK).",
                &[],
            ),
            generation: registry.histogram(
                "apiserver_storage_data_key_generation_duration_seconds",
                "Latencies in seconds of data encryption key(DEK) generation operations.",
                &[],
                GENERATION,
            ),
            generation_failures: registry.counter(
                "apiserver_storage_data_key_generation_failures_total",
                "Total number of failed data encryption key(DEK) generation operations.",
                &[],
            ),
            fill: registry.gauge(
                "apiserver_envelope_encryption_dek_cache_fill_percent",
                "Percent of the cache slots currently occupied by cached DEKs.",
                &[],
            ),
            inter_arrival: registry.histogram(
                "apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds",
                "Time (in seconds) of inter arrival of transformation requests.",
                &["transformation_type"],
                INTER_ARRIVAL,
            ),
            calls: registry.histogram(
                "apiserver_envelope_encryption_kms_operations_latency_seconds",
                "KMS operation duration with gRPC error code status total.",
                &["provider_name", "method_name", "grpc_status_code"],
                CALLS,
            ),
            key_total: registry.counter(
                "apiserver_envelope_encryption_key_id_hash_total",
                "Number of times a keyID is used split by transformation type, provider, and apiserver identity.",
                KEY,
            ),
            key_last: registry.gauge(
                "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                "The last time in seconds when a keyID was used.",
                KEY,
            ),
            status_last: registry.gauge(
                "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                "The last time in seconds when a keyID was returned by the Status RPC call.",
                &["provider_name", "key_id_hash", "apiserver_id_hash"],
            ),
            invalid: registry.counter(
                "apiserver_envelope_encryption_invalid_key_id_from_status_total",
                "Number of times an invalid keyID is returned by the Status RPC call split by error.",
                &["provider_name", "error"],
            ),
            sources: registry.gauge(
                "apiserver_envelope_encryption_dek_source_cache_size",
                "Number of records in data encryption key (DEK) source cache.",
                &["provider_name"],
            ),
            used: Mutex::default(),
            in_status: Mutex::default(),
        }
    }

    /// A call of version 2 ended.
    pub(super) fn called(&self, provider: &str, method: &str, code: &str, took: Duration) {
        self.calls.observe(&[provider, method, code], took.as_secs_f64());
    }

    fn now(&self) -> f64 {
        self.clock.now().as_millisecond() as f64 / 1_000.0
    }
}

/// Makes `labels` the most recently used, and drops the series of those that are too many.
fn renew<const N: usize>(recent: &mut VecDeque<[String; N]>, labels: [&str; N], families: &[&Family]) {
    // Mostly it is the last one again.
    if recent.back().is_some_and(|last| last.each_ref().map(String::as_str) == labels) {
        return;
    }
    recent.retain(|known| known.each_ref().map(String::as_str) != labels);
    recent.push_back(labels.map(str::to_owned));
    if MOST_KEYS < recent.len()
        && let Some(oldest) = recent.pop_front()
    {
        for family in families {
            family.remove(|labels| labels == oldest);
        }
    }
}

impl KmsObserver for Metrics {
    fn cache_missed(&self) {
        self.misses.increment(&[]);
    }

    fn key_generated(&self, took: Duration, success: bool) {
        if success {
            self.generation.observe(&[], took.as_secs_f64());
        } else {
            self.generation_failures.increment(&[]);
        }
    }

    fn key_used(&self, direction: Direction, provider: &str, key_id_hash: &str) {
        let labels = [direction.name(), provider, key_id_hash, SERVER];
        renew(&mut self.used.lock(), labels, &[&self.key_total, &self.key_last]);
        self.key_total.increment(&labels);
        self.key_last.set(&labels, self.now());
    }

    fn key_in_status(&self, provider: &str, key_id_hash: &str) {
        let labels = [provider, key_id_hash, SERVER];
        renew(&mut self.in_status.lock(), labels, &[&self.status_last]);
        self.status_last.set(&labels, self.now());
    }

    fn key_id_refused(&self, provider: &str, why: &str) {
        self.invalid.increment(&[provider, why]);
    }

    fn sources_held(&self, provider: &str, count: usize) {
        self.sources.set(&[provider], count as f64);
    }

    fn keys_held(&self, fraction: f64) {
        self.fill.set(&[], fraction);
    }

    fn key_asked(&self, direction: Direction, since_last: Duration) {
        self.inter_arrival.observe(&[direction.name()], since_last.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use coffer_runtime::clock::SystemClock;

    use super::*;

    /// Upstream's TestRecordKeyIDLRUKey: the least recently used series go first.
    #[test]
    fn test_record_key_id_lru_key() {
        let registry = Registry::default();
        let metrics = Metrics::new(&registry, Arc::new(SystemClock::new()));
        for number in 0..100 {
            metrics.key_used(Direction::ToStorage, "p", &number.to_string());
            metrics.key_in_status("p", &number.to_string());
        }
        metrics.key_used(Direction::ToStorage, "p", "0");
        metrics.key_used(Direction::ToStorage, "p", "100");
        metrics.key_in_status("p", "100");
        let used = |hash: &str| metrics.key_total.value(&["to_storage", "p", hash, ""]);
        assert_eq!((used("0"), used("1"), used("2"), used("100")), (2.0, 0.0, 1.0, 1.0));
        assert_eq!(metrics.key_last.value(&["to_storage", "p", "1", ""]), 0.0);
        let named = |hash: &str| metrics.status_last.value(&["p", hash, ""]) > 0.0;
        assert!(!named("0") && named("1") && named("100"));
        assert_eq!(metrics.used.lock().len(), 100);
    }

    /// Upstream's TestRecordKMSOperationLatency and TestRecordInvalidKeyIDFromStatus.
    #[test]
    fn names_and_labels_are_upstreams() {
        let registry = Registry::default();
        let metrics = Metrics::new(&registry, Arc::new(SystemClock::new()));
        metrics.called("p", "/v2.KeyManagementService/Encrypt", "OK", Duration::from_millis(1));
        metrics.key_id_refused("p", "empty");
        metrics.sources_held("p", 3);
        let text = registry.render();
        for line in [
            "apiserver_envelope_encryption_kms_operations_latency_seconds_count{provider_name=\"p\",\
             method_name=\"/v2.KeyManagementService/Encrypt\",grpc_status_code=\"OK\"} 1",
            "apiserver_envelope_encryption_invalid_key_id_from_status_total{provider_name=\"p\",error=\"empty\"} 1",
            "apiserver_envelope_encryption_dek_source_cache_size{provider_name=\"p\"} 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
