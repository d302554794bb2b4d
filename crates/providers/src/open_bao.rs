//! `openBao`: OpenBao's KV engines as upstream's own provider reads them.
//!
//! It shares the wire with [`crate::vault`] and differs in what it makes of an
//! answer: a missing secret is an error and no reason to delete, a property is a
//! key and no path, and a search looks at one level only.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::SecretBytes;
use serde_json::Value as Json;

use crate::contract::{
    Capabilities, Context, Document, Find, Provider, ProviderError, RemoteKey, RemoteRef, Scope, SecretMap,
    SecretsClient, Validation, config,
};
use crate::vault::{Api, ApiConfig, Server, kv};
use crate::{contract, strategies};

/// The provider.
#[derive(Debug)]
pub struct OpenBao;

fn parse(spec: &Json) -> Result<Server, ProviderError> {
    contract::parse(spec, "invalid openBao provider")
}

#[async_trait]
impl Provider for OpenBao {
    fn key(&self) -> &'static str {
        "openBao"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ReadOnly
    }

    fn check(&self, spec: &Json, scope: &Scope) -> Result<Vec<String>, ProviderError> {
        let spec = parse(spec)?;
        if !spec.trust.ca_bundle.is_empty() && spec.trust.ca_provider.is_some() {
            return Err(config("at most one of the fields in [caBundle caProvider] may be set"));
        }
        let auth = spec.auth.unwrap_or_default();
        let given = [auth.token_secret_ref.is_some(), auth.app_role.is_some(), auth.user_pass.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(config("unsupported auth method"));
        }
        auth.check(scope)?;
        Ok(Vec::new())
    }

    fn is_referent(&self, spec: &Json, scope: &Scope) -> bool {
        parse(spec).is_ok_and(|spec| {
            spec.trust.is_referent(scope) || spec.auth.is_some_and(|auth| auth.is_referent(scope))
        })
    }

    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        self.check(spec, scope)?;
        let spec = parse(spec)?;
        let authority = spec.trust.authority(scope, context.access.as_ref()).await;
        let authority = authority.map_err(|error| error.context("cannot set OpenBao CA certificate"))?;
        let referent_authority = spec.trust.is_referent(scope);
        let version_two = spec.version_two();
        let api = Api::new(ApiConfig {
            provider: "OpenBao",
            server: spec.server.clone(),
            namespace: spec.namespace,
            headers: std::collections::BTreeMap::new(),
            read_your_writes: false,
            forward_inconsistent: false,
            authority,
            identity: None,
            context: context.clone(),
            auth: spec.auth.unwrap_or_default(),
            authenticated: true,
            scope: scope.clone(),
        })?;
        api.token().await?;
        let mount =
            if spec.path.is_empty() { "kv".to_owned() } else { spec.path.trim_matches('/').to_owned() };
        let referent = referent_authority || api.is_referent();
        Ok(Arc::new(Client { api, server: spec.server, mount, version_two, referent }))
    }
}

struct Client {
    api: Api,
    server: String,
    mount: String,
    version_two: bool,
    referent: bool,
}

impl Client {
    fn path(&self, middle: &str, key: &str) -> String {
        if self.version_two {
            format!("{}/{middle}/{key}", self.mount)
        } else {
            format!("{}/{key}", self.mount)
        }
    }
}

#[async_trait]
impl SecretsClient for Client {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        let version = &remote.version;
        if !version.is_empty() && !self.version_two {
            return Err(config("OpenBao KVv1 secrets do not support versioning (use KVv2)"));
        }
        if !version.is_empty() && version.parse::<i64>().is_err() {
            return Err(config(format!("invalid Ref.Version: parsing {version:?}: invalid syntax")));
        }
        let query = if version.is_empty() { String::new() } else { format!("version={version}") };
        let answer = self.api.read("ReadSecretData", &self.path("data", &remote.key), &query).await?;
        kv::data_document(&answer.ok_or(ProviderError::NotFound)?, self.version_two)
    }

    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        if remote.property.is_empty() {
            return kv::value(document.text()?, "");
        }
        kv::exact(document.text()?, &remote.property)?.ok_or_else(|| kv::missing(&remote.property))
    }

    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        kv::map(self.value(document, remote)?)
    }

    fn missing_value(&self, remote: &RemoteRef) -> ProviderError {
        // Upstream's client reports a 404 as any other error: no deletion policy applies.
        ProviderError::Retryable(format!("404 Not Found: there is no secret {:?}", remote.remote.key))
    }

    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        if !find.tags.is_empty() {
            return Err(config("tag based search is not implemented"));
        }
        let Some(pattern) = &find.name else { return Err(config("find.name must be set")) };
        let pattern = strategies::compile_name(pattern)?;
        let start = find.path.as_deref().unwrap_or_default().trim_matches('/');
        let prefix = if start.is_empty() { String::new() } else { format!("{start}/") };
        let answer = self.api.read("ListSecrets", &self.path("metadata", &prefix), "list=true").await?;
        let names = answer.as_ref().map(kv::list_keys).unwrap_or_default();
        let names = names.into_iter().filter(|name| !name.ends_with('/') && pattern.is_match(name));
        kv::all(self, names.map(|name| (name.clone(), format!("{prefix}{name}")))).await
    }

    async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        if !self.version_two {
            return Ok(None);
        }
        self.api.current_version(self, key, Some(self.path("metadata", key))).await
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        if self.referent {
            return Ok(Validation::Unknown);
        }
        let path = format!("sys/internal/ui/mounts/{}", self.mount);
        let failed =
            |error: ProviderError| error.context(&format!("error while validating {:?}", self.server));
        let answer = self.api.read("ReadMount", &path, "").await.map_err(failed)?;
        let mount: Json = answer
            .and_then(|answer| serde_json::from_slice(answer.expose()).ok())
            .ok_or_else(|| failed(config("the mount is not there")))?;
        let kind = mount["data"]["type"].as_str().unwrap_or_default();
        if kind != "kv" {
            return Err(config(format!("expected mount type \"kv\" found {kind:?}")));
        }
        let found = mount["data"]["options"]["version"].as_str().unwrap_or("1");
        let expected = if self.version_two { "2" } else { "1" };
        if found != expected {
            return Err(config(format!("expected kv engine version {expected} found version {found}")));
        }
        Ok(Validation::Ready)
    }

    async fn close(&self) {
        self.api.close().await;
    }
}
