//! The read path: from stored bytes straight to what a client asked for.
//!
//! No object is built. Stored bytes are the protobuf envelope of a built-in kind or the
//! JSON of a custom resource, and never hold a `resourceVersion`: it is put in here.
//! Everything appends to the caller's buffer and equals, byte for byte, what Go's
//! serializers make of the decoded object.

mod attributes;
mod frames;
mod json;
mod message;
mod splice;

pub use attributes::{Selectable, attributes};
pub use frames::{
    ListHead, Planned, begin_json, begin_protobuf, end_json, end_protobuf, item_protobuf, items_json,
    list_json, list_protobuf, plan_protobuf, watch_json, watch_protobuf,
};

use super::DecodeError;
use super::proto::{self, MAGIC};
use crate::Value;
use crate::meta::Meta;
use crate::schema::{self, Kind, Message};

/// What of a stored object is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// `PartialObjectMetadata` of this `apiVersion`: [`METADATA_V1`] or [`METADATA_V1BETA1`].
    Metadata(&'static str),
}

/// Group and version of `PartialObjectMetadata`.
pub const METADATA_V1: &str = "meta.k8s.io/v1";

/// The older version of the same kind.
pub const METADATA_V1BETA1: &str = "meta.k8s.io/v1beta1";

const METADATA_KIND: &str = "PartialObjectMetadata";

/// A stored object and the revision that it has.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The tables of the kind; `None` for a custom resource.
    pub kind: Option<&'static Kind>,
    /// The stored bytes.
    pub bytes: &'a [u8],
    /// `metadata.resourceVersion`.
    pub revision: i64,
}

impl<'a> Source<'a> {
    /// Appends the object as JSON, without a new line at the end.
    ///
    /// `with_type` adds `kind` and `apiVersion`, which the items of a built-in list go
    /// without. Items of a custom resource always have them.
    pub fn to_json(&self, part: Part, with_type: bool, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let restore = out.len();
        let result = self.append_json(part, with_type, &mut message::Writer::default(), out);
        if result.is_err() {
            out.truncate(restore);
        }
        result
    }

    fn append_json(
        &self,
        part: Part,
        with_type: bool,
        writer: &mut message::Writer<'a>,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let Some(kind) = self.kind else {
            return match part {
                Part::Whole => json::whole(self.bytes, self.revision, out),
                Part::Metadata(version) => {
                    json::metadata(self.bytes, self.revision, with_type.then_some(version), out)
                }
            };
        };
        if self.bytes.starts_with(MAGIC) {
            let raw = proto::raw(self.bytes)?;
            let api_version;
            let (type_meta, only) = match part {
                Part::Whole if with_type => {
                    api_version = kind.api_version();
                    (Some((api_version.as_str(), kind.kind)), None)
                }
                Part::Whole => (None, None),
                Part::Metadata(version) => (with_type.then_some((version, METADATA_KIND)), Some("metadata")),
            };
            let start = out.len();
            if writer.object(kind.message, raw, type_meta, self.revision, only, out).is_ok() {
                return Ok(());
            }
            out.truncate(start);
        }
        // What our encoder never writes (JSON of a built-in kind, a message in several parts)
        // is left to the decoder, as are its errors.
        let (message, mut object) = self.decoded(kind, part)?;
        if !with_type {
            object.remove(&["kind"]);
            object.remove(&["apiVersion"]);
        }
        super::json::encode(message, &object, out);
        Ok(())
    }

    fn decoded(&self, kind: &'static Kind, part: Part) -> Result<(&'static Message, Value), DecodeError> {
        let mut object = if self.bytes.starts_with(MAGIC) {
            proto::decode(kind.message, proto::raw(self.bytes)?)?
        } else {
            super::json::decode(kind.message, self.bytes)?.object
        };
        object.set_meta_str("resourceVersion", &self.revision.to_string());
        match (part, schema::lookup("meta.k8s.io", "v1", METADATA_KIND)) {
            (Part::Metadata(version), Some(metadata_kind)) => {
                if let Some(members) = object.as_object_mut() {
                    members.retain(|name, _| name == "metadata");
                }
                object.set_type(version, METADATA_KIND);
                Ok((metadata_kind.message, object))
            }
            _ => {
                object.set_type(&kind.api_version(), kind.kind);
                Ok((kind.message, object))
            }
        }
    }

    /// The object's protobuf message in pieces, where it is stored as one.
    fn spliced(&self, kind: &'static Kind, part: Part) -> Result<splice::Spliced<'a>, DecodeError> {
        splice::Spliced::new(proto::raw(self.bytes)?, metadata_number(kind.message), self.revision, part)
    }

    /// Appends the object's protobuf message: what a protobuf list has as an item.
    pub fn to_message(&self, part: Part, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        match (self.kind, part) {
            (None, Part::Whole) => Err(not_protobuf()),
            // Of a custom resource only the metadata can be had in protobuf; it is made of JSON.
            (None, Part::Metadata(_)) => json::metadata_message(self.bytes, self.revision, out),
            (Some(kind), _) if self.bytes.starts_with(MAGIC) => {
                self.spliced(kind, part)?.append(out);
                Ok(())
            }
            (Some(kind), _) => {
                let (message, object) = self.decoded(kind, part)?;
                proto::encode(message, &object, out);
                Ok(())
            }
        }
    }

    /// Appends the object in a protobuf envelope.
    pub fn to_envelope(&self, part: Part, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let api_version = self.kind.map(Kind::api_version);
        let (api_version, kind) = match (part, self.kind, &api_version) {
            (Part::Metadata(version), ..) => (version, METADATA_KIND),
            (Part::Whole, Some(kind), Some(api_version)) => (api_version.as_str(), kind.kind),
            (Part::Whole, ..) => return Err(not_protobuf()),
        };
        let restore = out.len();
        let mut result = Ok(());
        proto::wrap(out, api_version, kind, |out| result = self.to_message(part, out));
        if result.is_err() {
            out.truncate(restore);
        }
        result
    }
}

fn metadata_number(message: &Message) -> u32 {
    message.field("metadata").map_or(1, |field| field.number)
}

fn not_protobuf() -> DecodeError {
    // Upstream's words for a custom resource that is asked for in protobuf.
    DecodeError::new(
        "object does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message",
    )
}
