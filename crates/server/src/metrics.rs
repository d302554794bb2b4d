//! What is counted about requests, under upstream's names.

mod storage;

use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::metrics::{Family, Registry};
use coffer_store::Storage;
use coffer_store::statistics::REQUEST_SECONDS;
use coffer_types::time::Clock;

use self::storage::StorageMetrics;
use crate::resources::info::ResourceInfo;
use crate::route::RequestInfo;

/// The server's metrics.
pub(crate) struct Metrics {
    requests: Arc<Family>,
    durations: Arc<Family>,
    watchers: Arc<Family>,
    stored: StorageMetrics,
    registry: Arc<Registry>,
    storage: Arc<Storage>,
    clock: Arc<dyn Clock>,
}

impl Metrics {
    pub(crate) fn new(registry: Arc<Registry>, storage: Arc<Storage>, clock: Arc<dyn Clock>) -> Self {
        const LABELS: &[&str] = &["verb", "group", "version", "resource", "subresource", "scope"];
        Self {
            requests: registry.counter(
                "apiserver_request_total",
                "Counter of apiserver requests broken out for each verb, group, version, resource, scope and HTTP response code.",
                &["verb", "group", "version", "resource", "subresource", "scope", "code"],
            ),
            durations: registry.histogram(
                "apiserver_request_duration_seconds",
                "Response latency distribution in seconds for each verb, group, version, resource, subresource and scope.",
                LABELS,
                REQUEST_SECONDS,
            ),
            watchers: registry.gauge(
                "apiserver_longrunning_requests",
                "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource and scope.",
                &["verb", "group", "version", "resource"],
            ),
            stored: StorageMetrics::new(&registry),
            registry,
            storage,
            clock,
        }
    }

    /// Everything in the Prometheus text format.
    pub(crate) async fn render(&self) -> String {
        self.stored.set(&self.storage, &*self.clock).await;
        self.registry.render()
    }

    pub(crate) fn request(&self, info: &RequestInfo, code: u16, elapsed: Duration) {
        let verb = verb(info);
        // An unknown resource name comes from the client: it must not make new series.
        let resource = if code == 404 && info.name.is_empty() { "" } else { info.resource.as_str() };
        let scope = scope(info);
        let code_text = code.to_string();
        let (group, version) =
            if resource.is_empty() { ("", "") } else { (info.group.as_str(), info.version.as_str()) };
        let subresource = if code == 404 { "" } else { info.subresource.as_str() };
        self.requests.increment(&[verb, group, version, resource, subresource, scope, &code_text]);
        if verb != "WATCH" {
            self.durations
                .observe(&[verb, group, version, resource, subresource, scope], elapsed.as_secs_f64());
        }
    }

    /// Counts a watch until the gauge is dropped.
    pub(crate) fn watcher(&self, info: &ResourceInfo) -> WatcherGauge {
        let labels = [info.group.clone(), info.version.clone(), info.plural.clone()];
        let gauge = WatcherGauge { family: Arc::clone(&self.watchers), labels };
        gauge.add(1.0);
        gauge
    }
}

/// One open watch.
pub(crate) struct WatcherGauge {
    family: Arc<Family>,
    labels: [String; 3],
}

impl WatcherGauge {
    fn add(&self, amount: f64) {
        let [group, version, resource] = &self.labels;
        self.family.add(&["WATCH", group, version, resource], amount);
    }
}

impl Drop for WatcherGauge {
    fn drop(&mut self) {
        self.add(-1.0);
    }
}

fn verb(info: &RequestInfo) -> &'static str {
    match info.verb.as_str() {
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ => "other",
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    match (info.resource_request, info.name.is_empty(), info.namespace.is_empty()) {
        (false, _, _) => "",
        (true, false, _) => "resource",
        (true, true, false) => "namespace",
        (true, true, true) => "cluster",
    }
}
