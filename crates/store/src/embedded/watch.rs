//! Watches: a bounded buffer each, filled by the writer and drained by whoever watches.
//!
//! The writer never waits for a watch. A watch whose buffer is full falls behind: it gets nothing
//! more from the writer, reads what it missed from the history when it is drained, and rejoins the
//! writer once it has caught up. So memory is bounded by the buffers, whatever a watcher does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::read::{Fault, History};
use super::{Shared, heal};
use crate::kv::{KvError, KvEvent, Revision, WatchMessage, WatchRequest, WatchStream};

/// A buffer is full when it holds so many revisions,
const BUFFER_REVISIONS: usize = 1024;
/// or so many bytes of keys and values (which it shares with the other watches).
const BUFFER_BYTES: usize = 4 << 20;

/// The changes of one revision.
pub(crate) type Change = (Revision, Vec<KvEvent>);

/// All watches.
#[derive(Default)]
pub(crate) struct Hub {
    /// Also held while a revision becomes visible, so that nothing happens between the two.
    watchers: Mutex<Watchers>,
    /// Everything up to this revision is in the buffers, or known to be missing in them.
    published: AtomicI64,
}

#[derive(Default)]
struct Watchers {
    next: u64,
    /// In order of registration.
    all: BTreeMap<u64, Arc<Watcher>>,
    closed: bool,
}

struct Watcher {
    start: Bytes,
    end: Bytes,
    previous: bool,
    progress: bool,
    buffer: Mutex<Buffer>,
    /// There is something new to look at.
    wake: Notify,
}

struct Buffer {
    queue: VecDeque<Vec<KvEvent>>,
    bytes: usize,
    /// Changes before this revision are not wanted.
    from: Revision,
    /// Changes from this revision on are not in the queue and must be read from the history.
    behind: Option<Revision>,
    progress_due: bool,
    closed: bool,
}

impl Watcher {
    fn matches(&self, key: &[u8]) -> bool {
        match &*self.end {
            [] => self.start == key,
            [0] => *self.start <= *key,
            end => *self.start <= *key && key < end,
        }
    }

    /// The part of a change that this watch wants.
    fn select(&self, events: &[KvEvent]) -> Vec<KvEvent> {
        let wanted = events.iter().filter(|event| self.matches(&event.kv.key)).cloned();
        if self.previous {
            wanted.collect()
        } else {
            wanted.map(|event| KvEvent { previous: None, ..event }).collect()
        }
    }

    fn offer(&self, revision: Revision, events: &[KvEvent]) {
        let mut buffer = self.buffer.lock();
        if revision < buffer.from || buffer.behind.is_some() {
            return;
        }
        let wanted = self.select(events);
        if wanted.is_empty() {
            return;
        }
        // The watch may have begun after the writer found that nobody wants the previous values.
        let incomplete =
            self.previous && wanted.iter().any(|event| event.previous.is_none() && !event.created());
        if incomplete || BUFFER_REVISIONS <= buffer.queue.len() || BUFFER_BYTES <= buffer.bytes {
            buffer.behind = Some(revision);
        } else {
            buffer.bytes += wanted.iter().map(event_bytes).sum::<usize>();
            buffer.queue.push_back(wanted);
        }
        drop(buffer);
        self.wake.notify_one();
    }
}

fn event_bytes(event: &KvEvent) -> usize {
    let kv = |kv: &crate::kv::KeyValue| kv.key.len() + kv.value.len();
    kv(&event.kv) + event.previous.as_ref().map_or(0, kv)
}

impl Hub {
    /// Makes changes known: `visible` lets readers see them, then the watches get them.
    pub(crate) fn publish(&self, changes: &[Change], visible: impl FnOnce()) {
        let watchers = self.watchers.lock();
        visible();
        for (revision, events) in changes {
            for watcher in watchers.all.values() {
                watcher.offer(*revision, events);
            }
        }
        if let Some((revision, _)) = changes.last() {
            self.published.store(*revision, Ordering::Release);
        }
    }

    /// Sets the revision from which the store starts.
    pub(crate) fn start_at(&self, revision: Revision) {
        self.published.store(revision, Ordering::Release);
    }

    /// Has the watches that begin at `start` and report progress do so as soon as they are drained.
    pub(crate) fn request_progress(&self, start: &[u8]) {
        let watchers = self.watchers.lock();
        for watcher in watchers.all.values().filter(|watcher| watcher.progress && watcher.start == start) {
            watcher.buffer.lock().progress_due = true;
            watcher.wake.notify_one();
        }
    }

    /// Ends every watch.
    pub(crate) fn close(&self) {
        let mut watchers = self.watchers.lock();
        watchers.closed = true;
        for watcher in std::mem::take(&mut watchers.all).into_values() {
            watcher.buffer.lock().closed = true;
            watcher.wake.notify_one();
        }
    }

    /// Whether anybody wants to know what was there before a change.
    pub(crate) fn wants_previous(&self) -> bool {
        self.watchers.lock().all.values().any(|watcher| watcher.previous)
    }
}

/// Starts a watch.
pub(crate) fn open(shared: &Arc<Shared>, request: WatchRequest) -> WatchStream {
    let mut watchers = shared.hub.watchers.lock();
    let published = shared.hub.published.load(Ordering::Acquire);
    let from = if request.from <= 0 { published + 1 } else { request.from };
    let watcher = Arc::new(Watcher {
        start: request.start,
        end: request.end,
        previous: request.previous,
        progress: request.progress,
        buffer: Mutex::new(Buffer {
            queue: VecDeque::new(),
            bytes: 0,
            from,
            behind: (from <= published).then_some(from),
            progress_due: false,
            closed: watchers.closed,
        }),
        wake: Notify::new(),
    });
    let number = watchers.next;
    watchers.next += 1;
    watchers.all.insert(number, Arc::clone(&watcher));
    drop(watchers);
    let cursor = Cursor { shared: Arc::clone(shared), watcher, number, state: Stage::Created(published) };
    let messages = futures::stream::unfold(cursor, |mut cursor| async move {
        let message = cursor.next().await?;
        Some((message, cursor))
    });
    Box::pin(messages.fuse())
}

enum Stage {
    /// The first message is still to come.
    Created(Revision),
    Running,
    /// An error was reported.
    Ended,
}

/// One watcher's place. Dropping it ends the watch.
struct Cursor {
    shared: Arc<Shared>,
    watcher: Arc<Watcher>,
    number: u64,
    state: Stage,
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.shared.hub.watchers.lock().all.remove(&self.number);
    }
}

enum Step {
    Yield(WatchMessage),
    CatchUp(Revision),
    Wait,
    Closed,
}

impl Cursor {
    async fn next(&mut self) -> Option<Result<WatchMessage, KvError>> {
        match self.state {
            Stage::Created(revision) => {
                self.state = Stage::Running;
                return Some(Ok(WatchMessage::Created(revision)));
            }
            Stage::Running => {}
            Stage::Ended => return None,
        }
        let mut idle_since = None;
        loop {
            let interval = self.shared.progress_interval;
            match self.step() {
                Step::Yield(message) => return Some(Ok(message)),
                Step::Closed => {
                    self.state = Stage::Ended;
                    return Some(Err(KvError::Unavailable("the store was closed".into())));
                }
                Step::CatchUp(from) => match self.catch_up(from).await {
                    Ok(events) if events.is_empty() => {}
                    Ok(events) => return Some(Ok(WatchMessage::Events(events))),
                    Err(error) => {
                        self.state = Stage::Ended;
                        return Some(Err(error));
                    }
                },
                Step::Wait if self.watcher.progress && interval != Duration::ZERO => {
                    let now = self.shared.clock.monotonic();
                    let due = *idle_since.get_or_insert(now) + interval;
                    if due <= now {
                        self.watcher.buffer.lock().progress_due = true;
                        idle_since = None;
                        continue;
                    }
                    tokio::select! {
                        () = self.watcher.wake.notified() => {}
                        () = self.shared.clock.sleep(due - now) => {}
                    }
                }
                Step::Wait => self.watcher.wake.notified().await,
            }
        }
    }

    /// What to do now.
    fn step(&self) -> Step {
        // Read first: whatever was published until here is in the buffer that is looked at next.
        let published = self.shared.hub.published.load(Ordering::Acquire);
        let mut buffer = self.watcher.buffer.lock();
        if !buffer.queue.is_empty() {
            buffer.bytes = 0;
            return Step::Yield(WatchMessage::Events(buffer.queue.drain(..).flatten().collect()));
        }
        if buffer.closed {
            return Step::Closed;
        }
        if let Some(from) = buffer.behind {
            return Step::CatchUp(from);
        }
        if std::mem::take(&mut buffer.progress_due) {
            return Step::Yield(WatchMessage::Progress(published));
        }
        Step::Wait
    }

    /// Reads a piece of the history, and rejoins the writer if that was the last one.
    async fn catch_up(&self, from: Revision) -> Result<Vec<KvEvent>, KvError> {
        let (shared, watcher) = (Arc::clone(&self.shared), Arc::clone(&self.watcher));
        let piece =
            heal(&self.shared, move || shared.history(from, watcher.previous, |key| watcher.matches(key)));
        let History { events, next } = match piece.await {
            Ok(piece) => piece,
            Err(Fault::Kv(error)) => return Err(error),
            Err(Fault::Disk(reason) | Fault::Full(reason)) => return Err(KvError::Unavailable(reason)),
        };
        let _publishing = self.shared.hub.watchers.lock();
        let caught_up = self.shared.hub.published.load(Ordering::Acquire) < next;
        self.watcher.buffer.lock().behind = (!caught_up).then_some(next);
        Ok(events)
    }
}
