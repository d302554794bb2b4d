//! One webhook of a configuration, read once.

use std::sync::Arc;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::conditions::Conditions;
use crate::admission::matching::Constraints;
use crate::webhook::{ReviewVersion, WebhookClient};

/// How long a webhook may take when it does not say: upstream's default.
const TIMEOUT_SECONDS: i64 = 10;

/// What a webhook does beside answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideEffects {
    /// It does not say.
    Unsaid,
    /// Nothing that a dry run would miss.
    None,
    /// Something.
    Some,
}

/// A webhook.
pub(super) struct Hook {
    /// Tells webhooks of one name apart.
    pub(super) uid: String,
    /// Its name.
    pub(super) name: String,
    /// Which requests it is asked about.
    pub(super) constraints: Constraints,
    /// What decides last.
    pub(super) conditions: Conditions,
    /// `failurePolicy: Ignore`.
    pub(super) fails_open: bool,
    /// How long it may take.
    pub(super) timeout: Duration,
    /// What it does beside answering.
    pub(super) side_effects: SideEffects,
    /// The version that it is spoken to in.
    pub(super) review: Option<ReviewVersion>,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) if_needed: bool,
    /// Where it is, as the configuration says it.
    pub(super) address: Value,
    /// What calls it, or why it cannot be called.
    pub(super) client: Arc<Result<WebhookClient, String>>,
}

impl Hook {
    /// Reads the webhooks of a configuration. `client` makes or finds what calls an address.
    pub(super) fn all_of(
        configuration: &Value,
        client: &mut dyn FnMut(&Value) -> Arc<Result<WebhookClient, String>>,
    ) -> Vec<Arc<Self>> {
        let hooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or_default();
        let mut names: Vec<&str> = Vec::new();
        let mut all = Vec::new();
        for hook in hooks {
            let name = hook.str_at(&["name"]);
            let before = names.iter().filter(|other| **other == name).count();
            names.push(name);
            let uid = format!("{}/{name}/{before}", configuration.name());
            all.push(Arc::new(Self::of(hook, uid, client)));
        }
        all
    }

    fn of(
        hook: &Value,
        uid: String,
        client: &mut dyn FnMut(&Value) -> Arc<Result<WebhookClient, String>>,
    ) -> Self {
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_i64).unwrap_or(TIMEOUT_SECONDS);
        let versions = hook.get("admissionReviewVersions").and_then(Value::as_array).unwrap_or_default();
        let address = hook.get("clientConfig").cloned().unwrap_or_else(Value::object);
        Self {
            uid,
            name: hook.str_at(&["name"]).to_owned(),
            constraints: Constraints::of_webhook(hook),
            conditions: Conditions::of(hook),
            fails_open: hook.str_at(&["failurePolicy"]) == "Ignore",
            timeout: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            side_effects: match hook.str_at(&["sideEffects"]) {
                "" => SideEffects::Unsaid,
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            review: ReviewVersion::choose(versions.iter().filter_map(Value::as_str)),
            if_needed: hook.str_at(&["reinvocationPolicy"]) == "IfNeeded",
            client: client(&address),
            address,
        }
    }
}
