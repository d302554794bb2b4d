//! What stands around objects: the head of a list, the frame of a watch event.

use super::{Part, Source};
use crate::codec::wire::{put_bytes, put_nested, put_number};
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
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item.to_json(head.part, head.typed_items, out)?;
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

/// Appends a whole list in a protobuf envelope.
pub fn list_protobuf<'a>(
    head: &ListHead<'_>,
    items: impl IntoIterator<Item = Source<'a>>,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let mut result = Ok(());
    let mut item = Vec::new();
    proto::wrap(out, head.api_version, head.kind, |out| {
        put_nested(out, 1, |out| {
            put_bytes(out, 1, b"");
            put_bytes(out, 2, itoa::Buffer::new().format(head.revision).as_bytes());
            put_bytes(out, 3, head.continue_token.as_bytes());
            if let Some(remaining) = head.remaining {
                put_number(out, 4, remaining as u64);
            }
        });
        for source in items {
            item.clear();
            if let Err(error) = source.to_message(head.part, &mut item) {
                result = Err(error);
                return;
            }
            put_bytes(out, 2, &item);
        }
    });
    result
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
