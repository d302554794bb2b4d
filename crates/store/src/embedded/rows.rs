//! What is on the disk: the tables, their format, and the bytes of a row.
//!
//! A row is one change of one key and never changes. Its bytes are: 1 for a write or 0 for a
//! deletion, then revision of the creation, version and lease (big-endian, 8 bytes each), the
//! length of the key (4 bytes), the key, and the value.

use bytes::Bytes;
use redb::{ReadableTable, StorageError, TableDefinition};

use super::index::{Entry, RowKey};
use crate::kv::{KeyValue, LeaseId, Revision};

/// Every change since the last compaction.
pub(crate) const ROWS: TableDefinition<'_, RowKey, &[u8]> = TableDefinition::new("rows");

/// The time that each lease lasts, in seconds.
pub(crate) const LEASES: TableDefinition<'_, LeaseId, u64> = TableDefinition::new("leases");

/// Single numbers.
pub(crate) const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");

/// The format of the tables; see [`FORMAT`].
pub(crate) const META_FORMAT: &str = "format";
/// How many commits there were.
pub(crate) const META_COMMIT: &str = "commit";
/// The store's revision.
pub(crate) const META_REVISION: &str = "revision";
/// The revision of the last compaction.
pub(crate) const META_COMPACTED: &str = "compacted";
/// The last lease that was made.
pub(crate) const META_LEASE: &str = "lease";

/// The format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: i64 = 1;

/// Bytes before the key.
const FIXED: usize = 29;

/// Fills `buffer` with a row.
pub(crate) fn encode(buffer: &mut Vec<u8>, entry: &Entry, key: &[u8], value: &[u8]) {
    buffer.clear();
    buffer.push(u8::from(!entry.deleted()));
    for number in [entry.created, entry.version, entry.lease] {
        buffer.extend_from_slice(&number.to_be_bytes());
    }
    // Requests are limited to far less than 4 GiB.
    buffer.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_be_bytes());
    buffer.extend_from_slice(key);
    buffer.extend_from_slice(value);
}

/// A row as it was written.
pub(crate) struct Row {
    /// The key and its history; for a deletion without a value.
    pub(crate) kv: KeyValue,
    /// Whether it is a deletion.
    pub(crate) deleted: bool,
}

/// Reads a row. Key and value share one copy.
pub(crate) fn decode(row: RowKey, bytes: &[u8]) -> Result<Row, StorageError> {
    let parts = fixed(bytes).and_then(|fixed| {
        let value_at = FIXED.checked_add(fixed.key_len)?;
        (value_at <= bytes.len()).then_some((fixed, value_at))
    });
    let Some((fixed, value_at)) = parts else { return Err(damaged(row)) };
    let shared = Bytes::copy_from_slice(&bytes[FIXED..]);
    Ok(Row {
        kv: KeyValue {
            key: shared.slice(..fixed.key_len),
            value: shared.slice(value_at - FIXED..),
            create_revision: fixed.created,
            mod_revision: row.0,
            version: fixed.version,
            lease: fixed.lease,
        },
        deleted: fixed.deleted,
    })
}

/// Reads only what the index needs.
pub(crate) fn decode_entry(row: RowKey, bytes: &[u8]) -> Result<(Bytes, Entry), StorageError> {
    let parts = fixed(bytes).and_then(|fixed| {
        let key = bytes.get(FIXED..FIXED.checked_add(fixed.key_len)?)?;
        Some((fixed, key))
    });
    let Some((fixed, key)) = parts else { return Err(damaged(row)) };
    let entry = Entry { row, version: fixed.version, created: fixed.created, lease: fixed.lease };
    Ok((Bytes::copy_from_slice(key), entry))
}

/// Reads the row of an entry.
pub(crate) fn load(
    rows: &impl ReadableTable<RowKey, &'static [u8]>,
    row: RowKey,
) -> Result<KeyValue, StorageError> {
    let found = rows.get(row)?.ok_or_else(|| damaged(row))?;
    Ok(decode(row, found.value())?.kv)
}

struct Fixed {
    deleted: bool,
    created: Revision,
    version: i64,
    lease: LeaseId,
    key_len: usize,
}

fn fixed(bytes: &[u8]) -> Option<Fixed> {
    let number = |at: usize| Some(i64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let deleted = match bytes.first()? {
        0 => true,
        1 => false,
        _ => return None,
    };
    let (created, version) = (number(1)?, number(9)?);
    // A deletion has neither, and everything else has both.
    if deleted != (version == 0) || version < 0 {
        return None;
    }
    let key_len = u32::from_be_bytes(bytes.get(25..29)?.try_into().ok()?);
    Some(Fixed { deleted, created, version, lease: number(17)?, key_len: usize::try_from(key_len).ok()? })
}

fn damaged(row: RowKey) -> StorageError {
    StorageError::Corrupted(format!("the row of revision {}.{} is damaged or missing", row.0, row.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_comes_back_as_it_was_written() {
        for (version, created, value) in [(3, 7, &b"value"[..]), (1, 9, b""), (0, 0, b"")] {
            let entry = Entry { row: (9, 2), version, created, lease: 5 };
            let mut bytes = Vec::new();
            encode(&mut bytes, &entry, b"/key", value);
            let row = decode((9, 2), &bytes).expect("whole");
            assert_eq!((&*row.kv.key, &*row.kv.value, row.kv.version), (&b"/key"[..], value, version));
            assert_eq!((row.kv.create_revision, row.kv.mod_revision, row.kv.lease), (created, 9, 5));
            assert_eq!(row.deleted, version == 0);
            assert_eq!(decode_entry((9, 2), &bytes).expect("whole"), (Bytes::from_static(b"/key"), entry));
            for cut in 0..FIXED + 4 {
                assert!(decode((9, 2), &bytes[..cut]).is_err(), "cut at {cut}");
                assert!(decode_entry((9, 2), &bytes[..cut]).is_err(), "cut at {cut}");
            }
        }
    }
}
