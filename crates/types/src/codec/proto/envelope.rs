//! `runtime.Unknown`: the envelope around every top-level object.

use super::{decode, encode};
use crate::codec::wire::{Reader, put_bytes, put_nested};
use crate::codec::{DecodeError, text};
use crate::meta::{Meta, split_api_version};
use crate::schema::{self, Kind};
use crate::{Value, meta};

/// What an enveloped object begins with.
pub const MAGIC: &[u8; 4] = b"k8s\0";

/// An opened envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion` of the object; may be "".
    pub api_version: String,
    /// `kind` of the object; may be "".
    pub kind: String,
    /// The object's message.
    pub raw: &'a [u8],
    /// `contentType`; "" means protobuf.
    pub content_type: String,
}

/// Opens an envelope.
pub fn open(data: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    if data.is_empty() {
        return Err(DecodeError::new("empty data"));
    }
    let body = data.strip_prefix(MAGIC).ok_or_else(|| {
        DecodeError::new(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        )
    })?;
    if body.is_empty() {
        return Err(DecodeError::new("empty body"));
    }
    let mut envelope =
        Envelope { api_version: String::new(), kind: String::new(), raw: &[], content_type: String::new() };
    let mut reader = Reader::new(body, "Unknown");
    while let Some(entry) = reader.next()? {
        let field = match entry.number {
            1 => "TypeMeta",
            2 => "Raw",
            3 => "ContentEncoding",
            4 => "ContentType",
            _ => continue,
        };
        let bytes = entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), field))?;
        match entry.number {
            1 => open_type_meta(bytes, &mut envelope)?,
            2 => envelope.raw = bytes,
            4 => envelope.content_type = text::lossy(bytes),
            _ => {}
        }
    }
    Ok(envelope)
}

fn open_type_meta(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), DecodeError> {
    let mut reader = Reader::new(bytes, "TypeMeta");
    while let Some(entry) = reader.next()? {
        let (field, target) = match entry.number {
            1 => ("APIVersion", &mut envelope.api_version),
            2 => ("Kind", &mut envelope.kind),
            _ => continue,
        };
        let bytes = entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), field))?;
        *target = text::lossy(bytes);
    }
    Ok(())
}

pub(super) fn wrong_wire_type(number: u8, field: &str) -> DecodeError {
    DecodeError::new(format!("proto: wrong wireType = {number} for field {field}"))
}

/// Appends an envelope around the message that `write` appends.
pub fn wrap(out: &mut Vec<u8>, api_version: &str, kind: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(MAGIC);
    put_nested(out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_nested(out, 2, write);
    put_bytes(out, 3, b"");
    put_bytes(out, 4, b"");
}

/// Decodes an enveloped object of a built-in kind; `apiVersion` and `kind` are set.
/// `expected` is used where the envelope names no kind or no version.
pub fn decode_enveloped(data: &[u8], expected: Option<&'static Kind>) -> Result<Value, DecodeError> {
    let mut envelope = open(data)?;
    if let Some(expected) = expected {
        if envelope.kind.is_empty() {
            expected.kind.clone_into(&mut envelope.kind);
        }
        if envelope.api_version.is_empty() {
            envelope.api_version = expected.api_version();
        }
    }
    let shown =
        || format!("runtime.TypeMeta{{APIVersion:{:?}, Kind:{:?}}}", envelope.api_version, envelope.kind);
    if envelope.kind.is_empty() {
        return Err(DecodeError::new(format!("Object 'Kind' is missing in '{}'", shown())));
    }
    if envelope.api_version.is_empty() {
        return Err(DecodeError::new(format!("Object 'apiVersion' is missing in '{}'", shown())));
    }
    let (group, version) = split_api_version(&envelope.api_version);
    let kind = schema::lookup(group, version, &envelope.kind).ok_or_else(|| {
        DecodeError::new(format!(
            "no kind {:?} is registered for version {:?}",
            envelope.kind,
            meta::api_version(group, version)
        ))
    })?;
    let mut object = decode(kind.message, envelope.raw)?;
    object.set_type(&envelope.api_version, &envelope.kind);
    Ok(object)
}

/// Encodes an object of a built-in kind in its envelope.
pub fn encode_enveloped(kind: &Kind, object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    wrap(&mut out, &kind.api_version(), kind.kind, |out| encode(kind.message, object, out));
    out
}
