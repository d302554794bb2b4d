//! Reads a Secret's life over the Kubernetes API. The Secret's values are not kept.

use coffer_node::report::{ANNOTATION, ConsumerKind, ConsumerState, Report};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Error};
use serde::Deserialize;
use serde_json::Value;

use super::{AtRest, Consumer, Entry, Life, SecretFacts, Source, State, judge};
use crate::client::unreachable;
use crate::exit::Failure;

const GROUP: &str = "external-secrets.io";
/// Annotation of an ExternalSecret that the operator writes: the version of each remote key at the last sync, as
/// JSON.
const SOURCE_VERSIONS: &str = "coffer.dev/source-versions";

/// Everything that can be learned.
pub(crate) async fn life(client: &Client, namespace: &str, name: &str) -> Result<Life, Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut unreadable = false;
    let secret = match secrets.get_opt(name).await {
        Ok(secret) => secret,
        // The stored copy cannot be decrypted or decoded: the rest of its life can still be told.
        Err(Error::Api(status)) if status.code == 500 => {
            unreadable = true;
            None
        }
        Err(error) => return Err(unreachable(&error)),
    };
    let owner = secret.as_ref().and_then(owning_external_secret);
    let source = source(client, namespace, name, owner.as_deref()).await?;
    let at_rest = match &secret {
        _ if unreadable => at_rest(client, namespace, name).await,
        Some(_) => at_rest(client, namespace, name).await,
        None => AtRest::Unknown { why: "there is no stored copy".to_owned() },
    };
    let facts = secret.map(facts);
    let version = facts.as_ref().map(|facts| facts.resource_version.clone()).unwrap_or_default();
    let consumers = consumers(client, namespace, name, &version).await?;
    let mut life = Life {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        secret: facts,
        source,
        at_rest,
        consumers,
        broken: Vec::new(),
    };
    life.broken = judge::broken(&life);
    Ok(life)
}

fn facts(secret: Secret) -> SecretFacts {
    SecretFacts {
        secret_type: secret.type_.unwrap_or_default(),
        resource_version: secret.metadata.resource_version.unwrap_or_default(),
        keys: secret.data.unwrap_or_default().into_keys().collect(),
        immutable: secret.immutable.unwrap_or_default(),
        deleting: secret.metadata.deletion_timestamp.is_some(),
    }
}

fn owning_external_secret(secret: &Secret) -> Option<String> {
    let owners = secret.metadata.owner_references.as_deref().unwrap_or_default();
    let owner =
        owners.iter().find(|owner| owner.kind == "ExternalSecret" && owner.api_version.starts_with(GROUP))?;
    Some(owner.name.clone())
}

fn api(client: &Client, namespace: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(GROUP, "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

async fn source(
    client: &Client,
    namespace: &str,
    name: &str,
    owner: Option<&str>,
) -> Result<Option<Source>, Failure> {
    let externals = api(client, namespace, "ExternalSecret", "externalsecrets");
    let found = match owner {
        Some(owner) => externals.get_opt(owner).await,
        None => externals
            .list(&ListParams::default())
            .await
            .map(|list| list.items.into_iter().find(|external| target_name(external) == name)),
    };
    let external = match found {
        Ok(Some(external)) => external,
        Ok(None) => return Ok(None),
        // The kind is not installed, or may not be read.
        Err(Error::Api(status)) if matches!(status.code, 403 | 404) => return Ok(None),
        Err(error) => return Err(unreachable(&error)),
    };
    let text =
        |pointer: &str| external.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = match text("/spec/secretStoreRef/kind").as_str() {
        "" => "SecretStore".to_owned(),
        kind => kind.to_owned(),
    };
    let store = text("/spec/secretStoreRef/name");
    let ready = condition(&external.data, "Ready");
    let annotations = external.metadata.annotations.clone().unwrap_or_default();
    let versions: serde_json::Map<String, Value> =
        annotations.get(SOURCE_VERSIONS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let synced = text("/status/syncedResourceVersion");
    let generation = external.metadata.generation.unwrap_or_default();
    Ok(Some(Source {
        external_secret: format!("ExternalSecret/{}", external.metadata.name.clone().unwrap_or_default()),
        provider: provider(client, namespace, &kind, &store).await,
        store: format!("{kind}/{store}"),
        entries: entries(&external.data, &versions),
        ready: ready.status == "True",
        reason: if ready.reason.is_empty() { "never synced".to_owned() } else { ready.reason },
        message: ready.message,
        last_sync: text("/status/refreshTime"),
        // `GENERATION-HASH`: another generation means that the spec has changed since.
        outdated: !synced.is_empty()
            && synced.split('-').next().and_then(|text| text.parse::<i64>().ok()) != Some(generation),
    }))
}

fn target_name(external: &DynamicObject) -> &str {
    match external.data.pointer("/spec/target/name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name,
        _ => external.metadata.name.as_deref().unwrap_or_default(),
    }
}

#[derive(Default)]
struct Condition {
    status: String,
    reason: String,
    message: String,
}

fn condition(data: &Value, wanted: &str) -> Condition {
    let conditions =
        data.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(found) = conditions.iter().find(|condition| condition["type"] == wanted) else {
        return Condition::default();
    };
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Condition { status: text("status"), reason: text("reason"), message: text("message") }
}

fn entries(data: &Value, versions: &serde_json::Map<String, Value>) -> Vec<Entry> {
    let array = |pointer: &str| data.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let entry = |key: &str, remote: &Value| {
        let text = |field: &str| remote[field].as_str().unwrap_or_default();
        let path = text("key");
        let property = text("property");
        let version = match text("version") {
            "" => versions.get(path).and_then(Value::as_str).unwrap_or_default().to_owned(),
            pinned => pinned.to_owned(),
        };
        Entry {
            key: key.to_owned(),
            remote: if property.is_empty() { path.to_owned() } else { format!("{path}#{property}") },
            version,
        }
    };
    let mut entries: Vec<Entry> = array("/spec/data")
        .iter()
        .map(|item| entry(item["secretKey"].as_str().unwrap_or_default(), &item["remoteRef"]))
        .collect();
    for item in array("/spec/dataFrom") {
        if item["extract"].is_object() {
            entries.push(entry("*", &item["extract"]));
        } else if item["find"].is_object() {
            entries.push(Entry {
                key: "*".to_owned(),
                remote: "found by name or tags".to_owned(),
                version: String::new(),
            });
        }
    }
    entries
}

async fn provider(client: &Client, namespace: &str, kind: &str, name: &str) -> String {
    let store = if kind == "ClusterSecretStore" {
        api(client, "", kind, "clustersecretstores").get_opt(name).await
    } else {
        api(client, namespace, kind, "secretstores").get_opt(name).await
    };
    let Ok(Some(store)) = store else { return "not found".to_owned() };
    let Some(providers) = store.data.pointer("/spec/provider").and_then(Value::as_object) else {
        return "unknown provider".to_owned();
    };
    let Some((provider, settings)) = providers.iter().next() else { return "no provider".to_owned() };
    let address =
        settings["server"].as_str().or_else(|| settings["server"]["url"].as_str()).unwrap_or_default();
    format!("{provider} {address}").trim_end().to_owned()
}

/// What the server says about the stored copy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredCopy {
    #[serde(default)]
    provider: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    stale: bool,
    #[serde(default)]
    readable: bool,
}

async fn at_rest(client: &Client, namespace: &str, name: &str) -> AtRest {
    let path = format!("/coffer/v1/at-rest?resource=secrets&namespace={namespace}&name={name}");
    let Ok(request) = http::Request::get(path).body(Vec::new()) else {
        return AtRest::Unknown { why: "the name cannot be asked for".to_owned() };
    };
    match client.request::<StoredCopy>(request).await {
        Ok(copy) if copy.provider == "identity" => AtRest::Plaintext,
        Ok(copy) => AtRest::Encrypted {
            provider: copy.provider,
            key: copy.key,
            stale: copy.stale,
            readable: copy.readable,
        },
        Err(Error::Api(status)) if status.code == 403 => {
            AtRest::Unknown { why: "you may not get /coffer/v1/at-rest".to_owned() }
        }
        Err(Error::Api(status)) if status.code == 404 => {
            AtRest::Unknown { why: "the API server is not coffer's and does not say".to_owned() }
        }
        Err(Error::Api(status)) => {
            AtRest::Unknown { why: format!("the API server could not tell: {}", status.message) }
        }
        Err(_) => AtRest::Unknown { why: "the API server gave no answer that can be read".to_owned() },
    }
}

async fn consumers(
    client: &Client,
    namespace: &str,
    name: &str,
    version: &str,
) -> Result<Vec<Consumer>, Failure> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let list = pods.list(&ListParams::default()).await.map_err(|error| unreachable(&error))?;
    let mut consumers = Vec::new();
    for pod in list.items {
        if !coffer_node::references::secret_names(&pod).contains(name) {
            continue;
        }
        let pod_name = pod.metadata.name.clone().unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let report: Option<Report> = pod
            .metadata
            .annotations
            .as_ref()
            .and_then(|annotations| serde_json::from_str(annotations.get(ANNOTATION)?).ok());
        let Some(report) = report else {
            consumers.push(unreported(pod_name, node));
            continue;
        };
        for found in report.consumers.into_iter().filter(|consumer| consumer.secret == name) {
            let kind = match found.kind {
                ConsumerKind::Volume => "file",
                ConsumerKind::Environment => "environment",
                ConsumerKind::PullCredential => "pull credential",
            };
            let behind = found.resource_version != version;
            consumers.push(Consumer {
                pod: pod_name.clone(),
                node: node.clone(),
                kind: kind.to_owned(),
                place: found.place,
                path: found.path,
                state: match found.state {
                    ConsumerState::Missing => State::Missing,
                    ConsumerState::Stale => State::Stale,
                    // The node has not seen the newest version yet.
                    ConsumerState::Current if behind => State::Stale,
                    ConsumerState::Current => State::Current,
                },
                resource_version: found.resource_version,
                message: found.message,
            });
        }
    }
    Ok(consumers)
}

fn unreported(pod: String, node: String) -> Consumer {
    let message = if node.is_empty() { "not bound to a node" } else { "its node does not report" };
    Consumer {
        pod,
        node,
        kind: "pod".to_owned(),
        place: String::new(),
        path: String::new(),
        resource_version: String::new(),
        state: State::Unknown,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_have_the_version_at_the_source() {
        let versions = json!({"app/db": "7", "app/all": "3"});
        let cases = [
            (json!({"data": [{"secretKey": "k", "remoteRef": {"key": "app/db"}}]}), "k=app/db@7"),
            (
                json!({"data": [{"secretKey": "k", "remoteRef": {"key": "app/db", "property": "password"}}]}),
                "k=app/db#password@7",
            ),
            (
                json!({"data": [{"secretKey": "k", "remoteRef": {"key": "app/db", "version": "2"}}]}),
                "k=app/db@2",
            ),
            (json!({"data": [{"secretKey": "k", "remoteRef": {"key": "other"}}]}), "k=other@"),
            (json!({"dataFrom": [{"extract": {"key": "app/all"}}]}), "*=app/all@3"),
            (json!({"dataFrom": [{"find": {"name": {"regexp": "^app"}}}]}), "*=found by name or tags@"),
            (json!({"dataFrom": [{"sourceRef": {"generatorRef": {"name": "g"}}}]}), ""),
            (
                json!({
                    "data": [{"secretKey": "k", "remoteRef": {"key": "app/db"}}],
                    "dataFrom": [{"extract": {"key": "app/all", "version": "1"}}],
                }),
                "k=app/db@7, *=app/all@1",
            ),
            (json!({}), ""),
            (json!({"data": "no list"}), ""),
        ];
        for (spec, expected) in cases {
            let found: Vec<String> = entries(&json!({ "spec": spec }), versions.as_object().unwrap())
                .iter()
                .map(|entry| format!("{}={}@{}", entry.key, entry.remote, entry.version))
                .collect();
            assert_eq!(found.join(", "), expected, "{spec}");
        }
    }
}
