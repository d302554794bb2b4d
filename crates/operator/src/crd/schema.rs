//! Words for structural schemas.

use serde_json::{Value as Json, json};

const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const KEY: &str = "^[-._a-zA-Z0-9]+$";

pub(super) fn text() -> Json {
    json!({"type": "string"})
}

pub(super) fn flag() -> Json {
    json!({"type": "boolean"})
}

pub(super) fn bytes() -> Json {
    json!({"type": "string", "format": "byte"})
}

pub(super) fn time() -> Json {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn name() -> Json {
    json!({"type": "string", "minLength": 1, "maxLength": 253, "pattern": SUBDOMAIN})
}

pub(super) fn namespace() -> Json {
    json!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": LABEL})
}

pub(super) fn key() -> Json {
    json!({"type": "string", "minLength": 1, "maxLength": 253, "pattern": KEY})
}

pub(super) fn one_of(values: &[&str]) -> Json {
    json!({"type": "string", "enum": values})
}

pub(super) fn list(items: Json) -> Json {
    json!({"type": "array", "items": items})
}

pub(super) fn texts() -> Json {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    let members: serde_json::Map<String, Json> =
        members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({"type": "object", "properties": members})
}

/// What is kept as it stands.
pub(super) fn anything() -> Json {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// More words for one schema.
pub(super) trait With {
    fn with(self, word: &str, value: impl Into<Json>) -> Json;
    fn required(self, names: &[&str]) -> Json;
    fn default(self, value: impl Into<Json>) -> Json;
    fn exactly_one(self) -> Json;
}

impl With for Json {
    fn with(mut self, word: &str, value: impl Into<Json>) -> Json {
        self[word] = value.into();
        self
    }

    fn required(self, names: &[&str]) -> Json {
        self.with("required", names)
    }

    fn default(self, value: impl Into<Json>) -> Json {
        self.with("default", value)
    }

    fn exactly_one(self) -> Json {
        self.with("minProperties", 1).with("maxProperties", 1)
    }
}

/// A key of a Secret.
pub(super) fn secret_key() -> Json {
    object([("name", name()), ("key", key()), ("namespace", namespace())])
}

/// A service account.
pub(super) fn service_account() -> Json {
    object([("name", name()), ("namespace", namespace()), ("audiences", list(text()))]).required(&["name"])
}

/// Where a CA bundle is kept.
pub(super) fn ca_provider() -> Json {
    object([
        ("type", one_of(&["Secret", "ConfigMap"])),
        ("name", name()),
        ("key", key()),
        ("namespace", namespace()),
    ])
    .required(&["name", "type"])
}

/// `metav1.LabelSelector`.
pub(super) fn label_selector() -> Json {
    let values = list(text()).with("x-kubernetes-list-type", "atomic");
    let expression =
        object([("key", text()), ("operator", text()), ("values", values)]).required(&["key", "operator"]);
    object([
        ("matchLabels", texts()),
        ("matchExpressions", list(expression).with("x-kubernetes-list-type", "atomic")),
    ])
    .with("x-kubernetes-map-type", "atomic")
}

/// One condition of a status.
pub(super) fn condition(kind: Json) -> Json {
    object([
        ("type", kind),
        ("status", text()),
        ("reason", text()),
        ("message", text()),
        ("lastTransitionTime", time()),
    ])
    .required(&["status", "type"])
}

/// A whole version's schema.
pub(super) fn root(spec: Json, status: Json) -> Json {
    json!({"openAPIV3Schema": object([
        ("apiVersion", text()),
        ("kind", text()),
        ("metadata", json!({"type": "object"})),
        ("spec", spec),
        ("status", status),
    ])})
}
