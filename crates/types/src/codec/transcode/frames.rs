//! What stands around objects: the head of a list, the frame of a watch event.

use super::splice::Spliced;
use super::{Part, Source, message};
use crate::codec::proto::MAGIC;
use crate::codec::wire::{WireType, bytes_length, put_bytes, put_nested, put_number, put_tag, put_varint};
use crate::codec::{DecodeError, proto, text};

/// A list without its items.
#[derive(Debug, Clone, Copy)]
pub struct ListHead<'a> {
    /// `apiVersion` of the list.
    pub api_version: &'a str,
    /// `kind` of the list.
    pub kind: &'a str,
    /// `metadata.resourceVersion`.
    pub revision: i64,
    /// `metadata.continue`, or "".
    pub continue_token: &'a str,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
    /// What of each item is wanted.
    pub part: Part,
    /// Whether the items of built-in kinds carry `kind` and `apiVersion` in JSON.
    pub typed_items: bool,
}

/// Appends a whole list as JSON with the new line at its end. Custom resources put `kind` and
/// `apiVersion` first all the same: upstream's lists of them are sorted by key.
pub fn list_json<'a>(
    head: &ListHead<'_>,
    custom: bool,
    items: impl IntoIterator<Item = Source<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    if custom && head.part == Part::Whole {
        // An unstructured list: keys sorted.
        out.extend_from_slice(b"{\"apiVersion\":");
        text::quote(out, head.api_version.as_bytes());
        out.extend_from_slice(b",\"items\":[");
        write_items(head, items, out)?;
        out.extend_from_slice(b"],\"kind\":");
        text::quote(out, head.kind.as_bytes());
        out.extend_from_slice(b",\"metadata\":");
        sorted_metadata(head, out);
        out.extend_from_slice(b"}\n");
        return Ok(());
    }
    out.extend_from_slice(b"{\"kind\":");
    text::quote(out, head.kind.as_bytes());
    out.extend_from_slice(b",\"apiVersion\":");
    text::quote(out, head.api_version.as_bytes());
    out.extend_from_slice(b",\"metadata\":{\"resourceVersion\":\"");
    text::int(out, head.revision);
    out.push(b'"');
    if !head.continue_token.is_empty() {
        out.extend_from_slice(b",\"continue\":");
        text::quote(out, head.continue_token.as_bytes());
    }
    if let Some(remaining) = head.remaining {
        out.extend_from_slice(b",\"remainingItemCount\":");
        text::int(out, remaining);
    }
    out.extend_from_slice(b"},\"items\":[");
    write_items(head, items, out)?;
    out.extend_from_slice(b"]}\n");
    Ok(())
}

fn write_items<'a>(
    head: &ListHead<'_>,
    items: impl IntoIterator<Item = Source<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut writer = message::Writer::default();
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item.append_json(head.part, head.typed_items, &mut writer, out)?;
    }
    Ok(())
}

fn sorted_metadata(head: &ListHead<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"continue\":");
    text::quote(out, head.continue_token.as_bytes());
    if let Some(remaining) = head.remaining {
        out.extend_from_slice(b",\"remainingItemCount\":");
        text::int(out, remaining);
    }
    out.extend_from_slice(b",\"resourceVersion\":\"");
    text::int(out, head.revision);
    out.extend_from_slice(b"\"}");
}

/// Number of `metadata` in every list.
const LIST_METADATA: u32 = 1;

/// Number of `items` in every list.
const LIST_ITEMS: u32 = 2;

/// Appends a whole list in a protobuf envelope.
///
/// The length of a message stands before it, so the pieces are found first and copied once.
pub fn list_protobuf<'a>(
    head: &ListHead<'_>,
    items: impl IntoIterator<Item = Source<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let items =
        items.into_iter().map(|source| Item::new(&source, head.part)).collect::<Result<Vec<_>, _>>()?;
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 1, b"");
    put_bytes(&mut metadata, 2, itoa::Buffer::new().format(head.revision).as_bytes());
    put_bytes(&mut metadata, 3, head.continue_token.as_bytes());
    if let Some(remaining) = head.remaining {
        put_number(&mut metadata, 4, remaining as u64);
    }
    let length = bytes_length(LIST_METADATA, metadata.len())
        + items.iter().map(|item| bytes_length(LIST_ITEMS, item.length())).sum::<usize>();
    proto::wrap_sized(out, head.api_version, head.kind, length, |out| {
        put_bytes(out, LIST_METADATA, &metadata);
        for item in &items {
            put_tag(out, LIST_ITEMS, WireType::Bytes);
            put_varint(out, item.length() as u64);
            item.append(out);
        }
    });
    Ok(())
}

/// An item of a protobuf list.
enum Item<'a> {
    Spliced(Spliced<'a>),
    /// What had to be encoded.
    Encoded(Vec<u8>),
}

impl<'a> Item<'a> {
    fn new(source: &Source<'a>, part: Part) -> Result<Self, DecodeError> {
        match source.kind {
            Some(kind) if source.bytes.starts_with(MAGIC) => Ok(Self::Spliced(source.spliced(kind, part)?)),
            _ => {
                let mut encoded = Vec::new();
                source.to_message(part, &mut encoded)?;
                Ok(Self::Encoded(encoded))
            }
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::Spliced(spliced) => spliced.length(),
            Self::Encoded(encoded) => encoded.len(),
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Spliced(spliced) => spliced.append(out),
            Self::Encoded(encoded) => out.extend_from_slice(encoded),
        }
    }
}

/// Appends a watch event in JSON with the new line at its end; `object` is JSON without one.
pub fn watch_json(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":");
    text::quote(out, event_type.as_bytes());
    out.extend_from_slice(b",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

/// Appends a watch event in protobuf, its length before it in four bytes; `object` is enveloped.
pub fn watch_protobuf(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_bytes(out, 1, event_type.as_bytes());
    put_nested(out, 2, |out| put_bytes(out, 1, object));
    let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
