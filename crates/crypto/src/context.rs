//! Lists of fields as bytes that no other list has: what derivation and check values bind.

/// The most bytes that one field may have: its length stands in front of it in two bytes.
pub(crate) const LONGEST_FIELD: usize = u16::MAX as usize;

/// The order of the two bytes in front of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LengthOrder {
    /// The network's order.
    BigEndian,
    /// The other one.
    LittleEndian,
}

/// Each field behind its length in two bytes. A field that is too long is an error, with its
/// place in the list: a length that wraps round would make two lists alike.
pub(crate) fn encode(fields: &[&[u8]], order: LengthOrder) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(fields.iter().map(|field| 2 + field.len()).sum());
    for (place, field) in fields.iter().enumerate() {
        let length = u16::try_from(field.len()).map_err(|_| place)?;
        out.extend_from_slice(&match order {
            LengthOrder::BigEndian => length.to_be_bytes(),
            LengthOrder::LittleEndian => length.to_le_bytes(),
        });
        out.extend_from_slice(field);
    }
    Ok(out)
}
