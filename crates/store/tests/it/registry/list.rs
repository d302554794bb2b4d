//! Lists: pages, consistency, and what a cache that is not ready answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::cache::{FIRST_PAGE, PAGE_BYTES, PROGRESS_PERIOD};
use coffer_store::continue_token::ContinueToken;
use coffer_store::key::Origin;
use coffer_store::registry::{List, ListRequest, ReadAt, Registry};

use super::world::*;

pub(crate) async fn consistent_list(world: World) {
    let created = world.create(&pod("first", "bar")).await;
    // A write of another resource: the cache has to learn that nothing has happened here.
    let current = world.increase_revision().await;
    let list = world.list("").await;
    assert_eq!((show_list(&list), list.revision), (vec![show_stored(&created)], current));
    let statistics = world.store.statistics();
    assert_eq!((statistics.consistent_reads.cached, statistics.consistent_reads.fallback), (1, 0));
    assert_eq!((statistics.objects, statistics.revision), (1, current));
    assert_eq!((statistics.received, statistics.dispatched, statistics.initializations.count), (1, 1, 1));
    assert_eq!(world.storage.statistics(), [statistics]);
}

// TestConsistentReadFallback
pub(crate) async fn consistent_read_fallback(world: World) {
    let created = world.create(&pod("first", "bar")).await;
    world.cached(created.revision).await;
    world.probe.hold_watches(true);
    let second = world.create(&pod("first", "foo")).await;
    world.probe.take_ranges();
    let counted = |world: &World| {
        let reads = world.store.statistics().consistent_reads;
        (reads.cached, reads.fallback)
    };
    let before = counted(&world);
    let list = world.in_time(world.store.list(list(""))).await.expect("from the engine");
    assert_eq!(counted(&world), (before.0, before.1 + 1));
    assert_eq!(show_list(&list), [show_stored(&created), show_stored(&second)]);
    let asked = world.probe.take_ranges();
    assert_eq!(asked.iter().filter(|range| &range.start[..] == b"/registry/pods/").count(), 1, "{asked:?}");
    // What need not be fresh does not wait.
    let request = ListRequest { at: ReadAt::Any, ..super::world::list("") };
    assert_eq!(show_list(&world.store.list(request).await.expect("cached")), [show_stored(&created)]);
}

// TestConditionalProgressRequester
pub(crate) async fn conditional_progress_requester(world: World) {
    let other = world.storage.open(config("", "nodes", Origin::BuiltIn, false)).expect("a store");
    let created = world.create(&pod("ns", "a")).await;
    world.cached(created.revision).await;
    world.pass(PROGRESS_PERIOD * 3).await;
    world.probe.take_progress_asked();
    // While nobody waits, nothing is asked for.
    world.pass(PROGRESS_PERIOD * 3).await;
    assert_eq!(world.probe.take_progress_asked().len(), 0);
    // While one waits, its own watch is asked, again and again.
    world.probe.hold_watches(true);
    let request = ListRequest { at: ReadAt::NotOlderThan(created.revision + 1), ..list("") };
    assert_eq!(world.in_time(world.store.list(request)).await.expect_err("in the future").code, 504);
    let asked = world.probe.take_progress_asked();
    assert!(2 <= asked.len() && asked.iter().all(|start| start == "/registry/pods/"), "{asked:?}");
    // And then no more.
    world.pass(PROGRESS_PERIOD * 3).await;
    world.probe.take_progress_asked();
    world.pass(PROGRESS_PERIOD * 3).await;
    assert_eq!(world.probe.take_progress_asked().len(), 0);
    drop(other);
}

pub(crate) async fn get_list_non_recursive(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    let updated = world.put(&with(object.clone(), &["spec", "nodeName"], "n1")).await;
    world.create(&pod("test-ns", "foobar")).await;
    let current = world.current().await;
    for (name, at, select, expected) in [
        ("foo", ReadAt::Latest, Select::All, Some(&updated)),
        ("foo", ReadAt::NotOlderThan(current), Select::All, Some(&updated)),
        ("foo", ReadAt::Exact(created.revision), Select::All, Some(&created)),
        ("foo", ReadAt::Exact(updated.revision), Select::All, Some(&updated)),
        ("foo", ReadAt::Latest, Select::Field("spec.nodeName", "n1"), Some(&updated)),
        ("foo", ReadAt::Latest, Select::NotField("spec.nodeName", "n1"), None),
        ("fo", ReadAt::Latest, Select::All, None),
    ] {
        let request =
            ListRequest { name: Some(name.to_owned()), at, predicate: Arc::new(select), ..list("test-ns") };
        let list = world.store.list(request).await.expect("a list");
        let expected: Vec<_> = expected.iter().map(|stored| show_stored(stored)).collect();
        assert_eq!(show_list(&list), expected, "{name} {at:?} {select:?}");
        match at {
            ReadAt::Exact(revision) => assert_eq!(list.revision, revision),
            _ => assert_eq!(list.revision, current),
        }
    }
    let request = ListRequest {
        name: Some("foo".to_owned()),
        at: ReadAt::NotOlderThan(current + 1000),
        ..list("test-ns")
    };
    assert_eq!(world.in_time(world.store.list(request)).await.expect_err("future").code, 504);
}

/// S1 and RunTestGetListRecursivePrefix: a namespace, or a resource, whose name begins with another's.
pub(crate) async fn s1_no_list_or_watch_reaches_a_sibling(world: World) {
    for (namespace, name) in [("a", "x"), ("ab", "x"), ("a-b", "x"), ("a", "y")] {
        world.create(&pod(namespace, name)).await;
    }
    assert_eq!(world.list("a").await.items.len(), 2);
    assert_eq!(world.list("ab").await.items.len(), 1);
    assert_eq!(world.list("").await.items.len(), 4);
    let open = |plural: &str| {
        let origin = coffer_store::key::Origin::Extension;
        world.storage.open(config("acme.example", plural, origin, true)).expect("a store")
    };
    let (widgets, widgetsx) = (open("widgets"), open("widgetsx"));
    let widget = pod("ns", "w");
    widgetsx.create("ns", "w", &widget, 0).await.expect("created");
    let own = widgets.create("ns", "own", &widget, 0).await.expect("created");
    let mut watching = Watching(widgets.watch(watch("", Some(own.revision))).await.expect("a watch"));
    let foreign = widgetsx.create("ns", "w2", &widget, 0).await.expect("created");
    for at in [ReadAt::Latest, ReadAt::Any, ReadAt::NotOlderThan(foreign.revision)] {
        for namespace in ["", "ns"] {
            let request = ListRequest { at, ..list(namespace) };
            let items = widgets.list(request).await.expect("a list").items;
            assert!(items.iter().all(|item| item.name == "own"), "{at:?}");
        }
    }
    watching.nothing().await;
    for namespace in ["..", ".", "%2e%2e", "a/b", "../widgetsx"] {
        let error = widgets.list(list(namespace)).await.expect_err(namespace);
        assert_eq!(error.code, 400, "{namespace}");
        let mut stream = Watching(widgets.watch(watch(namespace, None)).await.expect("a stream"));
        assert_eq!(stream.next().await.expect_err(namespace).code, 400);
        stream.ended().await;
    }
}

// TestPrepareContinueTokenRemainingItemCount
pub(crate) async fn list_paging(world: World) {
    for limit in 1..=6 {
        let namespace = format!("ns-{limit}");
        for name in ["a", "b", "c", "d", "e"] {
            world.create(&pod(&namespace, name)).await;
        }
        let revision = world.current().await;
        let mut names = String::new();
        let mut continue_token = String::new();
        let mut calls = 0;
        loop {
            let page = ListRequest { limit, continue_token, ..list(&namespace) };
            let page = world.store.list(page).await.expect("a page");
            calls += 1;
            assert_eq!(page.revision, revision);
            names.extend(page.items.iter().map(|item| item.name.as_str()));
            let left = i64::try_from(5 - names.len()).expect("small");
            assert_eq!(page.remaining, (0 < left).then_some(left));
            if page.continue_token.is_empty() {
                break;
            }
            // What happens between the pages is not seen.
            world.put(&with(pod(&namespace, "e"), &["spec", "nodeName"], &calls.to_string())).await;
            let _ = world.delete(&pod(&namespace, "d")).await;
            world.put(&pod(&namespace, "bb")).await;
            continue_token = page.continue_token;
        }
        assert_eq!((names.as_str(), calls), ("abcde", 5_usize.div_ceil(limit)), "limit {limit}");
    }
}

pub(crate) async fn list_pagination_rare_object(world: World) {
    for index in 0..1000 {
        world.create(&pod("test-ns", &format!("pod-{index}"))).await;
    }
    let request = || ListRequest {
        limit: 1,
        predicate: Arc::new(Select::Field("metadata.name", "pod-999")),
        ..list("")
    };
    let cached = world.store.list(request()).await.expect("a list");
    // And from the engine, with pages that grow.
    world.probe.no_progress.store(true, Ordering::SeqCst);
    world.probe.take_ranges();
    let read = world.store.list(request()).await.expect("a list");
    let sizes: Vec<_> = world.probe.take_ranges().iter().map(|range| range.limit).collect();
    assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
    for list in [cached, read] {
        assert_eq!((list.items.len(), list.continue_token.as_str(), list.remaining), (1, "", None));
        assert_eq!(list.items[0].name, "pod-999");
    }
}

pub(crate) async fn list_continuation_with_filter(world: World) {
    for (namespace, name) in [("1", "foo"), ("2", "bar"), ("3", "foo"), ("4", "foo")] {
        world.create(&pod(namespace, name)).await;
    }
    let select = Arc::new(Select::NotField("metadata.name", "bar"));
    for uncached in [false, true] {
        world.probe.no_progress.store(uncached, Ordering::SeqCst);
        let request = ListRequest { limit: 2, predicate: select.clone(), ..list("") };
        let first = world.store.list(request).await.expect("a page");
        let namespaces =
            |list: &List| list.items.iter().map(|item| item.namespace.clone()).collect::<String>();
        assert_eq!((namespaces(&first).as_str(), first.remaining), ("13", None));
        let request = ListRequest {
            limit: 2,
            continue_token: first.continue_token,
            predicate: select.clone(),
            ..list("")
        };
        let second = world.store.list(request).await.expect("a page");
        assert_eq!((namespaces(&second).as_str(), second.continue_token.as_str()), ("4", ""));
        assert_eq!(second.revision, first.revision);
    }
}

pub(crate) async fn list_inconsistent_continuation(world: World) {
    for (namespace, name) in [("first", "bar"), ("second", "bar"), ("second", "foo")] {
        world.create(&pod(namespace, name)).await;
    }
    let first = world.store.list(ListRequest { limit: 1, ..list("") }).await.expect("a page");
    assert_eq!(first.items[0].namespace, "first");
    let updated = world.put(&with(pod("second", "foo"), &["metadata", "labels", "state"], "new")).await;
    world.cached(updated.revision).await;
    world.compact(updated.revision).await;
    let request = |token: &str| ListRequest { continue_token: token.to_owned(), ..list("") };
    let error = world.store.list(request(&first.continue_token)).await.expect_err("expired");
    assert_eq!((error.code, &*error.reason), (410, "Expired"));
    assert_eq!(
        error.message,
        "The provided continue parameter is too old to display a consistent list result. You can start a \
         new list without the continue parameter, or use the continue token in this response to retrieve \
         the remainder of the results. Continuing with the provided token results in an inconsistent list - \
         objects that were created, modified, or deleted between the time the first chunk was returned and \
         now may show up in the list."
    );
    let token = ContinueToken::decode(&error.continue_token).expect("a token");
    assert_eq!(token, ContinueToken { revision: -1, start: b"first/bar\0".to_vec() });
    let request = ListRequest { limit: 1, ..request(&error.continue_token) };
    let second = world.store.list(request).await.expect("a page");
    assert_eq!(show_list(&second)[0].split('@').next(), Some("second/bar"));
    assert!(updated.revision <= second.revision);
    let request = ListRequest { limit: 1, continue_token: second.continue_token, ..list("") };
    let third = world.store.list(request).await.expect("a page");
    assert_eq!(show_list(&third), [show_stored(&updated)]);
    assert_eq!((third.revision, third.continue_token.as_str()), (second.revision, ""));
}

// TestRetryAfterForUnreadyCache, TestWatchNotHangingOnStartupFailure, and what is served nevertheless.
pub(crate) async fn an_unready_cache_answers_429(engine: Engine) {
    let world = World::unready(engine, 0);
    world.probe.unavailable.store(true, Ordering::SeqCst);
    // The first list of the cache fails, or has just come through.
    let world = {
        world.storage.close("", "pods");
        let store = world
            .storage
            .open(config("", "pods", coffer_store::key::Origin::BuiltIn, true))
            .expect("a store");
        world.with_store(store)
    };
    let error = world.in_time(world.store.list(list(""))).await.expect_err("not ready");
    assert_eq!((error.code, &*error.reason), (429, "TooManyRequests"));
    assert!(error.message.starts_with("storage is (re)initializing"), "{error}");
    assert_eq!(error.details.expect("details").retry_after_seconds, 1);
    let error = world.in_time(world.store.watch(watch("", None))).await.err().expect("not ready");
    assert_eq!(error.code, 429);
    world.probe.unavailable.store(false, Ordering::SeqCst);
    let created = world.create(&pod("ns", "a")).await;
    // Bounded lists and gets go to the engine meanwhile.
    let bounded = world.store.list(ListRequest { limit: 5, ..list("") }).await.expect("a list");
    assert_eq!(show_list(&bounded), [show_stored(&created)]);
    assert_eq!(world.get(&pod("ns", "a"), ReadAt::Any).await.expect("a get").revision, created.revision);
    // It is filled as soon as it can be.
    assert_eq!(world.in_time(world.store.list(list(""))).await.expect("a list").items.len(), 1);
}

/// Many consistent reads at once cost few round trips, and none gets an answer from before it asked.
pub(crate) async fn consistent_reads_share_round_trips(world: World) {
    let created = world.create(&pod("ns", "a")).await;
    let created_at = created.revision;
    world.cached(created_at).await;
    world.probe.take_trips();
    world.probe.close_gate(true);
    let world = Arc::new(world);
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let world = world.clone();
        reads.spawn(async move {
            let list = world.list("").await;
            assert!(created_at <= list.revision);
            assert_eq!(list.items.len(), 1);
        });
    }
    for number in 0..100 {
        let world = world.clone();
        // Lists and gets, of what is there and of what is not: all in one.
        let name = if number % 4 == 0 { "a".to_owned() } else { format!("missing-{number}") };
        reads.spawn(async move {
            let found = world.get(&pod("ns", &name), ReadAt::Latest).await;
            match name.as_str() {
                "a" => assert_eq!(found.expect("there").revision, created_at),
                _ => assert_eq!(found.expect_err("absent").code, 404),
            }
        });
    }
    tokio::time::sleep(QUIET).await;
    world.probe.close_gate(false);
    while let Some(read) = reads.join_next().await {
        read.expect("no panic");
    }
    let trips = world.probe.take_trips();
    assert!((1..=3).contains(&trips), "{trips} round trips for 200 reads");
}

// TestGetCacheBypass: a get without a revision is never older than what the store has, however far the
// cache is behind, and costs no more than one round trip when it is not.
pub(crate) async fn get_cache_bypass(world: World) {
    let object = pod("ns", "a");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    world.probe.take_trips();
    let found = world.get(&object, ReadAt::Latest).await.expect("there");
    assert_eq!((found.revision, world.probe.take_trips()), (created.revision, 1));
    world.probe.hold_watches(true);
    let updated = world.put(&with(object.clone(), &["spec", "nodeName"], "n1")).await;
    let other = world.create(&pod("ns", "b")).await;
    for (of, expected) in [(&object, &updated), (&pod("ns", "b"), &other)] {
        let found = world.get(of, ReadAt::Latest).await.expect("there");
        assert_eq!(show_stored(&found), show_stored(expected));
        assert_eq!(world.decode(&found), world.decode(expected));
    }
    // What may be older is.
    let cached = world.get(&object, ReadAt::Any).await.expect("there");
    assert_eq!(cached.revision, created.revision);
    world.delete(&object).await.expect("deleted");
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("deleted").code, 404);
    world.probe.unavailable.store(true, Ordering::SeqCst);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("no store").code, 500);
    assert!(world.get(&object, ReadAt::Any).await.is_ok());
}

/// Filling holds few objects twice, however many and large they are, and reads them all at one revision.
pub(crate) async fn a_cache_is_filled_in_pages_of_bounded_size(world: World) {
    let (small, large) = (FIRST_PAGE, 4 * FIRST_PAGE + 1);
    let text = "x".repeat(PAGE_BYTES / 100);
    for number in 0..small + large {
        let value = format!(
            r#"test:{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"ns","name":"p{number:04}"}},"text":"{}"}}"#,
            if number < small { "" } else { &text }
        );
        world.write_raw(&format!("/registry/pods/ns/p{number:04}"), value.as_bytes()).await;
    }
    let current = world.current().await;
    world.storage.close("", "pods");
    world.probe.take_ranges();
    let again = world.storage.open(config("", "pods", Origin::BuiltIn, true)).expect("a store");
    let world = world.with_store(again);
    world.wait_ready().await;
    let asked = world.probe.take_ranges();
    let limits: Vec<i64> = asked.iter().map(|range| range.limit).collect();
    // The small ones promise much, and are not believed at once; the first large ones say better.
    assert_eq!(limits[..2], [FIRST_PAGE, 4 * FIRST_PAGE]);
    assert!(limits.len() == 3 && (90..=100).contains(&limits[2]), "{limits:?}");
    assert!(asked[1..].iter().all(|range| range.revision == current), "{asked:?}");
    let list = world.list("").await;
    assert_eq!(i64::try_from(list.items.len()), Ok(small + large));
}
