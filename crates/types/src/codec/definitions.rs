//! CustomResourceDefinitions between the served `v1` and the stored `v1beta1`.
//!
//! In the older version, what all versions of a definition have in common stands once,
//! outside of them. Both forms are trees in the normal form of their tables.

use super::normalize;
use crate::meta::Meta;
use crate::schema::{self, Kind};
use crate::{Map, Value};

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// Members of a version that stand outside of the versions when all have the same, and their
/// names there.
const COMMON: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("schema", "validation"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// The stored form of a served definition.
pub fn to_stored(served: &Value) -> Value {
    let mut stored = served.clone();
    if let Some(Value::Object(spec)) = stored.get_mut("spec") {
        gather(spec);
        rename_columns(spec, "jsonPath", "JSONPath");
        flatten_conversion(spec);
        spec.entry("preserveUnknownFields".to_owned()).or_insert(Value::Bool(false));
    }
    in_version("v1beta1", stored)
}

/// The served form of a stored definition.
pub fn to_served(stored: &Value) -> Value {
    let mut served = stored.clone();
    if let Some(Value::Object(spec)) = served.get_mut("spec") {
        scatter(spec);
        rename_columns(spec, "JSONPath", "jsonPath");
        nest_conversion(spec);
    }
    in_version("v1", served)
}

fn in_version(version: &str, mut definition: Value) -> Value {
    definition.set_type(&crate::meta::api_version(GROUP, version), KIND);
    let message = schema::lookup(GROUP, version, KIND).map(|kind: &'static Kind| kind.message);
    if let (Some(message), Value::Object(members)) = (message, &mut definition) {
        normalize(message, members);
    }
    definition
}

/// Moves what the versions have in common out of them.
fn gather(spec: &mut Map) {
    let Some(Value::Array(mut versions)) = spec.remove("versions") else { return };
    if let Some(first) = versions.first() {
        let name = first.str_at(&["name"]).to_owned();
        spec.insert("version".to_owned(), name.into());
        for (inside, outside) in COMMON {
            let common = first_of(&versions, inside);
            if !versions.iter().all(|version| version.get(inside) == common.as_ref()) {
                continue;
            }
            if let Some(common) = common {
                spec.insert(outside.to_owned(), common);
            }
            for version in &mut versions {
                version.remove(&[inside]);
            }
        }
    }
    spec.insert("versions".to_owned(), Value::Array(versions));
}

fn first_of(versions: &[Value], member: &str) -> Option<Value> {
    versions.first()?.get(member).cloned()
}

/// Copies what stands outside of the versions into each.
fn scatter(spec: &mut Map) {
    let version = spec.remove("version").unwrap_or_default();
    let mut versions = match spec.remove("versions") {
        Some(Value::Array(versions)) => versions,
        _ => Vec::new(),
    };
    if versions.is_empty() && version.as_str().is_some_and(|name| !name.is_empty()) {
        let only = [("name", version), ("served", true.into()), ("storage", true.into())];
        versions.push(Value::from(only));
    }
    for (inside, outside) in COMMON {
        let Some(common) = spec.remove(outside) else { continue };
        for version in &mut versions {
            version.set(&[inside], common.clone());
        }
    }
    if !versions.is_empty() {
        spec.insert("versions".to_owned(), Value::Array(versions));
    }
}

/// The older version writes the path of a column in capitals.
fn rename_columns(spec: &mut Map, from: &str, to: &str) {
    let in_versions = match spec.get_mut("versions") {
        Some(Value::Array(versions)) => versions.as_mut_slice(),
        _ => &mut [],
    };
    in_versions.iter_mut().filter_map(Value::as_object_mut).for_each(|version| rename_in(version, from, to));
    rename_in(spec, from, to);
}

fn rename_in(owner: &mut Map, from: &str, to: &str) {
    let Some(Value::Array(columns)) = owner.get_mut("additionalPrinterColumns") else { return };
    for column in columns.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove(from) {
            column.insert(to.to_owned(), path);
        }
    }
}

fn flatten_conversion(spec: &mut Map) {
    let Some(Value::Object(conversion)) = spec.get_mut("conversion") else { return };
    let Some(Value::Object(mut webhook)) = conversion.remove("webhook") else { return };
    for (inside, outside) in
        [("clientConfig", "webhookClientConfig"), ("conversionReviewVersions", "conversionReviewVersions")]
    {
        if let Some(member) = webhook.remove(inside).filter(|member| !member.is_null()) {
            conversion.insert(outside.to_owned(), member);
        }
    }
}

fn nest_conversion(spec: &mut Map) {
    let Some(Value::Object(conversion)) = spec.get_mut("conversion") else { return };
    let client = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if client.is_none() && versions.is_none() {
        return;
    }
    let mut webhook = Map::new();
    webhook.extend(client.map(|client| ("clientConfig".to_owned(), client)));
    webhook.extend(versions.map(|versions| ("conversionReviewVersions".to_owned(), versions)));
    conversion.insert("webhook".to_owned(), Value::Object(webhook));
}
