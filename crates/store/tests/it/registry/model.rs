//! Many clients at once, against the engine's own log of what happened.
//!
//! Every list must be the state at its revision, and not older than what was
//! acknowledged before it was asked for. Every watch, however often it is
//! dropped and resumed, must yield exactly the changes of its selection: in
//! order, no gap, no duplicate; and when a bookmark says that everything up to a
//! revision has been sent, it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_sim::SeededRandom;
use coffer_store::cache::BOOKMARK_PERIOD;
use coffer_store::kv::{Kv, Revision, WatchMessage, WatchRequest, prefix_end};
use coffer_store::registry::{EventType, ListRequest, ReadAt, Registry, WatchOptions};
use coffer_types::meta::Meta;
use futures::StreamExt;

use super::world::*;

const NAMESPACES: [&str; 3] = ["a", "a-b", "b"];
const SELECTIONS: [Select; 3] = [Select::All, Select::Label("app", "web"), Select::Label("app", "db")];
const WRITERS: u64 = 3;
const WRITES: usize = 120;
const WATCHERS: u64 = 6;

/// One change as the engine reports it.
struct Logged {
    revision: Revision,
    /// `namespace/name`.
    key: String,
    /// The label; `None` when the object is gone.
    label: Option<String>,
}

/// `namespace/name` to label.
type State = BTreeMap<String, String>;

fn selects(namespace: &str, select: Select, key: &str, label: Option<&String>) -> bool {
    let Some(label) = label else { return false };
    (namespace.is_empty() || key.starts_with(&format!("{namespace}/")))
        && match select {
            Select::Label(_, wanted) => label == wanted,
            _ => true,
        }
}

/// What a watcher of everything after `from` must see up to `to`.
fn expected(log: &[Logged], namespace: &str, select: Select, from: Revision, to: Revision) -> Vec<String> {
    let mut state = State::new();
    let mut events = Vec::new();
    for change in log.iter().take_while(|change| change.revision <= to) {
        let old = state.get(&change.key).cloned();
        match &change.label {
            Some(label) => state.insert(change.key.clone(), label.clone()),
            None => state.remove(&change.key),
        };
        if change.revision <= from {
            continue;
        }
        let kind = match (
            selects(namespace, select, &change.key, old.as_ref()),
            selects(namespace, select, &change.key, change.label.as_ref()),
        ) {
            (false, false) => continue,
            (true, true) => "MODIFIED",
            (false, true) => "ADDED",
            (true, false) => "DELETED",
        };
        events.push(format!("{kind} {}@{}", change.key, change.revision));
    }
    events
}

/// What is there at `revision`, each with the revision of its last change.
fn state_at(log: &[Logged], namespace: &str, select: Select, revision: Revision) -> Vec<String> {
    let mut state = BTreeMap::new();
    for change in log.iter().take_while(|change| change.revision <= revision) {
        match &change.label {
            Some(label) => state.insert(&change.key, (label, change.revision)),
            None => state.remove(&change.key),
        };
    }
    // The order of keys is that of their bytes.
    state
        .into_iter()
        .filter(|(key, (label, _))| selects(namespace, select, key, Some(label)))
        .map(|(key, (_, revision))| format!("{key}@{revision}"))
        .collect()
}

/// What one watcher has seen.
struct Seen {
    namespace: &'static str,
    select: Select,
    /// The state that it began with and its revision, if it asked for it.
    initial: Option<(Vec<String>, Revision)>,
    from: Revision,
    events: Vec<String>,
    /// How many events had come when a bookmark came, and its revision.
    bookmarks: Vec<(usize, Revision)>,
}

struct Listed {
    namespace: &'static str,
    select: Select,
    at: ReadAt,
    /// What had been acknowledged before the list was asked for.
    acknowledged: Revision,
    items: Vec<String>,
    revision: Revision,
}

struct Run {
    world: World,
    acknowledged: AtomicI64,
    done: AtomicBool,
}

pub(crate) async fn concurrent_clients_agree_with_the_log(world: World) {
    let seed = std::env::var("COFFER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_130);
    let start = world.current().await;
    let run = Arc::new(Run { world, acknowledged: AtomicI64::new(0), done: AtomicBool::new(false) });
    let watchers: Vec<_> =
        (0..WATCHERS).map(|number| tokio::spawn(watcher(run.clone(), seed + 100 + number))).collect();
    let lister = tokio::spawn(lister(run.clone(), seed + 200));
    let writers: Vec<_> =
        (0..WRITERS).map(|number| tokio::spawn(writer(run.clone(), seed + number))).collect();
    for writer in writers {
        writer.await.expect("the writer");
    }
    let last = run.world.current().await;
    run.world.cached(last).await;
    run.done.store(true, Ordering::SeqCst);
    let log = log(&run.world, start, last).await;
    assert!(WRITES < log.len(), "too little happened: {}", log.len());
    for listed in lister.await.expect("the lister") {
        check_list(seed, &log, &listed);
    }
    for watcher in watchers {
        check_watch(seed, &log, &watcher.await.expect("the watcher"), last);
    }
}

async fn writer(run: Arc<Run>, seed: u64) {
    let random = SeededRandom::new(seed);
    let pick = |options: &[&'static str]| options[random.below(options.len() as u64) as usize];
    for _ in 0..WRITES {
        let name = format!("pod-{}", random.below(6));
        let object =
            with(pod(pick(&NAMESPACES), &name), &["metadata", "labels", "app"], pick(&["web", "db"]));
        let marked = with(object.clone(), &["spec", "nodeName"], &random.below(4).to_string());
        let world = &run.world;
        let written = match random.below(4) {
            0 => world.delete(&object).await,
            1 => world.store.create(object.namespace(), object.name(), &object, 0).await,
            _ => world.update_with(&marked, true, |_| Ok(marked.clone())).await,
        };
        match written {
            Ok(stored) => drop(run.acknowledged.fetch_max(stored.revision, Ordering::SeqCst)),
            Err(error) => assert!(matches!(error.code, 404 | 409), "{error}"),
        }
        if random.one_in(8) {
            world.increase_revision().await;
        }
        if random.one_in(5) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn lister(run: Arc<Run>, seed: u64) -> Vec<Listed> {
    let random = SeededRandom::new(seed);
    let mut lists = Vec::new();
    let mut known = 0;
    while !run.done.load(Ordering::SeqCst) {
        let namespace = ["", "a", "a-b", "b"][random.below(4) as usize];
        let select = SELECTIONS[random.below(3) as usize];
        let acknowledged = run.acknowledged.load(Ordering::SeqCst);
        let at = match random.below(4) {
            0 if 0 < known => ReadAt::Exact(known),
            1 => ReadAt::NotOlderThan(acknowledged),
            2 => ReadAt::Any,
            _ => ReadAt::Latest,
        };
        let limit = random.below(4) as usize;
        let mut request = ListRequest { at, limit, predicate: Arc::new(select), ..list(namespace) };
        let mut items = Vec::new();
        let revision = loop {
            let page = run.world.store.list(request).await.expect("a page");
            items.extend(show_list(&page));
            if page.continue_token.is_empty() {
                break page.revision;
            }
            request = ListRequest {
                limit,
                continue_token: page.continue_token,
                predicate: Arc::new(select),
                ..list(namespace)
            };
            tokio::task::yield_now().await;
        };
        known = revision;
        lists.push(Listed { namespace, select, at, acknowledged, items, revision });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    lists
}

async fn watcher(run: Arc<Run>, seed: u64) -> Seen {
    let random = SeededRandom::new(seed);
    let namespace = ["", "a", "a-b", "b"][random.below(4) as usize];
    let select = SELECTIONS[random.below(3) as usize];
    tokio::time::sleep(Duration::from_millis(random.below(30))).await;
    let options = |from, initial| WatchOptions {
        send_initial_events: Some(initial),
        bookmarks: true,
        predicate: Arc::new(select),
        ..watch(namespace, from)
    };
    let initial = random.one_in(2);
    let mut seen =
        Seen { namespace, select, initial: None, from: 0, events: Vec::new(), bookmarks: Vec::new() };
    let mut watching = if initial {
        let mut watching = run.world.watch(options(None, true)).await;
        let mut state = Vec::new();
        loop {
            let event = watching.event().await;
            if event.initial_events_end {
                seen.from = event.revision;
                break;
            }
            state.push(show(&event).replace("ADDED ", ""));
        }
        seen.initial = Some((state, seen.from));
        watching
    } else {
        seen.from = run.world.list("").await.revision;
        run.world.watch(options(Some(seen.from), false)).await
    };
    let mut last = seen.from;
    let mut quiet = 0;
    // Until nothing has come for a while after the last write.
    while quiet < 3 {
        match tokio::time::timeout(QUIET, watching.0.next()).await {
            Ok(event) => {
                let event = event.expect("the watch goes on").expect("no error");
                last = event.revision;
                if event.event_type == EventType::Bookmark {
                    seen.bookmarks.push((seen.events.len(), event.revision));
                } else {
                    seen.events.push(show(&event));
                }
            }
            Err(_) if run.done.load(Ordering::SeqCst) => {
                quiet += 1;
                run.world.clock.advance(BOOKMARK_PERIOD);
            }
            Err(_) => run.world.clock.advance(BOOKMARK_PERIOD),
        }
        if random.one_in(10) {
            // Lost and taken up again where it was.
            watching = run.world.watch(options(Some(last), false)).await;
        }
        if random.one_in(20) {
            tokio::time::sleep(Duration::from_millis(random.below(20))).await;
        }
    }
    seen
}

/// Everything that happened to pods, from the engine itself.
async fn log(world: &World, start: Revision, last: Revision) -> Vec<Logged> {
    let prefix = "/registry/pods/";
    let request = WatchRequest {
        start: Bytes::from(prefix),
        end: prefix_end(prefix.as_bytes()),
        from: start,
        previous: false,
        progress: true,
    };
    let mut stream = world.probe.inner().watch(request).await.expect("a watch");
    let mut log = Vec::new();
    let codec = Json;
    let mut reached = 0;
    while reached < last {
        let wait = tokio::time::timeout(Duration::from_millis(100), stream.next()).await;
        let Ok(message) = wait else {
            world.probe.request_progress(&Bytes::from(prefix)).await.expect("progress");
            continue;
        };
        match message.expect("the watch goes on").expect("no error") {
            WatchMessage::Created(_) => {}
            WatchMessage::Progress(revision) => reached = reached.max(revision),
            WatchMessage::Events(events) => {
                for event in events {
                    let revision = event.kv.mod_revision;
                    reached = reached.max(revision);
                    let key = std::str::from_utf8(&event.kv.key).expect("text")[prefix.len()..].to_owned();
                    let label = (!event.deleted).then(|| {
                        use coffer_store::registry::ObjectCodec as _;
                        let object = codec.decode(&event.kv.value["test:".len()..]).expect("JSON");
                        object.label("app").unwrap_or_default().to_owned()
                    });
                    log.push(Logged { revision, key, label });
                }
            }
        }
    }
    log
}

fn check_list(seed: u64, log: &[Logged], listed: &Listed) {
    let Listed { namespace, select, at, acknowledged, items, revision } = listed;
    let what = format!("seed {seed}: {at:?} of {namespace:?} {select:?} at {revision}");
    assert_eq!(items, &state_at(log, namespace, *select, *revision), "{what}");
    match at {
        ReadAt::Latest | ReadAt::NotOlderThan(_) => assert!(acknowledged <= revision, "{what} is stale"),
        ReadAt::Exact(exact) => assert_eq!(exact, revision, "{what}"),
        ReadAt::Any => {}
    }
}

fn check_watch(seed: u64, log: &[Logged], seen: &Seen, last: Revision) {
    let Seen { namespace, select, initial, from, events, bookmarks } = seen;
    if let Some((state, revision)) = initial {
        assert_eq!(
            state,
            &state_at(log, namespace, *select, *revision),
            "seed {seed}: initial state at {revision}"
        );
    }
    assert_eq!(
        events,
        &expected(log, namespace, *select, *from, last),
        "seed {seed}: {namespace:?} {select:?}"
    );
    for (count, revision) in bookmarks {
        let due = expected(log, namespace, *select, *from, *revision).len();
        assert_eq!(*count, due, "seed {seed}: a bookmark at {revision} came too early");
    }
}
