//! What a store holds now, for tools beside the operator.
//!
//! It is asked with the caller's own permissions: the caller's client reads the
//! store's credentials, so that nobody learns what they could not read themselves.
//! Absent: values. Only versions leave this file.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_providers::contract::{Access, Calls, Context, ProviderError, Scope, SecretMap, SecretsClient};
use coffer_runtime::api::Api;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use serde_json::Value as Json;

use crate::access::{Credentials, Recording};
use crate::store::spec::Store;

/// How long a store may take; whoever looks waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to one store.
pub struct StoreReader {
    client: Arc<dyn SecretsClient>,
    clock: Arc<dyn Clock>,
}

impl StoreReader {
    /// Connects to `store`, a SecretStore or ClusterSecretStore as the API gives it, as an ExternalSecret of
    /// `namespace` would.
    ///
    /// # Errors
    /// The provider's, or why the store names none.
    pub async fn connect(
        client: kube::Client,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        store: &Json,
        namespace: &str,
    ) -> Result<Self, ProviderError> {
        let config = |text: String| ProviderError::Config(text);
        let cluster = store["kind"] == "ClusterSecretStore";
        let store = Store::parse(store, cluster).ok_or_else(|| config("the store has no name".to_owned()))?;
        let (key, spec) = store.provider.map_err(config)?;
        let provider = coffer_providers::all().into_iter().find(|provider| provider.key() == key);
        let provider = provider.ok_or_else(|| config(format!("there is no provider {key:?}")))?;
        let scope = Scope { cluster, store: store.key.name, namespace: namespace.to_owned() };
        let credentials = Arc::new(Credentials::new(Api::new(client), Arc::default()));
        let context = Context {
            access: Arc::new(Caller(Recording::new(credentials))),
            clock: clock.clone(),
            random,
            calls: Arc::new(Uncounted),
            retry: store.retry,
        };
        let client = within(&*clock, provider.connect(&spec, &scope, &context)).await?;
        Ok(Self { client, clock })
    }

    /// Which version of `key` the store holds now; `None` when it tells none.
    ///
    /// # Errors
    /// [`ProviderError::NotFound`] when the store has no such secret (any more).
    pub async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        within(&*self.clock, self.client.current_version(key)).await
    }

    /// Gives back what the connection holds at the store.
    pub async fn close(self) {
        tokio::select! {
            () = self.client.close() => {}
            () = self.clock.sleep(PATIENCE) => {}
        }
    }
}

async fn within<T>(
    clock: &dyn Clock,
    answer: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    tokio::select! {
        answer = answer => answer,
        () = clock.sleep(PATIENCE) => {
            let text = format!("the store did not answer within {} s", PATIENCE.as_secs());
            Err(ProviderError::Retryable(text))
        }
    }
}

/// Nobody asks a tool for metrics.
struct Uncounted;

impl Calls for Uncounted {
    fn observe(&self, _: &'static str, _: &'static str, _: bool) {}
}

/// The cluster as the caller may read it.
struct Caller(Recording);

#[async_trait]
impl Access for Caller {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<SecretMap>, String> {
        self.0.secret(namespace, name).await
    }

    async fn config_map(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, String>, String> {
        self.0.config_map(namespace, name).await
    }

    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
        seconds: i64,
    ) -> Result<SecretBytes, String> {
        self.0.service_account_token(namespace, name, audiences, seconds).await
    }

    /// The pod that the caller happens to run in is not the operator's.
    async fn pod_token(&self) -> Result<SecretBytes, String> {
        Err("only the operator's own pod can log in to this store".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use coffer_runtime::clock::SystemClock;
    use coffer_runtime::random::SystemRandom;
    use serde_json::json;

    use super::*;

    async fn version(store: &Json, key: &str) -> Result<Option<String>, ProviderError> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        // The fake provider asks the API for nothing; another one is told so.
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::default()));
        let reader = StoreReader::connect(client, clock, random, store, "ns").await?;
        let version = reader.current_version(key).await;
        reader.close().await;
        version
    }

    #[tokio::test]
    async fn a_store_tells_versions() {
        let store = |provider: Json| {
            json!({
                "kind": "SecretStore", "metadata": {"name": "s", "namespace": "ns"}, "spec": {"provider": provider},
            })
        };
        let data =
            json!([{"key": "k", "version": "v1", "value": "a"}, {"key": "k", "version": "v2", "value": "b"}]);
        let fake = store(json!({"fake": {"data": data}}));
        assert_eq!(version(&fake, "k").await, Ok(Some("v2".to_owned())));
        assert_eq!(version(&fake, "absent").await, Err(ProviderError::NotFound));
        let strange = version(&store(json!({"abacus": {}})), "k").await;
        assert_eq!(strange, Err(ProviderError::Config("there is no provider \"abacus\"".to_owned())));
        assert!(version(&store(json!({})), "k").await.is_err());
        let pod = json!({"vault": {"server": "http://127.0.0.1:1", "auth": {"kubernetes": {"mountPath": "k", "role": "r"}}}});
        let refused = version(&store(pod), "k").await.unwrap_err().to_string();
        assert!(refused.contains("only the operator's own pod"), "{refused}");
    }
}
