//! The rules of `metadata`, at creation and at update, and the owner-reference clean-up.

use std::collections::BTreeSet;

use crate::meta::{Meta, split_api_version};
use crate::names::{self, NameRule};
use crate::validation::field::{FieldError, FieldErrors, Path, Shown, go_quote, is_print};
use crate::{Map, Value};

/// Most bytes of all annotation keys and values together.
pub const ANNOTATIONS_LIMIT: usize = 256 * 1024;
/// Longest `manager` of a managed-fields entry, and longest `fieldManager` of a request, in bytes.
pub const FIELD_MANAGER_LIMIT: usize = 128;
/// Longest `subresource` of a managed-fields entry, in bytes.
pub const SUBRESOURCE_LIMIT: usize = 256;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
const OWNER_FIELDS: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
pub(crate) const FIELD_IMMUTABLE: &str = "field is immutable";

/// How one kind's `metadata` is checked.
#[derive(Clone, Copy)]
pub struct MetaRules {
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// What may be a name.
    pub name: NameRule,
    /// Whether finalizers must be standard ones or carry a domain (the core kinds).
    pub qualified_finalizers: bool,
}

impl MetaRules {
    /// What every kind passes besides its own rules: a name must be a path segment.
    pub fn generic(self) -> Self {
        Self { name: names::path_segment_or_prefix, qualified_finalizers: false, ..self }
    }
}

/// The check at creation, also run at every update.
pub fn validate(object: &Value, rules: MetaRules) -> FieldErrors {
    let path = Path::new("metadata");
    let mut errors = FieldErrors::new();
    let (generate_name, name) = (object.meta_str("generateName"), object.name());
    if !generate_name.is_empty() {
        let path = path.child("generateName");
        errors.extend(invalid_each((rules.name)(generate_name, true), &path, generate_name));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name or generateName is required"));
    } else {
        errors.extend(invalid_each((rules.name)(name, false), &path.child("name"), name));
    }
    let namespace = object.namespace();
    let namespace_path = path.child("namespace");
    match (rules.namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required(&namespace_path, "")),
        (true, false) => {
            errors.extend(invalid_each(names::is_dns1123_label(namespace), &namespace_path, namespace));
        }
        (false, false) => errors.push(FieldError::forbidden(&namespace_path, "not allowed on this type")),
        (false, true) => {}
    }
    errors.extend(generation(object, &path));
    errors.extend(labels(object.labels(), &path.child("labels")));
    errors.extend(annotations(object.annotations(), &path.child("annotations")));
    errors.extend(owner_references(object.owner_references(), &path.child("ownerReferences")));
    errors.extend(finalizers(object, &path.child("finalizers")));
    errors.extend(managed_fields(object, &path.child("managedFields")));
    if rules.qualified_finalizers {
        errors.extend(qualified_finalizers(object));
    }
    errors
}

/// The check at update only: what may not change.
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let path = Path::new("metadata");
    let mut errors = FieldErrors::new();
    if old.deletion_timestamp().is_some() {
        errors.extend(no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if new.resource_version().is_empty() {
        let path = path.child("resourceVersion");
        errors.push(FieldError::invalid(&path, "", "must be specified for an update"));
    }
    errors.extend(generation(new, &path));
    if number(new, "generation") < number(old, "generation") {
        let shown = number(new, "generation");
        errors.push(FieldError::invalid(&path.child("generation"), shown, "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let (new, old) = (new.meta_str(field), old.meta_str(field));
        errors.extend(immutable(new == old, &path.child(field), new));
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let of = |object: &'_ Value| object.at(&["metadata", field]).cloned().unwrap_or_default();
        let (new, old) = (of(new), of(old));
        // Upstream prints times as JSON, quotes included, which is how text is shown anyway.
        errors.extend(immutable(new == old, &path.child(field), &new));
    }
    errors.extend(labels(new.labels(), &path.child("labels")));
    errors.extend(annotations(new.annotations(), &path.child("annotations")));
    errors.extend(owner_references(new.owner_references(), &path.child("ownerReferences")));
    errors.extend(managed_fields(new, &path.child("managedFields")));
    if rules.qualified_finalizers {
        errors.extend(qualified_finalizers(new));
    }
    errors
}

/// What every update takes over from the stored object before it is validated.
pub fn take_over(new: &mut Value, old: &Value) {
    let generation = old.at(&["metadata", "generation"]).cloned();
    match generation {
        Some(generation) => new.set(&["metadata", "generation"], generation),
        None => {
            new.remove(&["metadata", "generation"]);
        }
    }
    if new.uid().is_empty() {
        new.set_meta_str("uid", old.uid());
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(time) = old.at(&["metadata", field]).filter(|time| !time.is_null()) {
            new.set(&["metadata", field], time.clone());
        }
    }
    let grace = ["metadata", "deletionGracePeriodSeconds"];
    if let (Some(seconds), None) = (old.at(&grace), new.at(&grace)) {
        new.set(&grace, seconds.clone());
    }
}

/// What a client may not choose is removed from an object that it creates.
pub fn wipe_system_fields(object: &mut Value) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.remove(&["metadata", field]);
    }
}

/// Removes owner references that are there twice, exactly equal; the warning that upstream then gives.
pub fn deduplicate_owner_references(object: &mut Value, after_admission: bool) -> Option<String> {
    let references = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut duplicates: Vec<String> = Vec::new();
    for reference in references.drain(..) {
        let uid = reference.str_at(&["uid"]);
        if kept.contains(&reference) {
            if !duplicates.iter().any(|known| known == uid) {
                duplicates.push(uid.to_owned());
            }
        } else {
            kept.push(reference);
        }
    }
    *references = kept;
    let uids = duplicates.join(", ");
    match (duplicates.is_empty(), after_admission) {
        (true, _) => None,
        (false, false) => Some(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, \
             and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
             observed: {uids}"
        )),
        (false, true) => Some(format!(
            ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
             dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {uids}"
        )),
    }
}

/// A label map.
pub fn labels(labels: &Map, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (key, value) in labels {
        errors.extend(label_name(key, path));
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid_each(names::is_label_value(value), path, value));
    }
    errors
}

/// A label key.
pub fn label_name(key: &str, path: &Path) -> FieldErrors {
    invalid_each(names::is_qualified_name(key), path, key)
}

/// An annotation map. Keys are checked without regard to case; values may be anything.
pub fn annotations(annotations: &Map, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut size = 0_usize;
    for (key, value) in annotations {
        errors.extend(invalid_each(names::is_qualified_name(&key.to_lowercase()), path, key));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(path, ANNOTATIONS_LIMIT));
    }
    errors
}

/// The name of a field manager.
pub fn field_manager(manager: &str, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if manager.len() > FIELD_MANAGER_LIMIT {
        errors.push(FieldError::too_long(path, FIELD_MANAGER_LIMIT));
    }
    for (position, character) in manager.char_indices().filter(|(_, character)| !is_print(*character)) {
        let code = u32::from(character);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        errors.push(FieldError::invalid(path, manager, detail));
    }
    errors
}

/// A selector over labels, as a field of an object.
pub fn label_selector(selector: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if let Some(match_labels) = selector.get("matchLabels").and_then(Value::as_object) {
        errors.extend(labels(match_labels, &path.child("matchLabels")));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    for (index, expression) in expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = expression.get("values").and_then(Value::as_array).unwrap_or_default();
        match (expression.str_at(&["operator"]), values.is_empty()) {
            ("In" | "NotIn", true) => errors.push(FieldError::required(
                &path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            ("Exists" | "DoesNotExist", false) => errors.push(FieldError::forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            (operator, _) => errors.push(FieldError::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
        errors.extend(label_name(expression.str_at(&["key"]), &path.child("key")));
        for (index, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            errors.extend(invalid_each(
                names::is_label_value(value),
                &path.child("values").index(index),
                value,
            ));
        }
    }
    errors
}

/// A finalizer's name: qualified, and standard or with a domain.
pub fn finalizer_name(finalizer: &str, path: &Path) -> FieldErrors {
    let mut errors = invalid_each(names::is_qualified_name(finalizer), path, finalizer);
    errors.extend(standard_finalizer(finalizer, path));
    errors
}

/// Upstream's warning about a custom resource's finalizer without a domain or a path.
pub fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(Meta::finalizers).unwrap_or_default();
    new.finalizers()
        .into_iter()
        .filter(|finalizer| {
            !known.contains(finalizer) && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer)
        })
        .map(|finalizer| {
            let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
            format!(
                "metadata.finalizers: {}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers",
                go_quote(finalizer)
            )
        })
        .collect()
}

pub(crate) fn invalid_each(faults: Vec<String>, path: &Path, value: &str) -> FieldErrors {
    faults.into_iter().map(|fault| FieldError::invalid(path, value, fault)).collect()
}

pub(crate) fn immutable(equal: bool, path: &Path, shown: impl Into<Shown>) -> Option<FieldError> {
    (!equal).then(|| FieldError::invalid(path, shown, FIELD_IMMUTABLE))
}

fn number(object: &Value, field: &str) -> i64 {
    object.at(&["metadata", field]).and_then(Value::as_i64).unwrap_or_default()
}

fn generation(object: &Value, path: &Path) -> Option<FieldError> {
    let generation = number(object, "generation");
    (generation < 0).then(|| {
        FieldError::invalid(&path.child("generation"), generation, "must be greater than or equal to 0")
    })
}

fn owner_references(references: &[Value], path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut controller: Option<String> = None;
    for (index, reference) in references.iter().enumerate() {
        errors.extend(owner_reference(reference, &path.index(index)));
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let current = format!("{}/{}", reference.str_at(&["kind"]), reference.str_at(&["name"]));
            match &controller {
                Some(first) => errors.push(FieldError::invalid(
                    path,
                    Shown::structs(references, &OWNER_FIELDS),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {current}"
                    ),
                )),
                None => controller = Some(current),
            }
        }
    }
    errors
}

fn owner_reference(reference: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let api_version = reference.str_at(&["apiVersion"]);
    let (group, version) = split_api_version(api_version);
    if api_version.is_empty() {
        errors.push(FieldError::required(&path.child("apiVersion"), "must not be empty"));
    } else if version.is_empty() || version.contains('/') {
        let detail = "must be <group>/<version> or <version>";
        errors.push(FieldError::invalid(&path.child("apiVersion"), api_version, detail));
    }
    for field in ["kind", "name", "uid"] {
        if reference.str_at(&[field]).is_empty() {
            errors.push(FieldError::required(&path.child(field), "must not be empty"));
        }
    }
    if (group, version, reference.str_at(&["kind"])) == ("", "v1", "Event") {
        errors.push(FieldError::invalid(
            path,
            Shown::one_struct(reference, &OWNER_FIELDS),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
    errors
}

fn finalizers(object: &Value, path: &Path) -> FieldErrors {
    let finalizers = object.finalizers();
    let mut errors = FieldErrors::new();
    for finalizer in &finalizers {
        errors.extend(invalid_each(names::is_qualified_name(finalizer), path, finalizer));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let shown = object.at(&["metadata", "finalizers"]).unwrap_or(&Value::Null);
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, shown, detail));
    }
    errors
}

fn qualified_finalizers(object: &Value) -> FieldErrors {
    let path = Path::of(&["metadata", "finalizers"]);
    let finalizers = object.finalizers();
    finalizers
        .iter()
        .enumerate()
        .filter_map(|(index, finalizer)| standard_finalizer(finalizer, &path.index(index)))
        .collect()
}

fn standard_finalizer(finalizer: &str, path: &Path) -> Option<FieldError> {
    (!finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer)).then(|| {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid(path, finalizer, detail)
    })
}

fn no_new_finalizers(new: &Value, old: &Value, path: &Path) -> Option<FieldError> {
    let old = old.finalizers();
    let extra: BTreeSet<_> =
        new.finalizers().into_iter().filter(|finalizer| !old.contains(finalizer)).collect();
    if extra.is_empty() {
        return None;
    }
    let quoted: Vec<_> = extra.into_iter().map(go_quote).collect();
    Some(FieldError::forbidden(
        path,
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            quoted.join(", ")
        ),
    ))
}

fn managed_fields(object: &Value, path: &Path) -> FieldErrors {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let mut errors = FieldErrors::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        match entry.str_at(&["operation"]) {
            "Apply" | "Update" => {}
            "" => errors.push(FieldError::required(&path.child("operation"), "must not be empty")),
            other => {
                let supported = ["Apply", "Update"];
                errors.push(FieldError::not_supported(&path.child("operation"), other, &supported));
            }
        }
        let fields_type = entry.str_at(&["fieldsType"]);
        if !matches!(fields_type, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, detail));
        }
        errors.extend(field_manager(entry.str_at(&["manager"]), &path.child("manager")));
        if entry.str_at(&["subresource"]).len() > SUBRESOURCE_LIMIT {
            errors.push(FieldError::too_long(&path.child("subresource"), SUBRESOURCE_LIMIT));
        }
    }
    errors
}

#[cfg(test)]
#[path = "meta_tests.rs"]
mod tests;
