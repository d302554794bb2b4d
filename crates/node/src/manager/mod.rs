//! The watch-based Secret manager: one watch per Secret that some pod refers to.
//!
//! What happens when is decided by [`table`]; this file performs it over the API.
//! A value is served for as long as a pod refers to it, also while the watch is broken.

pub mod table;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::watcher::{self, watcher};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::secret::SecretObject;
use table::{Action, Event, Key, Object};

/// Why a Secret cannot be given. Texts are the kubelet's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// No pod refers to it.
    #[error("object \"{namespace}\"/\"{name}\" not registered")]
    NotRegistered {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
    },
    /// The first answer of the server is not there yet.
    #[error("failed to sync secret cache: timed out waiting for the condition")]
    NotSynced,
    /// The server says that it does not exist.
    #[error("secret \"{0}\" not found")]
    NotFound(String),
}

/// The manager. Cheap to clone.
#[derive(Clone)]
pub struct SecretManager(Arc<Inner>);

struct Inner {
    client: kube::Client,
    /// Who is told that a Secret changed.
    changed: mpsc::UnboundedSender<Key>,
    /// Guards the objects and the pods that refer to them; never held across an await.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: HashMap<Key, Entry>,
    /// What each pod (by UID) refers to, as it was registered last.
    pods: HashMap<String, BTreeSet<Key>>,
}

struct Entry {
    object: Object,
    value: Option<Arc<SecretObject>>,
    /// Ends the watch.
    stop: Option<CancellationToken>,
}

impl SecretManager {
    /// A manager, and the stream of Secrets that changed.
    pub fn new(client: kube::Client) -> (Self, mpsc::UnboundedReceiver<Key>) {
        let (changed, receiver) = mpsc::unbounded_channel();
        (Self(Arc::new(Inner { client, changed, state: Mutex::default() })), receiver)
    }

    /// Notes what a pod refers to. New references are added before dropped ones are taken away, so that
    /// a shared Secret never loses its watch in between. No network.
    pub fn register(&self, pod_uid: &str, references: BTreeSet<Key>) {
        let mut state = self.0.state.lock();
        let before = state.pods.insert(pod_uid.to_owned(), references.clone()).unwrap_or_default();
        for key in references.difference(&before) {
            self.apply(&mut state, key, Event::ReferenceAdded);
        }
        for key in before.difference(&references) {
            self.apply(&mut state, key, Event::ReferenceDropped);
        }
    }

    /// Forgets a pod. Idempotent.
    pub fn unregister(&self, pod_uid: &str) {
        let mut state = self.0.state.lock();
        for key in state.pods.remove(pod_uid).unwrap_or_default() {
            self.apply(&mut state, &key, Event::ReferenceDropped);
        }
    }

    /// The UIDs of the pods that refer to a Secret.
    pub fn pods_of(&self, key: &Key) -> Vec<String> {
        let state = self.0.state.lock();
        let mut pods: Vec<String> =
            state.pods.iter().filter(|(_, keys)| keys.contains(key)).map(|(uid, _)| uid.clone()).collect();
        pods.sort();
        pods
    }

    /// The Secret as the watch knows it.
    pub fn get(&self, key: &Key) -> Result<Arc<SecretObject>, GetError> {
        let state = self.0.state.lock();
        let Some(entry) = state.objects.get(key) else {
            return Err(GetError::NotRegistered { namespace: key.namespace.clone(), name: key.name.clone() });
        };
        match (&entry.value, entry.object.synced) {
            (Some(value), _) => Ok(value.clone()),
            (None, true) => Err(GetError::NotFound(key.name.clone())),
            (None, false) => Err(GetError::NotSynced),
        }
    }

    /// Ends all watches.
    pub fn close(&self) {
        for (_, entry) in self.0.state.lock().objects.drain() {
            if let Some(stop) = entry.stop {
                stop.cancel();
            }
        }
    }

    fn apply(&self, state: &mut State, key: &Key, event: Event) {
        let entry = state.objects.entry(key.clone()).or_insert_with(|| Entry {
            object: Object::default(),
            value: None,
            stop: None,
        });
        let (object, actions) = table::step(entry.object, event);
        entry.object = object;
        for action in actions {
            match action {
                Action::StartWatch => {
                    let stop = CancellationToken::new();
                    entry.stop = Some(stop.clone());
                    tokio::spawn(self.clone().watch(key.clone(), stop));
                }
                Action::StopWatch => {
                    if let Some(stop) = entry.stop.take() {
                        stop.cancel();
                    }
                }
                Action::Notify => {
                    // The receiver is gone only when the agent is.
                    let _ = self.0.changed.send(key.clone());
                }
                Action::Forget => {
                    state.objects.remove(key);
                    return;
                }
            }
        }
    }

    /// One answer of the watch.
    fn observe(&self, key: &Key, stop: &CancellationToken, found: Option<Secret>) {
        let mut state = self.0.state.lock();
        if stop.is_cancelled() {
            return;
        }
        let Some(entry) = state.objects.get_mut(key) else { return };
        let value = found.map(|secret| Arc::new(SecretObject::from(secret)));
        let same = match (&entry.value, &value) {
            (Some(old), Some(new)) => old.uid == new.uid && old.resource_version == new.resource_version,
            (None, None) => entry.object.synced,
            _ => false,
        };
        let immutable = value.as_ref().is_some_and(|value| value.immutable);
        entry.value = value;
        self.apply(&mut state, key, Event::Observed { changed: !same, immutable });
    }

    async fn watch(self, key: Key, stop: CancellationToken) {
        let api: Api<Secret> = Api::namespaced(self.0.client.clone(), &key.namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", key.name));
        let mut events = std::pin::pin!(kube::runtime::WatchStreamExt::default_backoff(watcher(api, config)));
        let mut initial = None;
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(Ok(watcher::Event::Init)) => initial = None,
                Some(Ok(watcher::Event::InitApply(secret))) => initial = Some(secret),
                Some(Ok(watcher::Event::InitDone)) => self.observe(&key, &stop, initial.take()),
                Some(Ok(watcher::Event::Apply(secret))) => self.observe(&key, &stop, Some(secret)),
                Some(Ok(watcher::Event::Delete(_))) => self.observe(&key, &stop, None),
                Some(Err(error)) => {
                    // The last known value goes on being served; the watcher backs off and starts anew.
                    let kind = watch_error_kind(&error);
                    tracing::warn!(
                        namespace = key.namespace,
                        name = key.name,
                        kind,
                        "watch of a Secret broke"
                    );
                }
            }
        }
    }
}

/// The kind of failure only: texts of decoding errors may quote the object.
fn watch_error_kind(error: &watcher::Error) -> &'static str {
    match error {
        watcher::Error::InitialListFailed(_) => "list failed",
        watcher::Error::WatchStartFailed(_) => "watch start failed",
        watcher::Error::WatchError(_) => "server ended the watch",
        watcher::Error::WatchFailed(_) => "watch failed",
        _ => "watch broke",
    }
}
