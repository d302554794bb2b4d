//! A clock that stands still, an API server and a store in the same process, and operators between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use coffer_operator::OperatorConfig;
use coffer_providers::contract::Provider;
use coffer_runtime::lease::Ended;
use coffer_runtime::random::SystemRandom;
use coffer_sim::clock::SimClock;
use coffer_types::time::Clock as _;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::api::Server;
use crate::remote::{Remote, Store};

pub(crate) const ES: &str = "externalsecrets";
pub(crate) const SECRETS: &str = "secrets";
pub(crate) const STORES: &str = "secretstores";
pub(crate) const CLUSTER_STORES: &str = "clustersecretstores";
/// So many turns without a request or a read mean that everybody waits.
const QUIET: usize = 60;

pub(crate) struct World {
    pub(crate) clock: SimClock,
    pub(crate) api: Arc<Server>,
    pub(crate) remote: Arc<Remote>,
}

pub(crate) struct Operator {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Ended>,
    pub(crate) synced: CancellationToken,
}

impl Operator {
    pub(crate) fn ended(&self) -> bool {
        self.task.is_finished()
    }

    pub(crate) async fn end(self) -> Ended {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = SimClock::new("2026-01-02T03:04:05Z".parse().unwrap());
        let world = Self { api: Server::new(clock.clone()), clock, remote: Arc::default() };
        world.namespace("ns", json!({}));
        world
    }

    pub(crate) fn namespace(&self, name: &str, labels: Json) {
        let mut labels = labels;
        // The API server sets it.
        labels["kubernetes.io/metadata.name"] = name.into();
        self.api.put("namespaces", "", name, json!({"metadata": {"labels": labels}}));
    }

    /// Starts an operator and lets it come to rest.
    pub(crate) async fn start(
        &self,
        name: &'static str,
        change: impl FnOnce(&mut OperatorConfig),
    ) -> Operator {
        let random = Arc::new(SystemRandom::default());
        let mut config = OperatorConfig::new(self.api.client(name), Arc::new(self.clock.clone()), random);
        let remote: Arc<dyn Provider> = Arc::new(Store(self.remote.clone()));
        config.providers = vec![remote];
        config.store_requeue_interval = Duration::from_secs(100_000);
        change(&mut config);
        let (stop, synced) = (CancellationToken::new(), config.synced.clone());
        let task = tokio::spawn(coffer_operator::run(config, stop.clone()));
        self.settle().await;
        Operator { stop, task, synced }
    }

    /// Until everybody waits for the clock, an answer, or nothing.
    pub(crate) async fn settle(&self) {
        let mut quiet = 0;
        let mut last = (self.api.activity(), self.remote.calls());
        while quiet < QUIET {
            tokio::task::yield_now().await;
            let now = (self.api.activity(), self.remote.calls());
            quiet = if now == last { quiet + 1 } else { 0 };
            last = now;
        }
    }

    /// Lets time pass, and everybody act at the time that they wait for.
    pub(crate) async fn pass(&self, time: Duration) {
        let until = self.clock.monotonic() + time;
        self.settle().await;
        while let Some(next) = self.clock.next_wake()
            && next <= until
        {
            self.clock.advance(next.saturating_sub(self.clock.monotonic()));
            self.settle().await;
        }
        self.clock.advance(until.saturating_sub(self.clock.monotonic()));
        self.settle().await;
    }

    /// A store of the recording provider.
    pub(crate) fn store(&self, name: &str, remote: Json) {
        self.api.put(STORES, "ns", name, json!({"spec": {"provider": {"remote": remote}}}));
    }

    pub(crate) fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        Some(data(&self.api.get(SECRETS, "ns", name)?))
    }
}

pub(crate) fn encode(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

pub(crate) fn data(secret: &Json) -> BTreeMap<String, String> {
    let members = secret["data"].as_object().into_iter().flatten();
    let decode = |value: &Json| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    members.map(|(key, value)| (key.clone(), decode(value))).collect()
}

/// The text of a data map, for comparing.
pub(crate) fn shown(data: Option<BTreeMap<String, String>>) -> String {
    data.map_or_else(
        || "-".to_owned(),
        |data| data.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "),
    )
}

/// An ExternalSecret; entries are `KEY=REMOTE[#PROPERTY][@VERSION]`.
pub(crate) fn external_secret(store: &str, interval: &str, entries: &[&str]) -> Json {
    let data: Vec<Json> = entries
        .iter()
        .map(|entry| {
            let (key, remote) = entry.split_once('=').unwrap();
            let (remote, version) = remote.split_once('@').unwrap_or((remote, ""));
            let (remote, property) = remote.split_once('#').unwrap_or((remote, ""));
            let mut reference = json!({"key": remote});
            for (field, value) in [("version", version), ("property", property)] {
                if !value.is_empty() {
                    reference[field] = value.into();
                }
            }
            json!({"secretKey": key, "remoteRef": reference})
        })
        .collect();
    json!({"spec": {
        "secretStoreRef": {"name": store, "kind": "SecretStore"}, "refreshInterval": interval, "data": data,
    }})
}

/// `STATUS REASON` of the Ready condition, or `-`.
pub(crate) fn ready(object: &Json) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or("-").to_owned();
    format!("{} {}", text("status"), text("reason"))
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
