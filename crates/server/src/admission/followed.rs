//! What stored objects configure: webhooks, policies and their bindings, read once for each version of an object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::time::Clock;
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::ports::{Change, GroupResource, Interest, Objects};

/// How long a request waits for the first state: upstream's.
const READY_WAIT: Duration = Duration::from_secs(10);
/// How long a write of a configuration waits until the configuration is followed.
const CAUGHT_UP_WAIT: Duration = Duration::from_secs(1);

/// Makes of an object what it configures; those that are known by now are given too.
type Read<T> = Box<dyn Fn(&Value, &[Arc<T>]) -> Vec<Arc<T>> + Send + Sync>;

/// Follows the objects of one resource.
pub(super) struct Followed<T> {
    resource: GroupResource,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    read: Read<T>,
    state: watch::Sender<State<T>>,
}

/// What is known of the configurations.
struct State<T> {
    /// Whether anything is known at all.
    known: bool,
    /// By name, which is the order in which they are asked.
    configurations: BTreeMap<String, Configuration<T>>,
    /// All that is configured, in its order.
    items: Arc<[Arc<T>]>,
}

struct Configuration<T> {
    uid: String,
    version: u64,
    items: Vec<Arc<T>>,
}

impl<T: Send + Sync + 'static> Followed<T> {
    pub(super) fn new(
        resource: GroupResource,
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        read: impl Fn(&Value, &[Arc<T>]) -> Vec<Arc<T>> + Send + Sync + 'static,
    ) -> Self {
        let state = State { known: false, configurations: BTreeMap::new(), items: Arc::default() };
        Self { resource, objects, clock, read: Box::new(read), state: watch::Sender::new(state) }
    }

    /// All that is configured, or `None` when nothing is known of it in time.
    pub(super) async fn items(&self) -> Option<Arc<[Arc<T>]>> {
        {
            let state = self.state.borrow();
            if state.known {
                return Some(Arc::clone(&state.items));
            }
        }
        self.wait(READY_WAIT, |state| state.known).await
    }

    async fn wait(&self, limit: Duration, is: impl Fn(&State<T>) -> bool + Send) -> Option<Arc<[Arc<T>]>> {
        let mut states = self.state.subscribe();
        tokio::select! {
            state = states.wait_for(|state| is(state)) => state.ok().map(|state| Arc::clone(&state.items)),
            () = self.clock.sleep(limit) => None,
        }
    }

    /// Follows until the server stops.
    pub(super) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.objects.watch(&self.resource, Interest::Whole);
        loop {
            let change = tokio::select! {
                change = changes.next() => change,
                () = stop.cancelled() => return,
            };
            match change {
                Some(change) => self.take(change),
                None => return,
            }
        }
    }

    /// Takes over what has changed.
    pub(super) fn take(&self, change: Change) {
        self.state.send_modify(|state| {
            match change {
                Change::Reset(all) => {
                    let fresh = all.iter().map(|one| (one.name().to_owned(), self.read(one, state)));
                    state.configurations = fresh.collect();
                }
                Change::Applied(one) => {
                    let read = self.read(&one, state);
                    state.configurations.insert(one.name().to_owned(), read);
                }
                Change::Deleted(one) => {
                    state.configurations.remove(one.name());
                }
            }
            state.known = true;
            state.items = state.configurations.values().flat_map(|one| one.items.iter().cloned()).collect();
        });
    }

    fn read(&self, configuration: &Value, state: &State<T>) -> Configuration<T> {
        Configuration {
            uid: configuration.uid().to_owned(),
            version: configuration.resource_version().parse().unwrap_or_default(),
            items: (self.read)(configuration, &state.items),
        }
    }

    /// Returns once all is followed that is stored now. A client that has written a configuration is asked
    /// about in its next request.
    pub(super) async fn caught_up(&self) {
        let Ok(stored) = self.objects.list(&self.resource, "").await else { return };
        let stored: BTreeMap<String, (String, u64)> = stored
            .iter()
            .map(|one| {
                let version = one.resource_version().parse().unwrap_or_default();
                (one.name().to_owned(), (one.uid().to_owned(), version))
            })
            .collect();
        let newest = stored.values().map(|(_, version)| *version).max().unwrap_or_default();
        let followed = |state: &State<T>| {
            let has = stored.iter().all(|(name, (_, version))| {
                state.configurations.get(name).is_none_or(|own| *version <= own.version)
            });
            // What is there no more, unless it has come since.
            let all_there = stored.keys().all(|name| state.configurations.contains_key(name));
            let gone = state.configurations.iter().all(|(name, own)| {
                stored.get(name).is_some_and(|(uid, _)| *uid == own.uid) || newest < own.version
            });
            state.known && has && all_there && gone
        };
        let _in_time = self.wait(CAUGHT_UP_WAIT, followed).await;
    }
}
