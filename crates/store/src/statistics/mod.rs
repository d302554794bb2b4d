//! What the store of a resource was asked and has done, for metrics.
//!
//! Counting takes no lock, and reads the clock once for each request, never for each object.
//! How the numbers are called is the server's business.

mod counts;
mod histogram;

pub(crate) use self::counts::{Counts, Listed};
pub(crate) use self::histogram::Histogram;
pub use self::histogram::Observed;

use crate::kv::Revision;

/// Upstream's bounds of requests to etcd and of lists, in seconds.
pub const REQUEST_SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Of waiting until a cache is fresh, in seconds.
pub const WAIT_SECONDS: &[f64] = &[0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0];
/// Of filling a cache, in seconds.
pub const FILL_SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0];
/// Of the way of a change from the store to a watch, in seconds.
pub const DISPATCH_SECONDS: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
/// Of how many objects share a lease.
pub const LEASE_OBJECTS: &[f64] = &[10.0, 50.0, 100.0, 500.0, 1000.0, 2500.0, 5000.0];

/// What the engine is asked for, on behalf of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// One key.
    Get,
    /// A key that must not be there.
    Create,
    /// A key that must be as it was.
    Update,
    /// The end of a key.
    Delete,
    /// A page of a range.
    List,
    /// The revision of the store.
    CurrentRevision,
}

impl Operation {
    /// All of them; the place of one is its number.
    pub const ALL: [Self; 6] =
        [Self::Get, Self::Create, Self::Update, Self::Delete, Self::List, Self::CurrentRevision];

    /// As upstream's metrics name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::List => "list",
            Self::CurrentRevision => "getCurrentResourceVersion",
        }
    }
}

/// The requests of one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// Which.
    pub operation: Operation,
    /// How many, and how many seconds they took.
    pub took: Observed,
    /// How many failed.
    pub errors: u64,
}

/// Lists that were answered from one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lists {
    /// How many.
    pub lists: u64,
    /// Objects that were read for them,
    pub fetched: u64,
    /// held against their selectors,
    pub evaluated: u64,
    /// and returned.
    pub returned: u64,
}

/// Consistent lists, by how they went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConsistentReads {
    /// Answered by the cache.
    pub cached: u64,
    /// The cache was ready and could not answer.
    pub failed: u64,
    /// The cache was not fresh enough in time, and the store answered,
    pub fallback: u64,
    /// or could not answer either.
    pub fallback_failed: u64,
}

/// A resource in numbers; those that count do so since the resource was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// API group.
    pub group: String,
    /// Resource (plural).
    pub resource: String,
    /// Objects in the cache,
    pub objects: usize,
    /// and their bytes, as they are stored but for encryption.
    pub bytes: usize,
    /// Every change up to this revision is in the cache.
    pub revision: Revision,
    /// How many changes the history may hold at present.
    pub capacity: usize,
    /// How often that has been doubled,
    pub capacity_increases: u64,
    /// and halved.
    pub capacity_decreases: u64,
    /// Changes that came from the store.
    pub received: u64,
    /// Changes that were handed over to the watches.
    pub dispatched: u64,
    /// Reports of progress that came from the store.
    pub progress_reports: u64,
    /// How often the cache was filled, and how many seconds that took.
    pub initializations: Observed,
    /// How often filling it, or following the changes after that, has failed.
    pub initialization_errors: u64,
    /// Objects that watches were sent as their first state.
    pub initial_events: u64,
    /// Watches that were ended because they did not keep up.
    pub terminated_watchers: u64,
    /// Seconds from a change's arrival until a watch took it.
    pub dispatch: Observed,
    /// Consistent lists.
    pub consistent_reads: ConsistentReads,
    /// Seconds that reads waited for the cache to be fresh; those that need not wait are not in it.
    pub read_waits: Observed,
    /// What the engine was asked; operations that were never asked for are left out.
    pub requests: Vec<Requests>,
    /// Stored values that were no objects after decryption, each time that one was read.
    pub decode_errors: u64,
    /// Lists that the engine answered,
    pub store_lists: Lists,
    /// how many seconds those took,
    pub store_list_seconds: Observed,
    /// and lists that the cache answered.
    pub cache_lists: Lists,
}
