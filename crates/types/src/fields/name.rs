//! The name of a field in a path. Most are short, and take no memory of their own.

use std::cmp::Ordering;
use std::fmt;

/// Bytes of a name that is kept in place.
const SHORT: usize = 22;

/// A name, compared as text is.
#[derive(Clone)]
pub struct Name(Kept);

#[derive(Clone)]
enum Kept {
    Short { length: u8, bytes: [u8; SHORT] },
    Long(Box<str>),
}

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // It was made of text.
            Kept::Short { .. } => std::str::from_utf8(self.as_bytes()).unwrap_or_default(),
            Kept::Long(text) => text,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Short { length, bytes } => &bytes[..usize::from(*length)],
            Kept::Long(text) => text.as_bytes(),
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(match u8::try_from(text.len()) {
            Ok(length) if text.len() <= SHORT => {
                let mut bytes = [0; SHORT];
                bytes[..text.len()].copy_from_slice(text.as_bytes());
                Kept::Short { length, bytes }
            }
            _ => Kept::Long(text.into()),
        })
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_their_text() {
        let texts = ["", "a", "a\0", "b", "kubectl.kubernetes.io/last-applied-configuration", "\u{e9}"];
        let edge = ["x".repeat(SHORT - 1), "x".repeat(SHORT), "x".repeat(SHORT + 1), "\u{e9}".repeat(12)];
        let all: Vec<&str> = texts.into_iter().chain(edge.iter().map(String::as_str)).collect();
        for left in &all {
            assert_eq!(Name::from(*left).as_str(), *left);
            assert_eq!(Name::from(*left).to_string(), *left);
            for right in &all {
                assert_eq!(Name::from(*left).cmp(&Name::from(*right)), left.cmp(right), "{left:?} {right:?}");
                assert_eq!(Name::from(*left) == Name::from(*right), left == right);
            }
        }
        assert_eq!(size_of::<Name>(), 24);
    }
}
