//! The store of one resource.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_types::{Status, Value};
use futures::StreamExt as _;
use futures::stream;

use super::error::{Resource, from_kv, is_too_large_resource_version};
use super::lease::Leases;
use super::objects::Objects;
use super::range::{self, RangeList};
use super::sealing::InUse;
use super::{
    DeleteCheck, EventStream, List, ListRequest, ObjectCodec, Preconditions, ReadAt, Registry, Stored,
    Updater, WatchOptions,
};
use crate::cache::Cache;
use crate::cache::list::{Page, Part, View};
use crate::cache::snapshot::Slot;
use crate::cache::watch::{Start, Watch};
use crate::cache::watchers::Scope;
use crate::continue_token::{ContinueToken, LATEST};
use crate::key::{KeyError, KeyRange, KeySpace, ObjectKey, Origin};
use crate::kv::{KvError, Revision};
use crate::shared::Shared;
use crate::statistics::{Listed, Operation, Statistics};

/// What a store is made for.
pub struct ResourceConfig {
    /// API group; "" is the core group.
    pub group: String,
    /// Resource (plural).
    pub resource: String,
    /// Who defines the resource.
    pub origin: Origin,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
    /// Encodes and decodes the objects.
    pub codec: Arc<dyn ObjectCodec>,
    /// Seconds that every written object lasts (events); 0 means for ever.
    pub ttl_seconds: u64,
}

/// The objects of one resource.
pub struct Store {
    pub(super) objects: Arc<Objects>,
    pub(super) shared: Arc<Shared>,
    pub(super) cache: Arc<Cache>,
    pub(super) leases: Leases,
    pub(super) ttl_seconds: u64,
}

/// What a list is answered from.
enum ListAt {
    /// The most recent state.
    Latest,
    /// This revision or newer; 0 for any.
    NotOlderThan(Revision),
    /// Exactly this revision.
    Exact(Revision),
}

impl Store {
    pub(crate) fn open(
        config: ResourceConfig,
        etcd_prefix: &str,
        in_use: Arc<InUse>,
        shared: Arc<Shared>,
    ) -> Result<Arc<Self>, KeyError> {
        let keys =
            KeySpace::new(etcd_prefix, &config.group, &config.resource, config.origin, config.namespaced)?;
        let resource = Resource { group: config.group, name: config.resource };
        let objects = Arc::new(Objects::new(resource, keys, config.codec, in_use));
        Ok(Arc::new(Self {
            leases: Leases::new(shared.kv.clone(), shared.clock.clone(), shared.lease_objects.clone()),
            cache: Cache::start(objects.clone(), shared.clone()),
            objects,
            shared,
            ttl_seconds: config.ttl_seconds,
        }))
    }

    /// Lets go of transformers that are in use no more.
    pub(crate) fn look_at_transformers(&self) {
        self.objects.look_at_transformers();
    }

    /// Stops the cache and ends all watches.
    pub fn close(&self) {
        self.cache.close();
    }

    /// Where the resource's objects lie.
    pub fn keys(&self) -> &KeySpace {
        &self.objects.keys
    }

    /// How many stored objects cannot be decrypted or decoded.
    pub fn unreadable(&self) -> usize {
        self.cache.unreadable()
    }

    /// What the cache holds and has done.
    pub fn statistics(&self) -> Statistics {
        self.cache.statistics()
    }

    /// How many watches are open.
    pub fn watch_count(&self) -> usize {
        self.cache.watch_count()
    }

    pub(super) fn key(&self, namespace: &str, name: &str) -> Result<ObjectKey, Status> {
        Ok(self.objects.keys.object(namespace, name)?)
    }

    /// Waits for an answer of the engine, and counts it.
    pub(super) async fn request<T>(
        &self,
        operation: Operation,
        answer: impl Future<Output = Result<T, KvError>>,
    ) -> Result<T, KvError> {
        self.objects.counts.request(&*self.shared.clock, operation, answer).await
    }

    /// The current revision; requests that come together share one round trip.
    async fn current_revision(&self) -> Result<Revision, Status> {
        let answer = self.shared.round_trips.current();
        self.request(Operation::CurrentRevision, answer).await.map_err(from_kv)
    }

    /// An object as it is now. The store tells when its key was last changed, in one round trip with
    /// all that is asked of it at the moment, and the cache gives the object if it has that very state.
    async fn get_latest(&self, key: &ObjectKey, name: &str) -> Result<Arc<Stored>, Status> {
        let answer = self.shared.round_trips.last_change(key.bytes());
        match self.request(Operation::Get, answer).await {
            Ok(0) => return Err(self.objects.resource.not_found(name)),
            Ok(changed) => {
                if let Some(known) = self.cache.peek(key.tail())
                    && known.revision == changed
                {
                    return Ok(known);
                }
            }
            // A store that takes no such question may still answer for one key.
            Err(KvError::Other(_)) => {}
            Err(error) => return Err(from_kv(error)),
        }
        // The cache is behind, or cannot read the object: the store has it.
        range::get(&self.shared, &self.objects, key, name, 0, self.cache.peek(key.tail())).await
    }

    async fn get_cached(&self, key: &ObjectKey, name: &str, least: Revision) -> Result<Arc<Stored>, Status> {
        self.cache.wait_fresh(least).await?;
        let view = self.cache.view()?;
        match view.get(key.tail()) {
            None => Err(self.objects.resource.not_found(name)),
            Some(Slot::Good(stored)) => Ok(stored.clone()),
            Some(Slot::Corrupt(unreadable)) => self
                .cache
                .reopen(unreadable)
                .ok_or_else(|| unreadable.error.on_get(&self.objects.keys.relative(key))),
        }
    }

    async fn list_range(
        &self,
        request: &ListRequest,
        range: &KeyRange,
        token: Option<&ContinueToken>,
        at: &ListAt,
    ) -> Result<List, Status> {
        let (revision, not_older_than) = match at {
            ListAt::Latest => (0, 0),
            ListAt::NotOlderThan(least) => (0, *least),
            ListAt::Exact(revision) => (*revision, 0),
        };
        range::list(
            &self.shared,
            &self.objects,
            RangeList {
                range,
                start: token.map_or(&[], |token| &token.start),
                revision,
                not_older_than,
                limit: request.limit,
                paging: token.is_some(),
                predicate: &*request.predicate,
            },
        )
        .await
    }

    /// A list of one key at most: a get in the guise of a list.
    async fn list_one(&self, request: &ListRequest, name: &str, at: &ListAt) -> Result<List, Status> {
        let began = self.shared.clock.monotonic();
        let mut listed = Listed::default();
        let list = self.read_one(request, name, at, &mut listed).await;
        listed.returned = list.as_ref().map_or(0, |list| list.items.len());
        let counts = &self.objects.counts;
        counts.store_lists.add(listed);
        counts.store_list_seconds.observe_time(self.shared.clock.monotonic().saturating_sub(began));
        list
    }

    async fn read_one(
        &self,
        request: &ListRequest,
        name: &str,
        at: &ListAt,
        listed: &mut Listed,
    ) -> Result<List, Status> {
        let key = self.key(&request.namespace, name)?;
        let (found, revision) = match at {
            ListAt::Exact(exact) => {
                let (kv, current) = range::read_key(&self.shared, &self.objects, key.bytes(), *exact)
                    .await
                    .map_err(|error| self.read_one_error(error))?;
                (kv, if *exact == 0 { current } else { *exact })
            }
            ListAt::Latest | ListAt::NotOlderThan(_) => {
                let least = match at {
                    ListAt::NotOlderThan(least) => *least,
                    _ => 0,
                };
                let found = range::read_key(&self.shared, &self.objects, key.bytes(), 0).await;
                let (kv, current) = found.map_err(from_kv)?;
                if current < least {
                    return Err(super::error::too_large_resource_version(least, current, 0));
                }
                (kv, current)
            }
        };
        let mut items = Vec::new();
        if let Some(kv) = found {
            let mut unreadable = super::error::UnreadableList::default();
            listed.fetched += 1;
            let opened = self.objects.open(&kv);
            listed.evaluated += usize::from(opened.is_ok());
            match opened {
                Ok(opened) if request.predicate.matches(&opened.stored) => {
                    items.push(opened.stored);
                }
                Ok(_) => {}
                Err(error) => {
                    unreadable.push(key.to_string(), error);
                }
            }
            unreadable.finish(&self.objects.resource)?;
        }
        Ok(List { items, revision, continue_token: String::new(), remaining: None })
    }

    fn read_one_error(&self, error: KvError) -> Status {
        match error {
            KvError::Compacted(_) => super::error::list_expired(),
            error => from_kv(error),
        }
    }

    /// A page of a view; `range` and `token` say which.
    fn list_view(
        &self,
        request: &ListRequest,
        range: &KeyRange,
        token: Option<&ContinueToken>,
        view: &View,
    ) -> Result<List, Status> {
        let prefix = range.tail();
        let start = [prefix, token.map_or(&[][..], |token| &token.start)].concat();
        // Without a revision the limit is ignored: the whole answer costs nothing.
        let limit = if token.is_none() && request.at == ReadAt::Any { 0 } else { request.limit };
        let part = Part { prefix, start: &start, limit, predicate: &*request.predicate };
        let Page { items, rest } = self.cache.page(view, &part)?;
        let mut list =
            List { items, revision: view.revision, continue_token: String::new(), remaining: None };
        if let Some((last, remaining)) = rest {
            list.continue_token = ContinueToken::after(&last[prefix.len()..], view.revision)
                .encode()
                .ok_or_else(|| Status::plain("unable to encode next field: the key is not UTF-8"))?;
            list.remaining =
                request.predicate.is_everything().then(|| i64::try_from(remaining).unwrap_or(i64::MAX));
        }
        Ok(list)
    }

    /// One key from a view, as a list.
    fn list_one_of_view(&self, request: &ListRequest, name: &str, view: &View) -> Result<List, Status> {
        let key = self.key(&request.namespace, name)?;
        let mut items = Vec::new();
        let stored = match view.get(key.tail()) {
            None => None,
            Some(Slot::Good(stored)) => Some(stored.clone()),
            Some(Slot::Corrupt(found)) => match self.cache.reopen(found) {
                Some(stored) => Some(stored),
                None => {
                    let mut unreadable = super::error::UnreadableList::default();
                    unreadable.push(found.key(), found.error.clone());
                    unreadable.finish(&self.objects.resource)?;
                    None
                }
            },
        };
        let fetched = usize::from(stored.is_some());
        if let Some(stored) = stored
            && request.predicate.matches(&stored)
        {
            items.push(stored);
        }
        self.objects.counts.cache_lists.add(Listed { fetched, evaluated: 0, returned: items.len() });
        Ok(List { items, revision: view.revision, continue_token: String::new(), remaining: None })
    }

    async fn start_of_watch(&self, options: &WatchOptions) -> Result<Start, Status> {
        let initial = options.send_initial_events;
        let from = options.from.unwrap_or(0);
        if initial == Some(true) && options.bookmarks && !self.shared.kv.supports_progress() {
            return Err(Status::internal(
                "a watch stream was requested by the client but the required storage feature \
                 RequestWatchProgress is disabled",
            ));
        }
        // Unset means the most recent, unless nothing was said about initial events: then any will do.
        let least = match (options.from, initial) {
            (None, Some(_)) => self.current_revision().await?,
            _ => from,
        };
        if initial == Some(true) {
            self.cache.wait_fresh(least).await?;
        }
        let after = match (from, initial) {
            (0, Some(false)) if least == 0 => self.cache.view()?.revision,
            _ => least,
        };
        Ok(Start {
            scope: self.scope(&options.namespace, options.name.as_deref())?,
            predicate: options.predicate.clone(),
            initial: initial == Some(true) || (from == 0 && initial.is_none()),
            initial_end: initial == Some(true) && options.bookmarks,
            after,
            bookmarks: options.bookmarks,
            timeout: options.timeout,
        })
    }

    fn scope(&self, namespace: &str, name: Option<&str>) -> Result<Scope, Status> {
        let keys = &self.objects.keys;
        Ok(match name {
            Some(name) if !(namespace.is_empty() && keys.namespaced()) => {
                Scope::Object(keys.object(namespace, name)?.tail().into())
            }
            // A name in all namespaces is the predicate's business.
            _ => {
                let range = keys.range(namespace)?;
                if range.tail().is_empty() { Scope::All } else { Scope::Namespace(range.tail().into()) }
            }
        })
    }

    /// How long an object that is written now lasts.
    pub(super) async fn lease_for(&self, ttl_seconds: u64) -> Result<crate::kv::LeaseId, Status> {
        let seconds = if ttl_seconds == 0 { self.ttl_seconds } else { ttl_seconds };
        if seconds == 0 {
            return Ok(0);
        }
        self.leases.lease(Duration::from_secs(seconds)).await.map_err(from_kv)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.cache.close();
    }
}

#[async_trait]
impl Registry for Store {
    async fn create(
        &self,
        namespace: &str,
        name: &str,
        object: &Value,
        ttl_seconds: u64,
    ) -> Result<Arc<Stored>, Status> {
        self.create_object(namespace, name, object, ttl_seconds).await
    }

    async fn get(&self, namespace: &str, name: &str, at: ReadAt) -> Result<Arc<Stored>, Status> {
        let key = self.key(namespace, name)?;
        let least = match at {
            ReadAt::Latest => None,
            ReadAt::Any => Some(0),
            ReadAt::NotOlderThan(revision) | ReadAt::Exact(revision) => Some(revision),
        };
        if self.cache.ready() {
            return match least {
                Some(least) => self.get_cached(&key, name, least).await,
                None => self.get_latest(&key, name).await,
            };
        }
        range::get(&self.shared, &self.objects, &key, name, least.unwrap_or(0), None).await
    }

    async fn list(&self, request: ListRequest) -> Result<List, Status> {
        let range = self.objects.keys.range(&request.namespace)?;
        // One key: a name, and a namespace where there are any.
        let one = request
            .name
            .as_deref()
            .filter(|_| !(self.objects.keys.namespaced() && request.namespace.is_empty()));
        let token = match request.continue_token.as_str() {
            "" => None,
            _ if one.is_some() => None,
            token => Some(
                ContinueToken::decode(token)
                    .map_err(|error| Status::bad_request(format!("invalid continue token: {error}")))?,
            ),
        };
        let token = token.as_ref();
        if token.is_some() && !matches!(request.at, ReadAt::Latest | ReadAt::Any) {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let at = match (token, request.at) {
            (Some(token), _) if token.revision <= LATEST => ListAt::Latest,
            (Some(token), _) => ListAt::Exact(token.revision),
            (None, ReadAt::Latest) => ListAt::Latest,
            (None, ReadAt::Any) => ListAt::NotOlderThan(0),
            (None, ReadAt::NotOlderThan(revision)) => ListAt::NotOlderThan(revision),
            (None, ReadAt::Exact(revision)) => ListAt::Exact(revision),
        };
        match at {
            ListAt::Exact(revision) => {
                if let Some(name) = one {
                    return self.list_one(&request, name, &at).await;
                }
                match self.cache.view_at(revision) {
                    Some(view) => self.list_view(&request, &range, token, &view),
                    None => self.list_range(&request, &range, token, &at).await,
                }
            }
            ListAt::Latest | ListAt::NotOlderThan(_) => {
                self.list_fresh(&request, &range, token, &at, one).await
            }
        }
    }

    async fn update(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        create_missing: bool,
        updater: &mut dyn Updater,
    ) -> Result<Arc<Stored>, Status> {
        self.update_object(namespace, name, preconditions, create_missing, updater).await
    }

    async fn delete(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        check: &mut dyn DeleteCheck,
    ) -> Result<Arc<Stored>, Status> {
        self.delete_object(namespace, name, preconditions, check).await
    }

    async fn delete_unreadable(&self, namespace: &str, name: &str, dry_run: bool) -> Result<(), Status> {
        self.delete_unreadable_object(namespace, name, dry_run).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<EventStream, Status> {
        self.cache.wait_ready().await?;
        let watch = match self.start_of_watch(&options).await {
            Ok(start) => Watch::open(&self.cache, start),
            Err(error) => Err(error),
        };
        match watch {
            Ok(watch) => Ok(watch.boxed()),
            // Once the request as such is right, errors are events, as if the watch had failed later.
            Err(error) => Ok(stream::once(async move { Err(error) }).boxed()),
        }
    }

    fn decode(&self, stored: &Stored) -> Result<Value, Status> {
        self.objects.decode(stored).map_err(|error| error.on_write())
    }

    fn ready(&self) -> bool {
        self.cache.ready()
    }
}

impl Store {
    /// A list of the most recent state, or of one that is new enough.
    async fn list_fresh(
        &self,
        request: &ListRequest,
        range: &KeyRange,
        token: Option<&ContinueToken>,
        at: &ListAt,
        one: Option<&str>,
    ) -> Result<List, Status> {
        let consistent = matches!(at, ListAt::Latest);
        let bounded = request.limit != 0 && request.predicate.is_everything();
        // The cache was ready, and not fresh in time.
        let mut behind = false;
        let ask_store =
            (consistent && !self.shared.kv.supports_progress()) || (bounded && !self.cache.ready());
        if !ask_store {
            self.cache.wait_ready().await?;
            let least = match at {
                ListAt::NotOlderThan(least) => *least,
                ListAt::Latest | ListAt::Exact(_) => self.current_revision().await?,
            };
            match self.cache.wait_fresh(least).await {
                Ok(()) => {
                    let list = self.cache.view().and_then(|view| match one {
                        Some(name) => self.list_one_of_view(request, name, &view),
                        None => self.list_view(request, range, token, &view),
                    });
                    if consistent {
                        self.objects.counts.consistent_read(list.is_ok(), false);
                    }
                    return list;
                }
                // The cache does not keep up; the store knows.
                Err(error) if consistent && is_too_large_resource_version(&error) => behind = true,
                Err(error) => {
                    if consistent {
                        self.objects.counts.consistent_read(false, false);
                    }
                    return Err(error);
                }
            }
        }
        let list = match one {
            Some(name) => self.list_one(request, name, at).await,
            None => self.list_range(request, range, token, at).await,
        };
        if behind {
            self.objects.counts.consistent_read(list.is_ok(), true);
        }
        list
    }
}
