//! Finds the order of all calls (after Wing and Gong, and Lowe).
//!
//! A call may come next when no other call that is still to come had ended before it began. Of
//! those, a read that the present state explains comes at once, which never hurts: it changes
//! nothing. A write whose answer has the next revision must come next, for nothing else may take
//! that revision. When there is neither, a write without an answer must have happened; which one is
//! tried out, those first whose changes are just what a watch saw, and states that led nowhere are
//! remembered.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use coffer_store::kv::{KeyValue, KvEvent, OpResponse, Revision, Txn, TxnResponse, WatchMessage};

use super::model::Model;
use super::record::{Call, Outcome, Request, WatchRecord};
use super::{Promise, Violation};

/// How often a guess may be taken back before the search is given up; giving up is a failure.
const MOST_GUESSES: usize = 100_000;

/// All changes of one revision.
#[derive(Debug, Clone)]
pub struct Change {
    /// The revision.
    pub revision: Revision,
    /// When the call that made it began: nobody can have seen it earlier.
    pub invoked: u64,
    /// In the order of the transaction's steps.
    pub events: Vec<KvEvent>,
}

/// Everything that happened, in order.
#[derive(Debug, Clone)]
pub struct Log {
    /// The revision before the first change.
    pub start: Revision,
    /// One for each revision after `start`.
    pub changes: Vec<Change>,
    /// How many writes without an answer turned out to have happened.
    pub recovered: usize,
}

impl Log {
    /// The last revision.
    pub fn end(&self) -> Revision {
        self.start + self.changes.len() as Revision
    }

    /// The changes of one revision.
    pub fn at(&self, revision: Revision) -> Option<&Change> {
        self.changes.get(usize::try_from(revision - self.start - 1).ok()?)
    }
}

/// An order of all `calls` on a store that was empty at revision `start`, or why there is none.
///
/// What `watches` have seen is used to choose among writes without an answer.
///
/// # Errors
/// When no order explains every answer.
pub fn linearize(start: Revision, calls: &[Call], watches: &[WatchRecord]) -> Result<Log, Violation> {
    let history = History::new(calls, watches);
    let mut search = Search::new(&history, start);
    let mut others: Vec<(Search, usize)> = Vec::new();
    let mut dead = HashSet::new();
    let mut deepest: Option<(Revision, Violation)> = None;
    for _ in 0..MOST_GUESSES {
        let failed = match search.run(&history) {
            Step::Done => return Ok(search.into_log(start)),
            Step::Stuck(what) => what,
            Step::Guess(guesses) => {
                let place = (search.model.revision(), search.used.clone(), search.model.fingerprint());
                if dead.insert(place) {
                    let (first, rest) = guesses.split_first().expect("a guess");
                    others.extend(rest.iter().rev().map(|guess| (search.clone(), *guess)));
                    search.take(&history, *first);
                    continue;
                }
                "this state has led nowhere before".to_owned()
            }
        };
        let reached = search.model.revision();
        if deepest.as_ref().is_none_or(|(deepest, _)| *deepest < reached) {
            deepest = Some((reached, Violation::new(Promise::Linearizable, failed)));
        }
        match others.pop() {
            Some((earlier, guess)) => {
                search = earlier;
                search.take(&history, guess);
            }
            None => break,
        }
    }
    let given_up = || Violation::new(Promise::Linearizable, "the search was given up");
    Err(if others.is_empty() {
        deepest.map_or_else(given_up, |(_, violation)| violation)
    } else {
        given_up()
    })
}

/// A history, sorted for the search.
struct History<'a> {
    /// Calls with an answer, in the order of their beginning.
    known: Vec<&'a Call>,
    /// Their numbers in the order of their end.
    by_end: Vec<usize>,
    /// Writes without an answer, those first that can no longer happen first.
    unknown: Vec<(&'a Call, &'a Txn)>,
    /// What was seen at a revision by anyone.
    sightings: Sightings,
    /// What watches saw of it: all of it, unless they break their promises.
    watched: Sightings,
}

/// Keys, and their values unless they were deleted.
type Sightings = BTreeMap<Revision, Vec<(Bytes, Option<Bytes>)>>;

impl<'a> History<'a> {
    fn new(calls: &'a [Call], watches: &[WatchRecord]) -> Self {
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for call in calls {
            match (&call.request, &call.outcome) {
                (_, Outcome::Refused) | (Request::Range(_) | Request::Peek(_), Outcome::Unknown) => {}
                (Request::Txn(txn), Outcome::Unknown) => unknown.push((call, txn)),
                _ => known.push(call),
            }
        }
        known.sort_by_key(|call| call.invoked);
        unknown.sort_by_key(|(call, _)| (call.returned, call.invoked));
        let mut by_end: Vec<usize> = (0..known.len()).collect();
        by_end.sort_by_key(|index| known[*index].returned);
        let (mut sightings, mut watched) = (Sightings::new(), Sightings::new());
        for call in &known {
            let found = match &call.outcome {
                Outcome::Range(found) => found,
                Outcome::Listed(_, items) => {
                    for (key, revision, value) in items {
                        sightings.entry(*revision).or_default().push((key.clone(), Some(value.clone())));
                    }
                    continue;
                }
                _ => continue,
            };
            if matches!(&call.request, Request::Range(request) if request.keys_only) {
                continue;
            }
            for kv in &found.items {
                sightings.entry(kv.mod_revision).or_default().push((kv.key.clone(), Some(kv.value.clone())));
            }
        }
        for (_, message) in watches.iter().flat_map(|watch| &watch.messages) {
            let WatchMessage::Events(events) = message else { continue };
            for event in events {
                let value = (!event.deleted).then(|| event.kv.value.clone());
                for seen in [&mut sightings, &mut watched] {
                    seen.entry(event.kv.mod_revision)
                        .or_default()
                        .push((event.kv.key.clone(), value.clone()));
                }
            }
        }
        for seen in sightings.values_mut().chain(watched.values_mut()) {
            seen.sort();
            seen.dedup();
        }
        Self { known, by_end, unknown, sightings, watched }
    }

    /// Whether changes agree with what was seen at their revision.
    fn agrees(&self, revision: Revision, events: &[KvEvent]) -> bool {
        self.sightings.get(&revision).is_none_or(|seen| {
            seen.iter().all(|(key, value)| {
                events.iter().any(|event| {
                    event.kv.key == key && value.as_ref() == (!event.deleted).then_some(&event.kv.value)
                })
            })
        })
    }

    /// Whether changes that agree are all that watches saw.
    fn is_watched(&self, revision: Revision, events: &[KvEvent]) -> bool {
        self.watched.get(&revision).is_some_and(|seen| seen.len() == events.len())
    }
}

#[derive(Clone)]
struct Search {
    model: Model,
    changes: Vec<Change>,
    done: Vec<bool>,
    /// The first of `by_end` that may not be done yet.
    ends: usize,
    /// The first of `known` that is not open yet.
    next: usize,
    /// What may come next: few, as each client has one call at a time.
    open: Vec<usize>,
    /// When the last of what is done began: nothing that ended before comes now.
    begun: u64,
    /// Writes without an answer that have happened.
    used: BTreeSet<usize>,
}

enum Step {
    Done,
    Stuck(String),
    /// Which writes without an answer may be next.
    Guess(Vec<usize>),
}

impl Search {
    fn new(history: &History<'_>, start: Revision) -> Self {
        Self {
            model: Model::new(start),
            changes: Vec::new(),
            done: vec![false; history.known.len()],
            ends: 0,
            next: 0,
            open: Vec::new(),
            begun: 0,
            used: BTreeSet::new(),
        }
    }

    fn into_log(self, start: Revision) -> Log {
        Log { start, changes: self.changes, recovered: self.used.len() }
    }

    /// Goes on until a guess is needed.
    fn run(&mut self, history: &History<'_>) -> Step {
        loop {
            let horizon = self.widen(history);
            if self.open.is_empty() {
                return Step::Done;
            }
            if self.take_reads(history) || self.take_write(history) {
                continue;
            }
            let (mut guesses, mut likely): (Vec<usize>, usize) = (Vec::new(), 0);
            for (index, (call, txn)) in history.unknown.iter().enumerate() {
                // Equal writes that both may come next are interchangeable: the one comes first whose
                // time ends first.
                let fits = call.invoked < horizon
                    && self.begun < call.returned
                    && !self.used.contains(&index)
                    && !guesses.iter().any(|other| history.unknown[*other].1 == *txn);
                if fits {
                    let (_, events) = self.model.evaluate(txn);
                    if !events.is_empty() && history.agrees(self.model.revision() + 1, &events) {
                        if history.is_watched(self.model.revision() + 1, &events) {
                            guesses.insert(likely, index);
                            likely += 1;
                        } else {
                            guesses.push(index);
                        }
                    }
                }
            }
            match guesses[..] {
                [] => return Step::Stuck(self.explain(history)),
                [only] => self.take(history, only),
                _ => return Step::Guess(guesses),
            }
        }
    }

    /// Opens what may come next, and gives the time before which it must have begun.
    fn widen(&mut self, history: &History<'_>) -> u64 {
        while history.by_end.get(self.ends).is_some_and(|index| self.done[*index]) {
            self.ends += 1;
        }
        let horizon = history.by_end.get(self.ends).map_or(u64::MAX, |index| history.known[*index].returned);
        while history.known.get(self.next).is_some_and(|call| call.invoked < horizon) {
            self.open.push(self.next);
            self.next += 1;
        }
        horizon
    }

    /// Takes all that the present state explains and that changes nothing.
    fn take_reads(&mut self, history: &History<'_>) -> bool {
        let before = self.open.len();
        let (model, done, begun) = (&self.model, &mut self.done, &mut self.begun);
        self.open.retain(|index| {
            let call = history.known[*index];
            let explained = match (&call.request, &call.outcome) {
                (Request::Range(request), Outcome::Range(found)) => {
                    found.revision == model.revision() && *found == model.read(request)
                }
                (Request::Range(request), Outcome::Listed(revision, items)) => {
                    let shown = |kv: &KeyValue| (kv.key.clone(), kv.mod_revision, kv.value.clone());
                    *revision == model.revision()
                        && model.read(request).items.iter().map(shown).eq(items.iter().cloned())
                }
                (Request::Peek(key), Outcome::Peek(found)) => {
                    let now = model.get(key);
                    found.as_ref().map(|(revision, value)| (*revision, value))
                        == now.map(|kv| (kv.mod_revision, &kv.value))
                }
                (Request::Peek(key), Outcome::Exists(exists)) => model.get(key).is_some() == *exists,
                (Request::Txn(txn), Outcome::Txn(answer)) if answer.revision == model.revision() => {
                    let (expected, events) = model.evaluate(txn);
                    events.is_empty() && same(answer, &expected)
                }
                _ => false,
            };
            if explained {
                done[*index] = true;
                *begun = call.invoked.max(*begun);
            }
            !explained
        });
        self.open.len() < before
    }

    /// Takes the write whose answer has the next revision.
    fn take_write(&mut self, history: &History<'_>) -> bool {
        let next = self.model.revision() + 1;
        for (place, index) in self.open.iter().enumerate() {
            let call = history.known[*index];
            let Request::Txn(txn) = &call.request else { continue };
            let answered = match &call.outcome {
                Outcome::Txn(answer) => answer.revision,
                Outcome::Committed(revision) => *revision,
                _ => continue,
            };
            if answered != next {
                continue;
            }
            let (expected, events) = self.model.evaluate(txn);
            let explained = match &call.outcome {
                Outcome::Txn(answer) => same(answer, &expected),
                _ => expected.succeeded,
            };
            if explained && !events.is_empty() {
                self.done[*index] = true;
                self.open.remove(place);
                self.commit(call.invoked, events);
                return true;
            }
        }
        false
    }

    /// Takes a write without an answer.
    fn take(&mut self, history: &History<'_>, unknown: usize) {
        let (call, txn) = history.unknown[unknown];
        let (_, events) = self.model.evaluate(txn);
        self.used.insert(unknown);
        self.commit(call.invoked, events);
    }

    fn commit(&mut self, invoked: u64, events: Vec<KvEvent>) {
        self.begun = invoked.max(self.begun);
        self.model.commit(&events);
        self.changes.push(Change { revision: self.model.revision(), invoked, events });
    }

    fn explain(&self, history: &History<'_>) -> String {
        const SHOWN: usize = 8;
        let mut text = format!("at revision {} nothing explains what comes next:", self.model.revision());
        for index in self.open.iter().take(SHOWN) {
            let call = history.known[*index];
            text.push_str(&format!(
                "\n  client {} at {}..{}: {:?} gave {:?}",
                call.client, call.invoked, call.returned, call.request, call.outcome
            ));
        }
        text
    }
}

/// Whether two answers are the same. Reads within a transaction do not tell a revision of their own.
fn same(one: &TxnResponse, other: &TxnResponse) -> bool {
    let inner = |response: &OpResponse| match response {
        OpResponse::Range(range) => {
            let mut range = range.clone();
            range.revision = 0;
            OpResponse::Range(range)
        }
        other => other.clone(),
    };
    one.revision == other.revision
        && one.succeeded == other.succeeded
        && one.responses.iter().map(inner).eq(other.responses.iter().map(inner))
}
