//! The shell of the queue: waits, wakes and spawns.

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::core::{Next, Queue, QueueConfig, Urgency};

/// What a handler answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to do until somebody asks.
    Done,
    /// Again after this time.
    After(Duration),
    /// It failed: again after the back-off.
    Retry,
}

/// One piece of work.
#[derive(Debug, Clone)]
pub struct Work<K> {
    /// The key.
    pub key: K,
    /// Why it runs now.
    pub urgency: Urgency,
    /// How long it was ready before it ran.
    pub waited: Duration,
    /// Cancelled when the key is asked for as a deletion while it runs, and at shutdown:
    /// a handler that waits for a store then gives up.
    pub cancelled: CancellationToken,
}

/// A queue that many tasks feed and one [`WorkQueue::run`] empties.
pub struct WorkQueue<K, L> {
    clock: Arc<dyn Clock>,
    state: Mutex<State<K, L>>,
    changed: Notify,
}

struct State<K, L> {
    queue: Queue<K, L>,
    /// One token for each key that runs.
    tokens: std::collections::HashMap<K, CancellationToken>,
}

impl<K, L> WorkQueue<K, L>
where
    K: Clone + Eq + Hash + Ord + Debug + Send + 'static,
    L: Clone + Eq + Hash + Debug + Send + 'static,
{
    /// An empty queue.
    pub fn new(config: QueueConfig, clock: Arc<dyn Clock>) -> Self {
        let state = State { queue: Queue::new(config), tokens: std::collections::HashMap::new() };
        Self { clock, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Asks for `key` as soon as possible.
    pub fn add(&self, key: K, lane: L, urgency: Urgency) {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        if urgency == Urgency::Deletion
            && let Some(token) = state.tokens.get(&key)
        {
            token.cancel();
        }
        state.queue.add(key, lane, urgency, now);
        drop(state);
        self.changed.notify_one();
    }

    /// Asks for `key` after `delay`.
    pub fn add_after(&self, key: K, lane: L, delay: Duration) {
        self.state.lock().queue.add_after(key, lane, delay, self.clock.monotonic());
        self.changed.notify_one();
    }

    /// Drops whatever is planned for `key`.
    pub fn forget(&self, key: &K) {
        self.state.lock().queue.forget(key);
    }

    /// How many keys are ready and wait for their turn.
    pub fn depth(&self) -> usize {
        self.state.lock().queue.depth()
    }

    /// Hands work to `handler` until `shutdown`, then waits for what runs.
    ///
    /// A panic in the handler ends neither the queue nor the process; it counts as a failure.
    pub async fn run<F, Fut>(self: Arc<Self>, shutdown: CancellationToken, handler: F)
    where
        F: Fn(Work<K>) -> Fut,
        Fut: Future<Output = Outcome> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        loop {
            while let Some(work) = self.next(&shutdown) {
                let (queue, key) = (self.clone(), work.key.clone());
                let task = AssertUnwindSafe(handler(work)).catch_unwind();
                tasks.spawn(async move {
                    let outcome = task.await.unwrap_or_else(|_| {
                        tracing::error!(?key, "reconciling panicked; it is tried again");
                        Outcome::Retry
                    });
                    queue.finish(&key, outcome);
                });
            }
            let wake = self.state.lock().queue.next_wake();
            let now = self.clock.monotonic();
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.changed.notified() => {}
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                () = self.clock.sleep(wake.unwrap_or_default().saturating_sub(now)), if wake.is_some() => {}
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    fn next(&self, shutdown: &CancellationToken) -> Option<Work<K>> {
        if shutdown.is_cancelled() {
            return None;
        }
        let mut state = self.state.lock();
        let taken = state.queue.take(self.clock.monotonic())?;
        let cancelled = shutdown.child_token();
        state.tokens.insert(taken.key.clone(), cancelled.clone());
        Some(Work { key: taken.key, urgency: taken.urgency, waited: taken.waited, cancelled })
    }

    fn finish(&self, key: &K, outcome: Outcome) {
        let next = match outcome {
            Outcome::Done => Next::Forget,
            Outcome::After(delay) => Next::After(delay),
            Outcome::Retry => Next::Retry,
        };
        let mut state = self.state.lock();
        state.tokens.remove(key);
        state.queue.done(key, next, self.clock.monotonic());
        drop(state);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::clock::SystemClock;

    use super::*;

    fn queue(per_lane: usize) -> Arc<WorkQueue<u32, &'static str>> {
        let config =
            QueueConfig { per_lane, backoff_base: Duration::from_millis(5), ..QueueConfig::default() };
        Arc::new(WorkQueue::new(config, Arc::new(SystemClock::new())))
    }

    async fn within(what: &str, future: impl Future<Output = ()>) {
        assert!(tokio::time::timeout(Duration::from_secs(10), future).await.is_ok(), "{what} took too long");
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_that_is_tried_again() {
        let (queue, stop, runs) = (queue(1), CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        queue.add(1, "s", Urgency::Fresh);
        let (counter, end) = (runs.clone(), stop.clone());
        within(
            "the second try",
            queue.run(stop, move |_| {
                let (counter, end) = (counter.clone(), end.clone());
                async move {
                    assert!(0 < counter.fetch_add(1, Ordering::SeqCst), "the first try panics");
                    end.cancel();
                    Outcome::Done
                }
            }),
        )
        .await;
        assert_eq!(runs.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn o29_a_deletion_ends_the_wait_of_its_own_key() {
        let (queue, stop) = (queue(1), CancellationToken::new());
        queue.add(1, "s", Urgency::Fresh);
        let (feeder, end) = (queue.clone(), stop.clone());
        within(
            "the deletion",
            queue.run(stop, move |work| {
                let (feeder, end) = (feeder.clone(), end.clone());
                async move {
                    if work.urgency == Urgency::Deletion {
                        end.cancel();
                    } else {
                        feeder.add(work.key, "s", Urgency::Deletion);
                        work.cancelled.cancelled().await;
                    }
                    Outcome::Done
                }
            }),
        )
        .await;
    }

    #[tokio::test]
    async fn o7_a_hanging_lane_delays_only_its_own_keys() {
        let (queue, stop, fast) = (queue(1), CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        for key in 0..100 {
            queue.add(key, "dead", Urgency::Fresh);
            queue.add(100 + key, "alive", Urgency::Fresh);
        }
        let (counter, end) = (fast.clone(), stop.clone());
        within(
            "the other lane",
            queue.run(stop, move |work| {
                let (counter, end) = (counter.clone(), end.clone());
                async move {
                    if work.key < 100 {
                        work.cancelled.cancelled().await;
                    } else if counter.fetch_add(1, Ordering::SeqCst) == 99 {
                        end.cancel();
                    }
                    Outcome::Done
                }
            }),
        )
        .await;
        assert_eq!(fast.load(Ordering::SeqCst), 100);
    }

    #[tokio::test]
    async fn a_delayed_key_runs_when_its_time_has_come() {
        let (queue, stop) = (queue(1), CancellationToken::new());
        let start = std::time::Instant::now();
        queue.add_after(1, "s", Duration::from_millis(30));
        let end = stop.clone();
        within(
            "the delayed key",
            queue.run(stop, move |_| {
                end.cancel();
                async { Outcome::Done }
            }),
        )
        .await;
        assert!(Duration::from_millis(30) <= start.elapsed());
    }
}
