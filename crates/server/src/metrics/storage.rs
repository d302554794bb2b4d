//! What is counted about stored objects, their caches and the store below, under upstream's names.
//!
//! The numbers are counted in [`coffer_store`] and only shown here. Labels name resources that are
//! stored, and nothing that a client says. Absent on purpose: what Kubernetes 1.37 hides by default.

use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::metrics::{Counted, Family, Registry};
use coffer_store::Storage;
use coffer_store::statistics::{
    DISPATCH_SECONDS, FILL_SECONDS, LEASE_OBJECTS, Lists, Observed, REQUEST_SECONDS, Statistics, WAIT_SECONDS,
};
use coffer_types::time::Clock;

/// A resource version in a metric, as upstream: the format's numbers hold no more digits.
const RESOURCE_VERSION_MODULUS: u64 = 1_000_000_000_000_000;

/// How long the store is asked for its size, as upstream.
const SIZE_PATIENCE: Duration = Duration::from_secs(1);

/// The only store that there is, in upstream's numbering of several.
const CLUSTER: &str = "etcd-0";

/// Resources are found without an index, always.
const NO_INDEX: &str = "";

/// Metrics of all stored resources.
pub(super) struct StorageMetrics {
    /// Those with a series for each resource.
    by_resource: Vec<(Arc<Family>, Show)>,
    size: Arc<Family>,
    lease_objects: Arc<Family>,
    round_trips: Arc<Family>,
    key_writes: Arc<Family>,
    unreadable: Arc<Family>,
}

/// What of a resource a family shows; the labels begin with its group and name.
enum Show {
    Number(fn(&Statistics) -> u64),
    Observed(fn(&Statistics) -> &Observed),
    /// Any number of series of its own.
    Series(fn(&Statistics, &mut Counted)),
}

const RESOURCE: &[&str] = &["group", "resource"];
const OPERATION: &[&str] = &["operation", "group", "resource"];
const LISTED_BY_INDEX: &[&str] = &["group", "resource", "storage", "index"];
const LISTED: &[&str] = &["group", "resource", "storage"];

impl StorageMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let mut by_resource = gauges(registry);
        by_resource.extend(counters(registry));
        by_resource.extend(histograms(registry));
        by_resource.extend(requests(registry));
        by_resource.extend(lists(registry));
        Self {
            by_resource,
            size: registry.gauge(
                "apiserver_storage_size_bytes",
                "Bytes that the store takes on disk.",
                &["storage_cluster_id"],
            ),
            lease_objects: registry.histogram(
                "etcd_lease_object_counts",
                "Objects that shared a lease.",
                &[],
                LEASE_OBJECTS,
            ),
            round_trips: registry.counter(
                "coffer_storage_round_trips_total",
                "Round trips to the store that answered reads which share them.",
                &[],
            ),
            key_writes: registry.counter(
                "coffer_encryption_key_writes_total",
                "Values encrypted under an aesgcm key since the start; a key should be replaced after 200000.",
                &["provider", "key"],
            ),
            unreadable: registry.gauge(
                "coffer_storage_unreadable_objects",
                "Stored objects that cannot be decrypted or decoded.",
                &["resource"],
            ),
        }
    }

    /// Takes the numbers as they are now; those of resources that are gone go away.
    #[allow(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
    pub(super) async fn set(&self, storage: &Storage, clock: &dyn Clock) {
        let all = storage.statistics();
        for (family, show) in &self.by_resource {
            let mut counted = Counted::default();
            for one in &all {
                let labels = [one.group.as_str(), one.resource.as_str()];
                match show {
                    Show::Number(number) => counted.number(&labels, number(one) as f64),
                    Show::Observed(observed) => observe(&mut counted, &labels, observed(one)),
                    Show::Series(series) => series(one, &mut counted),
                }
            }
            family.replace(counted);
        }
        let mut leases = Counted::default();
        observe(&mut leases, &[], &storage.lease_objects());
        self.lease_objects.replace(leases);
        let mut trips = Counted::default();
        trips.number(&[], storage.round_trips() as f64);
        self.round_trips.replace(trips);
        let mut writes = Counted::default();
        for (key, count) in storage.key_writes() {
            writes.number(&["aesgcm", &key], count as f64);
        }
        self.key_writes.replace(writes);
        let mut unreadable = Counted::default();
        for (resource, count) in storage.unreadable() {
            unreadable.number(&[&resource], count as f64);
        }
        self.unreadable.replace(unreadable);
        let mut size = Counted::default();
        // A store that does not answer has no size now.
        tokio::select! {
            found = storage.size() => {
                if let Ok(bytes) = found {
                    size.number(&[CLUSTER], bytes as f64);
                }
            }
            () = clock.sleep(SIZE_PATIENCE) => {}
        }
        self.size.replace(size);
    }
}

/// Nothing that was never observed is shown.
fn observe(counted: &mut Counted, labels: &[&str], observed: &Observed) {
    if observed.count != 0 {
        counted.observed(labels, observed.buckets.clone(), observed.count, observed.sum);
    }
}

type Families = Vec<(Arc<Family>, Show)>;

fn gauges(registry: &Registry) -> Families {
    let gauge = |name, help, number| (registry.gauge(name, help, RESOURCE), Show::Number(number));
    vec![
        gauge("apiserver_resource_objects", "Stored objects.", |cache| cache.objects as u64),
        gauge(
            "apiserver_resource_size_estimate_bytes",
            "Bytes of the stored objects, without what encryption adds.",
            |cache| cache.bytes as u64,
        ),
        gauge("apiserver_watch_cache_resource_version", "Revision of the watch cache.", |cache| {
            cache.revision.unsigned_abs() % RESOURCE_VERSION_MODULUS
        }),
        gauge("watch_cache_capacity", "Changes that the watch cache's history may hold.", |cache| {
            cache.capacity as u64
        }),
    ]
}

fn counters(registry: &Registry) -> Families {
    let counter = |name, help, number| (registry.counter(name, help, RESOURCE), Show::Number(number));
    vec![
        counter("watch_cache_capacity_increase_total", "How often the history was doubled.", |cache| {
            cache.capacity_increases
        }),
        counter("watch_cache_capacity_decrease_total", "How often the history was halved.", |cache| {
            cache.capacity_decreases
        }),
        counter("apiserver_storage_events_received_total", "Changes that came from the store.", |cache| {
            cache.received
        }),
        counter(
            "apiserver_watch_cache_events_received_total",
            "Changes that the watch cache has taken in.",
            |cache| cache.received,
        ),
        counter(
            "apiserver_watch_cache_events_dispatched_total",
            "Changes, and reports of progress, that the watch cache has handed on.",
            |cache| cache.dispatched + cache.progress_reports,
        ),
        counter("etcd_bookmark_total", "Reports of progress that came from the store.", |cache| {
            cache.progress_reports
        }),
        counter(
            "apiserver_watch_cache_initializations_total",
            "How often the watch cache was filled.",
            |cache| cache.initializations.count,
        ),
        counter(
            "apiserver_watch_cache_initialization_errors_total",
            "How often filling or following the store has failed.",
            |cache| cache.initialization_errors,
        ),
        counter("apiserver_init_events_total", "Objects sent to watches as their first state.", |cache| {
            cache.initial_events
        }),
        counter(
            "apiserver_terminated_watchers_total",
            "Watches ended because they did not keep up.",
            |cache| cache.terminated_watchers,
        ),
        counter(
            "apiserver_storage_decode_errors_total",
            "Stored values that were no objects after decryption, each time that one was read.",
            |cache| cache.decode_errors,
        ),
    ]
}

fn histograms(registry: &Registry) -> Families {
    let histogram = |name, help, bounds, observed| {
        (registry.histogram(name, help, RESOURCE, bounds), Show::Observed(observed))
    };
    let mut families = vec![
        histogram(
            "apiserver_watch_cache_initialization_duration_seconds",
            "Time that filling the watch cache took.",
            FILL_SECONDS,
            |cache| &cache.initializations,
        ),
        histogram(
            "apiserver_watch_cache_read_wait_seconds",
            "Time that reads waited for the watch cache to be fresh.",
            WAIT_SECONDS,
            |cache| &cache.read_waits,
        ),
    ];
    families.push((
        registry.histogram(
            "apiserver_watch_events_dispatch_duration_seconds",
            "Time from a change's arrival until a watch took it.",
            &["group", "resource", "stage"],
            DISPATCH_SECONDS,
        ),
        Show::Series(|cache, counted| {
            observe(counted, &[&cache.group, &cache.resource, "total"], &cache.dispatch);
        }),
    ));
    families.push((
        registry.histogram(
            "apiserver_storage_list_duration_seconds",
            "Time of lists that the store answered.",
            &["streamed", "group", "resource"],
            REQUEST_SECONDS,
        ),
        Show::Series(|cache, counted| {
            observe(counted, &["false", &cache.group, &cache.resource], &cache.store_list_seconds);
        }),
    ));
    families
}

#[allow(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
fn requests(registry: &Registry) -> Families {
    vec![
        (
            registry.histogram(
                "etcd_request_duration_seconds",
                "Time of requests to the store, by operation and resource.",
                OPERATION,
                REQUEST_SECONDS,
            ),
            Show::Series(|cache, counted| {
                for asked in &cache.requests {
                    observe(counted, &[asked.operation.name(), &cache.group, &cache.resource], &asked.took);
                }
            }),
        ),
        (
            registry.counter(
                "etcd_requests_total",
                "Requests to the store, by operation and resource. One that shared a round trip counts as one.",
                OPERATION,
            ),
            Show::Series(|cache, counted| {
                for asked in &cache.requests {
                    let labels = [asked.operation.name(), &cache.group, &cache.resource];
                    counted.number(&labels, asked.took.count as f64);
                }
            }),
        ),
        (
            registry.counter(
                "etcd_request_errors_total",
                "Requests to the store that failed, by operation and resource.",
                OPERATION,
            ),
            Show::Series(|cache, counted| {
                for asked in cache.requests.iter().filter(|asked| asked.errors != 0) {
                    let labels = [asked.operation.name(), &cache.group, &cache.resource];
                    counted.number(&labels, asked.errors as f64);
                }
            }),
        ),
        (
            registry.counter(
                "apiserver_watch_cache_consistent_read_total",
                "Consistent lists, by whether the store had to be asked because the cache was behind.",
                &["group", "resource", "success", "fallback"],
            ),
            Show::Series(|cache, counted| {
                let reads = &cache.consistent_reads;
                for (success, fallback, count) in [
                    ("true", "false", reads.cached),
                    ("false", "false", reads.failed),
                    ("true", "true", reads.fallback),
                    ("false", "true", reads.fallback_failed),
                ] {
                    if count != 0 {
                        let labels = [cache.group.as_str(), &cache.resource, success, fallback];
                        counted.number(&labels, count as f64);
                    }
                }
            }),
        ),
    ]
}

fn lists(registry: &Registry) -> Families {
    vec![
        (
            registry.counter(
                "apiserver_storage_list_total",
                "Lists, by what answered them.",
                LISTED_BY_INDEX,
            ),
            Show::Series(|cache, counted| by_storage(cache, counted, true, |lists| lists.lists)),
        ),
        (
            registry.counter(
                "apiserver_storage_list_fetched_objects_total",
                "Objects that were read for lists.",
                LISTED_BY_INDEX,
            ),
            Show::Series(|cache, counted| by_storage(cache, counted, true, |lists| lists.fetched)),
        ),
        (
            registry.counter(
                "apiserver_storage_list_evaluated_objects_total",
                "Objects of the store that were held against selectors for lists.",
                LISTED,
            ),
            Show::Series(|cache, counted| by_storage(cache, counted, false, |lists| lists.evaluated)),
        ),
        (
            registry.counter(
                "apiserver_storage_list_returned_objects_total",
                "Objects that lists returned.",
                LISTED,
            ),
            Show::Series(|cache, counted| by_storage(cache, counted, false, |lists| lists.returned)),
        ),
    ]
}

/// A series for each place that has answered lists.
#[allow(clippy::cast_precision_loss, reason = "the format knows no other numbers")]
fn by_storage(cache: &Statistics, counted: &mut Counted, indexed: bool, number: fn(&Lists) -> u64) {
    for (storage, lists) in [("etcd", &cache.store_lists), ("watchcache", &cache.cache_lists)] {
        if lists.lists != 0 {
            let labels = [cache.group.as_str(), &cache.resource, storage, NO_INDEX];
            let labels = if indexed { &labels[..] } else { &labels[..3] };
            counted.number(labels, number(lists) as f64);
        }
    }
}
