//! Envelope encryption by a KMS plugin: what is stored, and when which key writes.
//!
//! A plugin encrypts data keys ([`KmsV1`]) or the seed that data keys are derived from
//! ([`KmsV2`]). How it is reached is none of this module's business: the ports
//! [`KmsV1Service`] and [`KmsV2Service`] are calls that wait for their answer.

mod cache;
mod invalid;
mod object;
pub mod poll;
mod scan;
mod seed;
pub mod state;
mod v1;
mod v2;
pub mod wire;

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use coffer_types::SecretBytes;

pub use invalid::{InvalidObject, validate_key_id};
pub use object::{EncryptedObject, Source, SourceType};
pub use v1::{KmsV1, split_v1};
pub use v2::{KmsV2, KmsV2Parts, ProbeError};

/// Annotations of a plugin, opaque to us and handed back to it.
pub type Annotations = BTreeMap<String, Vec<u8>>;

/// A failed call, in the words of the gRPC client that upstream uses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallError {
    /// Such as `rpc error: code = Unavailable desc = …`.
    pub text: String,
}

impl CallError {
    /// With the name of its code and its description.
    pub fn new(code: &str, description: &str) -> Self {
        Self { text: format!("rpc error: code = {code} desc = {description}") }
    }
}

/// What a plugin of version 2 says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KmsStatus {
    /// `v2` or `v2beta1`.
    pub version: String,
    /// `ok`, or why not.
    pub healthz: String,
    /// The key that would encrypt now.
    pub key_id: String,
}

/// What a plugin of version 2 made of a plaintext.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KmsEncrypted {
    /// The ciphertext.
    pub ciphertext: Vec<u8>,
    /// The key that encrypted it.
    pub key_id: String,
    /// What the plugin wants to see again.
    pub annotations: Annotations,
}

/// A plugin of version 2. Every call waits for its answer, at most for the configured time.
pub trait KmsV2Service: Send + Sync + 'static {
    /// Its version, health and key.
    fn status(&self) -> Result<KmsStatus, CallError>;
    /// Encrypts.
    fn encrypt(&self, uid: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError>;
    /// Decrypts what an earlier call encrypted.
    fn decrypt(&self, uid: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError>;
}

/// A plugin of version 1. Every call waits for its answer, at most for the configured time.
pub trait KmsV1Service: Send + Sync + 'static {
    /// Encrypts.
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError>;
    /// Decrypts.
    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError>;
}

/// Which way a value went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It was read.
    FromStorage,
    /// It was written.
    ToStorage,
}

impl Direction {
    /// As metrics name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FromStorage => "from_storage",
            Self::ToStorage => "to_storage",
        }
    }
}

/// Who is told what happens, for metrics. No method ever gets a secret.
pub trait KmsObserver: Send + Sync + 'static {
    /// A data key had to be decrypted by the plugin.
    fn cache_missed(&self) {}
    /// A data key or seed was made, or not.
    fn key_generated(&self, _took: Duration, _success: bool) {}
    /// A value went through a key of the plugin.
    fn key_used(&self, _direction: Direction, _provider: &str, _key_id_hash: &str) {}
    /// The plugin named this key as the one that encrypts now.
    fn key_in_status(&self, _provider: &str, _key_id_hash: &str) {}
    /// The plugin named a key that cannot be: `empty` or `too_long`.
    fn key_id_refused(&self, _provider: &str, _why: &str) {}
    /// So many seeds are held decrypted.
    fn sources_held(&self, _provider: &str, _count: usize) {}
    /// The part of the cache of version 1 that is in use.
    fn keys_held(&self, _fraction: f64) {}
    /// The time since the cache of version 1 was last asked.
    fn key_asked(&self, _direction: Direction, _since_last: Duration) {}
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl KmsObserver for Unobserved {}

/// What stands for a key's name in texts and labels; "" for no name.
pub fn key_id_hash(key_id: &str) -> String {
    if key_id.is_empty() {
        return String::new();
    }
    let hash = digest(&SHA256, key_id.as_bytes());
    let digits: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
