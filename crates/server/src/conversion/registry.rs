//! The objects of a resource as one version sees them, converted on the way in and out.
//!
//! Selectors look at what was converted: a conversion may change labels, and fields have other names.
//! What was converted is kept for a while, because many readers ask for the same state of an object.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_store::registry::{
    Attributes, Current, DeleteCheck, Event, EventStream, EventType, Findings, Frames, List, ListRequest,
    Preconditions, Predicate, ReadAt, Registry, Stored, Updater, WatchOptions,
};
use coffer_types::codec::json;
use coffer_types::meta::Meta as _;
use coffer_types::{SecretBytes, Status, Value};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;

use super::Converter;
use crate::wire::CustomWire;

/// Events that are converted together.
const EVENTS: usize = 64;
/// Bytes of converted objects that are kept.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// A version's view of the stored objects.
pub(crate) struct Converted(Arc<View>);

struct View {
    stored: Arc<dyn Registry>,
    converter: Arc<Converter>,
    wire: Arc<CustomWire>,
    /// The version that is written to the store.
    storage: String,
    /// `/GROUP/RESOURCE/`, as upstream names keys in errors.
    root: String,
    kept: Mutex<Kept>,
}

/// Namespace, name and revision.
type State = (String, String, i64);

/// What was converted last.
#[derive(Default)]
struct Kept {
    objects: HashMap<State, Arc<Stored>>,
    order: VecDeque<State>,
    bytes: usize,
}

impl Kept {
    fn insert(&mut self, state: State, object: Arc<Stored>) {
        self.bytes += object.bytes.len();
        if let Some(before) = self.objects.insert(state.clone(), object) {
            self.bytes -= before.bytes.len();
        } else {
            self.order.push_back(state);
        }
        while KEPT_BYTES < self.bytes
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(gone) = self.objects.remove(&oldest) {
                self.bytes -= gone.bytes.len();
            }
        }
    }
}

/// Everything.
struct All;

impl Predicate for All {
    fn is_everything(&self) -> bool {
        true
    }

    fn matches(&self, _: &Stored) -> bool {
        true
    }
}

impl Converted {
    /// The view of the version of `wire`; objects are written to `stored` in the version `storage`.
    pub(crate) fn new(
        stored: Arc<dyn Registry>,
        converter: Arc<Converter>,
        wire: Arc<CustomWire>,
        storage: String,
        root: String,
    ) -> Self {
        Self(Arc::new(View { stored, converter, wire, storage, root, kept: Mutex::default() }))
    }
}

impl View {
    /// Stored objects as the version sees them.
    async fn see(&self, stored: &[Arc<Stored>]) -> Result<Vec<Arc<Stored>>, Status> {
        let state = |one: &Stored| (one.namespace.clone(), one.name.clone(), one.revision);
        let mut seen: Vec<Option<Arc<Stored>>> = {
            let kept = self.kept.lock();
            stored.iter().map(|one| kept.objects.get(&state(one)).cloned()).collect()
        };
        let unseen: Vec<usize> = (0..seen.len()).filter(|index| seen[*index].is_none()).collect();
        let mut objects = Vec::with_capacity(unseen.len());
        for index in &unseen {
            objects.push(self.converter.settle(&stored[*index].bytes)?);
        }
        let objects = self.converter.convert(objects, &self.wire.api_version()).await?;
        for (index, object) in unseen.into_iter().zip(objects) {
            let one = &stored[index];
            let made = Arc::new(self.stored_as(&object, one));
            self.kept.lock().insert(state(one), Arc::clone(&made));
            seen[index] = Some(made);
        }
        Ok(seen.into_iter().flatten().collect())
    }

    async fn see_one(&self, stored: Arc<Stored>) -> Result<Arc<Stored>, Status> {
        let seen = self.see(&[stored]).await?;
        seen.into_iter().next().ok_or_else(|| Status::internal("nothing was converted"))
    }

    /// A converted object as if it had been stored so.
    fn stored_as(&self, object: &Value, stored: &Stored) -> Stored {
        let mut bytes = Vec::with_capacity(stored.bytes.len());
        json::encode_untyped(object, &mut bytes);
        bytes.push(b'\n');
        let labels = object.labels().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let attributes = Attributes {
            labels: labels.map(|(key, value)| (key.clone(), text(value))).collect(),
            fields: Vec::new(),
            custom: self.wire.selected(object).collect(),
        };
        Stored {
            namespace: stored.namespace.clone(),
            name: stored.name.clone(),
            revision: stored.revision,
            // Wiped when the last reader is gone.
            bytes: Bytes::from_owner(SecretBytes::new(bytes)),
            attributes,
            findings: Findings::default(),
        }
    }

    async fn to_storage(&self, object: Value) -> Result<Value, Status> {
        one(self.converter.convert(vec![object], &self.storage).await?)
    }

    /// What a watcher with this selection sees of events.
    async fn events(
        &self,
        events: Vec<Arc<Event>>,
        predicate: &dyn Predicate,
    ) -> Result<Vec<Arc<Event>>, Status> {
        let selects = !predicate.is_everything();
        let objects: Vec<Arc<Stored>> = events
            .iter()
            .flat_map(|event| {
                let previous = event.previous.as_ref().filter(|_| selects);
                event.object.iter().chain(previous).cloned()
            })
            .collect();
        let mut seen = self.see(&objects).await?.into_iter();
        let mut selected = Vec::with_capacity(events.len());
        for event in events {
            if event.object.is_none() {
                selected.push(event);
                continue;
            }
            let object = seen.next();
            let previous = if selects && event.previous.is_some() { seen.next() } else { None };
            let Some(object) = object else { continue };
            let matches = |object: &Stored| !selects || predicate.matches(object);
            let (old, new) = match event.event_type {
                EventType::Deleted => (matches(&object), false),
                _ => (selects && previous.as_deref().is_some_and(matches), matches(&object)),
            };
            let told = match (event.event_type, old, new) {
                (EventType::Deleted, true, _) => Some((EventType::Deleted, object)),
                (EventType::Modified, true, false) => previous.map(|previous| {
                    let left = previous.at_revision(event.revision);
                    (EventType::Deleted, left)
                }),
                (EventType::Modified, false, true) if selects => Some((EventType::Added, object)),
                (event_type, _, true) => Some((event_type, object)),
                _ => None,
            };
            selected.extend(told.map(|(event_type, object)| {
                Arc::new(Event {
                    event_type,
                    object: Some(object),
                    previous: None,
                    revision: event.revision,
                    initial_events_end: false,
                    frames: Frames::default(),
                })
            }));
        }
        Ok(selected)
    }
}

fn one(objects: Vec<Value>) -> Result<Value, Status> {
    objects.into_iter().next().ok_or_else(|| Status::internal("nothing was converted"))
}

/// What upstream says of an object that cannot be read, as it does of one that cannot be converted.
fn undecodable(revision: i64, why: &Status) -> String {
    format!("object not decodable revision={revision}: {}", why.message)
}

/// Nothing stands in the way.
struct Always;

#[async_trait]
impl DeleteCheck for Always {
    async fn check(&mut self, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

/// An updater of the version, for an object in the version that it is stored in.
struct Between<'u> {
    view: &'u View,
    updater: &'u mut dyn Updater,
}

#[async_trait]
impl Updater for Between<'_> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        let object = match current.object {
            None => None,
            Some(object) => {
                let api_version = self.view.wire.api_version();
                let converted = self.view.converter.convert(vec![object], &api_version).await;
                let converted = converted.map_err(|why| Status::plain(undecodable(current.revision, &why)));
                Some(one(converted?)?)
            }
        };
        let object = self.updater.update(Current { object, revision: current.revision }).await?;
        self.view.to_storage(object).await
    }
}

#[async_trait]
impl Registry for Converted {
    async fn create(
        &self,
        namespace: &str,
        name: &str,
        object: &Value,
        ttl_seconds: u64,
    ) -> Result<Arc<Stored>, Status> {
        let object = self.0.to_storage(object.clone()).await?;
        let stored = self.0.stored.create(namespace, name, &object, ttl_seconds).await?;
        self.0.see_one(stored).await
    }

    async fn get(&self, namespace: &str, name: &str, at: ReadAt) -> Result<Arc<Stored>, Status> {
        let stored = self.0.stored.get(namespace, name, at).await?;
        let revision = stored.revision;
        self.0.see_one(stored).await.map_err(|why| {
            let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
            Status::internal(format!(
                "StorageError: corrupt object, Code: 7, Key: {}{place}, ResourceVersion: 0, AdditionalErrorMsg: {}",
                self.0.root,
                undecodable(revision, &why)
            ))
        })
    }

    async fn list(&self, request: ListRequest) -> Result<List, Status> {
        let predicate = request.predicate;
        let selects = !predicate.is_everything();
        let mut whole: Option<List> = None;
        let mut token = request.continue_token;
        loop {
            let missing = match (&whole, request.limit) {
                (_, 0) => 0,
                (None, limit) => limit,
                (Some(whole), limit) => limit - whole.items.len(),
            };
            let mut page = self
                .0
                .stored
                .list(ListRequest {
                    namespace: request.namespace.clone(),
                    name: request.name.clone(),
                    at: if whole.is_none() { request.at } else { ReadAt::Latest },
                    limit: missing,
                    continue_token: std::mem::take(&mut token),
                    predicate: Arc::new(All),
                })
                .await?;
            page.items = self.0.see(&page.items).await?;
            if selects {
                page.items.retain(|item| predicate.matches(item));
                page.remaining = None;
            }
            token.clone_from(&page.continue_token);
            match &mut whole {
                None => whole = Some(page),
                Some(whole) => {
                    whole.items.append(&mut page.items);
                    whole.continue_token = page.continue_token;
                }
            }
            let full = whole.as_ref().is_some_and(|whole| whole.items.len() == request.limit);
            if token.is_empty() || full {
                break;
            }
        }
        whole.ok_or_else(|| Status::internal("a list without a page"))
    }

    async fn update(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        create_missing: bool,
        updater: &mut dyn Updater,
    ) -> Result<Arc<Stored>, Status> {
        let mut between = Between { view: &self.0, updater };
        let stored =
            self.0.stored.update(namespace, name, preconditions, create_missing, &mut between).await?;
        self.0.see_one(stored).await
    }

    async fn delete(
        &self,
        namespace: &str,
        name: &str,
        preconditions: &Preconditions,
        check: &mut dyn DeleteCheck,
    ) -> Result<Arc<Stored>, Status> {
        // What is checked is metadata, which no conversion changes.
        let stored = self.0.stored.delete(namespace, name, preconditions, check).await?;
        self.0.see_one(stored).await
    }

    async fn delete_unreadable(&self, namespace: &str, name: &str, dry_run: bool) -> Result<(), Status> {
        // What is stored well and cannot be converted cannot be read either.
        if let Ok(stored) = self.0.stored.get(namespace, name, ReadAt::Latest).await
            && self.0.see_one(stored).await.is_err()
        {
            if !dry_run {
                self.0.stored.delete(namespace, name, &Preconditions::default(), &mut Always).await?;
            }
            return Ok(());
        }
        self.0.stored.delete_unreadable(namespace, name, dry_run).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<EventStream, Status> {
        let predicate = Arc::clone(&options.predicate);
        let events = self.0.stored.watch(WatchOptions { predicate: Arc::new(All), ..options }).await?;
        let state = (Arc::clone(&self.0), events.ready_chunks(EVENTS), predicate, false);
        let chunks = stream::unfold(state, |(view, mut events, predicate, ended)| async move {
            if ended {
                return None;
            }
            let mut good = Vec::new();
            let mut failure = None;
            for event in events.next().await? {
                match event {
                    Ok(event) => good.push(event),
                    Err(status) => {
                        failure = Some(status);
                        break;
                    }
                }
            }
            let (told, failure) = match view.events(good, &*predicate).await {
                Ok(told) => (told, failure),
                Err(status) => (Vec::new(), Some(status)),
            };
            let ended = failure.is_some();
            let told = told.into_iter().map(Ok).chain(failure.map(Err));
            Some((stream::iter(told.collect::<Vec<_>>()), (view, events, predicate, ended)))
        });
        Ok(chunks.flatten().boxed())
    }

    fn decode(&self, stored: &Stored) -> Result<Value, Status> {
        let object = json::decode_untyped(&stored.bytes).map_err(|error| Status::plain(error.to_string()))?;
        let mut object = object.object;
        object.set_meta_str("resourceVersion", &stored.revision.to_string());
        Ok(object)
    }

    fn ready(&self) -> bool {
        self.0.stored.ready()
    }
}
