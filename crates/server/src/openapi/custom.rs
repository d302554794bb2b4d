//! The schemas of custom resources, as their definitions have them: descriptions and all.

use coffer_types::Value as Tree;
use coffer_types::codec::json;
use coffer_types::schema::{Shape, Type, lookup};
use serde_json::{Map, Value, json};

use super::descriptions::describe_own;
use super::schemas::{self, Components, reference};
use crate::crd::selectable::SelectableField;
use crate::resources::info::ResourceInfo;

/// Adds the kind and its list, and gives their names.
pub(super) fn add(
    info: &ResourceInfo,
    definition: Option<&Tree>,
    components: &mut Components,
) -> (String, String) {
    let reversed: Vec<&str> = info.group.rsplit('.').collect();
    let package = format!("{}.{}", reversed.join("."), info.version);
    let (name, list) = (format!("{package}.{}", info.kind), format!("{package}.{}", info.list_kind));
    let object_meta = metadata_of("Namespace", components);
    let list_meta = metadata_of("NamespaceList", components);
    let known = definition.and_then(|definition| of_version(definition, &info.version));
    let has_schema = known.is_some();
    let mut schema = known.unwrap_or_default();
    spell_out(&mut schema, &object_meta);
    schema.entry("type").or_insert_with(|| "object".into());
    // Without a schema nothing is said of fields: kubectl takes those that are named for all there are.
    if has_schema {
        add_object_fields(&mut schema, &object_meta);
    }
    let selectable = definition.map(|definition| selectable_fields(definition, &info.version));
    let selectable = selectable.filter(|fields| !fields.is_empty());
    let kind_of = |kind: &str| json!([{ "group": info.group, "version": info.version, "kind": kind }]);
    schema.insert("x-kubernetes-group-version-kind".into(), kind_of(&info.kind));
    let mut list_schema = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": describe_own("apiVersion", json!({ "type": "string" })),
                "kind": describe_own("kind", json!({ "type": "string" })),
                "metadata": describe_own("metadata", list_meta),
                "items": { "type": "array", "items": reference(&name) },
            },
            "x-kubernetes-group-version-kind": kind_of(&info.list_kind),
    });
    if let Some(fields) = selectable {
        schema.insert(SELECTABLE.into(), fields.clone().into());
        list_schema[SELECTABLE] = fields.into();
    }
    components.insert(name.clone(), schema.into());
    components.insert(list.clone(), list_schema);
    (name, list)
}

const SELECTABLE: &str = "x-kubernetes-selectable-fields";

fn selectable_fields(definition: &Tree, version: &str) -> Vec<Value> {
    let versions = definition.at(&["spec", "versions"]).and_then(Tree::as_array).unwrap_or_default();
    let found = versions.iter().find(|one| one.str_at(&["name"]) == version);
    let fields = found.map(SelectableField::of_version).unwrap_or_default();
    fields.into_iter().map(|field| json!({ "fieldPath": field.name })).collect()
}

/// A reference to what every kind's `metadata` is, as one of them has it.
fn metadata_of(kind: &str, components: &mut Components) -> Value {
    let field = lookup("", "v1", kind).and_then(|kind| kind.message.field("metadata"));
    match field.map(|field| field.shape) {
        Some(Shape::One(Type::Message(message))) => reference(&schemas::add(message, components)),
        _ => json!({ "type": "object" }),
    }
}

/// The fields that every object has.
fn add_object_fields(schema: &mut Map<String, Value>, object_meta: &Value) {
    let properties = schema.entry("properties").or_insert_with(|| Map::new().into());
    if let Value::Object(properties) = properties {
        for (field, own) in [
            ("apiVersion", json!({ "type": "string" })),
            ("kind", json!({ "type": "string" })),
            ("metadata", object_meta.clone()),
        ] {
            properties.insert(field.to_owned(), describe_own(field, own));
        }
    }
}

/// Says of each number or text, and of each object within another, what it is, as upstream does for
/// clients that do not know the extensions.
fn spell_out(schema: &mut Map<String, Value>, object_meta: &Value) {
    let extended = |schema: &Map<String, Value>, name: &str| schema.get(name) == Some(&Value::Bool(true));
    if extended(schema, "x-kubernetes-int-or-string") {
        schema.entry("anyOf").or_insert_with(|| json!([{ "type": "integer" }, { "type": "string" }]));
    }
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                for field in fields.values_mut().filter_map(Value::as_object_mut) {
                    spell_out(field, object_meta);
                }
            }
            ("items" | "additionalProperties", Value::Object(inner)) => spell_out(inner, object_meta),
            _ => {}
        }
    }
    if extended(schema, "x-kubernetes-embedded-resource") {
        add_object_fields(schema, object_meta);
        if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
            for field in ["kind", "apiVersion"] {
                if !required.contains(&field.into()) {
                    required.push(field.into());
                }
            }
        }
    }
}

fn of_version(definition: &Tree, version: &str) -> Option<Map<String, Value>> {
    let versions = definition.at(&["spec", "versions"]).and_then(Tree::as_array)?;
    let found = versions.iter().find(|one| one.str_at(&["name"]) == version)?;
    let schema = found.at(&["schema", "openAPIV3Schema"])?;
    let mut text = Vec::new();
    json::encode_untyped(schema, &mut text);
    serde_json::from_slice(&text).ok()
}
