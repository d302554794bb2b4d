//! The stores of all resources over one [`Kv`].

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use coffer_crypto::transformer::Transformer;
use coffer_types::time::Clock;
use parking_lot::Mutex;

use crate::key::KeyError;
use crate::kv::{Kv, Revision};
use crate::registry::{ResourceConfig, Store};
use crate::shared::Shared;

/// Which transformer encrypts a resource, by group and plural.
pub type Transformers = Box<dyn Fn(&str, &str) -> Arc<dyn Transformer> + Send + Sync>;

/// Opens each resource's store once and shares what they have in common.
pub struct Storage {
    shared: Arc<Shared>,
    prefix: String,
    transformers: Mutex<Arc<Transformers>>,
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
            transformers: Mutex::new(Arc::new(transformers)),
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
        let transformer = (self.transformers.lock())(&id.0, &id.1);
        let store = Store::open(config, &self.prefix, transformer, self.shared.clone())?;
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

    /// Uses other transformers from now on, in open stores too. Objects that could not be read are
    /// tried again when they are next read.
    pub fn set_transformers(&self, transformers: Transformers) {
        let stores = self.stores.lock();
        for ((group, resource), store) in &*stores {
            store.swap_transformer(transformers(group, resource));
        }
        *self.transformers.lock() = Arc::new(transformers);
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

    /// The history before `revision` is gone: lists as of then are refused, as the store refuses them.
    pub fn note_compacted(&self, revision: Revision) {
        self.shared.note_compacted(revision);
    }

    /// The key that health checks and the current revision are read with; never written.
    pub fn probe_key(&self) -> Bytes {
        crate::health::probe_key(&self.prefix)
    }
}
