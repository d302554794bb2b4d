//! Lists: upstream's `RunTestList` with its whole table, from the cache and from the engine.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::continue_token::ContinueToken;
use coffer_store::kv::Revision;
use coffer_store::registry::{List, ListRequest, ReadAt, Registry, Stored};
use coffer_types::Status;

use super::world::*;

/// first/bar (updated later), second/bar, second/foo, third/barfoo, third/foo, second/baz (deleted later).
pub(crate) struct Seed {
    /// Revision before everything.
    initial: Revision,
    created: Vec<Arc<Stored>>,
    updated: Arc<Stored>,
    /// Revision of the last change of a pod.
    last: Revision,
    /// Revision of the store: one more.
    current: Revision,
}

impl Seed {
    pub(crate) async fn plant(world: &World) -> Self {
        let initial = world.list("").await.revision;
        let mut created = Vec::new();
        let objects = [
            pod("first", "bar"),
            pod("second", "bar"),
            pod("second", "foo"),
            pod("third", "barfoo"),
            pod("third", "foo"),
            pod("second", "baz"),
        ];
        for object in &objects {
            created.push(world.create(object).await);
        }
        let updated = world.put(&with(objects[0].clone(), &["spec", "nodeName"], "fakeNode")).await;
        let last = world.delete(&objects[5]).await.expect("deleted").revision;
        world.cached(last).await;
        world.compact(created[0].revision).await;
        let current = world.increase_revision().await;
        assert_eq!(current, last + 1);
        Self { initial, created, updated, last, current }
    }

    /// `0` to `5` for a created object, `u` for the updated one.
    fn items(&self, letters: &str) -> Vec<String> {
        letters
            .chars()
            .map(|letter| match letter {
                'u' => show_stored(&self.updated),
                digit => show_stored(&self.created[digit.to_digit(10).expect("a digit") as usize]),
            })
            .collect()
    }
}

/// What a case expects.
enum Expected<'a> {
    /// These items.
    Items(&'a str),
    /// Either.
    Either(&'a str, &'a str),
    TooLarge,
    TooOld,
    ContinueTooOld,
    BadRequest(&'a str),
}

struct Case<'a> {
    name: &'a str,
    namespace: &'a str,
    at: ReadAt,
    select: Select,
    limit: usize,
    token: String,
    expected: Expected<'a>,
    /// Exactly this list revision.
    revision: Option<Revision>,
    /// The exact token: tail and revision.
    next: Option<(&'a str, Revision)>,
    /// Whether there is a token at all.
    more: bool,
    remaining: Option<i64>,
}

fn token(start: &str, revision: Revision) -> String {
    let token = ContinueToken { revision, start: start.as_bytes().to_vec() };
    token.encode().expect("text")
}

#[allow(clippy::too_many_lines, reason = "upstream's table in its order")]
fn cases(seed: &Seed) -> Vec<Case<'static>> {
    use Expected::{BadRequest, ContinueTooOld, Either, Items, TooLarge, TooOld};
    use ReadAt::{Any, Exact, Latest, NotOlderThan};
    use Select::{All, Field, NotField};

    let rev = |index: usize| seed.created[index].revision;
    let (updated, last, current) = (seed.updated.revision, seed.last, seed.current);
    let case = |name, namespace, at, expected| Case {
        name,
        namespace,
        at,
        select: All,
        limit: 0,
        token: String::new(),
        expected,
        revision: match at {
            Exact(revision) => Some(revision),
            _ => None,
        },
        next: None,
        more: false,
        remaining: None,
    };
    let named = |value| Field("metadata.name", value);
    let newer = NotOlderThan(last);
    let mut cases = vec![
        Case {
            token: token("foo", last),
            limit: 1,
            ..case(
                "rejects resource version and continue token",
                "",
                NotOlderThan(1),
                BadRequest("specifying resource version is not allowed when using continue"),
            )
        },
        case("rejects resource version set too high", "", NotOlderThan(i64::MAX), TooLarge),
        case("existing key", "first", Latest, Items("u")),
        case("existing key with resource version 0", "first", Any, Either("", "u")),
        case("existing key, before update, match=Exact", "first", Exact(rev(0)), Items("0")),
        case("before creation, match=Exact", "second", Exact(rev(0)), Items("")),
        case("after creation, match=Exact", "second", Exact(rev(1)), Items("1")),
        case("before first write, match=Exact", "first", Exact(seed.initial), TooOld),
        case("before first write, match=NotOlderThan", "first", NotOlderThan(seed.initial), Either("", "u")),
        case("current resource version", "first", newer, Items("u")),
        case("current resource version, match=Exact", "first", Exact(last), Items("u")),
        case("non-existing key", "non-existing", Latest, Items("")),
        Case {
            select: NotField("metadata.name", "bar"),
            ..case("pod name matching", "first", Latest, Items(""))
        },
        Case {
            select: NotField("metadata.name", "bar"),
            ..case("pod name matching, match=NotOlderThan", "first", newer, Items(""))
        },
        Case {
            limit: 1,
            revision: Some(current),
            more: true,
            next: Some(("bar\0", current)),
            remaining: Some(1),
            ..case("limit", "second", Latest, Items("1"))
        },
        Case {
            limit: 1,
            more: true,
            next: Some(("bar\0", last)),
            remaining: Some(1),
            ..case("limit at current resource version and match=Exact", "second", Exact(last), Items("1"))
        },
        Case {
            limit: 1,
            more: true,
            remaining: Some(1),
            ..case("limit at current resource version and match=NotOlderThan", "second", newer, Items("1"))
        },
        Case { limit: 1, ..case("limit before created and match=Exact", "second", Exact(rev(0)), Items("")) },
        Case { limit: 1, ..case("limit after created and match=Exact", "second", Exact(rev(1)), Items("1")) },
        Case {
            limit: 1,
            token: token("foo", last),
            revision: Some(last),
            ..case("pregenerated continue token", "second", Latest, Items("2"))
        },
        Case {
            limit: 1,
            token: token("/foo", last),
            ..case("continue token in the form of the original's cache", "second", Latest, Items("2"))
        },
        Case {
            limit: 1,
            token: token("foo", last),
            ..case("ignores resource version 0 with continue token", "second", Any, Items("2"))
        },
        case("multiple levels of directories, flattened", "second", Latest, Items("12")),
        case("multiple levels of directories, match=NotOlderThan", "second", newer, Items("12")),
        Case {
            select: named("barfoo"),
            limit: 1,
            more: true,
            ..case("filter one item, only a single page", "", Latest, Items("3"))
        },
        Case {
            select: named("barfoo"),
            limit: 1,
            more: true,
            ..case("filter one item, only a single page, match=NotOlderThan", "", newer, Items("3"))
        },
        Case {
            select: named("barfoo"),
            limit: 2,
            ..case("filter one item, covers the entire list", "", Latest, Items("3"))
        },
        Case {
            select: named("barfoo"),
            limit: 2,
            ..case("filter one item, entire list, match=NotOlderThan", "", newer, Items("3"))
        },
        Case {
            select: named("barfoo"),
            limit: 2,
            ..case("filter one item, entire list, with resource version 0", "", Any, Either("", "3"))
        },
        Case {
            select: named("bar"),
            limit: 2,
            more: true,
            ..case("filter two items, more pages possible", "", Latest, Items("u1"))
        },
        Case {
            select: named("bar"),
            limit: 2,
            more: true,
            ..case("filter two items, more pages possible, match=NotOlderThan", "", newer, Items("u1"))
        },
        Case {
            select: named("foo"),
            limit: 2,
            ..case("filter two items split across multiple pages", "", Latest, Items("24"))
        },
        Case {
            select: named("foo"),
            limit: 2,
            ..case("filter two items split across pages, match=NotOlderThan", "", newer, Items("24"))
        },
        Case {
            select: named("foo"),
            limit: 2,
            token: token("third/barfoo", last),
            ..case("filter one item for last page, ends on last item, not full", "", Latest, Items("4"))
        },
        Case {
            select: named("foo"),
            limit: 1,
            token: token("third/barfoo", last),
            ..case("filter one item for last page, starts on last item, full", "", Latest, Items("4"))
        },
        Case {
            select: named("foo"),
            limit: 5,
            ..case("filter two items, page size equal to total", "", Latest, Items("24"))
        },
        Case {
            select: named("foo"),
            limit: 5,
            ..case("filter two items, page size equal to total, match=NotOlderThan", "", newer, Items("24"))
        },
        Case {
            select: named("barfoo"),
            limit: 5,
            ..case("filter one item, page size equal to total", "", Latest, Items("3"))
        },
        Case {
            select: named("barfoo"),
            limit: 5,
            ..case("filter one item, page size equal to total, match=NotOlderThan", "", newer, Items("3"))
        },
        case("list all items", "", Latest, Items("u1234")),
        case("list all items, match=NotOlderThan", "", newer, Items("u1234")),
        Case {
            select: Field("spec.nodeName", "fakeNode"),
            limit: 5,
            ..case("updated version of object", "", newer, Items("u"))
        },
        Case {
            select: named("baz"),
            limit: 5,
            ..case("does not return deleted object", "", newer, Items(""))
        },
        Case { revision: Some(current), ..case("consistent list", "empty", Latest, Items("")) },
        case("non-consistent list", "empty", Any, Items("")),
        // match=Exact
        case("all, before first write, match=Exact", "", Exact(seed.initial), TooOld),
        case("first write", "", Exact(rev(0)), Items("0")),
        case("second write", "", Exact(rev(1)), Items("01")),
        case("third write", "", Exact(rev(2)), Items("012")),
        case("fourth write", "", Exact(rev(3)), Items("0123")),
        case("fifth write", "", Exact(rev(4)), Items("01234")),
        case("sixth write", "", Exact(rev(5)), Items("015234")),
        case("seventh write", "", Exact(updated), Items("u15234")),
        case("eighth write", "", Exact(last), Items("u1234")),
        case("after writes", "", Exact(current), Items("u1234")),
        case("future resource version, match=Exact", "", Exact(current + 1), TooLarge),
        // limit, match=Exact
        Case {
            limit: 1,
            more: true,
            next: Some(("first/bar\0", rev(1))),
            remaining: Some(1),
            ..case("limit, second write", "", Exact(rev(1)), Items("0"))
        },
        Case {
            limit: 2,
            more: true,
            next: Some(("second/bar\0", rev(2))),
            remaining: Some(1),
            ..case("limit, third write", "", Exact(rev(2)), Items("01"))
        },
        Case { limit: 4, ..case("limit, fourth write", "", Exact(rev(3)), Items("0123")) },
        Case {
            limit: 1,
            more: true,
            next: Some(("first/bar\0", rev(4))),
            remaining: Some(4),
            ..case("limit, fifth write", "", Exact(rev(4)), Items("0"))
        },
        Case {
            limit: 2,
            more: true,
            next: Some(("second/bar\0", rev(5))),
            remaining: Some(4),
            ..case("limit, sixth write", "", Exact(rev(5)), Items("01"))
        },
        Case {
            limit: 4,
            more: true,
            next: Some(("second/foo\0", updated)),
            remaining: Some(2),
            ..case("limit, seventh write", "", Exact(updated), Items("u152"))
        },
        Case { limit: 8, ..case("limit, eighth write", "", Exact(last), Items("u1234")) },
        Case {
            limit: 1,
            more: true,
            next: Some(("first/bar\0", current)),
            remaining: Some(4),
            ..case("limit, after writes", "", Exact(current), Items("u"))
        },
        // continue
        Case {
            limit: 1,
            token: token("first/bar\0", seed.initial),
            ..case("continue, before first write", "", Latest, ContinueTooOld)
        },
        Case {
            limit: 1,
            token: token("first/bar\0", rev(0)),
            revision: Some(rev(0)),
            ..case("continue, first write", "", Latest, Items(""))
        },
        Case {
            limit: 1,
            token: token("first/bar\0", rev(1)),
            revision: Some(rev(1)),
            ..case("continue, second write", "", Latest, Items("1"))
        },
        Case {
            limit: 2,
            token: token("second/bar\0", rev(2)),
            revision: Some(rev(2)),
            ..case("continue, third write", "", Latest, Items("2"))
        },
        Case {
            limit: 1,
            token: token("first/bar\0", rev(4)),
            revision: Some(rev(4)),
            more: true,
            next: Some(("second/bar\0", rev(4))),
            remaining: Some(3),
            ..case("continue, fifth write", "", Latest, Items("1"))
        },
        Case {
            limit: 2,
            token: token("second/bar\0", rev(5)),
            revision: Some(rev(5)),
            more: true,
            next: Some(("second/foo\0", rev(5))),
            remaining: Some(2),
            ..case("continue, sixth write", "", Latest, Items("52"))
        },
        Case {
            limit: 4,
            token: token("second/foo\0", updated),
            revision: Some(updated),
            ..case("continue, seventh write", "", Latest, Items("34"))
        },
        Case {
            limit: 1,
            token: token("first/bar\0", current),
            revision: Some(current),
            more: true,
            next: Some(("second/bar\0", current)),
            remaining: Some(3),
            ..case("continue, after writes", "", Latest, Items("1"))
        },
        Case {
            token: token("first/bar\0", -1),
            revision: Some(current),
            ..case("continue, negative revision gives consistent read", "", Latest, Items("1234"))
        },
        Case {
            limit: 2,
            token: token("first/bar\0", -1),
            revision: Some(current),
            more: true,
            next: Some(("second/foo\0", current)),
            remaining: Some(2),
            ..case("continue and limit, negative revision", "", Latest, Items("12"))
        },
        Case {
            token: token("second/foo\0", -1),
            revision: Some(current),
            ..case("continue from third, negative revision", "", Latest, Items("34"))
        },
        Case {
            token: token("", last),
            ..case(
                "continue from empty fails",
                "",
                Latest,
                BadRequest(
                    "invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
                ),
            )
        },
        Case {
            token: token("first/bar\0", 0),
            ..case(
                "continue with empty resource version fails",
                "",
                Latest,
                BadRequest(
                    "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                ),
            )
        },
    ];
    // S1: a token does not lead out of the namespace or the resource.
    for start in ["../secrets/x", "..", "first/../../secrets/x", "first//bar"] {
        let text: &'static str =
            Box::leak(format!("invalid continue token: continue key is not valid: {start}").into_boxed_str());
        cases.push(Case {
            token: token(start, last),
            ..case("s1 hostile continue token", "first", Latest, BadRequest(text))
        });
    }
    cases
}

fn code(list: &Result<List, Status>) -> Option<(u16, &str)> {
    list.as_ref().err().map(|status| (status.code, &*status.reason))
}

async fn check(world: &World, seed: &Seed, case: Case<'_>) {
    let name = case.name;
    let list = run(world, &case).await;
    let message = list.as_ref().err().map(|status| status.message.clone()).unwrap_or_default();
    let letters = match case.expected {
        Expected::TooLarge => {
            assert_eq!(code(&list), Some((504, "Timeout")), "{name}: {message}");
            return;
        }
        Expected::TooOld => {
            assert_eq!(code(&list), Some((410, "Expired")), "{name}");
            assert_eq!(message, "The resourceVersion for the provided list is too old.", "{name}");
            return;
        }
        Expected::ContinueTooOld => {
            assert_eq!(code(&list), Some((410, "Expired")), "{name}");
            assert!(message.starts_with("The provided continue parameter is too old to display"), "{name}");
            return;
        }
        Expected::BadRequest(text) => {
            assert_eq!(code(&list), Some((400, "BadRequest")), "{name}");
            assert_eq!(message, text, "{name}");
            return;
        }
        Expected::Items(letters) => vec![letters],
        Expected::Either(one, other) => vec![one, other],
    };
    let list = list.unwrap_or_else(|error| panic!("{name}: {error}"));
    let shown = show_list(&list);
    assert!(letters.iter().any(|letters| seed.items(letters) == shown), "{name}: {shown:?}");
    assert_eq!(!list.continue_token.is_empty(), case.more, "{name}: token");
    if let Some((start, revision)) = case.next {
        let expected = ContinueToken { revision, start: start.as_bytes().to_vec() };
        assert_eq!(ContinueToken::decode(&list.continue_token), Ok(expected), "{name}");
    }
    if let Some(revision) = case.revision {
        assert_eq!(list.revision, revision, "{name}: revision");
    }
    if let ReadAt::NotOlderThan(least) = case.at {
        assert!(least <= list.revision, "{name}: revision");
    }
    assert_eq!(list.remaining, case.remaining, "{name}: remaining");
}

async fn run(world: &World, case: &Case<'_>) -> Result<List, Status> {
    let request = ListRequest {
        namespace: case.namespace.to_owned(),
        name: None,
        at: case.at,
        limit: case.limit,
        continue_token: case.token.clone(),
        predicate: Arc::new(case.select),
    };
    let waits = matches!(case.expected, Expected::TooLarge);
    let list = world.store.list(request);
    if waits { world.in_time(list).await } else { list.await }
}

/// From the cache.
pub(crate) async fn list_cases(world: World) {
    let seed = Seed::plant(&world).await;
    for case in cases(&seed) {
        check(&world, &seed, case).await;
    }
    // The cache answers everything but the first page of reads that it cannot know.
    world.probe.take_ranges();
    for case in cases(&seed) {
        if matches!(case.expected, Expected::Items(_)) {
            run(&world, &case).await.expect("a list");
            let asked: Vec<_> = world.probe.take_ranges();
            let only_revision = asked.iter().all(|range| &range.start[..] == b"/registry/health");
            assert!(only_revision && asked.len() <= 1, "{}: {asked:?}", case.name);
        }
    }
}

/// The same from the engine: a store whose cache knows nothing of the past, and that cannot rely on
/// progress.
pub(crate) async fn list_cases_uncached(world: World) {
    let seed = Seed::plant(&world).await;
    world.probe.no_progress.store(true, Ordering::SeqCst);
    world.storage.close("", "pods");
    let config = config("", "pods", coffer_store::key::Origin::BuiltIn, true);
    let store = world.storage.open(config).expect("a store");
    let world = world.with_store(store);
    world.wait_ready().await;
    for case in cases(&seed) {
        let cached = matches!(case.at, ReadAt::Any | ReadAt::NotOlderThan(_)) && case.token.is_empty();
        if !cached {
            check(&world, &seed, case).await;
        }
    }
}
