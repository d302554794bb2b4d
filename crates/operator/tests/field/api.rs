//! An API server in the same process: objects, watches, finalizers, and a record of every request.
//!
//! It knows no schema and no permission; what depends on those is tested beside a stock kube-apiserver.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use coffer_sim::clock::SimClock;
use coffer_types::time::{Clock, rfc3339};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

/// Plural, namespace ("" for cluster-scoped objects), name.
pub(crate) type Place = (String, String, String);
type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Which client sent it.
    pub(crate) client: &'static str,
    /// When.
    pub(crate) at: Duration,
    pub(crate) method: Method,
    pub(crate) place: Place,
    pub(crate) query: String,
    pub(crate) accept: String,
    /// Bytes of the answer; 0 for a watch.
    pub(crate) answered: usize,
}

impl Seen {
    /// Whether it changes an object that is no event.
    pub(crate) fn writes(&self) -> bool {
        self.method != Method::GET && self.place.0 != "events"
    }
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Place, Json>,
    version: u64,
    watches: Vec<Watch>,
    seen: Vec<Seen>,
    /// Bytes that watches carried.
    watched: usize,
    /// Resources that are not installed.
    absent: BTreeSet<String>,
    /// Resources whose requests are never answered.
    silent: BTreeSet<String>,
}

struct Watch {
    plural: String,
    namespace: String,
    partial: bool,
    sender: mpsc::UnboundedSender<Bytes>,
}

/// The server.
pub(crate) struct Server {
    state: Mutex<State>,
    clock: SimClock,
}

impl Server {
    pub(crate) fn new(clock: SimClock) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), clock })
    }

    pub(crate) fn client(self: &Arc<Self>, name: &'static str) -> kube::Client {
        kube::Client::new(Connection { server: self.clone(), name }, "default")
    }

    /// Everything that arrived since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state.lock().seen)
    }

    /// Changes with every request and watch event.
    pub(crate) fn activity(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.seen.len(), state.watched)
    }

    /// Bytes that watches carried so far.
    pub(crate) fn watched(&self) -> usize {
        self.state.lock().watched
    }

    pub(crate) fn install(&self, plural: &str, installed: bool) {
        let mut state = self.state.lock();
        if installed {
            state.absent.remove(plural)
        } else {
            state.absent.insert(plural.to_owned())
        };
    }

    pub(crate) fn silence(&self, plural: &str, silent: bool) {
        let mut state = self.state.lock();
        if silent {
            state.silent.insert(plural.to_owned())
        } else {
            state.silent.remove(plural)
        };
    }

    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Json> {
        self.state.lock().objects.get(&place(plural, namespace, name)).cloned()
    }

    pub(crate) fn count(&self, plural: &str, namespace: &str) -> usize {
        let state = self.state.lock();
        state.objects.keys().filter(|key| key.0 == plural && key.1 == namespace).count()
    }

    /// Creates or replaces an object without a request.
    pub(crate) fn put(&self, plural: &str, namespace: &str, name: &str, object: Json) {
        let place = place(plural, namespace, name);
        let mut state = self.state.lock();
        let old = state.objects.get(&place).cloned();
        self.store(&mut state, place, old, object, false);
    }

    /// Changes an object without a request.
    pub(crate) fn edit(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Json)) {
        let mut object = self.get(plural, namespace, name).unwrap();
        change(&mut object);
        self.put(plural, namespace, name, object);
    }

    /// What the namespace controller does: everything in it is deleted.
    pub(crate) fn delete_namespace(&self, namespace: &str) {
        let mut state = self.state.lock();
        let places: Vec<Place> = state.objects.keys().filter(|key| key.1 == namespace).cloned().collect();
        for place in places {
            self.remove(&mut state, &place);
        }
    }

    fn store(&self, state: &mut State, place: Place, old: Option<Json>, mut new: Json, status: bool) -> Json {
        state.version += 1;
        let metadata = &mut new["metadata"];
        (metadata["name"], metadata["resourceVersion"]) =
            (place.2.as_str().into(), state.version.to_string().into());
        if !place.1.is_empty() {
            metadata["namespace"] = place.1.as_str().into();
        }
        match &old {
            None => {
                metadata["uid"] = format!("uid-{}", state.version).into();
                metadata["creationTimestamp"] = rfc3339(self.clock.now()).into();
                metadata["generation"] = 1.into();
            }
            Some(old) => {
                for field in ["uid", "creationTimestamp", "deletionTimestamp"] {
                    metadata[field] = old["metadata"][field].clone();
                }
                let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
                let changed = !status && old["spec"] != new["spec"];
                new["metadata"]["generation"] = (generation + i64::from(changed)).into();
            }
        }
        drop_nulls(&mut new["metadata"]);
        let finalizers = new["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
        if new["metadata"]["deletionTimestamp"].is_string() && !finalizers {
            state.objects.remove(&place);
            self.tell(state, &place, "DELETED", &new);
        } else {
            state.objects.insert(place.clone(), new.clone());
            self.tell(state, &place, if old.is_none() { "ADDED" } else { "MODIFIED" }, &new);
        }
        new
    }

    fn remove(&self, state: &mut State, place: &Place) -> Option<Json> {
        let old = state.objects.get(place).cloned()?;
        let mut new = old.clone();
        new["metadata"]["deletionTimestamp"] = rfc3339(self.clock.now()).into();
        let old_marked = new.clone();
        Some(self.store(state, place.clone(), Some(old_marked), new, true))
    }

    fn tell(&self, state: &mut State, place: &Place, kind: &str, object: &Json) {
        let mut watched = 0;
        state.watches.retain(|watch| {
            if watch.plural != place.0 || !(watch.namespace.is_empty() || watch.namespace == place.1) {
                return true;
            }
            let object = if watch.partial { partial(object) } else { object.clone() };
            let line = format!("{}\n", json!({"type": kind, "object": object}));
            watched += line.len();
            watch.sender.send(Bytes::from(line)).is_ok()
        });
        state.watched += watched;
    }

    /// The answer, or `None` for a request that is never answered.
    fn answer(&self, client: &'static str, request: &Request<()>, body: &Json) -> Option<Answer> {
        let (place, status) = parse(request.uri().path());
        let query: BTreeMap<String, String> = request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok());
        let accept = accept.unwrap_or_default().to_owned();
        let partly = accept.contains("as=PartialObjectMetadata");
        let mut state = self.state.lock();
        let number = state.seen.len();
        state.seen.push(Seen {
            client,
            at: self.clock.monotonic(),
            method: request.method().clone(),
            place: place.clone(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            accept,
            answered: 0,
        });
        if state.silent.contains(&place.0) {
            return None;
        }
        if state.absent.contains(&place.0) {
            return Some(failure(404, "NotFound", "the server could not find the requested resource").0);
        }
        let answer = match *request.method() {
            Method::GET if query.get("watch").is_some_and(|watch| watch == "true") => {
                return Some(Self::watch(&mut state, place, &query, partly));
            }
            Method::GET if place.2.is_empty() => list(&state, &place, &query, partly),
            Method::GET => state.objects.get(&place).map_or_else(not_found, |object| {
                success(if partly { partial(object) } else { object.clone() })
            }),
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default();
                let place = (place.0, place.1, name.to_owned());
                if state.objects.contains_key(&place) {
                    failure(409, "AlreadyExists", "it is there already")
                } else {
                    success(self.store(&mut state, place, None, body.clone(), false))
                }
            }
            Method::PUT | Method::PATCH => self.change(&mut state, request.method(), place, body, status),
            Method::DELETE => {
                let uid = &body["preconditions"]["uid"];
                match state.objects.get(&place) {
                    None => not_found(),
                    Some(old) if uid.is_string() && *uid != old["metadata"]["uid"] => {
                        failure(409, "Conflict", "the UID differs")
                    }
                    Some(_) => success(self.remove(&mut state, &place).unwrap_or_default()),
                }
            }
            _ => failure(405, "MethodNotAllowed", "no such method"),
        };
        let (answer, size) = answer;
        if let Some(seen) = state.seen.get_mut(number) {
            seen.answered = size;
        }
        Some(answer)
    }

    fn change(
        &self,
        state: &mut State,
        method: &Method,
        place: Place,
        body: &Json,
        status: bool,
    ) -> (Answer, usize) {
        let Some(old) = state.objects.get(&place).cloned() else { return not_found() };
        for field in ["uid", "resourceVersion"] {
            let wanted = &body["metadata"][field];
            if wanted.is_string() && *wanted != old["metadata"][field] {
                return failure(409, "Conflict", "the object has been modified");
            }
        }
        let mut new = if method == Method::PATCH { old.clone() } else { body.clone() };
        if method == Method::PATCH {
            merge(&mut new, body);
        }
        if !status && method == Method::PUT && !old["status"].is_null() {
            new["status"] = old["status"].clone();
        }
        // As stock: a write that changes nothing makes no new version.
        if new == old {
            return success(old);
        }
        success(self.store(state, place, Some(old), new, status))
    }

    fn watch(state: &mut State, place: Place, query: &BTreeMap<String, String>, partly: bool) -> Answer {
        let (sender, receiver) = mpsc::unbounded_channel();
        let since: u64 = query.get("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
        // What changed between the list and the watch; what was deleted between them no test needs.
        for (key, object) in &state.objects {
            let version =
                object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
            if key.0 == place.0
                && (place.1.is_empty() || key.1 == place.1)
                && version.is_some_and(|it| since < it)
            {
                let object = if partly { partial(object) } else { object.clone() };
                let _ =
                    sender.send(Bytes::from(format!("{}\n", json!({"type": "MODIFIED", "object": object}))));
            }
        }
        let (plural, namespace) = (place.0, place.1);
        state.watches.push(Watch { plural, namespace, partial: partly, sender });
        let lines = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|line| (Ok(Frame::data(line)), receiver))
        });
        let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response
    }
}

fn place(plural: &str, namespace: &str, name: &str) -> Place {
    (plural.to_owned(), namespace.to_owned(), name.to_owned())
}

fn parse(path: &str) -> (Place, bool) {
    let mut parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    parts.drain(..if parts.first() == Some(&"api") { 2 } else { 3 });
    let mut namespace = "";
    if parts.len() > 2 && parts[0] == "namespaces" {
        namespace = parts[1];
        parts.drain(..2);
    }
    let part = |index: usize| parts.get(index).copied().unwrap_or_default();
    (place(part(0), namespace, part(1)), part(2) == "status")
}

fn list(state: &State, place: &Place, query: &BTreeMap<String, String>, partly: bool) -> (Answer, usize) {
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<usize>().ok());
    let (start, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(usize::MAX));
    let all = state
        .objects
        .iter()
        .filter(|(key, _)| key.0 == place.0 && (place.1.is_empty() || key.1 == place.1))
        .map(|(_, object)| if partly { partial(object) } else { object.clone() });
    let mut items: Vec<Json> = all.skip(start).take(limit.saturating_add(1)).collect();
    let mut metadata = json!({"resourceVersion": state.version.to_string()});
    if limit < items.len() {
        items.truncate(limit);
        metadata["continue"] = (start + limit).to_string().into();
    }
    let kind = if partly { "PartialObjectMetadataList" } else { "List" };
    let version = if partly { "meta.k8s.io/v1" } else { "v1" };
    success(json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items}))
}

fn partial(object: &Json) -> Json {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn drop_nulls(object: &mut Json) {
    if let Json::Object(members) = object {
        members.retain(|_, value| !value.is_null());
    }
}

fn reply(code: u16, body: &Json) -> (Answer, usize) {
    let text = body.to_string();
    let size = text.len();
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    (response, size)
}

fn success(object: Json) -> (Answer, usize) {
    reply(200, &object)
}

fn failure(code: u16, reason: &str, message: &str) -> (Answer, usize) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": reason, "message": message, "code": code, "metadata": {},
    });
    reply(code, &status)
}

fn not_found() -> (Answer, usize) {
    failure(404, "NotFound", "not found")
}

/// One client's way in.
#[derive(Clone)]
struct Connection {
    server: Arc<Server>,
    name: &'static str,
}

impl tower::Service<Request<Body>> for Connection {
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            match this.server.answer(this.name, &Request::from_parts(head, ()), &body) {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            }
        })
    }
}
