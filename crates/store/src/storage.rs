//! The stores of all resources over one [`Kv`].

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;

use crate::key::KeyError;
use crate::kv::{Kv, KvError, Revision};
use crate::registry::sealing::InUse;
pub use crate::registry::sealing::Transformers;
use crate::registry::{ResourceConfig, Store};
use crate::shared::Shared;
use crate::statistics::{Observed, Statistics};

/// Opens each resource's store once and shares what they have in common.
pub struct Storage {
    shared: Arc<Shared>,
    prefix: String,
    in_use: Arc<InUse>,
    stores: Mutex<HashMap<(String, String), Arc<Store>>>,
}

impl Storage {
    /// `prefix` is `--etcd-prefix`.
    pub fn new(
        kv: Arc<dyn Kv>,
        clock: Arc<dyn Clock>,
        prefix: &str,
        transformers: Transformers,
    ) -> Arc<Self> {
        let probe = crate::health::probe_key(prefix);
        Arc::new(Self {
            shared: Arc::new(Shared::new(kv, clock, probe)),
            prefix: prefix.to_owned(),
            in_use: InUse::new(transformers),
            stores: Mutex::default(),
        })
    }

    /// The store of a resource, opened with `config` at the first call. Needs a tokio runtime.
    pub fn open(&self, config: ResourceConfig) -> Result<Arc<Store>, KeyError> {
        let id = (config.group.clone(), config.resource.clone());
        let mut stores = self.stores.lock();
        if let Some(store) = stores.get(&id) {
            return Ok(store.clone());
        }
        let store = Store::open(config, &self.prefix, self.in_use.clone(), self.shared.clone())?;
        stores.insert(id, store.clone());
        Ok(store)
    }

    /// Closes a resource's store: its watches end, and the next [`Storage::open`] makes a new one.
    pub fn close(&self, group: &str, resource: &str) {
        let store = self.stores.lock().remove(&(group.to_owned(), resource.to_owned()));
        if let Some(store) = store {
            store.close();
        }
    }

    /// Closes all stores.
    pub fn close_all(&self) {
        for (_, store) in self.stores.lock().drain() {
            store.close();
        }
    }

    /// Uses other transformers from now on, for all resources at the same moment. Objects that could not
    /// be read are tried again when they are next read.
    pub fn set_transformers(&self, transformers: Transformers) {
        self.in_use.replace(transformers);
        // A resource that nobody uses would keep the old keys in memory.
        for store in self.stores.lock().values() {
            store.look_at_transformers();
        }
    }

    /// Whether the caches of all open stores are filled.
    pub fn ready(&self) -> bool {
        self.not_ready().is_empty()
    }

    /// The open resources whose caches are not filled, as `resource.group`.
    pub fn not_ready(&self) -> Vec<String> {
        let stores = self.stores.lock();
        let unready = stores.iter().filter(|(_, store)| !crate::registry::Registry::ready(&***store));
        let mut names: Vec<_> =
            unready.map(|((group, resource), _)| coffer_types::status::qualified(group, resource)).collect();
        names.sort_unstable();
        names
    }

    /// How many stored objects cannot be read, as `resource.group`; resources without any are left out.
    pub fn unreadable(&self) -> Vec<(String, usize)> {
        let stores = self.stores.lock();
        let counts = stores.iter().map(|((group, resource), store)| {
            (coffer_types::status::qualified(group, resource), store.unreadable())
        });
        let mut counts: Vec<_> = counts.filter(|(_, count)| 0 < *count).collect();
        counts.sort_unstable();
        counts
    }

    /// What the caches of all open stores hold and have done, by group and resource.
    pub fn statistics(&self) -> Vec<Statistics> {
        let stores: Vec<_> = self.stores.lock().values().cloned().collect();
        let mut all: Vec<_> = stores.iter().map(|store| store.statistics()).collect();
        all.sort_unstable_by(|one, other| (&one.group, &one.resource).cmp(&(&other.group, &other.resource)));
        all
    }

    /// How many objects shared a lease, each time that one was replaced.
    pub fn lease_objects(&self) -> Observed {
        self.shared.lease_objects.observed()
    }

    /// How many round trips to the store have answered reads that share them.
    pub fn round_trips(&self) -> u64 {
        self.shared.round_trips.made()
    }

    /// Bytes that the store takes on disk.
    pub async fn size(&self) -> Result<u64, KvError> {
        self.shared.kv.size().await
    }

    /// How often each aesgcm key, by name, has encrypted since the start of the process.
    pub fn key_writes(&self) -> Vec<(String, u64)> {
        self.in_use.key_writes().all()
    }

    /// Why the store takes no writes for now.
    pub async fn alarm(&self) -> Option<String> {
        self.shared.kv.alarm().await
    }

    /// The history before `revision` is gone: lists as of then are refused, as the store refuses them.
    pub fn note_compacted(&self, revision: Revision) {
        self.shared.note_compacted(revision);
    }

    /// The key that health checks and the current revision are read with; never written.
    pub fn probe_key(&self) -> Bytes {
        crate::health::probe_key(&self.prefix)
    }
}
