//! One watch: the present state if wanted, then every change, and bookmarks between.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use coffer_types::Status;
use coffer_types::time::Sleep;
use futures::Stream;

use super::Cache;
use super::history::{Change, bookmark, event};
use super::snapshot::{Cursor, Slot, Snapshot};
use super::watchers::{Handle, Mode, Scope};
use crate::kv::Revision;
use crate::registry::error::UnreadableList;
use crate::registry::{Event, EventType, Predicate};

/// How often a watcher gets a bookmark.
pub const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before a watch's end it gets its last bookmark.
pub const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Changes read from the history in one go.
const CATCH_UP: usize = 512;

/// What a watch is made from.
pub(crate) struct Start {
    pub(crate) scope: Scope,
    pub(crate) predicate: Arc<dyn Predicate>,
    /// Send the present state first.
    pub(crate) initial: bool,
    /// Mark its end.
    pub(crate) initial_end: bool,
    /// Changes up to this revision are known to the watcher. With `initial`: the least revision of the state.
    pub(crate) after: Revision,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Option<Duration>,
}

/// A watch; dropping it ends it.
pub(crate) struct Watch {
    cache: Arc<Cache>,
    id: u64,
    handle: Arc<Handle>,
    scope: Scope,
    predicate: Arc<dyn Predicate>,
    everything: bool,
    initial: Option<(Snapshot, Cursor)>,
    initial_end: bool,
    /// Revision of the present state, or where the watch began.
    start: Revision,
    /// Sequence of the last change that was looked at.
    position: u64,
    batch: VecDeque<Arc<Change>>,
    /// When the batch was taken.
    taken: Duration,
    bookmarks: Option<Bookmarks>,
    /// An error has been sent: nothing follows.
    ended: bool,
}

struct Bookmarks {
    sleep: Sleep,
    due: bool,
    /// When the last one before the end is due (monotonic).
    last: Option<Duration>,
}

impl Watch {
    /// Registers the watch. An error becomes the stream's only item.
    pub(crate) fn open(cache: &Arc<Cache>, start: Start) -> Result<Self, Status> {
        // Lock order: watchers, then state.
        let mut watchers = cache.watchers.lock();
        let state = cache.state.read();
        if !state.ready {
            return Err(state.not_ready(cache.clock().monotonic()));
        }
        let (initial, revision, position) = if start.initial {
            (Some(state.objects.clone()), state.revision, state.history.next_sequence() - 1)
        } else {
            let oldest = state.history.oldest();
            if start.after < oldest {
                return Err(crate::registry::error::watch_too_old(start.after, oldest));
            }
            (None, start.after, state.history.position(start.after))
        };
        drop(state);
        let (id, handle) = watchers.add(start.scope.clone());
        drop(watchers);
        let initial = initial.map(|objects| {
            let cursor = match &start.scope {
                Scope::All => objects.seek(b""),
                Scope::Namespace(prefix) | Scope::Object(prefix) => objects.seek(prefix),
            };
            (objects, cursor)
        });
        let mut watch = Self {
            cache: cache.clone(),
            id,
            handle,
            everything: start.predicate.is_everything(),
            scope: start.scope,
            predicate: start.predicate,
            initial,
            initial_end: start.initial_end,
            start: revision,
            position,
            batch: VecDeque::new(),
            taken: Duration::ZERO,
            bookmarks: None,
            ended: false,
        };
        watch.check_readable()?;
        if start.bookmarks {
            let now = cache.clock().monotonic();
            let last = start.timeout.map(|timeout| now + timeout.saturating_sub(BOOKMARK_BEFORE_END));
            watch.bookmarks =
                Some(Bookmarks { sleep: cache.clock().sleep(Duration::ZERO), due: false, last });
            watch.set_bookmark_timer();
        }
        Ok(watch)
    }

    /// An unreadable object in the present state fails the watch, naming it: it is never left out silently.
    fn check_readable(&mut self) -> Result<(), Status> {
        let Some((objects, cursor)) = &mut self.initial else { return Ok(()) };
        if self.cache.unreadable() == 0 {
            return Ok(());
        }
        let mut unreadable = UnreadableList::default();
        let mut ahead = *cursor;
        while let Some(slot) = objects.next(&mut ahead, b"") {
            if let Slot::Corrupt(found) = slot
                && self.scope.contains(found.tail())
                && self.cache.reopen(found).is_none()
                && unreadable.push(found.key(), found.error.clone())
            {
                break;
            }
        }
        unreadable.finish(&self.cache.objects.resource)
    }

    fn next_initial(&mut self) -> Option<Arc<Event>> {
        if let Some((objects, cursor)) = &mut self.initial {
            while let Some(slot) = objects.next(cursor, b"") {
                let stored = match slot {
                    Slot::Good(stored) => stored.clone(),
                    // Readable by now: it was checked when the watch began.
                    Slot::Corrupt(found) => match self.cache.reopen(found) {
                        Some(stored) => stored,
                        None => continue,
                    },
                };
                match &self.scope {
                    Scope::All => {}
                    scope if scope.contains(&slot.tail()) => {}
                    // Objects of a scope lie side by side.
                    _ => break,
                }
                if self.everything || self.predicate.matches(&stored) {
                    self.cache.objects.counts.initial_events.add(1);
                    return Some(event(EventType::Added, stored));
                }
            }
            self.initial = None;
        }
        if std::mem::take(&mut self.initial_end) {
            return Some(bookmark(self.start, true));
        }
        None
    }

    fn look_at(&mut self, change: &Change) -> Option<Result<Arc<Event>, Status>> {
        if change.sequence <= self.position {
            return None;
        }
        self.position = change.sequence;
        // A watch may begin at a revision that this server has not reached yet.
        if change.revision <= self.start || !self.scope.contains(&change.tail) {
            return None;
        }
        if self.everything { Some(change.natural()) } else { change.seen_by(&*self.predicate) }
    }

    /// Takes what is queued, or else what the history has. When there is nothing, the watcher will be woken.
    fn refill(&mut self, waker: &Waker) -> Refill {
        {
            let mut queue = self.handle.queue.lock();
            if !queue.changes.is_empty() {
                std::mem::swap(&mut queue.changes, &mut self.batch);
                return Refill::Some;
            }
            match queue.mode {
                Mode::Live => {
                    queue.fall_asleep(waker);
                    return Refill::Nothing;
                }
                Mode::Ended => return Refill::Ended,
                Mode::Behind => {}
            }
        }
        // While the watchers are locked nothing is handed over, so that no change is missed between
        // the history's end and the queue. Changes that come twice are recognised by their sequence.
        let watchers = self.cache.watchers.lock();
        let state = self.cache.state.read();
        let Some(changes) = state.history.after(self.position, CATCH_UP) else {
            self.cache.objects.counts.terminated_watchers.add(1);
            return Refill::Ended;
        };
        let mut looked_at = 0;
        let mut last = self.position;
        for change in changes {
            looked_at += 1;
            last = change.sequence;
            if self.scope.contains(&change.tail) {
                self.batch.push_back(change.clone());
            }
        }
        if self.batch.is_empty() {
            self.position = last;
        }
        if looked_at < CATCH_UP {
            let mut queue = self.handle.queue.lock();
            if queue.mode == Mode::Ended {
                return Refill::Ended;
            }
            queue.mode = Mode::Live;
        }
        drop(state);
        drop(watchers);
        // Either there is something, or the next look finds the rest, or nothing in the queue.
        Refill::Some
    }

    /// A bookmark when one is due, and everything before it has been sent.
    fn poll_bookmark(&mut self, context: &mut Context<'_>) -> Poll<Option<Arc<Event>>> {
        let Some(bookmarks) = &mut self.bookmarks else { return Poll::Pending };
        if !bookmarks.due {
            bookmarks.due = bookmarks.sleep.as_mut().poll(context).is_ready();
        }
        if !bookmarks.due {
            return Poll::Pending;
        }
        let revision = {
            let watchers = self.cache.watchers.lock();
            let queue = self.handle.queue.lock();
            if queue.mode != Mode::Live || !queue.changes.is_empty() {
                // Not everything up to `dispatched` has been sent: the bookmark stays due.
                return Poll::Ready(None);
            }
            watchers.dispatched
        };
        self.set_bookmark_timer();
        // Never below where the client already is; then there is only the next one to wait for.
        Poll::Ready((self.start <= revision).then(|| bookmark(revision, false)))
    }

    fn set_bookmark_timer(&mut self) {
        let now = self.cache.clock().monotonic();
        if let Some(bookmarks) = &mut self.bookmarks {
            let mut wait = BOOKMARK_PERIOD;
            match bookmarks.last {
                Some(last) if now < last => wait = wait.min(last - now),
                _ => bookmarks.last = None,
            }
            bookmarks.due = false;
            bookmarks.sleep = self.cache.clock().sleep(wait);
        }
    }
}

impl Stream for Watch {
    type Item = Result<Arc<Event>, Status>;

    /// The next event; `None` when the watch has ended without one.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let watch = &mut *self;
        loop {
            if watch.ended {
                return Poll::Ready(None);
            }
            if let Some(found) = watch.next_initial() {
                return Poll::Ready(Some(Ok(found)));
            }
            while let Some(change) = watch.batch.pop_front() {
                if let Some(seen) = watch.look_at(&change) {
                    let took = watch.taken.saturating_sub(change.recorded);
                    watch.cache.objects.counts.dispatch.observe_time(took);
                    watch.ended = seen.is_err();
                    return Poll::Ready(Some(seen));
                }
            }
            match watch.refill(context.waker()) {
                Refill::Some => watch.taken = watch.cache.clock().monotonic(),
                Refill::Ended => watch.ended = true,
                Refill::Nothing => match watch.poll_bookmark(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(found)) => return Poll::Ready(Some(Ok(found))),
                    Poll::Ready(None) => {}
                },
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.cache.watchers.lock().remove(&self.scope, self.id);
    }
}

enum Refill {
    Some,
    Nothing,
    Ended,
}
