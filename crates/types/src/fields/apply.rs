//! Server-side apply: an object, and what one manager wants of it.
//!
//! What is applied and what comes of it are trees in JSON form, because what a client has written
//! counts: an empty list is not an absent one. Decoding the result is the caller's.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Value;
use crate::codec::normalize;
use crate::fields::compare::same;
use crate::fields::conflict::Conflicts;
use crate::fields::last_applied;
use crate::fields::managers::{Managers, Owned, PATH, never_owned};
use crate::fields::merge::{holds, merge};
use crate::fields::remove::{with_named_fields, without};
use crate::fields::set::Set;
use crate::fields::shape::Schema;
use crate::fields::typed::{Duplicates, mentioned, validate};
use crate::fields::update::{Failure, Form, VersionError, Write, about, type_of};
use crate::meta::Meta as _;
use crate::patch::to_json_form_without;

/// Who owns the fields of an object that nobody has applied to yet.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager whose client-side annotation is honoured and kept.
pub(crate) const KUBECTL: &str = "kubectl";

/// One apply.
#[derive(Clone, Copy)]
pub struct Apply<'a> {
    /// The write that it is.
    pub write: Write<'a>,
    /// The kind of the object.
    pub kind: &'a str,
    /// Take over what others own.
    pub force: bool,
}

/// Why nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// What is applied cannot be.
    #[error("{0}")]
    BadRequest(String),
    /// Others own fields that would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// An object is not what its schema says, or something else went wrong.
    #[error("{0}")]
    Failed(String),
}

/// What an apply makes of an object.
pub struct Applied {
    /// The object as a tree in JSON form, without managed fields; none when it stays as it is.
    pub object: Option<Value>,
    managers: Managers,
    /// The client-side annotation to be kept in step, if the object has one.
    last_applied: Option<String>,
}

impl Applied {
    /// Gives the finished object (the decoded [`Applied::object`], or the live one) its managed
    /// fields, and keeps kubectl's annotation in step.
    pub fn finish(self, object: &mut Value) {
        self.managers.write_to(object);
        if let Some(text) = self.last_applied
            && last_applied::of(object).is_some()
        {
            last_applied::set(object, &text);
        }
    }
}

impl Apply<'_> {
    /// Applies `applied` to `live`, the decoded object, or none when there is none yet.
    pub fn run(&self, live: Option<&Value>, applied: &Value) -> Result<Applied, ApplyError> {
        let stored = match live {
            Some(live) => Managers::of(live)
                .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?,
            None => Managers::default(),
        };
        self.check_type(applied)?;
        let schema = self.write.schema().map_err(ApplyError::Failed)?;
        let empty = self.empty(schema);
        let is_new = live.is_none();
        let live = match live {
            Some(live) => tree(schema, live),
            None => empty.clone(),
        };
        // Where there is nothing yet, nobody owns anything.
        let managers = if stored.0.is_empty() && !is_new {
            let first = Write { manager: BEFORE_FIRST_APPLY, ..self.write };
            first.update(stored, &empty, &live, Form::Tree).map_err(|error| {
                ApplyError::Failed(format!("failed to create manager for existing fields: {error}"))
            })?
        } else {
            stored
        };
        let is_kubectl = self.write.manager == KUBECTL;
        // Only kubectl's conflicts are looked at twice.
        let kept = is_kubectl.then(|| managers.clone());
        let outcome = match (self.merged(&live, applied, managers, self.force), kept) {
            (Err(ApplyError::Conflicts(conflicts)), Some(managers)) => {
                match last_applied::unchanged(schema, self.write.api_version, &live) {
                    None => Err(ApplyError::Conflicts(conflicts)),
                    Some(allowed) if conflicts.paths().difference(&allowed).is_empty() => {
                        self.merged(&live, applied, managers, true)
                    }
                    Some(allowed) => Err(ApplyError::Conflicts(conflicts.except(&allowed))),
                }
            }
            (outcome, _) => outcome,
        };
        let (object, managers) = outcome?;
        let last_applied = is_kubectl.then(|| last_applied::text(applied));
        Ok(Applied { object, managers, last_applied })
    }

    /// The applied object must be of the type of the request.
    fn check_type(&self, applied: &Value) -> Result<(), ApplyError> {
        if applied.api_version() == self.write.api_version && applied.kind() == self.kind {
            return Ok(());
        }
        Err(ApplyError::BadRequest(format!("invalid object type: {}", type_of(applied))))
    }

    /// The object before there is any.
    fn empty(&self, schema: Schema<'_>) -> Value {
        let mut empty = Value::object();
        empty.set_type(self.write.api_version, self.kind);
        tree(schema, &empty)
    }

    /// The merged object, if it changed, and its managers.
    fn merged(
        &self,
        live: &Value,
        applied: &Value,
        managers: Managers,
        force: bool,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        if applied.at(&PATH).is_some_and(|found| found.as_array().is_some()) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let write = &self.write;
        let schema = write.schema().map_err(ApplyError::Failed)?;
        let failed = |which: &str, object: &Value, error: &dyn std::fmt::Display| {
            ApplyError::Failed(format!("failed to create typed {which} object ({}): {error}", about(object)))
        };
        validate(schema, applied, Duplicates::Refused).map_err(|error| failed("patch", applied, &error))?;
        validate(schema, live, Duplicates::Allowed).map_err(|error| failed("live", live, &error))?;
        let mut managers = write.reconciled(managers, live).map_err(ApplyError::Failed)?;
        let merged = if holds(schema, live, applied) {
            Cow::Borrowed(live)
        } else {
            let merged = merge(schema, live.clone(), applied)
                .map_err(|error| ApplyError::Failed(format!("failed to merge config: {error}")))?;
            Cow::Owned(merged)
        };
        let identity = write.identity(true);
        let key = identity.key();
        let set = write.kept(mentioned(schema, applied));
        let owned = Owned { identity, set, api_version: write.api_version.to_owned(), time: None };
        let last = managers.0.insert(key.clone(), owned);
        if let Some(owned) = managers.0.get_mut(&key) {
            owned.time = last.as_ref().and_then(|last| last.time.clone());
        }
        let object = match &last {
            Some(last) if self.lets_go(last, &managers, &key) => self
                .pruned(merged.into_owned(), &managers, last)
                .map(Cow::Owned)
                .map_err(|error| ApplyError::Failed(format!("failed to prune fields: {error}")))?,
            _ => merged,
        };
        // Without others there is nobody to take anything from.
        if managers.0.keys().any(|other| *other != key) {
            let moved = write.moved(managers, Some(&key), [live, &object], Form::Tree, force);
            (managers, _) = moved.map_err(|failure| match failure {
                Failure::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
                Failure::Other(text) => ApplyError::Failed(text),
            })?;
        }
        let changed = matches!(object, Cow::Owned(_)) && !same(live, &object);
        if let Some(owned) = managers.0.get_mut(&key) {
            owned.set.remove_all(never_owned());
            if changed {
                owned.time = Some(write.time.to_owned());
            }
        }
        managers.0.retain(|other, owned| *other != key || !owned.set.is_empty());
        Ok((changed.then(|| object.into_owned()), managers))
    }

    /// Whether there may be something that its applier has let go of. In several versions that can only be
    /// told by looking at the object in each.
    fn lets_go(&self, last: &Owned, managers: &Managers, key: &str) -> bool {
        let version = self.write.api_version;
        let in_one_version = managers.0.values().all(|owned| owned.api_version == version);
        match managers.0.get(key) {
            Some(now) if in_one_version && last.api_version == version => !last.set.is_within(&now.set),
            _ => !last.set.is_empty(),
        }
    }

    /// The merged object without what its applier has let go of, unless somebody else owns it.
    fn pruned(&self, merged: Value, managers: &Managers, last: &Owned) -> Result<Value, String> {
        let last_version = "to last applied version";
        let Some(merged) = self.seen_in(&last.api_version, &merged, "merged", last_version)? else {
            return Ok(merged);
        };
        let schema = self.schema_of(&last.api_version)?;
        let named = |set: &Set| with_named_fields(schema, set);
        let pruned = without(schema, merged.clone(), &named(&last.set));
        let pruned = self
            .with_owned(&merged, pruned, &last.api_version, managers)
            .map_err(|error| format!("failed add back owned items: {error}"))?;
        let pruned = self
            .seen_in(&last.api_version, &pruned, "pruned", last_version)
            .map_err(|error| format!("failed add back dangling items: {error}"))?;
        let Some(pruned) = pruned else { return Ok(merged) };
        // What nobody owns, or updaters own, was not the applier's to take away.
        let (all, kept) = (mentioned(schema, &merged), mentioned(schema, &pruned));
        let gone = named(&all).difference(&named(&kept)).intersection(&named(&last.set));
        let pruned = without(schema, merged, &gone);
        self.write.seen_in(self.write.api_version, &pruned).map(Cow::into_owned)
    }

    /// Adds back what was pruned and somebody owns.
    fn with_owned(
        &self,
        merged: &Value,
        pruned: Value,
        first: &str,
        managers: &Managers,
    ) -> Result<Value, String> {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for manager in managers.0.values() {
            let set = owned.entry(&manager.api_version).or_default();
            *set = set.union(&manager.set);
        }
        let mut versions: Vec<(&str, Set)> = owned.remove_entry(first).into_iter().collect();
        versions.extend(owned);
        let (mut merged, mut pruned) = (merged.clone(), pruned);
        for (version, owned) in versions {
            let place = format!("at version {version}");
            let Some(seen) = self.seen_in(version, &merged, "merged", &place)? else { continue };
            merged = seen;
            let Some(seen) = self.seen_in(version, &pruned, "pruned", &place)? else { continue };
            let schema = self.schema_of(version)?;
            let named = |set: &Set| with_named_fields(schema, set);
            let kept = named(&mentioned(schema, &seen)).union(&named(&owned));
            let gone = named(&mentioned(schema, &merged)).difference(&kept);
            pruned = without(schema, merged.clone(), &gone);
        }
        Ok(pruned)
    }

    /// The object in a version; none when that is not known.
    fn seen_in(
        &self,
        version: &str,
        object: &Value,
        which: &str,
        place: &str,
    ) -> Result<Option<Value>, String> {
        let failed = |error: String| format!("failed to convert {which} object {place}: {error}");
        match self.write.versions.schema(version) {
            Ok(_) => self.write.seen_in(version, object).map(|seen| Some(seen.into_owned())).map_err(failed),
            Err(VersionError::Missing) => Ok(None),
            Err(VersionError::Failed(text)) => Err(failed(text)),
        }
    }

    fn schema_of(&self, version: &str) -> Result<Schema<'_>, String> {
        self.write.versions.schema(version).map_err(|error| error.to_string())
    }
}

/// A decoded object as Go marshals it, without managed fields.
fn tree(schema: Schema<'_>, object: &Value) -> Value {
    let mut object = to_json_form_without(object, &PATH);
    if let (Schema::Message(message), Value::Object(members)) = (schema, &mut object) {
        normalize(message, members);
    }
    object
}
