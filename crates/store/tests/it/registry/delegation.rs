//! What answers a read: the watch cache or the engine. Upstream's table of delegation, row by row.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::continue_token::ContinueToken;
use coffer_store::key::Origin;
use coffer_store::kv::Revision;
use coffer_store::registry::{ListRequest, ReadAt, Registry, WatchOptions};

use super::world::*;

/// What the engine was asked since the last call: pages of the resource, single objects, its revision.
fn asked(world: &World) -> String {
    let ranges = world.probe.take_ranges();
    let ranges = ranges.iter().map(|range| match &range.start[..] {
        b"/registry/health" => "revision",
        b"/registry/pods/" | b"/registry/pods/ns/" => "list",
        start if start.starts_with(b"/registry/pods/ns/a\0") => "list",
        b"/registry/pods/ns/a" => "get",
        start => panic!("{start:?}"),
    });
    ranges.collect::<Vec<_>>().join(" ")
}

fn token(revision: Revision) -> String {
    ContinueToken { revision, start: b"a\0".to_vec() }.encode().expect("text")
}

// TestShouldDelegateList, TestMatchExactResourceVersionFallback,
// TestGetListNonRecursiveCacheWithConsistentListFromCache, TestComputeListLimit
pub(crate) async fn should_delegate_list(world: World) {
    let old = world.create(&pod("ns", "a")).await.revision;
    world.create(&pod("ns", "b")).await;
    // A cache that has not seen how it came to that.
    world.storage.close("", "pods");
    let again = world.storage.open(config("", "pods", Origin::BuiltIn, true)).expect("a store");
    let world = world.with_store(again);
    world.wait_ready().await;
    let recent = world.create(&pod("ns", "c")).await.revision;
    world.put(&with(pod("ns", "c"), &["spec", "nodeName"], "n")).await;
    let last = world.create(&pod("ns", "d")).await.revision;
    world.cached(last).await;
    let at = |at| ListRequest { at, ..list("ns") };
    let going_on = |revision| ListRequest { continue_token: token(revision), ..list("ns") };
    let one = |at| ListRequest { name: Some("a".to_owned()), at, ..list("ns") };
    // What the engine is asked when its progress can be asked for, and when not.
    let rows: Vec<(&str, ListRequest, [&str; 2], &str)> = vec![
        ("unset", at(ReadAt::Latest), ["revision", "list"], "abcd"),
        ("0", at(ReadAt::Any), ["", ""], "abcd"),
        // All items, and no token.
        ("0 with a limit", ListRequest { limit: 1, ..at(ReadAt::Any) }, ["", ""], "abcd"),
        ("not older than", at(ReadAt::NotOlderThan(recent)), ["", ""], "abcd"),
        ("exact, in the history", at(ReadAt::Exact(recent)), ["", ""], "abc"),
        ("exact, before it", at(ReadAt::Exact(old)), ["list", "list"], "a"),
        ("continue, in the history", going_on(recent), ["", ""], "bc"),
        ("continue, before it", going_on(old), ["list", "list"], ""),
        ("continue at the latest", going_on(-1), ["revision", "list"], "bcd"),
        ("one, unset", one(ReadAt::Latest), ["revision", "get"], "a"),
        ("one, 0", one(ReadAt::Any), ["", ""], "a"),
        ("one, exact", one(ReadAt::Exact(recent)), ["get", "get"], "a"),
    ];
    for (name, request, expected, items) in rows {
        for (silent, expected) in [false, true].into_iter().zip(expected) {
            world.probe.no_progress.store(silent, Ordering::SeqCst);
            world.probe.take_ranges();
            let again = ListRequest {
                namespace: request.namespace.clone(),
                name: request.name.clone(),
                continue_token: request.continue_token.clone(),
                predicate: request.predicate.clone(),
                ..request
            };
            let found = world.store.list(again).await.expect(name);
            let found: String = found.items.iter().map(|item| item.name.as_str()).collect();
            assert_eq!((found.as_str(), asked(&world).as_str()), (items, expected), "{name}, {silent}");
        }
    }
    // What the cache's history has lost is read from the engine, until that has forgotten it too.
    world.probe.no_progress.store(false, Ordering::SeqCst);
    world.compact(last).await;
    world.probe.take_ranges();
    let error = world.store.list(at(ReadAt::Exact(recent))).await.expect_err("compacted");
    assert_eq!((error.code, asked(&world).as_str()), (410, "list"));
}

pub(crate) async fn gets_are_answered_by_the_cache_when_they_may_be_older(world: World) {
    let object = pod("ns", "a");
    let created = world.create(&object).await.revision;
    world.cached(created).await;
    for (at, expected) in [(ReadAt::Latest, "get"), (ReadAt::Any, ""), (ReadAt::NotOlderThan(created), "")] {
        world.probe.take_ranges();
        assert_eq!(world.get(&object, at).await.expect("there").revision, created);
        assert_eq!(asked(&world), expected, "{at:?}");
    }
}

// TestWatchCacheBypass
pub(crate) async fn watches_are_always_answered_by_the_cache(world: World) {
    let created = world.create(&pod("ns", "a")).await.revision;
    world.cached(created).await;
    for (from, initial, expected) in [
        (None, None, ""),
        (Some(0), None, ""),
        (Some(created), None, ""),
        (Some(0), Some(true), ""),
        (None, Some(true), "revision"),
        (None, Some(false), "revision"),
    ] {
        world.probe.take_ranges();
        let options = WatchOptions { send_initial_events: initial, ..watch("ns", from) };
        let mut watching = world.watch(options).await;
        let shown = initial == Some(true) || (initial.is_none() && from.unwrap_or(0) == 0);
        if shown {
            assert_eq!(watching.shown(1).await, [format!("ADDED ns/a@{created}")]);
        }
        watching.nothing().await;
        assert_eq!(asked(&world), expected, "{from:?} {initial:?}");
    }
    // Where the end of the initial events could not be told, that is told.
    world.probe.no_progress.store(true, Ordering::SeqCst);
    let options = WatchOptions { send_initial_events: Some(true), bookmarks: true, ..watch("ns", None) };
    let mut watching = world.watch(options).await;
    let error = watching.next().await.expect_err("unsupported");
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            500,
            "Internal error occurred: a watch stream was requested by the client but the required storage \
             feature RequestWatchProgress is disabled"
        )
    );
    watching.ended().await;
}

/// Before the cache is filled only lists that cost the engine little go there.
pub(crate) async fn an_unfilled_cache_delegates_bounded_lists(engine: super::world::Engine) {
    let world = World::unready(engine, 0);
    world.wait_ready().await;
    let created = world.create(&pod("ns", "a")).await;
    world.storage.close("", "pods");
    // Filling waits behind the gate for good.
    world.probe.close_gate(true);
    let again = world.storage.open(config("", "pods", Origin::BuiltIn, true)).expect("a store");
    let world = world.with_store(again);
    tokio::time::sleep(QUIET).await;
    world.probe.unavailable.store(true, Ordering::SeqCst);
    world.probe.close_gate(false);
    let selecting = || Arc::new(Select::Field("metadata.name", "a"));
    for (request, code) in [
        (list("ns"), 429),
        (ListRequest { at: ReadAt::Any, ..list("ns") }, 429),
        (ListRequest { limit: 5, predicate: selecting(), ..list("ns") }, 429),
        // The engine is asked, and is not there.
        (ListRequest { limit: 5, ..list("ns") }, 500),
    ] {
        let error = world.in_time(world.store.list(request)).await.expect_err("not ready");
        assert_eq!(error.code, code, "{error}");
    }
    world.probe.unavailable.store(false, Ordering::SeqCst);
    let bounded = world.store.list(ListRequest { limit: 5, ..list("ns") }).await.expect("a list");
    assert_eq!(show_list(&bounded), [show_stored(&created)]);
}
