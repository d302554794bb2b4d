//! What reads say of the store's revision, and at which revision they read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coffer_store::registry::{List, ListRequest, ReadAt, Registry};

use super::world::*;

// TestLinearizedReadRevisionInvariant: a read is no change, be it a linearizable one.
pub(crate) async fn linearized_read_revision_invariant(world: World) {
    let object = pod("ns", "testkey");
    let created = world.create(&object).await;
    for uncached in [false, true] {
        world.probe.no_progress.store(uncached, Ordering::SeqCst);
        for _ in 0..5 {
            world.get(&object, ReadAt::Latest).await.expect("a get");
            world.read_raw("/registry/pods/ns/testkey").await.expect("stored");
        }
        assert_eq!(world.list("").await.revision, created.revision);
    }
}

// TestGetCurrentResourceVersion
pub(crate) async fn get_current_resource_version(world: World) {
    let object = pod("ns", "pod-1");
    let created = world.create(&object).await;
    // An empty list tells nothing but the revision.
    assert_eq!(world.list("empty").await.revision, created.revision);
    let unrelated = world.write_raw("compact_rev_key", created.revision.to_string().as_bytes()).await;
    assert!(created.revision < unrelated);
    for uncached in [false, true] {
        world.probe.no_progress.store(uncached, Ordering::SeqCst);
        assert_eq!(world.list("empty").await.revision, unrelated);
        assert_eq!(world.get(&object, ReadAt::Latest).await.expect("a get").revision, created.revision);
    }
}

// RunTestCompactRevision
pub(crate) async fn compact_revision(world: World) {
    world.create(&pod("ns", "a")).await;
    for uncached in [false, true] {
        world.probe.no_progress.store(uncached, Ordering::SeqCst);
        let current = world.list("").await.revision;
        let exact = || ListRequest { at: ReadAt::Exact(current), ..list("") };
        assert_eq!(world.store.list(exact()).await.expect("not compacted").revision, current);
        let next = world.increase_revision().await;
        world.compact(next).await;
        let error = world.store.list(exact()).await.expect_err("compacted");
        assert_eq!((error.code, &*error.reason), (410, "Expired"));
        assert_eq!(error.message, "The resourceVersion for the provided list is too old.");
        let at_compaction = ListRequest { at: ReadAt::Exact(next), ..list("") };
        assert_eq!(world.store.list(at_compaction).await.expect("not compacted").revision, next);
    }
}

/// RunTestListResourceVersionMatch: whatever is written during a list, it can be had again at its revision.
pub(crate) async fn list_resource_version_match(world: World) {
    let world = Arc::new(world);
    let even = |index: usize| {
        let text = index.is_multiple_of(2).to_string();
        with(pod("ns", &format!("pod-{index}")), &["metadata", "labels", "even"], &text)
    };
    for index in 0..5 {
        world.create(&even(index)).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (world, stop) = (world.clone(), stop.clone());
        tokio::spawn(async move {
            for index in 5.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                world.create(&even(index)).await;
            }
        })
    };
    let shown = |list: &List| (show_list(list), list.revision, list.continue_token.clone());
    for round in 0..20 {
        world.probe.no_progress.store(round % 2 == 1, Ordering::SeqCst);
        let read = async |at| {
            let predicate = Arc::new(Select::Label("even", "true"));
            let request = ListRequest { at, limit: 4, predicate, ..list("") };
            world.store.list(request).await.expect("a list")
        };
        let first = read(ReadAt::Latest).await;
        assert_eq!(shown(&read(ReadAt::Exact(first.revision)).await), shown(&first));
        let newer = read(ReadAt::NotOlderThan(first.revision)).await;
        assert!(first.revision <= newer.revision);
        assert_eq!(shown(&read(ReadAt::Exact(newer.revision)).await), shown(&newer));
    }
    stop.store(true, Ordering::SeqCst);
    writer.await.expect("written");
}

/// TestValidateListOptions, as far as a store decides; the rest is decided where the query is read.
pub(crate) async fn validate_list_options(world: World) {
    let mut revisions = Vec::new();
    for name in ["a", "continue", "d"] {
        revisions.push(world.create(&pod("ns", name)).await.revision);
    }
    let last = revisions[2];
    let token = |revision: i64| {
        let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":{revision},"start":"ns/continue"}}"#);
        URL_SAFE_NO_PAD.encode(json)
    };
    world.delete(&pod("ns", "d")).await.expect("deleted");
    let gone = world.current().await;
    for (case, at, continue_token, expected) in [
        (
            "specifying resource version when using continue",
            ReadAt::NotOlderThan(last),
            token(last),
            Err("specifying resource version is not allowed when using continue"),
        ),
        ("use continueRV", ReadAt::Any, token(last), Ok((last, 2))),
        ("use continueRV with empty rv", ReadAt::Latest, token(last), Ok((last, 2))),
        (
            "continueRV = 0",
            ReadAt::Latest,
            token(0),
            Err("invalid continue token: continue key is not valid: incorrect encoded start \
                 resourceVersion (version meta.k8s.io/v1)"),
        ),
        ("continueRV < 0", ReadAt::Latest, token(-1), Ok((gone, 1))),
        ("default", ReadAt::Latest, String::new(), Ok((gone, 2))),
        ("NotOlderThan", ReadAt::NotOlderThan(last), String::new(), Ok((gone, 2))),
        ("Exact", ReadAt::Exact(last), String::new(), Ok((last, 3))),
    ] {
        for uncached in [false, true] {
            world.probe.no_progress.store(uncached, Ordering::SeqCst);
            world.cached(gone).await;
            let request = ListRequest { at, continue_token: continue_token.clone(), ..list("") };
            match (world.store.list(request).await, expected) {
                (Ok(list), Ok(expected)) => assert_eq!((list.revision, list.items.len()), expected, "{case}"),
                (Err(error), Err(text)) => assert_eq!((error.code, error.message.as_str()), (400, text)),
                (result, _) => panic!("{case}: {result:?}"),
            }
        }
    }
}
