//! What the tests of several rooms share: a settable clock, fixed randomness, and stored objects in memory.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coffer_types::meta::{GroupVersionKind, Meta as _};
use coffer_types::random::{Random, RandomError};
use coffer_types::time::{Clock, Sleep, Timestamp};
use coffer_types::{Status, Value};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use parking_lot::Mutex;

use crate::ports::{
    Change, Context, Deletion, Equivalent, Forms, GroupResource, Interest, Objects, Reinvocation,
    ServedResource,
};

/// Runs a future that needs no timer and no socket.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

/// Everything that is logged, at every level, while `run` runs.
pub(crate) fn logs_of(run: impl FnOnce()) -> String {
    let text = Arc::new(Mutex::new(String::new()));
    tracing::subscriber::with_default(Capture(text.clone()), run);
    let text = text.lock();
    text.clone()
}

struct Capture(Arc<Mutex<String>>);

impl tracing::Subscriber for Capture {
    fn enabled(&self, _metadata: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _span: &tracing::span::Id, _values: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _span: &tracing::span::Id, _follows: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Visit<'a>(&'a mut String);
        impl tracing::field::Visit for Visit<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{field}={value:?} "));
            }
        }
        let mut text = self.0.lock();
        event.record(&mut Visit(&mut text));
        text.push('\n');
    }

    fn enter(&self, _span: &tracing::span::Id) {}

    fn exit(&self, _span: &tracing::span::Id) {}
}

/// A clock that stands still until it is moved. Sleeping moves it.
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub(crate) fn at(time: &str) -> Arc<Self> {
        let time: Timestamp = time.parse().expect("a time");
        Arc::new(Self(Arc::new(AtomicI64::new(time.as_second()))))
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::SeqCst)).expect("in range")
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.load(Ordering::SeqCst)).expect("after 1970"))
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let seconds = Arc::clone(&self.0);
        Box::pin(async move {
            seconds.fetch_add(i64::try_from(duration.as_secs()).expect("short"), Ordering::SeqCst);
            tokio::task::yield_now().await;
        })
    }
}

/// Objects that have one form, which is JSON.
#[derive(Default)]
pub(crate) struct OneForm {
    pub(crate) kind: GroupVersionKind,
    pub(crate) equivalents: Vec<Equivalent>,
}

#[async_trait]
impl Forms for OneForm {
    fn kind(&self) -> &GroupVersionKind {
        &self.kind
    }

    fn equivalents(&self) -> Vec<Equivalent> {
        self.equivalents.clone()
    }

    async fn convert(&self, object: &Value, to: &GroupVersionKind) -> Result<Value, String> {
        let mut object = object.clone();
        object.set_type(&to.api_version(), &to.kind);
        Ok(object)
    }

    fn encode(&self, object: &Value, _: &GroupVersionKind) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        coffer_types::codec::json::encode_untyped(object, &mut out);
        Ok(out)
    }

    fn decode(&self, patched: &Value, _: &GroupVersionKind) -> Result<Value, String> {
        Ok(patched.clone())
    }

    fn default(&self, _: &mut Value, _: &GroupVersionKind) {}
}

/// What a [`Context`] is made of.
#[derive(Default)]
pub(crate) struct ContextParts {
    pub(crate) name: String,
    pub(crate) options: Value,
    pub(crate) deadline: Option<Duration>,
    pub(crate) reinvocation: Reinvocation,
}

impl ContextParts {
    pub(crate) fn context<'a>(&'a self, forms: &'a dyn Forms) -> Context<'a> {
        Context {
            forms,
            name: &self.name,
            options: &self.options,
            deadline: self.deadline,
            reinvocation: &self.reinvocation,
        }
    }
}

/// Every byte is the same.
pub(crate) struct FixedRandom(pub(crate) u8);

impl Random for FixedRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        buffer.fill(self.0);
        Ok(())
    }
}

type Key = (GroupResource, String, String);

/// Objects in memory, with a log of every write.
#[derive(Default)]
pub(crate) struct MemoryObjects {
    objects: Mutex<BTreeMap<Key, Value>>,
    pub(crate) log: Mutex<Vec<String>>,
    served: Arc<[ServedResource]>,
}

impl MemoryObjects {
    pub(crate) fn serving(served: Vec<ServedResource>) -> Self {
        Self { served: served.into(), ..Self::default() }
    }

    pub(crate) fn with(objects: &[(&str, &str, Value)]) -> Arc<Self> {
        let memory = Arc::new(Self::default());
        for (group, resource, object) in objects {
            memory.put(group, resource, object.clone());
        }
        memory
    }

    pub(crate) fn put(&self, group: &str, resource: &str, object: Value) {
        let key =
            (GroupResource::new(group, resource), object.namespace().to_owned(), object.name().to_owned());
        self.objects.lock().insert(key, object);
    }

    fn note(&self, verb: &str, resource: &GroupResource, namespace: &str, name: &str) {
        self.log.lock().push(format!("{verb} {} {namespace}/{name}", resource.resource));
    }
}

#[async_trait]
impl Objects for MemoryObjects {
    async fn get(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        _live: bool,
    ) -> Result<Option<Value>, Status> {
        Ok(self.objects.lock().get(&(resource.clone(), namespace.to_owned(), name.to_owned())).cloned())
    }

    async fn list(&self, resource: &GroupResource, namespace: &str) -> Result<Vec<Value>, Status> {
        let objects = self.objects.lock();
        let matching = objects.iter().filter(|((own, own_namespace, _), _)| {
            own == resource && (namespace.is_empty() || own_namespace == namespace)
        });
        Ok(matching.map(|(_, object)| object.clone()).collect())
    }

    async fn create(&self, resource: &GroupResource, object: Value) -> Result<Value, Status> {
        self.note("create", resource, object.namespace(), object.name());
        if self.get(resource, object.namespace(), object.name(), true).await?.is_some() {
            return Err(Status::already_exists(&resource.group, &resource.resource, object.name()));
        }
        self.put(&resource.group, &resource.resource, object.clone());
        Ok(object)
    }

    async fn update(
        &self,
        resource: &GroupResource,
        subresource: &str,
        object: Value,
    ) -> Result<Value, Status> {
        let verb = if subresource.is_empty() { "update".to_owned() } else { format!("update/{subresource}") };
        self.note(&verb, resource, object.namespace(), object.name());
        if subresource == "binding" {
            return Ok(object);
        }
        if self.get(resource, object.namespace(), object.name(), true).await?.is_none() {
            return Err(Status::not_found(&resource.group, &resource.resource, object.name()));
        }
        self.put(&resource.group, &resource.resource, object.clone());
        Ok(object)
    }

    async fn delete(
        &self,
        resource: &GroupResource,
        namespace: &str,
        name: &str,
        _deletion: &Deletion,
    ) -> Result<(), Status> {
        self.note("delete", resource, namespace, name);
        let key = (resource.clone(), namespace.to_owned(), name.to_owned());
        match self.objects.lock().remove(&key) {
            Some(_) => Ok(()),
            None => Err(Status::not_found(&resource.group, &resource.resource, name)),
        }
    }

    fn watch(&self, resource: &GroupResource, _interest: Interest) -> BoxStream<'static, Change> {
        let objects = self.objects.lock();
        let now = objects.iter().filter(|((own, _, _), _)| own == resource);
        let now = now.map(|(_, object)| object.clone()).collect();
        futures::stream::iter([Change::Reset(now)]).chain(futures::stream::pending()).boxed()
    }

    fn served(&self) -> Arc<[ServedResource]> {
        Arc::clone(&self.served)
    }
}
