//! The embedded engine on a disk that fails, fills up, and loses what was not synced.
//!
//! A workload of small transactions runs on a disk in memory that fails at one chosen step; every
//! step of the workload gets its turn (in a plain test run every few steps, beside the real peers all).
//! Then the power is cut and the store opened again. A failure names seed and step; `COFFER_SEED` and
//! `COFFER_SEEDS` replay and extend the runs, then with all steps.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use coffer_sim::{Fault, FaultyDisk, SeededRandom, SimClock};
use coffer_store::embedded::{Embedded, EmbeddedOptions, OpenError};
use coffer_store::kv::{
    Compare, Kv, KvError, KvEvent, Op, RangeRequest, Revision, SharedValue, Txn, WatchMessage, WatchStream,
};
use futures::StreamExt;

use super::helpers::{bytes, delete_op, prefix, put_op, single, watch};

/// Transactions of a workload.
const WRITES: i64 = 14;

/// A step between the tried ones in a plain test run. It is prime to the pattern of a commit's steps.
const STRIDE: usize = 11;

/// Which seeds and steps are tried.
fn turns(steps: u64) -> Vec<(u64, u64)> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let (first, count) = (number("COFFER_SEED"), number("COFFER_SEEDS"));
    let stride = match (first, count) {
        // Both seeds together try every step once.
        (None, None) if env!("CARGO_CRATE_NAME") == "peers" => 2,
        (None, None) => STRIDE,
        _ => 1,
    };
    let first = first.unwrap_or(0);
    let seeds = first..first + count.unwrap_or(2);
    // Each seed begins elsewhere.
    seeds
        .flat_map(|seed| (seed % stride as u64..steps).step_by(stride).map(move |step| (seed, step)))
        .collect()
}

/// Everything that exists after the first `count` transactions.
fn model(count: i64) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for number in 1..=count {
        for step in steps(number) {
            match step {
                Op::Put { key, value, .. } => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    state.insert(text(&key), text(&value.0));
                }
                Op::Delete { key } => {
                    state.remove(&*String::from_utf8_lossy(&key));
                }
                Op::DeleteRange { .. } | Op::Range(_) => {}
            }
        }
    }
    state
}

/// The steps of one transaction. Its number is in `/count`, so the state tells how many there were.
fn steps(number: i64) -> Vec<Op> {
    let large = "x".repeat(usize::try_from(number % 5).expect("small") * 3000);
    let mut steps = vec![
        put_op("/count", &number.to_string()),
        put_op(&format!("/a/{}", number % 4), &format!("{number}{large}")),
        put_op(&format!("/b/{}", number % 3), &number.to_string()),
    ];
    if number % 4 == 0 {
        steps.push(delete_op(&format!("/b/{}", (number + 1) % 3)));
    }
    steps
}

fn txn(number: i64) -> Txn {
    let before = if number == 1 { 0 } else { number - 1 };
    Txn {
        compare: vec![Compare::Version(bytes("/count"), before)],
        success: steps(number),
        failure: Vec::new(),
    }
}

async fn open(disk: &FaultyDisk, clock: &SimClock) -> Embedded {
    let options = EmbeddedOptions { cache_bytes: 64 * 1024, ..EmbeddedOptions::new(Arc::new(clock.clone())) };
    Embedded::open_disk(Arc::new(disk.clone()), options).await.expect("opens")
}

/// An empty store, made once.
async fn empty() -> Vec<u8> {
    let disk = FaultyDisk::default();
    drop(open(&disk, &SimClock::default()).await);
    disk.contents()
}

/// How many transactions took effect; that none did so by half, and that the past is right too.
async fn check(kv: &dyn Kv, what: &str) -> i64 {
    let state = async |revision: Revision| {
        let found = kv.range(RangeRequest { revision, limit: 16, ..prefix("/") }).await;
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!found.more, "{what}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let state: BTreeMap<_, _> = found.items.iter().map(|kv| (text(&kv.key), text(&kv.value))).collect();
        (state, found.revision)
    };
    let (now, revision) = state(0).await;
    let count = now.get("/count").map_or(0, |count| count.parse().expect("a number"));
    assert!(now == model(count), "{what}: no transaction is there by half");
    assert_eq!(revision, count + 1, "{what}: as many revisions as transactions");
    let compacted = if 6 < count { 4 } else { revision };
    for earlier in compacted..revision {
        assert!(state(earlier).await.0 == model(earlier - 1), "{what}: as of {earlier}");
    }
    count
}

/// What the workload was told.
#[derive(Default, Debug)]
struct Told {
    acknowledged: i64,
    /// The transaction that failed, and whether it was said that nothing was written.
    failed: Option<(i64, bool)>,
}

impl Told {
    fn note(&mut self, number: i64, error: &KvError, what: &str) {
        match error {
            KvError::Refused(_) => self.failed = Some((number, true)),
            KvError::Unavailable(_) => self.failed = Some((number, false)),
            error => panic!("{what}: {error}"),
        }
    }

    /// What may be found after this.
    fn allows(&self, found: i64) -> bool {
        let maybe = matches!(self.failed, Some((number, false)) if number == self.acknowledged + 1);
        found == self.acknowledged || (maybe && found == self.acknowledged + 1)
    }
}

/// Runs the workload until something fails.
async fn work(kv: &dyn Kv, told: &mut Told, what: &str) {
    for number in told.acknowledged + 1..=WRITES {
        match kv.txn(txn(number)).await {
            Ok(done) => {
                assert!(done.succeeded, "{what}: transaction {number}");
                assert_eq!(done.revision, number + 1, "{what}");
                told.acknowledged = number;
            }
            Err(error) => return told.note(number, &error, what),
        }
        if number == 6 {
            // The rows that are then deleted make for commits of the engine's own.
            match kv.compact(4).await {
                Ok(()) | Err(KvError::Compacted(_) | KvError::Refused(_) | KvError::Unavailable(_)) => {}
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}

/// How many steps the workload takes on a disk that works.
async fn steps_of_workload(image: &[u8]) -> u64 {
    let disk = FaultyDisk::holding(image.to_vec());
    let kv = open(&disk, &SimClock::default()).await;
    let mut told = Told::default();
    work(&kv, &mut told, "a good disk").await;
    assert_eq!(told.acknowledged, WRITES);
    drop(kv);
    disk.steps()
}

/// The power is cut at each step, and once more while the store recovers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_cuts_lose_nothing_that_was_acknowledged() {
    let image = empty().await;
    let last = steps_of_workload(&image).await;
    assert!(100 < last, "{last} steps");
    let mut cut = 0;
    for (seed, step) in turns(last) {
        let what = format!("seed {seed}, step {step}");
        let (disk, clock) = (FaultyDisk::holding(image.clone()), SimClock::default());
        disk.set_seed(seed);
        let kv = open(&disk, &clock).await;
        disk.fail_at(step.max(disk.steps()), Fault::FromNowOn(ErrorKind::Other));
        let mut told = Told::default();
        work(&kv, &mut told, &what).await;
        cut += usize::from(told.failed.is_some());
        let random = SeededRandom::new(seed << 32 | step);
        let left = disk.crash(&random);
        drop(kv);
        // Opening it is interrupted at some step as well, more often than not.
        let disk = FaultyDisk::holding(left);
        disk.fail_at(random.below(30), Fault::FromNowOn(ErrorKind::Other));
        let options = EmbeddedOptions::new(Arc::new(clock.clone()));
        drop(Embedded::open_disk(Arc::new(disk.clone()), options).await);
        let disk = FaultyDisk::holding(disk.crash(&random));
        let kv = open(&disk, &clock).await;
        let found = check(&kv, &what).await;
        // After a power cut the one that was under way may be there, whatever the dead process thought.
        let under_way = told.failed.is_some() && found == told.acknowledged + 1;
        assert!(found == told.acknowledged || under_way, "{what}: found {found}, {told:?}");
        told = Told { acknowledged: found, failed: None };
        work(&kv, &mut told, &what).await;
        assert_eq!(check(&kv, &what).await, WRITES, "{what}: it goes on");
    }
    // Some steps are the engine's own, after the last transaction.
    assert!(turns(last).len() * 3 / 4 < cut, "only {cut} runs were cut off");
}

/// All that a watch has seen so far.
pub(super) async fn seen(watch: &mut WatchStream, upto: Revision, what: &str) -> Vec<KvEvent> {
    let mut events = Vec::new();
    while events.last().map_or(1, |event: &KvEvent| event.kv.mod_revision) < upto {
        match tokio::time::timeout(super::helpers::PATIENCE, watch.next()).await {
            Ok(Some(Ok(WatchMessage::Events(batch)))) => events.extend(batch),
            Ok(Some(Ok(_))) => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    events
}

/// One step fails, and the disk works again.
async fn survives(image: &[u8], seed: u64, step: u64, kind: ErrorKind, lasting: bool) {
    let what = format!("seed {seed}, step {step}, {kind:?}, lasting {lasting}");
    let (disk, clock) = (FaultyDisk::holding(image.to_vec()), SimClock::default());
    disk.set_seed(seed);
    let kv = open(&disk, &clock).await;
    let mut watch = watch(&kv, "/count", 0).await;
    let fault = if lasting { Fault::FromNowOn(kind) } else { Fault::Once(kind) };
    disk.fail_at(step.max(disk.steps()), fault);
    let mut told = Told::default();
    work(&kv, &mut told, &what).await;
    // Reading goes on and shows what was acknowledged, and nothing else.
    assert_eq!(check(&kv, &what).await, told.acknowledged, "{what}: reading goes on; {told:?}");
    if lasting && told.failed.is_some() {
        let again = kv.txn(txn(told.acknowledged + 1)).await.map(|_| ()).expect_err(&what);
        assert!(matches!(again, KvError::Refused(_)), "{what}: {again}");
        assert_eq!(check(&kv, &what).await, told.acknowledged, "{what}: still");
    }
    if !lasting {
        // What was refused is not there, even if the power is cut now.
        let disk = FaultyDisk::holding(disk.crash(&SeededRandom::new(seed << 32 | step)));
        let kv = open(&disk, &clock).await;
        let found = check(&kv, &what).await;
        assert!(told.allows(found), "{what}: found {found}, {told:?}");
    }
    disk.repair();
    clock.advance(Duration::from_secs(2));
    work(&kv, &mut told, &what).await;
    assert_eq!(told.acknowledged, WRITES, "{what}: writing goes on; {told:?}");
    assert_eq!(check(&kv, &what).await, WRITES, "{what}");
    let events = seen(&mut watch, WRITES + 1, &what).await;
    let revisions: Vec<_> = events.iter().map(|event| event.kv.mod_revision).collect();
    assert_eq!(revisions, (2..=WRITES + 1).collect::<Vec<_>>(), "{what}: the watch saw each once");
    let disk = FaultyDisk::holding(disk.crash(&SeededRandom::new(seed)));
    drop(kv);
    let kv = open(&disk, &clock).await;
    assert_eq!(check(&kv, &what).await, WRITES, "{what}: and all of it is on the disk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_step_is_an_error_and_nothing_of_it_remains() {
    let image = empty().await;
    let last = steps_of_workload(&image).await;
    for (seed, step) in turns(last) {
        let kind = if step % 2 == seed % 2 { ErrorKind::Other } else { ErrorKind::StorageFull };
        survives(&image, seed, step, kind, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_keeps_failing_is_read_on_and_written_again_later() {
    let image = empty().await;
    let last = steps_of_workload(&image).await;
    for (seed, step) in turns(last) {
        survives(&image, seed, step, ErrorKind::Other, true).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    let (disk, clock) = (FaultyDisk::holding(empty().await), SimClock::default());
    let kv = open(&disk, &clock).await;
    disk.set_capacity(Some(disk.blocks() + 60));
    let large = |number: i64| Txn {
        success: vec![Op::Put {
            key: bytes(format!("/large/{number}")),
            value: SharedValue(bytes(vec![b'x'; 20_000])),
            lease: 0,
        }],
        ..Txn::default()
    };
    let mut written = 0;
    let error = loop {
        match kv.txn(large(written)).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "it never fills up");
    };
    assert!(0 < written);
    let KvError::Refused(reason) = &error else { panic!("{error:?}") };
    assert!(reason.contains("no storage space"), "{reason}");
    for _ in 0..3 {
        kv.txn(large(written)).await.map(|_| ()).expect_err("still full");
        clock.advance(Duration::from_secs(1));
    }
    let found = kv.range(prefix("/large/")).await.expect("reading goes on");
    assert_eq!((found.count, found.revision), (written, written + 1));
    disk.set_capacity(None);
    clock.advance(Duration::from_secs(2));
    let done = kv.txn(large(written)).await.expect("there is room again");
    assert_eq!(done.revision, written + 2, "refused writes left no trace");
    drop(kv);
    let kv = open(&FaultyDisk::holding(disk.crash(&SeededRandom::new(0))), &clock).await;
    assert_eq!(kv.range(prefix("/large/")).await.expect("readable").count, written + 1);
}

/// As etcd under its alarm NOSPACE: writes are refused, reads and deletions go on. Unlike etcd, it is over
/// by itself: when others free space on the disk, or when enough was deleted and forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_can_be_emptied_by_deleting() {
    for freed_by_others in [true, false] {
        let (disk, clock) = (FaultyDisk::holding(empty().await), SimClock::default());
        let options = EmbeddedOptions {
            cache_bytes: 64 * 1024,
            reserve_bytes: 256 * 4096,
            ..EmbeddedOptions::new(Arc::new(clock.clone()))
        };
        let reserve = Arc::new(disk.beside());
        let kv = Embedded::open_disks(Arc::new(disk.clone()), Some(reserve), options).await.expect("opens");
        let room = disk.blocks() + 300;
        disk.set_capacity(Some(room));
        let put = |number: i64| Txn {
            success: vec![Op::Put {
                key: bytes(format!("/large/{number:04}")),
                value: SharedValue(bytes(vec![b'x'; 20_000])),
                lease: 0,
            }],
            ..Txn::default()
        };
        let mut written = 0;
        while kv.txn(put(written)).await.is_ok() {
            written += 1;
            assert!(written < 1000, "it never fills up");
        }
        assert!(20 < written);
        assert_eq!(
            kv.alarm().await.as_deref(),
            Some("ALARM NOSPACE: etcdserver: mvcc: database space exceeded")
        );
        let refused = |error: KvError| match error {
            KvError::Refused(reason) => {
                assert!(reason.starts_with("etcdserver: mvcc: database space exceeded"))
            }
            error => panic!("{error}"),
        };
        refused(kv.txn(put(written)).await.map(drop).expect_err("full"));
        refused(kv.lease_grant(Duration::from_secs(60)).await.map(drop).expect_err("full"));
        // Every object can be deleted, and is gone for good.
        for number in 0..written {
            let delete = Txn { success: vec![delete_op(&format!("/large/{number:04}"))], ..Txn::default() };
            kv.txn(delete).await.unwrap_or_else(|error| panic!("deletion {number} of {written}: {error}"));
            clock.advance(Duration::from_secs(1));
        }
        let found = kv.range(prefix("/large/")).await.expect("reading goes on");
        assert_eq!((found.count, found.revision), (0, 2 * written + 1));
        assert!(disk.blocks() <= room);
        assert!(kv.alarm().await.is_some(), "nothing has become free yet");
        if freed_by_others {
            disk.set_capacity(None);
        } else {
            // The compactor's mark is let in, and history goes.
            let mark = put_op("compact_rev_key", "1");
            kv.txn(Txn { success: vec![mark], ..Txn::default() }).await.expect("the mark of the compactor");
            kv.compact(2 * written).await.expect("compacted");
        }
        // The alarm ends, without a write that asks.
        let mut alarm = kv.alarm().await;
        for _ in 0..1000 {
            if alarm.is_none() {
                break;
            }
            clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
            alarm = kv.alarm().await;
        }
        assert_eq!(alarm, None, "freed by others: {freed_by_others}");
        for number in 0..10 {
            // The database hands out freed pages some commits later.
            let mut done = kv.txn(put(number)).await;
            for _ in 0..10 {
                if done.is_ok() {
                    break;
                }
                clock.advance(Duration::from_secs(1));
                done = kv.txn(put(number)).await;
            }
            done.unwrap_or_else(|error| panic!("{freed_by_others}, write {number}: {error}"));
        }
        drop(kv);
        let disk = FaultyDisk::holding(disk.crash(&SeededRandom::new(0)));
        let kv = open(&disk, &clock).await;
        assert_eq!(kv.range(prefix("/large/")).await.expect("readable").count, 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_read_is_tried_again_on_a_reopened_database() {
    let (disk, clock) = (FaultyDisk::holding(empty().await), SimClock::default());
    let kv = open(&disk, &clock).await;
    work(&kv, &mut Told::default(), "a good disk").await;
    drop(kv);
    // Nothing is in the cache now.
    let kv = open(&disk, &clock).await;
    for _ in 0..3 {
        disk.fail_next_read();
        clock.advance(Duration::from_secs(2));
        assert_eq!(kv.range(single("/count")).await.expect("the second try").count, 1);
        assert_eq!(check(&kv, "after a failed read").await, WRITES);
    }
}

/// A disk that is full or broken when the store opens is not called damaged.
#[tokio::test]
async fn opening_on_a_failing_disk_says_so() {
    let clock = SimClock::default();
    for (kind, full) in [(ErrorKind::StorageFull, true), (ErrorKind::Other, false)] {
        for step in 0..200 {
            let disk = FaultyDisk::default();
            disk.fail_at(step, Fault::FromNowOn(kind));
            let options = EmbeddedOptions::new(Arc::new(clock.clone()));
            match Embedded::open_disk(Arc::new(disk.clone()), options).await.map(drop) {
                Ok(()) => assert!(4 < step, "it was made in {step} steps"),
                Err(OpenError::NoSpace { .. }) => assert!(full),
                Err(OpenError::Io { .. }) => {}
                Err(error) => panic!("step {step}: {error:?}"),
            }
        }
    }
}

/// One writer waits for one sync; many writers share it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_share_syncs() {
    let disk = FaultyDisk::holding(empty().await);
    let kv = open(&disk, &SimClock::default()).await;
    let put = |number: u64| {
        let kv = &kv;
        async move {
            let steps = vec![put_op(&format!("/{number}"), "x")];
            kv.txn(Txn { success: steps, ..Txn::default() }).await.expect("written").revision
        }
    };
    let before = disk.syncs();
    for number in 0..20 {
        put(number).await;
    }
    assert_eq!(disk.syncs() - before, 20, "one for each");
    let before = disk.syncs();
    let mut revisions = futures::future::join_all((0..500).map(put)).await;
    revisions.sort_unstable();
    assert_eq!(revisions, (22..522).collect::<Vec<_>>(), "each has a revision of its own");
    let syncs = disk.syncs() - before;
    assert!(syncs <= 50, "{syncs} syncs for 500 writers");
    // What changes nothing needs none.
    let before = disk.syncs();
    let lost =
        Txn { compare: vec![Compare::Version(bytes("/1"), 77)], success: steps(1), failure: Vec::new() };
    assert!(!kv.txn(lost).await.expect("answered").succeeded);
    assert_eq!(disk.syncs(), before);
}

#[tokio::test]
async fn leases_and_compaction_survive_a_restart() {
    let (disk, clock) = (FaultyDisk::default(), SimClock::default());
    let kv = open(&disk, &clock).await;
    let lease = kv.lease_grant(Duration::from_secs(100)).await.expect("granted");
    let revoked = kv.lease_grant(Duration::from_secs(100)).await.expect("granted");
    kv.lease_revoke(revoked).await.expect("revoked");
    let attached = Op::Put { key: bytes("/leased"), value: SharedValue(bytes("1")), lease };
    kv.txn(Txn { success: vec![attached], ..Txn::default() }).await.expect("attached");
    for number in 0..4 {
        kv.txn(Txn { success: vec![put_op("/a", &number.to_string())], ..Txn::default() })
            .await
            .expect("put");
    }
    kv.compact(5).await.expect("compacted");
    clock.advance(Duration::from_secs(90));
    drop(kv);
    let kv = open(&disk, &clock).await;
    let old = kv.range(RangeRequest { revision: 4, ..single("/a") }).await;
    assert_eq!(old.map(|_| ()).expect_err("compacted"), KvError::Compacted(5));
    assert_eq!(kv.lease_keep_alive(revoked).await.expect_err("revoked"), KvError::LeaseNotFound);
    let fresh = kv.lease_grant(Duration::from_secs(1)).await.expect("granted");
    assert!(revoked < fresh, "no lease gets the number of an earlier one");
    // As with etcd the lease begins anew.
    clock.advance(Duration::from_secs(90));
    assert_eq!(kv.range(single("/leased")).await.expect("readable").count, 1);
    let mut watch = watch(&kv, "/leased", 0).await;
    clock.advance(Duration::from_secs(20));
    let events = seen(&mut watch, 7, "the lease is over").await;
    assert!(events[0].deleted);
}
