//! Plaintext at rest, with a guard against reading ciphertext as plaintext.

use coffer_types::SecretBytes;

use crate::{ENCRYPTED_PREFIX, Failure, Layer, Plain};

/// Stores values as they are. Refuses to read what any provider encrypted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity;

impl Layer for Identity {
    fn open(&self, stored: &[u8], _context: &[u8]) -> Result<Plain, Failure> {
        if stored.starts_with(ENCRYPTED_PREFIX) {
            return Err(Failure::new("identity transformer tried to read encrypted data"));
        }
        Ok(Plain { bytes: SecretBytes::new(stored.to_vec()), stale: false })
    }

    fn sealed_len(&self, plain: usize) -> usize {
        plain
    }

    fn seal_into(&self, plain: &[u8], _context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.extend_from_slice(plain);
        Ok(())
    }
}
