//! The node: watches its pods and keeps for each what it was promised.
//!
//! One loop, three sources: pods, Secrets that changed, and the clock for retries and
//! heartbeats. A change of a Secret reaches its files by the watch event.

mod pod;
mod registration;
mod status;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::random::Random;
use coffer_types::time::Clock;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher::{self, watcher};
use tokio_util::sync::CancellationToken;

use crate::files::Files;
use crate::manager::SecretManager;
use crate::volume::tmpfs::{self, Mounter, Place};
use pod::PodState;

/// How often the node says that it is alive, as the kubelet.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long after a failed step the pod is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What a node needs. Everything outside comes in here.
pub struct NodeConfig {
    /// Client to the API server.
    pub client: kube::Client,
    /// Name of the node.
    pub node_name: String,
    /// Below it are the volumes; a tmpfs is mounted on it where that is allowed.
    pub root: PathBuf,
    /// Directories on a tmpfs to use when it is not: the user's runtime directory, /dev/shm.
    pub memory_candidates: Vec<PathBuf>,
    /// Tells instances on one machine apart, in directory names.
    pub instance: String,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Mounting.
    pub mounter: Arc<dyn Mounter>,
    /// The file system.
    pub files: Arc<dyn Files>,
}

/// Why a node ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Secret bytes have nowhere to go.
    #[error(transparent)]
    NoMemory(#[from] tmpfs::NoMemory),
    /// The API server refused the node.
    #[error("cannot register node {node}: {message}")]
    Register {
        /// Name of the node.
        node: String,
        /// The server's words.
        message: String,
    },
    /// The watch of pods ended for good.
    #[error("the watch of pods ended")]
    WatchEnded,
}

/// Runs the node until `stop`.
pub async fn run(config: NodeConfig, stop: CancellationToken) -> Result<(), NodeError> {
    let place = tmpfs::choose(&*config.mounter, &config.root, &config.memory_candidates, &config.instance)?;
    tracing::info!(node = config.node_name, place = place.describe(), "secret volumes are in memory");
    if let Err(error) = registration::register(&config).await {
        // Nothing was written yet; a mount would only be in the way.
        let _ = tmpfs::clear(&*config.mounter, &config.root, &config.memory_candidates, &config.instance);
        return Err(error);
    }
    let (manager, mut changed) = SecretManager::new(config.client.clone());
    let agent = Agent { manager, place, config, pods: HashMap::new() };
    agent.run(&mut changed, stop).await
}

struct Agent {
    config: NodeConfig,
    place: Place,
    manager: SecretManager,
    /// By UID.
    pods: HashMap<String, PodState>,
}

impl Agent {
    async fn run(
        mut self,
        changed: &mut tokio::sync::mpsc::UnboundedReceiver<crate::manager::table::Key>,
        stop: CancellationToken,
    ) -> Result<(), NodeError> {
        let api: Api<Pod> = Api::all(self.config.client.clone());
        let only_mine =
            watcher::Config::default().fields(&format!("spec.nodeName={}", self.config.node_name));
        let mut pods =
            std::pin::pin!(kube::runtime::WatchStreamExt::default_backoff(watcher(api, only_mine)));
        let mut seen: BTreeMap<String, Pod> = BTreeMap::new();
        let mut tick = self.config.clock.sleep(HEARTBEAT);
        let ended = loop {
            tokio::select! {
                () = stop.cancelled() => break Ok(()),
                Some(key) = changed.recv() => {
                    for uid in self.manager.pods_of(&key) {
                        self.sync(&uid).await;
                    }
                }
                event = pods.next() => match event {
                    None => break Err(NodeError::WatchEnded),
                    Some(Ok(watcher::Event::Init)) => seen.clear(),
                    Some(Ok(watcher::Event::InitApply(pod))) => {
                        seen.insert(uid(&pod), pod);
                    }
                    Some(Ok(watcher::Event::InitDone)) => self.all_pods(std::mem::take(&mut seen)).await,
                    Some(Ok(watcher::Event::Apply(pod))) => self.observe(pod).await,
                    Some(Ok(watcher::Event::Delete(pod))) => self.forget(&uid(&pod)).await,
                    Some(Err(_)) => tracing::warn!(node = self.config.node_name, "watch of pods broke"),
                },
                () = &mut tick => {
                    tick = self.config.clock.sleep(HEARTBEAT);
                    registration::heartbeat(&self.config).await;
                    self.retry_due().await;
                }
            }
        };
        self.manager.close();
        ended
    }

    /// The complete set of pods: only now may volumes of unknown pods be removed (field case N25).
    async fn all_pods(&mut self, pods: BTreeMap<String, Pod>) {
        let gone: Vec<String> = self.pods.keys().filter(|uid| !pods.contains_key(*uid)).cloned().collect();
        for uid in gone {
            self.forget(&uid).await;
        }
        for name in self.directories_of_pods() {
            if !pods.contains_key(&name) {
                self.remove_volumes(&name).await;
            }
        }
        for (_, pod) in pods {
            self.observe(pod).await;
        }
    }

    async fn observe(&mut self, pod: Pod) {
        let uid = uid(&pod);
        if pod.metadata.deletion_timestamp.is_some() {
            self.terminate(&uid, &pod).await;
            return;
        }
        let same_spec = match self.pods.get_mut(&uid) {
            Some(state) => {
                let same = state.pod.as_ref().is_some_and(|known| known.spec == pod.spec);
                state.pod = Some(pod);
                same
            }
            None => {
                self.pods.insert(uid.clone(), PodState::of(pod));
                self.warn_about(&uid).await;
                false
            }
        };
        // Our own status writes come back as events: they must not start another round.
        if !same_spec {
            self.sync(&uid).await;
        }
    }

    async fn retry_due(&mut self) {
        let now = self.config.clock.monotonic();
        let due: Vec<String> = self
            .pods
            .iter()
            .filter(|(_, state)| state.retry_at.is_some_and(|at| at <= now))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in due {
            self.sync(&uid).await;
        }
    }
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}
