//! Connections to stores, kept while the store and its credentials stay what they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use coffer_providers::contract::{Calls, Context, Provider, ProviderError, Scope, SecretsClient};
use coffer_runtime::api::ObjectKey;
use coffer_runtime::queue::core::backoff;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use parking_lot::Mutex;

use super::StoreKey;
use super::spec::Store;
use crate::access::{Credentials, Recording};
use crate::reads::Reads;

/// A connection that used what no watch tells about (a token, a ConfigMap) is made anew after this time.
const UNWATCHED_AGE: Duration = Duration::from_secs(600);
/// A replaced connection is closed when whoever still uses it has surely ended.
const CLOSE_AFTER: Duration = Duration::from_secs(60);
const BACKOFF_BASE: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// A connection with a number of its own.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) client: Arc<dyn SecretsClient>,
    pub(crate) provider: Arc<dyn Provider>,
}

/// All connections.
pub(crate) struct Manager {
    providers: HashMap<&'static str, Arc<dyn Provider>>,
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    calls: Arc<dyn Calls>,
    reads: Arc<Reads>,
    slots: Mutex<HashMap<(StoreKey, String), SharedSlot>>,
    next: AtomicU64,
}

/// Held while a connection is made, so that others wait for it instead of making another.
type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

#[derive(Default)]
struct Slot {
    made: Option<Made>,
    failures: u32,
}

struct Made {
    uid: String,
    generation: i64,
    at: Duration,
    recording: Arc<Recording>,
    result: Result<Connection, ProviderError>,
}

impl Manager {
    pub(crate) fn new(
        providers: Vec<Arc<dyn Provider>>,
        credentials: Arc<Credentials>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        calls: Arc<dyn Calls>,
        reads: Arc<Reads>,
    ) -> Self {
        let providers = providers.into_iter().map(|provider| (provider.key(), provider)).collect();
        let (slots, next) = (Mutex::default(), AtomicU64::new(1));
        Self { providers, credentials, clock, random, calls, reads, slots, next }
    }

    /// The provider of a store.
    pub(crate) fn provider(
        &self,
        store: &Store,
    ) -> Result<(Arc<dyn Provider>, serde_json::Value), ProviderError> {
        let (key, spec) = store.provider.clone().map_err(ProviderError::Config)?;
        let provider = self.providers.get(key.as_str()).cloned().ok_or_else(|| {
            let name = &store.key.name;
            ProviderError::Config(format!(
                "failed to find registered store backend for type: {key}, name: {name}"
            ))
        })?;
        Ok((provider, spec))
    }

    /// A connection for who asks from `namespace` ("" for the store itself). `fresh` ignores an earlier failure.
    pub(crate) async fn connect(
        &self,
        store: &Store,
        namespace: &str,
        fresh: bool,
    ) -> Result<Connection, ProviderError> {
        let (provider, spec) = self.provider(store)?;
        let namespace = if store.key.cluster { namespace } else { &store.key.namespace };
        let scope = Scope {
            cluster: store.key.cluster,
            store: store.key.name.clone(),
            namespace: namespace.to_owned(),
        };
        // Only credentials that lie with who asks make connections differ.
        let who = if provider.is_referent(&spec, &scope) { namespace } else { "" };
        let slot = self.slots.lock().entry((store.key.clone(), who.to_owned())).or_default().clone();
        let mut slot = slot.lock().await;
        let now = self.clock.monotonic();
        if let Some(made) = &slot.made
            && made.uid == store.uid
            && made.generation == store.generation
            && made.recording.is_current()
        {
            let unwatched = made.recording.unwatched.load(Ordering::Relaxed);
            match &made.result {
                Ok(connection) if !unwatched || now.saturating_sub(made.at) < UNWATCHED_AGE => {
                    return Ok(connection.clone());
                }
                Err(error) if !fresh => {
                    let wait = backoff(BACKOFF_BASE, BACKOFF_MAX, slot.failures.saturating_sub(1));
                    if now < made.at.saturating_add(wait) {
                        return Err(error.clone());
                    }
                }
                _ => {}
            }
        }
        let recording = Arc::new(Recording::new(self.credentials.clone()));
        let context = Context {
            access: recording.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            calls: self.calls.clone(),
            retry: store.retry,
        };
        let client = provider.connect(&spec, &scope, &context).await;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let result = client.map(|client| Connection { number, client, provider });
        slot.failures = if result.is_err() { slot.failures.saturating_add(1) } else { 0 };
        let made = Made {
            uid: store.uid.clone(),
            generation: store.generation,
            at: now,
            recording,
            result: result.clone(),
        };
        if let Some(old) = slot.made.replace(made) {
            self.retire(old);
        }
        result
    }

    /// The Secrets that a store's connections read.
    pub(crate) async fn credentials_of(&self, key: &StoreKey) -> Vec<ObjectKey> {
        let slots: Vec<_> = self
            .slots
            .lock()
            .iter()
            .filter(|((store, _), _)| store == key)
            .map(|(_, slot)| slot.clone())
            .collect();
        let mut found = Vec::new();
        for slot in slots {
            if let Some(made) = &slot.lock().await.made {
                found.extend(made.recording.secrets());
            }
        }
        found
    }

    /// Ends the connections of a store that is gone.
    pub(crate) async fn forget(&self, key: &StoreKey) {
        let slots: Vec<_> = {
            let mut all = self.slots.lock();
            let keys: Vec<_> = all.keys().filter(|(store, _)| store == key).cloned().collect();
            keys.iter().filter_map(|key| all.remove(key)).collect()
        };
        for slot in slots {
            if let Some(old) = slot.lock().await.made.take() {
                self.retire(old);
            }
        }
    }

    /// Ends all connections, at shutdown.
    pub(crate) async fn close(&self) {
        let slots: Vec<_> = self.slots.lock().drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            if let Some(Made { result: Ok(connection), .. }) = slot.lock().await.made.take() {
                connection.client.close().await;
            }
        }
    }

    fn retire(&self, old: Made) {
        let Ok(connection) = old.result else { return };
        self.reads.forget(connection.number);
        let clock = self.clock.clone();
        tokio::spawn(async move {
            clock.sleep(CLOSE_AFTER).await;
            connection.client.close().await;
        });
    }
}
