//! A cache of objects that a watch keeps current, holding only what its owner needs of each.
//!
//! What the owner does not keep (other people's Secret values, managedFields) is
//! dropped as it arrives, so memory does not grow with the size of foreign objects.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::time::Clock;
use futures::{Stream, StreamExt};
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, ObjectKey, Resource};
use crate::queue::core::backoff;

const RETRY_BASE: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// What goes on failing is warned of again after this time.
const WARN_AGAIN: Duration = Duration::from_secs(600);
/// How many objects one answer to a list of metadata holds: annotations alone may be 256 KiB for each, and one
/// page is in memory at a time.
const METADATA_PAGE: u32 = 50;

/// What is kept of one object.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// Its key.
    pub key: ObjectKey,
    /// Its resourceVersion.
    pub resource_version: String,
    /// What the owner keeps.
    pub object: T,
}

/// What a cache is fed from.
pub struct Source<S> {
    /// Plural of the resource, for the log.
    pub plural: &'static str,
    /// What is there and what happens to it.
    pub events: S,
}

/// A change in the cache: the object before and after.
#[derive(Debug)]
pub struct Change<'a, T> {
    /// The key.
    pub key: &'a ObjectKey,
    /// What was kept before.
    pub old: Option<Arc<T>>,
    /// What is kept now; `None` when the object is gone.
    pub new: Option<Arc<T>>,
}

/// The cache.
pub struct Informer<T> {
    objects: RwLock<BTreeMap<ObjectKey, (String, Arc<T>)>>,
    synced: watch::Sender<bool>,
}

impl<T> Default for Informer<T> {
    fn default() -> Self {
        Self { objects: RwLock::default(), synced: watch::Sender::new(false) }
    }
}

impl<T> Informer<T> {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.objects.read().get(key).map(|(_, object)| object.clone())
    }

    /// One object with its resourceVersion.
    pub fn get_versioned(&self, key: &ObjectKey) -> Option<(String, Arc<T>)> {
        self.objects.read().get(key).cloned()
    }

    /// Everything of one namespace ("" for all), with its key, that `pick` keeps.
    pub fn select<R>(&self, namespace: &str, pick: impl Fn(&ObjectKey, &Arc<T>) -> Option<R>) -> Vec<R> {
        let objects = self.objects.read();
        let start = ObjectKey::new(namespace, "");
        objects
            .range(start..)
            .take_while(|(key, _)| namespace.is_empty() || key.namespace == namespace)
            .filter_map(|(key, (_, object))| pick(key, object))
            .collect()
    }

    /// How many objects are kept.
    pub fn len(&self) -> usize {
        self.objects.read().len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.objects.read().is_empty()
    }

    /// Whether the first list has arrived.
    pub fn has_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Waits for the first list.
    pub async fn wait_synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Puts an answer to one's own write into the cache, unless a newer state is there or the object is gone.
    /// The watch event of that write then changes nothing.
    pub fn write_through(&self, kept: Kept<T>) {
        let mut objects = self.objects.write();
        if let Some(entry) = objects.get_mut(&kept.key)
            && newer(&kept.resource_version, &entry.0)
        {
            *entry = (kept.resource_version, Arc::new(kept.object));
        }
    }

    /// Feeds the cache from `source` until `stop`; `keep` reduces an object (`None`: not of interest),
    /// `changed` hears of each change after it is in the cache.
    pub async fn run<K>(
        &self,
        source: Source<impl Stream<Item = watcher::Result<Event<K>>>>,
        keep: impl Fn(K) -> Option<Kept<T>>,
        changed: impl Fn(Change<'_, T>),
        clock: &dyn Clock,
        stop: CancellationToken,
    ) {
        let mut events = pin!(source.events);
        let (mut failures, mut trouble) = (0, Trouble::default());
        let mut listed: Option<BTreeMap<ObjectKey, ()>> = None;
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(Ok(event)) => {
                    // A list is begun before it is known whether it can be had.
                    if !matches!(event, Event::Init) {
                        (failures, trouble) = (0, Trouble::default());
                    }
                    self.apply(event, &mut listed, &keep, &changed);
                }
                Some(Err(error)) => {
                    let wait = backoff(RETRY_BASE, RETRY_MAX, failures);
                    failures = failures.saturating_add(1);
                    report(source.plural, error, wait, trouble.is_loud(clock.monotonic()));
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = clock.sleep(wait) => {}
                    }
                }
            }
        }
    }

    fn apply<K>(
        &self,
        event: Event<K>,
        listed: &mut Option<BTreeMap<ObjectKey, ()>>,
        keep: &impl Fn(K) -> Option<Kept<T>>,
        changed: &impl Fn(Change<'_, T>),
    ) {
        match event {
            Event::Init => *listed = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                if let Some(kept) = keep(object) {
                    if let Some(listed) = listed {
                        listed.insert(kept.key.clone(), ());
                    }
                    self.put(kept, changed);
                }
            }
            Event::InitDone => {
                let listed = listed.take().unwrap_or_default();
                let gone: Vec<ObjectKey> =
                    self.objects.read().keys().filter(|key| !listed.contains_key(key)).cloned().collect();
                for key in gone {
                    self.drop_object(&key, changed);
                }
                self.synced.send_replace(true);
            }
            Event::Apply(object) => {
                if let Some(kept) = keep(object) {
                    self.put(kept, changed);
                }
            }
            Event::Delete(object) => {
                if let Some(kept) = keep(object) {
                    self.drop_object(&kept.key, changed);
                }
            }
        }
    }

    fn put(&self, kept: Kept<T>, changed: &impl Fn(Change<'_, T>)) {
        let new = Arc::new(kept.object);
        let old = {
            let mut objects = self.objects.write();
            if let Some((version, _)) = objects.get(&kept.key)
                && (*version == kept.resource_version || newer(version, &kept.resource_version))
            {
                // The echo of a write of our own, or a re-list: nothing new.
                return;
            }
            objects.insert(kept.key.clone(), (kept.resource_version, new.clone())).map(|(_, old)| old)
        };
        changed(Change { key: &kept.key, old, new: Some(new) });
    }

    fn drop_object(&self, key: &ObjectKey, changed: &impl Fn(Change<'_, T>)) {
        let old = self.objects.write().remove(key).map(|(_, old)| old);
        if old.is_some() {
            changed(Change { key, old, new: None });
        }
    }
}

/// Whether resourceVersion `left` is newer than `right`; versions that are no numbers cannot be compared.
fn newer(left: &str, right: &str) -> bool {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => right < left,
        _ => false,
    }
}

/// Warns of what goes on failing once, and then every so often.
#[derive(Default)]
struct Trouble(Option<Duration>);

impl Trouble {
    fn is_loud(&mut self, now: Duration) -> bool {
        let loud = self.0.is_none_or(|told| WARN_AGAIN <= now.saturating_sub(told));
        if loud {
            self.0 = Some(now);
        }
        loud
    }
}

fn report(plural: &str, error: watcher::Error, wait: Duration, loud: bool) {
    let seconds = wait.as_secs();
    let (what, why) = explain(error);
    // 410: too old, which listing again mends. 404: not installed yet, which the program tells by itself.
    if loud && !matches!(why.code, 404 | 410) {
        tracing::warn!(resource = plural, why = %why, seconds, "{what} failed; it is tried again");
    } else {
        tracing::debug!(resource = plural, why = %why, seconds, "{what} failed");
    }
}

/// What failed, and why; never what could not be decoded.
fn explain(error: watcher::Error) -> (&'static str, ApiError) {
    match error {
        watcher::Error::InitialListFailed(error) => ("listing", error.into()),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            ("watching", error.into())
        }
        watcher::Error::WatchError(status) => ("watching", kube::Error::Api(status).into()),
        watcher::Error::NoResourceVersion => {
            ("listing", ApiError::unreachable("the list has no resourceVersion"))
        }
    }
}

/// Whole objects of one namespace, or of all when it is "".
pub fn objects(
    client: kube::Client,
    resource: &Resource,
    namespace: &str,
) -> Source<impl Stream<Item = watcher::Result<Event<DynamicObject>>> + use<>> {
    let events = watcher::watcher(dynamic(client, resource, namespace), watcher::Config::default());
    Source { plural: resource.plural, events }
}

/// Metadata only of one namespace, or of all when it is "". The values stay with the API server: neither the
/// list nor the watch carries them.
pub fn metadata(
    client: kube::Client,
    resource: &Resource,
    namespace: &str,
) -> Source<impl Stream<Item = watcher::Result<Event<PartialObjectMeta<DynamicObject>>>> + use<>> {
    let config = watcher::Config::default().page_size(METADATA_PAGE);
    let events = watcher::watcher(dynamic(client, resource, namespace), config);
    Source { plural: resource.plural, events }
}

fn dynamic<K>(client: kube::Client, resource: &Resource, namespace: &str) -> kube::Api<K>
where
    K: kube::Resource<DynamicType = kube::core::ApiResource, Scope = kube::core::DynamicResourceScope>,
{
    let resource_type = resource.api_resource();
    if namespace.is_empty() || !resource.namespaced {
        kube::Api::all_with(client, &resource_type)
    } else {
        kube::Api::namespaced_with(client, namespace, &resource_type)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use crate::clock::SystemClock;

    use super::*;

    /// `NAME@VERSION=VALUE`; "-" is not of interest.
    fn keep(text: &'static str) -> Option<Kept<&'static str>> {
        let (key, value) = text.split_once('=')?;
        let (name, version) = key.split_once('@')?;
        Some(Kept { key: ObjectKey::new("ns", name), resource_version: version.to_owned(), object: value })
    }

    fn feed(informer: &Informer<&'static str>, events: Vec<Event<&'static str>>) -> String {
        let heard = Mutex::new(Vec::new());
        let events = futures::stream::iter(events.into_iter().map(Ok));
        let source = Source { plural: "things", events };
        let changed = |change: Change<'_, &'static str>| {
            let show = |value: Option<Arc<&'static str>>| value.map_or("-", |value| *value);
            heard.lock().push(format!("{}:{}>{}", change.key.name, show(change.old), show(change.new)));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(informer.run(source, keep, changed, &SystemClock::new(), CancellationToken::new()));
        heard.into_inner().join(" ")
    }

    #[test]
    fn changes_are_heard_once() {
        use Event::{Apply, Delete, Init, InitApply, InitDone};
        let cases: Vec<(&str, Vec<Event<&'static str>>, &str)> = vec![
            ("a list", vec![Init, InitApply("a@1=x"), InitApply("b@2=y"), InitDone], "a:->x b:->y"),
            ("a change", vec![Apply("a@1=x"), Apply("a@2=y")], "a:->x a:x>y"),
            ("the same again", vec![Apply("a@1=x"), Apply("a@1=x")], "a:->x"),
            ("an older one", vec![Apply("a@2=x"), Apply("a@1=y")], "a:->x"),
            ("a deletion", vec![Apply("a@1=x"), Delete("a@2=x")], "a:->x a:x>-"),
            (
                "deleted and made again",
                vec![Apply("a@1=x"), Delete("a@2=x"), Apply("a@3=z")],
                "a:->x a:x>- a:->z",
            ),
            ("not of interest", vec![Apply("nothing"), Delete("nothing")], ""),
            (
                "gone while the watch was broken",
                vec![
                    Init,
                    InitApply("a@1=x"),
                    InitApply("b@1=y"),
                    InitDone,
                    Init,
                    InitApply("b@1=y"),
                    InitDone,
                ],
                "a:->x b:->y a:x>-",
            ),
            (
                "a list that was cut off drops nothing",
                vec![Apply("a@1=x"), Init, InitApply("b@2=y"), Init],
                "a:->x b:->y",
            ),
        ];
        for (name, events, expected) in cases {
            assert_eq!(feed(&Informer::default(), events), expected, "{name}");
        }
    }

    #[test]
    fn o3_the_echo_of_an_own_write_is_not_heard() {
        let informer = Informer::default();
        feed(&informer, vec![Event::Apply("a@1=x")]);
        informer.write_through(keep("a@5=mine").unwrap());
        assert_eq!(feed(&informer, vec![Event::Apply("a@5=mine"), Event::Apply("a@4=old")]), "");
        assert_eq!(feed(&informer, vec![Event::Apply("a@6=other")]), "a:mine>other");
        informer.write_through(keep("gone@9=x").unwrap());
        assert_eq!(informer.len(), 1, "an object that is gone does not come back");
    }

    #[test]
    fn a_failure_names_its_cause_and_no_content() {
        let refused = || -> Box<dyn std::error::Error + Send + Sync> {
            std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "Connection refused").into()
        };
        let status = || Box::new(kube::core::Status::failure("no such right", "Forbidden").with_code(403));
        let decoding = serde_json::from_str::<u8>("\"hunter2\"").unwrap_err();
        let cases = [
            (
                watcher::Error::InitialListFailed(kube::Error::Service(refused())),
                "listing",
                "Connection refused",
            ),
            (watcher::Error::WatchFailed(kube::Error::Service(refused())), "watching", "Connection refused"),
            (watcher::Error::WatchStartFailed(kube::Error::Api(status())), "watching", "no such right"),
            (watcher::Error::WatchError(status()), "watching", "no such right"),
            (watcher::Error::InitialListFailed(kube::Error::SerdeError(decoding)), "listing", "decoded"),
            (watcher::Error::NoResourceVersion, "listing", "no resourceVersion"),
        ];
        for (error, what, why) in cases {
            let (found, text) = explain(error);
            assert_eq!(found, what);
            assert!(text.to_string().contains(why) && !text.to_string().contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn what_goes_on_failing_is_told_quietly() {
        let mut trouble = Trouble::default();
        for (second, loud) in [(0, true), (1, false), (599, false), (600, true), (601, false)] {
            assert_eq!(trouble.is_loud(Duration::from_secs(second)), loud, "at {second}");
        }
    }

    #[test]
    fn a_namespace_is_selected_alone() {
        let informer: Informer<u8> = Informer::default();
        for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("ba", "x")] {
            let key = ObjectKey::new(namespace, name);
            informer.objects.write().insert(key, ("1".to_owned(), Arc::new(0)));
        }
        let names = |namespace| informer.select(namespace, |key, _| Some(key.to_string()));
        assert_eq!(names("b"), ["b/x", "b/y"]);
        assert_eq!(names("").len(), 4);
    }
}
