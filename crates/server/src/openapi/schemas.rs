//! The schemas of built-in kinds, made from the tables that the codecs use.
//!
//! Hardly described: descriptions are upstream's prose.

use coffer_types::schema::{Field, Kind, ListType, Message, Shape, Type, Union, kinds};
use serde_json::{Map, Value, json};

use super::descriptions::describe;

/// `components.schemas` of a document: only what its paths lead to.
pub(super) type Components = Map<String, Value>;

/// Adds a message with all that it refers to, and gives its name.
pub(super) fn add(message: &'static Message, components: &mut Components) -> String {
    let name = component_name(message.name);
    if !components.contains_key(&name) {
        // Some contain themselves.
        components.insert(name.clone(), Value::Null);
        let schema = of_message(message, components);
        components.insert(name.clone(), schema);
    }
    name
}

/// Adds the kind of that name, if it is a built-in one.
pub(super) fn add_kind(
    group: &str,
    version: &str,
    kind: &str,
    components: &mut Components,
) -> Option<String> {
    coffer_types::schema::lookup(group, version, kind).map(|kind| add(kind.message, components))
}

/// Kinds that every group has are named for the core group and the document's own.
pub(super) fn name_for(group: &str, version: &str, components: &mut Components) {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
    for (_, schema) in components.iter_mut().filter(|(name, _)| name.starts_with(META)) {
        if let Some(named) = schema.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut) {
            named
                .retain(|kind| kind["group"] == "" || (kind["group"] == group && kind["version"] == version));
        }
    }
}

/// `{"$ref": ...}`.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// `io.k8s.api.core.v1.Secret` for Go's `k8s.io/api/core/v1.Secret`.
fn component_name(go: &str) -> String {
    let (domain, rest) = go.split_once('/').unwrap_or(("", go));
    let domain: Vec<&str> = domain.rsplit('.').collect();
    format!("{}.{}", domain.join("."), rest.replace('/', "."))
}

fn of_message(message: &'static Message, components: &mut Components) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    properties_of(message, &mut properties, &mut required, components);
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    if !properties.is_empty() {
        schema.insert("properties".into(), properties.into());
    }
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    if message.atomic {
        schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    let named: Vec<Value> =
        kinds().iter().filter(|kind| std::ptr::eq(kind.message, message)).map(group_version_kind).collect();
    if !named.is_empty() {
        schema.insert("x-kubernetes-group-version-kind".into(), named.into());
    }
    schema.into()
}

fn group_version_kind(kind: &Kind) -> Value {
    json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
}

fn properties_of(
    message: &'static Message,
    properties: &mut Map<String, Value>,
    required: &mut Vec<Value>,
    components: &mut Components,
) {
    let is_object = message.field("apiVersion").is_some() && message.field("metadata").is_some();
    for field in message.fields {
        match field.inlined() {
            Some(inner) => properties_of(inner, properties, required, components),
            None => {
                let schema = property(message, field, components);
                let schema = describe(message.name, field.json, is_object, schema);
                properties.insert(field.json.to_owned(), schema);
                if field.required {
                    required.push(field.json.into());
                }
            }
        }
    }
}

fn property(owner: &'static Message, field: &Field, components: &mut Components) -> Value {
    match field.shape {
        Shape::One(one) => {
            let mut schema = of_type(owner, one, components);
            restrict(&mut schema, field);
            if let Some(default) = default_of(field, one) {
                // Nothing may stand beside a reference.
                if schema.get("$ref").is_some() {
                    schema = json!({ "allOf": [schema] });
                }
                set(&mut schema, "default", default);
            }
            if field.patch.atomic && !matches!(one, Type::Message(message) if message.atomic) {
                set(&mut schema, "x-kubernetes-map-type", "atomic".into());
            }
            // Bytes are a list in Go, and can be marked as one.
            if field.patch.listed {
                set(&mut schema, "x-kubernetes-list-type", "atomic".into());
            }
            extend(&mut schema, field);
            schema
        }
        Shape::List(item) => {
            let mut items = of_type(owner, item, components);
            restrict(&mut items, field);
            let mut schema = json!({ "type": "array", "items": items });
            match field.patch.list {
                ListType::Set => set(&mut schema, "x-kubernetes-list-type", "set".into()),
                ListType::Map => set(&mut schema, "x-kubernetes-list-type", "map".into()),
                ListType::Atomic if field.patch.listed => {
                    set(&mut schema, "x-kubernetes-list-type", "atomic".into());
                }
                ListType::Atomic => {}
            }
            if !field.patch.list_keys.is_empty() {
                set(&mut schema, "x-kubernetes-list-map-keys", json!(field.patch.list_keys));
            }
            extend(&mut schema, field);
            schema
        }
        Shape::Map(value) => {
            let mut values = of_type(owner, value, components);
            restrict(&mut values, field);
            let mut schema = json!({ "type": "object", "additionalProperties": values });
            if field.patch.atomic {
                set(&mut schema, "x-kubernetes-map-type", "atomic".into());
            }
            extend(&mut schema, field);
            schema
        }
    }
}

fn set(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = schema {
        members.insert(key.to_owned(), value);
    }
}

fn restrict(schema: &mut Value, field: &Field) {
    if !field.values.is_empty() {
        set(schema, "enum", json!(field.values));
    }
}

/// How a strategic merge patch treats the field.
fn extend(schema: &mut Value, field: &Field) {
    let patch = &field.patch;
    if !patch.merge_key.is_empty() {
        set(schema, "x-kubernetes-patch-merge-key", patch.merge_key.into());
    }
    let strategies: Vec<&str> = [(patch.merge, "merge"), (patch.retain_keys, "retainKeys")]
        .into_iter()
        .filter_map(|(used, name)| used.then_some(name))
        .collect();
    if !strategies.is_empty() {
        set(schema, "x-kubernetes-patch-strategy", strategies.join(",").into());
    }
}

/// What an absent field is: as marked, else Go's zero value where JSON always shows it.
fn default_of(field: &Field, one: Type) -> Option<Value> {
    if !field.patch.default.is_empty() {
        return serde_json::from_str(field.patch.default).ok();
    }
    if field.optional {
        return None;
    }
    match one {
        Type::Message(message) if !message.fields.is_empty() => Some(json!({})),
        _ if field.omit_empty => None,
        Type::String => Some("".into()),
        Type::Bool => Some(false.into()),
        Type::Int32 | Type::Int64 => Some(0.into()),
        Type::Double => Some(0.0.into()),
        _ => None,
    }
}

/// Kinds of apimachinery that are no struct with fields of its own.
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";
pub(super) const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

fn of_type(owner: &'static Message, one: Type, components: &mut Components) -> Value {
    let named = |name: &str, schema: Value, components: &mut Components| {
        components.entry(name.to_owned()).or_insert(schema);
        reference(name)
    };
    match one {
        Type::String => json!({ "type": "string" }),
        Type::Bytes => json!({ "type": "string", "format": "byte" }),
        Type::Int32 => json!({ "type": "integer", "format": "int32" }),
        Type::Int64 => json!({ "type": "integer", "format": "int64" }),
        Type::Double => json!({ "type": "number", "format": "double" }),
        Type::Bool => json!({ "type": "boolean" }),
        Type::Time => named(TIME, json!({ "type": "string", "format": "date-time" }), components),
        Type::MicroTime => named(MICRO_TIME, json!({ "type": "string", "format": "date-time" }), components),
        Type::FieldsV1 => named(FIELDS_V1, json!({ "type": "object" }), components),
        Type::RawExtension => named(RAW_EXTENSION, json!({ "type": "object" }), components),
        Type::Quantity => {
            named(QUANTITY, json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }), components)
        }
        Type::IntOrString => {
            let schema =
                json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] });
            named(INT_OR_STRING, schema, components)
        }
        Type::StringList => json!({ "type": "array", "items": { "type": "string" } }),
        Type::RawJson => named(&beside(owner, "JSON"), json!({}), components),
        Type::Any => json!({}),
        Type::Either(union, _) => {
            let name = match union {
                Union::Bool => "JSONSchemaPropsOrBool",
                Union::List => "JSONSchemaPropsOrArray",
                Union::Strings => "JSONSchemaPropsOrStringArray",
            };
            named(&beside(owner, name), json!({}), components)
        }
        Type::Message(message) => reference(&add(message, components)),
    }
}

/// The name of a type of the same package.
fn beside(owner: &'static Message, name: &str) -> String {
    let own = component_name(owner.name);
    let package = own.rsplit_once('.').map_or("", |(package, _)| package);
    format!("{package}.{name}")
}
