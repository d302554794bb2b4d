//! Create, get, update and delete: upstream's shared storage tests of these names.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use coffer_store::registry::{
    Current, DeleteCheck, ListRequest, Preconditions, ReadAt, Registry, Updater, WatchOptions,
};
use coffer_types::meta::Meta;
use coffer_types::{Status, Value};

use super::world::*;

pub(crate) async fn create(world: World) {
    let object = pod("test-ns", "foo");
    let stored = world.create(&object).await;
    let current = world.current().await;
    assert_eq!(show_stored(&stored), format!("test-ns/foo@{current}"));
    let object = world.decode(&stored);
    assert_eq!(object.resource_version(), current.to_string());
    // What lies in the store is transformed and has no resourceVersion.
    let raw = world.read_raw("/registry/pods/test-ns/foo").await.expect("a key");
    assert_eq!(
        std::str::from_utf8(&raw).expect("JSON").trim_end(),
        r#"test:{"apiVersion":"v1","kind":"Pod","metadata":{"name":"foo","namespace":"test-ns"}}"#
    );
}

pub(crate) async fn create_with_resource_version(world: World) {
    let object = with(pod("test-ns", "foo"), &["metadata", "resourceVersion"], "7");
    let error = world.store.create("test-ns", "foo", &object, 0).await.expect_err("refused");
    assert_eq!(error, Status::plain("resourceVersion should not be set on objects to be created"));
}

pub(crate) async fn create_with_ttl(world: World) {
    let object = pod("test-ns", "foo");
    let stored = world.store.create("test-ns", "foo", &object, 1).await.expect("created");
    let mut watch = world.watch(watch("test-ns", Some(stored.revision))).await;
    watch.nothing().await;
    world.pass(Duration::from_secs(3)).await;
    let event = watch.event().await;
    assert!(show(&event).starts_with("DELETED test-ns/foo@"), "{event:?}");
    assert!(stored.revision < event.revision);
}

pub(crate) async fn create_with_key_exist(world: World) {
    let object = pod("test-ns", "foo");
    world.create(&object).await;
    let error = world.store.create("test-ns", "foo", &object, 0).await.expect_err("exists");
    assert_eq!((error.code, &*error.reason), (409, "AlreadyExists"));
    assert_eq!(error.message, r#"pods "foo" already exists"#);
    let dying = with(pod("test-ns", "dying"), &["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z");
    world.create(&dying).await;
    let error = world.store.create("test-ns", "dying", &dying, 0).await.expect_err("exists");
    assert_eq!(error.message, r#"object is being deleted: pods "dying" already exists"#);
}

pub(crate) async fn get(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    let updated = world.put(&with(object.clone(), &["metadata", "annotations", "a"], "1")).await;
    let last = world.create(&pod("test-ns", "bar")).await;
    let missing = pod("test-ns", "missing");
    let shown = |result: Result<Arc<_>, Status>| result.map(|stored| show_stored(&stored));
    let new = Ok(show_stored(&updated));
    assert_eq!(shown(world.get(&object, ReadAt::Latest).await), new);
    assert_eq!(shown(world.get(&object, ReadAt::NotOlderThan(updated.revision)).await), new);
    assert_eq!(shown(world.get(&object, ReadAt::NotOlderThan(last.revision)).await), new);
    let any = shown(world.get(&object, ReadAt::Any).await);
    let old = Ok(show_stored(&created));
    assert!(any == new || any == old, "{any:?}");
    let not_older = shown(world.get(&object, ReadAt::NotOlderThan(created.revision)).await);
    assert!(not_older == new || not_older == old, "{not_older:?}");
    for at in [ReadAt::Latest, ReadAt::NotOlderThan(last.revision)] {
        let error = world.get(&missing, at).await.expect_err("missing");
        assert_eq!((error.code, error.message.as_str()), (404, r#"pods "missing" not found"#));
    }
    let too_high = ReadAt::NotOlderThan(i64::MAX);
    let error = world.in_time(world.get(&object, too_high)).await.expect_err("too high");
    assert_eq!((error.code, &*error.reason), (504, "Timeout"));
    let current = last.revision;
    assert_eq!(
        error.message,
        format!("Timeout: Too large resource version: {}, current: {current}", i64::MAX)
    );
    let details = error.details.expect("details");
    assert_eq!(details.causes[0].reason, "ResourceVersionTooLarge");
    assert_eq!(details.retry_after_seconds, 1);
}

pub(crate) async fn unconditional_delete(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    let error = world.delete(&pod("test-ns", "other")).await.expect_err("missing");
    assert_eq!(error.code, 404);
    let deleted = world.delete(&object).await.expect("deleted");
    // The last state, with the revision of the deletion.
    assert_eq!(show_stored(&deleted), format!("test-ns/foo@{}", created.revision + 1));
    assert_eq!(deleted.bytes, created.bytes);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("gone").code, 404);
}

fn uid(uid: &str) -> Preconditions {
    Preconditions { uid: Some(uid.to_owned()), resource_version: None }
}

pub(crate) async fn conditional_delete(world: World) {
    let object = with(pod("test-ns", "foo"), &["metadata", "uid"], "A");
    let created = world.create(&object).await;
    let error = world.delete_with(&object, &uid("B"), |_| Ok(())).await.expect_err("UID mismatch");
    assert_eq!((error.code, &*error.reason), (409, "Conflict"));
    assert_eq!(
        error.message,
        "Operation cannot be fulfilled on pods \"foo\": StorageError: invalid object, Code: 4, Key: \
         /registry/pods/test-ns/foo, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: B, UID in object meta: A"
    );
    let version = |revision: i64| Preconditions { uid: None, resource_version: Some(revision.to_string()) };
    let error = world.delete_with(&object, &version(999), |_| Ok(())).await.expect_err("RV mismatch");
    let text =
        format!("ResourceVersion in precondition: 999, ResourceVersion in object meta: {}", created.revision);
    assert!(error.message.ends_with(&text), "{error}");
    world.delete_with(&object, &version(created.revision), |_| Ok(())).await.expect("RV match");
    world.create(&object).await;
    world.delete_with(&object, &uid("A"), |_| Ok(())).await.expect("UID match");
}

/// The cache does not know of the update: its suggestion is outdated.
async fn outdated(world: &World, old: &Value, new: &Value) -> i64 {
    let created = world.create(old).await;
    world.cached(created.revision).await;
    world.probe.hold_watches(true);
    world.put(new).await.revision
}

pub(crate) async fn delete_with_suggestion_and_conflict(world: World) {
    let object = pod("test-ns", "foo");
    let new = with(object.clone(), &["metadata", "labels", "foo"], "bar");
    let revision = outdated(&world, &object, &new).await;
    let deleted = world.delete(&object).await.expect("deleted");
    assert_eq!(world.decode(&deleted).label("foo"), Some("bar"));
    assert_eq!(deleted.revision, revision + 1);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("gone").code, 404);
}

/// Does its work, and the first time lets someone else change the object in the middle of it.
struct Interrupted<'a> {
    world: &'a World,
    meanwhile: Value,
    calls: usize,
}

impl Interrupted<'_> {
    async fn interrupt(&mut self) {
        self.calls += 1;
        if self.calls == 1 {
            self.world.put(&self.meanwhile).await;
        }
    }
}

#[async_trait]
impl DeleteCheck for Interrupted<'_> {
    async fn check(&mut self, _: &Value) -> Result<(), Status> {
        self.interrupt().await;
        Ok(())
    }
}

#[async_trait]
impl Updater for Interrupted<'_> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        self.interrupt().await;
        Ok(with(current.object.expect("there"), &["metadata", "labels", "second"], "yes"))
    }
}

pub(crate) async fn delete_with_conflict(world: World) {
    let object = pod("test-ns", "foo");
    world.create(&object).await;
    let meanwhile = with(object.clone(), &["metadata", "labels", "foo"], "bar");
    let mut check = Interrupted { world: &world, meanwhile, calls: 0 };
    let none = Preconditions::default();
    let deleted = world.store.delete("test-ns", "foo", &none, &mut check).await.expect("deleted");
    assert_eq!(check.calls, 2);
    assert_eq!(world.decode(&deleted).label("foo"), Some("bar"));
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("gone").code, 404);
}

pub(crate) async fn delete_with_suggestion_of_deleted_object(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    world.probe.hold_watches(true);
    world.delete(&object).await.expect("deleted");
    assert_eq!(world.delete(&object).await.expect_err("gone").code, 404);
}

pub(crate) async fn validate_deletion_with_suggestion(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    world.cached(created.revision).await;
    let mut calls = 0;
    let refusal = Status::bad_request("validation error");
    let none = Preconditions::default();
    let error = world
        .delete_with(&object, &none, |_| {
            calls += 1;
            Err(refusal.clone())
        })
        .await
        .expect_err("refused");
    assert_eq!((calls, error), (1, refusal));
    // The suggestion is outdated from here on: the refusal of it does not count.
    world.probe.hold_watches(true);
    world.put(&with(object.clone(), &["metadata", "labels", "foo"], "bar")).await;
    let mut calls = 0;
    world
        .delete_with(&object, &none, |object| {
            calls += 1;
            if object.label("foo") == Some("bar") { Ok(()) } else { Err(Status::bad_request("stale object")) }
        })
        .await
        .expect("deleted");
    assert_eq!(calls, 2);
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("gone").code, 404);
}

pub(crate) async fn validate_deletion_with_only_suggestion_valid(world: World) {
    let object = with(pod("test-ns", "foo"), &["metadata", "labels", "foo"], "bar");
    let new = with(object.clone(), &["metadata", "labels", "foo"], "barbar");
    outdated(&world, &object, &new).await;
    let mut calls = 0;
    let error = world
        .delete_with(&object, &Preconditions::default(), |object| {
            calls += 1;
            if object.label("foo") == Some("bar") { Ok(()) } else { Err(Status::bad_request("stale object")) }
        })
        .await
        .expect_err("the current object is refused");
    assert_eq!((calls, error.message.as_str()), (2, "stale object"));
    assert_eq!(
        world.decode(&world.get(&object, ReadAt::Latest).await.expect("there")).label("foo"),
        Some("barbar")
    );
}

pub(crate) async fn preconditional_delete_with_suggestion(world: World) {
    let object = pod("test-ns", "foo");
    outdated(&world, &object, &with(object.clone(), &["metadata", "uid"], "myUID")).await;
    world.delete_with(&object, &uid("myUID"), |_| Ok(())).await.expect("deleted");
    assert_eq!(world.get(&object, ReadAt::Latest).await.expect_err("gone").code, 404);
}

pub(crate) async fn preconditional_delete_with_only_suggestion_pass(world: World) {
    let object = with(pod("test-ns", "foo"), &["metadata", "uid"], "myUID");
    outdated(&world, &object, &with(object.clone(), &["metadata", "uid"], "otherUID")).await;
    let error = world.delete_with(&object, &uid("myUID"), |_| Ok(())).await.expect_err("another object");
    assert_eq!(error.code, 409);
    assert_eq!(world.decode(&world.get(&object, ReadAt::Latest).await.expect("there")).uid(), "otherUID");
}

pub(crate) async fn guaranteed_update(world: World) {
    struct Case {
        name: &'static str,
        exists: bool,
        create_missing: bool,
        precondition: Option<&'static str>,
        /// Status code, or whether something is written.
        expected: Result<bool, u16>,
        annotation: &'static str,
        stale: bool,
        self_link: &'static str,
    }
    let same = Case {
        name: "same data",
        exists: true,
        create_missing: false,
        precondition: None,
        expected: Ok(false),
        annotation: "",
        stale: false,
        self_link: "",
    };
    for (index, case) in [
        Case { name: "non-existing key, ignoreNotFound=false", exists: false, expected: Err(404), ..same },
        Case {
            name: "non-existing key, ignoreNotFound=true",
            exists: false,
            create_missing: true,
            expected: Ok(true),
            ..same
        },
        // TestPreconditionsCheckWithNilObject: what is not there meets no precondition.
        Case {
            name: "non-existing key, ignoreNotFound=true, a UID",
            exists: false,
            create_missing: true,
            precondition: Some("A"),
            expected: Err(409),
            ..same
        },
        Case { name: "existing key", annotation: "changed", expected: Ok(true), ..same },
        Case { name: "same data", ..same },
        Case { name: "same data, a selfLink", self_link: "testlink", ..same },
        Case { name: "same data, stale", stale: true, expected: Ok(true), ..same },
        Case { name: "UID match", precondition: Some("A"), ..same },
        Case { name: "UID mismatch", precondition: Some("B"), expected: Err(409), ..same },
    ]
    .into_iter()
    .enumerate()
    {
        let object = with(pod("test-ns", &format!("foo-{index}")), &["metadata", "uid"], "A");
        let before = if case.exists { world.create(&object).await.revision } else { 0 };
        // Once with a suggestion from the cache, where there can be one.
        world.cached(before).await;
        world.transformer.stale.store(case.stale, Ordering::SeqCst);
        let preconditions = case.precondition.map_or_else(Preconditions::default, uid);
        let mut updater = Closure(|present: Option<Value>| {
            assert_eq!(present.is_some(), case.exists, "{}", case.name);
            let new = with(object.clone(), &["metadata", "annotations", "version"], case.annotation);
            with(new, &["metadata", "selfLink"], case.self_link)
        });
        let result = world
            .store
            .update("test-ns", object.name(), &preconditions, case.create_missing, &mut updater)
            .await;
        world.transformer.stale.store(false, Ordering::SeqCst);
        match (result, case.expected) {
            (Ok(stored), Ok(written)) => {
                assert_eq!(stored.revision != before, written, "{}", case.name);
                let object = world.decode(&stored);
                assert_eq!(object.annotation("version").unwrap_or_default(), case.annotation);
                assert_eq!(object.str_at(&["metadata", "selfLink"]), "");
            }
            (Err(error), Err(code)) => assert_eq!(error.code, code, "{}: {error}", case.name),
            (result, _) => panic!("{}: {result:?}", case.name),
        }
    }
}

struct Closure<F>(F);

#[async_trait]
impl<F: FnMut(Option<Value>) -> Value + Send> Updater for Closure<F> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        Ok((self.0)(current.object))
    }
}

pub(crate) async fn guaranteed_update_checks_stored_data(world: World) {
    // A value that a write would normalise: a space before the JSON.
    let raw = br#"test: {"apiVersion":"v1","kind":"Pod","metadata":{"name":"foo","namespace":"test-ns"}}"#;
    let initial = world.write_raw("/registry/pods/test-ns/foo", raw).await;
    world.cached(initial).await;
    let object = pod("test-ns", "foo");
    let written = world.put(&object).await;
    assert_ne!(written.revision, initial);
    assert_eq!(world.put(&object).await.revision, written.revision);
    world.cached(written.revision).await;
    assert_eq!(world.put(&object).await.revision, written.revision);
    world.transformer.stale.store(true, Ordering::SeqCst);
    assert_ne!(world.put(&object).await.revision, written.revision);
}

pub(crate) async fn guaranteed_update_with_conflict(world: World) {
    let object = pod("test-ns", "foo");
    world.create(&object).await;
    let meanwhile = with(object.clone(), &["metadata", "labels", "first"], "yes");
    let mut updater = Interrupted { world: &world, meanwhile, calls: 0 };
    let none = Preconditions::default();
    let updated = world.store.update("test-ns", "foo", &none, false, &mut updater).await.expect("updated");
    assert_eq!(updater.calls, 2);
    let object = world.decode(&updated);
    assert_eq!((object.label("first"), object.label("second")), (Some("yes"), Some("yes")));
}

pub(crate) async fn guaranteed_update_with_suggestion_and_conflict(world: World) {
    let object = pod("test-ns", "foo");
    let second = with(object.clone(), &["metadata", "labels", "n"], "2");
    outdated(&world, &object, &second).await;
    let mut conflicts = 0;
    let third = world
        .update_with(&object, false, |current| {
            let mut object = current.object.expect("there");
            if object.label("n") != Some("2") {
                conflicts += 1;
                return Err(Status::conflict("", "pods", "foo", "stale"));
            }
            object.set(&["metadata", "labels", "n"], "3");
            Ok(object)
        })
        .await
        .expect("updated");
    assert_eq!(conflicts, 1);
    world.probe.hold_watches(false);
    world.cached(third.revision).await;
    // A suggestion that is right: the refusal counts at once.
    let mut attempts = 0;
    let error = world
        .update_with(&object, false, |_| {
            attempts += 1;
            Err(Status::bad_request("validation or admission error"))
        })
        .await
        .expect_err("refused");
    assert_eq!((attempts, error.message.as_str()), (1, "validation or admission error"));
}

pub(crate) async fn writes_that_cannot_be_encrypted_are_refused(world: World) {
    let object = pod("test-ns", "foo");
    world.transformer.broken.store(true, Ordering::SeqCst);
    let error = world.store.create("test-ns", "foo", &object, 0).await.expect_err("no key");
    assert_eq!((error.code, &*error.reason), (500, "InternalError"));
    assert_eq!(error.message, "Internal error occurred: no key");
    assert_eq!(world.read_raw("/registry/pods/test-ns/foo").await, None);
}

// S3
pub(crate) async fn s3_hostile_names_never_reach_the_store(world: World) {
    let mut names: Vec<String> =
        ["", ".", "..", "a/b", "/", "%2e%2e", "%", "a%2fb", "../x", "a\0b"].map(str::to_owned).into();
    for inner in ["..", ".", "x", "%2f", "\0"] {
        for outer in 0..38 {
            names.push(format!("{}/{inner}{}", "../".repeat(outer % 5), "/..".repeat(outer / 5)));
        }
    }
    assert!(200 <= names.len());
    world.probe.take_ranges();
    for name in &names {
        let code = |result: Result<Arc<_>, Status>| result.map(|_| ()).map_err(|status| status.code);
        let object = pod("test-ns", name);
        assert_eq!(code(world.get(&object, ReadAt::Latest).await), Err(400), "{name}");
        assert_eq!(code(world.get(&object, ReadAt::Any).await), Err(400), "{name}");
        assert_eq!(code(world.delete(&object).await), Err(400), "{name}");
        assert_eq!(code(world.store.create("test-ns", name, &object, 0).await), Err(400), "{name}");
        assert_eq!(code(world.update_with(&object, true, |_| Ok(Value::object())).await), Err(400), "{name}");
        if !name.is_empty() {
            assert!(world.store.list(list(name)).await.is_err(), "{name}");
            assert!(world.store.get(name, "x", ReadAt::Latest).await.is_err(), "{name}");
        }
    }
    assert!(world.probe.take_ranges().is_empty());
}

/// TestKeySchema, TestPrepareKey and TestInvalidKeys: keys are made of namespace and name here, and what would
/// make another key of them is refused by every method.
pub(crate) async fn invalid_keys(world: World) {
    for (namespace, name) in [
        ("foo", ""),
        ("", "foo"),
        ("foo", "bar/../a.b.c"),
        ("foo", "bar/.."),
        ("foo", "bar/../"),
        ("..", "foo"),
        ("..", "foo/bar"),
        ("foo", ".."),
        ("foo", "../bar"),
        ("foo", "."),
        (".", "bar"),
        ("foo", "./bar"),
        ("foo", "bar/./"),
        ("foo/..", "a.b.c"),
        ("foo/bar", "baz"),
        ("foo", "bar/"),
        ("/foo", "bar"),
    ] {
        let object = pod(namespace, name);
        let code = |result: Result<Arc<_>, Status>| result.map(drop).map_err(|status| status.code);
        let (create, update) = (
            world.store.create(namespace, name, &object, 0),
            world.update_with(&object, true, |_| Ok(Value::object())),
        );
        assert_eq!(code(create.await), Err(400), "create {namespace:?} {name:?}");
        assert_eq!(code(update.await), Err(400), "update {namespace:?} {name:?}");
        assert_eq!(code(world.delete(&object).await), Err(400), "delete {namespace:?} {name:?}");
        assert_eq!(code(world.get(&object, ReadAt::Latest).await), Err(400), "get {namespace:?} {name:?}");
        // A name in all namespaces is a selector, and no name is all names.
        if namespace.is_empty() || name.is_empty() {
            continue;
        }
        let one = ListRequest { name: Some(name.to_owned()), ..list(namespace) };
        assert_eq!(world.store.list(one).await.expect_err(name).code, 400, "list {namespace:?} {name:?}");
        let one = WatchOptions { name: Some(name.to_owned()), ..watch(namespace, None) };
        let error = world.watch(one).await.next().await.expect_err(name);
        assert_eq!(error.code, 400, "watch {namespace:?} {name:?}");
    }
    for (namespace, name) in [("foo", "bar..baz"), ("foo", "bar.."), ("foo", "a.b.c"), ("foo", "..bar")] {
        world.create(&pod(namespace, name)).await;
        assert!(world.read_raw(&format!("/registry/pods/{namespace}/{name}")).await.is_some(), "{name}");
    }
}

/// TestObjectVersioner: the revision of the store is an object's version, whatever the object says itself.
pub(crate) async fn object_versioner(world: World) {
    let object = pod("test-ns", "foo");
    let created = world.create(&object).await;
    assert_eq!(world.decode(&created).resource_version(), created.revision.to_string());
    let claims =
        with(with(object.clone(), &["metadata", "resourceVersion"], "a"), &["spec", "nodeName"], "n");
    let updated = world.update_with(&object, false, |_| Ok(claims.clone())).await.expect("updated");
    assert!(created.revision < updated.revision);
    assert_eq!(world.decode(&updated).resource_version(), updated.revision.to_string());
    let stored = world.read_raw("/registry/pods/test-ns/foo").await.expect("stored");
    assert!(!String::from_utf8_lossy(&stored).contains("resourceVersion"), "{stored:?}");
}

pub(crate) async fn leases_are_shared(world: World) {
    for index in 0..20 {
        let pod = pod("test-ns", &format!("pod-{index}"));
        world.store.create("test-ns", pod.name(), &pod, 3600).await.expect("created");
    }
    assert_eq!(world.probe.leases(), 1);
    // 5 % of an hour is more than the minute that a lease is reused at most.
    world.clock.advance(Duration::from_secs(61));
    world.store.create("test-ns", "late", &pod("test-ns", "late"), 3600).await.expect("created");
    assert_eq!(world.probe.leases(), 2);
}

// TestLeaseMaxObjectCount
pub(crate) async fn a_lease_serves_a_limited_number_of_objects(world: World) {
    for index in 0..=coffer_store::registry::MAX_OBJECTS_PER_LEASE {
        let pod = pod("test-ns", &format!("pod-{index}"));
        world.store.create("test-ns", pod.name(), &pod, 3600).await.expect("created");
        let full = index == coffer_store::registry::MAX_OBJECTS_PER_LEASE;
        assert_eq!(world.probe.leases(), if full { 2 } else { 1 }, "{index}");
    }
    // The first is noted when it is asked for, and each when it is replaced, with the one too many.
    let shared_by = world.storage.lease_objects();
    let most = f64::from(coffer_store::registry::MAX_OBJECTS_PER_LEASE);
    assert_eq!((shared_by.count, shared_by.sum), (2, 1.0 + most + 1.0));
}

/// Events: every write gives the object its whole time again.
pub(crate) async fn guaranteed_update_with_ttl(engine: Engine) {
    let world = World::unready(engine, 2);
    world.wait_ready().await;
    let object = pod("test-ns", "foo");
    let created = world.put(&object).await;
    let mut watch = world.watch(watch("test-ns", Some(created.revision))).await;
    world.pass(Duration::from_secs(1)).await;
    let updated = world.put(&with(object, &["spec", "nodeName"], "n")).await;
    assert_eq!(watch.shown(1).await, [format!("MODIFIED {}", show_stored(&updated))]);
    world.pass(Duration::from_secs(1)).await;
    watch.nothing().await;
    world.pass(Duration::from_secs(3)).await;
    assert!(show(&*watch.event().await).starts_with("DELETED test-ns/foo@"));
}
