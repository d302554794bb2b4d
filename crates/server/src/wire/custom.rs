//! Objects of custom resources: JSON trees with only `metadata` of a known shape.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_types::codec::{json, yaml};
use coffer_types::meta::{Meta as _, split_api_version};
use coffer_types::schema::{self, Message, Shape, Type};
use coffer_types::validation::field::{FieldError, FieldErrors, Path, to_status};
use coffer_types::{Status, Value};

use super::Decoded;
use crate::crd::schema::Schema;
use crate::crd::{defaults, list_type, prune, validate};
use crate::negotiate::Media;
use crate::quote;

/// One served version of a custom resource.
pub(crate) struct CustomWire {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    /// The version that is written to the store.
    pub(crate) storage_version: String,
    /// The schemas of all versions as the definition has them, by `apiVersion`.
    pub(crate) versions: Arc<BTreeMap<String, Option<Value>>>,
    /// Structural schema of the served version.
    pub(crate) schema: Option<Arc<Schema>>,
    /// Fields by which objects are selected, besides name and namespace.
    pub(crate) selectable: Vec<String>,
}

impl CustomWire {
    fn api_version(&self) -> String {
        coffer_types::meta::api_version(&self.group, &self.version)
    }

    pub(super) fn decode(&self, body: &[u8], media: Media) -> Result<Decoded, Status> {
        let tree = match media {
            Media::Json => json::decode_untyped(body),
            Media::Yaml => yaml::decode_untyped(body),
            Media::Protobuf => return Err(Status::internal("no protobuf for a custom resource")),
        };
        let unrecognized = |why: &str| {
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): {why} ({})",
                self.kind,
                super::summary(body)
            ))
        };
        let tree = tree.map_err(|error| {
            unrecognized(&format!("couldn't get version/kind; json parse error: {error}"))
        })?;
        if tree.object.as_object().is_none() {
            return Err(unrecognized(&format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                tree.object.json_kind()
            )));
        }
        let mut object = tree.object;
        let (api_version, kind) = (object.api_version().to_owned(), object.kind().to_owned());
        if kind.is_empty() {
            return Err(unrecognized(&format!("Object 'Kind' is missing in '{}'", "<content redacted>")));
        }
        if api_version.is_empty() {
            return Err(unrecognized("Object 'apiVersion' is missing in '<content redacted>'"));
        }
        let (group, version) = split_api_version(&api_version);
        if group == self.group && kind != self.kind {
            let error = FieldError::invalid(&Path::new("kind"), &kind, format!("must be {}", self.kind));
            return Err(to_status(group, &kind, object.name(), &[error]));
        }
        if kind != self.kind || group != self.group {
            return Err(Status::bad_request(format!(
                "{kind} in version {} cannot be handled as a {}: {}",
                quote(version),
                self.kind,
                super::not_registered(&api_version, &kind)
            )));
        }
        if version != self.version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                self.api_version()
            )));
        }
        object.set_type(&self.api_version(), &self.kind);
        self.accept(object, tree.strict_errors).map_err(|why| {
            Status::bad_request(format!(
                "{} in version {} cannot be handled as a {}: {why}",
                self.kind,
                quote(&self.version),
                self.kind
            ))
        })
    }

    /// What an apply has made of an object: a `null` that was applied is for validation to refuse.
    pub(super) fn applied(&self, object: Value) -> Result<Value, String> {
        self.typed(object, Vec::new(), defaults::fill).map(|decoded| decoded.object)
    }

    /// Types the metadata, prunes and defaults.
    pub(super) fn accept(&self, object: Value, strict: Vec<String>) -> Result<Decoded, String> {
        self.typed(object, strict, defaults::apply)
    }

    fn typed(
        &self,
        mut object: Value,
        mut strict: Vec<String>,
        default: fn(&mut Value, &Schema),
    ) -> Result<Decoded, String> {
        if object.as_object().is_none() {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                object.json_kind()
            ));
        }
        if let (Some(meta), Some(message)) = (object.get("metadata"), meta_message()) {
            let typed = json::retype(message, meta).map_err(|error| error.0)?;
            strict.extend(
                typed.strict_errors.into_iter().map(|text| text.replace("field \"", "field \"metadata.")),
            );
            object.set(&["metadata"], typed.object);
        }
        object.set_type(&self.api_version(), &self.kind);
        if let Some(schema) = &self.schema {
            let unknown = prune::prune(&mut object, schema);
            strict.extend(unknown.iter().map(|path| format!("unknown field {}", quote(path))));
            default(&mut object, schema);
        }
        Ok(Decoded { object, strict })
    }

    /// A stored object in the served version.
    pub(super) fn read(&self, stored: &[u8]) -> Result<Value, Status> {
        let object =
            json::decode_untyped(stored).map_err(|error| Status::internal(error.to_string()))?.object;
        Ok(self.in_version(object))
    }

    fn in_version(&self, mut object: Value) -> Value {
        object.set_type(&self.api_version(), &self.kind);
        if let Some(schema) = &self.schema {
            let _dropped = prune::prune(&mut object, schema);
            defaults::apply(&mut object, schema);
        }
        object
    }

    /// A decoded object in the served version.
    pub(super) fn served(&self, object: Value) -> Value {
        if self.version == self.storage_version { object } else { self.in_version(object) }
    }

    /// The stored form.
    pub(super) fn store(&self, object: &Value) -> Result<Vec<u8>, String> {
        let mut object = object.clone();
        object.set_type(&coffer_types::meta::api_version(&self.group, &self.storage_version), &self.kind);
        let mut out = Vec::with_capacity(1024);
        json::encode_untyped(&object, &mut out);
        out.push(b'\n');
        Ok(out)
    }

    /// Whether stored bytes are what is served: the same version, and nothing to fill in or drop.
    pub(super) fn serves_what_is_stored(&self) -> bool {
        self.version == self.storage_version && self.schema.is_none()
    }

    /// What the schema says against an object, or against its status alone.
    pub(crate) fn validate(&self, object: &Value, status_only: bool) -> FieldErrors {
        let Some(schema) = &self.schema else { return FieldErrors::new() };
        if status_only {
            let Some(schema) = schema.properties.get("status") else { return FieldErrors::new() };
            return object
                .get("status")
                .map(|status| validate::validate_status(status, schema))
                .unwrap_or_default();
        }
        let mut errors = validate::validate(object, schema);
        if errors.is_empty() {
            errors.extend(list_type::validate(object, schema));
        }
        errors
    }
}

/// The tables of ObjectMeta.
fn meta_message() -> Option<&'static Message> {
    let secret = schema::lookup("", "v1", "Secret")?;
    match secret.message.field("metadata")?.shape {
        Shape::One(Type::Message(message)) => Some(message),
        _ => None,
    }
}
