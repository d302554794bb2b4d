//! Whether a schema is structural: whether pruning and defaulting know every field.

use coffer_types::validation::field::{FieldError, FieldErrors, Path};

use super::schema::{Additional, Rules, Schema};

/// Every rule of structural schemas that `schema` breaks, sorted by text.
pub(super) fn validate(schema: &Schema, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, schema, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn invariants(schema: &Schema, level: Level, path: &Path, errors: &mut FieldErrors) {
    if schema.kind == "array" && schema.items.is_none() {
        errors.push(FieldError::required(&path.child("items"), "must be specified"));
    }
    if let Some(items) = &schema.items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        invariants(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let additional = path.child("additionalProperties");
    if level == Level::Root && !matches!(schema.additional, Additional::Absent) {
        errors.push(FieldError::forbidden(&additional, "must not be used at the root"));
    }
    if let Additional::Schema(below) = &schema.additional {
        invariants(below, Level::Field, &additional, errors);
    }
    extensions(schema, path, errors);
    value_rules(schema, int_or_string_in_any_of(schema), int_or_string_in_all_of(schema), path, errors);
    types(schema, level, path, errors);
    object_fields(schema, level, path, errors);
}

fn extensions(schema: &Schema, path: &Path, errors: &mut FieldErrors) {
    if !schema.int_or_string {
        return;
    }
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if schema.preserve_unknown {
        errors.push(FieldError::invalid(&path.child("x-kubernetes-preserve-unknown-fields"), true, detail));
    }
    if schema.embedded_resource {
        errors.push(FieldError::invalid(&path.child("x-kubernetes-embedded-resource"), true, detail));
    }
}

fn types(schema: &Schema, level: Level, path: &Path, errors: &mut FieldErrors) {
    let at = path.child("type");
    let kind = &schema.kind;
    if schema.embedded_resource && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind.is_empty() {
            true => FieldError::required(&at, detail),
            false => FieldError::invalid(&at, kind, detail),
        });
    } else if kind.is_empty() && !schema.int_or_string && !schema.preserve_unknown {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, detail));
    }
    if schema.embedded_resource && !matches!(schema.additional, Additional::Absent) {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(&path.child("additionalProperties"), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, kind, "must be object at the root"));
    }
}

/// What a schema may say about the fields that every object has.
fn object_fields(schema: &Schema, level: Level, path: &Path, errors: &mut FieldErrors) {
    let is_object = level == Level::Root || schema.embedded_resource;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) =
            schema.property(name).filter(|property| is_object && property.kind != "string")
        {
            errors.push(FieldError::invalid(
                &properties.key(name).child("type"),
                &property.kind,
                "must be string",
            ));
        }
    }
    if let Some(metadata) = schema.property("metadata") {
        let at = properties.key("metadata");
        if is_object && metadata.kind != "object" {
            errors.push(FieldError::invalid(&at.child("type"), &metadata.kind, "must be object"));
        }
        if level == Level::Root && !restricts_names_only(metadata) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                          specified";
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
    if schema.embedded_resource && !schema.preserve_unknown && schema.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties, detail));
    }
}

fn restricts_names_only(metadata: &Schema) -> bool {
    let plain = Schema { kind: String::new(), ..Schema::default() };
    metadata.properties.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))
        && metadata.items.is_none()
        && matches!(metadata.additional, Additional::Absent)
        && metadata.required.is_empty()
        && metadata.rules.is_none()
        && metadata.validations.is_none()
        && metadata.list_type.is_none()
        && metadata.map_type.is_none()
        && metadata.list_map_keys.is_empty()
        && (metadata.nullable, metadata.preserve_unknown, metadata.embedded_resource)
            == (plain.nullable, plain.preserve_unknown, plain.embedded_resource)
        && !metadata.int_or_string
        && !metadata.titled
        && !metadata.described
}

/// The rules about values; `any_of` and `first_all_of` are the two places in which an
/// integer-or-string may say so.
fn value_rules(schema: &Schema, any_of: bool, first_all_of: bool, path: &Path, errors: &mut FieldErrors) {
    let Some(rules) = &schema.rules else { return };
    if !any_of {
        for (index, below) in rules.any_of.iter().enumerate() {
            nested(below, false, &path.child("anyOf").index(index), errors);
        }
    }
    for (index, below) in rules.all_of.iter().enumerate() {
        nested(below, first_all_of && index == 0, &path.child("allOf").index(index), errors);
    }
    for (index, below) in rules.one_of.iter().enumerate() {
        nested(below, false, &path.child("oneOf").index(index), errors);
    }
    if let Some(below) = &rules.not {
        nested(below, false, &path.child("not"), errors);
    }
    pattern(rules, path, errors);
}

fn pattern(rules: &Rules, path: &Path, errors: &mut FieldErrors) {
    let Some(pattern) = &rules.pattern else { return };
    if let Err(error) = pattern.regex() {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern.text(), detail));
    }
}

/// What may not stand under `allOf`, `anyOf`, `oneOf` and `not`.
fn nested(schema: &Schema, any_of: bool, path: &Path, errors: &mut FieldErrors) {
    value_rules(schema, any_of, false, path, errors);
    if let Some(items) = &schema.items {
        nested(items, false, &path.child("items"), errors);
    }
    for (name, property) in &schema.properties {
        nested(property, false, &path.child("properties").key(name), errors);
    }
    let forbidden = [
        (!schema.kind.is_empty(), "type", "must be empty to be structural"),
        (
            !matches!(schema.additional, Additional::Absent),
            "additionalProperties",
            "must be undefined to be structural",
        ),
        (schema.default.is_some(), "default", "must be undefined to be structural"),
        (schema.titled, "title", "must be empty to be structural"),
        (schema.described, "description", "must be empty to be structural"),
        (schema.nullable, "nullable", "must be false to be structural"),
        (schema.preserve_unknown, "x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        (schema.embedded_resource, "x-kubernetes-embedded-resource", "must be false to be structural"),
        (schema.int_or_string, "x-kubernetes-int-or-string", "must be false to be structural"),
        (!schema.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", "must be empty to be structural"),
        (schema.list_type.is_some(), "x-kubernetes-list-type", "must be undefined to be structural"),
        (schema.map_type.is_some(), "x-kubernetes-map-type", "must be undefined to be structural"),
        (schema.validations.is_some(), "x-kubernetes-validations", "must be empty to be structural"),
    ];
    for (_, name, detail) in forbidden.into_iter().filter(|(is_there, ..)| *is_there) {
        errors.push(FieldError::forbidden(&path.child(name), detail));
    }
    if schema.properties.contains_key("metadata") {
        let at = path.child("properties").key("metadata");
        errors.push(FieldError::forbidden(&at, "must not be specified in a nested context"));
    }
}

fn int_or_string_in_any_of(schema: &Schema) -> bool {
    schema.rules.as_ref().is_some_and(|rules| is_int_or_string(&rules.any_of))
}

fn int_or_string_in_all_of(schema: &Schema) -> bool {
    let first = schema.rules.as_ref().and_then(|rules| rules.all_of.first());
    first.is_some_and(int_or_string_in_any_of)
}

fn is_int_or_string(alternatives: &[Schema]) -> bool {
    matches!(alternatives, [first, second] if is_only(first, "integer") && is_only(second, "string"))
}

/// Whether the schema says this type and nothing else.
fn is_only(schema: &Schema, kind: &str) -> bool {
    schema.kind == kind
        && schema.properties.is_empty()
        && schema.items.is_none()
        && schema.rules.is_none()
        && schema.required.is_empty()
        && schema.default.is_none()
        && !schema.nullable
        && !schema.titled
        && !schema.described
}

/// Every field that a nested schema has a rule about is specified outside of it as well.
fn completeness(rules: &Schema, schema: &Schema, at: &Path, of: &Path, errors: &mut FieldErrors) {
    let Some(value_rules) = &rules.rules else { return };
    let lists =
        [("allOf", &value_rules.all_of), ("anyOf", &value_rules.any_of), ("oneOf", &value_rules.one_of)];
    for (name, list) in lists {
        for (index, below) in list.iter().enumerate() {
            nested_completeness(below, Some(schema), at, &of.child(name).index(index), errors);
        }
    }
    if let Some(below) = &value_rules.not {
        nested_completeness(below, Some(schema), at, &of.child("not"), errors);
    }
}

fn nested_completeness(
    rules: &Schema,
    schema: Option<&Schema>,
    at: &Path,
    of: &Path,
    errors: &mut FieldErrors,
) {
    let Some(schema) = schema else {
        errors.push(FieldError::required(at, format!("because it is defined in {of}")));
        return;
    };
    completeness(rules, schema, at, of, errors);
    if let Some(items) = &rules.items {
        nested_completeness(items, schema.items.as_deref(), &at.child("items"), &of.child("items"), errors);
    }
    for (name, property) in &rules.properties {
        let (at, of) = (at.child("properties").key(name), of.child("properties").key(name));
        nested_completeness(property, schema.property(name), &at, &of, errors);
    }
}
