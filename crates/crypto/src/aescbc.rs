//! AES-CBC with a random IV and PKCS#7 padding: `iv(16) ciphertext`.
//!
//! Not authenticated: a value moved to another etcd key decrypts, and a changed
//! one may. It is here because existing clusters hold such values.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::{BuildError, Failure, Layer, Plain};

const BLOCK: usize = 16;

/// `aescbc`: confidentiality only.
pub struct AesCbc {
    /// Both expanded keys; built once.
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
    random: Arc<dyn Random>,
}

impl AesCbc {
    /// Takes a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8], random: Arc<dyn Random>) -> Result<Self, BuildError> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            other => return Err(BuildError::AesKeySize(other)),
        };
        let unbound = || UnboundCipherKey::new(algorithm, key);
        let refused = |_| BuildError::AesKeySize(key.len());
        Ok(Self {
            encrypting: unbound().and_then(EncryptingKey::cbc).map_err(refused)?,
            decrypting: unbound().and_then(DecryptingKey::cbc).map_err(refused)?,
            random,
        })
    }
}

impl Layer for AesCbc {
    fn open(&self, stored: &[u8], _context: &[u8]) -> Result<Plain, Failure> {
        let Some((iv, ciphertext)) = stored.split_first_chunk::<BLOCK>() else {
            return Err(Failure::new("the stored data was shorter than the required size"));
        };
        if !ciphertext.len().is_multiple_of(BLOCK) {
            return Err(Failure::new("the stored data is not a multiple of the block size"));
        }
        if ciphertext.is_empty() {
            // Upstream reads the last byte of nothing here and panics.
            return Err(Failure::new(NO_PADDING));
        }
        let mut plain = Zeroizing::new(ciphertext.to_vec());
        self.decrypting
            .decrypt(&mut plain, DecryptionContext::Iv128(FixedLength::from(iv)))
            .map_err(|_| Failure::new("unable to decrypt"))?;
        let length = unpadded_len(&plain)?;
        plain.truncate(length);
        Ok(Plain { bytes: SecretBytes::new(std::mem::take(&mut *plain)), stale: false })
    }

    fn sealed_len(&self, plain: usize) -> usize {
        // The padding is never empty.
        BLOCK + (plain / BLOCK + 1) * BLOCK
    }

    fn seal_into(&self, plain: &[u8], _context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut iv = [0; BLOCK];
        self.random.fill(&mut iv).map_err(|error| Failure::new(error.to_string()))?;
        out.extend_from_slice(&iv);
        let start = out.len();
        let padding = BLOCK - plain.len() % BLOCK;
        out.extend_from_slice(plain);
        out.resize(start + plain.len() + padding, padding as u8);
        let sealed = self
            .encrypting
            .less_safe_encrypt(&mut out[start..], EncryptionContext::Iv128(FixedLength::from(iv)));
        if sealed.is_err() {
            out[start..].zeroize();
            return Err(Failure::new("unable to encrypt"));
        }
        Ok(())
    }
}

const NO_PADDING: &str = "invalid PKCS7 data (empty or not padded)";

/// How long the text before the padding is. As upstream, padding may be longer than a block.
///
/// The time taken depends on the length of the data only, not on where the padding
/// is wrong.
fn unpadded_len(padded: &[u8]) -> Result<usize, Failure> {
    let Some(&last) = padded.last() else { return Err(Failure::new(NO_PADDING)) };
    let padding = usize::from(last);
    if padding == 0 || padding > padded.len() {
        return Err(Failure::new(NO_PADDING));
    }
    let mut difference = 0;
    for (distance, byte) in padded.iter().rev().take(usize::from(u8::MAX)).enumerate() {
        // The sign of the difference as a mask: all ones where the byte belongs to the padding.
        let inside = ((distance.wrapping_sub(padding) >> (usize::BITS - 1)) as u8).wrapping_neg();
        difference |= (byte ^ last) & inside;
    }
    if !bool::from(difference.ct_eq(&0)) {
        return Err(Failure::new("invalid padding on input"));
    }
    Ok(padded.len() - padding)
}

impl fmt::Debug for AesCbc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AesCbc")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(padded: &[u8], expected: Result<usize, &'static str>) {
        assert_eq!(unpadded_len(padded), expected.map_err(Failure::new));
    }

    #[test]
    fn padding() {
        let wrong = Err("invalid padding on input");
        check(&[], Err(NO_PADDING));
        check(&[0; 16], Err(NO_PADDING));
        check(&[17; 16], Err(NO_PADDING));
        check(&[255; 254], Err(NO_PADDING));
        check(&[16; 16], Ok(0));
        check(&[1; 16], Ok(15));
        check(&[7, 7, 7, 3, 3, 3], Ok(3));
        check(&[7, 7, 7, 4, 3, 3], wrong);
        check(&[7, 7, 7, 3, 2, 3], wrong);
        // Longer than a block, and the longest there can be.
        check(&[20; 32], Ok(12));
        check(&[255; 255], Ok(0));
        check(&[255; 256], Ok(1));
        let mut long = [255; 256];
        long[1] = 254;
        check(&long, wrong);
    }
}
