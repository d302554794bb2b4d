//! Puts the parts together: what `up`, `apiserver` and `demo` start.

pub(crate) mod at_rest;
pub(crate) mod audit;
pub(crate) mod certificate;
pub(crate) mod data_dir;
pub(crate) mod encryption;
mod in_use;
pub(crate) mod listen;
pub(crate) mod policy;
#[cfg(test)]
mod slow_store;
pub(crate) mod store;
pub(crate) mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_runtime::metrics::Registry as MetricsRegistry;
use coffer_server::api::{ApiServer, ApiServerConfig, Foundation};
use coffer_server::controllers;
use coffer_server::kubelet::Kubelets;
use coffer_server::security::{Security, SecurityConfig, SecurityError};
use coffer_store::Storage;
use coffer_store::compactor::{Compactor, DEFAULT_INTERVAL};
use coffer_store::kv::Kv;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;
use encryption::{Configured, by_resource};

/// How long the server may take until every cache is filled.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// What an API server is started with.
pub(crate) struct ServerOptions {
    pub(crate) kv: Arc<dyn Kv>,
    /// `--etcd-prefix`.
    pub(crate) prefix: String,
    pub(crate) encryption: Configured,
    pub(crate) security: SecurityConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) timeouts: policy::CheckTimeouts,
    /// Who asks kubelets for logs.
    pub(crate) kubelets: Option<Kubelets>,
}

/// Why an API server cannot be started; whoever named the files knows which one it is.
pub(crate) enum StartError {
    /// `--etcd-prefix` cannot be one.
    Prefix(String),
    /// Keys, certificates or tokens that cannot be used.
    Security(SecurityError),
}

/// A running API server with its controllers.
pub(crate) struct ControlPlane {
    pub(crate) server: ApiServer,
    /// What `/metrics` shows.
    pub(crate) metrics: Arc<MetricsRegistry>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// Set when the policy is known to the authorizer, and when the bootstrap policy is stored.
    policy: [Arc<AtomicBool>; 2],
    clock: Arc<dyn Clock>,
}

impl ControlPlane {
    /// Opens the stored resources and starts the controllers. Serves nobody yet.
    pub(crate) fn start(options: ServerOptions) -> Result<Self, StartError> {
        let ServerOptions { kv, prefix, encryption, security, clock, random, timeouts, kubelets } = options;
        let Configured { encryption, watched, metrics } = encryption;
        let transformers = by_resource(encryption.current().transformers());
        let storage = Storage::new(kv.clone(), clock.clone(), &prefix, transformers);
        let foundation = Foundation::open(ApiServerConfig {
            storage: storage.clone(),
            clock: clock.clone(),
            random: random.clone(),
            metrics: metrics.clone(),
            service_range: security.service_range,
        })
        .map_err(|error| StartError::Prefix(error.to_string()))?;
        let objects = foundation.objects();
        let security =
            Security::new(security, objects.clone(), clock.clone(), random).map_err(StartError::Security)?;
        let mut policy = policy::policy(&security);
        policy.kubelets = kubelets;
        policy.routes.push(at_rest::route(kv.clone(), &prefix, encryption.clone()));
        policy.routes.push(audit::route(&kv, &prefix, &encryption, &clock));
        policy.routes.push(stored::route(&kv, &prefix, &encryption));
        if let Some(watched) = &watched {
            policy.routes.push(in_use::route(encryption.clone(), watched));
        }
        policy.health_checks.extend(policy::store_checks(&kv, &clock, &prefix, timeouts));
        policy.health_checks.extend(encryption.health_checks());
        let server = foundation.build(policy);

        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        if let Some(watched) = watched {
            tasks.spawn(watched.reloader(encryption, storage.clone()).run());
        }
        let policy_fed = Arc::new(AtomicBool::new(false));
        tasks.spawn(controllers::feed_policy(security.rbac, objects.clone(), policy_fed.clone()));
        tasks.spawn(controllers::feed_node_graph(security.node, objects.clone()));
        for controller in security.controllers {
            tasks.spawn(controllers::run(controller, objects.clone(), clock.clone()));
        }
        let compacted = Box::new(move |revision| storage.note_compacted(revision));
        tasks.spawn(Compactor::new(kv, clock.clone(), DEFAULT_INTERVAL, compacted).run(stop.clone()));
        Ok(Self { server, metrics, tasks, stop, policy: [policy_fed, security.policy_ready], clock })
    }

    /// Waits until every cache is filled and the policy is known.
    pub(crate) async fn wait_ready(&self) -> Result<(), Failure> {
        let until = self.clock.monotonic() + READY_LIMIT;
        let policy = || self.policy.iter().all(|ready| ready.load(Ordering::Acquire));
        while !(self.server.ready() && policy()) {
            if self.clock.monotonic() > until {
                return Err(Failure::timed_out(format!(
                    "the store did not answer within {} s",
                    READY_LIMIT.as_secs()
                ))
                .next("see its log; with -v this command says what it waits for"));
            }
            self.clock.sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Ends controllers, then watches: a controller whose watches end would only start them again.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        self.tasks.shutdown().await;
        self.server.shutdown();
    }
}
