//! What stands around objects: the head of a list, the frame of a watch event.

use super::splice::{Places, Spliced};
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
    begin_json(head, custom, out);
    items_json(head, true, items, usize::MAX, out)?;
    end_json(head, custom, out);
    Ok(())
}

/// Appends what stands before the items of a JSON list.
pub fn begin_json(head: &ListHead<'_>, custom: bool, out: &mut Vec<u8>) {
    if custom && head.part == Part::Whole {
        // An unstructured list: keys sorted.
        out.extend_from_slice(b"{\"apiVersion\":");
        text::quote(out, head.api_version.as_bytes());
        out.extend_from_slice(b",\"items\":[");
        return;
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
}

/// Appends items of a JSON list until `out` has `full` bytes, and gives how many; `first` says that
/// none has been written before.
pub fn items_json<'a>(
    head: &ListHead<'_>,
    first: bool,
    items: impl IntoIterator<Item = Source<'a>>,
    full: usize,
    out: &mut Vec<u8>,
) -> Result<usize, DecodeError> {
    let mut writer = message::Writer::default();
    let mut written = 0;
    for item in items {
        if full <= out.len() {
            break;
        }
        if !first || 0 < written {
            out.push(b',');
        }
        item.append_json(head.part, head.typed_items, &mut writer, out)?;
        written += 1;
    }
    Ok(written)
}

/// Appends what stands after the items of a JSON list.
pub fn end_json(head: &ListHead<'_>, custom: bool, out: &mut Vec<u8>) {
    if custom && head.part == Part::Whole {
        out.extend_from_slice(b"],\"kind\":");
        text::quote(out, head.kind.as_bytes());
        out.extend_from_slice(b",\"metadata\":");
        sorted_metadata(head, out);
        out.extend_from_slice(b"}\n");
    } else {
        out.extend_from_slice(b"]}\n");
    }
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

/// More than what stands around the items takes, names and token aside.
const AROUND_ITEMS: usize = 128;

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
    let length: usize = items.iter().map(Item::length_in_list).sum();
    let names = head.api_version.len() + head.kind.len() + head.continue_token.len();
    out.reserve(length + names + AROUND_ITEMS);
    begin_protobuf(head, length, out);
    for item in &items {
        item.append_to_list(out);
    }
    end_protobuf(out);
    Ok(())
}

/// An item of a protobuf list that has been looked at, and can be written later.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// How many bytes it takes in the list.
    length: u32,
    /// `None` when it has to be encoded.
    places: Option<Places>,
}

impl Planned {
    /// How many bytes it takes in the list.
    pub fn length(&self) -> usize {
        self.length as usize
    }
}

/// Looks at an item of a protobuf list.
pub fn plan_protobuf(item: &Source<'_>, part: Part) -> Result<Planned, DecodeError> {
    let made = Item::new(item, part)?;
    let length = u32::try_from(made.length_in_list())
        .map_err(|_| DecodeError::new("the object is too large for a list"))?;
    let places = match &made {
        Item::Spliced(spliced) => Places::of(spliced, item.bytes),
        Item::Encoded(_) => None,
    };
    Ok(Planned { length, places })
}

/// Appends what stands before the items of a protobuf list; `items` is how many bytes they take together.
pub fn begin_protobuf(head: &ListHead<'_>, items: usize, out: &mut Vec<u8>) {
    let mut metadata = Vec::new();
    put_bytes(&mut metadata, 1, b"");
    put_bytes(&mut metadata, 2, itoa::Buffer::new().format(head.revision).as_bytes());
    put_bytes(&mut metadata, 3, head.continue_token.as_bytes());
    if let Some(remaining) = head.remaining {
        put_number(&mut metadata, 4, remaining as u64);
    }
    let length = bytes_length(LIST_METADATA, metadata.len()) + items;
    proto::begin_sized(out, head.api_version, head.kind, length);
    put_bytes(out, LIST_METADATA, &metadata);
}

/// Appends an item of a protobuf list, which was planned from the same source.
pub fn item_protobuf(
    planned: &Planned,
    item: &Source<'_>,
    part: Part,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let spliced = planned.places.and_then(|places| places.spliced(item.bytes, item.revision));
    let made = match spliced {
        Some(spliced) => Item::Spliced(spliced),
        None => Item::new(item, part)?,
    };
    made.append_to_list(out);
    Ok(())
}

/// Appends what stands after the items of a protobuf list.
pub fn end_protobuf(out: &mut Vec<u8>) {
    proto::end_sized(out);
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

    fn length_in_list(&self) -> usize {
        bytes_length(LIST_ITEMS, self.length())
    }

    fn append_to_list(&self, out: &mut Vec<u8>) {
        put_tag(out, LIST_ITEMS, WireType::Bytes);
        put_varint(out, self.length() as u64);
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
