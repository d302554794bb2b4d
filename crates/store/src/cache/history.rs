//! The last changes of a resource, so that a watch can start in the past and a list can be
//! answered as of a moment ago.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use coffer_types::Status;

use super::snapshot::Slot;
use crate::kv::Revision;
use crate::registry::{Event, EventType, Frames, Predicate, Stored};

/// Changes that wait for one watcher at most before it has to read the history.
pub const MAX_QUEUED: usize = 128;

/// Changes that are kept at least.
pub const MIN_HISTORY: usize = 100;
/// Changes that are kept at most.
pub const MAX_HISTORY: usize = 100 * 1024;
/// How far back the history should reach.
pub const HISTORY_WINDOW: Duration = Duration::from_secs(75);
/// How many changes are undone at most to answer a list as of a past revision; beyond it the store is asked.
pub const MAX_UNDONE: usize = 10_000;

/// One change of one object.
///
/// What watchers see of it is made when the first of them comes by, and kept for the others.
pub(crate) struct Change {
    /// Counts the changes of this cache, without gaps.
    pub(crate) sequence: u64,
    /// When it arrived (monotonic).
    pub(crate) recorded: Duration,
    /// Its revision; several changes of one transaction share one.
    pub(crate) revision: Revision,
    /// `<namespace>/<name>` or `<name>`.
    pub(crate) tail: Box<[u8]>,
    /// The object before.
    pub(crate) previous: Option<Slot>,
    /// The object after; `None` when it was deleted.
    pub(crate) current: Option<Slot>,
    seen: OnceLock<Box<Seen>>,
}

/// One event for all watchers, encoded once.
struct Seen {
    /// What a watcher of everything sees.
    natural: Result<Arc<Event>, Box<Status>>,
    /// What a watcher sees whose selection the object has entered, or left.
    entered: OnceLock<Arc<Event>>,
    left: OnceLock<Arc<Event>>,
}

/// Whether a selector wants an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Yes,
    No,
    /// The object is there and cannot be read.
    Unknown,
}

impl Change {
    pub(crate) fn new(
        sequence: u64,
        recorded: Duration,
        revision: Revision,
        tail: Box<[u8]>,
        previous: Option<Slot>,
        current: Option<Slot>,
    ) -> Self {
        Self { sequence, recorded, revision, tail, previous, current, seen: OnceLock::new() }
    }

    /// The same change without what watchers have seen of it.
    fn unseen(&self) -> Self {
        let (previous, current) = (self.previous.clone(), self.current.clone());
        Self::new(self.sequence, self.recorded, self.revision, self.tail.clone(), previous, current)
    }

    fn seen(&self) -> &Seen {
        self.seen.get_or_init(|| {
            let natural = match (&self.previous, &self.current) {
                (_, Some(Slot::Corrupt(unreadable))) => Err(Box::new(unreadable.error.on_watch())),
                (None, Some(Slot::Good(stored))) => Ok(event(EventType::Added, stored.clone())),
                (Some(previous), Some(Slot::Good(stored))) => {
                    let previous = match previous {
                        Slot::Good(previous) => Some(previous.clone()),
                        Slot::Corrupt(_) => None,
                    };
                    Ok(event_after(EventType::Modified, previous, stored.clone()))
                }
                (Some(Slot::Good(stored)), None) => {
                    Ok(event(EventType::Deleted, stored.at_revision(self.revision)))
                }
                (Some(Slot::Corrupt(unreadable)), None) => {
                    Err(Box::new(unreadable.error.on_watch_of_deletion()))
                }
                (None, None) => Err(Box::new(Status::internal("a deletion of nothing was recorded"))),
            };
            Box::new(Seen { natural, entered: OnceLock::new(), left: OnceLock::new() })
        })
    }

    /// What a watcher with this selection sees of the change.
    pub(crate) fn seen_by(&self, predicate: &dyn Predicate) -> Option<Result<Arc<Event>, Status>> {
        if predicate.is_everything() {
            return Some(self.natural());
        }
        let new = wanted(self.current.as_ref(), predicate);
        let old = wanted(self.previous.as_ref(), predicate);
        match (old, new) {
            (Wanted::No, Wanted::No) => None,
            (_, Wanted::Unknown) | (Wanted::Yes, Wanted::Yes) => Some(self.natural()),
            // Whether the watcher has the object cannot be known; ADDED is right in both cases.
            (Wanted::No | Wanted::Unknown, Wanted::Yes) => Some(self.entered()),
            (Wanted::Yes, Wanted::No) => Some(self.left()),
            // It may have had the object, and what it had cannot be told: it has to list again.
            (Wanted::Unknown, Wanted::No) => Some(match &self.previous {
                Some(Slot::Corrupt(unreadable)) if self.current.is_some() => Err(unreadable.error.on_watch()),
                _ => self.natural(),
            }),
        }
    }

    /// What a watcher of everything sees of the change.
    pub(crate) fn natural(&self) -> Result<Arc<Event>, Status> {
        self.seen().natural.clone().map_err(|status| *status)
    }

    fn entered(&self) -> Result<Arc<Event>, Status> {
        let seen = self.seen();
        match (&seen.natural, &self.current) {
            (Ok(natural), Some(Slot::Good(stored))) if natural.event_type != EventType::Added => {
                Ok(seen.entered.get_or_init(|| event(EventType::Added, stored.clone())).clone())
            }
            _ => self.natural(),
        }
    }

    fn left(&self) -> Result<Arc<Event>, Status> {
        let seen = self.seen();
        match (&seen.natural, &self.previous) {
            (Ok(natural), Some(Slot::Good(stored))) if natural.event_type != EventType::Deleted => Ok(seen
                .left
                .get_or_init(|| event(EventType::Deleted, stored.at_revision(self.revision)))
                .clone()),
            _ => self.natural(),
        }
    }
}

fn wanted(slot: Option<&Slot>, predicate: &dyn Predicate) -> Wanted {
    match slot {
        None => Wanted::No,
        Some(Slot::Corrupt(_)) => Wanted::Unknown,
        Some(Slot::Good(stored)) if predicate.matches(stored) => Wanted::Yes,
        Some(Slot::Good(_)) => Wanted::No,
    }
}

/// An event about an object at the object's revision.
pub(crate) fn event(event_type: EventType, object: Arc<Stored>) -> Arc<Event> {
    event_after(event_type, None, object)
}

fn event_after(event_type: EventType, previous: Option<Arc<Stored>>, object: Arc<Stored>) -> Arc<Event> {
    Arc::new(Event {
        event_type,
        revision: object.revision,
        object: Some(object),
        previous,
        initial_events_end: false,
        frames: Frames::default(),
    })
}

/// A bookmark.
pub(crate) fn bookmark(revision: Revision, initial_events_end: bool) -> Arc<Event> {
    Arc::new(Event {
        event_type: EventType::Bookmark,
        object: None,
        previous: None,
        revision,
        initial_events_end,
        frames: Frames::default(),
    })
}

/// The changes that are kept.
pub(crate) struct History {
    changes: VecDeque<Arc<Change>>,
    /// How many are kept at present: between [`MIN_HISTORY`] and [`MAX_HISTORY`].
    capacity: usize,
    /// Revision of the list that the cache was filled with.
    listed: Revision,
    /// Revision of the last change that was forgotten.
    forgotten: Option<Revision>,
    next_sequence: u64,
    /// How often it was doubled and halved.
    resized: (u64, u64),
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            changes: VecDeque::new(),
            capacity: MIN_HISTORY,
            listed: 0,
            forgotten: None,
            next_sequence: 1,
            resized: (0, 0),
        }
    }

    /// Forgets everything; the cache has been filled anew at `listed`.
    pub(crate) fn reset(&mut self, listed: Revision) {
        self.changes.clear();
        self.listed = listed;
        self.forgotten = None;
    }

    /// The sequence of the next change.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Keeps a change whose sequence is [`History::next_sequence`].
    pub(crate) fn push(&mut self, change: Arc<Change>) {
        self.resize(change.recorded);
        while self.capacity <= self.changes.len() {
            if let Some(oldest) = self.changes.pop_front() {
                self.forgotten = Some(oldest.revision);
            }
        }
        self.next_sequence = change.sequence + 1;
        self.changes.push_back(change);
        // Watchers that keep up have it in their queues; for others it is made once more.
        if let Some(behind) = self.changes.len().checked_sub(MAX_QUEUED + 1)
            && self.changes[behind].seen.get().is_some()
        {
            self.changes[behind] = Arc::new(self.changes[behind].unseen());
        }
    }

    /// Doubles when a full history does not reach back far enough, halves when its newest quarter does.
    fn resize(&mut self, now: Duration) {
        if self.changes.len() < self.capacity {
            return;
        }
        let is_fresh = |index: usize| {
            self.changes.get(index).is_some_and(|change| now < change.recorded + HISTORY_WINDOW)
        };
        let before = self.capacity;
        if is_fresh(0) {
            self.capacity = (self.capacity * 2).min(MAX_HISTORY);
            self.resized.0 += u64::from(before < self.capacity);
        } else if !is_fresh(self.changes.len() - self.capacity / 4) {
            self.capacity = (self.capacity / 2).max(MIN_HISTORY);
            self.resized.1 += u64::from(self.capacity < before);
        }
    }

    /// The lowest revision after which every change is known.
    pub(crate) fn oldest(&self) -> Revision {
        match (self.forgotten, self.changes.front()) {
            // Another change of the same transaction is gone: that revision is not whole.
            (Some(forgotten), Some(oldest)) if forgotten == oldest.revision => oldest.revision,
            (Some(_), Some(oldest)) => oldest.revision - 1,
            (Some(forgotten), None) => forgotten,
            (None, _) => self.listed,
        }
    }

    /// The sequence of the last change that a watcher from after `revision` has seen.
    pub(crate) fn position(&self, revision: Revision) -> u64 {
        let index = self.changes.partition_point(|change| change.revision <= revision);
        self.changes.get(index).map_or(self.next_sequence, |change| change.sequence) - 1
    }

    /// At most `limit` changes after the one with the sequence `position`; `None` when they are not
    /// all known any more.
    pub(crate) fn after(&self, position: u64, limit: usize) -> Option<impl Iterator<Item = &Arc<Change>>> {
        let first = self.next_sequence - self.changes.len() as u64;
        let skip = (position + 1).checked_sub(first)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.changes.len());
        Some(self.changes.range(skip..).take(limit))
    }

    /// What objects that have changed since were at `revision`, or `None` when that is not known or
    /// takes too long to find out.
    pub(crate) fn undo(&self, revision: Revision) -> Option<BTreeMap<Box<[u8]>, Option<Slot>>> {
        if revision < self.oldest() {
            return None;
        }
        let index = self.changes.partition_point(|change| change.revision <= revision);
        if MAX_UNDONE < self.changes.len() - index {
            return None;
        }
        let mut before = BTreeMap::new();
        for change in self.changes.range(index..) {
            before.entry(change.tail.clone()).or_insert_with(|| change.previous.clone());
        }
        Some(before)
    }

    /// How many changes it may hold at present, and how often that was doubled and halved.
    pub(crate) fn capacity(&self) -> (usize, u64, u64) {
        (self.capacity, self.resized.0, self.resized.1)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::registry::{Attributes, Findings};

    struct Labelled(&'static str);

    impl Predicate for Labelled {
        fn is_everything(&self) -> bool {
            false
        }

        fn matches(&self, stored: &Stored) -> bool {
            stored.attributes.labels.iter().any(|(_, value)| value == self.0)
        }
    }

    fn slot(label: &str, revision: Revision) -> Option<Slot> {
        let labels = vec![("app".to_owned(), label.to_owned())];
        Some(Slot::Good(Arc::new(Stored {
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
            revision,
            bytes: Bytes::new(),
            attributes: Attributes { labels, ..Attributes::default() },
            findings: Findings::default(),
        })))
    }

    fn change(sequence: u64, seconds: u64, revision: Revision) -> Arc<Change> {
        let recorded = Duration::from_secs(seconds);
        Arc::new(Change::new(
            sequence,
            recorded,
            revision,
            b"ns/a".as_slice().into(),
            slot("x", 1),
            slot("x", revision),
        ))
    }

    // TestParseEvent's selection table: §10 of the facts.
    #[test]
    fn a_selector_sees_objects_enter_and_leave() {
        use EventType::{Added, Deleted, Modified};
        for (previous, current, expected) in [
            (None, slot("web", 9), Some((Added, 9))),
            (None, slot("db", 9), None),
            (slot("web", 5), slot("web", 9), Some((Modified, 9))),
            (slot("db", 5), slot("web", 9), Some((Added, 9))),
            (slot("web", 5), slot("db", 9), Some((Deleted, 9))),
            (slot("db", 5), slot("db", 9), None),
            (slot("web", 5), None, Some((Deleted, 9))),
            (slot("db", 5), None, None),
        ] {
            let old_label = previous.is_some();
            let change = Change::new(1, Duration::ZERO, 9, b"ns/a".as_slice().into(), previous, current);
            let seen = change.seen_by(&Labelled("web")).map(|event| {
                let event = event.expect("readable");
                let object = event.object.clone().expect("an object");
                assert_eq!(object.revision, event.revision);
                // A watcher gets only what it has selected, the last state included.
                assert_eq!(object.attributes.labels[0].1, "web");
                (event.event_type, event.revision)
            });
            assert_eq!(seen, expected, "previous: {old_label}");
        }
    }

    #[test]
    fn what_watchers_have_seen_is_forgotten_before_the_change() {
        let mut history = History::new();
        history.reset(1);
        let last = MAX_QUEUED as u64 + 2;
        for sequence in 1..=last {
            let change = change(sequence, 1, Revision::try_from(sequence).expect("small"));
            change.natural().expect("readable").frames.get_or_encode(0, || Bytes::from_static(b"frame"));
            history.push(change);
        }
        let seen: Vec<bool> = history.changes.iter().map(|change| change.seen.get().is_some()).collect();
        assert_eq!(seen.iter().filter(|seen| **seen).count(), MAX_QUEUED);
        assert_eq!(seen[..3], [false, false, true]);
        let again = history.after(0, 1).and_then(|mut changes| changes.next()).expect("known");
        assert_eq!((again.sequence, again.natural().expect("readable").event_type), (1, EventType::Modified));
    }

    // TestDynamicCache, TestCapacityUpperBound
    #[test]
    fn the_history_grows_while_it_is_too_short_and_shrinks_again() {
        let mut history = History::new();
        history.reset(10);
        assert_eq!(history.oldest(), 10);
        let mut sequence = 0;
        let mut push = |history: &mut History, seconds: u64| {
            sequence += 1;
            let revision = 10 + Revision::try_from(sequence).expect("small");
            history.push(change(sequence, seconds, revision));
        };
        (0..100).for_each(|_| push(&mut history, 1));
        assert_eq!((history.capacity(), history.oldest()), ((100, 0, 0), 10));
        push(&mut history, 1);
        assert_eq!((history.capacity(), history.oldest()), ((200, 1, 0), 10));
        (0..200).for_each(|_| push(&mut history, 2));
        assert_eq!(history.capacity(), (400, 2, 0));
        // The whole history is older than the window.
        (0..99).for_each(|_| push(&mut history, 3));
        push(&mut history, 200);
        assert_eq!(history.capacity(), (200, 2, 1));
        assert_eq!(history.oldest(), 10 + 401 - 200);
        assert_eq!(history.after(100, 10).map(Iterator::count), None);
        assert_eq!(history.after(201, 1000).map(Iterator::count), Some(200));
        assert_eq!(history.position(10 + 300), 300);
        assert_eq!(history.position(9999), 401);
    }

    #[test]
    fn a_revision_that_lost_a_change_is_not_served() {
        let mut history = History::new();
        history.reset(1);
        for sequence in 1..=101 {
            // The first two changes are of one transaction.
            let revision = Revision::try_from(sequence.max(2)).expect("small");
            history.push(change(sequence, 100 * sequence, revision));
        }
        assert_eq!(history.oldest(), 2);
        assert!(history.undo(1).is_none());
        assert!(history.undo(2).is_some());
    }
}
