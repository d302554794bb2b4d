//! Rewrites stored data through the API, so that it is stored as the server stores it now: under
//! the key of new writes, in the current version and encoding.
//!
//! An object is rewritten by a patch that changes nothing. The server finds that its stored copy is
//! stale and writes it anew; a copy that is not stale is left alone. Only metadata is asked for, so
//! that no value leaves the server, and nothing of an object changes but its `resourceVersion`.
//!
//! [`run`] goes through resources page by page at a limited rate; what an error means is a table
//! ([`outcome`]); after each page the caller can keep the [`Progress`] and go on from it later.

mod client;
mod outcome;
mod progress;
mod run;

pub use client::{Client, NoSuchResource};
pub use outcome::{CallError, Meaning, meaning};
pub use progress::{Failed, Progress, ResourceProgress};
pub use run::{Options, Stopped, run};

use async_trait::async_trait;
use coffer_runtime::api::ObjectKey;

/// An object to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID: an object that was deleted and made again is another one, and newly written.
    pub uid: String,
    /// Its `resourceVersion` when it was listed.
    pub resource_version: String,
}

/// A page of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The objects.
    pub objects: Vec<Listed>,
    /// Where the next page begins; "" after the last one.
    pub token: String,
    /// How many come after this page, where the server tells.
    pub remaining: Option<u64>,
}

/// What a rewrite did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewritten {
    /// The stored copy was written anew.
    Yes,
    /// It was as it should be.
    NotNeeded,
}

/// The API, as far as a migration needs it.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Lists the metadata of a resource's objects, in all namespaces.
    async fn page(&self, resource: &str, limit: u32, token: &str) -> Result<Page, CallError>;

    /// Has one object written as it is. With `dry_run` the server does everything but write.
    async fn rewrite(&self, resource: &str, object: &Listed, dry_run: bool) -> Result<Rewritten, CallError>;
}
