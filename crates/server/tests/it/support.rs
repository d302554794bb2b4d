//! A server in memory and a client that speaks HTTP to it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_crypto::Identity;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::api::{ApiServer, ApiServerConfig, Foundation, Policy, Route};
use coffer_server::controllers::{self, Settings};
use coffer_server::ports::{
    Attributes, Authenticated, Authenticator, Authorizer, Credentials, Decision, UserInfo,
};
use coffer_server::serve::Body;
use coffer_store::Storage;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_types::Status;
use coffer_types::time::{Clock, Sleep, Timestamp};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use tower::Service as _;

/// Everybody with the right header is a user; everybody else is anonymous.
struct ByHeader;

#[async_trait]
impl Authenticator for ByHeader {
    async fn authenticate(&self, _credentials: Credentials<'_>) -> Result<Authenticated, Status> {
        Err(Status::unauthorized())
    }
}

/// User `nobody` may do nothing, everybody else everything.
struct NotNobody;

#[async_trait]
impl Authorizer for NotNobody {
    async fn authorize(&self, attributes: &Attributes) -> (Decision, Option<String>) {
        if attributes.user.name == "nobody" {
            (Decision::NoOpinion(String::new()), None)
        } else {
            (Decision::Allow(String::new()), None)
        }
    }
}

/// A clock on which waiting takes a fiftieth of the time.
pub(crate) struct FastClock(SystemClock);

impl FastClock {
    pub(crate) fn new() -> Self {
        Self(SystemClock::new())
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration / 50)
    }
}

/// A server with the namespace `default`.
pub(crate) async fn server() -> ApiServer {
    server_with(Arc::new(SystemClock::new())).await
}

/// A server by another clock.
pub(crate) async fn server_with(clock: Arc<dyn Clock>) -> ApiServer {
    let kv = Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store in memory");
    let storage = Storage::new(Arc::new(kv), clock.clone(), "/registry", Box::new(|_, _| Arc::new(Identity)));
    let foundation = Foundation::open(ApiServerConfig {
        storage,
        clock: clock.clone(),
        random: Arc::new(SystemRandom::new()),
        metrics: Arc::default(),
    })
    .expect("stores");
    let objects = foundation.objects();
    let api = foundation.build(Policy {
        authenticator: Arc::new(ByHeader),
        authorizer: Arc::new(NotNobody),
        admission: Vec::new(),
        create_only: Default::default(),
        routes: vec![Route {
            path: "/panic",
            content_type: "text/plain",
            cache_control: None,
            answer: Box::new(|_| panic!("as a handler with a fault does")),
        }],
        health_checks: Vec::new(),
    });
    let settings = Settings {
        root_ca: String::new(),
        policy_ready: Arc::default(),
        signing_key: None,
        bind_pods: false,
    };
    // Definitions of custom resources are established by their controller.
    for controller in controllers::all(&settings).expect("controllers") {
        if controller.name().contains("custom") || controller.name().contains("crd") {
            tokio::spawn(controllers::run(controller, objects.clone(), clock.clone()));
        }
    }
    wait(|| api.ready()).await;
    let created = Client::new(&api).post("/api/v1/namespaces", r#"{"metadata":{"name":"default"}}"#).await;
    assert_eq!(created.code, 201, "{}", created.text);
    api
}

/// Waits until something holds, for at most ten seconds.
pub(crate) async fn wait(mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never held");
}

/// A client as one user.
pub(crate) struct Client {
    service: coffer_server::serve::InProcess,
}

/// An answer with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) bytes: Bytes,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

impl Client {
    pub(crate) fn new(api: &ApiServer) -> Self {
        Self::named(api, "admin")
    }

    pub(crate) fn named(api: &ApiServer, name: &str) -> Self {
        let user = UserInfo { name: name.to_owned(), ..UserInfo::default() };
        Self { service: api.in_process(user) }
    }

    pub(crate) fn in_groups(api: &ApiServer, name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { service: api.in_process(UserInfo { name: name.to_owned(), groups, ..UserInfo::default() }) }
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let response = self.open(method, url, headers, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        Answer {
            code: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
        }
    }

    /// Sends and gives the answer with its body unread.
    pub(crate) async fn open(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(url).header("user-agent", "it/1.0");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).expect("a request");
        self.service.clone().call(request).await.expect("never fails")
    }

    pub(crate) async fn get(&self, url: &str) -> Answer {
        self.send("GET", url, &[], b"").await
    }

    pub(crate) async fn post(&self, url: &str, body: &str) -> Answer {
        self.send("POST", url, &[("content-type", "application/json")], body.as_bytes()).await
    }

    pub(crate) async fn put(&self, url: &str, body: &str) -> Answer {
        self.send("PUT", url, &[("content-type", "application/json")], body.as_bytes()).await
    }

    pub(crate) async fn patch(&self, url: &str, kind: &str, body: &str) -> Answer {
        let kind = match kind {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            other => other,
        };
        self.send("PATCH", url, &[("content-type", kind)], body.as_bytes()).await
    }

    pub(crate) async fn delete(&self, url: &str, body: &str) -> Answer {
        let headers: &[(&str, &str)] =
            if body.is_empty() { &[] } else { &[("content-type", "application/json")] };
        self.send("DELETE", url, headers, body.as_bytes()).await
    }
}

/// Reads a JSON watch event by event.
pub(crate) struct Events {
    body: Body,
    buffer: Vec<u8>,
}

impl Events {
    pub(crate) fn new(response: Response<Body>) -> Self {
        assert_eq!(response.status().as_u16(), 200);
        Self { body: response.into_body(), buffer: Vec::new() }
    }

    /// The next event, or `None` at the end; fails after ten seconds.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let frame = tokio::time::timeout(Duration::from_secs(10), self.body.frame())
                .await
                .expect("an event in time")?;
            if let Ok(data) = frame.expect("a frame").into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }
}
