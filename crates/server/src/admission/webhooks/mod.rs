//! Admission webhooks: the rules that clusters keep outside of the server.
//!
//! [`Followed`] follows the configurations, [`matching`] decides who is asked, with [`conditions`] in CEL, [`review`] is what is sent
//! and what is taken of an answer, [`call`] asks one webhook, [`Webhooks`] asks all.
//! Neither what is sent nor what is answered is logged, and no error holds a value of an object.

mod call;
pub(crate) mod conditions;
mod hook;
mod matching;
mod metrics;
mod mutating;
pub(super) mod review;
mod validating;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};

use self::hook::Hook;
use self::metrics::WebhookMetrics;
use super::followed::Followed;
use super::forbid;
use super::matching::is_exempt;
use crate::ports::{Admission, Admit, Authorizer, GroupResource, Objects, Startup};
use crate::webhook::{Services, Target, WebhookClient};

/// Which of the two phases webhooks stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `MutatingWebhookConfiguration`.
    Mutating,
    /// `ValidatingWebhookConfiguration`.
    Validating,
}

impl Phase {
    fn resource(self) -> GroupResource {
        let resource = match self {
            Self::Mutating => "mutatingwebhookconfigurations",
            Self::Validating => "validatingwebhookconfigurations",
        };
        GroupResource::new("admissionregistration.k8s.io", resource)
    }

    /// As metrics have it.
    fn step(self) -> &'static str {
        match self {
            Self::Mutating => "admit",
            Self::Validating => "validating",
        }
    }
}

/// The plugin of one phase.
pub struct Webhooks {
    phase: Phase,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// Whom conditions ask.
    authorizer: Arc<dyn Authorizer>,
    source: Arc<Followed<Hook>>,
    metrics: OnceLock<WebhookMetrics>,
}

impl Webhooks {
    /// Over the stored configurations, services and namespaces.
    pub fn new(
        phase: Phase,
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        authorizer: Arc<dyn Authorizer>,
    ) -> Self {
        let source = {
            let (objects, clock) = (Arc::clone(&objects), Arc::clone(&clock));
            let client = move |address: &Value| {
                let services = Arc::new(Services(Arc::clone(&objects)));
                Target::of(address)
                    .and_then(|target| WebhookClient::new(target, services, Arc::clone(&clock)))
            };
            // Who is called as before is called over the connections from before.
            move |configuration: &Value, known: &[Arc<Hook>]| {
                Hook::all_of(configuration, &mut |address| match known
                    .iter()
                    .find(|hook| hook.address == *address)
                {
                    Some(hook) => Arc::clone(&hook.client),
                    None => Arc::new(client(address)),
                })
            }
        };
        let source = Followed::new(phase.resource(), Arc::clone(&objects), Arc::clone(&clock), source);
        let source = Arc::new(source);
        Self { phase, objects, clock, random, authorizer, source, metrics: OnceLock::new() }
    }

    /// The configured webhooks, where any may be asked about the request.
    async fn asked(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
    ) -> Result<Arc<[Arc<Hook>]>, Status> {
        if is_exempt(request) {
            return Ok(Arc::default());
        }
        match self.source.items().await {
            Some(hooks) => Ok(hooks),
            None => Err(forbid(request, object, "not yet ready to handle request")),
        }
    }
}

#[async_trait]
impl Admit for Webhooks {
    fn start(self: Arc<Self>, startup: &Startup) {
        let _set_once = self.metrics.set(WebhookMetrics::new(&startup.metrics));
        tokio::spawn(Arc::clone(&self.source).follow(startup.stop.clone()));
    }

    async fn caught_up(&self, resource: &GroupResource) {
        if *resource == self.phase.resource() {
            self.source.caught_up().await;
        }
    }

    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        if self.phase != Phase::Mutating {
            return Ok(());
        }
        let hooks = self.asked(request, object.as_deref()).await?;
        if hooks.is_empty() { Ok(()) } else { self.mutate_with(&hooks, request, object, warnings).await }
    }

    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        if self.phase != Phase::Validating {
            return Ok(());
        }
        let hooks = self.asked(request, object).await?;
        if hooks.is_empty() { Ok(()) } else { self.validate_with(&hooks, request, object, warnings).await }
    }
}
