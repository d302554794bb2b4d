//! Values that cannot be decrypted or decoded: named, isolated, removable.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::registry::{ListRequest, MAX_UNREADABLE_NAMED, ReadAt, Registry, WatchOptions};
use coffer_types::Status;

use super::world::*;

const REFUSED: &str = "data from the storage is not transformable revision=0: the value cannot be decrypted";

/// What follows where something can be done about it.
const WAY_OUT: &str = "; give the server the key that it was written under, or delete it unread with the \
                       delete option ignoreStoreReadErrorWithClusterBreakingPotential=true, for which the \
                       verb unsafe-delete-ignore-read-errors is needed";

/// Upstream decrypts for each GET, and answers 500 from the moment when the key is gone. Here the cache holds what
/// was decrypted: a GET asks the engine only whether that is still the newest.
pub(crate) async fn a_value_whose_key_is_gone_is_answered_while_it_is_cached(world: World) {
    let object = pod("ns", "a");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    let key = "/registry/pods/ns/a";
    let stored = world.read_raw(key).await.expect("stored");
    world.transformer.other_key.store(true, Ordering::SeqCst);
    for at in [ReadAt::Latest, ReadAt::Any] {
        let got = world.get(&object, at).await.expect("held");
        assert_eq!((got.revision, world.decode(&got)), (created.revision, world.decode(&created)));
    }
    // The same bytes once more, under a revision that the cache has not decrypted.
    let revision = world.write_raw(key, &stored).await;
    world.cached(revision).await;
    for at in [ReadAt::Latest, ReadAt::Any] {
        let error = world.get(&object, at).await.expect_err("no key");
        assert_eq!((error.code, &*error.reason), (500, "InternalError"));
    }
    // With the key it is back.
    world.transformer.other_key.store(false, Ordering::SeqCst);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect("readable").revision, revision);
}

/// RunTestTransformationFailure, K21 and K23.
pub(crate) async fn k21_k23_transformation_failure(world: World) {
    let good = world.create(&pod("first", "bar")).await;
    let bad = pod("second", "baz");
    let revision = world.write_raw("/registry/pods/second/baz", b"otherprefix!{}").await;
    world.cached(revision).await;
    assert_eq!(world.store.unreadable(), 1);
    // The list fails naming it: nothing is left out silently, from the cache and from the engine.
    let expected = format!(
        "failed to read one or more pods from the storage: StorageError: corrupt object, Code: 7, Key: \
         /registry/pods/second/baz, ResourceVersion: 0, AdditionalErrorMsg: {REFUSED}"
    );
    for at in [ReadAt::Latest, ReadAt::Any, ReadAt::Exact(revision)] {
        let error = world.store.list(ListRequest { at, ..list("") }).await.expect_err("unreadable");
        assert_eq!((error.code, &*error.reason), (500, "StoreReadError"));
        assert_eq!(error.message, expected);
        let details = error.details.expect("details");
        assert_eq!((details.kind.as_str(), details.name.as_str()), ("pods", "list"));
        assert_eq!(details.causes[0].field, "/registry/pods/second/baz");
        assert_eq!(details.causes[0].reason, "UnexpectedServerResponse");
    }
    // The resource is up all the same.
    assert!(world.store.ready());
    assert_eq!(show_list(&world.list("first").await), [show_stored(&good)]);
    let page = world.store.list(ListRequest { limit: 1, ..list("") }).await.expect("a page without it");
    assert_eq!(show_list(&page), [show_stored(&good)]);
    for at in [ReadAt::Latest, ReadAt::Any] {
        assert_eq!(world.get(&pod("first", "bar"), at).await.expect("readable").revision, good.revision);
        let error = world.get(&bad, at).await.expect_err("unreadable");
        assert_eq!((error.code, &*error.reason), (500, "InternalError"));
        let expected = format!(
            "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /pods/second/baz, \
             ResourceVersion: 0, AdditionalErrorMsg: {REFUSED}{WAY_OUT}"
        );
        assert_eq!(error.message, expected);
        // Upstream's text is for the log.
        assert_eq!(error.internal.as_deref(), Some("value does not have the expected prefix"));
    }
    let on_write = format!("Internal error occurred: {REFUSED}{WAY_OUT}");
    let error = world.update_with(&bad, false, |_| Ok(pod("second", "baz"))).await.expect_err("update");
    assert_eq!((error.code, &*error.reason, error.message), (500, "InternalError", on_write.clone()));
    let error = world.delete(&bad).await.expect_err("delete");
    assert_eq!((error.code, error.message), (500, on_write));
    // Only the deletion that asks for it removes it, and not when it is tried only.
    world.store.delete_unreadable("second", "baz", true).await.expect("could be removed");
    assert_eq!(world.get(&bad, ReadAt::Latest).await.expect_err("still there").code, 500);
    world.store.delete_unreadable("second", "baz", false).await.expect("removed");
    assert_eq!(show_list(&world.list("").await), [show_stored(&good)]);
    assert_eq!(world.store.unreadable(), 0);
}

/// DeleteExpectedTransformOrDecodeError and its variants.
pub(crate) async fn delete_expected_transform_or_decode_error(world: World) {
    world.create(&pod("ns", "good")).await;
    let error = world.store.delete_unreadable("ns", "good", false).await.expect_err("readable");
    assert_eq!((error.code, &*error.reason), (409, "Conflict"));
    assert!(
        error
            .message
            .ends_with("unsafe deletion is not allowed because the object is decodable from storage"),
        "{error}"
    );
    assert_eq!(world.store.delete_unreadable("ns", "missing", false).await.expect_err("missing").code, 404);
    // Decrypted, and no object.
    let revision = world.write_raw("/registry/pods/ns/bad", b"test:not json").await;
    world.cached(revision).await;
    let bad = pod("ns", "bad");
    let error = world.get(&bad, ReadAt::Latest).await.expect_err("undecodable");
    let text = format!("AdditionalErrorMsg: object not decodable revision={revision}: ");
    assert!(error.message.contains(&text), "{error}");
    let error = world.delete(&bad).await.expect_err("undecodable");
    assert_eq!((error.code, &*error.reason), (500, ""));
    assert!(error.message.starts_with(&format!("object not decodable revision={revision}: ")), "{error}");
    world.store.delete_unreadable("ns", "bad", false).await.expect("removed");
    assert_eq!(world.read_raw("/registry/pods/ns/bad").await, None);
}

/// GetListWithErrorAggregation: a hundred are named, then the list gives up.
pub(crate) async fn a_hundred_unreadable_objects_are_named(world: World) {
    let mut revision = 0;
    for index in 0..MAX_UNREADABLE_NAMED + 5 {
        revision = world.write_raw(&format!("/registry/pods/ns/bad-{index:03}"), b"x").await;
    }
    world.cached(revision).await;
    world.probe.no_progress.store(false, Ordering::SeqCst);
    for uncached in [false, true] {
        world.probe.no_progress.store(uncached, Ordering::SeqCst);
        let error = world.store.list(list("")).await.expect_err("unreadable");
        assert!(error.message.ends_with(" (and 99 more)"), "{error}");
        let causes = error.details.expect("details").causes;
        assert_eq!(causes.len(), MAX_UNREADABLE_NAMED + 1);
        assert_eq!(causes[MAX_UNREADABLE_NAMED].reason, "FieldValueTooMany");
        assert_eq!(causes[MAX_UNREADABLE_NAMED].message, "too many errors, the list is truncated");
    }
}

/// RunTestWatchError, WatchErrorIsBlockingFurtherEvents: who would see the object is told, once; the
/// others go on.
pub(crate) async fn an_unreadable_change_ends_only_the_watches_that_would_see_it(world: World) {
    let from = world.create(&pod("ns", "a")).await.revision;
    let mut all = world.watch(watch("", Some(from))).await;
    let mut namespace = world.watch(watch("ns", Some(from))).await;
    let selecting =
        WatchOptions { predicate: Arc::new(Select::Label("app", "web")), ..watch("ns", Some(from)) };
    let mut selecting = world.watch(selecting).await;
    let mut other = world.watch(watch("other", Some(from))).await;
    let one = WatchOptions { name: Some("a".to_owned()), ..watch("ns", Some(from)) };
    let mut one = world.watch(one).await;
    world.write_raw("/registry/pods/ns/bad", b"x").await;
    let updated = world.put(&with(pod("ns", "a"), &["spec", "nodeName"], "n")).await;
    let elsewhere = world.create(&pod("other", "o")).await;
    for watching in [&mut all, &mut namespace, &mut selecting] {
        let error = watching.next().await.expect_err("unreadable");
        assert_eq!((error.code, &*error.reason), (500, "InternalError"));
        assert_eq!(error.message, format!("Internal error occurred: {REFUSED}"));
        watching.ended().await;
    }
    assert_eq!(other.shown(1).await, [format!("ADDED {}", show_stored(&elsewhere))]);
    assert_eq!(one.shown(1).await, [format!("MODIFIED {}", show_stored(&updated))]);
    // A new watch of the present state is told as well.
    let mut state = world.watch(watch("ns", None)).await;
    assert_eq!(state.next().await.expect_err("unreadable").reason, "StoreReadError");
    state.ended().await;
    let mut state = world.watch(watch("other", None)).await;
    assert_eq!(state.shown(1).await, [format!("ADDED {}", show_stored(&elsewhere))]);
}

/// RunTestWatchWithUnsafeDelete.
pub(crate) async fn watch_with_unsafe_delete(world: World) {
    let revision = world.write_raw("/registry/pods/ns/bad", b"x").await;
    world.cached(revision).await;
    let mut watching = world.watch(watch("ns", Some(revision))).await;
    world.store.delete_unreadable("ns", "bad", false).await.expect("removed");
    let error: Status = watching.next().await.expect_err("unknown content");
    assert_eq!((error.code, &*error.reason), (500, "StoreReadError"));
    assert_eq!(error.message, format!("saw a DELETED event, but object data is corrupt - {REFUSED}"));
    watching.ended().await;
}

/// When the key comes back, so do the objects.
pub(crate) async fn unreadable_objects_are_served_once_their_key_is_there(world: World) {
    let raw = br#"other:{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","namespace":"ns"}}"#;
    let revision = world.write_raw("/registry/pods/ns/bad", raw).await;
    world.cached(revision).await;
    assert!(world.store.list(list("")).await.is_err());
    world.transformer.other_key.store(true, Ordering::SeqCst);
    assert_eq!(show_list(&world.list("").await), [format!("ns/bad@{revision}")]);
    assert_eq!(world.store.unreadable(), 0);
    let mut watching = world.watch(watch("ns", None)).await;
    assert_eq!(watching.shown(1).await, [format!("ADDED ns/bad@{revision}")]);
}
