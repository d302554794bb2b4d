//! Many layers behind prefixes: the first writes, all read.

use std::fmt;
use std::sync::Arc;

use crate::{Failure, Layer, Plain};

/// One layer and the bytes that stand in front of what it stores.
#[derive(Clone)]
pub struct Entry {
    /// Such as `k8s:enc:aesgcm:v1:` or `key1:`; empty for identity.
    pub prefix: Vec<u8>,
    /// What reads and writes the rest.
    pub layer: Arc<dyn Layer>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Entry({:?})", String::from_utf8_lossy(&self.prefix))
    }
}

/// Writes with the first entry and reads with whichever entry can.
///
/// Prefixes may repeat and may be prefixes of one another: every entry whose prefix
/// fits is tried in order. A value that was read by any but the first entry is
/// stale, and so is one that the entry itself calls stale.
#[derive(Debug, Clone)]
pub struct PrefixList {
    first: Entry,
    others: Vec<Entry>,
    no_match: &'static str,
}

impl PrefixList {
    /// A list of at least one entry; `no_match` is the error for a value that no prefix fits.
    pub fn new(first: Entry, others: Vec<Entry>, no_match: &'static str) -> Self {
        Self { first, others, no_match }
    }

    /// The entry that writes.
    pub(crate) fn first(&self) -> &Entry {
        &self.first
    }

    /// All entries, the one that writes first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Reads with the first entry that fits and that `open` can read with; `open` gets the entry, which
    /// one it is, and the value without its prefix.
    pub(crate) fn try_entries(
        &self,
        stored: &[u8],
        mut open: impl FnMut(usize, &Entry, &[u8]) -> Result<Plain, Failure>,
    ) -> Result<Plain, Failure> {
        let mut failures = Vec::new();
        for (index, entry) in self.entries().enumerate() {
            let Some(rest) = stored.strip_prefix(entry.prefix.as_slice()) else { continue };
            match open(index, entry, rest) {
                Ok(plain) => return Ok(Plain { stale: plain.stale || index != 0, ..plain }),
                // Identity fits every value; that it refuses an encrypted one says nothing.
                Err(_) if entry.prefix.is_empty() => {}
                Err(failure) => failures.push(failure),
            }
        }
        Err(Failure::join(failures).unwrap_or_else(|| Failure::new(self.no_match)))
    }
}

/// What metrics call the empty prefix of identity when it reads.
pub(crate) const IDENTITY: &str = "identity";
/// What they call a value that no prefix fits.
pub(crate) const UNKNOWN: &str = "unknown";

impl Layer for PrefixList {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        self.try_entries(stored, |_, entry, rest| entry.layer.open(rest, context))
    }

    fn sealed_len(&self, plain: usize) -> usize {
        self.first.prefix.len() + self.first.layer.sealed_len(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.extend_from_slice(&self.first.prefix);
        self.first.layer.seal_into(plain, context, out)
    }

    fn list(&self) -> Option<&PrefixList> {
        Some(self)
    }

    fn seals_under(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.first.prefix), self.first.layer.seals_under())
    }
}
