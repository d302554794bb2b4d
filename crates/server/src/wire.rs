//! How the objects of one resource are read and written: built-in kinds by their tables, custom ones as JSON.
//!
//! The only place that knows the codecs. No error's text holds a value.

mod custom;
pub(crate) mod events;
mod fields;
mod frames;
mod list;
pub(crate) mod schemas;
mod storage;

use std::sync::Arc;

use coffer_lang::field_selector::{FieldSelector, FieldSelectorError};
use coffer_store::registry::Stored;
use coffer_types::codec::transcode::{Part, Source};
use coffer_types::codec::{DecodeError, autoscaling, json, proto, yaml};
use coffer_types::meta::{self, Meta as _};
use coffer_types::schema::{self, Kind};
use coffer_types::{Status, Value};

pub(crate) use self::custom::{CustomCodec, CustomState, CustomWire};
pub(crate) use self::fields::Writer;
pub(crate) use self::frames::{bookmark, event_frame};
pub(crate) use self::list::Pieces;
pub(crate) use self::storage::StorageCodec;
use crate::negotiate::{Media, MetaVersion};
use crate::quote;
use crate::resources::info::ResourceInfo;
use crate::resources::strategy::Strategy;

/// A decoded body.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The object, defaulted.
    pub(crate) object: Value,
    /// Unknown and duplicate fields.
    pub(crate) strict: Vec<String>,
}

/// One resource's codecs.
#[derive(Clone)]
pub(crate) enum Wire {
    BuiltIn(BuiltInWire),
    Custom(Arc<CustomWire>),
}

/// How the stored form of a built-in object differs from the served one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Not at all.
    Same,
    /// The core Event of an `events.k8s.io` Event.
    CoreEvent,
    /// The older version of a CustomResourceDefinition, as JSON.
    Definition,
    /// The same message under another version.
    Version(&'static str),
    /// As JSON.
    Json,
    /// The newer version of a HorizontalPodAutoscaler.
    Autoscaler,
}

impl Form {
    fn of(group: &str, version: &str, kind: &str) -> Self {
        if (group, version, kind) == ("autoscaling", "v1", "HorizontalPodAutoscaler") {
            return Self::Autoscaler;
        }
        match (group, kind) {
            ("events.k8s.io", "Event") => Self::CoreEvent,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definition,
            ("apiregistration.k8s.io", "APIService") => Self::Json,
            ("resource.k8s.io", "DeviceTaintRule") => Self::Version("v1beta2"),
            ("storagemigration.k8s.io", "StorageVersionMigration") => Self::Version("v1beta1"),
            _ => Self::Same,
        }
    }
}

/// Codecs by tables.
#[derive(Clone)]
pub(crate) struct BuiltInWire {
    /// The served kind.
    kind: &'static Kind,
    /// The kind of a list.
    list: Option<&'static Kind>,
    /// How the stored form differs from the served one.
    stored: Form,
    /// Defaults of a decoded object.
    strategy: Option<Arc<dyn Strategy>>,
}

impl Wire {
    /// The codecs of a built-in kind, if it is one.
    pub(crate) fn built_in(
        group: &str,
        version: &str,
        kind: &str,
        strategy: Option<Arc<dyn Strategy>>,
    ) -> Option<Self> {
        let list = schema::lookup(group, version, &format!("{kind}List"));
        let stored = Form::of(group, version, kind);
        let kind = schema::lookup(group, version, kind)?;
        Some(Self::BuiltIn(BuiltInWire { kind, list, stored, strategy }))
    }

    /// Decodes a body.
    pub(crate) fn decode(&self, body: &[u8], media: Media) -> Result<Decoded, Status> {
        match self {
            Self::BuiltIn(wire) => wire.decode(body, media),
            Self::Custom(wire) => wire.decode(body, media),
        }
    }

    /// Makes an object of a patched tree. The error is the decoder's text.
    pub(crate) fn retype(&self, tree: &Value) -> Result<Decoded, String> {
        match self {
            Self::BuiltIn(wire) => {
                let (api_version, kind) = wire.named(tree);
                match wire.type_fault(&api_version, &kind) {
                    None => {}
                    Some(TypeFault::Kind(why)) => return Err(why),
                    Some(TypeFault::Version) => {
                        return Err(format!(
                            "the API version in the data ({}) does not match the expected API version ({})",
                            tree.api_version(),
                            wire.kind.api_version()
                        ));
                    }
                }
                let decoded = json::retype(wire.kind.message, tree).map_err(|error| error.to_string())?;
                let mut object = decoded.object;
                object.set_type(&wire.kind.api_version(), wire.kind.kind);
                wire.default(&mut object);
                Ok(Decoded { object, strict: decoded.strict_errors })
            }
            Self::Custom(wire) => wire.accept(tree.clone(), Vec::new()),
        }
    }

    /// What a webhook's patch has made of an object, without defaults. What the schema does not know is
    /// dropped in silence, or kept where the resource is a custom one: reading it drops it.
    pub(crate) fn reshape(&self, tree: &Value) -> Result<Value, String> {
        match self {
            Self::BuiltIn(wire) => {
                let (api_version, kind) = wire.named(tree);
                match wire.type_fault(&api_version, &kind) {
                    None => {}
                    Some(TypeFault::Kind(why)) => return Err(why),
                    Some(TypeFault::Version) => return Err(not_registered(&api_version, &kind)),
                }
                let decoded = json::retype(wire.kind.message, tree).map_err(|error| error.0)?;
                let mut object = decoded.object;
                object.set_type(&wire.kind.api_version(), wire.kind.kind);
                Ok(object)
            }
            Self::Custom(_) => CustomWire::reshape(tree),
        }
    }

    /// Fills in defaults, of the version that the object is in.
    pub(crate) fn fill_in(&self, object: &mut Value) {
        match self {
            Self::BuiltIn(wire) => wire.default(object),
            Self::Custom(wire) => wire.schemas.fill_in(object),
        }
    }

    /// A patch may not make another kind of a custom resource.
    pub(crate) fn check_patched(&self, tree: &Value) -> Result<(), Status> {
        match self {
            Self::BuiltIn(_) => Ok(()),
            Self::Custom(wire) => wire.check_patched(tree),
        }
    }

    /// Makes an object of the tree that comes of an apply, which is of its type.
    pub(crate) fn applied(&self, tree: Value) -> Result<Value, String> {
        match self {
            Self::BuiltIn(_) => self.retype(&tree).map(|decoded| decoded.object),
            Self::Custom(wire) => wire.applied(tree),
        }
    }

    /// A decoded object, which is in the stored version, in the served one.
    pub(crate) fn served(&self, object: Value) -> Value {
        match self {
            Self::BuiltIn(wire) if wire.stored == Form::Autoscaler => autoscaling::to_v1(&object),
            Self::BuiltIn(_) => object,
            Self::Custom(wire) => wire.served(object),
        }
    }

    /// Applies a strategic merge patch to a tree in JSON form.
    pub(crate) fn strategic(
        &self,
        document: Value,
        patch: Value,
    ) -> Result<Value, coffer_types::patch::strategic::StrategicError> {
        match self {
            Self::BuiltIn(wire) => coffer_types::patch::strategic::apply(document, patch, wire.kind.message),
            Self::Custom(_) => {
                Err(coffer_types::patch::strategic::StrategicError::BadRequest("invalid JSON document"))
            }
        }
    }

    /// The object as it is served, from its stored form.
    pub(crate) fn read(&self, stored: &Stored) -> Result<Value, Status> {
        let mut object = match self {
            Self::BuiltIn(wire) => wire.read(&stored.bytes)?,
            Self::Custom(wire) => wire.read(&stored.bytes)?,
        };
        object.set_meta_str("resourceVersion", &stored.revision.to_string());
        Ok(object)
    }

    /// The type and the metadata of an object, which may go without `managedFields`.
    pub(crate) fn metadata(&self, stored: &Stored) -> Result<Value, Status> {
        let Self::BuiltIn(BuiltInWire { kind, stored: Form::Same | Form::Version(_), .. }) = self else {
            return self.read(stored);
        };
        let mut object = proto::decode_metadata(&stored.bytes, kind).map_err(|error| unreadable(&error))?;
        object.set_meta_str("resourceVersion", &stored.revision.to_string());
        Ok(object)
    }

    /// The stored bytes as the transcoder reads them, when they can be served without a conversion.
    fn source<'a>(&self, stored: &'a Stored, part: Part) -> Option<Source<'a>> {
        let kind = match self {
            Self::BuiltIn(wire) if matches!(wire.stored, Form::Same | Form::Version(_)) => Some(wire.kind),
            // The metadata of a stored definition is found as that of any other JSON.
            Self::BuiltIn(wire)
                if matches!(wire.stored, Form::Definition | Form::Json) && part != Part::Whole =>
            {
                None
            }
            Self::BuiltIn(_) => return None,
            Self::Custom(wire) => {
                if part == Part::Whole && !wire.serves_what_is_stored() {
                    return None;
                }
                None
            }
        };
        Some(Source { kind, bytes: &stored.bytes, revision: stored.revision })
    }

    /// One stored object as a whole document.
    pub(crate) fn object(&self, stored: &Stored, media: Media) -> Result<Vec<u8>, Status> {
        let Some(source) = self.source(stored, Part::Whole) else {
            return self.value(&self.read(stored)?, media);
        };
        document(&source, Part::Whole, media)
    }

    /// One stored object inside a watch event: no new line at its end.
    pub(crate) fn event_object(&self, stored: &Stored, media: Media) -> Result<Vec<u8>, Status> {
        let mut bytes = self.object(stored, media)?;
        if media == Media::Json && bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Ok(bytes)
    }

    /// One object as a whole document.
    pub(crate) fn value(&self, object: &Value, media: Media) -> Result<Vec<u8>, Status> {
        match self {
            Self::BuiltIn(wire) => Ok(encode(Some(wire.kind), object, media)),
            Self::Custom(_) if media == Media::Protobuf => {
                Err(Status::internal("no protobuf for a custom resource"))
            }
            Self::Custom(_) => Ok(encode(None, object, media)),
        }
    }

    /// One stored object's metadata as a whole document.
    pub(crate) fn partial(
        &self,
        stored: &Stored,
        version: MetaVersion,
        media: Media,
    ) -> Result<Vec<u8>, Status> {
        let part = Part::Metadata(version.api_version());
        match self.source(stored, part) {
            Some(source) => document(&source, part, media),
            None => partial_value(&self.read(stored)?, version, media),
        }
    }

    /// Refuses fields by which the objects cannot be selected, and replaces aliases.
    pub(crate) fn check_fields(&self, fields: FieldSelector) -> Result<FieldSelector, FieldSelectorError> {
        match self {
            Self::BuiltIn(wire) => fields.for_kind(wire.kind.group, wire.kind.kind, None),
            Self::Custom(wire) => fields.for_kind(&wire.group, &wire.kind, Some(&wire.fields())),
        }
    }

    /// Whether every watch of what is stored sees the same: versions beside the stored one do not.
    pub(crate) fn shares_events(&self) -> bool {
        match self {
            Self::BuiltIn(wire) => wire.stored != Form::Autoscaler,
            Self::Custom(wire) => wire.converter.is_some() || wire.version == wire.storage_version,
        }
    }

    /// The name under which what is stored tells a field, if that is not the field's own.
    pub(crate) fn stored_field(&self, field: &str) -> Option<Arc<str>> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Custom(wire) => wire.stored_field(field),
        }
    }
}

impl BuiltInWire {
    fn default(&self, object: &mut Value) {
        if let Some(strategy) = &self.strategy {
            strategy.default(object);
        }
    }

    fn read(&self, bytes: &[u8]) -> Result<Value, Status> {
        storage::decode(self.kind, self.stored, bytes).map_err(|error| unreadable(&error))
    }

    fn decode(&self, body: &[u8], media: Media) -> Result<Decoded, Status> {
        let kind = self.kind;
        let (mut object, strict) = match media {
            Media::Json => {
                self.check_type(json::peek_type(body).map_err(|error| self.unrecognized(&error.0, body))?)?;
                let decoded = json::decode(kind.message, body).map_err(|error| self.undecodable(&error.0))?;
                (decoded.object, decoded.strict_errors)
            }
            Media::Yaml => {
                let tree = yaml::decode_untyped(body).map_err(|error| self.unrecognized(&error.0, body))?;
                if !matches!(tree.object, Value::Object(_) | Value::Null) {
                    let why = not_an_object(&tree.object);
                    return Err(self.unrecognized(&why, body));
                }
                let named = (tree.object.api_version().to_owned(), tree.object.kind().to_owned());
                self.check_type(named)?;
                let decoded = yaml::decode(kind.message, body).map_err(|error| self.undecodable(&error.0))?;
                (decoded.object, decoded.strict_errors)
            }
            Media::Protobuf => {
                let envelope = proto::open(body).map_err(|error| self.unrecognized(&error.0, body))?;
                self.check_type((envelope.api_version.clone(), envelope.kind.clone()))?;
                let object =
                    proto::decode(kind.message, envelope.raw).map_err(|error| self.undecodable(&error.0))?;
                (object, Vec::new())
            }
        };
        object.set_type(&kind.api_version(), kind.kind);
        self.default(&mut object);
        Ok(Decoded { object, strict })
    }

    /// The body must say that it is of this kind, or say nothing.
    fn check_type(&self, (api_version, named): (String, String)) -> Result<(), Status> {
        let own = self.kind.api_version();
        let api_version = if api_version.is_empty() { own.clone() } else { api_version };
        let named = if named.is_empty() { self.kind.kind.to_owned() } else { named };
        self.type_fault(&api_version, &named).map_or(Ok(()), |fault| {
            let (_, version) = meta::split_api_version(&api_version);
            Err(Status::bad_request(match fault {
                TypeFault::Version => format!(
                    "the API version in the data ({api_version}) does not match the expected API version ({own})"
                ),
                TypeFault::Kind(why) => format!(
                    "{named} in version {} cannot be handled as a {}: {why}",
                    quote(version),
                    self.kind.kind
                ),
            }))
        })
    }

    /// The type that an object names; where it names none, its own.
    fn named(&self, tree: &Value) -> (String, String) {
        let or = |text: &str, own: &str| if text.is_empty() { own } else { text }.to_owned();
        (or(tree.api_version(), &self.kind.api_version()), or(tree.kind(), self.kind.kind))
    }

    /// What is wrong with the type of an object, in the converter's words.
    fn type_fault(&self, api_version: &str, named: &str) -> Option<TypeFault> {
        let kind = self.kind;
        if named == kind.kind && api_version == kind.api_version() {
            return None;
        }
        let (group, version) = meta::split_api_version(api_version);
        Some(if schema::lookup(group, version, named).is_none() {
            TypeFault::Kind(not_registered(api_version, named))
        } else if named == kind.kind {
            TypeFault::Version
        } else {
            TypeFault::Kind(format!(
                "converting ({version}.{named}) to ({}): unknown conversion",
                internal_name(kind)
            ))
        })
    }

    fn undecodable(&self, why: &str) -> Status {
        let kind = self.kind;
        Status::bad_request(format!(
            "{} in version {} cannot be handled as a {}: {why}",
            kind.kind,
            quote(kind.version),
            kind.kind
        ))
    }

    fn unrecognized(&self, why: &str, body: &[u8]) -> Status {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            self.kind.kind,
            if holds_secrets(self.kind.kind) { summary(body).to_owned() } else { beginning(body) }
        ))
    }
}

fn unreadable(error: &DecodeError) -> Status {
    Status::internal(error.to_string())
}

/// One object as a whole document.
fn document(source: &Source<'_>, part: Part, media: Media) -> Result<Vec<u8>, Status> {
    let mut out = Vec::with_capacity(source.bytes.len() * 2 + 64);
    match media {
        Media::Json => {
            source.to_json(part, true, &mut out).map_err(|error| unreadable(&error))?;
            out.push(b'\n');
        }
        Media::Protobuf => source.to_envelope(part, &mut out).map_err(|error| unreadable(&error))?,
        Media::Yaml => {
            let mut json = Vec::with_capacity(source.bytes.len() * 2);
            source.to_json(part, true, &mut json).map_err(|error| unreadable(&error))?;
            yaml::from_json(&json, &mut out).map_err(|error| unreadable(&error))?;
        }
    }
    Ok(out)
}

/// What is wrong with the type of an object.
enum TypeFault {
    /// The right kind in another version.
    Version,
    /// Another kind.
    Kind(String),
}

fn not_registered(api_version: &str, kind: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(kind),
        quote(api_version)
    )
}

/// 400 for a body of a known kind.
pub(crate) fn undecodable(info: &ResourceInfo, why: &str) -> Status {
    Status::bad_request(format!(
        "{} in version {} cannot be handled as a {}: {why}",
        info.kind,
        quote(&info.version),
        info.kind
    ))
}

/// `core.Secret`, as upstream names its internal types.
fn internal_name(kind: &Kind) -> String {
    let group = match kind.group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("{group}.{}", kind.kind)
}

/// Why something that is no object has no kind.
fn not_an_object(tree: &Value) -> String {
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
         \"json:\\\"kind,omitempty\\\"\" }}",
        tree.json_kind()
    )
}

/// Kinds whose bodies hold what nobody else may read.
fn holds_secrets(kind: &str) -> bool {
    matches!(kind, "Secret" | "TokenRequest" | "TokenReview")
}

/// What an error shows of a body.
fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = &body[..body.len().min(SHOWN)];
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > SHOWN { format!("{text} ...") } else { text }
}

/// What an error shows of a body that may be secret. Upstream shows the first bytes of it too: only
/// a lone bracket or nothing is shown here.
fn summary(body: &[u8]) -> &'static str {
    match body {
        [] => "<empty>",
        [b'{'] => "{",
        _ => "<content redacted>",
    }
}

/// The metadata of an object as its own document's tree.
pub(crate) fn partial_tree(object: &Value, version: MetaVersion) -> Value {
    let mut partial = Value::object();
    partial.set_type(version.api_version(), "PartialObjectMetadata");
    partial.set(&["metadata"], object.get("metadata").cloned().unwrap_or_else(Value::object));
    partial
}

/// The metadata of an object as a whole document.
pub(crate) fn partial_value(object: &Value, version: MetaVersion, media: Media) -> Result<Vec<u8>, Status> {
    let partial = partial_tree(object, version);
    let kind = schema::lookup("meta.k8s.io", "v1", "PartialObjectMetadata");
    Ok(encode_as(kind, version.api_version(), &partial, media))
}

/// A whole document of a `meta.k8s.io` kind that JSON and YAML know.
pub(crate) fn encode_meta(kind: &str, version: MetaVersion, object: &Value, media: Media) -> Vec<u8> {
    encode_as(schema::lookup("meta.k8s.io", "v1", kind), version.api_version(), object, media)
}

/// A document of discovery, which is made as JSON, in another medium.
pub(crate) fn encode_discovery(document: &[u8], media: Media) -> Result<Vec<u8>, Status> {
    let tree = json::decode_untyped(document).map_err(|error| Status::internal(error.0))?.object;
    let kind = schema::lookup("", "v1", tree.kind());
    let (Media::Protobuf, Some(kind)) = (media, kind) else { return Ok(encode(None, &tree, media)) };
    let typed = json::retype(kind.message, &tree).map_err(|error| Status::internal(error.0))?;
    Ok(encode_as(Some(kind), tree.api_version(), &typed.object, media))
}

/// A Status.
pub(crate) fn encode_status(status: &Value, media: Media) -> Vec<u8> {
    let mut bytes = encode(schema::lookup("", "v1", "Status"), status, media);
    if media == Media::Json && bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes
}

/// DeleteOptions of a body.
pub(crate) fn decode_delete_options(body: &[u8], media: Media) -> Result<Value, Status> {
    let kind = schema::lookup("", "v1", "DeleteOptions")
        .ok_or_else(|| Status::internal("no schema for DeleteOptions"))?;
    let (api_version, named) = match media {
        Media::Json => json::peek_type(body),
        Media::Yaml => yaml::decode_untyped(body)
            .map(|tree| (tree.object.api_version().to_owned(), tree.object.kind().to_owned())),
        Media::Protobuf => proto::open(body).map(|envelope| (envelope.api_version, envelope.kind)),
    }
    .map_err(|error| Status::bad_request(error.0))?;
    // Every group has DeleteOptions.
    if !matches!(named.as_str(), "" | "DeleteOptions") {
        let api_version = if api_version.is_empty() { "v1".to_owned() } else { api_version };
        let (group, version) = meta::split_api_version(&api_version);
        let of_meta = |kind: &Kind| kind.message.name.starts_with("k8s.io/apimachinery/pkg/apis/meta/");
        if schema::lookup(group, version, &named).is_some_and(of_meta) {
            return Err(Status::bad_request(format!(
                "converting ({version}.{named}) to (v1.DeleteOptions): unknown conversion"
            )));
        }
        return Err(Status::bad_request(not_registered(&api_version, &named)));
    }
    match media {
        Media::Json => json::decode(kind.message, body).map(|decoded| decoded.object),
        Media::Yaml => yaml::decode(kind.message, body).map(|decoded| decoded.object),
        Media::Protobuf => proto::open(body).and_then(|envelope| proto::decode(kind.message, envelope.raw)),
    }
    .map_err(|error| Status::bad_request(error.0))
}

/// Any YAML, of which JSON is a part: the first document.
pub(crate) fn decode_yaml(body: &[u8]) -> Result<json::Decoded, String> {
    yaml::decode_untyped(body).map_err(|error| error.0)
}

/// Any JSON.
pub(crate) fn decode_untyped(body: &[u8]) -> Result<json::Decoded, String> {
    json::decode_untyped(body).map_err(|error| error.0)
}

fn encode(kind: Option<&'static Kind>, object: &Value, media: Media) -> Vec<u8> {
    encode_as(kind, object.api_version(), object, media)
}

/// Encodes by the tables of `kind`, or without tables; `api_version` may be another than the tables'.
fn encode_as(kind: Option<&'static Kind>, api_version: &str, object: &Value, media: Media) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match (media, kind) {
        (Media::Json, Some(kind)) => json::encode_line(kind.message, object, &mut out),
        (Media::Json, None) => {
            json::encode_untyped(object, &mut out);
            out.push(b'\n');
        }
        (Media::Yaml, Some(kind)) => yaml::encode(kind.message, object, &mut out),
        (Media::Yaml, None) => yaml::encode_untyped(object, &mut out),
        (Media::Protobuf, Some(kind)) => {
            proto::wrap(&mut out, api_version, object.kind(), |out| proto::encode(kind.message, object, out));
        }
        (Media::Protobuf, None) => json::encode_untyped(object, &mut out),
    }
    out
}
