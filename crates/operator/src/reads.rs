//! One remote read for everybody who needs the same value at about the same time.
//!
//! A read belongs to one connection, and a connection to one set of credentials:
//! nobody gets what their own credentials could not read. A failure is shared
//! too, for as long as the next try backs off. Nothing is kept longer than
//! [`KEPT`], so that the operator's memory is no store of secrets.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::{Document, Find, ProviderError, RemoteKey, SecretMap};
use coffer_runtime::queue::core::backoff;
use coffer_types::time::Clock;
use parking_lot::Mutex;

/// How old a value may be that is shared.
pub(crate) const WINDOW: Duration = Duration::from_secs(5);
/// How long a value is kept at most.
const KEPT: Duration = WINDOW;
const BACKOFF_BASE: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(420);
/// A failure that nobody asked for again is forgotten.
const FAILURE_KEPT: Duration = Duration::from_secs(900);

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Key(RemoteKey),
    Find(Find),
}

/// What came.
#[derive(Clone)]
pub(crate) enum Answer {
    Document(Document),
    Map(Arc<SecretMap>),
}

/// The shared reads. The first part of a key is the connection's number.
pub(crate) struct Reads {
    clock: Arc<dyn Clock>,
    entries: Mutex<HashMap<(u64, What), Arc<Entry>>>,
    swept: Mutex<Duration>,
}

#[derive(Default)]
struct Entry {
    /// Held while a read is under way, so that others wait for it instead of reading too.
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<Last>,
    failures: u32,
}

struct Last {
    /// When the read began: what changed later may be missing from it.
    began: Duration,
    result: Result<Answer, ProviderError>,
}

impl Reads {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, entries: Mutex::default(), swept: Mutex::default() }
    }

    /// What `read` gives, or what it gave to somebody at most `max_age` ago. With a `max_age` of zero only a
    /// read that begins from now on counts, and no earlier failure either.
    pub(crate) async fn get<Fut>(
        &self,
        client: u64,
        what: What,
        max_age: Duration,
        read: impl FnOnce() -> Fut,
    ) -> Result<Answer, ProviderError>
    where
        Fut: Future<Output = Result<Answer, ProviderError>>,
    {
        let asked = self.clock.monotonic();
        self.sweep(asked);
        let entry = self.entries.lock().entry((client, what)).or_default().clone();
        let mut state = entry.state.lock().await;
        if let Some(last) = &state.last {
            let fresh_enough = match &last.result {
                Ok(_) => asked.saturating_sub(max_age) <= last.began,
                Err(_) if max_age.is_zero() => asked <= last.began,
                Err(_) => {
                    let wait = backoff(BACKOFF_BASE, BACKOFF_MAX, state.failures.saturating_sub(1));
                    asked < last.began.saturating_add(wait)
                }
            };
            if fresh_enough {
                return last.result.clone();
            }
        }
        let began = self.clock.monotonic();
        let result = read().await;
        state.failures = if result.is_err() { state.failures.saturating_add(1) } else { 0 };
        state.last = Some(Last { began, result: result.clone() });
        result
    }

    /// Drops what is too old, at most once a second.
    fn sweep(&self, now: Duration) {
        {
            let mut swept = self.swept.lock();
            if now.saturating_sub(*swept) < Duration::from_secs(1) {
                return;
            }
            *swept = now;
        }
        self.entries.lock().retain(|_, entry| {
            // One that is locked is in use.
            let Ok(state) = entry.state.try_lock() else { return true };
            state.last.as_ref().is_some_and(|last| {
                let kept = if last.result.is_ok() { KEPT } else { FAILURE_KEPT };
                now.saturating_sub(last.began) < kept
            })
        });
    }

    /// Forgets everything of a connection.
    pub(crate) fn forget(&self, client: u64) {
        self.entries.lock().retain(|(owner, _), _| *owner != client);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use coffer_types::SecretBytes;
    use coffer_types::time::{Sleep, Timestamp};

    use super::*;

    #[derive(Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::SeqCst))
        }

        fn sleep(&self, _: Duration) -> Sleep {
            Box::pin(std::future::ready(()))
        }
    }

    struct Bench {
        clock: Arc<Hand>,
        reads: Arc<Reads>,
        calls: Arc<AtomicUsize>,
    }

    impl Bench {
        fn new() -> Self {
            let clock = Arc::new(Hand(AtomicU64::new(100_000)));
            Self { reads: Arc::new(Reads::new(clock.clone())), clock, calls: Arc::default() }
        }

        async fn get(&self, client: u64, key: &str, max_age: u64, found: bool) -> bool {
            let what = What::Key(RemoteKey { key: key.to_owned(), ..RemoteKey::default() });
            let calls = self.calls.clone();
            let read = || async move {
                calls.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                let document = Answer::Document(Document::new(SecretBytes::from("x".to_owned())));
                if found { Ok(document) } else { Err(ProviderError::NotFound) }
            };
            self.reads.get(client, what, Duration::from_millis(max_age), read).await.is_ok()
        }

        fn calls(&self) -> usize {
            self.calls.swap(0, Ordering::SeqCst)
        }

        fn pass(&self, milliseconds: u64) {
            self.clock.0.fetch_add(milliseconds, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn o11_one_read_serves_fifty_at_once() {
        let bench = Bench::new();
        let asks = (0..50).map(|_| bench.get(1, "k", 5000, true));
        assert!(futures::future::join_all(asks).await.into_iter().all(|found| found));
        assert_eq!(bench.calls(), 1);
    }

    #[tokio::test]
    async fn o11_credentials_are_not_crossed() {
        let bench = Bench::new();
        for (client, key, expected) in [(1, "k", 1), (2, "k", 1), (1, "l", 1), (1, "k", 0), (2, "k", 0)] {
            bench.get(client, key, 5000, true).await;
            assert_eq!(bench.calls(), expected, "{client} {key}");
        }
    }

    #[tokio::test]
    async fn a_value_is_shared_within_its_window_only() {
        let bench = Bench::new();
        bench.get(1, "k", 5000, true).await;
        bench.pass(500);
        bench.get(1, "k", 500, true).await;
        assert_eq!(bench.calls(), 1);
        bench.pass(1);
        bench.get(1, "k", 500, true).await;
        assert_eq!(bench.calls(), 1);
        bench.pass(1);
        bench.get(1, "k", 0, true).await;
        assert_eq!(bench.calls(), 1, "who wants it new gets it new");
    }

    #[tokio::test]
    async fn o13_a_missing_key_costs_one_read_for_each_step_of_the_back_off() {
        let bench = Bench::new();
        // Ten ExternalSecrets ask every 100 ms for 31 s: steps end after 1, 3, 7, 15 and 31 s.
        for _ in 0..310 {
            for _ in 0..10 {
                assert!(!bench.get(1, "k", 5000, false).await);
            }
            bench.pass(100);
        }
        assert_eq!(bench.calls(), 5);
        assert!(bench.get(1, "k", 0, true).await, "an edit asks at once");
        assert!(bench.get(1, "k", 5000, true).await);
        assert_eq!(bench.calls(), 1);
    }

    #[tokio::test]
    async fn nothing_is_kept_longer_than_its_window() {
        let bench = Bench::new();
        for key in ["a", "b", "c"] {
            bench.get(1, key, 5000, true).await;
        }
        bench.pass(5000);
        bench.get(1, "d", 5000, true).await;
        assert_eq!(bench.reads.len(), 1);
        bench.reads.forget(1);
        assert_eq!(bench.reads.len(), 0);
    }
}
