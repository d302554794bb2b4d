//! Holds watches against what happened.

use std::collections::BTreeSet;

use coffer_store::kv::{KvEvent, Revision, WatchMessage};

use super::model::within;
use super::record::WatchRecord;
use super::search::{Change, Log};
use super::{Promise, Violation};

/// Checks one watch that was cut off and resumed any number of times: each part, and all together.
///
/// # Errors
/// When a promise was not kept.
pub fn check_watches(log: &Log, parts: &[WatchRecord]) -> Result<(), Violation> {
    for part in parts {
        check(log, part)?;
    }
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
    // A watch from now on begins where it was made: resumed, it must go on from there.
    let from = match first.request.from {
        0 => first.messages.iter().find_map(|(_, message)| match message {
            WatchMessage::Created(revision) => Some(revision + 1),
            _ => None,
        }),
        from => Some(from),
    };
    let Some(from) = from else { return Ok(()) };
    let messages = parts
        .iter()
        .flat_map(|part| &part.messages)
        .filter(|(_, message)| !matches!(message, WatchMessage::Created(_)))
        .cloned()
        .collect();
    let mut request = first.request.clone();
    request.from = from;
    check(log, &WatchRecord { request, messages, until: last.until })
}

struct Checking<'a> {
    log: &'a Log,
    watch: &'a WatchRecord,
    /// Everything in the watch's range before this was yielded.
    next: Revision,
    yielded: BTreeSet<Revision>,
}

fn check(log: &Log, watch: &WatchRecord) -> Result<(), Violation> {
    let mut checking = Checking { log, watch, next: watch.request.from, yielded: BTreeSet::new() };
    for (time, message) in &watch.messages {
        match message {
            WatchMessage::Created(revision) => {
                checking.happened(*revision, *time)?;
                if watch.request.from == 0 {
                    checking.next = revision + 1;
                }
            }
            WatchMessage::Events(events) => checking.batch(events, *time)?,
            WatchMessage::Progress(revision) => {
                checking.happened(*revision, *time)?;
                if let Some(missing) = checking.due(*revision) {
                    let what = format!("progress to {revision} before the change at {}", missing.revision);
                    return Err(Violation::new(Promise::ProgressTrue, what));
                }
                checking.next = checking.next.max(revision + 1);
            }
        }
    }
    match watch.until.and_then(|until| checking.due(until)) {
        Some(missing) => {
            let what = format!("the change at {} never came", missing.revision);
            Err(Violation::new(Promise::NoGap, what))
        }
        None => Ok(()),
    }
}

impl Checking<'_> {
    fn in_range<'c>(&'c self, change: &'c Change) -> impl Iterator<Item = &'c KvEvent> {
        let request = &self.watch.request;
        change.events.iter().filter(|event| within(&event.kv.key, &request.start, &request.end))
    }

    /// The first change that should have been yielded before or at `revision`, and was not.
    fn due(&self, revision: Revision) -> Option<&Change> {
        (self.next.max(self.log.start + 1)..=revision.min(self.log.end()))
            .filter_map(|revision| self.log.at(revision))
            .find(|change| self.in_range(change).next().is_some())
    }

    /// Nothing is told before it happened.
    fn happened(&self, revision: Revision, time: u64) -> Result<(), Violation> {
        let early = match self.log.at(revision) {
            Some(change) => time < change.invoked,
            None => self.log.end() < revision,
        };
        let what = || format!("revision {revision} was told of before it was written");
        if early { Err(Violation::new(Promise::Truthful, what())) } else { Ok(()) }
    }

    fn batch(&mut self, events: &[KvEvent], time: u64) -> Result<(), Violation> {
        for group in events.chunk_by(|one, other| one.kv.mod_revision == other.kv.mod_revision) {
            let revision = group[0].kv.mod_revision;
            self.happened(revision, time)?;
            if self.yielded.contains(&revision) {
                let what = format!("the change at {revision} came again");
                return Err(Violation::new(Promise::NoDuplicate, what));
            }
            if revision < self.next {
                let what = format!("the change at {revision} came when {} was next", self.next);
                return Err(Violation::new(Promise::Ordered, what));
            }
            if let Some(missing) = self.due(revision - 1) {
                // Did it come later, or not at all?
                let later = self.watch.messages.iter().any(|(_, message)| {
                    matches!(message, WatchMessage::Events(events)
                        if events.iter().any(|event| event.kv.mod_revision == missing.revision))
                });
                let promise = if later { Promise::Ordered } else { Promise::NoGap };
                let what = format!("the change at {revision} came before that at {}", missing.revision);
                return Err(Violation::new(promise, what));
            }
            self.compare(revision, group)?;
            self.yielded.insert(revision);
            self.next = revision + 1;
        }
        Ok(())
    }

    fn compare(&self, revision: Revision, group: &[KvEvent]) -> Result<(), Violation> {
        let expected: Vec<KvEvent> = self
            .log
            .at(revision)
            .into_iter()
            .flat_map(|change| {
                self.in_range(change).cloned().map(|mut event| {
                    event.previous = event.previous.filter(|_| self.watch.request.previous);
                    event
                })
            })
            .collect();
        if let Some(wrong) = group.iter().find(|event| !expected.contains(event)) {
            let what = format!("at {revision}, {wrong:?} did not happen; it was {expected:?}");
            return Err(Violation::new(Promise::Truthful, what));
        }
        if group.len() < expected.len() {
            let what = format!("{} of {} changes at {revision} in one batch", group.len(), expected.len());
            return Err(Violation::new(Promise::WholeTransactions, what));
        }
        if group != expected {
            let what = format!("the changes at {revision} are not in the transaction's order");
            return Err(Violation::new(Promise::Ordered, what));
        }
        Ok(())
    }
}
