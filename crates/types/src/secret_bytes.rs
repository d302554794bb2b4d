//! The one type for secret bytes.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes that are never printed, are wiped when dropped, and compare in constant time.
///
/// `Debug` exists so that containers can be inspected, and prints nothing but a
/// fixed word: not even the length.
#[derive(Clone, Default)]
pub struct SecretBytes(Zeroizing<Vec<u8>>);

impl SecretBytes {
    /// Takes ownership, so that no second copy stays behind.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
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
        self.0.ct_eq(&other.0).into()
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

    #[test]
    fn equality_is_by_content() {
        assert_eq!(SecretBytes::new(vec![1, 2]), SecretBytes::new(vec![1, 2]));
        assert_ne!(SecretBytes::new(vec![1, 2]), SecretBytes::new(vec![1, 2, 3]));
    }
}
