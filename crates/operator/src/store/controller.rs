//! Validation of stores: the same for both kinds.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::{Capabilities, Maintenance, ProviderError, Validation};
use coffer_runtime::api::ObjectKey;
use coffer_runtime::events::{Reference, Severity};
use coffer_runtime::informer::Change;
use coffer_runtime::queue::{Outcome, Urgency, Work, WorkQueue};
use parking_lot::Mutex;
use serde_json::json;

use super::StoreKey;
use super::spec::Store;
use crate::access::SecretMeta;
use crate::external_secret::status::{conditions_json, set_condition};
use crate::external_secret::target::API_VERSION;
use crate::shared::{CLUSTER_SECRET_STORES, SECRET_STORES, Shared};

const IGNORE_MAINTENANCE: &str = "external-secrets.io/ignore-maintenance-checks";

/// The queue of stores; each is a lane of its own, so that a slow one delays no other.
pub(crate) type Queue = WorkQueue<StoreKey, StoreKey>;

/// The controller.
pub(crate) struct Controller {
    shared: Arc<Shared>,
    queue: Arc<Queue>,
    /// Which stores use a Secret.
    users: Mutex<HashMap<ObjectKey, BTreeSet<StoreKey>>>,
}

/// How a validation ended: one row of upstream's table.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    ready: (bool, &'static str, &'static str),
    /// The event's severity and text.
    event: (Severity, String),
    capabilities: Option<Capabilities>,
    /// Whether it is tried again after a back-off.
    failed: bool,
}

impl Controller {
    pub(crate) fn new(shared: Arc<Shared>, queue: Arc<Queue>) -> Self {
        Self { shared, queue, users: Mutex::default() }
    }

    /// A store changed. Its own status does not count.
    pub(crate) fn changed(&self, change: &Change<'_, Store>) {
        let urgency = match (&change.old, &change.new) {
            (_, None) => Urgency::Deletion,
            (None, Some(_)) => Urgency::Fresh,
            (Some(old), Some(new)) => {
                let same = old.uid == new.uid
                    && old.generation == new.generation
                    && old.labels == new.labels
                    && old.annotations == new.annotations
                    && old.deleting == new.deleting;
                if same {
                    return;
                }
                Urgency::Fresh
            }
        };
        if let Some(store) = change.new.as_ref().or(change.old.as_ref()) {
            self.queue.add(store.key.clone(), store.key.clone(), urgency);
        }
    }

    /// A Secret changed: the stores whose credentials are in it are validated again.
    pub(crate) fn secret_changed(&self, change: &Change<'_, SecretMeta>) {
        let users = self.users.lock().get(change.key).cloned().unwrap_or_default();
        for user in users {
            self.queue.add(user.clone(), user, Urgency::Fresh);
        }
    }

    /// One reconciliation.
    pub(crate) async fn reconcile(self: Arc<Self>, work: Work<StoreKey>) -> Outcome {
        let started = self.shared.clock.monotonic();
        let outcome = tokio::select! {
            biased;
            () = work.cancelled.cancelled() => Outcome::Done,
            outcome = self.pass(&work.key) => outcome,
        };
        let (name, namespace) = (&work.key.name, &work.key.namespace);
        if self.shared.store(&work.key).is_some() {
            let took = self.shared.clock.monotonic().saturating_sub(started);
            self.metrics(&work.key).took(name, namespace, took);
        }
        outcome
    }

    fn metrics(&self, key: &StoreKey) -> &crate::metrics::KindMetrics {
        let metrics = &self.shared.metrics;
        if key.cluster { &metrics.cluster_secret_store } else { &metrics.secret_store }
    }

    async fn pass(&self, key: &StoreKey) -> Outcome {
        let Some(store) = self.shared.store(key) else {
            self.shared.manager.forget(key).await;
            self.metrics(key).forget(&key.name, &key.namespace);
            self.users.lock().retain(|_, users| {
                users.remove(key);
                !users.is_empty()
            });
            return Outcome::Done;
        };
        if !self.shared.is_ours(&store) || store.deleting {
            return Outcome::Done;
        }
        let interval = match &store.refresh_interval {
            Ok(interval) => interval.unwrap_or(self.shared.settings.store_requeue_interval),
            Err(why) => {
                tracing::warn!(store = %key, why, "a store's refreshInterval is invalid");
                return Outcome::Retry;
            }
        };
        let verdict = self.validate(&store).await;
        for secret in self.shared.manager.credentials_of(key).await {
            self.users.lock().entry(secret).or_default().insert(key.clone());
        }
        self.event(&store, verdict.event.0, verdict.ready.1, &verdict.event.1);
        self.maintenance(&store);
        if verdict.failed {
            tracing::warn!(store = %key, why = verdict.event.1, "a store could not be validated");
        }
        match self.write(&store, &verdict).await {
            Ok(()) if verdict.failed => Outcome::Retry,
            Ok(()) => Outcome::After(interval),
            Err(outcome) => outcome,
        }
    }

    async fn validate(&self, store: &Store) -> Verdict {
        let (provider, spec) = match self.shared.manager.provider(store) {
            Ok(found) => found,
            Err(error) => return verdict(Err(Failed::Connect(error)), None),
        };
        let scope = coffer_providers::contract::Scope {
            cluster: store.key.cluster,
            store: store.key.name.clone(),
            namespace: store.key.namespace.clone(),
        };
        let capabilities = Some(provider.capabilities());
        if let Err(error) = provider.check(&spec, &scope) {
            return verdict(Err(Failed::Validate(error)), capabilities);
        }
        if provider.is_referent(&spec, &scope) {
            // Its credentials lie with who uses it: there is nothing to connect with yet.
            return verdict(Ok(Validation::Unknown), capabilities);
        }
        let connection = match self.shared.manager.connect(store, "", true).await {
            Ok(connection) => connection,
            Err(error) => return verdict(Err(Failed::Connect(error)), capabilities),
        };
        let result = connection.client.validate().await;
        verdict(result.map_err(Failed::Validate), Some(connection.provider.capabilities()))
    }

    fn maintenance(&self, store: &Store) {
        if store.annotations.contains_key(IGNORE_MAINTENANCE) {
            return;
        }
        let Ok((provider, _)) = self.shared.manager.provider(store) else { return };
        let (reason, text) = match provider.maintenance() {
            Maintenance::Maintained => return,
            Maintenance::NotMaintained => (
                "StoreUnmaintained",
                "store isn't currently maintained. Please plan and prepare accordingly.",
            ),
            Maintenance::Deprecated => (
                "StoreDeprecated",
                "store is deprecated and will be removed on the next minor release. Please plan and prepare accordingly.",
            ),
        };
        self.event(store, Severity::Warning, reason, text);
    }

    async fn write(&self, store: &Store, verdict: &Verdict) -> Result<(), Outcome> {
        let conditions = set_condition(&store.conditions, "Ready", verdict.ready, self.shared.clock.now());
        let (name, namespace) = (&store.key.name, &store.key.namespace);
        for condition in &conditions {
            self.metrics(&store.key).condition(name, namespace, condition);
        }
        let mut status = json!({});
        if conditions != store.conditions {
            status["conditions"] = conditions_json(&conditions);
        }
        if let Some(capabilities) = verdict.capabilities.map(Capabilities::as_str)
            && capabilities != store.capabilities
        {
            status["capabilities"] = capabilities.into();
        }
        if status.as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(());
        }
        let resource = if store.key.cluster { &CLUSTER_SECRET_STORES } else { &SECRET_STORES };
        let key = ObjectKey::new(namespace.clone(), name.clone());
        let body = json!({"metadata": {"uid": store.uid}, "status": status});
        let answer: Result<serde::de::IgnoredAny, _> =
            self.shared.api.merge_patch(resource, &key, "status", &body, "").await;
        match answer {
            // The watch brings it back, and with it the ExternalSecrets that waited.
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Err(Outcome::Done),
            Err(error) => {
                tracing::warn!(store = %store.key, code = error.code, "a store's status could not be written");
                Err(Outcome::Retry)
            }
        }
    }

    fn event(&self, store: &Store, severity: Severity, reason: &str, message: &str) {
        let about = Reference {
            api_version: API_VERSION.to_owned(),
            kind: store.key.kind().to_owned(),
            namespace: store.key.namespace.clone(),
            name: store.key.name.clone(),
            uid: store.uid.clone(),
            resource_version: store.resource_version.clone(),
        };
        let source = if store.key.cluster { "cluster-secret-store" } else { "secret-store" };
        self.shared.recorder.with_source(source).record(&about, severity, reason, message);
    }
}

enum Failed {
    Connect(ProviderError),
    Validate(ProviderError),
}

/// Upstream's table of outcomes.
fn verdict(result: Result<Validation, Failed>, capabilities: Option<Capabilities>) -> Verdict {
    let failed = |message, error: ProviderError| Verdict {
        ready: (false, "InvalidProviderConfig", message),
        event: (Severity::Warning, error.to_string()),
        capabilities: None,
        failed: true,
    };
    match result {
        Ok(Validation::Ready | Validation::Unknown) => Verdict {
            ready: (true, "Valid", "store validated"),
            event: (Severity::Normal, "store validated".to_owned()),
            capabilities,
            failed: false,
        },
        Ok(Validation::Undetermined(why)) => Verdict {
            ready: (true, "ValidationUnknown", "could not determine validation status"),
            event: (Severity::Warning, why),
            capabilities: None,
            failed: false,
        },
        Err(Failed::Connect(error)) => failed("unable to create client", error),
        Err(Failed::Validate(error)) => failed("unable to validate store", error),
    }
}

/// The default of `--store-requeue-interval`.
pub(crate) const DEFAULT_REQUEUE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_upstreams() {
        let write = Some(Capabilities::ReadWrite);
        let error = || ProviderError::Auth("permission denied".to_owned());
        let cases = [
            (Ok(Validation::Ready), (true, "Valid", "store validated"), write, false),
            (Ok(Validation::Unknown), (true, "Valid", "store validated"), write, false),
            (
                Ok(Validation::Undetermined("x".to_owned())),
                (true, "ValidationUnknown", "could not determine validation status"),
                None,
                false,
            ),
            (
                Err(Failed::Connect(error())),
                (false, "InvalidProviderConfig", "unable to create client"),
                None,
                true,
            ),
            (
                Err(Failed::Validate(error())),
                (false, "InvalidProviderConfig", "unable to validate store"),
                None,
                true,
            ),
        ];
        for (result, ready, capabilities, failed) in cases {
            let verdict = verdict(result, write);
            assert_eq!((verdict.ready, verdict.capabilities, verdict.failed), (ready, capabilities, failed));
        }
    }
}
