//! One record of etcd's history: a bucket key that is a revision, a value that is a `KeyValue`.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::SnapshotError;
use crate::kv::{LeaseId, Revision};

/// 8 bytes of the revision, `_`, 8 bytes of the place within its transaction.
const REVISION_KEY: usize = 17;

/// What follows when the key was deleted at that revision.
const TOMBSTONE: u8 = b't';

/// One change of one key, as etcd stored it. The value is what the API server wrote: ciphertext,
/// or plaintext where nothing encrypts it.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The revision of the change.
    pub revision: Revision,
    /// The place of the change within its transaction.
    pub sub: i64,
    /// Whether the change is the key's deletion; there is no value then.
    pub deleted: bool,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Revision of the creation.
    pub create_revision: Revision,
    /// 1 at creation, one more with each change.
    pub version: i64,
    /// The lease that ends the key, or 0.
    pub lease: LeaseId,
    /// The page of the file that it is on, for [`super::Snapshot::records_on`].
    pub page: u64,
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Record")
            .field("key", &String::from_utf8_lossy(self.key))
            .field("revision", &(self.revision, self.sub))
            .field("deleted", &self.deleted)
            .finish_non_exhaustive()
    }
}

impl<'a> Record<'a> {
    /// Reads the key and value of an element of the bucket `key`.
    pub(super) fn parse(key: &[u8], value: &'a [u8], page: u64) -> Result<Self, SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { page, what };
        let (revision, sub, deleted) = revision(key).ok_or_else(|| damaged("a revision is malformed"))?;
        let mut record = Record {
            revision,
            sub,
            deleted,
            key: &[],
            value: &[],
            create_revision: 0,
            version: 0,
            lease: 0,
            page,
        };
        record.read_message(value).ok_or_else(|| damaged("a KeyValue is malformed"))?;
        Ok(record)
    }

    /// The fields of `mvccpb.KeyValue`: 1 key, 2 create_revision, 4 version, 5 value, 6 lease.
    fn read_message(&mut self, mut rest: &'a [u8]) -> Option<()> {
        while !rest.is_empty() {
            let (tag, wire) = decode_key(&mut rest).ok()?;
            match (tag, wire) {
                (1, WireType::LengthDelimited) => self.key = take(&mut rest)?,
                (2, WireType::Varint) => self.create_revision = signed(&mut rest)?,
                (4, WireType::Varint) => self.version = signed(&mut rest)?,
                (5, WireType::LengthDelimited) => self.value = take(&mut rest)?,
                (6, WireType::Varint) => self.lease = signed(&mut rest)?,
                (_, wire) => skip_field(wire, tag, &mut rest, DecodeContext::default()).ok()?,
            }
        }
        Some(())
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn signed(rest: &mut &[u8]) -> Option<i64> {
    decode_varint(rest).ok().map(u64::cast_signed)
}

/// The number of a revision, the place within it, and whether it deletes.
pub(super) fn revision(key: &[u8]) -> Option<(Revision, i64, bool)> {
    let number = |at: usize| Some(i64::from_be_bytes(key.get(at..at + 8)?.try_into().ok()?));
    let deleted = match key.get(REVISION_KEY..)? {
        [] => false,
        [TOMBSTONE] => true,
        _ => return None,
    };
    (key[8] == b'_').then_some(())?;
    Some((number(0)?, number(9)?, deleted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 17] = *b"\0\0\0\0\0\0\0\x07_\0\0\0\0\0\0\0\x01";

    #[test]
    fn a_revision_says_whether_it_deletes() {
        assert_eq!(revision(&KEY), Some((7, 1, false)));
        assert_eq!(revision(&[&KEY[..], b"t"].concat()), Some((7, 1, true)));
        for malformed in [&KEY[..16], &[&KEY[..], b"x"].concat(), &[&KEY[..], b"tt"].concat(), b""] {
            assert_eq!(revision(malformed), None);
        }
    }

    /// Every cut of a message is either a shorter message or an error, never a panic.
    #[test]
    fn a_cut_message_is_an_error() {
        let message = b"\x0a\x03key\x10\x02\x18\x03\x20\x04\x2a\x05value\x30\x06\x7a\x01?";
        let record = Record::parse(&KEY, message, 9).expect("a record");
        assert_eq!((record.key, record.value), (&b"key"[..], &b"value"[..]));
        assert_eq!((record.create_revision, record.version, record.lease), (2, 4, 6));
        for end in 0..message.len() {
            let parsed = Record::parse(&KEY, &message[..end], 9);
            let whole = matches!(end, 0 | 5 | 7 | 9 | 11 | 18 | 20);
            assert_eq!(parsed.is_ok(), whole, "{end}");
        }
    }

    #[test]
    fn debug_shows_no_value() {
        let record = Record::parse(&KEY, b"\x0a\x03key\x2a\x06secret", 9).expect("a record");
        assert!(!format!("{record:?}").contains("secret"));
    }
}
