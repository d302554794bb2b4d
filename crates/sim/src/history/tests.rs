//! The checker can fail: a good history and good watches, and one mutation for each promise.

use bytes::Bytes;
use coffer_store::kv::{
    Compare, KvEvent, Op, OpResponse, RangeRequest, RangeResponse, Revision, SharedValue, Txn, TxnResponse,
    WatchMessage, WatchRequest,
};

use super::lines::{Lines, read_lines};
use super::record::Listener;
use super::*;

fn key(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn put(name: &str, value: &str) -> Op {
    Op::Put { key: key(name), value: SharedValue(key(value)), lease: 0 }
}

fn txn(ops: Vec<Op>) -> Txn {
    Txn { success: ops, ..Txn::default() }
}

fn all() -> RangeRequest {
    RangeRequest { start: key("/"), end: key("0"), ..RangeRequest::default() }
}

/// Makes true histories: every call is answered by the model.
struct World {
    model: Model,
    calls: Vec<Call>,
    events: Vec<Vec<KvEvent>>,
    time: u64,
}

impl World {
    fn new() -> Self {
        Self { model: Model::new(1), calls: Vec::new(), events: Vec::new(), time: 0 }
    }

    fn push(&mut self, request: Request, outcome: Outcome) {
        let invoked = self.time;
        self.time += 10;
        let returned = if outcome == Outcome::Unknown { u64::MAX } else { invoked + 5 };
        self.calls.push(Call { client: 0, invoked, returned, request, outcome });
    }

    fn write(&mut self, txn: Txn, told: bool) {
        let (answer, events) = self.model.evaluate(&txn);
        if !events.is_empty() {
            self.model.commit(&events);
            self.events.push(events);
        }
        self.push(Request::Txn(txn), if told { Outcome::Txn(answer) } else { Outcome::Unknown });
    }

    fn read(&mut self, request: RangeRequest) {
        let found = self.model.read(&request);
        self.push(Request::Range(request), Outcome::Range(found));
    }

    fn peek(&mut self, name: &str) {
        let found = self.model.get(&key(name)).map(|kv| (kv.mod_revision, kv.value.clone()));
        self.push(Request::Peek(key(name)), Outcome::Peek(found));
    }

    fn watch(&self, from: Revision) -> WatchRecord {
        let mut messages = vec![(0, WatchMessage::Created(1))];
        for events in &self.events {
            let revision = events[0].kv.mod_revision;
            if from <= revision {
                messages.push((self.time, WatchMessage::Events(events.clone())));
                messages.push((self.time, WatchMessage::Progress(revision)));
            }
        }
        let request = WatchRequest { start: key("/"), end: key("0"), from, previous: true, progress: true };
        WatchRecord { request, messages, until: Some(self.model.revision()) }
    }
}

/// One of everything: revisions 2 to 8.
fn world() -> World {
    let mut world = World::new();
    world.write(txn(vec![put("/a", "1"), put("/b", "1")]), true);
    world.read(all());
    world.write(txn(vec![put("/a", "2")]), true);
    world.peek("/a");
    world.write(txn(vec![Op::Delete { key: key("/missing") }]), true);
    world.write(
        Txn {
            compare: vec![Compare::ModRevision(key("/a"), 2)],
            success: vec![put("/a", "never")],
            failure: vec![Op::Range(all())],
        },
        true,
    );
    // It happened, but nobody was told.
    world.write(txn(vec![put("/c", "lost")]), false);
    world.read(RangeRequest { revision: 2, ..all() });
    world.write(txn(vec![Op::DeleteRange { start: key("/a"), end: key("/c") }]), true);
    world.write(txn(vec![put("/a", "3"), Op::Range(all())]), true);
    world.write(txn(vec![Op::Delete { key: key("/a") }]), false);
    world.write(txn(vec![put("/a", "4")]), true);
    world.read(RangeRequest { limit: 1, ..all() });
    world.read(RangeRequest { count_only: true, ..all() });
    world.read(RangeRequest { keys_only: true, ..all() });
    let found = world.model.read(&all());
    let items = found.items.iter().map(|kv| (kv.key.clone(), kv.mod_revision, kv.value.clone()));
    world.push(Request::Range(all()), Outcome::Listed(found.revision, items.collect()));
    world
}

fn verdict(world: &World) -> Result<Log, Violation> {
    linearize(1, &world.calls, &[])
}

#[test]
fn a_true_history_is_linearizable_and_its_log_is_what_happened() {
    let world = world();
    let log = verdict(&world).expect("linearizable");
    assert_eq!((log.end(), log.recovered), (8, 2));
    let events: Vec<_> = log.changes.iter().map(|change| change.events.clone()).collect();
    assert_eq!(events, world.events);
    for from in 2..=9 {
        check_watches(&log, &[world.watch(from)]).expect("every promise is kept");
    }
}

#[test]
fn a_write_without_an_answer_need_not_have_happened() {
    let mut world = World::new();
    world.write(txn(vec![put("/a", "1")]), true);
    world.push(Request::Txn(txn(vec![put("/a", "lost")])), Outcome::Unknown);
    world.read(all());
    world.write(txn(vec![put("/a", "2")]), true);
    assert_eq!(verdict(&world).expect("linearizable").recovered, 0);
}

/// Which of several lost writes took which revision is found out, whatever the order of guesses.
#[test]
fn lost_writes_are_searched_for() {
    let mut world = World::new();
    let lost = |world: &mut World, value: &str| {
        world.push(Request::Txn(txn(vec![put("/a", value)])), Outcome::Unknown);
    };
    lost(&mut world, "1");
    lost(&mut world, "2");
    lost(&mut world, "3");
    // 3, 1 and 2 happened in this order, each seen through a condition only.
    for value in ["3", "1", "2"] {
        let (_, events) = world.model.evaluate(&txn(vec![put("/a", value)]));
        world.model.commit(&events);
    }
    world.write(txn(vec![put("/b", "x"), Op::Range(all())]), true);
    for revision in [2, 3, 4] {
        let past = world.model.read(&RangeRequest { revision, count_only: true, ..all() });
        world
            .push(Request::Range(RangeRequest { revision, count_only: true, ..all() }), Outcome::Range(past));
    }
    let log = verdict(&world).expect("linearizable");
    assert_eq!((log.end(), log.recovered), (5, 3));
    assert_eq!(log.changes[2].events[0].kv.value, key("2"), "the last one is what was read");
}

/// What was lost with its process does not happen later.
#[test]
fn a_write_that_can_no_longer_happen_is_not_guessed() {
    let history = |until| {
        let mut world = World::new();
        world.push(Request::Txn(txn(vec![put("/a", "lost")])), Outcome::Unknown);
        world.calls[0].returned = until;
        world.read(all());
        world.write(txn(vec![put("/b", "1")]), true);
        let (_, events) = world.model.evaluate(&txn(vec![put("/a", "lost")]));
        world.model.commit(&events);
        world.read(all());
        verdict(&world).map(|log| log.recovered).map_err(|violation| violation.promise)
    };
    assert_eq!(history(u64::MAX), Ok(1));
    assert_eq!(history(25), Ok(1), "the second write began before");
    assert_eq!(history(15), Err(Promise::Linearizable));
}

/// Many processes that were killed, each with writes that happened and writes that did not: what the
/// watches tell makes the first guess the right one.
#[test]
fn what_a_watch_tells_is_guessed_first() {
    let mut world = World::new();
    let names = ["/a", "/b", "/c", "/d"];
    for round in 0..100 {
        let value = round.to_string();
        world.write(txn(names.map(|name| put(name, &value)).to_vec()), true);
        // Neither happened.
        world.push(
            Request::Txn(txn(vec![Op::DeleteRange { start: key("/"), end: key("0") }])),
            Outcome::Unknown,
        );
        world.push(
            Request::Txn(txn(vec![put("/a", &value), Op::Delete { key: key("/b") }])),
            Outcome::Unknown,
        );
        for name in ["/b", "/c"] {
            world.write(txn(vec![Op::Delete { key: key(name) }]), false);
        }
    }
    world.read(all());
    let log = linearize(1, &world.calls, &[world.watch(2)]).expect("linearizable");
    assert_eq!(log.recovered, 200);
    assert_eq!(log.changes.iter().map(|change| change.events.clone()).collect::<Vec<_>>(), world.events);
}

/// Each mutation of the true history, and that it is found.
#[test]
fn every_untrue_answer_is_found() {
    type Mutation = (&'static str, fn(&mut World));
    let mutations: [Mutation; 15] = [
        ("a read is stale", |world| {
            // It shows the state of revision 2 after revision 3 was acknowledged.
            let old = world.calls[1].outcome.clone();
            world.push(Request::Range(all()), old);
        }),
        ("a read is ahead of the write", |world| world.calls.swap_times(1, 2)),
        ("an acknowledged write is lost", |world| {
            world.calls.push(world.calls[2].clone());
            let last = world.calls.last_mut().expect("a call");
            (last.invoked, last.returned) = (world.time, world.time + 5);
        }),
        ("a refused write happened", |world| world.calls[6].outcome = Outcome::Refused),
        ("a write that was never asked for is read", |world| {
            edit_range(world, 1, |found| {
                found.items[0].value = key("other");
            })
        }),
        ("a key is missing from a read", |world| {
            edit_range(world, 1, |found| {
                found.items.pop();
            })
        }),
        ("the count is wrong", |world| edit_range(world, 12, |found| found.count += 1)),
        ("a page says that nothing is left", |world| edit_range(world, 12, |found| found.more = false)),
        ("a past read shows the present", |world| {
            edit_range(world, 7, |found| {
                found.items[0].value = key("2");
            })
        }),
        ("a version is wrong", |world| edit_range(world, 1, |found| found.items[0].version = 2)),
        ("a condition held that did not", |world| {
            edit_txn(world, 5, |answer| {
                *answer = TxnResponse { revision: 4, succeeded: true, responses: vec![OpResponse::Put] };
            })
        }),
        ("a deletion counts wrongly", |world| {
            edit_txn(world, 8, |answer| {
                answer.responses = vec![OpResponse::Deleted(1)];
            })
        }),
        ("a list is stale", |world| {
            let old = Outcome::Listed(2, vec![(key("/a"), 2, key("1")), (key("/b"), 2, key("1"))]);
            world.push(Request::Range(all()), old);
        }),
        ("a list lacks an object", |world| {
            let revision = world.model.revision();
            world.push(Request::Range(all()), Outcome::Listed(revision, Vec::new()));
        }),
        ("a peek is stale", |world| {
            let old = Outcome::Peek(Some((2, key("1"))));
            world.push(Request::Peek(key("/a")), old);
        }),
    ];
    for (what, mutate) in mutations {
        let mut world = world();
        mutate(&mut world);
        let found = verdict(&world).map(|log| log.end());
        assert!(
            matches!(&found, Err(violation) if violation.promise == Promise::Linearizable),
            "{what}: {found:?}"
        );
    }
}

trait SwapTimes {
    fn swap_times(&mut self, one: usize, other: usize);
}

impl SwapTimes for Vec<Call> {
    fn swap_times(&mut self, one: usize, other: usize) {
        let (first, second) = (self[one].clone(), self[other].clone());
        (self[one].invoked, self[one].returned) = (second.invoked, second.returned);
        (self[other].invoked, self[other].returned) = (first.invoked, first.returned);
    }
}

fn edit_range(world: &mut World, call: usize, edit: fn(&mut RangeResponse)) {
    let Outcome::Range(found) = &mut world.calls[call].outcome else { panic!("{call} is no read") };
    edit(found);
}

fn edit_txn(world: &mut World, call: usize, edit: fn(&mut TxnResponse)) {
    let Outcome::Txn(answer) = &mut world.calls[call].outcome else { panic!("{call} is no write") };
    edit(answer);
}

/// The order of revisions must be that of time, even where every answer fits.
#[test]
fn revisions_against_the_order_of_time_are_found() {
    let mut world = World::new();
    world.write(txn(vec![put("/a", "1")]), true);
    world.write(txn(vec![put("/b", "2")]), true);
    assert!(verdict(&world).is_ok());
    world.calls.swap_times(0, 1);
    assert!(verdict(&world).is_err(), "the second revision was acknowledged before the first was asked for");
    // While they overlap, either may be first.
    world.calls[0].invoked = 0;
    world.calls[1].invoked = 1;
    assert!(verdict(&world).is_ok());
}

/// Each mutation of a true watch, and the promise that it breaks.
#[test]
fn every_broken_promise_of_a_watch_is_found() {
    use Promise::{NoDuplicate, NoGap, Ordered, ProgressTrue, Truthful, WholeTransactions};
    type Mutation = (&'static str, Promise, fn(&mut Vec<(u64, WatchMessage)>));
    // Messages: Created, then events and progress of revisions 2 to 8 in turn.
    let mutations: [Mutation; 14] = [
        ("two batches change places", Ordered, |messages| {
            messages.retain(|(_, message)| !matches!(message, WatchMessage::Progress(_)));
            messages.swap(1, 2);
        }),
        ("one batch is missing", NoGap, |messages| {
            messages.retain(|(_, message)| !matches!(message, WatchMessage::Progress(_)));
            messages.remove(2);
        }),
        ("the last batch never comes", NoGap, |messages| messages.truncate(messages.len() - 2)),
        ("a batch comes twice", NoDuplicate, |messages| {
            let again = messages[3].clone();
            messages.insert(4, again);
        }),
        ("a batch comes again much later", NoDuplicate, |messages| {
            let again = messages[1].clone();
            messages.push(again);
        }),
        ("a transaction is torn", WholeTransactions, |messages| {
            let second = events(&mut messages[1]).split_off(1);
            messages.insert(2, (messages[1].0, WatchMessage::Events(second)));
        }),
        ("half a transaction is missing", WholeTransactions, |messages| {
            events(&mut messages[1]).pop();
        }),
        ("a transaction is out of order", Ordered, |messages| events(&mut messages[1]).swap(0, 1)),
        ("a value is wrong", Truthful, |messages| events(&mut messages[1])[0].kv.value = key("x")),
        ("a deletion is told as a write", Truthful, |messages| {
            events(&mut messages[7])[0].deleted = false;
        }),
        ("the value before is wrong", Truthful, |messages| events(&mut messages[3])[0].previous = None),
        ("progress is ahead of the changes", ProgressTrue, |messages| messages.swap(1, 2)),
        ("progress to what has not happened", Truthful, |messages| {
            messages.push((1_000, WatchMessage::Progress(99)));
        }),
        ("a change is told before it was asked for", Truthful, |messages| messages[13].0 = 3),
    ];
    let world = world();
    let log = verdict(&world).expect("linearizable");
    for (what, promise, mutate) in mutations {
        let mut watch = world.watch(2);
        mutate(&mut watch.messages);
        let found = check_watches(&log, &[watch]);
        assert_eq!(found.as_ref().map_err(|violation| violation.promise), Err(promise), "{what}: {found:?}");
    }
}

fn events(message: &mut (u64, WatchMessage)) -> &mut Vec<KvEvent> {
    match &mut message.1 {
        WatchMessage::Events(events) => events,
        other => panic!("{other:?}"),
    }
}

/// Resumed at another place than behind what has come, the parts are good and the whole is not.
#[test]
fn a_watch_that_resumes_elsewhere_is_found() {
    let world = world();
    let log = verdict(&world).expect("linearizable");
    let cut = |from, messages: usize| {
        let mut watch = world.watch(from);
        watch.messages.truncate(messages);
        watch.until = None;
        watch
    };
    // Revisions 2 and 3, then from 4 on.
    check_watches(&log, &[cut(2, 5), world.watch(4)]).expect("kept");
    let promise = |parts: &[WatchRecord]| check_watches(&log, parts).map_err(|violation| violation.promise);
    assert_eq!(promise(&[cut(2, 5), world.watch(5)]), Err(Promise::NoGap));
    assert_eq!(promise(&[cut(2, 5), world.watch(3)]), Err(Promise::NoDuplicate));
}

#[test]
fn lines_keep_a_history() {
    let world = world();
    let mut out = Vec::new();
    {
        let lines = Lines::new(&mut out);
        for call in &world.calls {
            lines.begins(call.invoked, call.client, &call.request);
            lines.ended(call.invoked, &call.outcome);
        }
        lines.begins(1_000, 3, &Request::Peek(key("/a")));
    }
    let text = String::from_utf8(out).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.push("[1001,4,{\"peek".to_owned());
    let mut calls = Vec::new();
    let end = read_lines(&lines, 0, &mut calls);
    assert_eq!(calls.len(), world.calls.len() + 1);
    for (call, original) in calls.iter().zip(&world.calls) {
        assert_eq!((&call.request, &call.outcome), (&original.request, &original.outcome));
    }
    let last = calls.last().expect("a call");
    assert_eq!((last.client, &last.outcome, last.returned), (3, &Outcome::Unknown, end));
}
