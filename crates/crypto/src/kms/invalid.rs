//! Why a stored object of version 2, or the name of a key, is refused.

/// The most bytes of a key's name.
const LONGEST_KEY_ID: usize = 1024;
/// The most bytes of an encrypted seed.
pub(super) const LARGEST_SOURCE: usize = 1024;

/// Why an object is refused, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidObject {
    /// It is no message.
    #[error("proto: cannot parse invalid wire-format data")]
    Wire,
    /// A text in it is none.
    #[error("string field contains invalid UTF-8")]
    Text,
    /// Its source is of no known type.
    #[error("unknown encryptedDEKSourceType: {0}")]
    SourceType(i32),
    /// There is no value in it.
    #[error("encrypted data is empty")]
    NoData,
    /// There is no source in it.
    #[error("failed to validate encrypted DEK source: encrypted DEK source is empty")]
    NoSource,
    /// The source is too large.
    #[error(
        "failed to validate encrypted DEK source: encrypted DEK source is {0} bytes, which exceeds the max size of \
         {LARGEST_SOURCE}"
    )]
    Source(usize),
    /// The key's name is refused.
    #[error("failed to validate key id: {0}")]
    KeyId(#[from] InvalidKeyId),
    /// The annotations are refused.
    #[error("failed to validate annotations: {0}")]
    Annotations(String),
}

/// Why a key's name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeyId {
    /// There is none.
    #[error("keyID is empty")]
    Empty,
    /// It is too long.
    #[error("keyID is {0} bytes, which exceeds the max size of {LONGEST_KEY_ID}")]
    TooLong(usize),
}

impl InvalidKeyId {
    /// As metrics name it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong(_) => "too_long",
        }
    }
}

/// Whether a key may be called so.
pub fn validate_key_id(key_id: &str) -> Result<(), InvalidKeyId> {
    match key_id.len() {
        0 => Err(InvalidKeyId::Empty),
        length if LONGEST_KEY_ID < length => Err(InvalidKeyId::TooLong(length)),
        _ => Ok(()),
    }
}
