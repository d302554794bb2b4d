//! The shell around [`super::machine`]: watches, the queue, finalizers, deletion.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use coffer_runtime::api::{ObjectKey, Preconditions, SECRETS};
use coffer_runtime::events::{Reference, Severity};
use coffer_runtime::informer::{Change, Kept};
use coffer_runtime::queue::{Outcome, Urgency, Work, WorkQueue};
use coffer_types::time::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use super::spec::{DeletionPolicy, ExternalSecret};
use super::target::{API_VERSION, Own};
use crate::access::SecretMeta;
use crate::shared::{EXTERNAL_SECRETS, Shared};
use crate::store::StoreKey;
use crate::store::spec::Store;

pub(crate) const FINALIZER: &str = "externalsecrets.external-secrets.io/externalsecret-cleanup";

/// The queue of ExternalSecrets; a lane is a store.
pub(crate) type Queue = WorkQueue<ObjectKey, StoreKey>;

/// The controller.
pub(crate) struct Controller {
    pub(super) shared: Arc<Shared>,
    queue: Arc<Queue>,
    pub(super) memory: Mutex<HashMap<ObjectKey, Memory>>,
    indexes: Mutex<Indexes>,
}

/// What is known of an ExternalSecret beyond its object: saves reads and writes, never needed to be right.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    /// The version of the Secret that was last seen whole, and whether its data fitted its hash.
    pub(super) secret: Option<(ObjectKey, String, bool)>,
    /// What was last written into that version.
    pub(super) fingerprint: String,
    /// What of the Secret is ours: the rest concerns nobody here.
    pub(super) own: Option<Own>,
    /// The exact time of the last refresh; the object holds whole seconds.
    pub(super) refreshed: Option<Timestamp>,
    /// Its Secret is being written: the watch may tell of that before the answer comes.
    pub(super) writing: Option<Writing>,
}

/// What the watch told of a Secret while it was being written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Writing {
    heard: bool,
}

/// Who is concerned by a change of something else.
#[derive(Default)]
struct Indexes {
    by_target: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    by_store: HashMap<StoreKey, BTreeSet<ObjectKey>>,
}

impl Indexes {
    fn change(&mut self, object: &ExternalSecret, add: bool) {
        fn apply<K: std::hash::Hash + Eq>(
            index: &mut HashMap<K, BTreeSet<ObjectKey>>,
            at: K,
            key: &ObjectKey,
            add: bool,
        ) {
            if add {
                index.entry(at).or_default().insert(key.clone());
            } else if let Some(keys) = index.get_mut(&at) {
                keys.remove(key);
                if keys.is_empty() {
                    index.remove(&at);
                }
            }
        }
        apply(&mut self.by_target, object.target(), &object.key, add);
        for store in object.stores() {
            apply(&mut self.by_store, store, &object.key, add);
        }
    }
}

impl Controller {
    pub(crate) fn new(shared: Arc<Shared>, queue: Arc<Queue>) -> Self {
        Self { shared, queue, memory: Mutex::default(), indexes: Mutex::default() }
    }

    /// An ExternalSecret changed. Its own status does not count.
    pub(crate) fn changed(&self, change: &Change<'_, ExternalSecret>) {
        {
            let mut indexes = self.indexes.lock();
            for (object, add) in [(&change.old, false), (&change.new, true)] {
                if let Some(object) = object {
                    indexes.change(object, add);
                }
            }
        }
        let urgency = match (&change.old, &change.new) {
            (_, None) => Urgency::Deletion,
            (_, Some(new)) if new.deleting => Urgency::Deletion,
            (None, Some(new)) if new.status.synced.is_empty() => Urgency::Fresh,
            // After a start: everything that is in order can wait for what is new.
            (None, Some(_)) => Urgency::Periodic,
            (Some(old), Some(new)) if counts(old, new) => Urgency::Fresh,
            (Some(_), Some(_)) => return,
        };
        if let (Some(old), Some(new)) = (&change.old, &change.new)
            && urgency == Urgency::Deletion
            && old.deleting
            && !counts(old, new)
        {
            return;
        }
        let lane =
            change.new.as_ref().or(change.old.as_ref()).map(|object| object.lane()).unwrap_or_default();
        self.queue.add(change.key.clone(), lane, urgency);
    }

    /// A Secret changed: whoever writes it looks after it.
    pub(crate) fn secret_changed(&self, change: &Change<'_, SecretMeta>) {
        if change.old == change.new && change.old.is_none() {
            return;
        }
        let owners = self.indexes.lock().by_target.get(change.key).cloned().unwrap_or_default();
        for owner in owners {
            let Some(object) = self.shared.caches.external_secrets.get(&owner) else { continue };
            let managed = |meta: &Option<Arc<SecretMeta>>| meta.as_ref().is_some_and(|meta| meta.managed);
            // A Secret of others concerns only those that could not take it.
            if (managed(&change.old) || managed(&change.new) || object.status.ready() != "True")
                && !self.is_own_echo(&owner, change)
            {
                self.queue.add(owner, object.lane(), Urgency::Fresh);
            }
        }
    }

    /// Whether `owner` has seen this state of its Secret already, or will when its write is answered.
    fn is_own_echo(&self, owner: &ObjectKey, change: &Change<'_, SecretMeta>) -> bool {
        let Some((version, _)) = self.shared.caches.secrets.get_versioned(change.key) else { return false };
        let mut memory = self.memory.lock();
        let Some(memory) = memory.get_mut(owner) else { return false };
        if let Some(writing) = &mut memory.writing {
            writing.heard = true;
            return true;
        }
        memory.secret.as_ref().is_some_and(|(key, seen, _)| key == change.key && *seen == version)
    }

    /// From now until what is returned is dropped, changes of its Secret wait for the answer to the write.
    pub(super) fn writing<'a>(&'a self, object: &'a ExternalSecret) -> WritingGuard<'a> {
        self.memory.lock().entry(object.key.clone()).or_default().writing = Some(Writing::default());
        WritingGuard { controller: self, object, written: None }
    }

    /// A store became ready or changed: those that failed with it try again at once.
    pub(crate) fn store_changed(&self, store: &Store) {
        if !store.is_ready() {
            return;
        }
        let users = self.indexes.lock().by_store.get(&store.key).cloned().unwrap_or_default();
        for user in users {
            if let Some(object) = self.shared.caches.external_secrets.get(&user)
                && object.status.ready() != "True"
            {
                self.queue.add(user, object.lane(), Urgency::Fresh);
            }
        }
    }

    /// One reconciliation.
    pub(crate) async fn reconcile(self: Arc<Self>, work: Work<ObjectKey>) -> Outcome {
        let started = self.shared.clock.monotonic();
        let (name, namespace) = (&work.key.name, &work.key.namespace);
        let outcome = if work.urgency == Urgency::Deletion {
            self.pass(&work.key).await
        } else {
            tokio::select! {
                biased;
                // It is being deleted, or the process ends: nobody waits for the store any more.
                () = work.cancelled.cancelled() => Outcome::Done,
                outcome = self.pass(&work.key) => outcome,
            }
        };
        let metrics = &self.shared.metrics;
        if self.shared.caches.external_secrets.get(&work.key).is_some() {
            metrics.synced(name, namespace);
            metrics.external_secret.took(
                name,
                namespace,
                self.shared.clock.monotonic().saturating_sub(started),
            );
        }
        metrics.depth("externalsecret", self.queue.depth());
        outcome
    }

    async fn pass(&self, key: &ObjectKey) -> Outcome {
        let Some(object) = self.shared.caches.external_secrets.get(key) else {
            self.shared.metrics.forget(&key.name, &key.namespace);
            self.memory.lock().remove(key);
            return Outcome::Done;
        };
        if object.deleting {
            return self.end_of_life(&object).await;
        }
        let object = match self.with_finalizer(object).await {
            Ok(object) => object,
            Err(outcome) => return outcome,
        };
        if !self.is_ours(&object) {
            return Outcome::Done;
        }
        self.refresh(&object).await
    }

    /// Whether every store that it names leaves it to this controller. One that is missing does not count.
    fn is_ours(&self, object: &ExternalSecret) -> bool {
        let settings = &self.shared.settings;
        let top = object.spec.as_ref().ok().and_then(|spec| spec.store.as_ref());
        if top.is_some_and(|store| store.kind == "ClusterSecretStore") && !settings.cluster_stores {
            return false;
        }
        object
            .stores()
            .iter()
            .all(|key| self.shared.store(key).is_none_or(|store| self.shared.is_ours(&store)))
    }

    async fn with_finalizer(&self, object: Arc<ExternalSecret>) -> Result<Arc<ExternalSecret>, Outcome> {
        if object.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return Ok(object);
        }
        let mut finalizers = object.finalizers.clone();
        finalizers.push(FINALIZER.to_owned());
        self.patch_finalizers(&object, &finalizers).await
    }

    async fn patch_finalizers(
        &self,
        object: &ExternalSecret,
        finalizers: &[String],
    ) -> Result<Arc<ExternalSecret>, Outcome> {
        let body = json!({"metadata": {
            "uid": object.uid, "resourceVersion": object.resource_version, "finalizers": finalizers,
        }});
        let result: Result<Json, _> =
            self.shared.api.merge_patch(&EXTERNAL_SECRETS, &object.key, "", &body, "").await;
        match result {
            Ok(answer) => ExternalSecret::parse(&answer).map(|new| self.keep(new)).ok_or(Outcome::Retry),
            // It is gone: so is the reason to write.
            Err(error) if error.is_not_found() => Err(Outcome::Done),
            Err(error) => {
                if !error.is_conflict() {
                    self.failed(object, &error.to_string());
                }
                Err(Outcome::Retry)
            }
        }
    }

    /// Puts the answer to a write into the cache.
    pub(super) fn keep(&self, new: ExternalSecret) -> Arc<ExternalSecret> {
        self.shared.caches.external_secrets.write_through(Kept {
            key: new.key.clone(),
            resource_version: new.resource_version.clone(),
            object: new.clone(),
        });
        Arc::new(new)
    }

    /// Deletion: what goes with it goes, then its finalizer. No store is asked.
    async fn end_of_life(&self, object: &ExternalSecret) -> Outcome {
        if !object.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            return Outcome::Done;
        }
        let deletes = object.spec.as_ref().is_ok_and(|spec| spec.target.deletion == DeletionPolicy::Delete);
        let target = object.target();
        if deletes
            && let Some(meta) = self.shared.caches.secrets.get(&target)
            && meta.controller.as_ref().is_some_and(|(.., uid)| *uid == object.uid)
        {
            let preconditions = Preconditions { uid: &meta.uid, ..Preconditions::default() };
            if let Err(error) = self.shared.api.delete(&SECRETS, &target, preconditions).await
                && !error.is_conflict()
            {
                self.failed(object, &error.to_string());
                return Outcome::Retry;
            }
        }
        let left: Vec<String> =
            object.finalizers.iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect();
        match self.patch_finalizers(object, &left).await {
            Ok(_) => Outcome::Done,
            Err(outcome) => outcome,
        }
    }

    pub(super) fn failed(&self, object: &ExternalSecret, why: &str) {
        let (name, namespace) = (&object.key.name, &object.key.namespace);
        self.shared.metrics.failed(name, namespace);
        tracing::warn!(name, namespace, why, "reconciling an ExternalSecret failed");
    }

    pub(super) fn event(
        &self,
        object: &ExternalSecret,
        severity: Severity,
        reason: &str,
        message: impl Into<String>,
    ) {
        let about = Reference {
            api_version: API_VERSION.to_owned(),
            kind: "ExternalSecret".to_owned(),
            namespace: object.key.namespace.clone(),
            name: object.key.name.clone(),
            uid: object.uid.clone(),
            resource_version: object.resource_version.clone(),
        };
        self.shared.recorder.record(&about, severity, reason, message);
    }
}

/// The time of one write to a Secret. It also ends when the write is given up.
pub(super) struct WritingGuard<'a> {
    controller: &'a Controller,
    object: &'a ExternalSecret,
    /// The version that the write made.
    pub(super) written: Option<String>,
}

impl Drop for WritingGuard<'_> {
    fn drop(&mut self) {
        let mut memory = self.controller.memory.lock();
        let writing = memory.get_mut(&self.object.key).and_then(|memory| memory.writing.take());
        drop(memory);
        if !writing.is_some_and(|writing| writing.heard) {
            return;
        }
        let cached = self.controller.shared.caches.secrets.get_versioned(&self.object.target());
        // Somebody else wrote too: that is a change like any other.
        if cached.map(|(version, _)| version) != self.written {
            self.controller.queue.add(self.object.key.clone(), self.object.lane(), Urgency::Fresh);
        }
    }
}

/// Whether a change is more than one of the status, and not the finalizer that this controller sets first of all.
fn counts(old: &ExternalSecret, new: &ExternalSecret) -> bool {
    let foreign = |object: &ExternalSecret| -> Vec<String> {
        object.finalizers.iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect()
    };
    let ours = |object: &ExternalSecret| object.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    old.uid != new.uid
        || old.generation != new.generation
        || old.labels != new.labels
        || old.annotations != new.annotations
        || foreign(old) != foreign(new)
        || (ours(old) && !ours(new))
        || old.deleting != new.deleting
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's table of update events that pass.
    #[test]
    fn o3_changes_that_count() {
        let base = json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u", "generation": 1}});
        let with = |path: &[&str], value: Json| {
            let mut object = base.clone();
            let mut at = &mut object;
            for key in path {
                at = &mut at[*key];
            }
            *at = value;
            ExternalSecret::parse(&object).unwrap()
        };
        let old = ExternalSecret::parse(&base).unwrap();
        let cases = [
            ("status", with(&["status"], json!({"syncedResourceVersion": "1"})), false),
            ("resourceVersion", with(&["metadata", "resourceVersion"], json!("9")), false),
            ("generation", with(&["metadata", "generation"], json!(2)), true),
            ("labels", with(&["metadata", "labels"], json!({"a": "b"})), true),
            ("annotations", with(&["metadata", "annotations"], json!({"a": "b"})), true),
            (
                "the operator's own annotation",
                with(&["metadata", "annotations"], json!({"coffer.dev/source-versions": "{}"})),
                false,
            ),
            ("finalizers", with(&["metadata", "finalizers"], json!(["x"])), true),
            ("the own finalizer is set", with(&["metadata", "finalizers"], json!([FINALIZER])), false),
            ("and another one with it", with(&["metadata", "finalizers"], json!(["x", FINALIZER])), true),
            ("deletion", with(&["metadata", "deletionTimestamp"], json!("2020-01-01T00:00:00Z")), true),
            ("another object", with(&["metadata", "uid"], json!("v")), true),
        ];
        for (name, new, expected) in cases {
            assert_eq!(counts(&old, &new), expected, "{name}");
        }
        // Somebody took the operator's own away: it is set again.
        let held = with(&["metadata", "finalizers"], json!([FINALIZER]));
        assert!(counts(&held, &old));
    }
}
