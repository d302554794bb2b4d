//! External-Secrets-compatible controllers.
//!
//! ExternalSecret, SecretStore and ClusterSecretStore with upstream's group,
//! versions, conditions, hashes and names, so that they can be exchanged with the
//! original on a running cluster. What is decided stands in
//! `external_secret/machine.rs`; everything else performs it.
//! Absent on purpose: full copies of the cluster's Secrets in memory, a remote
//! read for each object that needs the same value, and waiting for a store on
//! behalf of an object that is being deleted.

mod access;
pub mod crd;
mod external_secret;
mod hash;
mod metrics;
mod reads;
mod secret;
mod shared;
pub mod source;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::Provider;
use coffer_runtime::api::{Api, NAMESPACES, ObjectKey, Resource, SECRETS};
use coffer_runtime::events;
use coffer_runtime::informer::{self, Change, Informer, Kept};
use coffer_runtime::lease::{Election, ElectionConfig, Ended};
use coffer_runtime::metrics::Registry;
use coffer_runtime::queue::{QueueConfig, WorkQueue};
use coffer_types::random::Random;
use coffer_types::time::Clock;
use kube::api::{DynamicObject, PartialObjectMeta};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use access::{Credentials, SecretMeta};
use external_secret::spec::ExternalSecret;
use external_secret::target::{HASH_ANNOTATION, MANAGED_LABEL, OWNER_LABEL};
use shared::{CLUSTER_SECRET_STORES, Caches, EXTERNAL_SECRETS, SECRET_STORES, Settings, Shared};
use store::manager::Manager;
use store::spec::Store;

/// What the operator is started with; the fields are named after upstream's flags.
pub struct OperatorConfig {
    /// The API server, over HTTPS or in the same process.
    pub client: kube::Client,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Where metrics go.
    pub metrics: Arc<Registry>,
    /// The external stores; [`coffer_providers::all`] for every one that is built in.
    pub providers: Vec<Arc<dyn Provider>>,
    /// `--namespace`: "" for all.
    pub namespace: String,
    /// `--controller-class`.
    pub controller_class: String,
    /// `--concurrent`: how many ExternalSecrets of one store run at once.
    pub concurrent: usize,
    /// `--store-requeue-interval`.
    pub store_requeue_interval: Duration,
    /// `--enable-flood-gate`.
    pub enable_flood_gate: bool,
    /// `--enable-cluster-store-reconciler`.
    pub enable_cluster_store_reconciler: bool,
    /// `--enable-secret-store-reconciler`.
    pub enable_secret_store_reconciler: bool,
    /// `--refuse-foreign-keys`: refuse to take over a Secret that holds keys of others, instead of dropping them with a warning.
    pub refuse_foreign_keys: bool,
    /// `--record-source-versions`: write the version of each remote value that the last sync used into the annotation
    /// `coffer.dev/source-versions` of the ExternalSecret. Upstream writes none.
    pub record_source_versions: bool,
    /// `--enable-leader-election` and its times.
    pub leader_election: Option<ElectionConfig>,
    /// Cancelled, as a signal, once the caches are filled.
    pub synced: CancellationToken,
}

impl OperatorConfig {
    /// Upstream's defaults.
    pub fn new(client: kube::Client, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self {
            client,
            clock,
            random,
            metrics: Arc::default(),
            providers: coffer_providers::all(),
            namespace: String::new(),
            controller_class: "default".to_owned(),
            concurrent: 1,
            store_requeue_interval: store::controller::DEFAULT_REQUEUE,
            enable_flood_gate: true,
            enable_cluster_store_reconciler: true,
            enable_secret_store_reconciler: true,
            refuse_foreign_keys: false,
            record_source_versions: true,
            leader_election: None,
            synced: CancellationToken::new(),
        }
    }
}

/// Runs until `stop`, or until leadership is lost. CustomResourceDefinitions that are not installed yet are
/// waited for.
///
/// A standby fills its caches before it stands for election, so that it takes over warm.
pub async fn run(config: OperatorConfig, stop: CancellationToken) -> Ended {
    let api = Api::new(config.client.clone());
    let clock = config.clock.clone();
    let (recorder, writer) = events::channel("external-secrets", api.clone(), clock.clone());
    let shared = Arc::new(share(&config, api.clone(), recorder));
    let queue_config = QueueConfig { per_lane: config.concurrent.max(1), ..QueueConfig::default() };
    let secrets_queue = Arc::new(WorkQueue::new(queue_config, clock.clone()));
    let stores_queue = Arc::new(WorkQueue::new(queue_config, clock.clone()));
    let secrets =
        Arc::new(external_secret::controller::Controller::new(shared.clone(), secrets_queue.clone()));
    let stores = Arc::new(store::controller::Controller::new(shared.clone(), stores_queue.clone()));

    // What ends with the leadership ends the watches too.
    let end = stop.child_token();
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run(end.clone()));
    let watches = Watches {
        shared: shared.clone(),
        client: config.client,
        namespace: config.namespace,
        stop: end.clone(),
    };
    watches.spawn(&mut tasks, &secrets, &stores);

    let reconcile = |stop: CancellationToken| {
        let run_stores = {
            let stores = stores.clone();
            stores_queue.run(stop.clone(), move |work| stores.clone().reconcile(work))
        };
        let run_secrets = {
            let secrets = secrets.clone();
            secrets_queue.run(stop, move |work| secrets.clone().reconcile(work))
        };
        async move {
            tokio::join!(run_stores, run_secrets);
        }
    };
    let synced = tokio::select! {
        () = stop.cancelled() => false,
        () = watches.synced() => true,
    };
    let ended = match config.leader_election {
        _ if !synced => Ended::Shutdown,
        election => {
            tracing::info!("the operator's caches are filled");
            config.synced.cancel();
            match election {
                None => {
                    reconcile(stop.clone()).await;
                    Ended::Shutdown
                }
                Some(election) => Election::new(election, api, clock).run(stop.clone(), reconcile).await,
            }
        }
    };
    end.cancel();
    shared.manager.close().await;
    while tasks.join_next().await.is_some() {}
    ended
}

fn share(config: &OperatorConfig, api: Api, recorder: events::Recorder) -> Shared {
    let metrics = Arc::new(metrics::Metrics::new(&config.metrics));
    let reads = Arc::new(reads::Reads::new(config.clock.clone()));
    let caches = Caches::default();
    let credentials = Arc::new(Credentials::new(api.clone(), caches.secrets.clone()));
    let manager = Manager::new(
        config.providers.clone(),
        credentials,
        config.clock.clone(),
        config.random.clone(),
        metrics.clone(),
        reads.clone(),
    );
    let settings = Settings {
        controller_class: config.controller_class.clone(),
        store_requeue_interval: config.store_requeue_interval,
        flood_gate: config.enable_flood_gate,
        cluster_stores: config.enable_cluster_store_reconciler && config.namespace.is_empty(),
        secret_stores: config.enable_secret_store_reconciler,
        refuse_foreign_keys: config.refuse_foreign_keys,
        record_source_versions: config.record_source_versions,
    };
    Shared { api, clock: config.clock.clone(), caches, manager, reads, metrics, recorder, settings }
}

/// The watches that fill the caches and wake the controllers.
struct Watches {
    shared: Arc<Shared>,
    client: kube::Client,
    namespace: String,
    stop: CancellationToken,
}

impl Watches {
    fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        secrets: &Arc<external_secret::controller::Controller>,
        stores: &Arc<store::controller::Controller>,
    ) {
        let caches = &self.shared.caches;
        let controller = secrets.clone();
        let changed = move |change: Change<'_, ExternalSecret>| controller.changed(&change);
        self.objects(
            tasks,
            &EXTERNAL_SECRETS,
            caches.external_secrets.clone(),
            keep_external_secret,
            changed,
        );

        let kinds = [
            (&SECRET_STORES, &caches.secret_stores, self.shared.settings.secret_stores),
            (&CLUSTER_SECRET_STORES, &caches.cluster_stores, self.shared.settings.cluster_stores),
        ];
        for (resource, cache, validated) in kinds {
            if !resource.namespaced && !self.namespace.is_empty() {
                continue;
            }
            let (secrets, stores) = (secrets.clone(), stores.clone());
            let changed = move |change: Change<'_, Store>| {
                if validated {
                    stores.changed(&change);
                }
                if let Some(store) = &change.new {
                    secrets.store_changed(store);
                }
            };
            let cluster = !resource.namespaced;
            self.objects(tasks, resource, cache.clone(), move |json| keep_store(&json, cluster), changed);
        }

        let (secrets, stores) = (secrets.clone(), stores.clone());
        let changed = move |change: Change<'_, SecretMeta>| {
            stores.secret_changed(&change);
            secrets.secret_changed(&change);
        };
        self.metadata(tasks, &SECRETS, caches.secrets.clone(), keep_secret, changed);
        if self.namespace.is_empty() {
            self.metadata(tasks, &NAMESPACES, caches.namespaces.clone(), keep_namespace, |_| {});
        }
    }

    fn objects<T: Send + Sync + 'static>(
        &self,
        tasks: &mut JoinSet<()>,
        resource: &Resource,
        cache: Arc<Informer<T>>,
        keep: impl Fn(serde_json::Value) -> Option<Kept<T>> + Send + 'static,
        changed: impl Fn(Change<'_, T>) + Send + 'static,
    ) {
        let events = informer::objects(self.client.clone(), resource, &self.namespace);
        let (clock, stop) = (self.shared.clock.clone(), self.stop.clone());
        let keep = move |object: DynamicObject| keep(serde_json::to_value(object).ok()?);
        tasks.spawn(async move { cache.run(events, keep, changed, clock.as_ref(), stop).await });
    }

    fn metadata<T: Send + Sync + 'static>(
        &self,
        tasks: &mut JoinSet<()>,
        resource: &Resource,
        cache: Arc<Informer<T>>,
        keep: impl Fn(PartialObjectMeta<DynamicObject>) -> Option<Kept<T>> + Send + 'static,
        changed: impl Fn(Change<'_, T>) + Send + 'static,
    ) {
        let events = informer::metadata(self.client.clone(), resource, &self.namespace);
        let (clock, stop) = (self.shared.clock.clone(), self.stop.clone());
        tasks.spawn(async move { cache.run(events, keep, changed, clock.as_ref(), stop).await });
    }

    /// Waits until every cache holds what is there.
    async fn synced(&self) {
        let caches = &self.shared.caches;
        caches.external_secrets.wait_synced().await;
        caches.secret_stores.wait_synced().await;
        caches.secrets.wait_synced().await;
        if self.namespace.is_empty() {
            caches.cluster_stores.wait_synced().await;
            caches.namespaces.wait_synced().await;
        }
    }
}

fn keep_external_secret(object: serde_json::Value) -> Option<Kept<ExternalSecret>> {
    let parsed = ExternalSecret::parse(&object)?;
    Some(Kept { key: parsed.key.clone(), resource_version: parsed.resource_version.clone(), object: parsed })
}

fn keep_store(object: &serde_json::Value, cluster: bool) -> Option<Kept<Store>> {
    let store = Store::parse(object, cluster)?;
    let key = ObjectKey::new(store.key.namespace.clone(), store.key.name.clone());
    Some(Kept { key, resource_version: store.resource_version.clone(), object: store })
}

fn keep_secret(object: PartialObjectMeta<DynamicObject>) -> Option<Kept<SecretMeta>> {
    let metadata = object.metadata;
    let text = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned().unwrap_or_default()
    };
    let controller = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let meta = SecretMeta {
        uid: metadata.uid.unwrap_or_default(),
        managed: text(&metadata.labels, MANAGED_LABEL) == "true",
        created_by: text(&metadata.labels, OWNER_LABEL),
        data_hash: text(&metadata.annotations, HASH_ANNOTATION),
        controller: controller.map(|owner| (owner.kind.clone(), owner.name.clone(), owner.uid.clone())),
    };
    let key = ObjectKey::new(metadata.namespace.unwrap_or_default(), metadata.name?);
    Some(Kept { key, resource_version: metadata.resource_version.unwrap_or_default(), object: meta })
}

fn keep_namespace(object: PartialObjectMeta<DynamicObject>) -> Option<Kept<BTreeMap<String, String>>> {
    let metadata = object.metadata;
    let resource_version = metadata.resource_version.unwrap_or_default();
    let object = metadata.labels.unwrap_or_default();
    Some(Kept { key: ObjectKey::new("", metadata.name?), resource_version, object })
}
