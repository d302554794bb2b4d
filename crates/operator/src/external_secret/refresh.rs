//! One refresh: what is there, what is wanted, and the writes between.

use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::SecretMap;
use coffer_runtime::api::{ApiError, ObjectKey, Preconditions, SECRETS};
use coffer_runtime::events::Severity;
use coffer_runtime::queue::Outcome;
use coffer_types::time::Timestamp;
use serde_json::Value as Json;

use super::assemble::{Assembled, Failure, assemble};
use super::controller::{Controller, FINALIZER, Memory};
use super::machine::{self, Ending, Next, Snapshot, Step, Why};
use super::spec::{CreationPolicy, DEFAULT_INTERVAL, ExternalSecret, Refused, Spec};
use super::{status, target, versions};
use crate::access::SecretMeta;
use crate::hash;
use crate::reads::WINDOW;
use crate::secret::Secret;
use crate::shared::EXTERNAL_SECRETS;

/// How one refresh ended, and what of it is told.
struct End {
    ending: Ending,
    /// For the event and the log; upstream's text.
    detail: String,
    /// Added to the condition's message.
    message: String,
    /// Name of the Secret that was written.
    binding: Option<String>,
}

impl From<Ending> for End {
    fn from(ending: Ending) -> Self {
        Self { ending, detail: String::new(), message: String::new(), binding: None }
    }
}

fn failed(ending: Ending, detail: impl Into<String>) -> End {
    End { detail: detail.into(), ..End::from(ending) }
}

impl Controller {
    pub(super) async fn refresh(&self, object: &Arc<ExternalSecret>) -> Outcome {
        let now = self.shared.clock.now();
        let spec = match &object.spec {
            Ok(spec) => spec,
            Err(why) => {
                let (ending, why, message) = match why {
                    Refused::Spec(why) => (Ending::SpecRefused, why, why.clone()),
                    Refused::Template(why) => (Ending::TemplateRefused, why, format!(": {why}")),
                };
                let end = End { message, ..failed(ending, why.clone()) };
                return self.end(object, None, end, now).await;
            }
        };
        let current = object.current();
        let snapshot = self.snapshot(object, spec, &current, now);
        let why = match machine::observe(&snapshot) {
            Some(why) => why,
            None => match self.is_valid(object, spec).await {
                Ok(true) => return machine::next_look(&snapshot).map_or(Outcome::Done, Outcome::After),
                Ok(false) => Why::Drifted,
                Err(error) => {
                    self.failed(object, &error.to_string());
                    return Outcome::Retry;
                }
            },
        };
        let max_age = match why {
            // Somebody changed it and expects what is there now.
            Why::Changed => Duration::ZERO,
            Why::Due => WINDOW.min(spec.interval / 2),
            Why::NeverSynced | Why::Drifted => WINDOW,
        };
        let end = match assemble(&self.shared, object, spec, max_age).await {
            Ok(assembled) => {
                let versions = assembled.versions.annotation();
                let end = self.perform(object, spec, assembled).await;
                if end.as_ref().is_some_and(|end| machine::holds_what_was_read(end.ending)) {
                    self.record_versions(object, versions.as_deref()).await;
                }
                end
            }
            Err(failure) => Some(fetch_failed(failure)),
        };
        match end {
            Some(end) => self.end(object, Some(spec), end, now).await,
            // It is being deleted: whoever asked for that goes on.
            None => Outcome::Done,
        }
    }

    fn snapshot<'a>(
        &self,
        object: &'a ExternalSecret,
        spec: &Spec,
        current: &'a str,
        now: Timestamp,
    ) -> Snapshot<'a> {
        let remembered = self.memory.lock().get(&object.key).and_then(|memory| memory.refreshed);
        let exact = |time: Timestamp| {
            remembered.filter(|exact| exact.as_second() == time.as_second()).unwrap_or(time)
        };
        Snapshot {
            refresh: spec.refresh,
            interval: spec.interval,
            synced: &object.status.synced,
            current,
            refresh_time: object.status.refresh_time.map(exact),
            now,
        }
    }

    /// Whether the Secret still is what was written. Reads it only when it changed since it was last seen.
    async fn is_valid(&self, object: &ExternalSecret, spec: &Spec) -> Result<bool, ApiError> {
        if matches!(spec.target.creation, CreationPolicy::Orphan | CreationPolicy::None) {
            return Ok(true);
        }
        let key = object.target();
        let Some((version, meta)) = self.shared.caches.secrets.get_versioned(&key) else { return Ok(false) };
        if !meta.managed {
            return Ok(false);
        }
        let remembered = self.memory.lock().get(&object.key).and_then(|memory| memory.secret.clone());
        if let Some((seen, seen_version, valid)) = remembered
            && seen == key
            && seen_version == version
        {
            return Ok(valid);
        }
        let secret: Option<Secret> = self.shared.api.get(&SECRETS, &key).await?;
        let Some(secret) = secret else { return Ok(false) };
        let own = self.memory.lock().get(&object.key).and_then(|memory| memory.own.clone());
        let valid = secret.label(target::MANAGED_LABEL) == Some("true")
            && (secret.annotation(target::HASH_ANNOTATION) == Some(&hash::data_hash(&secret.data))
                || own.is_some_and(|own| own.is_in(&secret)));
        self.remember(object, |memory| {
            memory.secret = Some((key, secret.resource_version().to_owned(), valid));
            memory.fingerprint.clear();
        });
        Ok(valid)
    }

    fn remember(&self, object: &ExternalSecret, change: impl FnOnce(&mut Memory)) {
        change(self.memory.lock().entry(object.key.clone()).or_default());
    }

    /// Whether it may still be written for: nothing is, once deletion has begun (O31).
    fn is_alive(&self, object: &ExternalSecret) -> bool {
        let now = self.shared.caches.external_secrets.get(&object.key);
        now.is_some_and(|now| now.uid == object.uid && !now.deleting)
    }

    async fn perform(&self, object: &ExternalSecret, spec: &Spec, assembled: Assembled) -> Option<End> {
        for skipped in &assembled.skipped {
            self.event(object, Severity::Normal, "MissingProviderSecret", skipped.clone());
        }
        if !self.is_alive(object) {
            return None;
        }
        let key = object.target();
        let existing = self.shared.caches.secrets.get_versioned(&key);
        let step = machine::fetched(
            assembled.data.is_empty(),
            spec.target.deletion,
            spec.target.creation,
            existing.is_some(),
        );
        let mut end = match step {
            Step::Leave(Ending::DeletionRefused) => {
                let policy = spec.target.creation.as_str();
                let text =
                    format!("unable to delete secret {}: creationPolicy={policy} is not Owner", key.name);
                failed(Ending::DeletionRefused, text)
            }
            Step::Leave(ending) => ending.into(),
            Step::Delete => self.delete_target(object, &key).await,
            Step::Write { create, sweep } => {
                self.write(object, spec, &assembled.data, existing, create, sweep).await
            }
        };
        if end.ending == Ending::Synced && !assembled.skipped.is_empty() {
            end.message = format!("; {} entries do not exist at the provider", assembled.skipped.len());
        }
        Some(end)
    }

    /// Writes the versions of what was read beside the specification, if they changed. It stands before the
    /// status, so that whoever sees the sync sees its versions; a failure does not make the sync one, and the
    /// next refresh tries again.
    async fn record_versions(&self, object: &ExternalSecret, wanted: Option<&str>) {
        if !self.shared.settings.record_source_versions || !self.is_alive(object) {
            return;
        }
        let current = object.source_versions.as_deref();
        let Some(patch) = versions::patch(&object.uid, current, wanted) else { return };
        let result: Result<Json, _> =
            self.shared.api.merge_patch(&EXTERNAL_SECRETS, &object.key, "", &patch, "").await;
        match result {
            Ok(answer) => {
                if let Some(new) = ExternalSecret::parse(&answer) {
                    self.keep(new);
                }
            }
            Err(error) => {
                let (name, namespace) = (&object.key.name, &object.key.namespace);
                let why = error.to_string();
                tracing::warn!(name, namespace, why, "the versions at the source could not be recorded");
            }
        }
    }

    async fn delete_target(&self, object: &ExternalSecret, key: &ObjectKey) -> End {
        match self.shared.api.delete(&SECRETS, key, Preconditions::default()).await {
            Ok(deleted) => {
                if deleted {
                    let text = "secret deleted due to DeletionPolicy=Delete";
                    self.event(object, Severity::Normal, "Deleted", text);
                }
                Ending::Deleted.into()
            }
            Err(error) => failed(Ending::DeleteFailed, error.to_string()),
        }
    }

    async fn write(
        &self,
        object: &ExternalSecret,
        spec: &Spec,
        data: &SecretMap,
        existing: Option<(String, Arc<SecretMeta>)>,
        create: bool,
        sweep: bool,
    ) -> End {
        let key = object.target();
        let fingerprint = format!("{}/{}/{}", object.uid, object.current(), hash::data_hash(data));
        let written = End { binding: Some(key.name.clone()), ..End::from(Ending::Synced) };
        let memory = self.memory.lock().get(&object.key).cloned().unwrap_or_default();
        if let (Some((version, _)), Some((seen, seen_version, true))) = (&existing, &memory.secret)
            && *seen == key
            && seen_version == version
            && memory.fingerprint == fingerprint
        {
            // The same into the same: no read and no write.
            return written;
        }
        if sweep && let Err(error) = self.sweep(object, &key).await {
            return failed(Ending::SweepFailed, error.to_string());
        }
        let current: Option<Secret> = match existing {
            None => None,
            Some(_) => match self.shared.api.get(&SECRETS, &key).await {
                Ok(current) => current,
                Err(error) => return failed(Ending::WriteFailed, error.to_string()),
            },
        };
        if current.is_none() && !create {
            return Ending::MergeTargetMissing.into();
        }
        let wanted = match target::build(object, spec, data, current.as_ref()) {
            Ok(wanted) => wanted,
            Err(target::Refusal::OwnedByForeigner(text)) => return failed(Ending::OwnedByForeigner, text),
            Err(target::Refusal::OwnedByExternalSecret(text)) => {
                return failed(Ending::OwnedByExternalSecret, text);
            }
            Err(target::Refusal::Immutable(text)) => return failed(Ending::Immutable, text),
        };
        if !wanted.dropped.is_empty() {
            let keys = wanted.dropped.join(", ");
            if self.shared.settings.refuse_foreign_keys {
                let text = format!("refused to take over secret {}: it has keys of others: {keys}", key.name);
                return failed(Ending::Guarded, text);
            }
            let text = format!("keys of others were dropped from secret {}: {keys}", key.name);
            self.event(object, Severity::Warning, "ForeignKeysDropped", text);
        }
        if let Some(current) = &current
            && target::differs_for_others_only(current, &wanted, spec.target.creation, memory.own.as_ref())
        {
            let version = current.resource_version().to_owned();
            self.remember(object, |memory| {
                memory.secret = Some((key, version, true));
                memory.fingerprint = fingerprint;
            });
            return written;
        }
        let version = match self.put(object, &key, current.as_ref(), &wanted.secret).await {
            Ok(version) => version,
            Err(end) => return end,
        };
        self.remember(object, |memory| {
            memory.secret = Some((key, version, true));
            memory.fingerprint = fingerprint;
            memory.own = Some(wanted.own);
        });
        written
    }

    /// Writes, unless nothing would change; the version of the Secret afterwards.
    async fn put(
        &self,
        object: &ExternalSecret,
        key: &ObjectKey,
        current: Option<&Secret>,
        wanted: &Secret,
    ) -> Result<String, End> {
        let manager = hash::field_manager(&object.key.name);
        // The watch often tells of a write before it is answered.
        let mut writing = self.writing(object);
        let (result, verb): (Result<Secret, ApiError>, _) = match current {
            Some(current) if target::same(current, wanted) => {
                return Ok(current.resource_version().to_owned());
            }
            Some(_) => (self.shared.api.update(&SECRETS, key, wanted, &manager).await, "Updated"),
            None => (self.shared.api.create(&SECRETS, key, "", wanted, &manager).await, "Created"),
        };
        match result {
            Ok(secret) => {
                let text = if verb == "Created" { "secret created" } else { "secret updated" };
                self.event(object, Severity::Normal, verb, text);
                let version = secret.resource_version().to_owned();
                self.remember(object, |memory| memory.secret = Some((key.clone(), version.clone(), true)));
                writing.written = Some(version.clone());
                Ok(version)
            }
            Err(error) if error.is_conflict() || error.is_already_exists() => Err(Ending::Conflict.into()),
            Err(error) => {
                let immutable = error.code == 422 && error.message.contains("is immutable when");
                let ending = if immutable { Ending::Immutable } else { Ending::WriteFailed };
                let text = match current {
                    Some(_) => format!("unable to update secret {}: {error}", key.name),
                    None => format!("could not create secret {}: {error}", key.name),
                };
                Err(failed(ending, text))
            }
        }
    }

    /// Deletes Secrets that this ExternalSecret owned under another name.
    async fn sweep(&self, object: &ExternalSecret, target: &ObjectKey) -> Result<(), ApiError> {
        let mark = hash::owner_label(&object.key.namespace, &object.key.name);
        let stale = self.shared.caches.secrets.select(&object.key.namespace, |key, meta| {
            (meta.created_by == mark && key != target).then(|| (key.clone(), meta.uid.clone()))
        });
        for (key, uid) in stale {
            let preconditions = Preconditions { uid: &uid, ..Preconditions::default() };
            if self.shared.api.delete(&SECRETS, &key, preconditions).await? {
                self.event(object, Severity::Normal, "Deleted", "secret deleted because it was orphaned");
            }
        }
        Ok(())
    }

    /// Writes what happened into the status, and says when to look again.
    async fn end(
        &self,
        object: &ExternalSecret,
        spec: Option<&Spec>,
        end: End,
        started: Timestamp,
    ) -> Outcome {
        let conclusion = machine::conclude(end.ending);
        let mut new = object.status.clone();
        if let Some((ready, reason, message)) = conclusion.ready {
            let message = format!("{message}{}", end.message);
            new.conditions = status::set_condition(
                &new.conditions,
                "Ready",
                (ready, reason, &message),
                self.shared.clock.now(),
            );
            if !ready {
                self.failed(object, &end.detail);
                let text = if end.detail.is_empty() { message } else { end.detail };
                self.event(object, Severity::Warning, "UpdateFailed", text);
            }
        }
        if let Some(binding) = end.binding {
            new.binding = binding;
        }
        if conclusion.refreshed {
            // Whole seconds, as the object keeps them.
            new.refresh_time = Timestamp::from_second(started.as_second()).ok();
            new.synced = object.current();
            self.remember(object, |memory| memory.refreshed = Some(started));
        }
        for condition in &new.conditions {
            let (name, namespace) = (&object.key.name, &object.key.namespace);
            self.shared.metrics.external_secret.condition(name, namespace, condition);
        }
        if let Some(patch) = status::patch(&object.uid, &object.status, &new) {
            let result: Result<Json, _> =
                self.shared.api.merge_patch(&EXTERNAL_SECRETS, &object.key, "status", &patch, "").await;
            match result {
                Ok(answer) => {
                    if let Some(new) = ExternalSecret::parse(&answer) {
                        self.keep(new);
                    }
                }
                Err(error) if error.is_not_found() => return Outcome::Done,
                Err(error) => {
                    self.failed(object, &error.to_string());
                    return Outcome::Retry;
                }
            }
        }
        debug_assert!(object.finalizers.iter().any(|finalizer| finalizer == FINALIZER), "set before");
        let interval = spec.map_or(DEFAULT_INTERVAL, |spec| spec.interval);
        match (conclusion.next, spec) {
            (Next::BackOff, _) => Outcome::Retry,
            (Next::AtIntervalAsFailed, _) if interval.is_zero() => Outcome::After(DEFAULT_INTERVAL),
            (Next::AtIntervalAsFailed, _) | (Next::AtInterval, None) => Outcome::After(interval),
            (Next::AtInterval, Some(spec)) => {
                let current = object.current();
                let snapshot = Snapshot {
                    refresh: spec.refresh,
                    interval,
                    synced: &current,
                    current: &current,
                    refresh_time: Some(started),
                    now: self.shared.clock.now(),
                };
                machine::next_look(&snapshot).map_or(Outcome::Done, Outcome::After)
            }
        }
    }
}

fn fetch_failed(failure: Failure) -> End {
    let message = match failure.missing.len() {
        0 | 1 => String::new(),
        _ => format!(": not found: {}", failure.missing.join(", ")),
    };
    End { detail: failure.text, message, ..End::from(Ending::FetchFailed) }
}
