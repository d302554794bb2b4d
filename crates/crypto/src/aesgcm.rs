//! AES-GCM with a random nonce: `nonce(12) ciphertext tag(16)`, bound to the etcd key.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use coffer_types::SecretBytes;
use coffer_types::random::Random;

use crate::{BuildError, Failure, Layer, Plain};

const NONCE: usize = 12;
const TAG: usize = 16;

/// `aesgcm`: authenticated, and the context is part of what is authenticated.
pub struct AesGcm {
    /// The expanded key; built once, because that costs more than sealing a small value.
    key: LessSafeKey,
    random: Arc<dyn Random>,
}

impl AesGcm {
    /// Takes a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8], random: Arc<dyn Random>) -> Result<Self, BuildError> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            other => return Err(BuildError::AesKeySize(other)),
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| BuildError::AesKeySize(key.len()))?;
        Ok(Self { key: LessSafeKey::new(key), random })
    }

    /// How many bytes a plaintext of `plain` bytes is stored in, under any key.
    pub(crate) const fn sealed_len_of(plain: usize) -> usize {
        NONCE + plain + TAG
    }
}

impl Layer for AesGcm {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        let Some((nonce, sealed)) = stored.split_first_chunk::<NONCE>() else {
            return Err(Failure::new("the stored data was shorter than the required size"));
        };
        let refused = || Failure::new("cipher: message authentication failed");
        let (ciphertext, tag) = sealed.split_last_chunk::<TAG>().ok_or_else(refused)?;
        let mut plain = vec![0; ciphertext.len()];
        // On failure nothing of the plaintext is left in the buffer: the backend wipes it.
        self.key
            .open_separate_gather(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(context),
                ciphertext,
                tag,
                &mut plain,
            )
            .map_err(|_| refused())?;
        Ok(Plain { bytes: SecretBytes::new(plain), stale: false })
    }

    fn sealed_len(&self, plain: usize) -> usize {
        Self::sealed_len_of(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut nonce = [0; NONCE];
        self.random
            .fill(&mut nonce)
            .map_err(|error| Failure::new(format!("failed to write nonce for AES-GCM: {error}")))?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.resize(start + plain.len() + TAG, 0);
        let (ciphertext, tag) = out[start..].split_at_mut(plain.len());
        // Out of place: plaintext never stands in a buffer that is sent to the store.
        self.key
            .seal_out_of_place_scatter(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context),
                plain,
                ciphertext,
                &[],
                tag,
            )
            .map_err(|_| Failure::new("cipher: message too large for GCM"))
    }
}

impl fmt::Debug for AesGcm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AesGcm")
    }
}
