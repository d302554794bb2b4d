//! `runtime.Unknown`: the envelope around every top-level object.

use crate::codec::wire::{Reader, WireType, put_bytes, put_nested, put_tag, put_varint};
use crate::codec::{DecodeError, text};

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

/// The object's message in an envelope that [`open`] has taken before: nothing else is looked at.
pub(in crate::codec) fn raw(data: &[u8]) -> Result<&[u8], DecodeError> {
    let body = data.strip_prefix(MAGIC).unwrap_or_default();
    let mut raw = &[][..];
    let mut reader = Reader::new(body, "Unknown");
    while let Some(entry) = reader.next()? {
        if entry.number == 2 {
            raw = entry.bytes().ok_or_else(|| wrong_wire_type(entry.wire_type.number(), "Raw"))?;
        }
    }
    Ok(raw)
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
    // As Go names it.
    let mut field = field.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_uppercase();
    }
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

/// What stands before a message whose length is known; [`end_sized`] stands after it.
pub(in crate::codec) fn begin_sized(out: &mut Vec<u8>, api_version: &str, kind: &str, length: usize) {
    out.extend_from_slice(MAGIC);
    put_nested(out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_tag(out, 2, WireType::Bytes);
    put_varint(out, length as u64);
}

/// What stands after the message of [`begin_sized`].
pub(in crate::codec) fn end_sized(out: &mut Vec<u8>) {
    put_bytes(out, 3, b"");
    put_bytes(out, 4, b"");
}
