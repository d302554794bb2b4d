//! Recorded histories of concurrent clients, and whether the store kept its promises in them.
//!
//! [`Recorder`] notes what was asked and answered, [`linearize`] finds an order of all calls that
//! explains every answer and agrees with the order in time, and [`check_watches`] holds every watch
//! against what then happened, revision by revision.
//!
//! Absent on purpose: partition by key. Every write has a revision of the whole store, so that the
//! order of the writes whose answer is known is given; only those without an answer are searched for.

mod clients;
mod lines;
mod model;
mod record;
mod search;
mod watches;

#[cfg(test)]
mod tests;

pub use clients::{Load, follow, run_clients};
pub use lines::{Lines, read_lines};
pub use model::Model;
pub use record::{Call, Listener, Outcome, Recorder, Request, WatchRecord};
pub use search::{Change, Log, linearize};
pub use watches::check_watches;

/// A promise of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promise {
    /// There is an order of all calls that explains every answer and agrees with their times.
    Linearizable,
    /// A watch yields changes in the order of their revisions.
    Ordered,
    /// It leaves none out.
    NoGap,
    /// It yields none twice.
    NoDuplicate,
    /// The changes of one revision come in one batch.
    WholeTransactions,
    /// Each change is as it happened, its value before it included.
    Truthful,
    /// Progress says that all changes so far were yielded, and they were.
    ProgressTrue,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub promise: Promise,
    /// What shows it.
    pub what: String,
}

impl Violation {
    fn new(promise: Promise, what: impl Into<String>) -> Self {
        Self { promise, what: what.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}: {}", self.promise, self.what)
    }
}

impl std::error::Error for Violation {}
