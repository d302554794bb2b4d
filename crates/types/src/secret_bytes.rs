//! The one type for secret bytes.

use std::fmt;

use subtle::ConstantTimeEq;

/// Bytes that are never printed, are wiped when dropped, and compare in constant time.
///
/// `Debug` exists so that containers can be inspected, and prints nothing but a
/// fixed word: not even the length.
#[derive(Clone, Default)]
pub struct SecretBytes(Vec<u8>);

impl Drop for SecretBytes {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites all that the vector has room for, as one block: `zeroize` does it byte by byte.
fn wipe(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(bytes.capacity(), 0);
    // Without it the compiler may see that nobody reads the zeros.
    zeroize::optimization_barrier(bytes.as_slice());
}

impl SecretBytes {
    /// Takes ownership, so that no second copy stays behind.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes themselves. Whoever calls this must not log or format them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl From<String> for SecretBytes {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

// For `bytes::Bytes::from_owner`: shared bytes that are wiped when the last reader is gone.
impl AsRef<[u8]> for SecretBytes {
    fn as_ref(&self) -> &[u8] {
        self.expose()
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for SecretBytes {}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[REDACTED]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_the_content() {
        let secret = SecretBytes::from("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "[REDACTED]");
    }

    /// Bytes beyond the length were part of something, too.
    #[test]
    fn wiping_reaches_all_that_is_allocated() {
        let mut bytes = b"hunter2 and more".to_vec();
        bytes.truncate(7);
        let place = bytes.as_ptr();
        wipe(&mut bytes);
        assert_eq!(bytes.as_ptr(), place, "in place");
        assert_eq!(bytes, vec![0; bytes.capacity()]);
        assert!(16 <= bytes.len());
    }

    #[test]
    fn equality_is_by_content() {
        assert_eq!(SecretBytes::new(vec![1, 2]), SecretBytes::new(vec![1, 2]));
        assert_ne!(SecretBytes::new(vec![1, 2]), SecretBytes::new(vec![1, 2, 3]));
    }
}
