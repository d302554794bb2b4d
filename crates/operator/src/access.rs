//! Credentials of the cluster for providers: read once for each version, and remembered by whom.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use coffer_providers::contract::{Access, SecretMap};
use coffer_runtime::api::{Api, CONFIG_MAPS, ObjectKey, SECRETS, SERVICE_ACCOUNTS};
use coffer_runtime::informer::Informer;
use coffer_types::SecretBytes;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::secret::Secret;

/// Where a pod finds its own token.
const POD_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The most credential Secrets that are remembered; more are forgotten all at once.
const REMEMBERED: usize = 1024;

/// What the operator keeps of each Secret in the cluster: never a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SecretMeta {
    pub(crate) uid: String,
    pub(crate) managed: bool,
    /// The owner label.
    pub(crate) created_by: String,
    /// The data-hash annotation.
    pub(crate) data_hash: String,
    /// Kind, name and UID of the controller owner.
    pub(crate) controller: Option<(String, String, String)>,
}

/// The reader that all stores share.
pub(crate) struct Credentials {
    api: Api,
    secrets: Arc<Informer<SecretMeta>>,
    cache: Mutex<HashMap<ObjectKey, (String, Arc<SecretMap>)>>,
}

impl Credentials {
    pub(crate) fn new(api: Api, secrets: Arc<Informer<SecretMeta>>) -> Self {
        Self { api, secrets, cache: Mutex::default() }
    }

    /// The version that the watch knows; "" when there is no such Secret.
    pub(crate) fn version(&self, key: &ObjectKey) -> String {
        self.secrets.get_versioned(key).map(|(version, _)| version).unwrap_or_default()
    }

    /// The data with its version; no API read when the watch knows no newer one.
    async fn read(&self, key: &ObjectKey) -> Result<(String, Arc<SecretMap>), String> {
        let known = self.version(key);
        if !known.is_empty()
            && let Some((version, data)) = self.cache.lock().get(key)
            && *version == known
        {
            return Ok((known, data.clone()));
        }
        let secret: Option<Secret> = self.api.get(&SECRETS, key).await.map_err(|error| error.to_string())?;
        let Some(secret) = secret else { return Err(format!("secrets {:?} not found", key.name)) };
        let version = secret.resource_version().to_owned();
        let data = Arc::new(secret.data);
        let mut cache = self.cache.lock();
        if REMEMBERED <= cache.len() {
            cache.clear();
        }
        cache.insert(key.clone(), (version.clone(), data.clone()));
        Ok((version, data))
    }
}

/// One connection's view: what it read, in which version.
pub(crate) struct Recording {
    credentials: Arc<Credentials>,
    read: Mutex<BTreeMap<ObjectKey, String>>,
    /// Whether something was read that no watch tells about.
    pub(crate) unwatched: std::sync::atomic::AtomicBool,
}

impl Recording {
    pub(crate) fn new(credentials: Arc<Credentials>) -> Self {
        Self { credentials, read: Mutex::default(), unwatched: std::sync::atomic::AtomicBool::new(false) }
    }

    /// The Secrets that were read.
    pub(crate) fn secrets(&self) -> Vec<ObjectKey> {
        self.read.lock().keys().cloned().collect()
    }

    /// Whether every Secret is still what it was.
    pub(crate) fn is_current(&self) -> bool {
        self.read.lock().iter().all(|(key, version)| self.credentials.version(key) == *version)
    }
}

#[async_trait]
impl Access for Recording {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<SecretMap>, String> {
        let key = ObjectKey::new(namespace, name);
        match self.credentials.read(&key).await {
            Ok((version, data)) => {
                self.read.lock().insert(key, version);
                Ok(data)
            }
            Err(why) => {
                // Remembered as absent, so that its creation is noticed.
                self.read.lock().insert(key, String::new());
                Err(why)
            }
        }
    }

    async fn config_map(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, String>, String> {
        self.unwatched.store(true, std::sync::atomic::Ordering::Relaxed);
        #[derive(Deserialize)]
        struct ConfigMap {
            #[serde(default)]
            data: Option<BTreeMap<String, String>>,
        }
        let key = ObjectKey::new(namespace, name);
        let map: Option<ConfigMap> =
            self.credentials.api.get(&CONFIG_MAPS, &key).await.map_err(|error| error.to_string())?;
        map.map(|map| map.data.unwrap_or_default()).ok_or_else(|| format!("configmaps {name:?} not found"))
    }

    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
        seconds: i64,
    ) -> Result<SecretBytes, String> {
        self.unwatched.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        });
        if !audiences.is_empty() {
            body["spec"]["audiences"] = audiences.into();
        }
        let key = ObjectKey::new(namespace, name);
        let answer: Json = self
            .credentials
            .api
            .create(&SERVICE_ACCOUNTS, &key, "token", &body, "")
            .await
            .map_err(|error| error.to_string())?;
        match answer["status"]["token"].as_str() {
            Some(token) => Ok(SecretBytes::from(token.to_owned())),
            None => Err("the answer holds no token".to_owned()),
        }
    }

    async fn pod_token(&self) -> Result<SecretBytes, String> {
        self.unwatched.store(true, std::sync::atomic::Ordering::Relaxed);
        let read = tokio::fs::read_to_string(POD_TOKEN).await;
        let text = read.map_err(|error| format!("cannot read {POD_TOKEN}: {error}"))?;
        Ok(SecretBytes::from(text.trim().to_owned()))
    }
}
