//! An API server in memory that does what a test says: it hangs, fails, answers in pages, or goes away.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Bytes = UnsyncBoxBody<bytes::Bytes, Infallible>;

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is never answered.
    Hang,
    /// It is refused with this code.
    Refuse(u16),
    /// The connection breaks.
    Break,
}

/// The server. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Api(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    /// By resource, namespace and name.
    objects: BTreeMap<(String, String, String), Value>,
    history: Vec<(u64, Event)>,
    watchers: Vec<(Scope, mpsc::UnboundedSender<bytes::Bytes>)>,
    /// `METHOD path?query` of every request, in order.
    log: Vec<String>,
    faults: Vec<(String, Fault)>,
    /// Lists are cut into pages of this length.
    page: Option<usize>,
    tokens: u32,
    /// Pods that have had a token.
    issued: std::collections::BTreeSet<String>,
    /// Events are lost.
    deaf: bool,
}

#[derive(Clone)]
struct Event {
    resource: String,
    kind: &'static str,
    object: Value,
}

#[derive(Clone)]
struct Scope {
    resource: String,
    namespace: String,
    selector: String,
}

impl Scope {
    fn holds(&self, resource: &str, object: &Value) -> bool {
        let selected = match self.selector.split_once('=') {
            Some(("metadata.name", name)) => object["metadata"]["name"] == name,
            Some(("spec.nodeName", name)) => object["spec"]["nodeName"] == name,
            _ => true,
        };
        self.resource == resource
            && (self.namespace.is_empty() || object["metadata"]["namespace"] == self.namespace.as_str())
            && selected
    }
}

impl Api {
    /// A client.
    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.serve(request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Stores an object, and tells watchers.
    pub(crate) fn put(&self, resource: &str, object: Value) {
        self.0.lock().put(resource, object);
    }

    /// Does something whose events are lost: no watch is told, neither now nor later.
    pub(crate) fn unheard(&self, change: impl FnOnce(&Self)) {
        self.0.lock().deaf = true;
        change(self);
        self.0.lock().deaf = false;
    }

    /// One object.
    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.0.lock().objects.get(&key(resource, namespace, name)).cloned()
    }

    /// Every object of a resource.
    pub(crate) fn all(&self, resource: &str) -> Vec<Value> {
        let state = self.0.lock();
        state
            .objects
            .iter()
            .filter(|((of, ..), _)| of == resource)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Removes an object at once.
    pub(crate) fn remove(&self, resource: &str, namespace: &str, name: &str) {
        self.0.lock().remove(resource, namespace, name);
    }

    /// Marks a pod as to be deleted, as `kubectl delete` does.
    pub(crate) fn delete_pod(&self, namespace: &str, name: &str) {
        let mut pod = self.get("pods", namespace, name).expect("a pod");
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        self.put("pods", pod);
    }

    /// From now on, requests whose `METHOD path?query` holds `text` fail.
    pub(crate) fn fail(&self, text: &str, fault: Fault) {
        self.0.lock().faults.push((text.to_owned(), fault));
    }

    /// Everything works again; watches that are open break.
    pub(crate) fn heal(&self) {
        let mut state = self.0.lock();
        state.faults.clear();
        state.watchers.clear();
    }

    /// Cuts lists into pages.
    pub(crate) fn page(&self, length: usize) {
        self.0.lock().page = Some(length);
    }

    /// The requests so far that hold `text`.
    pub(crate) fn requests(&self, text: &str) -> Vec<String> {
        self.0.lock().log.iter().filter(|line| line.contains(text)).cloned().collect()
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<Bytes>, std::io::Error> {
        let (parts, body) = request.into_parts();
        let line =
            format!("{} {}", parts.method, parts.uri.path_and_query().map_or("", |path| path.as_str()));
        let fault = {
            let mut state = self.0.lock();
            state.log.push(line.clone());
            state.faults.iter().find(|(text, _)| line.contains(text)).map(|(_, fault)| *fault)
        };
        match fault {
            None => {}
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Refuse(code)) => return Ok(refusal(code, "refused by the test")),
            Some(Fault::Break) => return Err(std::io::ErrorKind::ConnectionReset.into()),
        }
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(self.answer(parts.method.as_str(), &parts.uri, &body))
    }

    fn answer(&self, method: &str, uri: &http::Uri, body: &Value) -> Response<Bytes> {
        let mut path: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        path.drain(..if path[0] == "api" { 2 } else { 3 });
        let namespace = if path[0] == "namespaces" && path.len() > 2 {
            let namespace = path[1].to_owned();
            path.drain(..2);
            namespace
        } else {
            String::new()
        };
        let (resource, name) = (path[0], path.get(1).copied().unwrap_or_default());
        let query: BTreeMap<String, String> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.replace("%3D", "=")))
            .collect();
        let text = |key: &str| query.get(key).cloned().unwrap_or_default();
        let scope = Scope {
            resource: resource.to_owned(),
            namespace: namespace.clone(),
            selector: text("fieldSelector"),
        };
        let mut state = self.0.lock();
        match (method, name, path.get(2).copied()) {
            ("GET", "", _) if text("watch") == "true" => state.watch(scope, &text("resourceVersion")),
            ("GET", "", _) => state.list(&scope, &text("continue")),
            ("GET", ..) => found(state.objects.get(&key(resource, &namespace, name)).cloned()),
            ("POST", account, Some("token")) => {
                state.tokens += 1;
                let fresh = state.issued.insert(body["spec"]["boundObjectRef"]["uid"].to_string());
                let mut answer = body.clone();
                answer["status"] = json!({
                    "token": format!("token-{}-of-{account}", state.tokens),
                    // An hour after the first ones were asked for, a day after the next.
                    "expirationTimestamp": if fresh { "2026-01-02T04:04:05Z" } else { "2026-01-03T04:04:05Z" },
                });
                json_answer(201, &answer)
            }
            ("POST", ..) => {
                let mut object = body.clone();
                if !namespace.is_empty() {
                    object["metadata"]["namespace"] = json!(namespace);
                }
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                if state.objects.contains_key(&key(resource, &namespace, &name)) {
                    return refusal(409, "already exists");
                }
                json_answer(201, &state.put(resource, object))
            }
            ("PATCH", ..) => {
                let Some(mut object) = state.objects.get(&key(resource, &namespace, name)).cloned() else {
                    return refusal(404, "not found");
                };
                merge(&mut object, body);
                json_answer(200, &state.put(resource, object))
            }
            ("DELETE", ..) => found(state.remove(resource, &namespace, name)),
            _ => refusal(405, "not served"),
        }
    }
}

impl State {
    fn put(&mut self, resource: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let known = self.objects.insert(key(resource, &text("namespace"), &text("name")), object.clone());
        self.tell(resource, if known.is_some() { "MODIFIED" } else { "ADDED" }, object.clone());
        object
    }

    fn remove(&mut self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let mut object = self.objects.remove(&key(resource, namespace, name))?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.tell(resource, "DELETED", object.clone());
        Some(object)
    }

    fn tell(&mut self, resource: &str, kind: &'static str, object: Value) {
        if self.deaf {
            return;
        }
        let event = Event { resource: resource.to_owned(), kind, object };
        self.watchers.retain(|(scope, sender)| {
            !scope.holds(resource, &event.object) || sender.send(line(&event)).is_ok()
        });
        self.history.push((self.version, event));
    }

    fn watch(&mut self, scope: Scope, since: &str) -> Response<Bytes> {
        let since: u64 = since.parse().unwrap_or_default();
        let (sender, receiver) = mpsc::unbounded_channel();
        for (version, event) in &self.history {
            if *version > since && scope.holds(&event.resource, &event.object) {
                sender.send(line(event)).expect("the receiver is here");
            }
        }
        self.watchers.push((scope, sender));
        let frames = futures::stream::unfold(receiver, |mut receiver| async move {
            let bytes = receiver.recv().await?;
            Some((Ok::<_, Infallible>(Frame::data(bytes)), receiver))
        });
        Response::new(UnsyncBoxBody::new(StreamBody::new(frames.boxed())))
    }

    fn list(&self, scope: &Scope, from: &str) -> Response<Bytes> {
        let held = self.objects.iter().filter(|((resource, ..), object)| scope.holds(resource, object));
        let all: Vec<&Value> = held.map(|(_, object)| object).collect();
        let from: usize = from.parse().unwrap_or_default();
        let until = self.page.map_or(all.len(), |page| all.len().min(from + page));
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if until < all.len() {
            metadata["continue"] = json!(until.to_string());
        }
        json_answer(200, &json!({"metadata": metadata, "items": all[from.min(until)..until]}))
    }
}

fn key(resource: &str, namespace: &str, name: &str) -> (String, String, String) {
    (resource.to_owned(), namespace.to_owned(), name.to_owned())
}

fn line(event: &Event) -> bytes::Bytes {
    let mut text = json!({"type": event.kind, "object": event.object}).to_string();
    text.push('\n');
    text.into()
}

fn found(object: Option<Value>) -> Response<Bytes> {
    object.map_or_else(|| refusal(404, "not found"), |object| json_answer(200, &object))
}

fn refusal(code: u16, message: &str) -> Response<Bytes> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        409 => "AlreadyExists",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    json_answer(code, &status)
}

fn json_answer(code: u16, body: &Value) -> Response<Bytes> {
    let body = UnsyncBoxBody::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).expect("a code");
    response
}

/// Merges as the node's patches need it: objects by field, lists whole.
fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
