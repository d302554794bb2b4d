//! Key check values: short texts that prove two keys equal without telling them.
//!
//! They are safe to publish in status, events, metrics and logs. A plain hash of a
//! key is not, and is not offered.

use aws_lc_rs::hmac;

use crate::context::{self, LengthOrder};

/// How many bytes of the HMAC are shown: equal values are equal keys but for 2⁻⁶⁴.
const SHOWN: usize = 8;

/// What identifies a key besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyIdentity<'a> {
    /// Replication group.
    pub group: &'a str,
    /// Dimension: the lineage of keys inside the group.
    pub dimension: &'a str,
    /// Revision.
    pub revision: u64,
}

/// The check value of one derived key, or `None` when a part of its identity is longer
/// than 65,535 bytes.
pub fn key_check_value(key: &[u8], identity: KeyIdentity<'_>) -> Option<String> {
    let revision = identity.revision.to_be_bytes();
    let fields: [&[u8]; 4] =
        [b"coffer-key-check/v1", identity.group.as_bytes(), identity.dimension.as_bytes(), &revision];
    check_value(key, &fields)
}

/// The check value of a group's root secret, or `None` when the group's name is longer
/// than 65,535 bytes.
pub fn root_check_value(root: &[u8], group: &str) -> Option<String> {
    check_value(root, &[b"coffer-root-check/v1", group.as_bytes()])
}

fn check_value(key: &[u8], fields: &[&[u8]]) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let tag = hmac::sign(&key, &context::encode(fields, LengthOrder::BigEndian).ok()?);
    Some(tag.as_ref()[..SHOWN].iter().map(|byte| format!("{byte:02x}")).collect())
}
