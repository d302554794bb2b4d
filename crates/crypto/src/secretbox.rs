//! XSalsa20-Poly1305 with a random nonce: `nonce(24) tag(16) ciphertext`.

use std::fmt;
use std::sync::Arc;

use coffer_types::SecretBytes;
use coffer_types::random::Random;
use dryoc::classic::crypto_secretbox::{crypto_secretbox_easy, crypto_secretbox_open_easy};
use zeroize::Zeroizing;

use crate::{BuildError, Failure, Layer, Plain};

const KEY: usize = 32;
const NONCE: usize = 24;
const TAG: usize = 16;

/// `secretbox`: authenticated, but not bound to the etcd key.
pub struct Secretbox {
    key: Zeroizing<[u8; KEY]>,
    random: Arc<dyn Random>,
}

impl Secretbox {
    /// Takes a key of 32 bytes.
    pub fn new(key: &[u8], random: Arc<dyn Random>) -> Result<Self, BuildError> {
        if key.len() != KEY {
            return Err(BuildError::SecretboxKeySize(key.len()));
        }
        // Filled in place, so that no copy is left on the way.
        let mut own = Zeroizing::new([0; KEY]);
        own.copy_from_slice(key);
        Ok(Self { key: own, random })
    }
}

impl Layer for Secretbox {
    fn open(&self, stored: &[u8], _context: &[u8]) -> Result<Plain, Failure> {
        let short = || Failure::new("the stored data was shorter than the required size");
        let (nonce, sealed) = stored.split_first_chunk::<NONCE>().ok_or_else(short)?;
        let length = sealed.len().checked_sub(TAG).ok_or_else(short)?;
        let mut plain = Zeroizing::new(vec![0; length]);
        // Upstream's text for a wrong key or a changed value, misleading as it is.
        crypto_secretbox_open_easy(&mut plain, sealed, nonce, &self.key)
            .map_err(|_| Failure::new("output array was not large enough for encryption"))?;
        Ok(Plain { bytes: SecretBytes::new(std::mem::take(&mut *plain)), stale: false })
    }

    fn sealed_len(&self, plain: usize) -> usize {
        NONCE + TAG + plain
    }

    fn seal_into(&self, plain: &[u8], _context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut nonce = [0; NONCE];
        self.random.fill(&mut nonce).map_err(|error| Failure::new(error.to_string()))?;
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.resize(start + TAG + plain.len(), 0);
        crypto_secretbox_easy(&mut out[start..], plain, &nonce, &self.key)
            .map_err(|_| Failure::new("unable to encrypt"))
    }
}

impl fmt::Debug for Secretbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secretbox")
    }
}
