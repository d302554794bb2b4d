//! Whether a schema is structural: every field has one type, said once, outside of `allOf` and the like.

use crate::Value;
use crate::validation::field::{FieldError, FieldErrors, Path};

/// What may not stand inside `allOf`, `anyOf`, `oneOf` and `not`, and how that is worded.
const FORBIDDEN_INSIDE: [(&str, &str); 13] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

/// What no schema may have at all.
const NOT_SUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The faults of a whole schema: first those of its structure, ordered by text, then those of its keywords.
pub fn validate(schema: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    structure(schema, Level::Root, path, &mut errors);
    complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    keywords(schema, path, &mut errors);
    errors
}

fn structure(schema: &Value, level: Level, path: &Path, errors: &mut FieldErrors) {
    let kind = schema.str_at(&["type"]);
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    match schema.get("items") {
        Some(items @ Value::Object(_)) => structure(items, Level::Item, &path.child("items"), errors),
        _ if kind == "array" => errors.push(FieldError::required(&path.child("items"), "must be specified")),
        _ => {}
    }
    for (name, property) in members(schema, "properties") {
        structure(property, Level::Field, &path.child("properties").key(name), errors);
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|one| !one.is_null()) {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if embedded {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&path, detail));
        }
        if additional.as_object().is_some() {
            structure(additional, Level::Field, &path, errors);
        }
    }
    for (set, field) in
        [(preserve, "x-kubernetes-preserve-unknown-fields"), (embedded, "x-kubernetes-embedded-resource")]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&path.child(field), true, detail));
        }
    }
    nested_of(schema, path, errors);
    type_of(schema, kind, level, path, errors);
    if level == Level::Root || embedded {
        for name in ["kind", "apiVersion"] {
            if let Some(property) = schema.at(&["properties", name]) {
                let kind = property.str_at(&["type"]);
                if kind != "string" {
                    let path = path.child("properties").key(name).child("type");
                    errors.push(FieldError::invalid(&path, kind, "must be string"));
                }
            }
        }
        if let Some(metadata) = schema.at(&["properties", "metadata"]) {
            metadata_of(metadata, level, &path.child("properties").key("metadata"), errors);
        }
    }
    if embedded && !preserve && members(schema, "properties").next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), detail));
    }
}

fn type_of(schema: &Value, kind: &str, level: Level, path: &Path, errors: &mut FieldErrors) {
    let path = path.child("type");
    if flag(schema, "x-kubernetes-embedded-resource") && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&path, detail),
            kind => FieldError::invalid(&path, kind, detail),
        });
    } else if kind.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&path, detail));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(FieldError::invalid(&path, kind, "must be object at the root"));
    }
}

/// The metadata of an object is implied; a schema may only restrict its names.
fn metadata_of(metadata: &Value, level: Level, path: &Path, errors: &mut FieldErrors) {
    let kind = metadata.str_at(&["type"]);
    if kind != "object" {
        errors.push(FieldError::invalid(&path.child("type"), kind, "must be object"));
    }
    let only_names = members(metadata, "properties").all(|(name, _)| matches!(name, "name" | "generateName"));
    let nothing_else = metadata.as_object().is_none_or(|schema| {
        schema.keys().all(|key| matches!(key.as_str(), "type" | "properties" | "default"))
    });
    if level == Level::Root && !(only_names && nothing_else) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                      specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Everything inside `anyOf`, `allOf`, `oneOf` and `not`.
fn nested_of(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    let pattern = flag(schema, "x-kubernetes-int-or-string");
    for (nested, nested_path) in junctors(schema, path) {
        nested_schema(nested, &nested_path, pattern, errors);
    }
}

fn nested_schema(schema: &Value, path: &Path, types_allowed: bool, errors: &mut FieldErrors) {
    for (field, detail) in FORBIDDEN_INSIDE {
        // `anyOf: [{type: integer}, {type: string}]` is how int-or-string is written.
        let exempt = field == "type"
            && types_allowed
            && matches!(schema.str_at(&["type"]), "integer" | "string")
            && schema.as_object().is_some_and(|schema| schema.len() == 1);
        if !exempt && is_given(schema, field) {
            errors.push(FieldError::forbidden(&path.child(field), detail));
        }
    }
    for (nested, nested_path) in junctors(schema, path) {
        nested_schema(nested, &nested_path, types_allowed, errors);
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        nested_schema(items, &path.child("items"), false, errors);
    }
    for (name, property) in members(schema, "properties") {
        let path = path.child("properties").key(name);
        if name == "metadata" {
            errors.push(FieldError::forbidden(&path, "must not be specified in a nested context"));
        }
        nested_schema(property, &path, false, errors);
    }
}

/// What is restricted inside must be there outside.
fn complete(
    nested: &Value,
    outer: Option<&Value>,
    path: &Path,
    nested_path: &Path,
    errors: &mut FieldErrors,
) {
    let Some(outer) = outer else {
        let detail = format!("because it is defined in {nested_path}");
        errors.push(FieldError::required(path, detail));
        return;
    };
    for (inner, inner_path) in junctors(nested, nested_path) {
        complete(inner, Some(outer), path, &inner_path, errors);
        if let Some(items @ Value::Object(_)) = inner.get("items") {
            let outer = outer.get("items").filter(|items| items.as_object().is_some());
            complete(items, outer, &path.child("items"), &inner_path.child("items"), errors);
        }
        for (name, property) in members(inner, "properties") {
            let outer = outer.at(&["properties", name]);
            let below = |path: &Path| path.child("properties").key(name);
            complete(property, outer, &below(path), &below(&inner_path), errors);
        }
    }
    if !std::ptr::eq(nested, outer) {
        return;
    }
    for (name, property) in members(outer, "properties") {
        let path = path.child("properties").key(name);
        complete(property, Some(property), &path, &path, errors);
    }
}

/// Keywords that are not supported, and the rules of the `x-kubernetes-` ones.
fn keywords(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    for field in NOT_SUPPORTED {
        if is_given(schema, field) {
            errors.push(FieldError::forbidden(&path.child(field), format!("{field} is not supported")));
        }
    }
    let kind = schema.str_at(&["type"]);
    let kinds = ["array", "boolean", "integer", "number", "object", "string"];
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&path.child("type"), detail));
    } else if !kind.is_empty() && !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &kinds));
    }
    if let Some(Value::Array(_)) = schema.get("items") {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(&path.child("items"), detail));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&path.child("uniqueItems"), detail));
    }
    let additional = schema.get("additionalProperties").filter(|one| !one.is_null());
    if let Some(additional) = additional {
        let allows_only = additional.as_bool() == Some(true);
        if members(schema, "properties").next().is_some() && !allows_only {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
        }
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema.get(preserve).and_then(Value::as_bool) == Some(false) {
        errors.push(FieldError::invalid(&path.child(preserve), false, "must be true or undefined"));
    }
    collection(schema, kind, "map", "object", &["atomic", "granular"], path, errors);
    collection(schema, kind, "list", "array", &["atomic", "set", "map"], path, errors);
    list_map_keys(schema, path, errors);
    let children = members(schema, "properties")
        .map(|(name, child)| (child, path.child("properties").key(name)))
        .chain(schema.get("items").map(|items| (items, path.child("items"))))
        .chain(additional.map(|one| (one, path.child("additionalProperties"))))
        .chain(junctors(schema, path));
    for (child, path) in children {
        if child.as_object().is_some() {
            keywords(child, &path, errors);
        }
    }
}

fn collection(
    schema: &Value,
    kind: &str,
    name: &str,
    wanted: &str,
    allowed: &[&str],
    path: &Path,
    errors: &mut FieldErrors,
) {
    let keyword = format!("x-kubernetes-{name}-type");
    let Some(value) = schema.get(&keyword).and_then(Value::as_str) else { return };
    if kind != wanted {
        let detail = format!("must be {wanted} if {keyword} is specified");
        errors.push(match kind {
            "" => FieldError::required(&path.child("type"), detail),
            kind => FieldError::invalid(&path.child("type"), kind, detail),
        });
    }
    if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(&path.child(&keyword), value, allowed));
    }
}

fn list_map_keys(schema: &Value, path: &Path, errors: &mut FieldErrors) {
    let list_type = schema.str_at(&["x-kubernetes-list-type"]);
    let keys_path = path.child("x-kubernetes-list-map-keys");
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
    if list_type != "map" {
        if !keys.is_empty() {
            let path = path.child("x-kubernetes-list-type");
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            errors.push(match list_type {
                "" => FieldError::required(&path, detail),
                other => FieldError::invalid(&path, other, detail),
            });
        }
        return;
    }
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&keys_path, detail));
    }
    let Some(items) = schema.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&path.child("items"), detail));
        return;
    };
    let kind = items.str_at(&["type"]);
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&path.child("items").child("type"), kind, detail));
        return;
    }
    let shown = schema.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null);
    for (index, key) in keys.iter().enumerate() {
        if items.at(&["properties", key.as_str().unwrap_or_default()]).is_none() {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(&keys_path, shown, detail));
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(&keys_path, shown, "must not contain duplicate entries"));
        }
    }
}

fn junctors<'a>(schema: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    let lists = ["anyOf", "allOf", "oneOf"].into_iter().flat_map(|name| {
        let items = schema.get(name).and_then(Value::as_array).unwrap_or_default();
        items.iter().enumerate().map(move |(index, item)| (item, name, Some(index)))
    });
    lists
        .chain(schema.get("not").map(|item| (item, "not", None)))
        .filter(|(item, ..)| item.as_object().is_some())
        .map(|(item, name, index)| {
            let path = path.child(name);
            (item, index.map_or(path.clone(), |index| path.index(index)))
        })
        .collect()
}

fn members<'a>(schema: &'a Value, field: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let members = schema.get(field).and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value))
}

fn flag(schema: &Value, field: &str) -> bool {
    schema.get(field).and_then(Value::as_bool) == Some(true)
}

/// Whether a keyword has more than its zero value.
fn is_given(schema: &Value, field: &str) -> bool {
    match schema.get(field) {
        None | Some(Value::Null | Value::Bool(false)) => {
            field == "additionalProperties" && schema.get(field).is_some()
        }
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}
