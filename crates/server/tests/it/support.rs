//! A server in memory and a client that speaks HTTP to it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coffer_crypto::Identity;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::api::{ApiServer, ApiServerConfig, Foundation, Policy, Route};
use coffer_server::controllers::{self, Controller, Settings};
use coffer_server::health::HealthCheck;
use coffer_server::kubelet::Kubelets;
use coffer_server::pki::{self, Files, Wanted};
use coffer_server::ports::{
    AdmissionChain, Attributes, Authenticated, Authenticator, Authorizer, Credentials, Decision, UserInfo,
};
use coffer_server::security::{Security, SecurityConfig};
use coffer_server::serve::Body;
use coffer_server::service_addresses::Range;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::Kv;
use coffer_store::{Storage, Transformers};
use coffer_types::Status;
use coffer_types::time::{Clock, Sleep, Timestamp};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
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

/// A clock on which waiting takes a fiftieth of the time, except while it is held: then what a client
/// still has to do on a busy machine meets no deadline that was not meant for it.
pub(crate) struct FastClock {
    real: SystemClock,
    runs: tokio::sync::watch::Sender<bool>,
}

impl FastClock {
    pub(crate) fn new() -> Self {
        Self { real: SystemClock::new(), runs: tokio::sync::watch::Sender::new(true) }
    }

    /// Time is real from now on, also for who waits already.
    pub(crate) fn hold(&self) {
        self.runs.send_replace(false);
    }

    /// Time is fast from now on, also for who waits already.
    pub(crate) fn go(&self) {
        self.runs.send_replace(true);
    }
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        self.real.now()
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let (whole, short) = (self.real.sleep(duration), self.real.sleep(duration / 50));
        let mut runs = self.runs.subscribe();
        Box::pin(async move {
            let fast = async {
                short.await;
                // The sender is the clock, which whoever waits holds.
                let _ = runs.wait_for(|runs| *runs).await;
            };
            tokio::select! {
                () = whole => {}
                () = fast => {}
            }
        })
    }
}

/// A server with the namespace `default`.
pub(crate) async fn server() -> ApiServer {
    server_with(Arc::new(SystemClock::new())).await
}

/// A server by another clock.
pub(crate) async fn server_with(clock: Arc<dyn Clock>) -> ApiServer {
    server_of(clock, Vec::new(), Vec::new(), Vec::new()).await
}

/// A server with these plugins, controllers and checks.
pub(crate) async fn server_of(
    clock: Arc<dyn Clock>,
    admission: AdmissionChain,
    more: Vec<Box<dyn Controller>>,
    health_checks: Vec<Arc<dyn HealthCheck>>,
) -> ApiServer {
    server_beside(clock, admission, more, health_checks, None).await
}

/// A server that asks these kubelets.
pub(crate) async fn server_with_kubelets(kubelets: Kubelets) -> ApiServer {
    server_beside(Arc::new(SystemClock::new()), Vec::new(), Vec::new(), Vec::new(), Some(kubelets)).await
}

async fn server_beside(
    clock: Arc<dyn Clock>,
    admission: AdmissionChain,
    more: Vec<Box<dyn Controller>>,
    health_checks: Vec<Arc<dyn HealthCheck>>,
    kubelets: Option<Kubelets>,
) -> ApiServer {
    let kv = Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store in memory");
    let storage = Storage::new(Arc::new(kv), clock.clone(), "/registry", Box::new(|_, _| Arc::new(Identity)));
    let foundation = Foundation::open(ApiServerConfig {
        storage,
        clock: clock.clone(),
        random: Arc::new(SystemRandom::new()),
        metrics: Arc::default(),
        service_range: Range::default(),
    })
    .expect("stores");
    let objects = foundation.objects();
    let api = foundation.build(Policy {
        authenticator: Arc::new(ByHeader),
        authorizer: Arc::new(NotNobody),
        admission,
        create_only: Default::default(),
        routes: vec![Route::new(
            "/panic",
            "text/plain",
            Box::new(|_| panic!("as a handler with a fault does")),
        )],
        health_checks,
        kubelets,
    });
    let settings = Settings {
        root_ca: String::new(),
        policy_ready: Arc::default(),
        signing_key: None,
        bind_pods: false,
        service_range: Range::default(),
    };
    for controller in more {
        tokio::spawn(controllers::run(controller, objects.clone(), clock.clone()));
    }
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

/// A token of `admin`, who may do everything.
pub(crate) const ADMIN_TOKEN: &str = "admin-token";

/// A token of `ann`, who is nobody in particular.
pub(crate) const USER_TOKEN: &str = "user-token";

const TOKENS: &str = "admin-token,admin,1,system:masters\nuser-token,ann,2\n";

/// The whole server: RBAC with the bootstrap policy, admission and every controller.
pub(crate) async fn secured() -> ApiServer {
    secured_with(Arc::new(SystemClock::new()), Vec::new()).await
}

/// The whole server by another clock, with more documents. [`ADMIN_TOKEN`] and [`USER_TOKEN`] open it.
pub(crate) async fn secured_with(clock: Arc<dyn Clock>, routes: Vec<Route>) -> ApiServer {
    let kv = Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store in memory");
    secured_on(Arc::new(kv), Box::new(|_, _| Arc::new(Identity)), clock, routes).await
}

/// The whole server over a given store.
pub(crate) async fn secured_on(
    kv: Arc<dyn Kv>,
    transformers: Transformers,
    clock: Arc<dyn Clock>,
    routes: Vec<Route>,
) -> ApiServer {
    secured_over(Storage::new(kv, clock.clone(), "/registry", transformers), clock, routes).await
}

/// The whole server over given stores.
pub(crate) async fn secured_over(
    storage: Arc<Storage>,
    clock: Arc<dyn Clock>,
    routes: Vec<Route>,
) -> ApiServer {
    let random = Arc::new(SystemRandom::new());
    let mut files = Files::new();
    pki::complete(&mut files, &Wanted::default(), clock.now()).expect("keys");
    let config = ApiServerConfig {
        storage,
        clock: clock.clone(),
        random: random.clone(),
        metrics: Arc::default(),
        service_range: Range::default(),
    };
    let foundation = Foundation::open(config).expect("stores");
    let objects = foundation.objects();
    let (ca, key) = (files["ca.crt"].expose(), files["service-account.key"].expose());
    let config = SecurityConfig {
        token_file: Some(("tokens.csv".to_owned(), TOKENS.to_owned())),
        root_ca: "PEM".to_owned(),
        ..SecurityConfig::of(ca, key, "https://kubernetes.default.svc", "127.0.0.1:6443")
    };
    let security = Security::new(config, objects.clone(), clock.clone(), random).expect("put together");
    let api = foundation.build(Policy {
        authenticator: security.authn,
        authorizer: security.authorizer,
        admission: security.admission,
        create_only: security.create_only,
        routes,
        health_checks: Vec::new(),
        kubelets: None,
    });
    let fed = Arc::default();
    tokio::spawn(controllers::feed_policy(security.rbac, objects.clone(), Arc::clone(&fed)));
    tokio::spawn(controllers::feed_node_graph(security.node, objects.clone()));
    for controller in security.controllers {
        tokio::spawn(controllers::run(controller, objects.clone(), clock.clone()));
    }
    let ready = security.policy_ready;
    wait(|| api.ready() && fed.load(std::sync::atomic::Ordering::Acquire)).await;
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    eventually(&admin, "/api/v1/namespaces/default/serviceaccounts/default", |answer| answer.code == 200)
        .await;
    // The policy is whole once its last binding is stored.
    let last = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/coffer:operator".to_owned();
    eventually(&admin, &last, |answer| answer.code == 200).await;
    drop(ready);
    api
}

/// Asks until the answer is as wanted, for at most ten seconds.
pub(crate) async fn eventually(client: &Client, url: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let mut answer = client.get(url).await;
    for _ in 0..500 {
        if wanted(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        answer = client.get(url).await;
    }
    panic!("{url} never was as wanted: {} {}", answer.code, answer.text);
}

/// Makes a custom resource, and waits until it is served at `url`.
pub(crate) async fn define(client: &Client, definition: &Value, url: &str) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = client.post(definitions, &definition.to_string()).await;
    assert_eq!(created.code, 201, "{}", created.text);
    eventually(client, url, |answer| answer.code == 200).await;
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

/// What this thread logs while it lives.
pub(crate) struct Log {
    bytes: Arc<Mutex<Vec<u8>>>,
    _guard: tracing::subscriber::DefaultGuard,
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Another thread may have been the first to pass a place that logs, and have it remembered as
    /// unheard. So what a test waits for must have been passed before this.
    pub(crate) fn start() -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&bytes);
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
            .with_writer(move || Writer(Arc::clone(&own)))
            .finish();
        let guard = tracing::subscriber::set_default(subscriber);
        tracing::callsite::rebuild_interest_cache();
        Self { bytes, _guard: guard }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().clone()).expect("text")
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}
