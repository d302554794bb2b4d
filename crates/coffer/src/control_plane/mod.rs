//! Puts the parts together: what `up`, `apiserver` and `demo` start.

pub(crate) mod at_rest;
pub(crate) mod certificate;
pub(crate) mod data_dir;
pub(crate) mod policy;
pub(crate) mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_config::encryption::Transformers;
use coffer_runtime::metrics::Registry as MetricsRegistry;
use coffer_server::api::{ApiServer, ApiServerConfig, Foundation};
use coffer_server::controllers;
use coffer_server::security::{Security, SecurityConfig, SecurityError};
use coffer_store::Storage;
use coffer_store::compactor::{Compactor, DEFAULT_INTERVAL};
use coffer_store::kv::Kv;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::exit::Failure;

/// How long the server may take until every cache is filled.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// What an API server is started with.
pub(crate) struct ServerOptions {
    pub(crate) kv: Arc<dyn Kv>,
    /// `--etcd-prefix`.
    pub(crate) prefix: String,
    pub(crate) transformers: Transformers,
    pub(crate) security: SecurityConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// Says which flag's file to look at; the error itself names what is wrong with it.
fn refused(error: &SecurityError) -> Failure {
    let next = match error {
        SecurityError::ClientCa(_) => "the file of --client-ca-file must hold PEM certificates",
        SecurityError::ServiceAccountKey(_) => {
            "--service-account-signing-key-file must hold a private key in PEM, \
             --service-account-key-file public or private keys"
        }
        SecurityError::TokenFile(_) => {
            "the lines of --token-auth-file must be: token,user,uid,\"group,group\""
        }
        SecurityError::NoIssuer => "name one with --service-account-issuer",
        _ => "",
    };
    Failure::problem(error).next(next)
}

/// A running API server with its controllers.
pub(crate) struct ControlPlane {
    pub(crate) server: ApiServer,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// Set when the policy is known to the authorizer, and when the bootstrap policy is stored.
    policy: [Arc<AtomicBool>; 2],
    clock: Arc<dyn Clock>,
}

impl ControlPlane {
    /// Opens the stored resources and starts the controllers. Serves nobody yet.
    pub(crate) fn start(options: ServerOptions) -> Result<Self, Failure> {
        let ServerOptions { kv, prefix, transformers, security, clock, random } = options;
        let transformers = Arc::new(transformers);
        let by_resource = {
            let transformers = transformers.clone();
            Box::new(move |group: &str, resource: &str| transformers.transformer_for(group, resource))
        };
        let storage = Storage::new(kv.clone(), clock.clone(), &prefix, by_resource);
        let foundation = Foundation::open(ApiServerConfig {
            storage: storage.clone(),
            clock: clock.clone(),
            random: random.clone(),
            metrics: Arc::new(MetricsRegistry::default()),
        })
        .map_err(|error| Failure::usage(format!("--etcd-prefix: {error}")))?;
        let objects = foundation.objects();
        let security = Security::new(security, objects.clone(), clock.clone(), random)
            .map_err(|error| refused(&error))?;
        let mut policy = policy::policy(&security);
        policy.routes.push(at_rest::route(kv.clone(), &prefix, transformers));
        policy.health_checks.extend(policy::store_checks(&kv, &clock, &prefix));
        let server = foundation.build(policy);

        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let policy_fed = Arc::new(AtomicBool::new(false));
        tasks.spawn(controllers::feed_policy(security.rbac, objects.clone(), policy_fed.clone()));
        for controller in security.controllers {
            tasks.spawn(controllers::run(controller, objects.clone(), clock.clone()));
        }
        let compacted = Box::new(move |revision| storage.note_compacted(revision));
        tasks.spawn(Compactor::new(kv, clock.clone(), DEFAULT_INTERVAL, compacted).run(stop.clone()));
        Ok(Self { server, tasks, stop, policy: [policy_fed, security.policy_ready], clock })
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
