//! Text and bytes of values: borrowed from the object or the program wherever that can be had.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Text that is borrowed or shared.
#[derive(Clone)]
pub enum Text<'v> {
    /// Part of an object, of the program or of a variable.
    Borrowed(&'v str),
    /// Made by the evaluation.
    Shared(Arc<str>),
}

impl<'v> Text<'v> {
    /// The part at the byte range `range`, without a copy where the whole is borrowed.
    ///
    /// # Panics
    /// When the range is not at characters' boundaries.
    pub fn slice(&self, range: Range<usize>) -> Text<'v> {
        match self {
            Self::Borrowed(text) => Self::Borrowed(&text[range]),
            Self::Shared(text) if range.start == 0 && range.end == text.len() => self.clone(),
            Self::Shared(text) => Self::Shared(Arc::from(&text[range])),
        }
    }

    /// How many characters (not bytes) the text has: what `size()` returns.
    pub fn characters(&self) -> usize {
        characters(self)
    }
}

/// How many characters `text` has.
pub(crate) fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

/// The length only: any text may be secret.
impl fmt::Debug for Text<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "string of {} bytes", self.len())
    }
}

/// Bytes that are borrowed or shared.
#[derive(Clone)]
pub enum Blob<'v> {
    /// Part of an object, of the program or of a variable.
    Borrowed(&'v [u8]),
    /// Made by the evaluation.
    Shared(Arc<[u8]>),
}

impl Deref for Blob<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// The length only: any bytes may be secret.
impl fmt::Debug for Blob<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.len())
    }
}
