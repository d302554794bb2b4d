//! Protobuf's wire format, the part that Go's generated code reads and writes.

use super::DecodeError;

/// How a field is laid out on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireType {
    Varint,
    Fixed64,
    Bytes,
    Fixed32,
}

impl WireType {
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Varint => 0,
            Self::Fixed64 => 1,
            Self::Bytes => 2,
            Self::Fixed32 => 5,
        }
    }
}

/// What a field holds on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// One field on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) number: u32,
    pub(super) wire_type: WireType,
    pub(super) payload: Payload<'a>,
}

impl<'a> Entry<'a> {
    /// The bytes of a length-delimited field.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self.payload {
            Payload::Bytes(bytes) => Some(bytes),
            Payload::Number(_) => None,
        }
    }
}

/// Reads the fields of one message, in order.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    message: &'static str,
}

impl<'a> Reader<'a> {
    /// `message` is Go's name, with or without its package, for errors.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], message: &'static str) -> Self {
        Self { rest: bytes, message }
    }

    /// How many bytes are unread.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The next field; groups are skipped.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        loop {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let tag = varint(&mut self.rest)?;
            let number = (tag >> 3) as i32;
            let wire_type = (tag & 7) as u8;
            if wire_type == 4 {
                return Err(self.error("wiretype end group for non-group"));
            }
            if number <= 0 {
                return Err(self.error(&format!("illegal tag {number} (wire type {tag})")));
            }
            if wire_type == 3 {
                skip_group(&mut self.rest)?;
                continue;
            }
            let (wire_type, payload) = payload(wire_type, &mut self.rest)?;
            return Ok(Some(Entry { number: number.unsigned_abs(), wire_type, payload }));
        }
    }

    fn error(&self, what: &str) -> DecodeError {
        let message = self.message.rsplit('.').next().unwrap_or(self.message);
        DecodeError::new(format!("proto: {message}: {what}"))
    }
}

#[inline]
fn payload<'a>(wire_type: u8, rest: &mut &'a [u8]) -> Result<(WireType, Payload<'a>), DecodeError> {
    Ok(match wire_type {
        0 => (WireType::Varint, Payload::Number(varint(rest)?)),
        1 => {
            let bytes = take(rest, 8)?;
            let number = bytes.try_into().map(u64::from_le_bytes).map_err(|_| end_of_input())?;
            (WireType::Fixed64, Payload::Number(number))
        }
        2 => {
            let length = varint(rest)?;
            // Go's lengths are signed.
            let length = i64::try_from(length).map_err(|_| negative_length())?;
            (
                WireType::Bytes,
                Payload::Bytes(take(rest, usize::try_from(length).map_err(|_| negative_length())?)?),
            )
        }
        5 => {
            let bytes = take(rest, 4)?;
            let number = bytes.try_into().map(u32::from_le_bytes).map_err(|_| end_of_input())?;
            (WireType::Fixed32, Payload::Number(u64::from(number)))
        }
        other => return Err(DecodeError::new(format!("proto: illegal wireType {other}"))),
    })
}

/// Skips to the end of a group whose start has been read.
fn skip_group(rest: &mut &[u8]) -> Result<(), DecodeError> {
    let mut depth = 1_usize;
    while depth > 0 {
        match (varint(rest)? & 7) as u8 {
            3 => depth += 1,
            4 => depth -= 1,
            wire_type => {
                payload(wire_type, rest)?;
            }
        }
    }
    Ok(())
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], DecodeError> {
    let (taken, left) = rest.split_at_checked(length).ok_or_else(end_of_input)?;
    *rest = left;
    Ok(taken)
}

/// Reads a varint of at most 64 bits.
#[inline]
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, DecodeError> {
    // Nearly all tags, lengths and numbers take one byte.
    if let Some((&byte, left)) = rest.split_first()
        && byte < 0x80
    {
        *rest = left;
        return Ok(u64::from(byte));
    }
    long_varint(rest)
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, left) = rest.split_first().ok_or_else(end_of_input)?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DecodeError::new("proto: integer overflow"))
}

fn end_of_input() -> DecodeError {
    DecodeError::new("unexpected EOF")
}

fn negative_length() -> DecodeError {
    DecodeError::new("proto: negative length found during unmarshaling")
}

/// Writes a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes a varint takes.
pub(super) fn varint_length(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// How many bytes a length-delimited field takes whose content has `length` bytes.
pub(super) fn bytes_length(number: u32, length: usize) -> usize {
    varint_length(u64::from(number) << 3) + varint_length(length as u64) + length
}

/// Writes a field's tag.
pub(super) fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: WireType) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire_type.number()));
}

/// Writes a length-delimited field.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, WireType::Bytes);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a number field.
pub(super) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, WireType::Varint);
    put_varint(out, value);
}

/// Writes a length-delimited field whose content `write` appends.
pub(super) fn put_nested(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, number, WireType::Bytes);
    let start = out.len();
    // Most messages are shorter than 128 bytes, so one byte is reserved for the length.
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(start..=start, prefix);
}
