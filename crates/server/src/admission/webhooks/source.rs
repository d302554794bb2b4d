//! The configured webhooks, as the stored configurations say it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::time::Clock;
use futures::StreamExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Phase;
use super::hook::Hook;
use crate::ports::{Change, Interest, Objects};
use crate::webhook::{Services, Target, WebhookClient};

/// How long a request waits for the first state: upstream's.
const READY_WAIT: Duration = Duration::from_secs(10);
/// How long a write of a configuration waits until the configuration is followed.
const CAUGHT_UP_WAIT: Duration = Duration::from_secs(1);

/// Follows the configurations of one phase.
pub(super) struct Source {
    phase: Phase,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    state: watch::Sender<State>,
}

/// What is known of the configurations.
#[derive(Default, Clone)]
struct State {
    /// Whether anything is known at all.
    known: bool,
    /// By name, which is the order in which they are asked.
    configurations: BTreeMap<String, Configuration>,
    /// All webhooks in their order.
    hooks: Arc<[Arc<Hook>]>,
}

#[derive(Clone)]
struct Configuration {
    uid: String,
    version: u64,
    hooks: Vec<Arc<Hook>>,
}

impl Source {
    pub(super) fn new(phase: Phase, objects: Arc<dyn Objects>, clock: Arc<dyn Clock>) -> Self {
        Self { phase, objects, clock, state: watch::Sender::new(State::default()) }
    }

    /// All webhooks, or `None` when nothing is known of them in time.
    pub(super) async fn hooks(&self) -> Option<Arc<[Arc<Hook>]>> {
        {
            let state = self.state.borrow();
            if state.known {
                return Some(Arc::clone(&state.hooks));
            }
        }
        self.wait(READY_WAIT, |state| state.known).await.map(|state| state.hooks)
    }

    async fn wait(&self, limit: Duration, is: impl Fn(&State) -> bool + Send) -> Option<State> {
        let mut states = self.state.subscribe();
        tokio::select! {
            state = states.wait_for(|state| is(state)) => state.ok().map(|state| state.clone()),
            () = self.clock.sleep(limit) => None,
        }
    }

    /// Follows until the server stops.
    pub(super) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.objects.watch(&self.phase.resource(), Interest::Whole);
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
            state.hooks = state.configurations.values().flat_map(|one| one.hooks.iter().cloned()).collect();
        });
    }

    /// Reads a configuration. Who is called as before is called over the connections from before.
    fn read(&self, configuration: &Value, state: &State) -> Configuration {
        let hooks = Hook::all_of(configuration, &mut |address| {
            let same = state.hooks.iter().find(|hook| hook.address == *address);
            match same {
                Some(hook) => Arc::clone(&hook.client),
                None => Arc::new(self.client(address)),
            }
        });
        Configuration {
            uid: configuration.uid().to_owned(),
            version: configuration.resource_version().parse().unwrap_or_default(),
            hooks,
        }
    }

    fn client(&self, address: &Value) -> Result<WebhookClient, String> {
        let services = Arc::new(Services(Arc::clone(&self.objects)));
        Target::of(address).and_then(|target| WebhookClient::new(target, services, Arc::clone(&self.clock)))
    }

    /// Returns once all is followed that is stored now. A client that has written a configuration is asked
    /// about in its next request.
    pub(super) async fn caught_up(&self) {
        let Ok(stored) = self.objects.list(&self.phase.resource(), "").await else { return };
        let stored: BTreeMap<String, (String, u64)> = stored
            .iter()
            .map(|one| {
                let version = one.resource_version().parse().unwrap_or_default();
                (one.name().to_owned(), (one.uid().to_owned(), version))
            })
            .collect();
        let newest = stored.values().map(|(_, version)| *version).max().unwrap_or_default();
        let followed = |state: &State| {
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
