//! `coffer operator`: the operator alone, on any Kubernetes API server.

use std::sync::Arc;
use std::time::Duration;

use coffer_operator::{OperatorConfig, crd};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::lease::Ended;
use coffer_runtime::random::SystemRandom;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use tokio_util::sync::CancellationToken;

use crate::cli::{Global, Operator};
use crate::exit::{Exit, Failure};
use crate::{client, signals};

/// How the operator's writes of definitions are named in managed fields.
const MANAGER: &str = "coffer";
/// How long a new definition may take until it is served.
const SERVED_LIMIT: Duration = Duration::from_secs(30);

/// Runs until it is asked to end.
pub(crate) async fn run(global: &Global, flags: &Operator) -> Result<Exit, Failure> {
    let client = client::connect(global).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    if flags.install_crds {
        install(&client, &*clock).await?;
    }
    let parts = Parts { client, clock, random: Arc::new(SystemRandom::new()) };
    let settings = Settings {
        concurrent: flags.concurrent,
        controller_class: flags.controller_class.clone(),
        namespace: global.namespace.clone().unwrap_or_default(),
    };
    let stop = CancellationToken::new();
    let operator = start(parts, settings, stop.clone());
    tokio::pin!(operator);
    tokio::select! {
        ended = &mut operator => ended?,
        () = signals::asked_to_end() => {
            stop.cancel();
            operator.await?;
        }
    }
    Ok(Exit::Done)
}

/// What an operator works with.
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
}

/// How it works.
pub(crate) struct Settings {
    pub(crate) concurrent: usize,
    pub(crate) controller_class: String,
    /// "" for all.
    pub(crate) namespace: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { concurrent: 16, controller_class: "default".to_owned(), namespace: String::new() }
    }
}

/// Runs an operator until `stop`.
pub(crate) async fn start(parts: Parts, settings: Settings, stop: CancellationToken) -> Result<(), Failure> {
    let mut config = OperatorConfig::new(parts.client, parts.clock, parts.random);
    config.concurrent = settings.concurrent;
    config.controller_class = settings.controller_class;
    config.namespace = settings.namespace;
    match coffer_operator::run(config, stop).await {
        Ended::Shutdown => Ok(()),
        _ => Err(Failure::problem("the operator lost its leadership")),
    }
}

/// Creates the definitions, or brings the ones that are there to this version, and waits until they are served.
pub(crate) async fn install(client: &Client, clock: &dyn Clock) -> Result<(), Failure> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in crd::all() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let refused = |error: Error| match error {
            Error::Api(status) => {
                Failure::problem(format!("the definition {name} was refused: {}", status.message))
            }
            other => client::unreachable(&other),
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
                Err(error) => return Err(client::unreachable(&error)),
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
