//! Deterministic key derivation: equal inputs give equal keys, on every cluster of a group.
//!
//! Keys are never synchronised, only what they are made from: a root secret that people
//! carry, and a seed bundle that may be copied in the open.
//!
//! `key = HKDF(hash, root, salt = hash(context("etcd-seed-salt/v1", group, dimension,
//! revision, seed)), info = context("etcd-encryption-key/v1", group, dimension, revision))`
//!
//! How revision and seed become bytes, and the order of the lengths between them, is
//! published nowhere. It is a named [`Profile`], so that one known triple of root, bundle
//! and key settles it.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{self, SHA256, SHA512};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA512, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_types::SecretBytes;
use zeroize::Zeroizing;

use crate::check_value::KeyIdentity;
use crate::context::{self, LONGEST_FIELD, LengthOrder};

/// How long root secrets, seeds and keys are.
pub const SECRET_LEN: usize = 32;

const SALT_LABEL: &[u8] = b"etcd-seed-salt/v1";
const KEY_LABEL: &[u8] = b"etcd-encryption-key/v1";

/// Why no key was derived. Never holds a byte of the root secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError {
    /// The root secret has another length. The text says which mistake the length hints at.
    #[error("root secret must be {SECRET_LEN} bytes, got {0}{hint}", hint = root_hint(*.0))]
    Root(usize),
    /// The seed is no hexadecimal text.
    #[error("seed is not hexadecimal text")]
    SeedText,
    /// The seed has another length.
    #[error("seed must decode to {SECRET_LEN} bytes, got {0}")]
    SeedLength(usize),
    /// No such algorithm.
    #[error("unsupported derivation algorithm {0:?}")]
    Algorithm(String),
    /// No such profile.
    #[error("unknown encoding profile {0:?}, such as {DEFAULT_PROFILE:?}")]
    Profile(String),
    /// A name is longer than its length can be told.
    #[error("{field} is {length} bytes, which exceeds the max size of {LONGEST_FIELD}")]
    TooLong {
        /// What is too long.
        field: &'static str,
        /// How long it is.
        length: usize,
    },
    /// The backend refused, which it does for no input that passes the checks before.
    #[error("key derivation failed")]
    Backend,
}

/// The usual mistakes have a length of their own.
fn root_hint(length: usize) -> &'static str {
    match length {
        33 => " (a newline at its end?)",
        44 | 45 => " (its base64 text was stored, not its bytes)",
        64 => " (its hexadecimal text was stored, not its bytes)",
        65 => " (its hexadecimal text with a newline was stored, not its bytes)",
        _ => "",
    }
}

/// The hash of a derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// `hkdf-sha512-v1`.
    #[default]
    Sha512,
    /// `hkdf-sha256-v1`.
    Sha256,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::Sha512, Self::Sha256];

    /// As a seed bundle names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha512 => "hkdf-sha512-v1",
            Self::Sha256 => "hkdf-sha256-v1",
        }
    }
}

impl FromStr for Algorithm {
    type Err = DeriveError;

    /// The exact name; an empty one is none.
    fn from_str(name: &str) -> Result<Self, DeriveError> {
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| DeriveError::Algorithm(name.to_owned()))
    }
}

/// How a revision becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RevisionForm {
    /// Eight bytes, most significant first.
    U64Be,
    /// Eight bytes, least significant first.
    U64Le,
    /// Decimal digits.
    Decimal,
    /// Seven bits a byte, least significant first, as protobuf writes numbers.
    Varint,
}

/// How a seed becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeedForm {
    /// The bytes themselves, so that the case of the digits does not matter.
    Raw,
    /// The hexadecimal digits as they stand in the bundle.
    HexText,
}

/// One way to write the inputs of a derivation as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Profile {
    /// Of the two bytes in front of each field.
    pub length: LengthOrder,
    /// Of the revision.
    pub revision: RevisionForm,
    /// Of the seed.
    pub seed: SeedForm,
}

/// The name of the profile that is used unless another is asked for.
pub const DEFAULT_PROFILE: &str = "uint16be-u64be-raw";

impl Default for Profile {
    fn default() -> Self {
        Self { length: LengthOrder::BigEndian, revision: RevisionForm::U64Be, seed: SeedForm::Raw }
    }
}

impl Profile {
    /// All profiles that are plausible.
    pub fn all() -> impl Iterator<Item = Self> {
        [LengthOrder::BigEndian, LengthOrder::LittleEndian].into_iter().flat_map(|length| {
            [RevisionForm::U64Be, RevisionForm::U64Le, RevisionForm::Decimal, RevisionForm::Varint]
                .into_iter()
                .flat_map(move |revision| {
                    [SeedForm::Raw, SeedForm::HexText].map(|seed| Self { length, revision, seed })
                })
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = match self.length {
            LengthOrder::BigEndian => "uint16be",
            LengthOrder::LittleEndian => "uint16le",
        };
        let revision = match self.revision {
            RevisionForm::U64Be => "u64be",
            RevisionForm::U64Le => "u64le",
            RevisionForm::Decimal => "decimal",
            RevisionForm::Varint => "varint",
        };
        let seed = match self.seed {
            SeedForm::Raw => "raw",
            SeedForm::HexText => "hexascii",
        };
        write!(formatter, "{length}-{revision}-{seed}")
    }
}

impl FromStr for Profile {
    type Err = DeriveError;

    fn from_str(name: &str) -> Result<Self, DeriveError> {
        let known = Self::all().find(|profile| profile.to_string() == name);
        known.ok_or_else(|| DeriveError::Profile(name.to_owned()))
    }
}

/// What a key is derived from, besides the root secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundle<'a> {
    /// Group, dimension and revision, as they stand: neither trimmed nor normalised.
    pub identity: KeyIdentity<'a>,
    /// 64 hexadecimal digits.
    pub seed: &'a str,
    /// The hash.
    pub algorithm: Algorithm,
}

/// The key of `bundle` under `root`.
pub fn derive(root: &[u8], bundle: Bundle<'_>, profile: Profile) -> Result<SecretBytes, DeriveError> {
    if root.len() != SECRET_LEN {
        return Err(DeriveError::Root(root.len()));
    }
    let (hash, algorithm) = match bundle.algorithm {
        Algorithm::Sha512 => (&SHA512, HKDF_SHA512),
        Algorithm::Sha256 => (&SHA256, HKDF_SHA256),
    };
    let salt = digest::digest(hash, &salt_input(bundle, profile)?);
    let info = info(bundle.identity, profile)?;
    let mut key = vec![0; SECRET_LEN];
    Salt::new(algorithm, salt.as_ref())
        .extract(root)
        .expand(&[&info], KeyLength)
        .and_then(|okm| okm.fill(&mut key))
        .map_err(|_| DeriveError::Backend)?;
    Ok(SecretBytes::new(key))
}

/// A key as it is stored and configured: standard base64 with padding.
pub fn to_base64(key: &SecretBytes) -> SecretBytes {
    SecretBytes::from(STANDARD.encode(key.expose()))
}

/// What the salt is the hash of.
pub fn salt_input(bundle: Bundle<'_>, profile: Profile) -> Result<Vec<u8>, DeriveError> {
    let decoded = decode_seed(bundle.seed)?;
    let seed = match profile.seed {
        SeedForm::Raw => &decoded[..],
        SeedForm::HexText => bundle.seed.as_bytes(),
    };
    encode(SALT_LABEL, bundle.identity, Some(seed), profile)
}

/// What HKDF expands for.
pub fn info(identity: KeyIdentity<'_>, profile: Profile) -> Result<Vec<u8>, DeriveError> {
    encode(KEY_LABEL, identity, None, profile)
}

fn encode(
    label: &[u8],
    identity: KeyIdentity<'_>,
    seed: Option<&[u8]>,
    profile: Profile,
) -> Result<Vec<u8>, DeriveError> {
    let revision = revision_bytes(identity.revision, profile.revision);
    let mut fields = vec![label, identity.group.as_bytes(), identity.dimension.as_bytes(), &revision];
    fields.extend(seed);
    context::encode(&fields, profile.length).map_err(|place| {
        let field = if place == 1 { "replication group ID" } else { "dimension" };
        DeriveError::TooLong { field, length: fields[place].len() }
    })
}

fn revision_bytes(revision: u64, form: RevisionForm) -> Vec<u8> {
    match form {
        RevisionForm::U64Be => revision.to_be_bytes().to_vec(),
        RevisionForm::U64Le => revision.to_le_bytes().to_vec(),
        RevisionForm::Decimal => revision.to_string().into_bytes(),
        RevisionForm::Varint => {
            let mut rest = revision;
            let mut out = Vec::new();
            while rest > 0x7f {
                out.push((rest & 0x7f) as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
            out
        }
    }
}

/// Digits of both cases; nothing else is skipped or trimmed.
fn decode_seed(text: &str) -> Result<Zeroizing<Vec<u8>>, DeriveError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    let bytes: Option<Vec<u8>> = bytes.collect();
    let bytes = Zeroizing::new(bytes.filter(|_| rest.is_empty()).ok_or(DeriveError::SeedText)?);
    if bytes.len() == SECRET_LEN { Ok(bytes) } else { Err(DeriveError::SeedLength(bytes.len())) }
}

/// The length of a key, as the backend wants it told.
struct KeyLength;

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        SECRET_LEN
    }
}
