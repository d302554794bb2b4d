//! The node: watches its pods and keeps for each what it was promised.
//!
//! One loop, three sources: pods, Secrets that changed, and the clock for retries and
//! heartbeats. A change of a Secret reaches its files by the watch event; a periodic pass over every pod
//! makes up for events that were lost and for files that somebody changed (field case N1).

mod checkpoint;
mod materialised;
mod patience;
mod pod;
mod registration;
mod state;
mod status;
mod tokens;
mod uses;
mod volumes;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::metrics::Registry;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher::{self, watcher};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::files::Files;
use crate::manager::{self, ObjectManager};
use crate::metrics::Metrics;
use crate::volume::mounter::Mounter;
use crate::volume::tmpfs::{self, Place};
use state::PodState;

/// How often the node says that it is alive, as the kubelet.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long after a failed step the pod is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How often every pod is gone over, at most half as long again, as the kubelet's `syncFrequency`.
const PASS: Duration = Duration::from_secs(60);
/// How long after a failure a node that has volumes to keep tries to register again.
const REGISTER_AGAIN: Duration = Duration::from_secs(5);

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
    /// Where it counts.
    pub metrics: Arc<Registry>,
    /// Told once the node is registered and knows where its volumes are.
    pub started: Option<oneshot::Sender<Place>>,
}

/// Why a node ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Secret bytes have nowhere to go.
    #[error(transparent)]
    NoMemory(#[from] tmpfs::NoMemory),
    /// The API server refused the node.
    #[error("cannot register node {node}")]
    Register {
        /// Name of the node.
        node: String,
        /// Why.
        #[source]
        error: Box<kube::Error>,
    },
    /// The watch of pods ended for good.
    #[error("the watch of pods ended")]
    WatchEnded,
}

/// Runs the node until `stop`.
pub async fn run(mut config: NodeConfig, stop: CancellationToken) -> Result<(), NodeError> {
    let place = tmpfs::choose(&*config.mounter, &config.root, &config.memory_candidates, &config.instance)?;
    let started = config.started.take();
    let (manager, mut changed) = ObjectManager::new(config.client.clone(), config.clock.clone());
    let metrics = Metrics::new(&config.metrics);
    let agent = Agent { manager, place, metrics, config, pods: HashMap::new() };
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        registered = agent.register() => registered?,
    }
    if let Some(started) = started {
        // Nobody listens any more: nobody wants to know.
        let _ = started.send(agent.place.clone());
    }
    agent.run(&mut changed, stop).await
}

struct Agent {
    config: NodeConfig,
    place: Place,
    manager: ObjectManager,
    metrics: Metrics,
    /// By UID.
    pods: HashMap<String, PodState>,
}

impl Agent {
    /// Registers the node. While volumes of an earlier life are there the server is tried again for as long
    /// as it does not answer: pods may still use them, and nothing is known of those (field case N25).
    async fn register(&self) -> Result<(), NodeError> {
        let Self { config, .. } = self;
        loop {
            let Err(failed) = registration::register(config).await else { return Ok(()) };
            if self.directories_of_pods().is_empty() {
                // Nothing was written yet; a mount would only be in the way.
                let NodeConfig { mounter, clock, root, memory_candidates, instance, .. } = config;
                let _ = tmpfs::clear(&**mounter, &**clock, root, memory_candidates, instance).await;
                return Err(failed);
            }
            if matches!(&failed, NodeError::Register { error, .. } if is_refusal(error)) {
                return Err(failed);
            }
            tracing::warn!(
                node = config.node_name,
                "the API server does not answer: volumes are kept as they are"
            );
            config.clock.sleep(REGISTER_AGAIN).await;
        }
    }

    async fn run(
        mut self,
        changed: &mut tokio::sync::mpsc::UnboundedReceiver<crate::manager::table::Key>,
        stop: CancellationToken,
    ) -> Result<(), NodeError> {
        let api: Api<Pod> = Api::all(self.config.client.clone());
        let only_mine = watcher::Config::default().fields(&registration::mine(&self.config));
        let mut pods =
            std::pin::pin!(kube::runtime::WatchStreamExt::default_backoff(watcher(api, only_mine)));
        let mut seen: BTreeMap<String, Pod> = BTreeMap::new();
        let mut tick = self.config.clock.sleep(HEARTBEAT);
        let ended = loop {
            let now = self.config.clock.monotonic();
            let due = self.pods.values().flat_map(|state| [state.retry_at, state.pass_at]).flatten().min();
            let look_again = due.map(|due| self.config.clock.sleep(due.saturating_sub(now)));
            let look_again = async {
                match look_again {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
            };
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
                    Some(Err(error)) => {
                        let failure = manager::failure_text(&error);
                        tracing::warn!(node = self.config.node_name, failure, "the watch of pods broke");
                    }
                },
                () = &mut tick => {
                    tick = self.config.clock.sleep(HEARTBEAT);
                    registration::heartbeat(&self.config).await;
                    registration::still_ready(&self.config).await;
                }
                () = look_again => {
                    self.retry_due().await;
                    self.pass_due().await;
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
                // The server has marked it while this node was not heard: it is to be told anew.
                let lost = status::is_unknown(&pod);
                if lost {
                    state.forget_report();
                }
                let same = state.pod.as_ref().is_some_and(|known| known.spec == pod.spec);
                state.pod = Some(pod);
                same && !lost
            }
            None => {
                let mut state = PodState::of(pod);
                state.pass_at = Some(self.next_pass());
                self.load_checkpoint(&uid, &mut state);
                self.pods.insert(uid.clone(), state);
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
        for uid in self.due(|state| state.retry_at) {
            self.sync(&uid).await;
        }
    }

    /// Goes over the pods whose time has come: their files are compared with what they should hold, and the
    /// server is asked for the versions of what they refer to.
    async fn pass_due(&mut self) {
        for uid in self.due(|state| state.pass_at) {
            let next = self.next_pass();
            let Some(state) = self.pods.get_mut(&uid) else { continue };
            state.pass_at = Some(next);
            // What waits for a first answer is looked after by its own rule.
            if !state.waits() {
                self.manager.check(&uid);
                self.sync(&uid).await;
            }
        }
    }

    fn due(&self, at: impl Fn(&PodState) -> Option<Duration>) -> Vec<String> {
        let now = self.config.clock.monotonic();
        let due = self.pods.iter().filter(|(_, state)| at(state).is_some_and(|at| at <= now));
        due.map(|(uid, _)| uid.clone()).collect()
    }

    /// When a pod is gone over next: pods that came together are spread.
    fn next_pass(&self) -> Duration {
        let mut part = [0_u8; 1];
        // Without randomness all are gone over at the earliest time.
        let _ = self.config.random.fill(&mut part);
        self.config.clock.monotonic() + PASS + PASS * u32::from(part[0]) / (2 * u32::from(u8::MAX))
    }
}

/// Whether the server has understood and said no: asking again makes no difference.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}
