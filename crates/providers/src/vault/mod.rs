//! `vault`: HashiCorp Vault's KV engines, over its HTTP API.
//!
//! A login is kept as long as its token lives, not once for each read.
//! Absent (thin): the `iam` and `gcp` logins, and writing.

mod api;
mod auth;
pub(crate) mod kv;

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::SecretBytes;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::contract::{
    Capabilities, Context, Document, Find, Provider, ProviderError, RemoteKey, RemoteRef, Scope, SecretMap,
    SecretsClient, Validation, config,
};
use crate::https::escape;
use crate::references::SecretKeySelector;
use crate::trust::Trust;
use crate::{contract, strategies};

pub(crate) use api::{Api, ApiConfig};
pub use auth::Auth;

/// The provider.
#[derive(Debug)]
pub struct Vault;

/// What the specifications of `vault` and `openBao` have in common.
#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Server {
    pub(crate) server: String,
    /// The mount.
    pub(crate) path: String,
    version: String,
    pub(crate) namespace: String,
    #[serde(flatten)]
    pub(crate) trust: Trust,
    pub(crate) auth: Option<Auth>,
}

impl Server {
    /// Whether the KV engine keeps versions, which is so unless the specification says `v1`.
    pub(crate) fn version_two(&self) -> bool {
        self.version != "v1"
    }
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    #[serde(flatten)]
    common: Server,
    tls: ClientTls,
    read_your_writes: bool,
    forward_inconsistent: bool,
    headers: std::collections::BTreeMap<String, String>,
    check_and_set: CheckAndSet,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
struct ClientTls {
    cert_secret_ref: Option<SecretKeySelector>,
    key_secret_ref: Option<SecretKeySelector>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct CheckAndSet {
    required: bool,
}

fn parse(spec: &Json) -> Result<Spec, ProviderError> {
    contract::parse(spec, "invalid vault provider")
}

#[async_trait]
impl Provider for Vault {
    fn key(&self) -> &'static str {
        "vault"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ReadWrite
    }

    fn check(&self, spec: &Json, scope: &Scope) -> Result<Vec<String>, ProviderError> {
        let spec = parse(spec)?;
        if let Some(auth) = &spec.common.auth {
            auth.check(scope)?;
        }
        match (&spec.tls.cert_secret_ref, &spec.tls.key_secret_ref) {
            (Some(cert), Some(key)) => {
                let check = |selector: &SecretKeySelector, what: &str| {
                    scope.check_namespace(selector.namespace.as_deref()).map_err(|error| error.context(what))
                };
                check(cert, "invalid ClientTLS.ClientCert")?;
                check(key, "invalid ClientTLS.SecretRef")?;
            }
            (None, None) => {}
            _ => {
                return Err(config(
                    "when provided, both ClientTLS.ClientCert and ClientTLS.SecretRef should be provided",
                ));
            }
        }
        if spec.check_and_set.required && !spec.common.version_two() {
            return Err(config("checkAndSet is not supported with Vault KV version v1"));
        }
        Ok(Vec::new())
    }

    fn is_referent(&self, spec: &Json, scope: &Scope) -> bool {
        parse(spec).is_ok_and(|spec| spec.common.auth.is_some_and(|auth| auth.is_referent(scope)))
    }

    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        let spec = parse(spec)?;
        let common = spec.common.clone();
        let (version_two, authenticated) = (common.version_two(), common.auth.is_some());
        let auth = common.auth.unwrap_or_default();
        let authority = common.trust.authority(scope, context.access.as_ref()).await;
        let authority = authority.map_err(|error| error.context("cannot set Vault CA certificate"))?;
        let identity = identity(&spec, &auth, scope, context).await?;
        let api = Api::new(ApiConfig {
            provider: "HashiCorp/Vault",
            server: common.server,
            namespace: common.namespace,
            headers: spec.headers,
            read_your_writes: spec.read_your_writes,
            forward_inconsistent: spec.forward_inconsistent,
            authority,
            identity,
            context: context.clone(),
            auth,
            authenticated,
            scope: scope.clone(),
        })
        .map_err(|error| error.context("cannot setup new vault client"))?;
        api.token().await?;
        let mount = Some(common.path).filter(|path| !path.is_empty());
        Ok(Arc::new(Client { api, mount, version_two }))
    }
}

/// The client certificate, of `tls` or of the certificate login.
async fn identity(
    spec: &Spec,
    auth: &Auth,
    scope: &Scope,
    context: &Context,
) -> Result<Option<(Vec<u8>, SecretBytes)>, ProviderError> {
    let selectors = match (&auth.cert, &spec.tls.cert_secret_ref, &spec.tls.key_secret_ref) {
        (Some(cert), ..) if auth.uses_cert() => Some((&cert.client_cert, &cert.secret_ref)),
        (_, Some(certificate), Some(key)) => Some((certificate, key)),
        _ => None,
    };
    let Some((certificate, key)) = selectors else { return Ok(None) };
    let access = context.access.as_ref();
    let failed = |error: ProviderError| {
        ProviderError::Auth(format!("error from Client TLS Auth: {:?}", error.to_string()))
    };
    let certificate = certificate.read(scope, access, "tls.crt").await.map_err(failed)?;
    let key = key.read(scope, access, "tls.key").await.map_err(failed)?;
    Ok(Some((certificate.expose().to_vec(), key)))
}

struct Client {
    api: Api,
    mount: Option<String>,
    version_two: bool,
}

#[async_trait]
impl SecretsClient for Client {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        let failed = |error: ProviderError| error.context("cannot read secret data from Vault");
        if remote.metadata {
            if !self.version_two {
                return Err(config("cannot perform metadata fetch operations with kv version v1"));
            }
            let path = kv::metadata_path(self.mount.as_deref(), self.version_two, &remote.key)?;
            let answer = self.api.read("ReadSecretData", &path, "").await.map_err(failed)?;
            let answer = answer.ok_or_else(|| config("secret not found"))?;
            return kv::metadata_document(&answer);
        }
        let path = kv::data_path(self.mount.as_deref(), self.version_two, &remote.key);
        let query = if remote.version.is_empty() {
            String::new()
        } else {
            format!("version={}", escape(&remote.version))
        };
        let answer = self.api.read("ReadSecretData", &path, &query).await.map_err(failed)?;
        let answer = answer.ok_or(ProviderError::NotFound)?;
        kv::data_document(&answer, self.version_two)
    }

    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        kv::value(document.text()?, &remote.property)
    }

    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        kv::map(self.value(document, remote)?)
    }

    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        if !find.tags.is_empty() && !self.version_two {
            return Err(config("cannot perform find by tag operations with kv version v1"));
        }
        let names = self.list(find.path.as_deref().unwrap_or_default()).await?;
        let pattern = find.name.as_deref().map(strategies::compile_name).transpose()?;
        let mut wanted = Vec::new();
        for name in names {
            let is_wanted = match &pattern {
                Some(pattern) => pattern.is_match(&name),
                None => self.has_tags(&name, find).await?,
            };
            if is_wanted {
                wanted.push((name.clone(), name));
            }
        }
        kv::all(self, wanted).await
    }

    async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        if !self.version_two {
            return Ok(None);
        }
        let path = kv::versions_path(self.mount.as_deref(), key);
        self.api.current_version(self, key, path).await
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        if self.api.is_referent() {
            return Ok(Validation::Unknown);
        }
        self.api.check_token().await.map_err(|error| error.context("invalid vault credentials"))?;
        Ok(Validation::Ready)
    }

    async fn close(&self) {
        self.api.close().await;
    }
}

impl Client {
    /// Every name below `path`, relative to the mount.
    async fn list(&self, path: &str) -> Result<Vec<String>, ProviderError> {
        let start = path.trim_matches('/');
        let mut open = vec![if start.is_empty() { String::new() } else { format!("{start}/") }];
        let mut names = Vec::new();
        let mut first = true;
        while let Some(prefix) = open.pop() {
            let path = kv::metadata_path(self.mount.as_deref(), self.version_two, &prefix)?;
            let answer = self.api.read("ListSecrets", &path, "list=true").await;
            let answer = answer.map_err(|error| error.context("cannot list secrets from Vault"))?;
            let Some(answer) = answer else {
                if first {
                    return Err(ProviderError::NotFound);
                }
                continue;
            };
            first = false;
            for key in kv::list_keys(&answer) {
                let full = format!("{prefix}{key}");
                if kv::MAX_NAMES < names.len() + open.len() {
                    return Err(config(format!("more than {} secrets: set find.path", kv::MAX_NAMES)));
                }
                if key.ends_with('/') { open.push(full) } else { names.push(full) }
            }
        }
        names.sort();
        Ok(names)
    }

    async fn has_tags(&self, name: &str, find: &Find) -> Result<bool, ProviderError> {
        if find.tags.is_empty() {
            return Ok(true);
        }
        let path = kv::metadata_path(self.mount.as_deref(), self.version_two, name)?;
        let answer = self.api.read("ReadSecretData", &path, "").await?;
        Ok(answer.is_some_and(|answer| kv::has_tags(&answer, &find.tags)))
    }
}
