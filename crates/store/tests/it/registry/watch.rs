//! Watches: upstream's shared watch tests, and what this cache promises beyond.

use std::sync::Arc;
use std::time::Duration;

use coffer_store::cache::{BOOKMARK_BEFORE_END, BOOKMARK_PERIOD, MAX_QUEUED, MIN_HISTORY};
use coffer_store::kv::KvError;
use coffer_store::registry::{EventType, Registry, WatchOptions};
use coffer_types::Value;
use futures::StreamExt;

use super::world::*;

/// One step of a `RunTestWatch` case and what the watcher sees of it.
type Step = (Option<Value>, &'static str);

pub(crate) async fn watch_selects_and_follows(world: World) {
    let base = |ns: &str| pod(ns, "foo");
    let assigned = |ns: &str| with(pod(ns, "foo"), &["spec", "nodeName"], "bar");
    let selected = |object: Value| with(object, &["metadata", "labels", "select"], "true");
    for by_name in [false, true] {
        let ns = |number: usize| format!("test-ns-{number}-{by_name}");
        let cases: Vec<(&str, String, Select, Vec<Step>)> = vec![
            ("create a key", ns(1), Select::All, vec![(Some(base(&ns(1))), "ADDED")]),
            (
                "key updated to match predicate",
                ns(2),
                Select::Field("spec.nodeName", "bar"),
                vec![(Some(base(&ns(2))), ""), (Some(assigned(&ns(2))), "ADDED")],
            ),
            (
                "update",
                ns(3),
                Select::All,
                vec![(Some(base(&ns(3))), "ADDED"), (Some(assigned(&ns(3))), "MODIFIED")],
            ),
            (
                "delete because of being filtered",
                ns(4),
                Select::NotField("spec.nodeName", "bar"),
                vec![(Some(base(&ns(4))), "ADDED"), (Some(assigned(&ns(4))), "DELETED")],
            ),
            (
                "filtering",
                ns(5),
                Select::Label("select", "true"),
                vec![
                    (Some(selected(base(&ns(5)))), "ADDED"),
                    (Some(base(&ns(5))), "DELETED"),
                    (Some(selected(base(&ns(5)))), "ADDED"),
                    (Some(selected(assigned(&ns(5)))), "MODIFIED"),
                    (None, "DELETED"),
                ],
            ),
        ];
        for (name, namespace, select, steps) in cases {
            let from = world.list(&namespace).await.revision;
            let mut watching = world
                .watch(WatchOptions {
                    name: by_name.then(|| "foo".to_owned()),
                    predicate: Arc::new(select),
                    ..watch(&namespace, Some(from))
                })
                .await;
            // Another namespace whose name begins with this one's.
            world.put(&selected(assigned(&format!("{namespace}-bad")))).await;
            let mut previous = None;
            for (object, expected) in steps {
                let written = match &object {
                    Some(object) => world.put(object).await,
                    None => world.delete(&base(&namespace)).await.expect("deleted"),
                };
                if !expected.is_empty() {
                    let event = watching.event().await;
                    assert_eq!(show(&event), format!("{expected} {}", show_stored(&written)), "{name}");
                    let shown = &event.object.as_ref().expect("an object").bytes;
                    // DELETED shows what the watcher had, not what the object has become.
                    let content =
                        if expected == "DELETED" { &previous } else { &Some(written.bytes.clone()) };
                    assert_eq!(Some(shown), content.as_ref(), "{name}");
                }
                previous = Some(written.bytes.clone());
            }
            watching.nothing().await;
        }
    }
}

pub(crate) async fn watch_from_zero(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    let mut watching = world.watch(watch("test-ns", Some(0))).await;
    assert_eq!(watching.shown(1).await, [format!("ADDED {}", show_stored(&created))]);
    let updated = world.put(&with(object.clone(), &["spec", "nodeName"], "n")).await;
    assert_eq!(watching.shown(1).await, [format!("MODIFIED {}", show_stored(&updated))]);
    // What was there before the compaction is shown as it is now.
    world.compact(updated.revision).await;
    let mut watching = world.watch(watch("test-ns", Some(0))).await;
    assert_eq!(watching.shown(1).await, [format!("ADDED {}", show_stored(&updated))]);
    let deleted = world.delete(&object).await.expect("deleted");
    assert_eq!(watching.shown(1).await, [format!("DELETED {}", show_stored(&deleted))]);
}

pub(crate) async fn watch_from_non_zero(world: World) {
    let created = world.create(&pod("test-ns", "foo")).await;
    let mut watching = world.watch(watch("test-ns", Some(created.revision))).await;
    let updated = world.put(&with(pod("test-ns", "foo"), &["spec", "nodeName"], "n")).await;
    assert_eq!(watching.shown(1).await, [format!("MODIFIED {}", show_stored(&updated))]);
}

// TestDeleteTriggerWatch
pub(crate) async fn watch_delete_event_object_have_latest_rv(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    let mut watching = world.watch(watch("test-ns", Some(created.revision))).await;
    let deleted = world.delete(&object).await.expect("deleted");
    let event = watching.event().await;
    assert_eq!(event.event_type, EventType::Deleted);
    assert_eq!(event.object.as_ref().expect("an object").revision, deleted.revision);
    assert!(created.revision < event.revision);
}

pub(crate) async fn delayed_watch_delivery(world: World) {
    let created = world.create(&pod("test-ns", "foo")).await;
    let mut watching = world.watch(watch("test-ns", Some(created.revision))).await;
    watching.live(&world, "test-ns").await;
    let mut expected = Vec::new();
    for index in 0..2 * MAX_QUEUED {
        let stored = world.create(&pod("test-ns", &format!("foo-{index}"))).await;
        expected.push(format!("ADDED {}", show_stored(&stored)));
    }
    tokio::time::sleep(QUIET).await;
    // More than its queue holds: the rest comes from the history.
    assert_eq!(watching.shown(expected.len()).await, expected);
    watching.nothing().await;
}

/// TestWatcherTimeout: a watcher that never reads is ended once the history has left it behind, and slows nobody.
pub(crate) async fn a_slow_watcher_is_ended_and_slows_nobody(world: World) {
    let first = world.create(&pod("ns", "a")).await;
    let mut slow = world.watch(watch("", Some(first.revision))).await;
    let mut fast = world.watch(watch("", Some(first.revision))).await;
    slow.live(&world, "ns").await;
    fast.event().await;
    for index in 0..MIN_HISTORY + 2 * MAX_QUEUED {
        // Time passes, so that the history does not grow.
        world.clock.advance(Duration::from_secs(2));
        let stored = world.put(&with(pod("ns", "a"), &["spec", "nodeName"], &index.to_string())).await;
        assert_eq!(fast.shown(1).await, [format!("MODIFIED {}", show_stored(&stored))]);
    }
    // It gets what was queued for it, in order and without a gap, and then no error but an end.
    let mut last = first.revision + 1;
    let wait = || tokio::time::sleep(PATIENCE);
    while let Some(event) = tokio::select! { event = slow.0.next() => event, () = wait() => panic!("no end") }
    {
        let event = event.expect("no error");
        assert_eq!(event.revision, last + 1);
        last = event.revision;
    }
    assert!(last < world.current().await);
    let statistics = world.store.statistics();
    assert_eq!((statistics.terminated_watchers, statistics.capacity), (1, MIN_HISTORY));
    // Begin where it was it cannot go on.
    let mut again = world.watch(watch("", Some(first.revision))).await;
    let error = again.next().await.expect_err("too old");
    assert_eq!((error.code, &*error.reason), (410, "Expired"));
    let oldest = world.current().await - MIN_HISTORY as i64;
    assert_eq!(error.message, format!("too old resource version: {} ({oldest})", first.revision));
    again.ended().await;
    let mut from_oldest = world.watch(watch("", Some(oldest))).await;
    assert_eq!(from_oldest.event().await.revision, oldest + 1);
}

struct Semantics {
    bookmarks: bool,
    initial: Option<bool>,
    from: Begin,
    /// Whether the present state comes first.
    state: bool,
    /// Whether its end is marked.
    end: bool,
}

#[derive(Clone, Copy)]
enum Begin {
    Unset,
    Zero,
    First,
    Current,
}

/// RunWatchSemantics, TestSendInitialEventsBackwardCompatibility, TestInitialEventsEndBookmark.
pub(crate) async fn watch_semantics(world: World) {
    use Begin::{Current, First, Unset, Zero};
    let mut cases = Vec::new();
    for from in [Unset, Zero, First, Current] {
        for bookmarks in [true, false] {
            for initial in [true, false] {
                // Begin the first revision without the state, the history shows the creations.
                let state = initial || matches!(from, First);
                cases.push(Semantics {
                    bookmarks,
                    initial: Some(initial),
                    from,
                    state,
                    end: initial && bookmarks,
                });
            }
        }
    }
    cases.push(Semantics { bookmarks: false, initial: None, from: Zero, state: true, end: false });
    cases.push(Semantics { bookmarks: false, initial: None, from: Unset, state: true, end: false });
    for (index, case) in cases.into_iter().enumerate() {
        let namespace = format!("ns-{index}");
        let mut created = Vec::new();
        for name in ["1", "2", "3"] {
            created.push(format!("ADDED {}", show_stored(&*world.create(&pod(&namespace, name)).await)));
        }
        let current = world.current().await;
        world.cached(current).await;
        let from = match case.from {
            Unset => None,
            Zero => Some(0),
            First => Some(1),
            Current => Some(current),
        };
        let mut watching = world
            .watch(WatchOptions {
                send_initial_events: case.initial,
                bookmarks: case.bookmarks,
                ..watch(&namespace, from)
            })
            .await;
        if case.state {
            assert_eq!(watching.shown(3).await, created, "case {index}");
        }
        if case.end {
            let event = watching.event().await;
            assert!(event.initial_events_end && event.event_type == EventType::Bookmark, "case {index}");
            assert!(event.object.is_none() && current <= event.revision, "case {index}");
        }
        watching.nothing().await;
        let mut later = Vec::new();
        for name in ["4", "5"] {
            later.push(format!("ADDED {}", show_stored(&*world.create(&pod(&namespace, name)).await)));
        }
        assert_eq!(watching.shown(2).await, later, "case {index}");
        watching.nothing().await;
    }
}

pub(crate) async fn watch_semantic_initial_events_extended(world: World) {
    let mut expected = Vec::new();
    for name in ["1", "2", "3", "4", "5"] {
        expected.push(format!("ADDED {}", show_stored(&*world.create(&pod("ns-foo", name)).await)));
    }
    // Another namespace moves the revision on: the mark carries it.
    let other = world.create(&pod("other-ns-foo", "1")).await;
    expected.push(format!("END {}", other.revision));
    let options = WatchOptions { send_initial_events: Some(true), bookmarks: true, ..watch("ns-foo", None) };
    let mut watching = world.watch(options).await;
    assert_eq!(watching.shown(6).await, expected);
    watching.nothing().await;
}

pub(crate) async fn watch_list_match_single(world: World) {
    world.create(&pod("ns", "a")).await;
    let one = world.create(&pod("ns", "b")).await;
    world.create(&pod("ns", "bc")).await;
    let current = world.current().await;
    let options = WatchOptions {
        name: Some("b".to_owned()),
        send_initial_events: Some(true),
        bookmarks: true,
        predicate: Arc::new(Select::Field("metadata.name", "b")),
        ..watch("ns", None)
    };
    let mut watching = world.watch(options).await;
    let expected = [format!("ADDED {}", show_stored(&one)), format!("END {current}")];
    assert_eq!(watching.shown(2).await, expected);
    world.put(&with(pod("ns", "a"), &["spec", "nodeName"], "n")).await;
    watching.nothing().await;
}

// TestTooLargeResourceVersionErrorForWatchList
pub(crate) async fn too_large_resource_version_for_watch_list(world: World) {
    let current = world.create(&pod("ns", "a")).await.revision;
    let options =
        WatchOptions { send_initial_events: Some(true), bookmarks: true, ..watch("", Some(current + 1000)) };
    let mut watching = Watching(world.in_time(world.store.watch(options)).await.expect("a stream"));
    let error = watching.next().await.expect_err("future");
    assert_eq!((error.code, &*error.reason), (504, "Timeout"));
    watching.ended().await;
}

/// A watch from a revision that is not reached yet sees what comes after it.
pub(crate) async fn watcher_not_going_back_in_time(world: World) {
    let current = world.create(&pod("ns", "a")).await.revision;
    let options = WatchOptions { bookmarks: true, ..watch("", Some(current + 2)) };
    let mut watching = world.watch(options).await;
    world.clock.advance(BOOKMARK_PERIOD);
    watching.nothing().await;
    for index in 1..=3 {
        let stored = world.put(&with(pod("ns", "a"), &["spec", "nodeName"], &index.to_string())).await;
        if index < 3 {
            watching.nothing().await;
        } else {
            assert_eq!(watching.shown(1).await, [format!("MODIFIED {}", show_stored(&stored))]);
        }
    }
}

// TestWatchDispatchBookmarkEvents, TestCacherSendBookmarkEvents
pub(crate) async fn bookmarks_come_each_minute_and_before_the_end(world: World) {
    let created = world.create(&pod("ns", "a")).await;
    let timeout = BOOKMARK_PERIOD + Duration::from_secs(10);
    let options =
        WatchOptions { bookmarks: true, timeout: Some(timeout), ..watch("ns", Some(created.revision)) };
    let mut watching = world.watch(options).await;
    let mut without = world.watch(watch("ns", Some(created.revision))).await;
    // Changes that are not the watcher's move its bookmark on.
    let other = world.create(&pod("other", "x")).await;
    world.cached(other.revision).await;
    world.clock.advance(BOOKMARK_PERIOD - Duration::from_secs(1));
    watching.nothing().await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(watching.shown(1).await, [format!("BOOKMARK {}", other.revision)]);
    let left = timeout - BOOKMARK_PERIOD - BOOKMARK_BEFORE_END;
    world.clock.advance(left - Duration::from_secs(1));
    watching.nothing().await;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(watching.shown(1).await, [format!("BOOKMARK {}", other.revision)]);
    watching.nothing().await;
    without.nothing().await;
}

// RunOptionalTestWatchBookmarksWithCorrectResourceVersion
pub(crate) async fn bookmarks_are_never_ahead_of_events(world: World) {
    let world = Arc::new(world);
    let start = world.create(&pod("ns", "start")).await.revision;
    let options = WatchOptions { bookmarks: true, ..watch("ns", Some(start)) };
    let mut watching = world.watch(options).await;
    let writer = {
        let world = world.clone();
        tokio::spawn(async move {
            for index in 0..200 {
                world.create(&pod("ns", &format!("pod-{index}"))).await;
            }
        })
    };
    let (mut last, mut events) = (start, 0);
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    while events < 200 {
        tokio::select! {
            event = watching.event() => {
                if event.event_type == EventType::Bookmark {
                    assert!(last <= event.revision);
                } else {
                    assert!(last < event.revision, "{} after {last}", event.revision);
                    events += 1;
                }
                last = event.revision;
            }
            _ = ticks.tick() => world.clock.advance(BOOKMARK_PERIOD),
        }
    }
    writer.await.expect("written");
}

/// TestCachingDeleteEvents: all who watch everything get the same event, so that it is encoded once.
pub(crate) async fn watchers_share_events(world: World) {
    let from = world.create(&pod("ns", "a")).await.revision;
    let mut watches = Vec::new();
    for namespace in ["", "ns", ""] {
        watches.push(world.watch(watch(namespace, Some(from))).await);
    }
    world.create(&pod("ns", "b")).await;
    let mut events = Vec::new();
    for watching in &mut watches {
        events.push(watching.event().await);
    }
    assert!(events.iter().all(|event| Arc::ptr_eq(event, &events[0])));
    assert_eq!(world.store.watch_count(), 3);
    drop(watches);
    assert_eq!(world.store.watch_count(), 0);
}

// TestCacherDontMissEventsOnReinitialization
pub(crate) async fn a_broken_watch_of_the_engine_loses_nothing(world: World) {
    let first = world.create(&pod("ns", "a")).await;
    world.cached(first.revision).await;
    let mut watching = world.watch(watch("", Some(first.revision))).await;
    world.probe.break_watches(KvError::Unavailable("as the test wants it".to_owned()));
    let second = world.create(&pod("ns", "b")).await;
    // What was cached is served meanwhile.
    assert!(world.store.ready());
    let shown = world.in_time(watching.shown(1)).await;
    assert_eq!(shown, [format!("ADDED {}", show_stored(&second))]);
    // When the engine no longer knows what happened, watches end and the cache is filled anew.
    world.probe.break_watches(KvError::Compacted(second.revision));
    world.in_time(watching.ended()).await;
    world.in_time(world.wait_ready()).await;
    let third = world.create(&pod("ns", "c")).await;
    let mut watching = world.watch(watch("", Some(second.revision))).await;
    assert_eq!(watching.shown(1).await, [format!("ADDED {}", show_stored(&third))]);
}

/// The watches of a resource end when it goes (a CRD is deleted).
pub(crate) async fn closing_a_resource_ends_its_watches(world: World) {
    let mut watching = world.watch(watch("", None)).await;
    world.storage.close("", "pods");
    watching.ended().await;
}
