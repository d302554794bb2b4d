//! The numbers of one resource as they grow.

use std::sync::atomic::{AtomicU64, Ordering};

use coffer_types::time::Clock;

use super::{
    ConsistentReads, DISPATCH_SECONDS, FILL_SECONDS, Histogram, Lists, Operation, REQUEST_SECONDS, Requests,
    WAIT_SECONDS,
};
use crate::kv::KvError;

/// What is counted about one resource.
pub(crate) struct Counts {
    requests: [Asked; Operation::ALL.len()],
    pub(crate) decode_errors: Counter,
    pub(crate) store_lists: ListCounts,
    pub(crate) store_list_seconds: Histogram,
    pub(crate) cache_lists: ListCounts,
    pub(crate) received: Counter,
    pub(crate) dispatched: Counter,
    pub(crate) progress_reports: Counter,
    pub(crate) initializations: Histogram,
    pub(crate) initialization_errors: Counter,
    pub(crate) initial_events: Counter,
    pub(crate) terminated_watchers: Counter,
    pub(crate) dispatch: Histogram,
    pub(crate) read_waits: Histogram,
    consistent: [Counter; 4],
}

struct Asked {
    took: Histogram,
    errors: Counter,
}

/// One number that goes up.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

/// Lists of one place.
#[derive(Default)]
pub(crate) struct ListCounts {
    lists: Counter,
    fetched: Counter,
    evaluated: Counter,
    returned: Counter,
}

/// What one list has cost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listed {
    /// Objects that were read,
    pub(crate) fetched: usize,
    /// held against the selector,
    pub(crate) evaluated: usize,
    /// and returned.
    pub(crate) returned: usize,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            requests: Operation::ALL
                .map(|_| Asked { took: Histogram::new(REQUEST_SECONDS), errors: Counter::default() }),
            decode_errors: Counter::default(),
            store_lists: ListCounts::default(),
            store_list_seconds: Histogram::new(REQUEST_SECONDS),
            cache_lists: ListCounts::default(),
            received: Counter::default(),
            dispatched: Counter::default(),
            progress_reports: Counter::default(),
            initializations: Histogram::new(FILL_SECONDS),
            initialization_errors: Counter::default(),
            initial_events: Counter::default(),
            terminated_watchers: Counter::default(),
            dispatch: Histogram::new(DISPATCH_SECONDS),
            read_waits: Histogram::new(WAIT_SECONDS),
            consistent: Default::default(),
        }
    }
}

impl Counts {
    /// Waits for an answer of the engine, and counts it.
    pub(crate) async fn request<T>(
        &self,
        clock: &dyn Clock,
        operation: Operation,
        answer: impl Future<Output = Result<T, KvError>>,
    ) -> Result<T, KvError> {
        let began = clock.monotonic();
        let answer = answer.await;
        let asked = &self.requests[operation as usize];
        asked.took.observe_time(clock.monotonic().saturating_sub(began));
        if answer.is_err() {
            asked.errors.add(1);
        }
        answer
    }

    /// A consistent list came to its end. `fallback`: the store was asked, because the cache was behind.
    pub(crate) fn consistent_read(&self, success: bool, fallback: bool) {
        self.consistent[usize::from(fallback) * 2 + usize::from(!success)].add(1);
    }

    pub(crate) fn consistent_reads(&self) -> ConsistentReads {
        let [cached, failed, fallback, fallback_failed] = self.consistent.each_ref().map(Counter::get);
        ConsistentReads { cached, failed, fallback, fallback_failed }
    }

    pub(crate) fn requests(&self) -> Vec<Requests> {
        let all = Operation::ALL.iter().zip(&self.requests);
        let all = all.map(|(operation, asked)| Requests {
            operation: *operation,
            took: asked.took.observed(),
            errors: asked.errors.get(),
        });
        all.filter(|requests| requests.took.count != 0).collect()
    }
}

impl Counter {
    pub(crate) fn add(&self, amount: usize) {
        self.0.fetch_add(amount as u64, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ListCounts {
    pub(crate) fn add(&self, listed: Listed) {
        self.lists.add(1);
        self.fetched.add(listed.fetched);
        self.evaluated.add(listed.evaluated);
        self.returned.add(listed.returned);
    }

    pub(crate) fn get(&self) -> Lists {
        Lists {
            lists: self.lists.get(),
            fetched: self.fetched.get(),
            evaluated: self.evaluated.get(),
            returned: self.returned.get(),
        }
    }
}
