//! The migration's calls over a Kubernetes client.

use std::time::Duration;

use async_trait::async_trait;
use coffer_runtime::api::{ApiError, ObjectKey};
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::{CallError, Listed, Objects, Page, Rewritten};

/// A resource that the server does not have, or whose objects cannot be listed and patched.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchResource {
    /// Its name is not there.
    #[error("the server has no resource {0:?} that can be listed and patched")]
    Unknown(String),
    /// The server did not say what it has.
    #[error("the server did not tell its resources: {0}")]
    Discovery(#[source] ApiError),
}

/// Over a client of the API server.
pub struct Client {
    client: kube::Client,
    resources: Vec<(String, ApiResource, Scope)>,
}

impl Client {
    /// Finds the resources (`secrets`, `deployments.apps`) among those of the server.
    ///
    /// # Errors
    /// When one is not there, or the server does not answer.
    pub async fn new(client: kube::Client, resources: &[String]) -> Result<Self, NoSuchResource> {
        let groups: Vec<&str> =
            resources.iter().map(|name| name.split_once('.').map_or("", |(_, group)| group)).collect();
        let discovery = Discovery::new(client.clone()).filter(&groups).run().await;
        let discovery = discovery.map_err(|error| NoSuchResource::Discovery(error.into()))?;
        let find = |name: &String| {
            let (plural, group) = name.split_once('.').unwrap_or((name, ""));
            let group = discovery.groups().find(|known| known.name() == group)?;
            let (resource, capabilities) =
                group.recommended_resources().into_iter().find(|(resource, _)| resource.plural == plural)?;
            let able =
                capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::PATCH);
            able.then(|| (name.clone(), resource, capabilities.scope))
        };
        let resources = resources
            .iter()
            .map(|name| find(name).ok_or_else(|| NoSuchResource::Unknown(name.clone())))
            .collect::<Result<_, _>>()?;
        Ok(Self { client, resources })
    }

    fn api(&self, resource: &str, namespace: &str) -> Result<Api<DynamicObject>, CallError> {
        let (_, resource, scope) =
            self.resources.iter().find(|(name, _, _)| name == resource).ok_or_else(|| {
                CallError::from(ApiError::unreachable(format!("{resource} was not looked up")))
            })?;
        Ok(match scope {
            Scope::Namespaced if !namespace.is_empty() => {
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
            _ => Api::all_with(self.client.clone(), resource),
        })
    }
}

#[async_trait]
impl Objects for Client {
    async fn page(&self, resource: &str, limit: u32, token: &str) -> Result<Page, CallError> {
        let mut parameters = ListParams::default().limit(limit);
        if !token.is_empty() {
            parameters = parameters.continue_token(token);
        }
        let list = self.api(resource, "")?.list_metadata(&parameters).await.map_err(told)?;
        let objects = list.items.iter().map(|item| Listed {
            key: ObjectKey::new(item.namespace().unwrap_or_default(), item.name_any()),
            uid: item.uid().unwrap_or_default(),
            resource_version: item.resource_version().unwrap_or_default(),
        });
        Ok(Page {
            objects: objects.collect(),
            token: list.metadata.continue_.unwrap_or_default(),
            remaining: list.metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok()),
        })
    }

    async fn rewrite(&self, resource: &str, object: &Listed, dry_run: bool) -> Result<Rewritten, CallError> {
        // Only the UID: whatever others change meanwhile stays, and the server merges nothing into it.
        let patch = Patch::Merge(json!({"metadata": {"uid": object.uid}}));
        let parameters = PatchParams { dry_run, ..PatchParams::default() };
        let api = self.api(resource, &object.key.namespace)?;
        let patched = api.patch_metadata(&object.key.name, &parameters, &patch).await.map_err(told)?;
        let same = patched.resource_version().is_some_and(|version| version == object.resource_version);
        Ok(if same || dry_run { Rewritten::NotNeeded } else { Rewritten::Yes })
    }
}

/// An error with what the server says about going on.
fn told(error: kube::Error) -> CallError {
    let (mut retry_after, mut token) = (Duration::ZERO, String::new());
    if let kube::Error::Api(status) = &error {
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        retry_after = Duration::from_secs(u64::from(seconds));
        token = status.metadata.as_ref().and_then(|list| list.continue_.clone()).unwrap_or_default();
    }
    CallError { error: error.into(), retry_after, token }
}
