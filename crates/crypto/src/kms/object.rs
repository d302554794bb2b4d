//! The stored object of version 2: its rules, its bytes, and what tells two of its keys apart.

use aws_lc_rs::digest::{Context, SHA256};
use coffer_types::names::{is_dns1123_label, is_dns1123_subdomain};
use coffer_types::validation::field::go_quote;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::invalid::{InvalidObject, LARGEST_SOURCE, validate_key_id};
use super::scan::Fields;
use super::{Annotations, wire};

/// The most bytes of all annotations, names and values.
const LARGEST_ANNOTATIONS: usize = 32 * 1024;

/// What the plugin's plaintext is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceType {
    /// The data key itself: written by Kubernetes before 1.29.
    AesGcmKey,
    /// The seed that each value's data key is derived from.
    Seed,
}

impl SourceType {
    /// Its number on the wire.
    pub const fn number(self) -> i32 {
        match self {
            Self::AesGcmKey => 0,
            Self::Seed => 1,
        }
    }

    fn of(number: i32) -> Option<Self> {
        [Self::AesGcmKey, Self::Seed].into_iter().find(|known| known.number() == number)
    }
}

/// What a value's key is, apart from the value: how the plugin encrypted the seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What the plaintext is.
    pub source_type: SourceType,
    /// The plugin's ciphertext.
    pub encrypted: Vec<u8>,
    /// Of the plugin's key.
    pub key_id: String,
    /// Of the plugin.
    pub annotations: Annotations,
}

/// An object that keeps the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedObject<'a> {
    /// The value under its data key.
    pub data: &'a [u8],
    /// Where the data key comes from.
    pub source: Source,
}

impl<'a> EncryptedObject<'a> {
    /// Reads and checks. Fields that are not known are skipped.
    pub fn decode(stored: &'a [u8]) -> Result<Self, InvalidObject> {
        let Fields { data, key_id, source, annotations, source_type: number } = Fields::scan(stored)?;
        let source_type = SourceType::of(number).ok_or(InvalidObject::SourceType(number))?;
        let source =
            Source { source_type, encrypted: source.to_vec(), key_id: key_id.to_owned(), annotations };
        validate(data, &source)?;
        Ok(Self { data, source })
    }
}

/// Upstream's rules, in their order.
pub(super) fn validate(data: &[u8], source: &Source) -> Result<(), InvalidObject> {
    if data.is_empty() {
        return Err(InvalidObject::NoData);
    }
    match source.encrypted.len() {
        0 => return Err(InvalidObject::NoSource),
        length if LARGEST_SOURCE < length => return Err(InvalidObject::Source(length)),
        _ => {}
    }
    validate_key_id(&source.key_id)?;
    validate_annotations(&source.annotations)
}

/// Every name must be a domain; the sum of all bytes is limited.
fn validate_annotations(annotations: &Annotations) -> Result<(), InvalidObject> {
    let mut problems = Vec::new();
    let mut total = 0_usize;
    for (name, value) in annotations {
        problems.extend(domain_problems(name));
        total = total.saturating_add(name.len()).saturating_add(value.len());
    }
    if LARGEST_ANNOTATIONS < total {
        problems.push(format!(
            "total size of annotations is {total}, which exceeds the max size of {LARGEST_ANNOTATIONS}"
        ));
    }
    match problems.as_slice() {
        [] => Ok(()),
        [single] => Err(InvalidObject::Annotations(single.clone())),
        several => Err(InvalidObject::Annotations(format!("[{}]", several.join(", ")))),
    }
}

/// What is wrong with the name of an annotation, which must be a fully qualified domain name.
fn domain_problems(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["annotations: Required value".to_owned()];
    }
    let refused = |value: &str, details: &[String]| {
        vec![format!("annotations: Invalid value: {}: {}", go_quote(value), details.join(","))]
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let details = is_dns1123_subdomain(name);
    if !details.is_empty() {
        return refused(name, &details);
    }
    if !name.contains('.') {
        return refused(
            name,
            &["should be a domain with at least two segments separated by dots".to_owned()],
        );
    }
    let labels = name.split('.').map(|label| (label, is_dns1123_label(label)));
    let mut long = labels.filter(|(_, details)| !details.is_empty());
    long.next().map(|(label, details)| refused(label, &details)).unwrap_or_default()
}

impl Source {
    /// What stands behind the value in the stored object; the same for every value of a source.
    pub(super) fn tail(&self) -> Vec<u8> {
        wire::EncryptedObject {
            encrypted_data: Vec::new(),
            key_id: self.key_id.clone(),
            encrypted_dek_source: self.encrypted.clone(),
            annotations: self.annotations.clone(),
            encrypted_dek_source_type: self.source_type.number(),
        }
        .encode_to_vec()
    }

    /// What tells this source from all others: a hash of its fields behind their lengths.
    pub(super) fn cache_key(&self) -> [u8; 32] {
        let mut hash = Context::new(&SHA256);
        hash.update(&self.source_type.number().to_be_bytes());
        prefixed(&mut hash, &self.encrypted);
        prefixed(&mut hash, self.key_id.as_bytes());
        if !self.annotations.is_empty() {
            hash.update(&(self.annotations.len() as u32).to_be_bytes());
            for (name, value) in &self.annotations {
                prefixed(&mut hash, name.as_bytes());
                prefixed(&mut hash, value);
            }
        }
        let mut key = [0; 32];
        key.copy_from_slice(hash.finish().as_ref());
        key
    }
}

/// Validation has limited every field below what two bytes can tell.
fn prefixed(hash: &mut Context, field: &[u8]) {
    hash.update(&(field.len() as u16).to_be_bytes());
    hash.update(field);
}

const DATA_FIELD: u32 = 1;

/// How many bytes stand before a value of `length` bytes in the stored object.
pub(super) fn head_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64)
}

/// What stands before a value of `length` bytes in the stored object.
pub(super) fn write_head(length: usize, out: &mut Vec<u8>) {
    encode_key(DATA_FIELD, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}
