//! `coffer operator`: the operator alone, on any Kubernetes API server.

mod start;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coffer_operator::{OperatorConfig, crd};
use coffer_runtime::api::ObjectKey;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::health::{self, Health};
use coffer_runtime::lease::{ElectionConfig, Ended};
use coffer_runtime::metrics::Registry;
use coffer_runtime::random::SystemRandom;
use coffer_types::random::{Random, uuid};
use coffer_types::time::Clock;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli::{ElectionFlags, Global, Operator};
use crate::client::{self, Server};
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};

/// How the operator's writes of definitions are named in managed fields.
const MANAGER: &str = "coffer";
/// How many ExternalSecrets of one store are worked on at once, inside `coffer up`.
const CONCURRENT: usize = 16;
/// How long a new definition may take until it is served.
const SERVED_LIMIT: Duration = Duration::from_secs(30);

/// Runs until it is asked to end.
pub(crate) async fn run(global: &Global, flags: &Operator) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let random: Arc<dyn Random> = Arc::new(SystemRandom::new());
    let configuration = client::configuration(global).await?;
    let election = election(&flags.election, &configuration.default_namespace, &*random)?;
    let server = Server::of(configuration.clone())?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    start::check(&server, &configuration, &*clock).await?;
    let Server { client, url } = server;
    let stop = CancellationToken::new();
    let mut config = OperatorConfig::new(client.clone(), clock.clone(), random);
    config.concurrent = usize::from(flags.concurrent);
    config.controller_class.clone_from(&flags.controller_class);
    config.namespace = global.namespace.clone().unwrap_or_default();
    config.store_requeue_interval = flags.store_requeue_interval;
    config.enable_flood_gate = flags.enable_flood_gate;
    config.enable_cluster_store_reconciler = flags.enable_cluster_store_reconciler;
    config.enable_secret_store_reconciler = flags.enable_secret_store_reconciler;
    config.refuse_foreign_keys = flags.refuse_foreign_keys;
    config.record_source_versions = flags.record_source_versions;
    config.leader_election = election;
    let (metrics, health) = listen(flags, &config, &stop).await?;
    if flags.install_crds {
        let served = if flags.unsafe_serve_v1beta1 { Old::Served } else { Old::Stored };
        install(&client, &url, &*clock, served).await?;
    }
    let serves = start::Serves {
        server: url,
        namespace: config.namespace.clone(),
        metrics,
        health,
        standby: config.leader_election.is_some(),
    };
    let synced = config.synced.clone();
    let operator = coffer_operator::run(config, stop.clone());
    tokio::pin!(operator);
    let ended = tokio::select! {
        ended = &mut operator => ended,
        () = start::tell(client, &*clock, serves, synced) => Ended::Shutdown,
        () = signals.asked_to_end() => {
            stop.cancel();
            let ended = operator.await;
            signals::ended();
            ended
        }
    };
    stop.cancel();
    done(ended).map(|()| Exit::Done)
}

fn done(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::Shutdown => Ok(()),
        _ => Err(Failure::problem("the operator lost its leadership")
            .next("another one acts now; start this one again to stand by")),
    }
}

fn election(
    flags: &ElectionFlags,
    namespace: &str,
    random: &dyn Random,
) -> Result<Option<ElectionConfig>, Failure> {
    if !flags.enable_leader_election {
        return Ok(None);
    }
    let id = uuid(random).map_err(Failure::problem)?;
    let config = ElectionConfig {
        lease: ObjectKey::new(namespace, flags.leader_election_id.clone()),
        identity: format!("{}_{id}", super::node::host_name()),
        lease_duration: flags.leader_election_lease_duration,
        renew_deadline: flags.leader_election_renew_deadline,
        retry_period: flags.leader_election_retry_period,
    };
    config.check().map_err(|why| {
        Failure::usage(why).next("change --leader-election-lease-duration, -renew-deadline or -retry-period")
    })?;
    Ok(Some(config))
}

/// Serves metrics and health until `stop`; where.
async fn listen(
    flags: &Operator,
    config: &OperatorConfig,
    stop: &CancellationToken,
) -> Result<(Option<SocketAddr>, Option<SocketAddr>), Failure> {
    let health = Arc::new(Health::default());
    let synced = config.synced.clone();
    health.add("caches", move || synced.is_cancelled());
    let serve = |listener: TcpListener, health: Option<Arc<Health>>, metrics: Option<Arc<Registry>>| {
        let address = listener.local_addr().ok();
        tokio::spawn(health::serve(listener, health, metrics, stop.clone()));
        address
    };
    let metrics_at = match flags.metrics_addr.0 {
        Some(address) => serve(
            crate::control_plane::listen::bind(address, "--metrics-addr").await?,
            None,
            Some(config.metrics.clone()),
        ),
        None => None,
    };
    let health_at = match flags.live_addr.0 {
        Some(address) => {
            serve(crate::control_plane::listen::bind(address, "--live-addr").await?, Some(health), None)
        }
        None => None,
    };
    Ok((metrics_at, health_at))
}

/// What an operator works with.
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// Runs an operator until `stop`.
pub(crate) async fn start(parts: Parts, stop: CancellationToken) -> Result<(), Failure> {
    let mut config = OperatorConfig::new(parts.client, parts.clock, parts.random);
    config.concurrent = CONCURRENT;
    done(coffer_operator::run(config, stop).await)
}

/// What becomes of the version v1beta1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Old {
    /// Objects that are stored in it can be read as v1.
    Stored,
    /// Clients may speak it too.
    Served,
}

/// Creates the definitions, or brings the ones that are there to this version, and waits until they are served.
pub(crate) async fn install(client: &Client, url: &str, clock: &dyn Clock, old: Old) -> Result<(), Failure> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions = if old == Old::Served { crd::all_serving_v1beta1() } else { crd::all() };
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let refused = |error: Error| match error {
            Error::Api(status) => {
                Failure::problem(format!("the definition {name} was refused: {}", status.message))
            }
            other => client::unreachable(url, &other),
        };
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let object: CustomResourceDefinition =
            serde_json::from_value(definition.clone()).map_err(Failure::problem)?;
        match api.create(&parameters, &object).await {
            Ok(_) => {}
            Err(Error::Api(status)) if status.code == 409 => {
                let parameters =
                    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
                let patch = Patch::Merge(serde_json::json!({"spec": definition["spec"]}));
                api.patch(&name, &parameters, &patch).await.map_err(refused)?;
            }
            Err(error) => return Err(refused(error)),
        }
    }
    let until = clock.monotonic() + SERVED_LIMIT;
    for definition in crd::all() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let path = format!("/apis/{group}/v1/{plural}?limit=1");
        loop {
            let request = http::Request::get(&path).body(Vec::new()).map_err(Failure::problem)?;
            match client.request::<serde_json::Value>(request).await {
                Ok(_) => break,
                Err(Error::Api(status)) if matches!(status.code, 404 | 429) => {}
                Err(error) => return Err(client::unreachable(url, &error)),
            }
            if clock.monotonic() > until {
                return Err(Failure::timed_out(format!("the definition {name} was not taken up"))
                    .next(format!("see why with: kubectl get crd {name} -o yaml")));
            }
            clock.sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}
