//! The watch-based Secret manager: one watch per Secret that some pod refers to.
//!
//! What happens when is decided by [`table`]; this file performs it over the API.
//! A value is served for as long as a pod refers to it, also while the watch is broken.

pub mod table;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::{Clock, Timestamp, rfc3339};
use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::data_object::DataObject;
use table::{Action, Event, Key, Kind, Object};

/// How long the answer to a question for a version is waited for.
const VERSION_PATIENCE: Duration = Duration::from_secs(30);

/// Why an object cannot be given. Texts begin as the kubelet's.
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
    #[error("failed to sync {} cache: timed out waiting for the condition: {}", .0.key.kind.name(), .0)]
    NotSynced(Waiting),
    /// The server says that it does not exist.
    #[error("{} \"{}\" not found", .0.name(), .1)]
    NotFound(Kind, String),
}

/// A request whose first answer is waited for (field case N7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// What was asked for.
    pub key: Key,
    /// Since when.
    pub since: Timestamp,
    /// Why the last attempt failed, when one did.
    pub failure: Option<String>,
}

impl fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { kind, namespace, name } = &self.key;
        write!(
            formatter,
            "GET /api/v1/namespaces/{namespace}/{}?fieldSelector=metadata.name={name} has had no good answer since {}",
            kind.plural(),
            rfc3339(self.since),
        )?;
        match &self.failure {
            Some(failure) => write!(formatter, ": {failure}"),
            None => Ok(()),
        }
    }
}

/// The manager. Cheap to clone.
#[derive(Clone)]
pub struct ObjectManager(Arc<Inner>);

struct Inner {
    client: kube::Client,
    clock: Arc<dyn Clock>,
    /// Who is told that an object changed.
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
    value: Option<Arc<DataObject>>,
    /// Since when the first answer is waited for.
    asked: Timestamp,
    /// Why the last attempt to get it failed.
    failure: Option<String>,
    /// Ends the watch.
    stop: Option<CancellationToken>,
    /// Whether the server is being asked for its version.
    checking: bool,
}

impl ObjectManager {
    /// A manager, and the stream of objects that changed.
    pub fn new(client: kube::Client, clock: Arc<dyn Clock>) -> (Self, mpsc::UnboundedReceiver<Key>) {
        let (changed, receiver) = mpsc::unbounded_channel();
        (Self(Arc::new(Inner { client, clock, changed, state: Mutex::default() })), receiver)
    }

    /// Notes what a pod refers to. New references are added before dropped ones are taken away, so that
    /// a shared object never loses its watch in between. No network.
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

    /// The UIDs of the pods that refer to an object.
    pub fn pods_of(&self, key: &Key) -> Vec<String> {
        let state = self.0.state.lock();
        let mut pods: Vec<String> =
            state.pods.iter().filter(|(_, keys)| keys.contains(key)).map(|(uid, _)| uid.clone()).collect();
        pods.sort();
        pods
    }

    /// The object as the watch knows it.
    pub fn get(&self, key: &Key) -> Result<Arc<DataObject>, GetError> {
        let state = self.0.state.lock();
        let Some(entry) = state.objects.get(key) else {
            return Err(GetError::NotRegistered { namespace: key.namespace.clone(), name: key.name.clone() });
        };
        match (&entry.value, entry.object.synced) {
            (Some(value), _) => Ok(value.clone()),
            (None, true) => Err(GetError::NotFound(key.kind, key.name.clone())),
            (None, false) => Err(GetError::NotSynced(Waiting {
                key: key.clone(),
                since: entry.asked,
                failure: entry.failure.clone(),
            })),
        }
    }

    /// Asks the server for the versions of all that a pod refers to; whatever its watch has not told is
    /// watched anew (field case N1). Only metadata is asked for, nothing is waited for, and what is
    /// immutable or still waits for its first answer is left alone.
    pub fn check(&self, pod_uid: &str) {
        let mut state = self.0.state.lock();
        let State { objects, pods } = &mut *state;
        for key in pods.get(pod_uid).into_iter().flatten() {
            let Some(entry) = objects.get_mut(key) else { continue };
            let Some(stop) = entry.stop.clone() else { continue };
            if entry.object.synced && !entry.object.frozen && !entry.checking {
                entry.checking = true;
                tokio::spawn(self.clone().compare(key.clone(), stop));
            }
        }
    }

    async fn compare(self, key: Key, stop: CancellationToken) {
        let found = tokio::select! {
            () = stop.cancelled() => None,
            () = self.0.clock.sleep(VERSION_PATIENCE) => None,
            found = self.version(&key) => found.ok(),
        };
        let mut state = self.0.state.lock();
        let Some(entry) = state.objects.get_mut(&key) else { return };
        entry.checking = false;
        let known = entry.value.as_ref().map(|value| (value.uid.clone(), value.resource_version.clone()));
        // A watch that was started since then has begun with a list of its own.
        if found.is_some_and(|found| found != known) && !stop.is_cancelled() {
            self.apply(&mut state, &key, Event::Differs);
        }
    }

    /// UID and resourceVersion of an object, when it exists.
    async fn version(&self, key: &Key) -> Result<Option<(String, String)>, kube::Error> {
        let Key { kind, namespace, name } = key;
        let client = self.0.client.clone();
        let metadata = match kind {
            Kind::Secret => {
                let found = Api::<Secret>::namespaced(client, namespace).get_metadata_opt(name).await?;
                found.map(|object| object.metadata)
            }
            Kind::ConfigMap => {
                let found = Api::<ConfigMap>::namespaced(client, namespace).get_metadata_opt(name).await?;
                found.map(|object| object.metadata)
            }
        };
        Ok(metadata.map(|metadata| {
            (metadata.uid.unwrap_or_default(), metadata.resource_version.unwrap_or_default())
        }))
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
            asked: self.0.clock.now(),
            failure: None,
            stop: None,
            checking: false,
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
    fn observe(&self, key: &Key, stop: &CancellationToken, found: Option<DataObject>) {
        let mut state = self.0.state.lock();
        if stop.is_cancelled() {
            return;
        }
        let Some(entry) = state.objects.get_mut(key) else { return };
        let value = found.map(Arc::new);
        let same = match (&entry.value, &value) {
            (Some(old), Some(new)) => old.uid == new.uid && old.resource_version == new.resource_version,
            (None, None) => entry.object.synced,
            _ => false,
        };
        let immutable = value.as_ref().is_some_and(|value| value.immutable);
        entry.value = value;
        entry.failure = None;
        self.apply(&mut state, key, Event::Observed { changed: !same, immutable });
    }

    async fn watch(self, key: Key, stop: CancellationToken) {
        let clock = self.0.clock.clone();
        match key.kind {
            Kind::Secret => {
                self.follow::<Secret>(key, stop, |secret| DataObject::from_secret(secret, clock.monotonic()))
                    .await;
            }
            Kind::ConfigMap => {
                self.follow::<ConfigMap>(key, stop, |map| {
                    DataObject::from_config_map(map, clock.monotonic())
                })
                .await;
            }
        }
    }

    async fn follow<K>(&self, key: Key, stop: CancellationToken, data: impl Fn(K) -> DataObject)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let api: Api<K> = Api::namespaced(self.0.client.clone(), &key.namespace);
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
                Some(Ok(watcher::Event::InitApply(object))) => initial = Some(data(object)),
                Some(Ok(watcher::Event::InitDone)) => self.observe(&key, &stop, initial.take()),
                Some(Ok(watcher::Event::Apply(object))) => self.observe(&key, &stop, Some(data(object))),
                Some(Ok(watcher::Event::Delete(_))) => self.observe(&key, &stop, None),
                Some(Err(error)) => self.failed(&key, &error),
            }
        }
    }

    /// The last known value goes on being served; the watcher backs off and starts anew. Before the first
    /// answer that is quiet: the pods that wait say what is slow.
    fn failed(&self, key: &Key, error: &watcher::Error) {
        let failure = failure_text(error);
        let Key { kind, namespace, name } = key;
        let kind = kind.name();
        let mut state = self.0.state.lock();
        let Some(entry) = state.objects.get_mut(key) else { return };
        if entry.object.synced {
            tracing::warn!(kind, namespace, name, failure, "a watch broke");
        } else {
            tracing::debug!(kind, namespace, name, failure, "the first answer is waited for");
        }
        entry.failure = Some(failure);
    }
}

/// The server's own words, or the kind of failure only: texts of decoding errors may quote the object.
pub(crate) fn failure_text(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.message.clone(),
        watcher::Error::WatchError(status) => status.message.clone(),
        watcher::Error::InitialListFailed(_) => "the list failed".to_owned(),
        watcher::Error::WatchStartFailed(_) => "the watch did not start".to_owned(),
        watcher::Error::WatchFailed(_) => "the watch was cut".to_owned(),
        _ => "the watch broke".to_owned(),
    }
}
