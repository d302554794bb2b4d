//! The bytes of a stored value, part by part.

use coffer_crypto::kms::{EncryptedObject, SourceType, split_v1};
use coffer_crypto::{Provider, StoredUnder};

use super::{Envelope, Part};

const NONCE: usize = 12;
const TAG: usize = 16;
/// What the data key of a value is derived with, beside the seed.
const INFO: usize = 32;
/// The length in front of an encrypted data key in version 1.
const LENGTH: usize = 2;

/// The parts of a stored value, as far as it is long enough for them. Of an envelope of version 2 the part
/// `key` is all that says how the plugin holds the data key, wherever it stands.
pub(super) fn parts(value: &[u8], under: Option<&StoredUnder>) -> Vec<Part> {
    let part = |name: &'static str, length| Part { name: name.into(), length };
    let Some(under) = under else { return vec![part("unknown", value.len())] };
    let body = body(value, under);
    let mut rest = value.len();
    let mut parts = Vec::new();
    let mut take = |name, wanted: usize| {
        let length = wanted.min(rest);
        rest -= length;
        if wanted > 0 {
            parts.push(part(name, length));
        }
        rest
    };
    let mut left = take("prefix", value.len() - body.len());
    // What stands before and after the ciphertext.
    let (before, name, after): (Vec<(_, usize)>, _, &[(_, usize)]) = match under.provider {
        Provider::Identity => (vec![], "plaintext", &[]),
        Provider::AesCbc => (vec![("initialization vector", 16)], "ciphertext", &[]),
        Provider::AesGcm => (vec![("nonce", NONCE)], "ciphertext", &[("tag", TAG)]),
        Provider::Secretbox => (vec![("nonce", 24), ("tag", TAG)], "ciphertext", &[]),
        Provider::KmsV1 => match split_v1(body) {
            Some((encrypted, _)) => {
                let before = vec![("length", LENGTH), ("key", encrypted.len()), ("nonce", NONCE)];
                (before, "ciphertext", &[("tag", TAG)])
            }
            None => (vec![], "damaged envelope", &[]),
        },
        Provider::KmsV2 => match EncryptedObject::decode(body) {
            Ok(object) => {
                let info = if object.source.source_type == SourceType::Seed { INFO } else { 0 };
                let before = vec![("key", body.len() - object.data.len()), ("info", info), ("nonce", NONCE)];
                (before, "ciphertext", &[("tag", TAG)])
            }
            Err(_) => (vec![], "damaged envelope", &[]),
        },
    };
    for (name, length) in before {
        left = take(name, length);
    }
    let behind: usize = after.iter().map(|(_, length)| length).sum();
    take(name, left.saturating_sub(behind));
    for (name, length) in after {
        take(name, *length);
    }
    parts
}

/// What an envelope says; `None` for a damaged one too.
pub(super) fn envelope(value: &[u8], under: Option<&StoredUnder>) -> Option<Envelope> {
    let under = under?;
    let body = body(value, under);
    match under.provider {
        Provider::KmsV1 => {
            let (encrypted, _) = split_v1(body)?;
            Some(Envelope {
                key_id: String::new(),
                source: "data key".into(),
                source_length: encrypted.len(),
                annotations: Vec::new(),
            })
        }
        Provider::KmsV2 => {
            let source = EncryptedObject::decode(body).ok()?.source;
            let annotations = source.annotations.into_iter().map(|(name, value)| (name, value.len()));
            Some(Envelope {
                key_id: source.key_id,
                source: match source.source_type {
                    SourceType::AesGcmKey => "data key".into(),
                    SourceType::Seed => "seed".into(),
                },
                source_length: source.encrypted.len(),
                annotations: annotations.collect(),
            })
        }
        Provider::Identity | Provider::AesCbc | Provider::AesGcm | Provider::Secretbox => None,
    }
}

/// What stands behind the provider's and the key's names.
fn body<'v>(value: &'v [u8], under: &StoredUnder) -> &'v [u8] {
    let prefix = match under.provider {
        Provider::Identity => 0,
        provider => provider.prefix().len() + under.key_name.len() + 1,
    };
    value.get(prefix..).unwrap_or_default()
}
