//! A KMS plugin: serves version 2 of the plugin protocol on a Unix socket.
//!
//! What encrypts is a [`Backend`]: a local key file here, others in the binary.

mod local;
mod serve;
mod socket;

use async_trait::async_trait;
use coffer_crypto::kms::KmsEncrypted;
use coffer_types::SecretBytes;

pub use local::{KeyFileError, LocalKeys};
pub use serve::serve;
pub use socket::{Socket, SocketError};

/// Why a backend did not do it. Never holds a plaintext, a key or a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// It refused the credentials, after they were read again. The text says whose they are.
    #[error("{0}")]
    Denied(String),
    /// It could not be reached.
    #[error("{0}")]
    Unavailable(String),
    /// It no longer has the key that this was encrypted under.
    #[error("{0}")]
    NoSuchKey(String),
    /// What is to be decrypted is none of its ciphertexts.
    #[error("{0}")]
    Invalid(String),
}

/// What encrypts and decrypts.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The key that encrypts now, after making sure that it would: what `Status` answers.
    /// Names of keys that differ in any byte differ too.
    async fn current_key_id(&self) -> Result<String, BackendError>;

    /// Encrypts under the current key.
    async fn encrypt(&self, plaintext: &SecretBytes) -> Result<KmsEncrypted, BackendError>;

    /// Decrypts what any of its keys encrypted.
    async fn decrypt(&self, encrypted: &KmsEncrypted) -> Result<SecretBytes, BackendError>;
}
