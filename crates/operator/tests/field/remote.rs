//! An external store that records every call, and answers late or never when told to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_providers::contract::{
    Capabilities, Context, Document, Find, Provider, ProviderError, RemoteKey, RemoteRef, Scope, SecretMap,
    SecretsClient, Validation,
};
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;
use serde_json::Value as Json;

/// One remote read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) store: String,
    /// The token that it was made with.
    pub(crate) token: String,
    pub(crate) key: String,
    pub(crate) version: String,
}

#[derive(Default)]
struct State {
    values: BTreeMap<String, String>,
    calls: Vec<Call>,
}

/// The store. In `spec.provider.remote`, `token` names the Secret of the credentials (in the namespace of who
/// asks, for a cluster store), `delay` how many seconds each answer takes, and `hangs` that none comes.
#[derive(Default)]
pub(crate) struct Remote(Mutex<State>);

impl Remote {
    pub(crate) fn set(&self, key: &str, value: &str) {
        self.0.lock().values.insert(key.to_owned(), value.to_owned());
    }

    /// The reads since the last call.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().calls)
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.lock().calls.len()
    }
}

/// The provider as the operator sees it.
pub(crate) struct Store(pub(crate) Arc<Remote>);

#[async_trait]
impl Provider for Store {
    fn key(&self) -> &'static str {
        "remote"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ReadOnly
    }

    fn check(&self, _: &Json, _: &Scope) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    fn is_referent(&self, spec: &Json, scope: &Scope) -> bool {
        scope.cluster && spec["token"].is_string()
    }

    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        let token = match spec["token"].as_str() {
            None => String::new(),
            Some(name) => {
                let data =
                    context.access.secret(&scope.namespace, name).await.map_err(ProviderError::Auth)?;
                String::from_utf8(data["token"].expose().to_vec()).unwrap()
            }
        };
        Ok(Arc::new(Client {
            remote: self.0.clone(),
            store: scope.store.clone(),
            token,
            delay: Duration::from_secs_f64(spec["delay"].as_f64().unwrap_or(0.0)),
            hangs: spec["hangs"] == true,
            clock: context.clock.clone(),
        }))
    }
}

struct Client {
    remote: Arc<Remote>,
    store: String,
    token: String,
    delay: Duration,
    hangs: bool,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl SecretsClient for Client {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        let call = Call {
            store: self.store.clone(),
            token: self.token.clone(),
            key: remote.key.clone(),
            version: remote.version.clone(),
        };
        self.remote.0.lock().calls.push(call);
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if !self.delay.is_zero() {
            self.clock.sleep(self.delay).await;
        }
        let value = self.remote.0.lock().values.get(&remote.key).cloned();
        value.map(|value| Document::new(SecretBytes::from(value))).ok_or(ProviderError::NotFound)
    }

    /// A property is a member of a JSON object.
    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        if remote.property.is_empty() {
            return Ok((*document.content).clone());
        }
        let object: Json = serde_json::from_str(document.text()?).unwrap();
        let value = object[&remote.property].as_str().ok_or(ProviderError::NotFound)?;
        Ok(SecretBytes::from(value.to_owned()))
    }

    fn map(&self, _: &Document, _: &RemoteRef) -> Result<SecretMap, ProviderError> {
        Ok(SecretMap::new())
    }

    async fn get_all_secrets(&self, _: &Find) -> Result<SecretMap, ProviderError> {
        Ok(SecretMap::new())
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        Ok(Validation::Ready)
    }

    async fn close(&self) {}
}

/// Another provider whose calls are counted by the store itself: when, and whether each found something.
pub(crate) struct Counted<P> {
    pub(crate) provider: P,
    pub(crate) calls: Arc<Mutex<Vec<(Duration, bool)>>>,
}

#[async_trait]
impl<P: Provider> Provider for Counted<P> {
    fn key(&self) -> &'static str {
        self.provider.key()
    }

    fn capabilities(&self) -> Capabilities {
        self.provider.capabilities()
    }

    fn check(&self, spec: &Json, scope: &Scope) -> Result<Vec<String>, ProviderError> {
        self.provider.check(spec, scope)
    }

    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        let client = self.provider.connect(spec, scope, context).await?;
        Ok(Arc::new(CountedClient { client, calls: self.calls.clone(), clock: context.clock.clone() }))
    }
}

struct CountedClient {
    client: Arc<dyn SecretsClient>,
    calls: Arc<Mutex<Vec<(Duration, bool)>>>,
    clock: Arc<dyn Clock>,
}

impl CountedClient {
    fn count<T>(&self, result: Result<T, ProviderError>) -> Result<T, ProviderError> {
        self.calls.lock().push((self.clock.monotonic(), result.is_ok()));
        result
    }
}

#[async_trait]
impl SecretsClient for CountedClient {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        self.count(self.client.fetch(remote).await)
    }

    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        self.client.value(document, remote)
    }

    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        self.client.map(document, remote)
    }

    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        self.count(self.client.get_all_secrets(find).await)
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        self.client.validate().await
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
