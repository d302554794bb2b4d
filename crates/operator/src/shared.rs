//! What both controllers see: the caches, the API, the connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::api::{Api, ObjectKey, Resource};
use coffer_runtime::events::Recorder;
use coffer_runtime::informer::Informer;
use coffer_types::time::Clock;

use crate::access::SecretMeta;
use crate::external_secret::spec::ExternalSecret;
use crate::metrics::Metrics;
use crate::reads::Reads;
use crate::store::StoreKey;
use crate::store::manager::Manager;
use crate::store::spec::Store;

pub(crate) const EXTERNAL_SECRETS: Resource =
    Resource::namespaced("external-secrets.io", "v1", "externalsecrets", "ExternalSecret");
pub(crate) const SECRET_STORES: Resource =
    Resource::namespaced("external-secrets.io", "v1", "secretstores", "SecretStore");
pub(crate) const CLUSTER_SECRET_STORES: Resource =
    Resource::cluster("external-secrets.io", "v1", "clustersecretstores", "ClusterSecretStore");

/// What the flags set.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) controller_class: String,
    pub(crate) store_requeue_interval: Duration,
    pub(crate) flood_gate: bool,
    pub(crate) cluster_stores: bool,
    pub(crate) secret_stores: bool,
    pub(crate) refuse_foreign_keys: bool,
    pub(crate) record_source_versions: bool,
}

/// The caches.
#[derive(Default)]
pub(crate) struct Caches {
    pub(crate) external_secrets: Arc<Informer<ExternalSecret>>,
    pub(crate) secret_stores: Arc<Informer<Store>>,
    pub(crate) cluster_stores: Arc<Informer<Store>>,
    /// Metadata of every Secret, never a value.
    pub(crate) secrets: Arc<Informer<SecretMeta>>,
    /// Labels of every namespace.
    pub(crate) namespaces: Arc<Informer<BTreeMap<String, String>>>,
}

/// Everything that is shared.
pub(crate) struct Shared {
    pub(crate) api: Api,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) caches: Caches,
    pub(crate) manager: Manager,
    pub(crate) reads: Arc<Reads>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) recorder: Recorder,
    pub(crate) settings: Settings,
}

impl Shared {
    /// A store by its key.
    pub(crate) fn store(&self, key: &StoreKey) -> Option<Arc<Store>> {
        let stores = if key.cluster { &self.caches.cluster_stores } else { &self.caches.secret_stores };
        stores.get(&ObjectKey::new(key.namespace.clone(), key.name.clone()))
    }

    /// Whether a store's class lets this controller act.
    pub(crate) fn is_ours(&self, store: &Store) -> bool {
        store.class.is_empty() || store.class == self.settings.controller_class
    }
}
