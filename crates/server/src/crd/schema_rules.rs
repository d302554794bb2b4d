//! The rules of a definition's schema beyond being structural.

use coffer_types::Value;
use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown};

use super::field_path;
use super::prune::prune;
use super::schema::{Additional, Schema};
use super::validate::validate;
use super::validations::Validations;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Every rule that `schema` breaks.
pub(super) fn check(schema: &Schema, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(schema, path, Place { is_root: true, in_metadata: false, no_defaults: None }, &mut errors);
    errors
}

/// Defaults that are not what they would be after a write. Only asked of a structural schema, which is
/// read from `tree`; rules of expressions take their cost from `budget`.
pub(super) fn check_defaults(
    tree: &Value,
    schema: &Schema,
    path: &Path,
    budget: &mut i64,
    errors: &mut FieldErrors,
) {
    if *budget < 0 {
        return;
    }
    if let Some(default) = &schema.default {
        let at = path.child("default");
        let mut pruned = default.clone();
        if !prune(&mut pruned, schema).is_empty() || pruned != *default {
            errors.push(FieldError::invalid(&at, default, "must not have unknown fields"));
        }
        let found = validate(default, None, schema);
        if found.is_empty()
            && let Some(rules) = Validations::compile(tree, schema, false)
        {
            errors.extend(rules.validate_default(default, schema, at.as_str(), budget));
        }
        errors.extend(found.into_iter().map(|mut error| {
            error.field = match error.field.as_str() {
                "<nil>" => at.to_string(),
                field => format!("{at}.{field}"),
            };
            error
        }));
    }
    for (name, property) in &schema.properties {
        if let Some(tree) = tree.at(&["properties", name]) {
            check_defaults(tree, property, &path.child("properties").key(name), budget, errors);
        }
    }
    if let (Some(items), Some(tree)) = (&schema.items, tree.get("items")) {
        check_defaults(tree, items, &path.child("items"), budget, errors);
    }
    if let (Additional::Schema(additional), Some(tree)) =
        (&schema.additional, tree.get("additionalProperties"))
    {
        check_defaults(tree, additional, &path.child("additionalProperties"), budget, errors);
    }
}

#[derive(Debug, Clone)]
struct Place {
    is_root: bool,
    in_metadata: bool,
    /// Why there may be no default here.
    no_defaults: Option<String>,
}

fn walk(schema: &Schema, path: &Path, place: Place, errors: &mut FieldErrors) {
    keywords(schema, path, &place, errors);
    let below = Place { is_root: false, ..place.clone() };
    match &schema.additional {
        Additional::Absent | Additional::Flag(true) => {}
        Additional::Flag(false) | Additional::Schema(_) if !schema.properties.is_empty() => {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
        }
        Additional::Flag(false) | Additional::Schema(_) => {}
    }
    if let Additional::Schema(additional) = &schema.additional {
        let mut below = below.clone();
        if place.in_metadata {
            below.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        walk(additional, &path.child("additionalProperties"), below, errors);
    }
    for (name, property) in &schema.properties {
        let mut below = below.clone();
        let of_every_object = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        if of_every_object && (place.is_root || schema.embedded_resource) {
            below.in_metadata = true;
            if place.is_root {
                below.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        walk(property, &path.child("properties").key(name), below, errors);
    }
    if let Some(rules) = &schema.rules {
        if let Some(not) = &rules.not {
            walk(not, &path.child("not"), below.clone(), errors);
        }
        for (name, list) in [("allOf", &rules.all_of), ("oneOf", &rules.one_of), ("anyOf", &rules.any_of)] {
            for (index, nested) in list.iter().enumerate() {
                walk(nested, &path.child(name).index(index), below.clone(), errors);
            }
        }
    }
    if let Some(items) = &schema.items {
        walk(items, &path.child("items"), below, errors);
    }
    list_and_map_types(schema, path, errors);
    validations(schema, path, errors);
}

fn keywords(schema: &Schema, path: &Path, place: &Place, errors: &mut FieldErrors) {
    let kind = schema.kind.as_str();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    if let (Some(_), Some(reason)) = (&schema.default, &place.no_defaults) {
        errors.push(FieldError::forbidden(&path.child("default"), format!("must not be set {reason}")));
    }
    for name in &schema.unsupported {
        let detail = match *name {
            "uniqueItems" => {
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic".to_owned()
            }
            name => format!("{name} is not supported"),
        };
        errors.push(FieldError::forbidden(&path.child(name), detail));
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&path.child("type"), detail));
    }
    if schema.list_of_items {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if place.in_metadata && schema.embedded_resource {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(&path.child("x-kubernetes-embedded-resource"), detail));
    }
    if schema.denies_unknown {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&at, false, "must be true or undefined"));
    }
}

fn list_and_map_types(schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    let wrong_type = |expected: &str, detail: &str| match schema.kind.as_str() {
        kind if kind == expected => None,
        "" => Some(FieldError::required(&path.child("type"), detail)),
        kind => Some(FieldError::invalid(&path.child("type"), kind, detail)),
    };
    if let Some(map_type) = &schema.map_type {
        errors.extend(wrong_type("object", "must be object if x-kubernetes-map-type is specified"));
        let known = ["atomic", "granular"];
        if !known.contains(&map_type.as_str()) {
            errors.push(FieldError::not_supported(&path.child("x-kubernetes-map-type"), map_type, &known));
        }
    }
    let at = path.child("x-kubernetes-list-type");
    if let Some(list_type) = &schema.list_type {
        errors.extend(wrong_type("array", "must be array if x-kubernetes-list-type is specified"));
        let known = ["atomic", "set", "map"];
        if !known.contains(&list_type.as_str()) {
            errors.push(FieldError::not_supported(&at, list_type, &known));
        }
    }
    if !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type.as_deref() {
            None => errors.push(FieldError::required(&at, detail)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(&at, other, detail)),
        }
    }
    match schema.list_type.as_deref() {
        Some("map") => map_list(schema, path, errors),
        Some("set") if schema.kind == "array" => set_list(schema, path, errors),
        _ => {}
    }
}

fn set_list(schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    let Some(items) = &schema.items else { return };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match (items.kind.as_str(), items.list_type.as_deref(), items.map_type.as_deref()) {
        ("array", Some(other), _) if other != "atomic" => {
            errors.push(FieldError::invalid(
                &path.child("items").child("x-kubernetes-list-type"),
                other,
                detail,
            ));
        }
        ("object", _, map_type) if map_type != Some("atomic") => {
            let at = path.child("items").child("x-kubernetes-map-type");
            errors.push(FieldError::invalid(&at, Shown::verbatim("null"), detail));
        }
        _ => {}
    }
    not_nullable(items, "set", path, errors);
}

fn not_nullable(items: &Schema, list_type: &str, path: &Path, errors: &mut FieldErrors) {
    if items.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&path.child("items").child("nullable"), detail));
    }
}

fn map_list(schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    let at = path.child("x-kubernetes-list-map-keys");
    let keys = &schema.list_map_keys;
    if keys.is_empty() {
        errors.push(FieldError::required(&at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = schema.items.as_deref() else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&path.child("items"), detail));
        return;
    };
    if items.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&path.child("items").child("type"), &items.kind, detail));
    } else {
        let shown = Value::Array(keys.iter().map(|key| Value::from(key.as_str())).collect());
        for (index, key) in keys.iter().enumerate() {
            match items.property(key) {
                None => {
                    let detail = "entries must all be names of item properties";
                    errors.push(FieldError::invalid(&at, &shown, detail));
                }
                Some(property) if matches!(property.kind.as_str(), "array" | "object") => {
                    let at = path.child("items").child("properties").key(key).child("type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(&at, &items.kind, detail));
                }
                Some(_) => {}
            }
            if keys[..index].contains(key) {
                errors.push(FieldError::invalid(&at, &shown, "must not contain duplicate entries"));
            }
        }
    }
    not_nullable(items, "map", path, errors);
    for key in keys {
        let Some(property) = items.property(key) else { continue };
        let at = path.child("items").child("properties").key(key);
        if property.default.is_none() && !items.required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(FieldError::required(&at.child("default"), detail));
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}

/// The form of `x-kubernetes-validations`; the expressions are read by [`super::rule_checks`].
fn validations(schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    let rules = schema.validations.as_ref().and_then(Value::as_array).unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let at = path.child("x-kubernetes-validations").index(index);
        let text = |name: &str| rule.str_at(&[name]);
        let broken = |text: &str| text.contains(['\n', '\r']);
        let (expression, message) = (text("rule").trim(), text("message"));
        if expression.is_empty() {
            errors.push(FieldError::required(&at.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(&at.child("message"), message, "must be non-empty if specified"));
        } else if broken(message.trim()) {
            errors.push(FieldError::invalid(&at.child("message"), message, "must not contain line breaks"));
        } else if broken(expression) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&at.child("message"), detail));
        }
        let expression = text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&at.child("messageExpression"), detail));
        }
        if let Some(reason) =
            rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
        {
            errors.push(FieldError::not_supported(&at.child("reason"), reason, &REASONS));
        }
        let field = text("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(FieldError::invalid(&at.child("fieldPath"), field, "must be non-empty if specified"));
        }
        if broken(field) {
            errors.push(FieldError::invalid(&at.child("fieldPath"), field, "must not contain line breaks"));
        }
        if !field.is_empty() && field_path::normalize(field, schema).is_none() {
            errors.push(FieldError::invalid(&at.child("fieldPath"), field, "must be a valid path"));
        }
    }
}
