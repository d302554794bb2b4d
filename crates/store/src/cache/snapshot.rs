//! A sorted set of objects that many readers hold while it changes.
//!
//! Objects lie in leaves of at most [`LEAF`] entries, and the list of leaves is
//! shared. Taking a snapshot copies one pointer; a change copies what a snapshot
//! still holds (the list of leaves and one leaf) and nothing otherwise.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::key::compare_tail;
#[cfg(test)]
use crate::kv::Revision;
use crate::registry::Stored;
use crate::registry::objects::Unreadable;

/// Entries of a leaf at most: with 10,000 objects the list of leaves has about 150 entries.
const LEAF: usize = 128;

/// One object of the cache.
#[derive(Clone)]
pub(crate) enum Slot {
    /// A readable one.
    Good(Arc<Stored>),
    /// One that could not be decrypted or decoded.
    Corrupt(Arc<Unreadable>),
}

impl Slot {
    /// Compares `<namespace>/<name>` with a tail.
    pub(crate) fn compare(&self, tail: &[u8]) -> Ordering {
        match self {
            Self::Good(stored) => compare_tail(&stored.namespace, &stored.name, tail),
            Self::Corrupt(unreadable) => unreadable.tail().cmp(tail),
        }
    }

    /// Whether the tail begins with `prefix` ("" or `<namespace>/`).
    fn is_below(&self, prefix: &[u8]) -> bool {
        match self {
            Self::Good(stored) => {
                prefix.strip_suffix(b"/").is_none_or(|ns| stored.namespace.as_bytes() == ns)
            }
            Self::Corrupt(unreadable) => unreadable.tail().starts_with(prefix),
        }
    }

    /// `<namespace>/<name>` or `<name>`.
    pub(crate) fn tail(&self) -> Vec<u8> {
        match self {
            Self::Good(stored) => crate::key::tail_of(&stored.namespace, &stored.name),
            Self::Corrupt(unreadable) => unreadable.tail().to_vec(),
        }
    }

    /// Bytes of the object; of one that cannot be read, as they are stored.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Good(stored) => stored.bytes.len(),
            Self::Corrupt(unreadable) => unreadable.kv.value.len(),
        }
    }

    /// Revision of the last change.
    #[cfg(test)]
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Good(stored) => stored.revision,
            Self::Corrupt(unreadable) => unreadable.kv.mod_revision,
        }
    }
}

/// The objects at one moment.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    leaves: Arc<Vec<Leaf>>,
}

/// Neighbours; there is at least one.
#[derive(Clone)]
struct Leaf {
    /// The tail of the first, beside the others': a search among leaves looks at no object.
    first: Arc<[u8]>,
    slots: Arc<Vec<Slot>>,
}

impl Leaf {
    /// # Panics
    /// When there is no slot.
    fn new(slots: Vec<Slot>) -> Self {
        Self { first: slots[0].tail().into(), slots: Arc::new(slots) }
    }
}

impl Snapshot {
    /// From objects in order.
    pub(crate) fn from_sorted(slots: Vec<Slot>) -> Self {
        // Three quarters full, so that the first insertions do not split every leaf.
        let leaves = slots.chunks(LEAF / 4 * 3).map(|leaf| Leaf::new(leaf.to_vec())).collect();
        Self { leaves: Arc::new(leaves) }
    }

    /// The object with this tail.
    pub(crate) fn get(&self, tail: &[u8]) -> Option<&Slot> {
        let slots = &*self.leaves.get(self.leaf_of(tail))?.slots;
        let index = slots.binary_search_by(|slot| slot.compare(tail)).ok()?;
        Some(&slots[index])
    }

    /// Puts an object in, and gives the one that was there.
    pub(crate) fn insert(&mut self, tail: &[u8], slot: Slot) -> Option<Slot> {
        let at = self.leaf_of(tail);
        let leaves = Arc::make_mut(&mut self.leaves);
        let Some(leaf) = leaves.get_mut(at) else {
            leaves.push(Leaf::new(vec![slot]));
            return None;
        };
        let slots = Arc::make_mut(&mut leaf.slots);
        match slots.binary_search_by(|present| present.compare(tail)) {
            Ok(index) => Some(std::mem::replace(&mut slots[index], slot)),
            Err(index) => {
                slots.insert(index, slot);
                if index == 0 {
                    leaf.first = tail.into();
                }
                if LEAF < slots.len() {
                    let right = slots.split_off(LEAF / 2);
                    leaves.insert(at + 1, Leaf::new(right));
                }
                None
            }
        }
    }

    /// Takes an object out.
    pub(crate) fn remove(&mut self, tail: &[u8]) -> Option<Slot> {
        let at = self.leaf_of(tail);
        let index = self.leaves.get(at)?.slots.binary_search_by(|slot| slot.compare(tail)).ok()?;
        let leaves = Arc::make_mut(&mut self.leaves);
        let leaf = &mut leaves[at];
        let slots = Arc::make_mut(&mut leaf.slots);
        let removed = slots.remove(index);
        match slots.first() {
            None => {
                leaves.remove(at);
            }
            Some(first) if index == 0 => leaf.first = first.tail().into(),
            Some(_) => {}
        }
        Some(removed)
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.leaves.iter().map(|leaf| leaf.slots.len()).sum()
    }

    /// How many objects lie below `prefix` from `start` on.
    pub(crate) fn count(&self, start: &[u8], prefix: &[u8]) -> usize {
        let from = self.seek(start);
        let end = crate::kv::prefix_end(prefix);
        let to =
            if prefix.is_empty() { Cursor { leaf: self.leaves.len(), index: 0 } } else { self.seek(&end) };
        if to <= from {
            return 0;
        }
        let within: usize = self.leaves[from.leaf..to.leaf].iter().map(|leaf| leaf.slots.len()).sum();
        within + to.index - from.index
    }

    /// The first place whose tail is not below `start`.
    pub(crate) fn seek(&self, start: &[u8]) -> Cursor {
        let leaf = self.leaf_of(start);
        let index = self
            .leaves
            .get(leaf)
            .map_or(0, |leaf| leaf.slots.partition_point(|slot| slot.compare(start) == Ordering::Less));
        let cursor = Cursor { leaf, index };
        self.normalize(cursor)
    }

    /// The object at `cursor`, if its tail begins with `prefix`; moves on.
    pub(crate) fn next(&self, cursor: &mut Cursor, prefix: &[u8]) -> Option<&Slot> {
        let slot = self.leaves.get(cursor.leaf)?.slots.get(cursor.index)?;
        if !slot.is_below(prefix) {
            return None;
        }
        *cursor = self.normalize(Cursor { leaf: cursor.leaf, index: cursor.index + 1 });
        Some(slot)
    }

    /// The leaf that holds `tail` or would.
    fn leaf_of(&self, tail: &[u8]) -> usize {
        self.leaves.partition_point(|leaf| *leaf.first <= *tail).saturating_sub(1)
    }

    /// Past the end of a leaf is the beginning of the next.
    fn normalize(&self, cursor: Cursor) -> Cursor {
        match self.leaves.get(cursor.leaf) {
            Some(leaf) if leaf.slots.len() <= cursor.index => Cursor { leaf: cursor.leaf + 1, index: 0 },
            _ => cursor,
        }
    }
}

/// A place in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cursor {
    leaf: usize,
    index: usize,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::registry::{Attributes, Findings};

    fn slot(tail: &str, revision: Revision) -> Slot {
        let (namespace, name) = tail.split_once('/').unwrap_or(("", tail));
        Slot::Good(Arc::new(Stored {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            revision,
            bytes: Bytes::new(),
            attributes: Attributes::default(),
            findings: Findings::default(),
        }))
    }

    fn contents(snapshot: &Snapshot, start: &str, prefix: &str) -> Vec<(String, Revision)> {
        let mut cursor = snapshot.seek(start.as_bytes());
        let mut all = Vec::new();
        while let Some(slot) = snapshot.next(&mut cursor, prefix.as_bytes()) {
            all.push((String::from_utf8(slot.tail()).expect("text"), slot.revision()));
        }
        all
    }

    proptest! {
        #[test]
        fn behaves_as_a_sorted_map_and_old_snapshots_do_not_change(
            seed in 0_usize..400,
            steps in prop::collection::vec((0_u16..700, any::<bool>()), 0..600),
            start in 0_u16..700,
        ) {
            let name = |number: u16| format!("{}/{number:03}", ["a", "a-b", "b"][usize::from(number) % 3]);
            let mut model: BTreeMap<String, Revision> =
                (0..seed).map(|number| (name(u16::try_from(number).expect("small")), 0)).collect();
            let mut snapshot =
                Snapshot::from_sorted(model.iter().map(|(tail, revision)| slot(tail, *revision)).collect());
            let mut old: Vec<(Snapshot, BTreeMap<String, Revision>)> = Vec::new();
            for (index, (number, insert)) in steps.into_iter().enumerate() {
                let tail = name(number);
                let revision = Revision::try_from(index).expect("small");
                if insert {
                    let before = snapshot.insert(tail.as_bytes(), slot(&tail, revision));
                    prop_assert_eq!(before.map(|slot| slot.revision()), model.insert(tail, revision));
                } else {
                    let before = snapshot.remove(tail.as_bytes());
                    prop_assert_eq!(before.map(|slot| slot.revision()), model.remove(&tail));
                }
                if index % 97 == 0 {
                    old.push((snapshot.clone(), model.clone()));
                }
            }
            old.push((snapshot, model));
            for (snapshot, model) in old {
                prop_assert_eq!(snapshot.len(), model.len());
                for prefix in ["", "a/", "a-b/", "b/"] {
                    let start = name(start);
                    let expected: Vec<_> = model
                        .range(start.clone()..)
                        .filter(|(tail, _)| tail.starts_with(prefix) && start.as_str() <= tail.as_str())
                        .map(|(tail, revision)| (tail.clone(), *revision))
                        .collect();
                    // A listing starts inside of what it lists.
                    if start.starts_with(prefix) {
                        prop_assert_eq!(contents(&snapshot, &start, prefix), expected.clone());
                        prop_assert_eq!(snapshot.count(start.as_bytes(), prefix.as_bytes()), expected.len());
                    }
                    let all: Vec<_> = model
                        .iter()
                        .filter(|(tail, _)| tail.starts_with(prefix))
                        .map(|(tail, revision)| (tail.clone(), *revision))
                        .collect();
                    prop_assert_eq!(contents(&snapshot, prefix, prefix), all.clone());
                    prop_assert_eq!(snapshot.count(prefix.as_bytes(), prefix.as_bytes()), all.len());
                }
                for (tail, revision) in &model {
                    prop_assert_eq!(snapshot.get(tail.as_bytes()).map(Slot::revision), Some(*revision));
                }
            }
        }
    }
}
