//! What is counted for metrics.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::registry::{ListRequest, ReadAt, Registry};
use coffer_store::statistics::{Lists, Statistics};

use super::world::*;

/// `operation count errors` of all that the engine was asked.
fn requests(statistics: &Statistics) -> Vec<String> {
    let asked = statistics.requests.iter();
    asked.map(|asked| format!("{} {} {}", asked.operation.name(), asked.took.count, asked.errors)).collect()
}

// TestListMetrics
pub(crate) async fn list_metrics(world: World) {
    for (name, node) in [("pod-1", "a"), ("pod-2", "a"), ("pod-3", "b")] {
        world.create(&with(pod("ns", name), &["spec", "nodeName"], node)).await;
    }
    let before = world.store.statistics();
    let selecting = || ListRequest { predicate: Arc::new(Select::Field("spec.nodeName", "a")), ..list("ns") };
    world.store.list(selecting()).await.expect("a list");
    let after = world.store.statistics();
    assert_eq!(after.cache_lists, Lists { lists: 1, fetched: 3, evaluated: 0, returned: 2 });
    assert_eq!(after.store_lists, before.store_lists);
    // The same from the engine, in pages of what is missing.
    world.probe.no_progress.store(true, Ordering::SeqCst);
    world.store.list(ListRequest { limit: 2, ..selecting() }).await.expect("a list");
    let last = world.store.statistics();
    assert_eq!(last.cache_lists, after.cache_lists);
    let store = |of: &Statistics| (of.store_lists, of.store_list_seconds.count);
    assert_eq!(store(&after).1, 0);
    let (lists, timed) = store(&last);
    assert_eq!((lists.lists - after.store_lists.lists, timed), (1, 1));
    assert_eq!((lists.returned - after.store_lists.returned, lists.evaluated), (2, lists.returned));
    // One key.
    let one = ListRequest { name: Some("pod-3".to_owned()), ..list("ns") };
    world.store.list(one).await.expect("a list");
    let found = world.store.statistics().store_lists;
    assert_eq!((found.lists, found.fetched), (lists.lists + 1, lists.fetched + 1));
}

pub(crate) async fn each_request_to_the_engine_is_counted(world: World) {
    let object = pod("ns", "a");
    let filled = requests(&world.store.statistics());
    assert_eq!(filled, ["list 1 0"]);
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    world.get(&object, ReadAt::Latest).await.expect("read");
    world.get(&object, ReadAt::Any).await.expect("read from the cache");
    let updated = world.put(&with(object.clone(), &["spec", "nodeName"], "n")).await;
    world.cached(updated.revision).await;
    world.list("").await;
    world.delete(&object).await.expect("deleted");
    assert_eq!(
        requests(&world.store.statistics()),
        ["get 1 0", "create 1 0", "update 1 0", "delete 1 0", "list 1 0", "getCurrentResourceVersion 1 0"]
    );
    assert_eq!(world.storage.round_trips(), 2);
    // One that exists fails for whoever asked; the engine has answered all the same.
    world.create(&pod("ns", "b")).await;
    world.store.create("ns", "b", &pod("ns", "b"), 0).await.expect_err("it exists");
    world.probe.unavailable.store(true, Ordering::SeqCst);
    world.get(&object, ReadAt::Latest).await.expect_err("unavailable");
    let found = requests(&world.store.statistics());
    assert!(found.contains(&"create 3 0".to_owned()) && found.contains(&"get 3 1".to_owned()), "{found:?}");
}

// TestWaitUntilFreshAndListTimeout
pub(crate) async fn objects_waits_and_failures_are_counted(world: World) {
    let created = world.create(&pod("ns", "a")).await;
    world.cached(created.revision).await;
    let statistics = world.store.statistics();
    assert_eq!((statistics.objects, statistics.bytes), (1, created.bytes.len()));
    assert_eq!(statistics.initializations.count, 1);
    // Read, decrypted, and no object.
    let damaged = world.write_raw("/registry/pods/ns/b", b"test:7").await;
    world.cached(damaged).await;
    let statistics = world.store.statistics();
    assert_eq!(statistics.objects, 2);
    assert!(1 <= statistics.decode_errors);
    // The cache does not learn of it in time.
    let waited = statistics.read_waits.count;
    world.probe.hold_watches(true);
    let request = ListRequest { at: ReadAt::NotOlderThan(damaged + 1), ..list("") };
    assert_eq!(world.in_time(world.store.list(request)).await.expect_err("in the future").code, 504);
    let statistics = world.store.statistics();
    assert_eq!(statistics.read_waits.count, waited + 1);
    assert!(3.0 <= statistics.read_waits.sum);
}

pub(crate) async fn changes_are_timed_until_a_watch_takes_them(world: World) {
    let mut watching = world.watch(watch("ns", None)).await;
    watching.live(&world, "ns").await;
    world.create(&pod("ns", "a")).await;
    world.create(&pod("other", "b")).await;
    watching.shown(1).await;
    // One for each event that a watch was given.
    assert_eq!(world.store.statistics().dispatch.count, 2);
}
