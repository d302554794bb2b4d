//! Lists from the cache: as of now, or as of a revision that the history still reaches.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use coffer_types::Status;

use super::Cache;
use super::snapshot::{Slot, Snapshot};
use crate::kv::Revision;
use crate::registry::error::UnreadableList;
use crate::registry::{Predicate, Stored};
use crate::statistics::Listed;

/// The objects at one revision.
pub(crate) struct View {
    objects: Snapshot,
    /// Objects that were different (or absent) at the revision.
    before: BTreeMap<Box<[u8]>, Option<Slot>>,
    pub(crate) revision: Revision,
}

/// Which part of a view.
pub(crate) struct Part<'a> {
    /// "" or `<namespace>/`.
    pub(crate) prefix: &'a [u8],
    /// The first tail; not below `prefix`.
    pub(crate) start: &'a [u8],
    /// At most so many; 0 means all.
    pub(crate) limit: usize,
    pub(crate) predicate: &'a dyn Predicate,
}

/// A part's objects.
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Stored>>,
    /// The last object's tail and how many objects come after the page, if any do.
    pub(crate) rest: Option<(Vec<u8>, usize)>,
}

impl Cache {
    /// The present state; 429 when there is none.
    pub(crate) fn view(&self) -> Result<View, Status> {
        let state = self.state.read();
        if !state.ready {
            return Err(state.not_ready(self.clock().monotonic()));
        }
        Ok(View { objects: state.objects.clone(), before: BTreeMap::new(), revision: state.revision })
    }

    /// The state at `revision`, if the cache can tell.
    pub(crate) fn view_at(&self, revision: Revision) -> Option<View> {
        let state = self.state.read();
        if !state.ready || state.revision < revision || revision < self.shared.compacted() {
            return None;
        }
        let before = state.history.undo(revision)?;
        Some(View { objects: state.objects.clone(), before, revision })
    }

    /// The readable objects of a part; fails when one of those that were looked at is not readable.
    pub(crate) fn page(&self, view: &View, part: &Part<'_>) -> Result<Page, Status> {
        let everything = part.predicate.is_everything();
        let expected = if everything { view.count(part) } else { 0 };
        let wanted = if part.limit == 0 { expected } else { expected.min(part.limit) };
        let mut items: Vec<Arc<Stored>> = Vec::with_capacity(wanted);
        let mut unreadable = UnreadableList::default();
        let mut more = false;
        let mut fetched = 0;
        view.for_each(part, |slot| {
            fetched += 1;
            if part.limit != 0 && part.limit <= items.len() {
                more = true;
                return false;
            }
            let stored = match slot {
                Slot::Good(stored) => stored.clone(),
                Slot::Corrupt(found) => match self.reopen(found) {
                    Some(stored) => stored,
                    None => return !unreadable.push(found.key(), found.error.clone()),
                },
            };
            if everything || part.predicate.matches(&stored) {
                items.push(stored);
            }
            true
        });
        let listed = Listed { fetched, evaluated: 0, returned: items.len() };
        self.objects.counts.cache_lists.add(listed);
        unreadable.finish(&self.objects.resource)?;
        let rest = items.last().filter(|_| more).map(|last| {
            let tail = crate::key::tail_of(&last.namespace, &last.name);
            (tail, expected.saturating_sub(part.limit))
        });
        Ok(Page { items, rest })
    }
}

impl View {
    /// The object with this tail.
    pub(crate) fn get(&self, tail: &[u8]) -> Option<&Slot> {
        match self.before.get(tail) {
            Some(before) => before.as_ref(),
            None => self.objects.get(tail),
        }
    }

    /// How many objects a part holds, whatever its limit and predicate.
    fn count(&self, part: &Part<'_>) -> usize {
        let mut count = self.objects.count(part.start, part.prefix);
        for (tail, before) in self.before_from(part) {
            match (before.is_some(), self.objects.get(tail).is_some()) {
                (true, false) => count += 1,
                (false, true) => count = count.saturating_sub(1),
                _ => {}
            }
        }
        count
    }

    fn before_from<'v>(
        &'v self,
        part: &'v Part<'_>,
    ) -> impl Iterator<Item = (&'v Box<[u8]>, &'v Option<Slot>)> {
        self.before
            .range::<[u8], _>((Bound::Included(part.start), Bound::Unbounded))
            .take_while(|(tail, _)| tail.starts_with(part.prefix))
    }

    /// Calls `visit` with each object in order until it says stop.
    fn for_each(&self, part: &Part<'_>, mut visit: impl FnMut(&Slot) -> bool) {
        let mut before = self.before_from(part).peekable();
        let mut cursor = self.objects.seek(part.start);
        while let Some(slot) = self.objects.next(&mut cursor, part.prefix) {
            let mut replaced = false;
            while let Some((tail, old)) = before.peek() {
                let order = slot.compare(tail);
                if order == Ordering::Less {
                    break;
                }
                if let Some(old) = old
                    && !visit(old)
                {
                    return;
                }
                replaced |= order == Ordering::Equal;
                before.next();
            }
            if !replaced && !visit(slot) {
                return;
            }
        }
        for (_, old) in before {
            if let Some(old) = old
                && !visit(old)
            {
                return;
            }
        }
    }
}
