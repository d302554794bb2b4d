//! Puts a `resourceVersion` into a stored protobuf message by copying what is around it.

use super::Part;
use crate::codec::DecodeError;
use crate::codec::wire::{Reader, WireType, bytes_length, put_bytes, put_tag, put_varint};

/// Number of `resourceVersion` in `ObjectMeta`.
const RESOURCE_VERSION: u32 = 6;

/// Number of `metadata` in `PartialObjectMetadata`.
const METADATA: u32 = 1;

/// A stored message and what goes into it: pieces that stand one after the other.
pub(super) struct Spliced<'a> {
    /// What stands around the metadata.
    around: (&'a [u8], &'a [u8]),
    /// Number of the metadata's field.
    number: u32,
    /// The metadata around its `resourceVersion`.
    metadata: (&'a [u8], &'a [u8]),
    revision: i64,
}

/// Where in its stored bytes the pieces of a message are: to make them once and write them later.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    around: [Place; 2],
    metadata: [Place; 2],
    number: u32,
}

/// Where a piece begins, and its length.
type Place = (u32, u32);

impl Places {
    /// The places of a message's pieces in `stored`; `None` when they are beyond 4 GiB.
    pub(super) fn of(spliced: &Spliced<'_>, stored: &[u8]) -> Option<Self> {
        let place = |piece: &[u8]| -> Option<Place> {
            if piece.is_empty() {
                return Some((0, 0));
            }
            let start = piece.as_ptr().addr().checked_sub(stored.as_ptr().addr())?;
            Some((u32::try_from(start).ok()?, u32::try_from(piece.len()).ok()?))
        };
        Some(Self {
            around: [place(spliced.around.0)?, place(spliced.around.1)?],
            metadata: [place(spliced.metadata.0)?, place(spliced.metadata.1)?],
            number: spliced.number,
        })
    }

    /// The message again, from the same bytes.
    pub(super) fn spliced<'a>(&self, stored: &'a [u8], revision: i64) -> Option<Spliced<'a>> {
        let piece = |(start, length): Place| {
            let start = usize::try_from(start).ok()?;
            stored.get(start..start.checked_add(usize::try_from(length).ok()?)?)
        };
        Some(Spliced {
            around: (piece(self.around[0])?, piece(self.around[1])?),
            number: self.number,
            metadata: (piece(self.metadata[0])?, piece(self.metadata[1])?),
            revision,
        })
    }
}

impl<'a> Spliced<'a> {
    /// The message `raw`, or of it only the metadata as a `PartialObjectMetadata`.
    /// `number` is that of the field `metadata`.
    pub(super) fn new(raw: &'a [u8], number: u32, revision: i64, part: Part) -> Result<Self, DecodeError> {
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
            let (number, around) = match part {
                Part::Whole => (number, (&raw[..start], &raw[end..])),
                Part::Metadata(_) => (METADATA, (&[][..], &[][..])),
            };
            return Ok(Self { around, number, metadata: split_metadata(metadata)?, revision });
        }
    }

    fn metadata_length(&self) -> usize {
        self.metadata.0.len() + bytes_length(RESOURCE_VERSION, digits(self.revision)) + self.metadata.1.len()
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> usize {
        self.around.0.len() + bytes_length(self.number, self.metadata_length()) + self.around.1.len()
    }

    pub(super) fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.around.0);
        put_tag(out, self.number, WireType::Bytes);
        put_varint(out, self.metadata_length() as u64);
        out.extend_from_slice(self.metadata.0);
        put_bytes(out, RESOURCE_VERSION, itoa::Buffer::new().format(self.revision).as_bytes());
        out.extend_from_slice(self.metadata.1);
        out.extend_from_slice(self.around.1);
    }
}

/// How many characters a revision takes.
fn digits(revision: i64) -> usize {
    itoa::Buffer::new().format(revision).len()
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
