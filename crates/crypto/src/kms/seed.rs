//! The data keys of version 2: one for each value, derived from a seed and stored randomness.
//!
//! `info(32) nonce(12) ciphertext tag(16)`, where the key of AES-256-GCM is
//! `HKDF-Expand(seed, info)`. The random `info` makes the 12 bytes of the nonce as good
//! as 44, so that one seed may write more values than could ever be stored.
//!
//! Upstream remembers derived keys by etcd key; deriving one again costs less here than
//! such a cache would.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac;
use coffer_types::SecretBytes;
use coffer_types::random::Random;

use super::object::SourceType;
use crate::{AesGcm, Failure, Layer, Plain};

/// How long a seed is that we make, and the least that is accepted.
pub(super) const SEED: usize = 32;
const INFO: usize = 32;
/// HKDF counts its blocks; the key is the first.
const FIRST_BLOCK: &[u8] = &[1];

/// What opens and seals the values of one source.
pub(super) enum DataKey {
    /// The plugin's plaintext is the key of all values.
    Fixed(AesGcm),
    /// The plugin's plaintext is the seed.
    Seed(Seed),
}

impl DataKey {
    pub(super) fn new(
        source_type: SourceType,
        plaintext: &SecretBytes,
        random: &Arc<dyn Random>,
    ) -> Result<Self, String> {
        match source_type {
            SourceType::AesGcmKey => {
                let key = AesGcm::new(plaintext.expose(), Arc::clone(random));
                key.map(Self::Fixed).map_err(|error| error.to_string())
            }
            SourceType::Seed => Seed::new(plaintext, random).map(Self::Seed),
        }
    }

    pub(super) fn source_type(&self) -> SourceType {
        match self {
            Self::Fixed(_) => SourceType::AesGcmKey,
            Self::Seed(_) => SourceType::Seed,
        }
    }
}

impl Layer for DataKey {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        match self {
            Self::Fixed(key) => key.open(stored, context),
            Self::Seed(seed) => seed.open(stored, context),
        }
    }

    fn sealed_len(&self, plain: usize) -> usize {
        match self {
            Self::Fixed(key) => key.sealed_len(plain),
            Self::Seed(seed) => seed.sealed_len(plain),
        }
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Fixed(key) => key.seal_into(plain, context, out),
            Self::Seed(seed) => seed.seal_into(plain, context, out),
        }
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DataKey({:?})", self.source_type())
    }
}

/// A seed, ready to derive.
pub(super) struct Seed {
    /// On the heap: more than a kilobyte, and the other form has 40 bytes.
    expand: Box<hmac::Key>,
    random: Arc<dyn Random>,
}

impl Seed {
    fn new(seed: &SecretBytes, random: &Arc<dyn Random>) -> Result<Self, String> {
        if seed.len() < SEED {
            return Err(format!("invalid seed length {} used for key generation", seed.len()));
        }
        Ok(Self {
            expand: Box::new(hmac::Key::new(hmac::HMAC_SHA256, seed.expose())),
            random: Arc::clone(random),
        })
    }

    fn derive(&self, info: &[u8; INFO]) -> Result<AesGcm, String> {
        let mut block = hmac::Context::with_key(&self.expand);
        block.update(info);
        block.update(FIRST_BLOCK);
        let key = block.sign();
        AesGcm::new(key.as_ref(), Arc::clone(&self.random))
            .map_err(|error| format!("failed to build transformer with KDF derived key: {error}"))
    }
}

impl Layer for Seed {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        let Some((info, sealed)) = stored.split_first_chunk::<INFO>() else {
            return Err(Failure::new("the stored data was shorter than the required size"));
        };
        let key = self
            .derive(info)
            .map_err(|error| Failure::new(format!("failed to derive read key from KDF: {error}")))?;
        key.open(sealed, context)
    }

    fn sealed_len(&self, plain: usize) -> usize {
        INFO + AesGcm::sealed_len_of(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let refused = |error: String| Failure::new(format!("failed to derive write key from KDF: {error}"));
        let mut info = [0; INFO];
        self.random
            .fill(&mut info)
            .map_err(|error| refused(format!("failed to generate info for KDF: {error}")))?;
        let key = self.derive(&info).map_err(refused)?;
        out.extend_from_slice(&info);
        key.seal_into(plain, context, out)
    }
}
