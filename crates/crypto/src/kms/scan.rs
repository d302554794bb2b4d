//! Reads the stored object as Go's protobuf does, without copying the value.
//!
//! The derived decoder is stricter: it refuses a known field of another wire type, which Go
//! takes for an unknown one. A value that one server reads the other must read.

use super::Annotations;
use super::invalid::InvalidObject;

/// The largest number that a field may have.
const LAST_FIELD: u64 = (1 << 29) - 1;
/// How deep groups may nest; nobody writes any.
const DEEPEST_GROUP: usize = 64;

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const START_GROUP: u64 = 3;
const END_GROUP: u64 = 4;
const FIXED32: u64 = 5;

/// The fields, as they are in the message.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub(super) data: &'a [u8],
    pub(super) key_id: &'a str,
    pub(super) source: &'a [u8],
    pub(super) annotations: Annotations,
    pub(super) source_type: i32,
}

impl<'a> Fields<'a> {
    /// Of several of one number the last counts.
    pub(super) fn scan(message: &'a [u8]) -> Result<Self, InvalidObject> {
        let mut fields = Self::default();
        let mut rest = message;
        while !rest.is_empty() {
            match next(&mut rest).ok_or(InvalidObject::Wire)? {
                (1, Field::Bytes(data)) => fields.data = data,
                (2, Field::Bytes(text)) => fields.key_id = utf8(text)?,
                (3, Field::Bytes(source)) => fields.source = source,
                (4, Field::Bytes(entry)) => {
                    let (name, value) = annotation(entry)?;
                    fields.annotations.insert(name.to_owned(), value.to_vec());
                }
                // As Go: the low half counts.
                (5, Field::Varint(number)) => fields.source_type = number as i32,
                _ => {}
            }
        }
        Ok(fields)
    }
}

fn annotation(entry: &[u8]) -> Result<(&str, &[u8]), InvalidObject> {
    let (mut name, mut value) = ("", &[][..]);
    let mut rest = entry;
    while !rest.is_empty() {
        match next(&mut rest).ok_or(InvalidObject::Wire)? {
            (1, Field::Bytes(text)) => name = utf8(text)?,
            (2, Field::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Ok((name, value))
}

fn utf8(text: &[u8]) -> Result<&str, InvalidObject> {
    std::str::from_utf8(text).map_err(|_| InvalidObject::Text)
}

enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Of a type that no field here has.
    Other,
}

/// Takes one field off; `None` when there is none.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let (number, wire_type) = tag(rest)?;
    Some((number, content(rest, number, wire_type)?))
}

fn tag(rest: &mut &[u8]) -> Option<(u64, u64)> {
    let tag = varint(rest)?;
    let number = tag >> 3;
    (1..=LAST_FIELD).contains(&number).then_some((number, tag & 7))
}

fn content<'a>(rest: &mut &'a [u8], number: u64, wire_type: u64) -> Option<Field<'a>> {
    match wire_type {
        VARINT => varint(rest).map(Field::Varint),
        BYTES => {
            let length = usize::try_from(varint(rest)?).ok()?;
            take(rest, length).map(Field::Bytes)
        }
        FIXED64 => take(rest, 8).map(|_| Field::Other),
        FIXED32 => take(rest, 4).map(|_| Field::Other),
        START_GROUP => skip_group(rest, number).map(|()| Field::Other),
        _ => None,
    }
}

/// Up to the end of the group `number`, whatever is in it.
fn skip_group(rest: &mut &[u8], number: u64) -> Option<()> {
    let mut open = vec![number];
    while let Some(innermost) = open.last() {
        match tag(rest)? {
            (number, END_GROUP) => {
                if number != *innermost {
                    return None;
                }
                open.pop();
            }
            (number, START_GROUP) if open.len() < DEEPEST_GROUP => open.push(number),
            (_, START_GROUP) => return None,
            (number, wire_type) => {
                content(rest, number, wire_type)?;
            }
        }
    }
    Some(())
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        // The tenth byte has room for one bit.
        if shift == 63 && *byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
