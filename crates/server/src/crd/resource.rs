//! What a write may change in a custom resource.

use coffer_types::Value;
use coffer_types::validation::field::{FieldError, FieldErrors, Path};

/// Before a create: the first generation, and no status where that is a subresource.
pub fn prepare_create(object: &mut Value, has_status: bool) {
    if has_status {
        object.remove(&["status"]);
    }
    object.set(&["metadata", "generation"], 1);
}

/// Before an update: the status stays where it is a subresource, and the generation rises
/// when anything but metadata (and that status) changed.
pub fn prepare_update(new: &mut Value, old: &Value, has_status: bool) {
    if has_status {
        match old.get("status") {
            Some(status) => new.set(&["status"], status.clone()),
            None => drop(new.remove(&["status"])),
        }
    }
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
    let changed = without_metadata(new).ne(without_metadata(old));
    new.set(&["metadata", "generation"], generation.saturating_add(i64::from(changed)));
}

/// Before an update of the status: nothing else changes, but who manages which field.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    let status = new.remove(&["status"]);
    let managed = new.remove(&["metadata", "managedFields"]);
    *new = old.clone();
    for (path, value) in [(&["status"][..], status), (&["metadata", "managedFields"][..], managed)] {
        match value {
            Some(value) => new.set(path, value),
            None => drop(new.remove(path)),
        }
    }
}

fn without_metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata")
}

/// The object in another version of a definition whose conversion is `None`.
pub fn convert(object: &mut Value, group: &str, version: &str) {
    object.set(&["apiVersion"], format!("{group}/{version}"));
}

/// Whether an object is of the version and kind that it was sent to.
pub fn check_type(object: &Value, api_version: &str, kind: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, expected) in [("kind", kind), ("apiVersion", api_version)] {
        let found = object.str_at(&[name]);
        if found != expected {
            errors.push(FieldError::invalid(&Path::new(name), found, format!("must be {expected}")));
        }
    }
    errors
}
