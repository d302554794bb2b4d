//! What is counted about requests, under upstream's names.

use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::metrics::{Family, Registry};

use crate::resources::ResourceInfo;
use crate::route::RequestInfo;

/// Upstream's buckets of request durations.
const DURATIONS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// The server's metrics.
pub(crate) struct Metrics {
    requests: Arc<Family>,
    durations: Arc<Family>,
    watchers: Arc<Family>,
    pub(crate) registry: Arc<Registry>,
}

impl Metrics {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
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
                DURATIONS,
            ),
            watchers: registry.gauge(
                "apiserver_longrunning_requests",
                "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource and scope.",
                &["verb", "group", "version", "resource"],
            ),
            registry,
        }
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
