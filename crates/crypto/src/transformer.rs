//! What encrypts values on their way to the store.

use coffer_types::SecretBytes;

/// Decrypts and encrypts stored values. `context` is the full etcd key as bytes; the
/// authenticated providers bind the value to it.
pub trait Transformer: Send + Sync + 'static {
    /// The plaintext, and whether the value should be rewritten.
    #[allow(clippy::wrong_self_convention, reason = "upstream's name, next to `to_storage`")]
    fn from_storage(&self, stored: &[u8], context: &[u8]) -> Result<Plain, TransformError>;

    /// What to store.
    fn to_storage(&self, plain: &[u8], context: &[u8]) -> Result<Vec<u8>, TransformError>;

    /// What every value that is written begins with, such as `k8s:enc:aesgcm:v1:key1:`; empty for plaintext.
    fn writes_under(&self) -> String;
}

/// A decrypted value.
pub struct Plain {
    /// The plaintext.
    pub bytes: SecretBytes,
    /// Whether the value is not in the form that a write would give it now.
    pub stale: bool,
}

/// Why a value was not transformed, in upstream's words; never holds bytes of the value or of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);
