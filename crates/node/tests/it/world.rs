//! A node that is started and stopped by a test, and what it leaves behind.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_node::files::RealFiles;
use coffer_node::report::{ANNOTATION, CONDITION, Consumer, Report};
use coffer_node::volume::holders::Holder;
use coffer_node::volume::mounter::Mounter;
use coffer_node::volume::tmpfs::Place;
use coffer_node::{NodeConfig, NodeError, run};
use coffer_runtime::metrics::Registry;
use coffer_sim::clock::SimClock;
use coffer_sim::random::SeededRandom;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::Api;

pub(crate) const NODE: &str = "n1";

/// Calls every directory a tmpfs, and a mount of its own when it is to.
struct AllMemory {
    mount_point: bool,
}

impl Mounter for AllMemory {
    fn mount_tmpfs(&self, _: &Path, _: u64) -> std::io::Result<()> {
        unreachable!("the root is in memory already")
    }

    fn unmount(&self, _: &Path) -> std::io::Result<()> {
        Ok(())
    }

    fn detach(&self, _: &Path) -> std::io::Result<()> {
        Ok(())
    }

    fn holders(&self, _: &Path) -> Vec<Holder> {
        Vec::new()
    }

    fn in_memory(&self, _: &Path) -> std::io::Result<bool> {
        Ok(true)
    }

    fn is_mount_point(&self, _: &Path) -> std::io::Result<bool> {
        Ok(self.mount_point)
    }
}

/// The machine and its API server.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) clock: SimClock,
    pub(crate) metrics: Arc<Registry>,
    /// Whether the root is a mount, and not a directory of one.
    pub(crate) mount_point: bool,
    root: tempfile::TempDir,
}

/// A running node.
pub(crate) struct Node {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), NodeError>>,
    started: Option<tokio::sync::oneshot::Receiver<Place>>,
}

impl Node {
    /// Stops it as its owner does; its volumes stay.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// How it ended by itself.
    pub(crate) async fn ended(self) -> Result<(), NodeError> {
        self.task.await.expect("no panic")
    }

    /// Where its volumes are, once it is registered.
    pub(crate) async fn place(&mut self) -> Place {
        self.started.take().expect("asked once").await.expect("started")
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            api: Api::default(),
            clock: SimClock::new("2026-01-02T03:04:05Z".parse().expect("a time")),
            metrics: Arc::new(Registry::default()),
            mount_point: false,
            root: tempfile::tempdir().expect("a directory"),
        }
    }

    pub(crate) fn start(&self) -> Node {
        let stop = CancellationToken::new();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let config = NodeConfig {
            client: self.api.client(),
            node_name: NODE.to_owned(),
            root: self.root(),
            memory_candidates: Vec::new(),
            instance: NODE.to_owned(),
            clock: Arc::new(self.clock.clone()),
            random: Arc::new(SeededRandom::new(7)),
            mounter: Arc::new(AllMemory { mount_point: self.mount_point }),
            files: Arc::new(RealFiles),
            metrics: self.metrics.clone(),
            started: Some(sender),
        };
        let task = tokio::spawn(run(config, stop.clone()));
        Node { stop, task, started: Some(receiver) }
    }

    pub(crate) fn secret(&self, name: &str, pairs: &[(&str, &str)]) {
        self.api.put("secrets", secret(name, pairs));
    }

    /// The same, and no watch is told.
    pub(crate) fn secret_unheard(&self, name: &str, pairs: &[(&str, &str)]) {
        self.api.unheard(|api| api.put("secrets", secret(name, pairs)));
    }

    /// A pod of this node; its UID is its name and `-uid`.
    pub(crate) fn pod(&self, name: &str, spec: Value) {
        let mut spec = spec;
        spec["nodeName"] = json!(NODE);
        let metadata = json!({"namespace": "ns", "name": name, "uid": format!("{name}-uid")});
        self.api.put("pods", json!({"metadata": metadata, "spec": spec}));
    }

    /// The node's directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().join("node")
    }

    pub(crate) fn pod_directory(&self, pod: &str) -> PathBuf {
        self.root().join("pods").join(format!("{pod}-uid"))
    }

    /// A file of a Secret volume, when it is there.
    pub(crate) fn file(&self, pod: &str, volume: &str, path: &str) -> Option<String> {
        let directory = self.pod_directory(pod).join("volumes/kubernetes.io~secret").join(volume);
        std::fs::read_to_string(directory.join(path)).ok()
    }

    pub(crate) fn consumers(&self, pod: &str) -> Vec<Consumer> {
        let pod = self.api.get("pods", "ns", pod).unwrap_or_default();
        let text = pod["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
        serde_json::from_str::<Report>(text).map(|report| report.consumers).unwrap_or_default()
    }

    /// The node's condition on a pod.
    pub(crate) fn condition(&self, pod: &str) -> Value {
        let pod = self.api.get("pods", "ns", pod).unwrap_or_default();
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == CONDITION).unwrap_or_default()
    }

    /// The message of the node's condition on a pod.
    pub(crate) fn message(&self, pod: &str) -> String {
        self.condition(pod)["message"].as_str().unwrap_or_default().to_owned()
    }

    /// `reason: note` of every event.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = self.api.all("events");
        events.iter().map(|event| format!("{}: {}", text(event, "reason"), text(event, "note"))).collect()
    }

    /// Waits until something is so; the clock stands still.
    pub(crate) async fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let started = Instant::now();
        while !so() {
            assert!(started.elapsed() < Duration::from_secs(60), "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets the node do all that it does without time passing: a request of its own goes all the way.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(150)).await;
    }

    /// Lets time pass second by second.
    pub(crate) async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn secret(name: &str, pairs: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(base64(value)))).collect();
    let metadata = json!({"namespace": "ns", "name": name, "uid": format!("{name}-uid")});
    json!({"metadata": metadata, "data": data})
}

fn base64(text: &str) -> String {
    let k8s = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(k8s).expect("text").as_str().expect("text").to_owned()
}
