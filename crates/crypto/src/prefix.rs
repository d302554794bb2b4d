//! Many layers behind prefixes: the first writes, all read.

use std::fmt;
use std::sync::Arc;

use crate::kms::Direction;
use crate::observe::Watched;
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

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

/// What metrics call the empty prefix of identity when it reads.
const IDENTITY: &[u8] = b"identity";
/// What they call a value that no prefix fits.
const UNKNOWN: &[u8] = b"unknown";

impl PrefixList {
    fn read(&self, stored: &[u8], context: &[u8], watched: Option<&Watched>) -> Result<Plain, Failure> {
        let started = watched.map(Watched::started);
        let tell = |prefix: &[u8], failure: Option<&Failure>| {
            if let (Some(watched), Some(started)) = (watched, started) {
                watched.ended(Direction::FromStorage, prefix, started, failure);
            }
        };
        let mut failures = Vec::new();
        for (index, entry) in self.entries().enumerate() {
            let Some(rest) = stored.strip_prefix(entry.prefix.as_slice()) else { continue };
            let opened = match watched {
                Some(watched) => entry.layer.open_watched(rest, context, watched),
                None => entry.layer.open(rest, context),
            };
            let shown = if entry.prefix.is_empty() { IDENTITY } else { &entry.prefix };
            match opened {
                Ok(plain) => {
                    tell(shown, None);
                    return Ok(Plain { stale: plain.stale || index != 0, ..plain });
                }
                // Identity in front of a provider (on the way back to plaintext) meets
                // encrypted values all the time; that is not worth telling.
                Err(_) if entry.prefix.is_empty() => {}
                Err(failure) => {
                    tell(shown, Some(&failure));
                    failures.push(failure);
                }
            }
        }
        Err(Failure::join(failures).unwrap_or_else(|| {
            let failure = Failure::new(self.no_match);
            tell(UNKNOWN, Some(&failure));
            failure
        }))
    }
}

impl Layer for PrefixList {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        self.read(stored, context, None)
    }

    fn open_watched(&self, stored: &[u8], context: &[u8], watched: &Watched) -> Result<Plain, Failure> {
        self.read(stored, context, Some(watched))
    }

    fn seal_watched(
        &self,
        plain: &[u8],
        context: &[u8],
        out: &mut Vec<u8>,
        watched: &Watched,
    ) -> Result<(), Failure> {
        let started = watched.started();
        out.extend_from_slice(&self.first.prefix);
        let sealed = self.first.layer.seal_watched(plain, context, out, watched);
        watched.ended(Direction::ToStorage, &self.first.prefix, started, sealed.as_ref().err());
        sealed
    }

    fn sealed_len(&self, plain: usize) -> usize {
        self.first.prefix.len() + self.first.layer.sealed_len(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.extend_from_slice(&self.first.prefix);
        self.first.layer.seal_into(plain, context, out)
    }

    fn seals_under(&self) -> String {
        format!("{}{}", String::from_utf8_lossy(&self.first.prefix), self.first.layer.seals_under())
    }
}
