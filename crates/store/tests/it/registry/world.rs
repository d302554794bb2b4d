//! A store of pods over an engine, with everything around it that a test wants to turn.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_crypto::transformer::{Plain, TransformError, Transformer};
use coffer_sim::SimClock;
use coffer_store::Storage;
use coffer_store::key::Origin;
use coffer_store::kv::{Kv, Op, RangeRequest, Revision, SharedValue, Txn};
use coffer_store::registry::{
    Attributes, Current, DeleteCheck, Event, EventStream, EventType, List, ListRequest, ObjectCodec,
    Preconditions, Predicate, ReadAt, Registry, ResourceConfig, Store, Stored, Updater, WatchOptions,
};
use coffer_types::meta::Meta;
use coffer_types::{SecretBytes, Status, Value, codec::json};
use futures::StreamExt;

use super::probe::Probe;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The step of time for engines that do not share our clock.
const TICK: Duration = Duration::from_millis(10);
/// How long nothing must happen for a test to believe that nothing will.
pub(crate) const QUIET: Duration = Duration::from_millis(50);

/// An engine under test and what keeps it alive.
pub(crate) struct Engine {
    pub(crate) kv: Arc<dyn Kv>,
    /// The engine's clock, or none if it has the machine's.
    pub(crate) clock: Option<SimClock>,
    pub(crate) server: Box<dyn Any + Send + Sync>,
}

/// A store of pods and what lies around it.
pub(crate) struct World {
    pub(crate) storage: Arc<Storage>,
    pub(crate) store: Arc<Store>,
    pub(crate) probe: Arc<Probe>,
    pub(crate) clock: SimClock,
    pub(crate) transformer: Arc<PrefixTransformer>,
    engine_has_our_clock: bool,
    _server: (Box<dyn Any + Send + Sync>, Ticking),
}

/// Time goes on while this lives.
struct Ticking(Option<tokio::task::AbortHandle>);

impl Drop for Ticking {
    fn drop(&mut self) {
        if let Some(ticking) = &self.0 {
            ticking.abort();
        }
    }
}

impl World {
    /// A world whose cache is filled.
    pub(crate) async fn new(engine: Engine) -> Self {
        let world = Self::unready(engine, 0);
        world.wait_ready().await;
        world
    }

    pub(crate) fn unready(engine: Engine, ttl_seconds: u64) -> Self {
        let probe = Arc::new(Probe::new(engine.kv));
        Self::over(probe, engine.clock, engine.server, ttl_seconds)
    }

    /// The same over an engine that is already probed.
    pub(crate) fn over(
        probe: Arc<Probe>,
        clock: Option<SimClock>,
        server: Box<dyn Any + Send + Sync>,
        ttl_seconds: u64,
    ) -> Self {
        let engine_has_our_clock = clock.is_some();
        let clock = clock.unwrap_or_default();
        let ticking = (!engine_has_our_clock).then(|| {
            // An engine with the machine's clock may need the retries that come with time.
            let clock = clock.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(TICK).await;
                    clock.advance(TICK);
                }
            })
            .abort_handle()
        });
        let transformer = Arc::new(PrefixTransformer::default());
        let shared = transformer.clone();
        let storage = Storage::new(
            probe.clone(),
            Arc::new(clock.clone()),
            "/registry",
            Box::new(move |_, _| shared.clone()),
        );
        let config = ResourceConfig { ttl_seconds, ..config("", "pods", Origin::BuiltIn, true) };
        let store = storage.open(config).expect("a store");
        Self {
            storage,
            store,
            probe,
            clock,
            transformer,
            engine_has_our_clock,
            _server: (server, Ticking(ticking)),
        }
    }

    pub(crate) fn with_store(self, store: Arc<Store>) -> Self {
        Self { store, ..self }
    }

    pub(crate) async fn wait_ready(&self) {
        let wait = async {
            while !self.store.ready() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("the cache is filled");
    }

    /// Waits for `future` while the clock runs fast.
    pub(crate) async fn in_time<T>(&self, future: impl Future<Output = T>) -> T {
        let clock = self.clock.clone();
        let run = async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                clock.advance(Duration::from_millis(500));
            }
        };
        tokio::select! {
            done = future => done,
            () = run => unreachable!("the clock runs for ever"),
            () = tokio::time::sleep(PATIENCE) => panic!("it takes too long"),
        }
    }

    /// Lets time pass for the store, and for the engine.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(QUIET).await;
        self.clock.advance(time);
        if !self.engine_has_our_clock {
            tokio::time::sleep(time).await;
        }
    }

    pub(crate) async fn create(&self, object: &Value) -> Arc<Stored> {
        self.store.create(object.namespace(), object.name(), object, 0).await.expect("created")
    }

    /// Replaces (or makes) the object.
    pub(crate) async fn put(&self, object: &Value) -> Arc<Stored> {
        let new = object.clone();
        self.update_with(object, true, move |_| Ok(new.clone())).await.expect("updated")
    }

    pub(crate) async fn update_with(
        &self,
        of: &Value,
        create_missing: bool,
        change: impl FnMut(Current) -> Result<Value, Status> + Send,
    ) -> Result<Arc<Stored>, Status> {
        let mut updater = Update(change);
        let none = Preconditions::default();
        self.store.update(of.namespace(), of.name(), &none, create_missing, &mut updater).await
    }

    pub(crate) async fn delete(&self, of: &Value) -> Result<Arc<Stored>, Status> {
        self.delete_with(of, &Preconditions::default(), |_| Ok(())).await
    }

    pub(crate) async fn delete_with(
        &self,
        of: &Value,
        preconditions: &Preconditions,
        check: impl FnMut(&Value) -> Result<(), Status> + Send,
    ) -> Result<Arc<Stored>, Status> {
        self.store.delete(of.namespace(), of.name(), preconditions, &mut Check(check)).await
    }

    pub(crate) async fn get(&self, of: &Value, at: ReadAt) -> Result<Arc<Stored>, Status> {
        self.store.get(of.namespace(), of.name(), at).await
    }

    pub(crate) async fn list(&self, namespace: &str) -> List {
        self.store.list(list(namespace)).await.expect("a list")
    }

    /// Waits until the cache has a revision.
    pub(crate) async fn cached(&self, revision: Revision) {
        let request = ListRequest { at: ReadAt::NotOlderThan(revision), ..list("") };
        // Unreadable objects fail the list, and the wait is over all the same.
        let _ = self.store.list(request).await;
    }

    pub(crate) async fn current(&self) -> Revision {
        let request = RangeRequest { start: Bytes::from_static(b"/x"), ..RangeRequest::default() };
        self.probe.inner().range(request).await.expect("the revision").revision
    }

    /// Writes a value past the store.
    pub(crate) async fn write_raw(&self, key: &str, value: &[u8]) -> Revision {
        let put = Op::Put {
            key: Bytes::copy_from_slice(key.as_bytes()),
            value: SharedValue(Bytes::copy_from_slice(value)),
            lease: 0,
        };
        let txn = Txn { success: vec![put], ..Txn::default() };
        self.probe.inner().txn(txn).await.expect("written").revision
    }

    /// The bytes in the engine.
    pub(crate) async fn read_raw(&self, key: &str) -> Option<Bytes> {
        let request =
            RangeRequest { start: Bytes::copy_from_slice(key.as_bytes()), ..RangeRequest::default() };
        let response = self.probe.inner().range(request).await.expect("read");
        response.items.into_iter().next().map(|kv| kv.value)
    }

    /// Something else happens in the engine.
    pub(crate) async fn increase_revision(&self) -> Revision {
        self.write_raw("/registry/other/thing", b"x").await
    }

    /// Forgets the engine's history as the compactor would, and tells the caches.
    pub(crate) async fn compact(&self, revision: Revision) {
        self.probe.inner().compact(revision).await.expect("compacted");
        self.storage.note_compacted(revision);
    }

    pub(crate) async fn watch(&self, options: WatchOptions) -> Watching {
        Watching(self.store.watch(options).await.expect("a watch"))
    }

    pub(crate) fn decode(&self, stored: &Stored) -> Value {
        self.store.decode(stored).expect("decodes")
    }
}

pub(crate) fn config(group: &str, resource: &str, origin: Origin, namespaced: bool) -> ResourceConfig {
    ResourceConfig {
        group: group.to_owned(),
        resource: resource.to_owned(),
        origin,
        namespaced,
        codec: Arc::new(Json),
        ttl_seconds: 0,
    }
}

/// A stream of events under test.
pub(crate) struct Watching(pub(crate) EventStream);

impl Watching {
    /// The next event or error; panics when there is none in time.
    pub(crate) async fn next(&mut self) -> Result<Arc<Event>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an event in time");
        next.expect("the watch goes on")
    }

    pub(crate) async fn event(&mut self) -> Arc<Event> {
        self.next().await.expect("an event")
    }

    /// `ADDED ns/name@revision` for the next events.
    pub(crate) async fn shown(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(show(&*self.event().await));
        }
        all
    }

    /// Gets one event, so that from here on changes are handed to the watch as they come.
    pub(crate) async fn live(&mut self, world: &World, namespace: &str) {
        let made = world.create(&pod(namespace, "live")).await;
        assert_eq!(self.shown(1).await, [format!("ADDED {}", show_stored(&made))]);
        self.nothing().await;
    }

    pub(crate) async fn nothing(&mut self) {
        if let Ok(found) = tokio::time::timeout(QUIET, self.0.next()).await {
            panic!("unexpected: {found:?}");
        }
    }

    pub(crate) async fn ended(&mut self) {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an end in time");
        assert!(next.is_none(), "{next:?}");
    }
}

pub(crate) fn show(event: &Event) -> String {
    let kind = match event.event_type {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark if event.initial_events_end => "END",
        EventType::Bookmark => "BOOKMARK",
    };
    match &event.object {
        None => format!("{kind} {}", event.revision),
        Some(object) => {
            assert_eq!(object.revision, event.revision);
            format!("{kind} {}/{}@{}", object.namespace, object.name, event.revision)
        }
    }
}

pub(crate) fn show_list(list: &List) -> Vec<String> {
    list.items.iter().map(|stored| show_stored(stored)).collect()
}

pub(crate) fn show_stored(stored: &Stored) -> String {
    format!("{}/{}@{}", stored.namespace, stored.name, stored.revision)
}

/// A pod as it is sent to be created.
pub(crate) fn pod(namespace: &str, name: &str) -> Value {
    let mut pod = Value::from([("apiVersion", "v1"), ("kind", "Pod")]);
    pod.set_meta_str("namespace", namespace);
    pod.set_meta_str("name", name);
    pod
}

/// The same with one more text field, such as `["metadata", "labels", "app"]`.
pub(crate) fn with(mut object: Value, path: &[&str], text: &str) -> Value {
    object.set_str(path, text);
    object
}

pub(crate) fn list(namespace: &str) -> ListRequest {
    ListRequest {
        namespace: namespace.to_owned(),
        name: None,
        at: ReadAt::Latest,
        limit: 0,
        continue_token: String::new(),
        predicate: Arc::new(Select::All),
    }
}

pub(crate) fn watch(namespace: &str, from: Option<Revision>) -> WatchOptions {
    WatchOptions {
        namespace: namespace.to_owned(),
        name: None,
        from,
        send_initial_events: None,
        bookmarks: false,
        timeout: None,
        predicate: Arc::new(Select::All),
    }
}

/// What tests select by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Select {
    All,
    Field(&'static str, &'static str),
    NotField(&'static str, &'static str),
    Label(&'static str, &'static str),
}

impl Predicate for Select {
    fn is_everything(&self) -> bool {
        matches!(self, Self::All)
    }

    fn matches(&self, stored: &Stored) -> bool {
        let field = |key: &str| stored.field(key).unwrap_or_default();
        match self {
            Self::All => true,
            Self::Field(key, value) => field(key) == *value,
            Self::NotField(key, value) => field(key) != *value,
            Self::Label(key, value) => stored.attributes.labels.iter().any(|(k, v)| k == key && v == value),
        }
    }
}

/// Replaces whatever is there.
pub(crate) struct Replace(pub(crate) Value);

#[async_trait]
impl Updater for Replace {
    async fn update(&mut self, _: Current) -> Result<Value, Status> {
        Ok(self.0.clone())
    }
}

/// Allows every deletion.
pub(crate) struct Always;

#[async_trait]
impl DeleteCheck for Always {
    async fn check(&mut self, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

struct Update<F>(F);

#[async_trait]
impl<F: FnMut(Current) -> Result<Value, Status> + Send> Updater for Update<F> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        (self.0)(current)
    }
}

struct Check<F>(F);

#[async_trait]
impl<F: FnMut(&Value) -> Result<(), Status> + Send> DeleteCheck for Check<F> {
    async fn check(&mut self, object: &Value) -> Result<(), Status> {
        (self.0)(object)
    }
}

/// JSON, with the fields that the tests select by.
pub(crate) struct Json;

impl ObjectCodec for Json {
    fn decode(&self, stored: &[u8]) -> Result<Value, String> {
        let decoded = json::decode_untyped(stored).map_err(|error| error.to_string())?;
        Ok(decoded.object)
    }

    fn encode(&self, object: &Value) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        json::encode_untyped(object, &mut bytes);
        Ok(bytes)
    }

    fn attributes(&self, stored: &[u8]) -> Result<Attributes, String> {
        let object = self.decode(stored)?;
        if object.as_object().is_none() {
            return Err("not an object".to_owned());
        }
        let labels = object.labels().iter();
        Ok(Attributes {
            labels: labels.map(|(k, v)| (k.clone(), v.as_str().unwrap_or_default().to_owned())).collect(),
            fields: vec![("spec.nodeName", object.str_at(&["spec", "nodeName"]).to_owned())],
            custom: Box::default(),
        })
    }
}

/// "Encrypts" by writing a prefix; can be told that everything is stale.
#[derive(Default)]
pub(crate) struct PrefixTransformer {
    pub(crate) stale: AtomicBool,
    /// Accepts (and writes) another prefix.
    pub(crate) other_key: AtomicBool,
    /// Cannot write.
    pub(crate) broken: AtomicBool,
}

impl PrefixTransformer {
    fn prefix(&self) -> &'static [u8] {
        if self.other_key.load(Ordering::SeqCst) { b"other:" } else { b"test:" }
    }
}

impl Transformer for PrefixTransformer {
    fn from_storage(&self, stored: &[u8], _: &[u8]) -> Result<Plain, TransformError> {
        let plain = stored
            .strip_prefix(self.prefix())
            .ok_or_else(|| TransformError("value does not have the expected prefix".to_owned()))?;
        Ok(Plain { bytes: SecretBytes::new(plain.to_vec()), stale: self.stale.load(Ordering::SeqCst) })
    }

    fn to_storage(&self, plain: &[u8], _: &[u8]) -> Result<Vec<u8>, TransformError> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(TransformError("no key".to_owned()));
        }
        Ok([self.prefix(), plain].concat())
    }

    fn writes_under(&self) -> String {
        String::from_utf8_lossy(self.prefix()).into_owned()
    }
}
