//! The watch cache of one resource: every object's stored bytes once, sorted by key, with the
//! last changes.
//!
//! One task fills it (`fill.rs`); everyone else reads. A read takes a lock only
//! to copy a pointer, and no lock is held while anything is awaited.
//!
//! An object that cannot be read does not take the resource down, as it does
//! upstream: it stays in the cache as what it is, reads that would include it fail
//! naming it, and all others are served.

mod fill;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod snapshot;
mod statistics;
pub(crate) mod watch;
pub(crate) mod watchers;

pub(crate) use self::fill::after as fill_after;
pub use self::fill::{FIRST_PAGE, PAGE, PAGE_BYTES};
pub use self::history::{HISTORY_WINDOW, MAX_HISTORY, MAX_QUEUED, MAX_UNDONE, MIN_HISTORY};
pub use self::watch::{BOOKMARK_BEFORE_END, BOOKMARK_PERIOD};
pub use crate::shared::PROGRESS_PERIOD;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_types::Status;
use coffer_types::time::Clock;
use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;

use self::history::{Change, History};
use self::snapshot::{Slot, Snapshot};
use self::watchers::Watchers;
use crate::kv::Revision;
use crate::registry::Stored;
use crate::registry::error::{not_ready, too_large_resource_version};
use crate::registry::objects::{Objects, Unreadable};
use crate::shared::Shared;

/// How long a read waits for the cache to reach a revision.
pub const FRESHNESS_WAIT: Duration = Duration::from_secs(3);
/// `retryAfterSeconds` of a read that waited in vain.
const TOO_LARGE_RETRY_AFTER: i32 = 1;

/// The cache.
pub(crate) struct Cache {
    pub(crate) objects: Arc<Objects>,
    pub(crate) shared: Arc<Shared>,
    /// Held for pointer copies and single changes only.
    pub(crate) state: RwLock<State>,
    /// Held while changes are handed over. Taken before `state` where both are needed.
    pub(crate) watchers: Mutex<Watchers>,
    /// Tells waiting reads how far the cache is.
    reached: tokio::sync::watch::Sender<Reached>,
    /// How many objects cannot be read.
    unreadable: AtomicUsize,
    stop: CancellationToken,
}

/// What the cache holds.
pub(crate) struct State {
    /// Whether the cache has been filled and followed since.
    pub(crate) ready: bool,
    /// Since when it is not ready (monotonic).
    unready_since: Duration,
    /// Why filling failed last.
    last_error: Option<String>,
    pub(crate) objects: Snapshot,
    /// Every change up to this revision is in `objects`.
    pub(crate) revision: Revision,
    pub(crate) history: History,
}

#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    ready: bool,
    revision: Revision,
}

impl State {
    /// 429.
    pub(crate) fn not_ready(&self, now: Duration) -> Status {
        not_ready(now.saturating_sub(self.unready_since), self.last_error.as_deref())
    }
}

impl Cache {
    /// An empty cache and the task that fills it.
    pub(crate) fn start(objects: Arc<Objects>, shared: Arc<Shared>) -> Arc<Self> {
        let cache = Arc::new(Self {
            state: RwLock::new(State {
                ready: false,
                unready_since: shared.clock.monotonic(),
                last_error: None,
                objects: Snapshot::default(),
                revision: 0,
                history: History::new(),
            }),
            watchers: Mutex::default(),
            reached: tokio::sync::watch::Sender::new(Reached::default()),
            unreadable: AtomicUsize::new(0),
            stop: CancellationToken::new(),
            objects,
            shared,
        });
        tokio::spawn(fill::run(cache.clone()));
        cache
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    /// Stops filling and ends all watches.
    pub(crate) fn close(&self) {
        self.stop.cancel();
        self.unready("apiserver cacher is stopped".to_owned());
    }

    pub(crate) fn ready(&self) -> bool {
        self.state.read().ready
    }

    /// How many objects cannot be read.
    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// How many watches there are.
    pub(crate) fn watch_count(&self) -> usize {
        self.watchers.lock().len()
    }

    /// The object as the cache has it now, if the cache is ready and the object readable.
    pub(crate) fn peek(&self, tail: &[u8]) -> Option<Arc<Stored>> {
        let objects = {
            let state = self.state.read();
            if !state.ready {
                return None;
            }
            state.objects.clone()
        };
        match objects.get(tail)? {
            Slot::Good(stored) => Some(stored.clone()),
            Slot::Corrupt(unreadable) => self.reopen(unreadable),
        }
    }

    /// Waits until the cache is filled, or gives the 429 that says that it is not.
    pub(crate) async fn wait_ready(&self) -> Result<(), Status> {
        if self.ready() {
            return Ok(());
        }
        self.wait_for(|reached| reached.ready).await;
        let state = self.state.read();
        if state.ready { Ok(()) } else { Err(state.not_ready(self.clock().monotonic())) }
    }

    /// Waits until every change up to `revision` is in the cache, or gives the 504 that says that it is not.
    pub(crate) async fn wait_fresh(&self, revision: Revision) -> Result<(), Status> {
        if revision <= self.state.read().revision {
            return Ok(());
        }
        // Without it a quiet resource would never learn of revisions that others have used.
        let root = Bytes::copy_from_slice(self.objects.keys.root().as_bytes());
        let _asking = self.shared.progress.ask(root);
        let began = self.clock().monotonic();
        self.wait_for(|reached| revision <= reached.revision).await;
        self.objects.counts.read_waits.observe_time(self.clock().monotonic().saturating_sub(began));
        let current = self.state.read().revision;
        if revision <= current {
            Ok(())
        } else {
            Err(too_large_resource_version(revision, current, TOO_LARGE_RETRY_AFTER))
        }
    }

    async fn wait_for(&self, condition: impl FnMut(&Reached) -> bool) {
        let mut reached = self.reached.subscribe();
        tokio::select! {
            _ = reached.wait_for(condition) => {}
            () = self.clock().sleep(FRESHNESS_WAIT) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Reads an object again that could not be read when it came: keys may have been added since.
    pub(crate) fn reopen(&self, unreadable: &Unreadable) -> Option<Arc<Stored>> {
        let stored = self.objects.open(&unreadable.kv).ok()?.stored;
        let mut state = self.state.write();
        let tail = unreadable.tail();
        if let Some(Slot::Corrupt(present)) = state.objects.get(tail)
            && present.kv.mod_revision == stored.revision
        {
            state.objects.insert(tail, Slot::Good(stored.clone()));
            self.unreadable.fetch_sub(1, Ordering::Relaxed);
        }
        Some(stored)
    }

    /// Puts in everything that was listed at `revision` (which `took` so long), and ends all watches: what happened since
    /// their last event is not known.
    fn refill(&self, slots: Vec<Slot>, revision: Revision, took: Duration) {
        let mut first = None;
        let mut unreadable = 0;
        for slot in &slots {
            if let Slot::Corrupt(found) = slot {
                unreadable += 1;
                first.get_or_insert_with(|| (found.key(), found.error.cause()));
            }
        }
        if let Some((key, error)) = first {
            // One line, however many they are.
            tracing::warn!(
                group = self.objects.resource.group,
                resource = self.objects.resource.name,
                count = unreadable,
                key,
                error,
                "stored objects cannot be read; lists that would hold them fail, and name them"
            );
        }
        self.objects.counts.initializations.observe_time(took);
        let objects = Snapshot::from_sorted(slots);
        let mut watchers = self.watchers.lock();
        watchers.end_all();
        watchers.dispatched = revision;
        let mut state = self.state.write();
        state.objects = objects;
        // A store that was restored from a backup may be at a lower revision than before.
        state.revision = revision;
        state.history.reset(revision);
        state.ready = true;
        state.last_error = None;
        self.unreadable.store(unreadable, Ordering::Relaxed);
        drop(state);
        drop(watchers);
        self.reached.send_replace(Reached { ready: true, revision });
    }

    /// The cache cannot be filled or followed any more: reads get 429, watches end.
    fn failed(&self, why: String) {
        self.objects.counts.initialization_errors.add(1);
        self.unready(why);
    }

    fn unready(&self, why: String) {
        let mut watchers = self.watchers.lock();
        watchers.end_all();
        let mut state = self.state.write();
        if state.ready {
            state.ready = false;
            state.unready_since = self.clock().monotonic();
        }
        state.last_error = Some(why);
        let revision = state.revision;
        drop(state);
        drop(watchers);
        self.reached.send_replace(Reached { ready: false, revision });
    }

    /// Takes in whole transactions, in order, and hands them over.
    fn apply(&self, arrived: Vec<Arrived>) {
        let (changes, revision) = self.take_in(arrived);
        self.hand_over(&changes, revision);
    }

    fn take_in(&self, arrived: Vec<Arrived>) -> (Vec<Arc<Change>>, Revision) {
        let recorded = self.clock().monotonic();
        self.objects.counts.received.add(arrived.len());
        let mut changes = Vec::with_capacity(arrived.len());
        let mut state = self.state.write();
        for Arrived { tail, revision, slot } in arrived {
            state.revision = state.revision.max(revision);
            let previous = match &slot {
                Some(slot) => state.objects.insert(&tail, slot.clone()),
                None => state.objects.remove(&tail),
            };
            self.count_unreadable(previous.as_ref(), slot.as_ref());
            if let Some(Slot::Corrupt(found)) = &slot {
                tracing::warn!(
                    key = found.key(),
                    error = found.error.cause(),
                    "a stored object cannot be read"
                );
            }
            if previous.is_none() && slot.is_none() {
                // The deletion of something that was never seen.
                continue;
            }
            let sequence = state.history.next_sequence();
            let change = Arc::new(Change::new(sequence, recorded, revision, tail, previous, slot));
            state.history.push(change.clone());
            changes.push(change);
        }
        (changes, state.revision)
    }

    /// A watch may have read the changes from the history by now; it recognises them.
    fn hand_over(&self, changes: &[Arc<Change>], revision: Revision) {
        let mut watchers = self.watchers.lock();
        watchers.dispatch(changes);
        self.objects.counts.dispatched.add(changes.len());
        watchers.dispatched = watchers.dispatched.max(revision);
        drop(watchers);
        self.reached.send_replace(Reached { ready: true, revision });
    }

    /// Nothing else has happened up to `revision`.
    fn progress(&self, revision: Revision) {
        self.objects.counts.progress_reports.add(1);
        let mut state = self.state.write();
        state.revision = state.revision.max(revision);
        let revision = state.revision;
        drop(state);
        self.hand_over(&[], revision);
    }

    fn count_unreadable(&self, previous: Option<&Slot>, current: Option<&Slot>) {
        if matches!(previous, Some(Slot::Corrupt(_))) {
            self.unreadable.fetch_sub(1, Ordering::Relaxed);
        }
        if matches!(current, Some(Slot::Corrupt(_))) {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One change as it came from the store, decrypted.
struct Arrived {
    tail: Box<[u8]>,
    revision: Revision,
    slot: Option<Slot>,
}

#[cfg(test)]
mod tests {
    use coffer_crypto::transformer::{Plain, TransformError, Transformer};
    use coffer_types::{SecretBytes, Value};

    use super::history::Change;
    use super::watch::{Start, Watch};
    use super::watchers::Scope;
    use super::*;
    use crate::embedded::{Embedded, EmbeddedOptions};
    use crate::key::{KeySpace, Origin};
    use crate::registry::error::Resource;
    use crate::registry::sealing::InUse;
    use crate::registry::{Attributes, EventType, ObjectCodec, Predicate, Stored};

    struct Plainly;

    impl Transformer for Plainly {
        fn from_storage(&self, stored: &[u8], _: &[u8]) -> Result<Plain, TransformError> {
            Ok(Plain { bytes: SecretBytes::new(stored.to_vec()), stale: false })
        }

        fn to_storage(&self, plain: &[u8], _: &[u8]) -> Result<Vec<u8>, TransformError> {
            Ok(plain.to_vec())
        }

        fn writes_under(&self) -> String {
            String::new()
        }
    }

    impl ObjectCodec for Plainly {
        fn decode(&self, _: &[u8]) -> Result<Value, String> {
            Ok(Value::object())
        }

        fn encode(&self, _: &Value) -> Result<Vec<u8>, String> {
            Ok(Vec::new())
        }

        fn attributes(&self, _: &[u8]) -> Result<Attributes, String> {
            Ok(Attributes::default())
        }
    }

    impl Predicate for Plainly {
        fn is_everything(&self) -> bool {
            true
        }

        fn matches(&self, _: &Stored) -> bool {
            true
        }
    }

    async fn cache() -> Arc<Cache> {
        let clock = Arc::new(coffer_runtime::clock::SystemClock::default());
        let kv = Arc::new(Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("opens"));
        let keys = KeySpace::new("/registry", "", "pods", Origin::BuiltIn, true).expect("a key space");
        let resource = Resource { group: String::new(), name: "pods".to_owned() };
        let in_use = InUse::new(Box::new(|_, _| Arc::new(Plainly)));
        let objects = Objects::new(resource, keys, Arc::new(Plainly), in_use);
        let shared = Shared::new(kv, clock, Bytes::from_static(b"/registry/health"));
        let cache = Cache::start(Arc::new(objects), Arc::new(shared));
        cache.wait_ready().await.expect("filled");
        cache
    }

    fn arrived(cache: &Cache, revision: Revision) -> Vec<Arrived> {
        let plain = SecretBytes::default();
        let stored = cache.objects.stored(b"/registry/pods/ns/a", plain, revision).expect("readable");
        vec![Arrived { tail: b"ns/a".as_slice().into(), revision, slot: Some(Slot::Good(stored)) }]
    }

    fn seen(watch: &mut Watch) -> Option<(EventType, Revision)> {
        let event = futures::FutureExt::now_or_never(futures::StreamExt::next(watch))??;
        event.ok().map(|event| (event.event_type, event.revision))
    }

    /// Between the moment that a change is in the history and the moment that it is handed over, a
    /// watch may read the history: it must see the change once.
    #[tokio::test]
    async fn a_change_is_seen_once_whichever_way_it_comes() {
        let cache = cache().await;
        let start = |after| Start {
            scope: Scope::All,
            predicate: Arc::new(Plainly),
            initial: false,
            initial_end: false,
            after,
            bookmarks: false,
            timeout: None,
        };
        let mut early = Watch::open(&cache, start(1)).expect("a watch");
        assert_eq!(seen(&mut early), None);
        let (changes, revision): (Vec<Arc<Change>>, _) = cache.take_in(arrived(&cache, 5));
        let mut late = Watch::open(&cache, start(1)).expect("a watch");
        assert_eq!(seen(&mut late), Some((EventType::Added, 5)));
        assert_eq!(seen(&mut late), None);
        assert_eq!(seen(&mut early), None);
        cache.hand_over(&changes, revision);
        assert_eq!(seen(&mut late), None);
        assert_eq!(seen(&mut early), Some((EventType::Added, 5)));
        cache.apply(arrived(&cache, 6));
        for watch in [&mut early, &mut late] {
            assert_eq!(seen(watch), Some((EventType::Modified, 6)));
            assert_eq!(seen(watch), None);
        }
    }
}
