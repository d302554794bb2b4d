//! What all resources share: compaction and the health of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_store::compactor::{COMPACT_KEY, Compactor};
use coffer_store::health::{DEFAULT_TIMEOUT, HealthCheck};
use coffer_store::kv::{KvError, RangeRequest, Revision};
use coffer_store::registry::{ReadAt, Registry};

use super::world::*;

async fn readable_at(world: &World, revision: Revision) -> bool {
    let request = RangeRequest { start: Bytes::from_static(b"/x"), revision, ..RangeRequest::default() };
    match world.probe.inner().range(request).await {
        Ok(_) => true,
        Err(KvError::Compacted(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

fn compactor(world: &World, told: &Arc<AtomicI64>) -> Compactor {
    let told = told.clone();
    Compactor::new(
        world.probe.clone(),
        Arc::new(world.clock.clone()),
        Duration::from_secs(60),
        Box::new(move |revision| told.store(revision, Ordering::SeqCst)),
    )
}

pub(crate) async fn an_engine_that_panics_leaves_nobody_waiting(world: World) {
    let object = pod("ns", "a");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    // A read of the present.
    world.probe.panics.store(1, Ordering::SeqCst);
    let told = world.in_time(world.get(&object, ReadAt::Latest)).await;
    assert_eq!(told.expect_err("the engine has panicked").code, 500);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect("read").revision, created.revision);
    // Filling the cache anew.
    world.probe.panics.store(1, Ordering::SeqCst);
    world.probe.break_watches(KvError::Compacted(0));
    world
        .in_time(async {
            // One for the watch, one for the panic.
            while world.store.statistics().initialization_errors < 2 || !world.store.ready() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    let second = world.create(&pod("ns", "b")).await;
    assert_eq!(show_list(&world.list("ns").await), [show_stored(&created), show_stored(&second)]);
}

// TestCompact: what is current at a round survives one whole interval.
pub(crate) async fn compaction_follows_one_interval_behind(world: World) {
    let told = Arc::new(AtomicI64::new(0));
    let mut compactor = compactor(&world, &told);
    let first = world.create(&pod("ns", "a")).await.revision;
    compactor.round().await.expect("a round");
    let round_one = world.current().await;
    assert_eq!(told.load(Ordering::SeqCst), 0);
    let second = world.create(&pod("ns", "b")).await.revision;
    assert!(readable_at(&world, first).await);
    compactor.round().await.expect("a round");
    assert_eq!(told.load(Ordering::SeqCst), round_one);
    assert!(!readable_at(&world, first).await);
    assert!(readable_at(&world, second).await);
    assert_eq!(world.read_raw("compact_rev_key").await.as_deref(), Some(round_one.to_string().as_bytes()));
}

// TestCompactConflict: two servers, one compaction an interval.
pub(crate) async fn compactors_of_two_servers_take_turns(world: World) {
    let (told_a, told_b) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let (mut a, mut b) = (compactor(&world, &told_a), compactor(&world, &told_b));
    world.create(&pod("ns", "a")).await;
    a.round().await.expect("a round");
    let round_one = world.current().await;
    b.round().await.expect("a round");
    world.create(&pod("ns", "b")).await;
    a.round().await.expect("a round");
    assert_eq!(told_a.load(Ordering::SeqCst), round_one);
    let before = world.current().await;
    b.round().await.expect("a round");
    // The other has been faster: this one only learns.
    assert_eq!(told_b.load(Ordering::SeqCst), round_one);
    assert_eq!(world.current().await, before);
    assert_eq!(COMPACT_KEY, b"compact_rev_key");
}

// TestCompactIntervalZero
pub(crate) async fn compaction_runs_by_the_clock_until_stopped(world: World) {
    let told = Arc::new(AtomicI64::new(0));
    let stop = tokio_util::sync::CancellationToken::new();
    let running = tokio::spawn(compactor(&world, &told).run(stop.clone()));
    world.create(&pod("ns", "a")).await;
    world
        .in_time(async {
            while told.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    stop.cancel();
    running.await.expect("it stops");
    let never = Compactor::new(
        world.probe.clone(),
        Arc::new(world.clock.clone()),
        Duration::ZERO,
        Box::new(|_| panic!("compacted")),
    );
    never.run(tokio_util::sync::CancellationToken::new()).await;
}

// TestEtcdHealthCheck, TestRateLimitHealthcheck, TestTimeTravelHealthcheck
pub(crate) async fn health_is_asked_for_at_most_twice_in_its_timeout(world: World) {
    let clock = Arc::new(world.clock.clone());
    let check = HealthCheck::new(world.probe.clone(), clock, "/registry", DEFAULT_TIMEOUT);
    world.probe.take_ranges();
    assert_eq!(check.check().await, Ok(()));
    assert_eq!(check.check().await, Ok(()));
    let asked = world.probe.take_ranges();
    assert_eq!(asked.len(), 1);
    assert_eq!(&asked[0].start[..], b"/registry/health");
    world.probe.unavailable.store(true, Ordering::SeqCst);
    // The last result stands for a second.
    assert_eq!(check.check().await, Ok(()));
    world.clock.advance(DEFAULT_TIMEOUT / 2);
    let error = check.check().await.expect_err("unavailable");
    assert!(error.starts_with("error getting data from etcd: "), "{error}");
    world.clock.advance(DEFAULT_TIMEOUT / 2);
    world.probe.unavailable.store(false, Ordering::SeqCst);
    world.probe.close_gate(true);
    let error = world.in_time(check.check()).await.expect_err("too slow");
    assert_eq!(error, "error getting data from etcd: context deadline exceeded");
    world.probe.close_gate(false);
    world.clock.advance(DEFAULT_TIMEOUT);
    assert_eq!(check.check().await, Ok(()));
}

/// TestCreateHealthcheck and TestCreateReadycheck: a check takes no longer than it may.
pub(crate) async fn a_check_waits_as_long_as_it_may(world: World) {
    let late = || Err("error getting data from etcd: context deadline exceeded".to_owned());
    let custom = |seconds| Some(Duration::from_secs(seconds));
    for (may_take, takes, expected) in
        [(None, 1, Ok(())), (custom(5), 3, Ok(())), (None, 3, late()), (custom(3), 5, late())]
    {
        let clock = Arc::new(world.clock.clone());
        let may_take = may_take.unwrap_or(DEFAULT_TIMEOUT);
        let check = HealthCheck::new(world.probe.clone(), clock, "/registry", may_take);
        world.probe.close_gate(true);
        world.probe.take_ranges();
        let checking = tokio::spawn(async move { check.check().await });
        tokio::time::sleep(QUIET).await;
        assert!(!checking.is_finished());
        world.clock.advance(Duration::from_secs(takes));
        tokio::time::sleep(QUIET).await;
        world.probe.close_gate(false);
        assert_eq!(checking.await.expect("no panic"), expected, "{may_take:?} {takes}");
    }
}
