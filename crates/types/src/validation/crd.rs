//! CustomResourceDefinitions: defaults, names, versions and, with [`structural`], their schemas.
//!
//! Thin: rules in CEL and the pruning of defaults are checked where they are compiled.

use std::collections::BTreeSet;

use crate::Value;
use crate::meta::Meta;
use crate::names::{is_dns1035_label, is_dns1123_subdomain};
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{self, MetaRules, immutable};
use crate::validation::structural;

/// Most selectable fields of one version.
pub const SELECTABLE_FIELDS_LIMIT: usize = 8;
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Sets what is left out: singular, list kind, conversion, and the first stored version.
pub fn default(definition: &mut Value) {
    let kind = definition.str_at(&["spec", "names", "kind"]).to_owned();
    if definition.str_at(&["spec", "names", "singular"]).is_empty() {
        definition.set(&["spec", "names", "singular"], kind.to_lowercase());
    }
    if definition.str_at(&["spec", "names", "listKind"]).is_empty() && !kind.is_empty() {
        definition.set(&["spec", "names", "listKind"], format!("{kind}List"));
    }
    if definition.at(&["spec", "conversion"]).is_none_or(Value::is_null) {
        definition.set(&["spec", "conversion"], Value::from([("strategy", "None")]));
    }
    let service = ["spec", "conversion", "webhook", "clientConfig", "service"];
    if definition.at(&service).is_some_and(|service| service.as_object().is_some()) {
        let service = definition.object_at_mut(&service);
        service.entry("port".to_owned()).or_insert(Value::Int(443));
    }
    let storage = versions(definition).iter().find(|version| is_true(version, "storage"));
    let storage = storage.map(|version| version.str_at(&["name"]).to_owned());
    let stored = definition.at(&["status", "storedVersions"]).and_then(Value::as_array);
    if let (true, Some(storage)) = (stored.unwrap_or_default().is_empty(), storage) {
        definition.set(&["status", "storedVersions"], vec![Value::from(storage)]);
    }
}

/// What a new definition gets: a fresh status, and generation 1.
pub fn prepare_create(definition: &mut Value) {
    definition.remove(&["status"]);
    definition.set(&["status"], Value::object());
    definition.set(&["metadata", "generation"], 1);
    default(definition);
}

/// An update keeps the status, and adds a new storage version to the stored ones.
pub fn prepare_update(new: &mut Value, old: &Value) {
    new.set(&["status"], old.get("status").cloned().unwrap_or_else(Value::object));
    let storage = versions(new).iter().find(|version| is_true(version, "storage"));
    let storage = storage.map(|version| Value::from(version.str_at(&["name"])));
    let mut stored = list(new, &["status", "storedVersions"]).to_vec();
    if let Some(storage) = storage.filter(|storage| !stored.contains(storage)) {
        stored.push(storage);
        new.set(&["status", "storedVersions"], stored);
    }
    super::pod::count_generation(new, old);
}

/// The check at creation.
pub fn validate(definition: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(definition, rules);
    let wanted = format!(
        "{}.{}",
        definition.str_at(&["spec", "names", "plural"]),
        definition.str_at(&["spec", "group"])
    );
    if definition.name() != wanted && !definition.name().is_empty() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        let path = Path::of(&["metadata", "name"]);
        // Next to the other fault of a name, if there is one.
        let place =
            errors.iter().rposition(|error| error.field == "metadata.name").map_or(0, |last| last + 1);
        errors.insert(place, FieldError::invalid(&path, definition.name(), detail));
    }
    errors.extend(spec(definition));
    errors.extend(stored_versions(definition));
    errors.extend(approval(definition));
    errors.extend(preserve_unknown_fields(definition));
    errors
}

/// The check at update.
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    errors.extend(spec(new));
    let established = list(old, &["status", "conditions"]).iter().any(|condition| {
        condition.str_at(&["type"]) == "Established" && condition.str_at(&["status"]) == "True"
    });
    let mut unchanged = |path: &[&str]| {
        let (new, old) = (new.str_at(path), old.str_at(path));
        errors.extend(immutable(new == old, &Path::of(path), new));
    };
    if established {
        unchanged(&["spec", "scope"]);
        unchanged(&["spec", "names", "kind"]);
    }
    unchanged(&["spec", "group"]);
    unchanged(&["spec", "names", "plural"]);
    errors.extend(stored_versions(new));
    if new.annotation(APPROVAL) != old.annotation(APPROVAL) {
        errors.extend(approval(new));
    }
    if !is_true(old.get("spec").unwrap_or(&Value::Null), "preserveUnknownFields") {
        errors.extend(preserve_unknown_fields(new));
    }
    errors
}

fn spec(definition: &Value) -> FieldErrors {
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    let group = definition.str_at(&["spec", "group"]);
    let (faults, group_path) = (is_dns1123_subdomain(group), path.child("group"));
    if group.is_empty() {
        errors.push(FieldError::required(&group_path, ""));
    } else if !faults.is_empty() {
        errors.push(FieldError::invalid(&group_path, group, faults.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid(&group_path, group, "should be a domain with at least one dot"));
    }
    match definition.str_at(&["spec", "scope"]) {
        "" => errors.push(FieldError::required(&path.child("scope"), "")),
        "Cluster" | "Namespaced" => {}
        scope => {
            let supported = ["Cluster", "Namespaced"];
            errors.push(FieldError::not_supported(&path.child("scope"), scope, &supported));
        }
    }
    let versions_path = path.child("versions");
    for (index, version) in versions(definition).iter().enumerate() {
        if version.at(&["schema", "openAPIV3Schema"]).is_none_or(Value::is_null) {
            let path = versions_path.index(index).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&path, ""));
        }
    }
    for (index, version) in versions(definition).iter().enumerate() {
        errors.extend(validate_version(version, &versions_path.index(index)));
    }
    let names: BTreeSet<_> = versions(definition).iter().map(|version| version.str_at(&["name"])).collect();
    if names.len() != versions(definition).len() {
        // Upstream prints the whole list, schemas and all, by the names of its internal fields.
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid(&versions_path, Shown::omitted(), detail));
    }
    if versions(definition).iter().filter(|version| is_true(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&versions_path, Shown::omitted(), detail));
    }
    errors.extend(validate_names(definition, &path.child("names")));
    errors.extend(conversion(definition, &path.child("conversion")));
    errors
}

fn validate_version(version: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = version.str_at(&["name"]);
    let faults = is_dns1035_label(name);
    if !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("name"), name, faults.join(",")));
    }
    if let Some(schema) = version.at(&["schema", "openAPIV3Schema"]).filter(|schema| !schema.is_null()) {
        let path = path.child("schema").child("openAPIV3Schema");
        if is_true(schema, "nullable") {
            let detail = "nullable cannot be true at the root";
            errors.push(FieldError::forbidden(&path.child("nullable"), detail));
        }
        errors.extend(structural::validate(schema, &path));
    }
    for (index, column) in list(version, &["additionalPrinterColumns"]).iter().enumerate() {
        errors.extend(validate_column(column, &path.child("additionalPrinterColumns").index(index)));
    }
    errors.extend(selectable_fields(version, &path.child("selectableFields")));
    errors
}

fn validate_column(column: &Value, path: &Path) -> FieldErrors {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let mut errors = FieldErrors::new();
    if column.str_at(&["name"]).is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let (kind, detail) = (column.str_at(&["type"]), format!("must be one of {}", TYPES.join(",")));
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), detail));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    let format = column.str_at(&["format"]);
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(&path.child("format"), format, detail));
    }
    let (json_path, field) = (column.str_at(&["jsonPath"]), path.child("JSONPath"));
    if json_path.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if !json_path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(&field, json_path, detail));
    }
    errors
}

fn selectable_fields(version: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let schema = version.at(&["schema", "openAPIV3Schema"]).unwrap_or(&Value::Null);
    let mut seen = BTreeSet::new();
    for (index, field) in list(version, &["selectableFields"]).iter().enumerate() {
        let (json_path, path) = (field.str_at(&["jsonPath"]), path.index(index).child("jsonPath"));
        if json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let steps: Vec<_> = json_path.trim_start_matches('.').split('.').collect();
        let target = steps.iter().try_fold(schema, |schema, step| schema.at(&["properties", step]));
        let Some(target) = target.filter(|_| json_path.starts_with('.')) else {
            let detail = "is an invalid path: does not refer to a valid field";
            errors.push(FieldError::invalid(&path, json_path, detail));
            continue;
        };
        if steps.first() == Some(&"metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(&path, json_path, detail));
        }
        if !matches!(target.str_at(&["type"]), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.push(FieldError::invalid(&path, json_path, detail));
        }
        if !seen.insert(steps) {
            errors.push(FieldError::duplicate(&path, json_path));
        }
    }
    if seen.len() > SELECTABLE_FIELDS_LIMIT {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS_LIMIT));
    }
    errors
}

fn validate_names(definition: &Value, path: &Path) -> FieldErrors {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    let of = |field: &str| definition.str_at(&["spec", "names", field]);
    let mut errors = FieldErrors::new();
    for field in ["plural", "singular", "kind", "listKind"] {
        if of(field).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    for (field, prefix) in [("plural", ""), ("singular", ""), ("kind", MIXED), ("listKind", MIXED)] {
        let name = of(field);
        let lower = if prefix.is_empty() { name.to_owned() } else { name.to_lowercase() };
        let faults = is_dns1035_label(&lower);
        if !(name.is_empty() || faults.is_empty()) {
            let detail = format!("{prefix}{}", faults.join(","));
            errors.push(FieldError::invalid(&path.child(field), name, detail));
        }
    }
    let labels = |field: &str, errors: &mut FieldErrors| {
        for (index, name) in list(definition, &["spec", "names", field]).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let faults = is_dns1035_label(name);
            if !faults.is_empty() {
                let path = path.child(field).index(index);
                errors.push(FieldError::invalid(&path, name, faults.join(",")));
            }
        }
    };
    labels("shortNames", &mut errors);
    if !of("kind").is_empty() && of("kind") == of("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(&path.child("listKind"), of("listKind"), detail));
    }
    labels("categories", &mut errors);
    errors
}

fn conversion(definition: &Value, path: &Path) -> FieldErrors {
    let Some(conversion) = definition.at(&["spec", "conversion"]).filter(|one| !one.is_null()) else {
        return FieldErrors::new();
    };
    let webhook = conversion.get("webhook").filter(|webhook| !webhook.is_null());
    let client_path = path.child("webhookClientConfig");
    match (conversion.str_at(&["strategy"]), webhook) {
        ("", _) => vec![FieldError::required(&path.child("strategy"), "")],
        ("None", None) => Vec::new(),
        ("None", Some(_)) => {
            vec![FieldError::forbidden(&client_path, "should not be set when strategy is not set to Webhook")]
        }
        ("Webhook", webhook) => {
            let client = webhook.and_then(|webhook| webhook.get("clientConfig")).filter(|one| !one.is_null());
            let Some(client) = client else {
                let detail = "required when strategy is set to Webhook";
                return vec![FieldError::required(&client_path, detail)];
            };
            let given = |field: &str| client.get(field).is_some_and(|value| !value.is_null());
            match given("url") == given("service") {
                true => vec![FieldError::required(&client_path, "exactly one of url or service is required")],
                false => Vec::new(),
            }
        }
        (other, _) => vec![FieldError::not_supported(&path.child("strategy"), other, &["None", "Webhook"])],
    }
}

fn stored_versions(definition: &Value) -> FieldErrors {
    let path = Path::of(&["status", "storedVersions"]);
    let stored = list(definition, &["status", "storedVersions"]);
    let shown = || Shown::from(definition.at(&["status", "storedVersions"]).unwrap_or(&Value::Null));
    if stored.is_empty() {
        return vec![FieldError::invalid(&path, shown(), "must have at least one stored version")];
    }
    let mut errors = FieldErrors::new();
    let is_stored = |name: &str| stored.iter().any(|version| version.as_str() == Some(name));
    for version in versions(definition).iter().filter(|version| is_true(version, "storage")) {
        let name = version.str_at(&["name"]);
        if !is_stored(name) {
            errors.push(FieldError::invalid(&path, shown(), format!("must have the storage version {name}")));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        let name = name.as_str().unwrap_or_default();
        if !versions(definition).iter().any(|version| version.str_at(&["name"]) == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {name} and removes \
                 {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(index), name, detail));
        }
    }
    errors
}

/// Groups of the Kubernetes project itself need its word.
fn approval(definition: &Value) -> Option<FieldError> {
    let group = definition.str_at(&["spec", "group"]);
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    if !protected {
        return None;
    }
    let path = Path::of(&["metadata", "annotations"]).key(APPROVAL);
    match definition.annotation(APPROVAL).unwrap_or_default() {
        "" => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                          https://github.com/kubernetes/enhancements/pull/1111";
            Some(FieldError::required(&path, detail))
        }
        text if text.starts_with("unapproved")
            || text.starts_with("https://")
            || text.starts_with("http://") =>
        {
            None
        }
        text => {
            let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\" with either \
                          a URL or a reason starting with \"unapproved\", see \
                          https://github.com/kubernetes/enhancements/pull/1111";
            Some(FieldError::invalid(&path, text, detail))
        }
    }
}

fn preserve_unknown_fields(definition: &Value) -> Option<FieldError> {
    let path = Path::of(&["spec", "preserveUnknownFields"]);
    is_true(definition.get("spec")?, "preserveUnknownFields").then(|| {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        FieldError::invalid(&path, true, detail)
    })
}

fn versions(definition: &Value) -> &[Value] {
    list(definition, &["spec", "versions"])
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

fn is_true(object: &Value, field: &str) -> bool {
    object.get(field).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
#[path = "crd_tests.rs"]
mod tests;
