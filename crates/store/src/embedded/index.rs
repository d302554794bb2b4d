//! Which revisions each key has: all of it in memory, rebuilt from the rows when the store opens.
//!
//! An entry takes 40 bytes, and a key its own length and about 100 bytes. Values are not here: they
//! are read from the database, whose cache is bounded.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::kv::{Compare, LeaseId, Revision};

/// The revision and the place of a change within it.
pub(crate) type RowKey = (Revision, u32);

/// What one revision made of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The revision, and the place within it.
    pub(crate) row: RowKey,
    /// Counts from the creation; 0 for a deletion.
    pub(crate) version: i64,
    /// Revision of the creation; 0 for a deletion.
    pub(crate) created: Revision,
    /// Attached lease, or 0.
    pub(crate) lease: LeaseId,
}

impl Entry {
    /// Whether the key was deleted.
    pub(crate) fn deleted(&self) -> bool {
        self.version == 0
    }
}

/// Every key with its history since the last compaction, oldest first.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex {
    keys: BTreeMap<Bytes, Vec<Entry>>,
}

impl KeyIndex {
    /// Adds a revision, which must be newer than all others of this key.
    pub(crate) fn push(&mut self, key: &Bytes, entry: Entry) {
        match self.keys.get_mut(key) {
            Some(history) => history.push(entry),
            None => {
                self.keys.insert(key.clone(), vec![entry]);
            }
        }
    }

    /// The key as of a revision, unless it was deleted.
    pub(crate) fn at(&self, key: &[u8], revision: Revision) -> Option<Entry> {
        live(self.keys.get(key)?, revision)
    }

    /// The keys of `[start, end)` as of a revision, in order. An empty `end` means `start` alone,
    /// and a zero byte means no end.
    pub(crate) fn range<'a>(
        &'a self,
        start: &'a [u8],
        end: &'a [u8],
        revision: Revision,
    ) -> impl Iterator<Item = (&'a Bytes, Entry)> {
        let upper = match end {
            [] => Bound::Included(start),
            [0] => Bound::Unbounded,
            end => Bound::Excluded(end),
        };
        // A range that ends before it begins is empty, and a panic in `BTreeMap::range`.
        let backwards = matches!(upper, Bound::Excluded(end) if end <= start);
        let lower = if backwards { Bound::Excluded(end) } else { Bound::Included(start) };
        let upper = if backwards { Bound::Included(end) } else { upper };
        self.keys
            .range::<[u8], _>((lower, upper))
            .filter_map(move |(key, history)| Some((key, live(history, revision)?)))
    }

    /// Whether a condition holds as of a revision.
    pub(crate) fn holds_at(&self, compare: &Compare, revision: Revision) -> bool {
        match compare {
            Compare::ModRevision(key, wanted) => {
                self.at(key, revision).map_or(0, |entry| entry.row.0) == *wanted
            }
            Compare::Version(key, wanted) => {
                self.at(key, revision).map_or(0, |entry| entry.version) == *wanted
            }
        }
    }

    /// Every key that exists as of a revision.
    pub(crate) fn live(&self, revision: Revision) -> impl Iterator<Item = (&Bytes, Entry)> {
        self.keys.iter().filter_map(move |(key, history)| Some((key, live(history, revision)?)))
    }

    /// Takes back what came after a revision.
    pub(crate) fn truncate(&mut self, key: &[u8], after: Revision) {
        if let Some(history) = self.keys.get_mut(key) {
            history.truncate(history.partition_point(|entry| entry.row.0 <= after));
            if history.is_empty() {
                self.keys.remove(key);
            }
        }
    }

    /// Forgets what no read at `revision` or later can see, and gives the rows that are no longer needed.
    ///
    /// Kept are the newest entry at or before `revision` of each key that existed then, and a
    /// deletion at exactly `revision`, because a watch may still start there.
    pub(crate) fn compact(&mut self, revision: Revision) -> Vec<RowKey> {
        let mut dead = Vec::new();
        self.keys.retain(|_, history| {
            let newer = history.partition_point(|entry| entry.row.0 <= revision);
            let Some(newest) = newer.checked_sub(1) else { return true };
            let kept =
                if history[newest].deleted() && history[newest].row.0 < revision { newer } else { newest };
            dead.extend(history.drain(..kept).map(|entry| entry.row));
            history.shrink_to_fit();
            !history.is_empty()
        });
        dead.sort_unstable();
        dead
    }
}

/// The last entry at or before a revision, unless it is a deletion.
fn live(history: &[Entry], revision: Revision) -> Option<Entry> {
    let newer = history.partition_point(|entry| entry.row.0 <= revision);
    let entry = history[newer.checked_sub(1)?];
    (!entry.deleted()).then_some(entry)
}
