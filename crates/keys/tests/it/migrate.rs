//! Migrations against an API that misbehaves on purpose, on a clock that stands still.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_keys::migrate::{CallError, Listed, Objects, Options, Page, Progress, Rewritten, Stopped, run};
use coffer_runtime::api::{ApiError, ObjectKey};
use coffer_sim::SimClock;
use coffer_types::time::{Clock, Timestamp};
use parking_lot::Mutex;

/// An API with pages of objects, and errors that come first.
#[derive(Default)]
struct World {
    /// By token; the first one is "".
    pages: BTreeMap<String, Page>,
    /// Errors of the page with a token, each given once.
    page_errors: Mutex<BTreeMap<String, VecDeque<CallError>>>,
    /// Errors of an object's rewrite, each given once.
    rewrite_errors: Mutex<BTreeMap<String, VecDeque<CallError>>>,
    /// What was rewritten, and when.
    rewrites: Mutex<Vec<(String, Duration)>>,
    clock: SimClock,
}

impl World {
    fn new() -> Self {
        Self { clock: SimClock::new(Timestamp::UNIX_EPOCH), ..Self::default() }
    }

    /// Adds a page of objects; `token` leads to it and `next` from it.
    fn page(mut self, token: &str, names: &[&str], next: &str) -> Self {
        let objects = names.iter().map(|name| Listed {
            key: ObjectKey::new("ns", *name),
            uid: format!("uid-{name}"),
            resource_version: "7".to_owned(),
        });
        let page = Page { objects: objects.collect(), token: next.to_owned(), remaining: None };
        self.pages.insert(token.to_owned(), page);
        self
    }

    fn page_error(self, token: &str, error: CallError) -> Self {
        self.page_errors.lock().entry(token.to_owned()).or_default().push_back(error);
        self
    }

    fn rewrite_error(self, name: &str, error: CallError) -> Self {
        self.rewrite_errors.lock().entry(name.to_owned()).or_default().push_back(error);
        self
    }

    /// Runs to the end; time passes whenever everything waits.
    async fn run(self: &Arc<Self>, progress: &mut Progress, kept: &mut Vec<Progress>) -> Result<(), Stopped> {
        let rate = NonZeroU32::new(20).expect("not zero");
        let options = Options { rate, clock: Arc::new(self.clock.clone()) };
        let mut keep = |progress: &Progress| {
            kept.push(progress.clone());
            Ok(())
        };
        let work = run(&**self, progress, &options, &mut keep);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::task::yield_now() => {
                    if let Some(next) = self.clock.next_wake() {
                        self.clock.advance(next.saturating_sub(self.clock.monotonic()));
                    }
                }
            }
        }
    }

    fn rewritten(&self) -> Vec<String> {
        let mut names: Vec<String> = self.rewrites.lock().iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }
}

#[async_trait]
impl Objects for World {
    async fn page(&self, _: &str, _: u32, token: &str) -> Result<Page, CallError> {
        match self.page_errors.lock().get_mut(token).and_then(VecDeque::pop_front) {
            Some(error) => Err(error),
            None => Ok(self.pages.get(token).cloned().expect("a page")),
        }
    }

    async fn rewrite(&self, _: &str, object: &Listed, dry_run: bool) -> Result<Rewritten, CallError> {
        if let Some(error) =
            self.rewrite_errors.lock().get_mut(&object.key.name).and_then(VecDeque::pop_front)
        {
            return Err(error);
        }
        if !dry_run {
            self.rewrites.lock().push((object.key.name.clone(), self.clock.monotonic()));
        }
        Ok(if dry_run { Rewritten::NotNeeded } else { Rewritten::Yes })
    }
}

fn error(code: u16, reason: &str, message: &str) -> CallError {
    ApiError { code, reason: reason.to_owned(), message: message.to_owned() }.into()
}

fn secrets() -> Progress {
    Progress::new("https://one", &["secrets".to_owned()], false)
}

/// `done rewritten gone failed` of the only resource.
fn counts(progress: &Progress) -> (u64, u64, u64, usize) {
    let of = &progress.resources[0];
    (of.done, of.rewritten, of.gone, of.failed.len())
}

/// Field case K1: the list's token expires on the second of three pages; nothing is left out.
#[tokio::test]
async fn k1_an_expired_token_ends_no_migration() {
    let mut expired = error(410, "Expired", "The provided continue parameter is too old");
    expired.token = "two-now".to_owned();
    let world = Arc::new(
        World::new()
            .page("", &["a", "b"], "two")
            .page_error("two", expired)
            .page("two-now", &["c", "d"], "three")
            .page("three", &["e"], ""),
    );
    let (mut progress, mut kept) = (secrets(), Vec::new());
    world.run(&mut progress, &mut kept).await.expect("done");
    assert_eq!(world.rewritten(), ["a", "b", "c", "d", "e"]);
    assert_eq!(counts(&progress), (5, 5, 0, 0));
    assert!(progress.resources[0].finished);
    assert_eq!(kept.len(), 3);
}

/// Field case K1, the other half: an error that lasts stops the run and says so; what is left is
/// never told as done.
#[tokio::test]
async fn k1_a_list_that_fails_is_no_end() {
    let mut world = World::new().page("", &["a"], "two");
    for _ in 0..20 {
        world = world.page_error("two", error(500, "InternalError", "no"));
    }
    let world = Arc::new(world);
    let (mut progress, mut kept) = (secrets(), Vec::new());
    let stopped = world.run(&mut progress, &mut kept).await.expect_err("stopped");
    assert_eq!(stopped.to_string(), "cannot list secrets: no");
    assert!(!progress.resources[0].finished);
    assert_eq!(kept.last().expect("one page").resources[0].token, "two");
}

/// Field case K35: an admission webhook refuses one object; the others are rewritten, once each.
#[tokio::test]
async fn k35_a_refused_object_stops_nothing_and_is_named() {
    let refused = error(500, "InternalError", "admission webhook \"x\" denied the request");
    let world = Arc::new(World::new().page("", &["a", "bad", "c"], "").rewrite_error("bad", refused));
    let mut progress = secrets();
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    assert_eq!(world.rewritten(), ["a", "c"]);
    let failed = &progress.resources[0].failed;
    assert_eq!(failed.len(), 1);
    assert_eq!(
        (&*failed[0].name, &*failed[0].reason),
        ("ns/bad", "admission webhook \"x\" denied the request")
    );
    assert_eq!(counts(&progress), (3, 2, 0, 1));
}

#[tokio::test]
async fn busy_servers_are_waited_for_as_long_as_they_say() {
    let mut busy = error(429, "TooManyRequests", "busy");
    busy.retry_after = Duration::from_secs(7);
    let world = Arc::new(
        World::new()
            .page("", &["a"], "")
            .page_error("", error(503, "ServiceUnavailable", "starting"))
            .rewrite_error("a", busy)
            .rewrite_error("a", error(0, "", "connection refused"))
            .rewrite_error("a", error(409, "Conflict", "the object has been modified")),
    );
    let mut progress = secrets();
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    assert_eq!(counts(&progress), (1, 1, 0, 0));
    // Half a second for the list; then what the server wants, and pauses of one and two seconds.
    let at = world.rewrites.lock()[0].1;
    assert_eq!(at, Duration::from_millis(500 + 7_000 + 1_000 + 2_000));
}

#[tokio::test]
async fn an_object_that_stays_busy_is_named_at_last() {
    let mut world = World::new().page("", &["a", "b"], "");
    for _ in 0..20 {
        world = world.rewrite_error("a", error(504, "Timeout", "too slow"));
    }
    let world = Arc::new(world);
    let mut progress = secrets();
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    assert_eq!(counts(&progress), (2, 1, 0, 1));
    assert_eq!(world.rewrite_errors.lock()["a"].len(), 12, "eight attempts");
}

#[tokio::test]
async fn what_is_gone_needs_nothing() {
    let world = Arc::new(
        World::new()
            .page("", &["a", "b"], "")
            .rewrite_error("a", error(404, "NotFound", "secrets \"a\" not found"))
            .rewrite_error("b", error(409, "Conflict", "Precondition failed: UID in precondition: x")),
    );
    let mut progress = secrets();
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    assert_eq!(counts(&progress), (2, 0, 2, 0));
}

#[tokio::test]
async fn missing_rights_stop_the_run_at_once() {
    let world = Arc::new(
        World::new()
            .page("", &["a", "b"], "")
            .rewrite_error("a", error(403, "Forbidden", "secrets is forbidden")),
    );
    let mut progress = secrets();
    let stopped = world.run(&mut progress, &mut Vec::new()).await.expect_err("stopped");
    assert_eq!(stopped.to_string(), "not allowed to rewrite secrets: secrets is forbidden");
    assert!(!progress.resources[0].finished);
}

/// Two runs do what one does, and nothing twice that was kept.
#[tokio::test]
async fn a_run_goes_on_where_the_last_one_stopped() {
    let world =
        || World::new().page("", &["a", "b"], "two").page("two", &["c"], "three").page("three", &["d"], "");
    let first = Arc::new((0..20).fold(world(), |world, _| world.page_error("three", error(503, "", "down"))));
    let (mut progress, mut kept) = (secrets(), Vec::new());
    first.run(&mut progress, &mut kept).await.expect_err("stopped");
    let text = serde_json::to_string(kept.last().expect("kept")).expect("JSON");
    let mut resumed: Progress = serde_json::from_str(&text).expect("a progress");
    assert!(resumed.belongs_to("https://one", &["secrets".to_owned()], false));
    assert!(!resumed.belongs_to("https://two", &["secrets".to_owned()], false));
    assert!(!resumed.belongs_to("https://one", &["configmaps".to_owned()], false));
    assert!(!resumed.belongs_to("https://one", &["secrets".to_owned()], true));
    let second = Arc::new(world());
    second.run(&mut resumed, &mut Vec::new()).await.expect("done");
    assert_eq!(second.rewritten(), ["d"]);
    assert_eq!(counts(&resumed), (4, 4, 0, 0));
}

/// Twenty in a second, evenly, however fast the server is.
#[tokio::test]
async fn rewrites_keep_to_the_rate() {
    let names: Vec<String> = (0..50).map(|number| format!("s{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = Arc::new(World::new().page("", &names, ""));
    let mut progress = secrets();
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    let rewrites = world.rewrites.lock();
    for (number, (_, at)) in rewrites.iter().enumerate() {
        assert_eq!(*at, Duration::from_millis(50) * u32::try_from(number).expect("small"));
    }
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let world = Arc::new(World::new().page("", &["a", "b"], ""));
    let mut progress = Progress::new("https://one", &["secrets".to_owned()], true);
    world.run(&mut progress, &mut Vec::new()).await.expect("done");
    assert_eq!(counts(&progress), (2, 0, 0, 0));
    assert!(world.rewritten().is_empty());
}
