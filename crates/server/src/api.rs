//! Puts the server together.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_runtime::metrics::Registry as MetricsRegistry;
use coffer_store::Storage;
use coffer_store::key::{KeyError, Origin};
use coffer_store::registry::{Registry, ResourceConfig};
use coffer_types::random::Random;
use coffer_types::time::Clock;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::HealthCheck;
use crate::kubelet::Kubelets;
use crate::metrics::Metrics;
use crate::ports::{AdmissionChain, Authenticator, Authorizer, CreateOnly, Objects, Startup, UserInfo};
use crate::resources::builtin;
use crate::resources::custom::CustomResources;
use crate::resources::objects::StoredObjects;
use crate::resources::printer::Printer;
use crate::resources::row::Built;
use crate::resources::strategy::{self, Strategy};
use crate::resources::{Resource, Resources};
use crate::serve::pipeline::Pipeline;
use crate::serve::tls::{ServerCertificate, server_config};
use crate::serve::{InProcess, listener};
use crate::service_addresses::Range;
use crate::standard_checks;
use crate::state::Server;
pub use crate::state::{Answer, Make, Route};
use crate::wire::{StorageCodec, Wire};

/// What a server is made of. What is stored needs only the first three.
pub struct ApiServerConfig {
    /// The stores of all resources.
    pub storage: Arc<Storage>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Metrics of the process.
    pub metrics: Arc<MetricsRegistry>,
    /// Addresses of Services.
    pub service_range: Range,
}

/// The stored resources, before there is anybody to ask whether a request may reach them.
///
/// Authentication, authorization and admission look at stored objects, so they are
/// made from this, and the server is made from both.
pub struct Foundation {
    config: ApiServerConfig,
    registries: BTreeMap<(String, String), Arc<dyn Registry>>,
    objects: Arc<StoredObjects>,
    stop: CancellationToken,
}

/// Who is asked about a request, and who answers what is not stored.
pub struct Policy {
    /// Finds out who asks.
    pub authenticator: Arc<dyn Authenticator>,
    /// Decides whether they may.
    pub authorizer: Arc<dyn Authorizer>,
    /// Changes and refuses objects.
    pub admission: AdmissionChain,
    /// Answers of what stores nothing, by `resource.group` or `resource/subresource`.
    pub create_only: BTreeMap<String, Arc<dyn CreateOnly>>,
    /// More documents.
    pub routes: Vec<Route>,
    /// More health checks.
    pub health_checks: Vec<Arc<dyn HealthCheck>>,
    /// Who asks kubelets; without it there are no logs of pods.
    pub kubelets: Option<Kubelets>,
}

/// A running API server.
#[derive(Clone)]
pub struct ApiServer {
    pipeline: Arc<Pipeline>,
    server: Arc<Server>,
    storage: Arc<Storage>,
}

impl Foundation {
    /// Opens the store of every built-in resource. Needs a tokio runtime.
    ///
    /// # Errors
    /// When the store's prefix is no possible key.
    pub fn open(config: ApiServerConfig) -> Result<Self, KeyError> {
        let mut registries: BTreeMap<(String, String), Arc<dyn Registry>> = BTreeMap::new();
        for built in builtin::all().filter(|built| built.stored.is_some()) {
            // The versions of a resource share what is stored; the newest comes first.
            if registries.contains_key(&(built.group.to_owned(), built.plural.to_owned())) {
                continue;
            }
            let Some(codec) = StorageCodec::built_in(built.group, built.version, built.kind) else {
                continue;
            };
            let extension = matches!(built.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
            let origin = if extension { Origin::Extension } else { Origin::BuiltIn };
            let store = config.storage.open(ResourceConfig {
                group: built.group.to_owned(),
                resource: built.plural.to_owned(),
                origin,
                namespaced: built.namespaced,
                codec: Arc::new(codec),
                ttl_seconds: built.behaviour.ttl_seconds,
            })?;
            registries.insert((built.group.to_owned(), built.plural.to_owned()), store);
        }
        let objects = Arc::new(StoredObjects::new());
        Ok(Self { config, registries, objects, stop: CancellationToken::new() })
    }

    /// Stored objects, for authenticators, admission and controllers. They can be used once the
    /// server has been built.
    pub fn objects(&self) -> Arc<dyn Objects> {
        Arc::clone(&self.objects) as Arc<dyn Objects>
    }

    /// Builds the server and starts to serve custom resources as their definitions come and go.
    pub fn build(self, policy: Policy) -> ApiServer {
        let Self { config, registries, objects, stop } = self;
        let resources: Vec<Arc<Resource>> = builtin::all()
            .filter_map(|built| built_in(built, &registries, &policy.create_only, policy.kubelets.is_some()))
            .map(Arc::new)
            .collect();
        let resources = Arc::new(Resources::new(resources));
        let storage = Arc::clone(&config.storage);
        let mut health_checks = standard_checks::all(&storage, &stop);
        health_checks.extend(policy.health_checks);
        let startup = Startup { metrics: Arc::clone(&config.metrics), stop: stop.clone() };
        for plugin in &policy.admission {
            Arc::clone(plugin).start(&startup);
        }
        let server = Arc::new(Server {
            resources,
            authenticator: policy.authenticator,
            authorizer: policy.authorizer,
            admission: policy.admission,
            routes: policy.routes,
            kubelets: policy.kubelets,
            health_checks,
            metrics: Metrics::new(config.metrics, Arc::clone(&storage), Arc::clone(&config.clock)),
            clock: config.clock,
            random: config.random,
            service_range: config.service_range,
            stop: stop.clone(),
        });
        objects.connect(Arc::clone(&server));
        CustomResources::start(Arc::clone(&server), Arc::clone(&storage), objects);
        let pipeline = Arc::new(Pipeline::new(Arc::clone(&server)));
        ApiServer { pipeline, server, storage }
    }
}

/// A row of the table with its store, rules and answerers; `None` where it has none of them.
fn built_in(
    built: &Built,
    registries: &BTreeMap<(String, String), Arc<dyn Registry>>,
    create_only: &BTreeMap<String, Arc<dyn CreateOnly>>,
    logs: bool,
) -> Option<Resource> {
    let strategy: Arc<dyn Strategy> = if built.group == "apiextensions.k8s.io" {
        Arc::new(crate::resources::custom::DefinitionStrategy)
    } else {
        strategy::of(built.group, built.version, built.kind)
    };
    let wire = Wire::built_in(built.group, built.version, built.kind, Some(Arc::clone(&strategy)))?;
    let mut info = built.info();
    let registry = registries.get(&(info.group.clone(), info.plural.clone())).cloned();
    let answerer = create_only.get(&coffer_types::status::qualified(&info.group, &info.plural)).cloned();
    if registry.is_none() && answerer.is_none() {
        return None;
    }
    let mut create_only_subresources = BTreeMap::new();
    info.subresources.retain(|subresource| {
        if matches!(subresource.name.as_str(), "status" | "finalize" | "binding" | "approval") {
            return true;
        }
        if subresource.name == "log" {
            return logs;
        }
        // What nobody answers is not listed.
        let key = format!("{}/{}", built.plural, subresource.name);
        create_only.get(&key).is_some_and(|answerer| {
            create_only_subresources.insert(subresource.name.clone(), Arc::clone(answerer));
            true
        })
    });
    Some(Resource {
        info,
        registry,
        wire,
        strategy,
        create_only: answerer,
        create_only_subresources,
        printer: Printer::BuiltIn(built.group, built.kind),
        scale: None,
        terminating: false,
        deprecation: None,
        definition_version: String::new(),
    })
}

impl ApiServer {
    /// Serves HTTPS until [`ApiServer::shutdown`], then lets open requests end.
    ///
    /// # Errors
    /// When the TLS settings cannot be made.
    pub async fn serve(
        &self,
        listener: TcpListener,
        certificate: Arc<ServerCertificate>,
    ) -> Result<(), rustls::Error> {
        let tls = server_config(certificate)?;
        let (pipeline, clock) = (Arc::clone(&self.pipeline), Arc::clone(&self.server.clock));
        listener::serve(listener, tls, pipeline, clock, self.server.stop.clone()).await;
        Ok(())
    }

    /// A connection without a socket, as `user`.
    pub fn in_process(&self, user: UserInfo) -> InProcess {
        InProcess::new(Arc::clone(&self.pipeline), user)
    }

    /// Whether every cache is filled.
    pub fn ready(&self) -> bool {
        self.storage.ready()
    }

    /// Ends watches, refuses new connections and makes `/readyz` fail.
    pub fn shutdown(&self) {
        self.server.stop.cancel();
    }
}
