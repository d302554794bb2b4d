//! Which record of each key counts: the one of the highest revision.

use std::collections::HashMap;

use coffer_store::kv::Revision;

use super::report::GroupId;
use super::verdict::Verdict;

/// The newest record of a key that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Newest {
    /// Its revision and its place in the transaction.
    pub(super) at: (Revision, i64),
    /// The group of the copy; `None` when the key was deleted.
    pub(super) group: Option<GroupId>,
    /// The page it is on.
    pub(super) page: u64,
    /// Bytes of the value, when it was judged as it was seen.
    pub(super) bytes: u32,
    /// What is wrong with it, when it was judged as it was seen; `None` for nothing.
    pub(super) verdict: Option<Box<Verdict>>,
}

/// The newest record of every key. This is all that grows with a snapshot.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<Box<[u8]>, Newest>);

impl Index {
    /// Notes a record and gives the one that no longer counts: it, or the one before.
    pub(super) fn note(&mut self, key: &[u8], record: Newest) -> Option<Newest> {
        match self.0.get_mut(key) {
            None => {
                self.0.insert(key.into(), record);
                None
            }
            Some(newest) if newest.at < record.at => Some(std::mem::replace(newest, record)),
            Some(_) => Some(record),
        }
    }

    /// The group of a record if it is the one that counts.
    pub(super) fn live(&self, key: &[u8], at: (Revision, i64)) -> Option<GroupId> {
        self.0.get(key).filter(|newest| newest.at == at)?.group
    }

    /// The pages on which copies are that count; some more than once.
    pub(super) fn pages(&self) -> impl Iterator<Item = u64> {
        self.0.values().filter(|newest| newest.group.is_some()).map(|newest| newest.page)
    }

    /// Every key with its newest record, in no order.
    pub(super) fn into_newest(self) -> impl Iterator<Item = (Box<[u8]>, Newest)> {
        self.0.into_iter()
    }

    /// All keys, of deleted ones too, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(|key| &**key)
    }

    /// The highest revision.
    pub(super) fn revision(&self) -> Revision {
        self.0.values().map(|newest| newest.at.0).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records come in any order; the newest counts whichever way.
    #[test]
    fn the_newest_record_counts() {
        let records = [((2, 0), Some(7)), ((2, 1), Some(8)), ((5, 0), None)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut index = Index::default();
            let mut old: Vec<_> = order
                .iter()
                .filter_map(|which| {
                    let (at, group) = records[*which];
                    let record = Newest { at, group, page: 0, bytes: 0, verdict: None };
                    index.note(b"key", record)?.group
                })
                .collect();
            old.sort_unstable();
            assert_eq!(old, [7, 8], "{order:?}");
            assert_eq!(index.live(b"key", (5, 0)), None);
            assert_eq!(index.revision(), 5);
        }
    }
}
