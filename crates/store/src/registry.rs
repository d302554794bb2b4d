//! The generic registry store: objects of one resource over [`crate::kv::Kv`].
//!
//! This file is the contract that the server codes against.

pub(crate) mod error;
mod lease;
pub(crate) mod objects;
mod range;
pub(crate) mod sealing;
mod store;
mod write;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_types::codec::transcode::Planned;
use coffer_types::{Status, Value};
use futures::stream::BoxStream;

use crate::kv::Revision;

pub use self::error::MAX_UNREADABLE_NAMED;
pub use self::lease::{MAX_OBJECTS_PER_LEASE, REUSE_DURATION};
pub use self::range::MAX_PAGE;
pub use self::store::{ResourceConfig, Store};

/// Turns stored bytes (after decryption) into an object and back.
///
/// One per resource: protobuf through the tables for built-in kinds, JSON for custom resources.
pub trait ObjectCodec: Send + Sync + 'static {
    /// The object with `apiVersion` and `kind`; its `resourceVersion` is whatever was stored (empty).
    fn decode(&self, stored: &[u8]) -> Result<Value, String>;

    /// The bytes to store. `resourceVersion` and `selfLink` have been cleared.
    fn encode(&self, object: &Value) -> Result<Vec<u8>, String>;

    /// Labels and selectable fields of a stored object, without building the object where that can be had.
    fn attributes(&self, stored: &[u8]) -> Result<Attributes, String>;
}

/// What selectors look at.
#[derive(Clone, Default)]
pub struct Attributes {
    /// `metadata.labels`.
    pub labels: Vec<(String, String)>,
    /// Selectable fields, such as `type`; name and namespace are the object's own.
    pub fields: Vec<(&'static str, String)>,
    /// Selectable fields of a custom resource, under the names that its codec gives them.
    pub custom: Box<[(Arc<str>, String)]>,
}

/// Which objects a list or watch wants.
pub trait Predicate: Send + Sync + 'static {
    /// Whether every object matches.
    fn is_everything(&self) -> bool;

    /// Whether one matches.
    fn matches(&self, stored: &Stored) -> bool;
}

/// One stored object: its bytes once, shared by everyone who reads it.
pub struct Stored {
    /// Namespace; "" for cluster-scoped resources.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Revision of the last change (or of the deletion): `metadata.resourceVersion`.
    pub revision: Revision,
    /// As stored, after decryption: a protobuf envelope or JSON. Never holds a `resourceVersion`.
    pub bytes: Bytes,
    /// What selectors look at.
    pub attributes: Attributes,
    /// What has been found out about the bytes.
    pub findings: Findings,
}

/// What the server finds out about stored bytes when it has to know: the store has looked at no more
/// than the attributes. Each is found out once.
#[derive(Default)]
pub struct Findings {
    sound: OnceLock<bool>,
    plan: OnceLock<Option<Planned>>,
}

impl Findings {
    /// Whether they hold no error anywhere.
    pub fn sound(&self, find_out: impl FnOnce() -> bool) -> bool {
        *self.sound.get_or_init(find_out)
    }

    /// How the whole object is written into a protobuf list; `None` when that cannot be.
    pub fn plan(&self, find_out: impl FnOnce() -> Option<Planned>) -> Option<Planned> {
        *self.plan.get_or_init(find_out)
    }
}

impl Stored {
    /// The text of a field by which every object, or those of its kind, can be selected.
    pub fn field(&self, field: &str) -> Option<&str> {
        match field {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            _ => {
                let found = self.attributes.fields.iter().find(|(name, _)| *name == field);
                found.map(|(_, text)| text.as_str())
            }
        }
    }

    /// The same object as of another revision; shares its bytes.
    pub fn at_revision(&self, revision: Revision) -> Arc<Self> {
        Arc::new(Self {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            revision,
            bytes: self.bytes.clone(),
            attributes: self.attributes.clone(),
            findings: Findings::default(),
        })
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Stored")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// It came into being, or into the selection.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or left the selection.
    Deleted,
    /// Nothing; everything up to the revision has been sent.
    Bookmark,
}

/// One change as a watcher sees it.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub event_type: EventType,
    /// The object: after the change, or its last state for [`EventType::Deleted`], with the change's
    /// revision. `None` for a bookmark.
    pub object: Option<Arc<Stored>>,
    /// The object before the change, where that is known: what a watcher of everything sees modified.
    pub previous: Option<Arc<Stored>>,
    /// The change's revision.
    pub revision: Revision,
    /// Marks the end of the initial events (a bookmark).
    pub initial_events_end: bool,
    /// The event in each wire format, encoded by the first watcher that needs it.
    pub frames: Frames,
}

/// Encodings of one event, shared by all watchers. The index is the server's number of a format.
/// There is room for them once somebody watches: most events of the history are never encoded.
#[derive(Default)]
pub struct Frames(OnceLock<Box<[OnceLock<Bytes>; Frames::FORMATS]>>);

impl Frames {
    /// How many formats there are at most.
    pub const FORMATS: usize = 8;

    /// The encoding in `format`, made at most once.
    ///
    /// # Panics
    /// When `format` is not below [`Frames::FORMATS`].
    pub fn get_or_encode(&self, format: usize, encode: impl FnOnce() -> Bytes) -> Bytes {
        self.0.get_or_init(Box::default)[format].get_or_init(encode).clone()
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Frames")
    }
}

/// Which state a read wants (`resourceVersion` and `resourceVersionMatch`, already validated).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAt {
    /// The most recent: `resourceVersion` unset.
    Latest,
    /// Whatever the cache has: `0`.
    Any,
    /// This revision or newer.
    NotOlderThan(Revision),
    /// Exactly this revision.
    Exact(Revision),
}

/// What to list.
pub struct ListRequest {
    /// Namespace; "" for all (or for cluster-scoped resources).
    pub namespace: String,
    /// One name only (`metadata.name=` field selector).
    pub name: Option<String>,
    /// Which state.
    pub at: ReadAt,
    /// At most so many items; 0 means all.
    pub limit: usize,
    /// The `continue` token of the page before, or "".
    pub continue_token: String,
    /// Which objects.
    pub predicate: Arc<dyn Predicate>,
}

/// A page of a list.
#[derive(Debug)]
pub struct List {
    /// In key order.
    pub items: Vec<Arc<Stored>>,
    /// `metadata.resourceVersion` of the list.
    pub revision: Revision,
    /// `metadata.continue`, or "".
    pub continue_token: String,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
}

/// What to watch.
pub struct WatchOptions {
    /// Namespace; "" for all.
    pub namespace: String,
    /// One name only.
    pub name: Option<String>,
    /// Watch from after this revision; `None` or 0 means from the present state.
    pub from: Option<Revision>,
    /// `sendInitialEvents`, after defaulting.
    pub send_initial_events: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// How long the request will last, so that a last bookmark can be sent right before; `None` if unknown.
    /// The stream does not end by itself: whoever serves it ends it.
    pub timeout: Option<Duration>,
    /// Which objects.
    pub predicate: Arc<dyn Predicate>,
}

/// A watch. An error is sent to the client as one ERROR event, then the stream ends.
pub type EventStream = BoxStream<'static, Result<Arc<Event>, Status>>;

/// UID and resourceVersion that the stored object must have.
#[derive(Debug, Clone, Default)]
pub struct Preconditions {
    /// `metadata.uid`.
    pub uid: Option<String>,
    /// `metadata.resourceVersion`.
    pub resource_version: Option<String>,
}

/// The object as an update finds it.
pub struct Current {
    /// The decoded object with its `resourceVersion`, or `None` when it does not exist and
    /// the caller allows that.
    pub object: Option<Value>,
    /// Its revision; 0 when it does not exist.
    pub revision: Revision,
}

/// What an update makes of the current object. Called again on a fresh object after each conflict.
#[async_trait]
pub trait Updater: Send {
    /// The new object, or why there is none.
    async fn update(&mut self, current: Current) -> Result<Value, Status>;
}

/// What must hold right before a deletion; called again after each conflict.
#[async_trait]
pub trait DeleteCheck: Send {
    /// Refuses the deletion with an error.
    async fn check(&mut self, object: &Value) -> Result<(), Status>;
}

/// The objects of one resource. Errors are final API errors with upstream's texts.
#[async_trait]
pub trait Registry: Send + Sync + 'static {
    /// Stores a new object. `resourceVersion` must be unset (upstream's 500 text otherwise).
    /// `ttl_seconds` 0 means for ever.
    async fn create(
        &self,
        namespace: &str,
        name: &str,
        object: &Value,
        ttl_seconds: u64,
    ) -> Result<Arc<Stored>, Status>;

    /// Reads one object.
    async fn get(&self, namespace: &str, name: &str, at: ReadAt) -> Result<Arc<Stored>, Status>;

    /// Lists.
    async fn list(&self, request: ListRequest) -> Result<List, Status>;

    /// Changes an object until it wins. Equal bytes are not written unless the stored encryption is stale.
    /// With `create_missing`, an absent object is shown as `None` and created; otherwise it is a 404.
    async fn update(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        create_missing: bool,
        updater: &mut dyn Updater,
    ) -> Result<Arc<Stored>, Status>;

    /// Deletes and gives the last state with the revision of the deletion.
    async fn delete(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        check: &mut dyn DeleteCheck,
    ) -> Result<Arc<Stored>, Status>;

    /// Deletes an object that cannot be read (`ignoreStoreReadErrorWithClusterBreakingPotential`): no
    /// precondition, check or finalizer is looked at. 409 when it can be read after all, 404 when there is none.
    /// With `dry_run` nothing is deleted.
    async fn delete_unreadable(&self, namespace: &str, name: &str, dry_run: bool) -> Result<(), Status>;

    /// Watches. An error here is an HTTP error (429 while the cache is not filled); any other comes as the
    /// stream's only item.
    async fn watch(&self, options: WatchOptions) -> Result<EventStream, Status>;

    /// Decodes a stored object and sets its `resourceVersion`.
    fn decode(&self, stored: &Stored) -> Result<Value, Status>;

    /// Whether the watch cache has been filled.
    fn ready(&self) -> bool;
}
