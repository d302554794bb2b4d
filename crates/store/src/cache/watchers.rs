//! Who watches what, and the hand-over of changes to them.
//!
//! Handing over never waits: a watcher that does not keep up falls back to
//! reading the history at its own pace, and is ended only when the history no
//! longer reaches back to where it is. So its memory is bounded, and it slows
//! nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

use super::history::{Change, MAX_QUEUED};
use crate::kv::Revision;

/// Which keys a watcher wants; finer selection is its own business.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// All.
    All,
    /// Those below `<namespace>/`.
    Namespace(Box<[u8]>),
    /// One: `<namespace>/<name>` or `<name>`.
    Object(Box<[u8]>),
}

impl Scope {
    pub(crate) fn contains(&self, tail: &[u8]) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(prefix) => tail.starts_with(prefix),
            Self::Object(only) => tail == &**only,
        }
    }
}

/// One watcher as the cache sees it.
#[derive(Default)]
pub(crate) struct Handle {
    pub(crate) queue: Mutex<Queue>,
}

/// What waits for a watcher.
#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) changes: VecDeque<Arc<Change>>,
    pub(crate) mode: Mode,
    /// Wakes the watcher; kept from one time to the next, because it is nearly always the same.
    waker: Option<Waker>,
    /// The watcher waits, and has not been woken yet.
    asleep: bool,
}

impl Queue {
    /// The watcher has found nothing and waits.
    pub(crate) fn fall_asleep(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        self.asleep = true;
    }

    fn wake(&mut self) {
        if std::mem::take(&mut self.asleep)
            && let Some(waker) = &self.waker
        {
            waker.wake_by_ref();
        }
    }
}

/// Where a watcher gets its changes from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// From the history, after what is queued.
    #[default]
    Behind,
    /// From the queue.
    Live,
    /// From nowhere any more.
    Ended,
}

impl Handle {
    fn push(&self, change: &Arc<Change>) {
        let mut queue = self.queue.lock();
        if queue.mode == Mode::Live {
            if queue.changes.len() < MAX_QUEUED {
                queue.changes.push_back(change.clone());
            } else {
                queue.mode = Mode::Behind;
            }
        }
        queue.wake();
    }

    fn end(&self) {
        let mut queue = self.queue.lock();
        queue.mode = Mode::Ended;
        queue.wake();
    }
}

/// All watchers of a cache.
#[derive(Default)]
pub(crate) struct Watchers {
    scopes: HashMap<Scope, HashMap<u64, Arc<Handle>>>,
    next_id: u64,
    /// Everything up to this revision has been handed over.
    pub(crate) dispatched: Revision,
}

impl Watchers {
    /// Adds a watcher that begins by reading the history.
    pub(crate) fn add(&mut self, scope: Scope) -> (u64, Arc<Handle>) {
        self.next_id += 1;
        let handle = Arc::new(Handle::default());
        self.scopes.entry(scope).or_default().insert(self.next_id, handle.clone());
        (self.next_id, handle)
    }

    pub(crate) fn remove(&mut self, scope: &Scope, id: u64) {
        if let Some(handles) = self.scopes.get_mut(scope) {
            handles.remove(&id);
            if handles.is_empty() {
                self.scopes.remove(scope);
            }
        }
    }

    /// Hands changes over to all who want them.
    pub(crate) fn dispatch(&mut self, changes: &[Arc<Change>]) {
        for change in changes {
            let namespace = change.tail.iter().position(|byte| *byte == b'/');
            let namespace = namespace.map(|slash| Scope::Namespace(change.tail[..=slash].into()));
            let object = Scope::Object(change.tail.clone());
            for scope in [Some(Scope::All), namespace, Some(object)].into_iter().flatten() {
                for handle in self.scopes.get(&scope).into_iter().flat_map(HashMap::values) {
                    handle.push(change);
                }
            }
            self.dispatched = self.dispatched.max(change.revision);
        }
    }

    /// Ends all watches: the cache is filled anew, or closed.
    pub(crate) fn end_all(&mut self) {
        for handle in self.scopes.drain().flat_map(|(_, handles)| handles.into_values()) {
            handle.end();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.scopes.values().map(HashMap::len).sum()
    }
}
