//! How ownership moves when an object changes: the part that every write shares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::Value;
use crate::fields::compare::{Comparison, compare, compare_trees};
use crate::fields::conflict::{Conflict, Conflicts};
use crate::fields::managers::{Identity, Managers, Owned, PATH, never_owned, version_of};
use crate::fields::reconcile::reconcile;
use crate::fields::set::Set;
use crate::fields::shape::Schema;
use crate::fields::typed::{Duplicates, validate};
use crate::meta::{Meta as _, split_api_version};

/// The versions of a kind in which managers may have written.
pub trait Versions {
    /// The schema of a version.
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, VersionError>;
    /// An object in another version that has a schema.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
    /// What a write in a version cannot change (`status`, say), so that nobody comes to own it.
    fn reset(&self, api_version: &str) -> Option<&Set>;
}

/// Why a version cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// It is not known (any more): who wrote in it owns nothing.
    #[error("the version is not known")]
    Missing,
    /// Something is wrong.
    #[error("{0}")]
    Failed(String),
}

/// A kind that has one version.
#[derive(Debug, Clone)]
pub struct OneVersion<'a> {
    /// The version.
    pub api_version: &'a str,
    /// Its schema.
    pub schema: Schema<'a>,
    /// What the write cannot change.
    pub reset: Set,
}

impl Versions for OneVersion<'_> {
    fn schema(&self, api_version: &str) -> Result<Schema<'_>, VersionError> {
        if api_version == self.api_version { Ok(self.schema) } else { Err(VersionError::Missing) }
    }

    fn convert(&self, object: &Value, _api_version: &str) -> Result<Value, String> {
        Ok(object.clone())
    }

    fn reset(&self, api_version: &str) -> Option<&Set> {
        (api_version == self.api_version).then_some(&self.reset)
    }
}

/// One write.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The type of the object.
    pub versions: &'a dyn Versions,
    /// The version in which the object is written.
    pub api_version: &'a str,
    /// The subresource that is written, or "".
    pub subresource: &'a str,
    /// Who writes; "" is `unknown`.
    pub manager: &'a str,
    /// The time of the write, RFC 3339 with whole seconds.
    pub time: &'a str,
}

/// Sets `metadata.managedFields` of `new`, which is about to replace `old`
/// (an empty object at creation). Nothing else of `new` changes. When that fails, the object keeps
/// the entries that it has.
pub fn update(old: &Value, new: &mut Value, write: &Write<'_>) {
    let managers = Managers::of_write(old, new, write.subresource);
    new.remove(&PATH);
    // An object that is not tracked stays so, unless it is new.
    if managers.0.is_empty() && !old.uid().is_empty() {
        return;
    }
    match write.update(managers, old, new, Form::Decoded) {
        Ok(managers) => managers.write_to(new),
        Err(_) => {
            if let Some(entries) = old.at(&PATH) {
                new.set(&PATH, entries.clone());
            }
        }
    }
}

/// In which form objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the codec decodes them.
    Decoded,
    /// Trees in JSON form.
    Tree,
}

/// Why ownership could not be moved.
#[derive(Debug)]
pub(crate) enum Failure {
    Conflicts(Conflicts),
    Other(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl Write<'_> {
    /// Who writes.
    pub(crate) fn identity(&self, applied: bool) -> Identity {
        Identity {
            manager: if self.manager.is_empty() { "unknown" } else { self.manager }.to_owned(),
            applied,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    pub(crate) fn schema(&self) -> Result<Schema<'_>, String> {
        self.versions.schema(self.api_version).map_err(|error| error.to_string())
    }

    pub(crate) fn kept(&self, set: Set) -> Set {
        match self.versions.reset(self.api_version) {
            Some(reset) if !reset.is_empty() => set.recursive_difference(reset),
            _ => set,
        }
    }

    /// The managers after a write that is no apply.
    pub(crate) fn update(
        &self,
        managers: Managers,
        old: &Value,
        new: &Value,
        form: Form,
    ) -> Result<Managers, String> {
        let schema = self.schema()?;
        // What is decoded by tables is of their types.
        if matches!(schema, Schema::CustomResource(_)) || form == Form::Tree {
            for (which, object) in [("new", new), ("live", old)] {
                validate(schema, object, Duplicates::Allowed).map_err(|error| {
                    format!("failed to convert {which} object ({}) to smd typed: {error}", about(object))
                })?;
            }
        }
        let managers = self.reconciled(managers, old)?;
        let moved = self.moved(managers, None, [old, new], form, true);
        let (mut managers, comparison) = match moved {
            Ok(moved) => moved,
            Err(Failure::Conflicts(conflicts)) => return Err(conflicts.to_string()),
            Err(Failure::Other(text)) => return Err(text),
        };
        let gained = self.kept(comparison.modified.union(&comparison.added)).difference(never_owned());
        if !gained.is_empty() {
            let identity = self.identity(false);
            let key = identity.key();
            let set = match managers.0.get(&key) {
                Some(previous) => gained.union(&previous.set),
                None => gained,
            };
            let api_version = self.api_version.to_owned();
            managers.0.insert(key, Owned { identity, set, api_version, time: Some(self.time.to_owned()) });
        }
        managers.cap();
        Ok(managers)
    }

    /// The sets by today's schemas, of which `live` must be in every version.
    pub(crate) fn reconciled(&self, managers: Managers, live: &Value) -> Result<Managers, String> {
        let mut reconciled = Managers::default();
        for (key, mut owned) in managers.0 {
            match self.versions.schema(&owned.api_version) {
                Ok(schema) => {
                    self.seen_in(&owned.api_version, live)?;
                    owned.set = reconcile(schema, owned.set);
                }
                Err(VersionError::Missing) => continue,
                Err(VersionError::Failed(text)) => return Err(text),
            }
            reconciled.0.insert(key, owned);
        }
        Ok(reconciled)
    }

    /// Takes from everybody but `applier` what has changed or gone. Without `force` nothing is taken
    /// that somebody owns.
    pub(crate) fn moved(
        &self,
        mut managers: Managers,
        applier: Option<&str>,
        [old, new]: [&Value; 2],
        form: Form,
        force: bool,
    ) -> Result<(Managers, Comparison), Failure> {
        let mut comparisons: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        let first = self.compare(self.api_version, old, new, form)?;
        comparisons.insert(self.api_version.to_owned(), first);
        for (key, owned) in &managers.0 {
            if Some(key.as_str()) != applier && !comparisons.contains_key(&owned.api_version) {
                let comparison = self.compare(&owned.api_version, old, new, form)?;
                comparisons.insert(owned.api_version.clone(), comparison);
            }
        }
        let changes = |owned: &Owned| comparisons.get(&owned.api_version).and_then(Option::as_ref);
        let is_other = |key: &str| Some(key) != applier;
        managers.0.retain(|key, owned| !is_other(key) || changes(owned).is_some());
        let mut conflicts = Conflicts::default();
        let mut lost: BTreeMap<String, Set> = BTreeMap::new();
        for (key, owned) in managers.0.iter().filter(|(key, _)| is_other(key)) {
            let Some(comparison) = changes(owned) else { continue };
            let taken = owned.set.intersection(&comparison.modified.union(&comparison.added));
            taken.for_each(&mut |path| {
                conflicts.0.push(Conflict { owner: owned.identity.clone(), path: path.to_vec() });
            });
            lost.insert(key.clone(), taken.union(&comparison.removed));
        }
        if !force && !conflicts.0.is_empty() {
            return Err(Failure::Conflicts(conflicts));
        }
        for (key, lost) in lost {
            if let Some(owned) = managers.0.get_mut(&key) {
                owned.set = owned.set.difference(&lost);
            }
        }
        managers.0.retain(|_, owned| !owned.set.is_empty());
        let comparison = comparisons.remove(self.api_version).flatten().unwrap_or_default();
        Ok((managers, comparison))
    }

    /// What changed, seen in one version; nothing when that version is not known.
    fn compare(
        &self,
        api_version: &str,
        old: &Value,
        new: &Value,
        form: Form,
    ) -> Result<Option<Comparison>, String> {
        let schema = match self.versions.schema(api_version) {
            Ok(schema) => schema,
            Err(VersionError::Missing) => return Ok(None),
            Err(VersionError::Failed(text)) => return Err(text),
        };
        let compare = match form {
            Form::Decoded => compare,
            Form::Tree => compare_trees,
        };
        let comparison = if api_version == self.api_version && form == Form::Tree && std::ptr::eq(old, new) {
            // A valid tree is like itself.
            Ok(Comparison::default())
        } else if api_version == self.api_version {
            compare(schema, old, new)
        } else {
            let failed = |which: &str, error: &str| format!("failed to convert {which} object: {error}");
            let old = self.seen_in(api_version, old).map_err(|error| failed("old", &error))?;
            let new = self.seen_in(api_version, new).map_err(|error| failed("new", &error))?;
            compare(schema, &old, &new)
        };
        let comparison = comparison.map_err(|error| format!("failed to compare objects: {error}"))?;
        Ok(Some(comparison.without(self.versions.reset(api_version))))
    }

    /// The object in another version that is known.
    pub(crate) fn seen_in<'o>(&self, api_version: &str, object: &'o Value) -> Result<Cow<'o, Value>, String> {
        // At creation there is nothing yet.
        if version_of(object).is_empty() || version_of(object) == api_version {
            return Ok(Cow::Borrowed(object));
        }
        let converted = self.versions.convert(object, api_version)?;
        if let Ok(schema @ Schema::CustomResource(_)) = self.versions.schema(api_version) {
            validate(schema, &converted, Duplicates::Refused).map_err(|error| error.to_string())?;
        }
        Ok(Cow::Owned(converted))
    }
}

/// `namespace/name; group/version, Kind=kind`, as upstream names an object in an error.
pub(crate) fn about(object: &Value) -> String {
    format!("{}/{}; {}", object.namespace(), object.name(), type_of(object))
}

/// The type that an object says it is of, as Go prints it.
pub(crate) fn type_of(object: &Value) -> String {
    let api_version = object.api_version();
    if api_version.matches('/').count() > 1 {
        return "/, Kind=".to_owned();
    }
    let (group, version) = split_api_version(api_version);
    format!("{group}/{version}, Kind={}", object.kind())
}
