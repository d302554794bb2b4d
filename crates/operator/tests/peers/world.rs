//! One test's view: a namespace, an operator, counters, and words for what it does.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use base64::Engine as _;
use coffer_operator::OperatorConfig;
use coffer_operator::source::StoreReader;
use coffer_providers::contract::ProviderError;
use coffer_providers::https::{Https, Tls};
use coffer_runtime::api::{Api, ObjectKey, Preconditions, Resource, SECRETS};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::metrics::Registry;
use coffer_runtime::random::SystemRandom;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::plane::{BAO_TOKEN, Plane, TOKEN, plane};

pub(crate) const EXTERNAL_SECRETS: Resource =
    Resource::namespaced("external-secrets.io", "v1", "externalsecrets", "ExternalSecret");
pub(crate) const STORES: Resource =
    Resource::namespaced("external-secrets.io", "v1", "secretstores", "SecretStore");
pub(crate) const CLUSTER_STORES: Resource =
    Resource::cluster("external-secrets.io", "v1", "clustersecretstores", "ClusterSecretStore");
const CRDS: Resource =
    Resource::cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// One test runs at a time: each has an operator for the whole cluster.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(crate) struct World {
    pub(crate) plane: Arc<Plane>,
    pub(crate) api: Api,
    pub(crate) namespace: String,
    bao: Https,
    operator: Option<Operator>,
    _turn: tokio::sync::MutexGuard<'static, ()>,
}

pub(crate) struct Operator {
    pub(crate) metrics: Arc<Registry>,
    pub(crate) requests: Requests,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<coffer_runtime::lease::Ended>,
}

/// `METHOD path` of every request of an operator that is no watch and no event.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// What was sent since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Clone)]
struct Count<S> {
    inner: S,
    requests: Requests,
}

impl<S, B> tower::Service<http::Request<B>> for Count<S>
where
    S: tower::Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (method, uri) = (request.method(), request.uri());
        let query = uri.query().unwrap_or_default();
        if !query.contains("watch=true") && !query.contains("limit=") && !uri.path().contains("/events") {
            self.requests.0.lock().unwrap().push(format!("{method} {}", uri.path()));
        }
        self.inner.call(request)
    }
}

fn client(plane: &Plane, requests: &Requests) -> kube::Client {
    let mut config = kube::Config::new(plane.server.parse().unwrap());
    config.root_cert = Some(vec![plane.authority_der.clone()]);
    config.auth_info.token = Some(TOKEN.to_owned().into());
    let requests = requests.clone();
    let count = tower::layer::layer_fn(move |inner| Count { inner, requests: requests.clone() });
    kube::client::ClientBuilder::try_from(config).unwrap().with_layer(&count).build()
}

impl World {
    pub(crate) async fn new(name: &str) -> Self {
        let turn = TURN.lock().await;
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let plane = tokio::task::spawn_blocking(plane).await.unwrap();
        let api = Api::new(client(&plane, &Requests::default()));
        let bao = Https::new(Tls::default(), Arc::new(SystemClock::new())).unwrap();
        let namespace = format!("{name}-{}", std::process::id());
        let world = Self { plane, api, namespace, bao, operator: None, _turn: turn };
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": world.namespace}});
        let start = Instant::now();
        loop {
            let key = ObjectKey::new("", &world.namespace);
            let resource = coffer_runtime::api::NAMESPACES;
            match world.api.create::<Json>(&resource, &key, "", &body, "").await {
                Ok(_) => break,
                Err(error) => assert!(
                    start.elapsed() < PATIENCE,
                    "no namespace: {error}\n{}",
                    world.plane.log("bin/kube-apiserver")
                ),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        world.install_crds().await;
        world
    }

    async fn install_crds(&self) {
        for definition in coffer_operator::crd::all() {
            let name = definition["metadata"]["name"].as_str().unwrap();
            let key = ObjectKey::new("", name);
            let created: Result<Json, _> = self.api.create(&CRDS, &key, "", &definition, "").await;
            if let Err(error) = created {
                assert!(error.is_already_exists(), "{name}: {error}");
            }
            self.until("the definition to be established", || async {
                let object: Json = self.api.get(&CRDS, &key).await.ok()??;
                let conditions = object["status"]["conditions"].as_array()?.clone();
                conditions.iter().find(|one| one["type"] == "Established" && one["status"] == "True").cloned()
            })
            .await;
        }
    }

    /// Starts an operator.
    pub(crate) fn start(&mut self, change: impl FnOnce(&mut OperatorConfig)) -> &Operator {
        let requests = Requests::default();
        let client = client(&self.plane, &requests);
        let mut config =
            OperatorConfig::new(client, Arc::new(SystemClock::new()), Arc::new(SystemRandom::default()));
        config.store_requeue_interval = Duration::from_secs(600);
        change(&mut config);
        let (metrics, stop) = (config.metrics.clone(), CancellationToken::new());
        let task = tokio::spawn(coffer_operator::run(config, stop.clone()));
        self.operator.insert(Operator { metrics, requests, stop, task })
    }

    pub(crate) fn operator(&self) -> &Operator {
        self.operator.as_ref().unwrap()
    }

    /// Stops the operator.
    pub(crate) async fn stop(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.stop.cancel();
            tokio::time::timeout(PATIENCE, operator.task).await.expect("the operator ends").unwrap();
        }
    }

    pub(crate) fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), name)
    }

    pub(crate) async fn create(&self, resource: &Resource, name: &str, object: Json) -> Json {
        let mut object = object;
        object["apiVersion"] = resource.api_version().into();
        object["kind"] = resource.kind.into();
        object["metadata"]["name"] = name.into();
        let key = if resource.namespaced { self.key(name) } else { ObjectKey::new("", name) };
        if resource.namespaced {
            object["metadata"]["namespace"] = self.namespace.as_str().into();
        }
        self.api
            .create(resource, &key, "", &object, "peer-test")
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) async fn patch(&self, resource: &Resource, name: &str, body: Json) -> Json {
        self.api.merge_patch(resource, &self.key(name), "", &body, "peer-test").await.unwrap()
    }

    pub(crate) async fn get(&self, resource: &Resource, name: &str) -> Option<Json> {
        self.api.get(resource, &self.key(name)).await.unwrap()
    }

    pub(crate) async fn delete(&self, resource: &Resource, name: &str) {
        self.api.delete(resource, &self.key(name), Preconditions::default()).await.unwrap();
    }

    /// A fake store.
    pub(crate) async fn fake(&self, name: &str, entries: &[(&str, &str)]) {
        let data: Vec<Json> =
            entries.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        self.create(&STORES, name, json!({"spec": {"provider": {"fake": {"data": data}}}})).await;
    }

    /// A vault store on OpenBao with the root token.
    pub(crate) async fn vault(&self, name: &str) {
        let secret = format!("{name}-token");
        self.create(&SECRETS, &secret, json!({"stringData": {"token": BAO_TOKEN}})).await;
        let auth = json!({"tokenSecretRef": {"name": secret, "key": "token"}});
        let vault = json!({"server": self.plane.bao, "path": "secret", "version": "v2", "auth": auth});
        self.create(&STORES, name, json!({"spec": {"provider": {"vault": vault}}})).await;
    }

    /// A kubernetes store on this API server and namespace, with the administrator's token.
    pub(crate) async fn kubernetes(&self, name: &str) {
        let secret = format!("{name}-token");
        self.create(&SECRETS, &secret, json!({"stringData": {"token": TOKEN}})).await;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.plane.authority_pem);
        let kubernetes = json!({
            "server": {"url": self.plane.server, "caBundle": authority}, "remoteNamespace": self.namespace,
            "auth": {"token": {"bearerToken": {"name": secret, "key": "token"}}},
        });
        self.create(&STORES, name, json!({"spec": {"provider": {"kubernetes": kubernetes}}})).await;
    }

    /// The version of `key` that a store of this namespace holds now.
    pub(crate) async fn current_version(
        &self,
        store: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        let store = self.get(&STORES, store).await.unwrap();
        let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::default()));
        let client = self.api.client().clone();
        let reader = StoreReader::connect(client, clock, random, &store, &self.namespace).await?;
        let version = reader.current_version(key).await;
        reader.close().await;
        version
    }

    /// A request to OpenBao; the JSON of its answer.
    pub(crate) async fn bao(&self, method: &str, path: &str, body: Json) -> Json {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}/v1/{path}", self.plane.bao))
            .header("X-Vault-Token", BAO_TOKEN)
            .body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() })
            .unwrap();
        let answer = self.bao.send(request).await.unwrap();
        assert!(answer.status < 300, "{method} {path}: {}", answer.status);
        serde_json::from_slice(answer.body.expose()).unwrap_or_default()
    }

    /// A user of OpenBao who logs in by its name as password and may read everything.
    pub(crate) async fn password_user(&self, user: &str) {
        let mounts = self.bao("GET", "sys/auth", Json::Null).await;
        if mounts["data"]["userpass/"].is_null() {
            self.bao("POST", "sys/auth/userpass", json!({"type": "userpass"})).await;
        }
        let policy = "path \"secret/*\" { capabilities = [\"read\", \"list\"] }";
        self.bao("POST", "sys/policies/acl/reader", json!({"policy": policy})).await;
        let body = json!({"password": user, "token_policies": ["reader"], "token_ttl": "1h"});
        self.bao("POST", &format!("auth/userpass/users/{user}"), body).await;
    }

    /// Writes a KV v2 secret below this test's prefix.
    pub(crate) async fn write(&self, key: &str, data: Json) {
        self.bao("POST", &format!("secret/data/{}/{key}", self.namespace), json!({"data": data})).await;
    }

    /// The remote key of a KV secret below this test's prefix.
    pub(crate) fn remote(&self, key: &str) -> String {
        format!("{}/{key}", self.namespace)
    }

    /// Waits until `look` finds something.
    pub(crate) async fn until<T, Fut: Future<Output = Option<T>>>(
        &self,
        what: &str,
        look: impl Fn() -> Fut,
    ) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Waits for a Secret with exactly this data.
    pub(crate) async fn secret(&self, name: &str, expected: &[(&str, &str)]) -> Json {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.until(&format!("secret {name}"), || async {
            let secret = self.get(&SECRETS, name).await?;
            (decoded(&secret) == expected).then_some(secret)
        })
        .await
    }

    /// Waits until the Ready condition reads `STATUS REASON MESSAGE`.
    pub(crate) async fn ready(&self, name: &str, expected: &str) -> Json {
        let last = Mutex::new(String::new());
        let wait = self.until("", || async {
            let object = self.get(&EXTERNAL_SECRETS, name).await?;
            let text = condition(&object);
            let found = text == expected;
            *last.lock().unwrap() = text;
            found.then_some(object)
        });
        match tokio::time::timeout(PATIENCE - Duration::from_secs(2), wait).await {
            Ok(object) => object,
            Err(_) => panic!("{name}: wanted {expected:?}, is {:?}", last.lock().unwrap()),
        }
    }

    /// `REASON MESSAGE` of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let list: Json = self
            .api
            .get(&coffer_runtime::api::EVENTS, &ObjectKey::new(self.namespace.clone(), ""))
            .await
            .unwrap()
            .unwrap();
        let items = list["items"].as_array().unwrap().iter();
        items
            .filter(|event| event["involvedObject"]["name"] == name)
            .map(|event| {
                format!("{} {}", event["reason"].as_str().unwrap(), event["message"].as_str().unwrap())
            })
            .collect()
    }

    /// How often an operator called a provider.
    pub(crate) fn calls(&self, provider: &str, call: &str) -> f64 {
        let text = self.operator().metrics.render();
        let start =
            format!("externalsecret_provider_api_calls_count{{provider=\"{provider}\",call=\"{call}\"");
        text.lines().filter(|line| line.starts_with(&start)).map(last_number).sum()
    }

    /// How often an ExternalSecret was reconciled.
    pub(crate) fn reconciled(&self, name: &str) -> f64 {
        let text = self.operator().metrics.render();
        let line =
            format!("externalsecret_sync_calls_total{{name=\"{name}\",namespace=\"{}\"}}", self.namespace);
        text.lines().find(|found| found.starts_with(&line)).map_or(0.0, last_number)
    }
}

pub(crate) fn last_number(line: &str) -> f64 {
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// An ExternalSecret of single keys.
pub(crate) fn external_secret(store: &str, interval: &str, data: &[(&str, &str)]) -> Json {
    let data: Vec<Json> = data
        .iter()
        .map(|(key, remote)| {
            let (remote, property) = remote.split_once('#').unwrap_or((remote, ""));
            let mut remote = json!({"key": remote});
            if !property.is_empty() {
                remote["property"] = property.into();
            }
            json!({"secretKey": key, "remoteRef": remote})
        })
        .collect();
    json!({"spec": {
        "secretStoreRef": {"name": store, "kind": "SecretStore"}, "refreshInterval": interval, "data": data,
    }})
}

/// `STATUS REASON MESSAGE` of the Ready condition.
pub(crate) fn condition(object: &Json) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or("-").to_owned();
    format!("{} {} {}", text("status"), text("reason"), text("message"))
}

pub(crate) fn decoded(secret: &Json) -> BTreeMap<String, String> {
    let members = secret["data"].as_object().into_iter().flatten();
    members
        .map(|(key, value)| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(value.as_str().unwrap()).unwrap();
            (key.clone(), String::from_utf8(bytes).unwrap())
        })
        .collect()
}

pub(crate) const SYNCED: &str = "True SecretSynced secret synced";
