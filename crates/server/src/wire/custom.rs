//! Objects of custom resources: JSON trees with only `metadata` of a known shape.

use std::sync::Arc;

use arc_swap::ArcSwap;
use coffer_types::codec::{json, yaml};
use coffer_types::meta::{Meta as _, split_api_version};
use coffer_types::schema::{self, Message, Shape, Type};
use coffer_types::validation::field::{FieldError, FieldErrors, Path, to_status};
use coffer_types::{Status, Value};

use super::Decoded;
use super::schemas::Schemas;
use crate::conversion::Converter;
use crate::crd::schema::Schema;
use crate::crd::selectable::SelectableField;
use crate::crd::validations::{self, Said};
use crate::crd::{defaults, embedded, list_type, prune, validate};
use crate::negotiate::Media;
use crate::quote;

/// One served version of a custom resource.
pub(crate) struct CustomWire {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// The version that is written to the store.
    pub(crate) storage_version: String,
    /// The schemas of all versions.
    pub(crate) schemas: Arc<Schemas>,
    /// Structural schema of the served version.
    pub(crate) schema: Option<Arc<Schema>>,
    /// Fields by which objects are selected besides name and namespace, each with its name in what is stored.
    selectable: Vec<(SelectableField, Arc<str>)>,
    /// What converts objects on their way to and from the store, so that what is read here is converted
    /// already.
    pub(crate) converter: Option<Arc<Converter>>,
}

impl CustomWire {
    /// The wire of one entry of `spec.versions`.
    pub(crate) fn new(
        [group, kind, storage_version]: [&str; 3],
        namespaced: bool,
        version: &Value,
        schemas: Arc<Schemas>,
        converter: Option<Arc<Converter>>,
    ) -> Self {
        let name = version.str_at(&["name"]);
        let schema = schemas.of(&coffer_types::meta::api_version(group, name)).cloned();
        let selectable = SelectableField::of_version(version).into_iter().map(|field| {
            let key = format!("{name} {}", field.name);
            (field, Arc::from(key))
        });
        Self {
            group: group.to_owned(),
            version: name.to_owned(),
            kind: kind.to_owned(),
            namespaced,
            storage_version: storage_version.to_owned(),
            schema,
            selectable: selectable.collect(),
            converter,
            schemas,
        }
    }

    /// Every field by which objects are selected.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let own = self.selectable.iter().map(|(field, _)| field.name.as_str());
        let namespace = self.namespaced.then_some("metadata.namespace");
        std::iter::once("metadata.name").chain(namespace).chain(own).collect()
    }

    /// The name of a field in what is stored, if it is not the field's own.
    pub(crate) fn stored_field(&self, field: &str) -> Option<Arc<str>> {
        self.selectable.iter().find(|(own, _)| own.name == field).map(|(_, key)| Arc::clone(key))
    }

    /// Whether objects are selected by fields of their own.
    pub(crate) fn selects(&self) -> bool {
        !self.selectable.is_empty()
    }

    pub(crate) fn api_version(&self) -> String {
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
        let tree = tree.map_err(|error| match media {
            Media::Yaml => unrecognized(&error.0),
            _ => unrecognized(&format!("couldn't get version/kind; json parse error: {error}")),
        })?;
        if tree.object.is_null() && body.is_empty() {
            return Err(unrecognized("Object 'Kind' is missing in ''"));
        }
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
        let (group, _) = split_api_version(&api_version);
        if group == self.group && kind != self.kind {
            let error = FieldError::invalid(&Path::new("kind"), &kind, format!("must be {}", self.kind));
            return Err(to_status(group, &kind, object.name(), &[error]));
        }
        if api_version != self.api_version() {
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

    pub(super) fn check_patched(&self, tree: &Value) -> Result<(), Status> {
        let own = self.api_version();
        let (api_version, kind) = (tree.api_version(), tree.kind());
        let (group, _) = split_api_version(api_version);
        let invalid = |field: &str, found: &str, wanted: &str| {
            let error = FieldError::invalid(&Path::new(field), found, format!("must be {wanted}"));
            Err(to_status(group, kind, tree.name(), &[error]))
        };
        if !kind.is_empty() && kind != self.kind {
            return invalid("kind", kind, &self.kind);
        }
        if !api_version.is_empty() && api_version != own {
            return invalid("apiVersion", api_version, &own);
        }
        Ok(())
    }

    /// What an apply has made of an object: a `null` that was applied is for validation to refuse.
    pub(super) fn applied(&self, object: Value) -> Result<Value, String> {
        self.typed(object, Vec::new(), defaults::fill).map(|decoded| decoded.object)
    }

    /// Types the metadata, prunes and defaults.
    pub(super) fn accept(&self, object: Value, strict: Vec<String>) -> Result<Decoded, String> {
        self.typed(object, strict, defaults::apply)
    }

    /// A patched tree with metadata of the known shape, and nothing else looked at.
    pub(super) fn reshape(tree: &Value) -> Result<Value, String> {
        if tree.as_object().is_none() {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                tree.json_kind()
            ));
        }
        if tree.kind().is_empty() {
            return Err("Object 'Kind' is missing in '<content redacted>'".to_owned());
        }
        let mut object = tree.clone();
        if let (Some(meta), Some(message)) = (tree.get("metadata"), meta_message()) {
            object.set(&["metadata"], json::retype(message, meta).map_err(|error| error.0)?.object);
        }
        Ok(object)
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
        if self.converter.is_some() {
            return Ok(object);
        }
        self.schemas.settle(object).map(|object| self.served(object)).map_err(Status::plain)
    }

    /// A decoded object in the served version.
    pub(super) fn served(&self, mut object: Value) -> Value {
        self.schemas.rename(&mut object, &self.api_version(), &self.kind);
        object
    }

    pub(crate) fn selected(&self, object: &Value) -> impl Iterator<Item = (Arc<str>, String)> {
        let object = self.served(object.clone());
        self.selectable.iter().map(move |(field, key)| (Arc::clone(key), field.value(&object)))
    }

    /// Whether what is read is what is served: the same version, and nothing to fill in or drop.
    pub(super) fn serves_what_is_stored(&self) -> bool {
        self.converter.is_some() || (self.version == self.storage_version && self.schema.is_none())
    }

    /// What the rules of the schema say against an object of which `found` is wrong otherwise.
    pub(crate) fn validate_rules(&self, object: &Value, old: Option<&Value>, found: &FieldErrors) -> Said {
        let Some(schema) = &self.schema else { return Said::default() };
        let Some(rules) = self.schemas.rules(&self.api_version()) else { return Said::default() };
        match validations::blocked(found) {
            Some(error) => Said { errors: vec![error], warnings: Vec::new() },
            None => rules.validate(object, old, schema),
        }
    }

    /// What the schema says against an object, or against its status alone, that was `old`.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>, status_only: bool) -> FieldErrors {
        let Some(schema) = &self.schema else { return FieldErrors::new() };
        let mut errors = if status_only {
            let status = object.get("status").zip(schema.properties.get("status"));
            let old = old.and_then(|old| old.get("status"));
            status.map(|(status, schema)| validate::validate_status(status, old, schema)).unwrap_or_default()
        } else {
            let mut errors = validate::validate(object, old, schema);
            errors.extend(embedded::validate(object, schema));
            errors
        };
        // What was there twice before may stay so.
        if old.is_none_or(|old| list_type::validate(old, schema).is_empty()) {
            errors.extend(list_type::validate(object, schema));
        }
        errors
    }
}

/// How the objects of a definition are stored and what selectors see of them, by the definition as it is now.
pub(crate) struct CustomCodec(ArcSwap<CustomState>);

/// What of a definition matters to what is stored.
pub(crate) struct CustomState {
    /// The version that is written.
    pub(crate) stored: Arc<CustomWire>,
    /// The versions whose objects are selected by fields of their own.
    pub(crate) selecting: Vec<Arc<CustomWire>>,
}

impl CustomCodec {
    pub(crate) fn new(state: CustomState) -> Self {
        Self(ArcSwap::from_pointee(state))
    }

    /// The definition has changed.
    pub(crate) fn set(&self, state: CustomState) {
        self.0.store(Arc::new(state));
    }

    /// A stored object, in the version that it is stored in.
    pub(super) fn decode(&self, stored: &[u8]) -> Result<Value, String> {
        let object = json::decode_untyped(stored).map_err(|error| error.to_string())?.object;
        self.0.load().stored.schemas.settle(object)
    }

    /// The stored form of an object of any version.
    pub(super) fn encode(&self, object: &Value) -> Result<Vec<u8>, String> {
        let state = self.0.load();
        let wire = &state.stored;
        let mut object = object.clone();
        wire.schemas.rename(&mut object, &wire.api_version(), &wire.kind);
        let mut out = Vec::with_capacity(1024);
        json::encode_untyped(&object, &mut out);
        out.push(b'\n');
        Ok(out)
    }

    /// The fields by which a stored object is selected, besides name and namespace.
    pub(super) fn selected(&self, stored: &[u8]) -> Box<[(Arc<str>, String)]> {
        let state = self.0.load();
        if state.selecting.is_empty() {
            return Box::default();
        }
        // What cannot be read has no fields; whoever reads it is told why.
        let Ok(object) = self.decode(stored) else { return Box::default() };
        state.selecting.iter().flat_map(|wire| wire.selected(&object)).collect()
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
