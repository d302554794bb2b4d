//! Puts a `resourceVersion` into a stored protobuf message by copying what is around it.

use super::Part;
use crate::codec::DecodeError;
use crate::codec::wire::{Reader, WireType, put_bytes, put_tag, put_varint};

/// Number of `resourceVersion` in `ObjectMeta`.
const RESOURCE_VERSION: u32 = 6;

/// Number of `metadata` in `PartialObjectMetadata`.
const METADATA: u32 = 1;

/// Appends the message `raw`, or of it only the metadata as a `PartialObjectMetadata`.
/// `number` is that of the field `metadata`.
pub(super) fn append(
    raw: &[u8],
    number: u32,
    revision: i64,
    part: Part,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(raw, "Object");
    loop {
        let start = raw.len() - reader.remaining();
        let Some(entry) = reader.next()? else {
            return Err(DecodeError::new("stored object has no metadata"));
        };
        if entry.number != number {
            continue;
        }
        let metadata = entry.bytes().ok_or_else(|| DecodeError::new("stored metadata is no message"))?;
        let end = raw.len() - reader.remaining();
        let (before, after) = split_metadata(metadata)?;
        let (number, around) = match part {
            Part::Whole => (number, (&raw[..start], &raw[end..])),
            Part::Metadata(_) => (METADATA, (&[][..], &[][..])),
        };
        out.extend_from_slice(around.0);
        put_metadata(number, before, revision, after, out);
        out.extend_from_slice(around.1);
        return Ok(());
    }
}

fn put_metadata(number: u32, before: &[u8], revision: i64, after: &[u8], out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let revision = buffer.format(revision).as_bytes();
    // A revision has at most 20 digits: one byte of tag, one of length.
    let length = before.len() + 2 + revision.len() + after.len();
    put_tag(out, number, WireType::Bytes);
    put_varint(out, length as u64);
    out.extend_from_slice(before);
    put_bytes(out, RESOURCE_VERSION, revision);
    out.extend_from_slice(after);
}

/// What stands before and after `resourceVersion`.
fn split_metadata(metadata: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let mut reader = Reader::new(metadata, "ObjectMeta");
    loop {
        let start = metadata.len() - reader.remaining();
        let next = reader.next()?;
        let end = metadata.len() - reader.remaining();
        match next {
            Some(entry) if entry.number < RESOURCE_VERSION => {}
            Some(entry) if entry.number == RESOURCE_VERSION => {
                return Ok((&metadata[..start], &metadata[end..]));
            }
            _ => return Ok((&metadata[..start], &metadata[start..])),
        }
    }
}
