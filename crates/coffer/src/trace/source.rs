//! Where a Secret's value comes from: what the ExternalSecret says, and what the external store says now.
//! No value is kept, only versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_operator::source::StoreReader;
use coffer_providers::contract::ProviderError;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Error};
use serde_json::Value;

use super::{Entry, Source};

const GROUP: &str = "external-secrets.io";
/// Annotation of an ExternalSecret that the operator writes: the version of each remote key at the last sync, as
/// JSON.
const SOURCE_VERSIONS: &str = "coffer.dev/source-versions";
/// Until [`ask`] was called.
const NOT_ASKED: &str = "nobody wanted to know";

/// The ExternalSecret that owns a Secret.
pub(crate) fn owner(secret: &Secret) -> Option<String> {
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

/// The ExternalSecret that makes the Secret, as the API server tells of it.
pub(crate) async fn find(
    client: &Client,
    namespace: &str,
    name: &str,
    owner: Option<&str>,
) -> Result<Option<Source>, Error> {
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
        Err(error) => return Err(error),
    };
    let text =
        |pointer: &str| external.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let default_store = store_name(&external.data["spec"]["secretStoreRef"]).unwrap_or_default();
    let ready = condition(&external.data, "Ready");
    let annotations = external.metadata.annotations.clone().unwrap_or_default();
    let versions: serde_json::Map<String, Value> =
        annotations.get(SOURCE_VERSIONS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let synced = text("/status/syncedResourceVersion");
    let generation = external.metadata.generation.unwrap_or_default();
    Ok(Some(Source {
        external_secret: format!("ExternalSecret/{}", external.metadata.name.clone().unwrap_or_default()),
        provider: provider(store(client, namespace, &default_store).await.ok().flatten().as_ref()),
        entries: entries(&external.data, &versions, &default_store),
        store: default_store,
        refresh_interval: text("/spec/refreshInterval"),
        not_asked: NOT_ASKED.to_owned(),
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

fn entries(data: &Value, versions: &serde_json::Map<String, Value>, default_store: &str) -> Vec<Entry> {
    let array = |pointer: &str| data.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let entry = |key: &str, remote: &Value, item: &Value| {
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
            current: String::new(),
            gone: false,
            store: store_name(&item["sourceRef"]["storeRef"]).unwrap_or_else(|| default_store.to_owned()),
            asked_for: if text("version").is_empty() { path.to_owned() } else { String::new() },
        }
    };
    let mut entries: Vec<Entry> = array("/spec/data")
        .iter()
        .map(|item| entry(item["secretKey"].as_str().unwrap_or_default(), &item["remoteRef"], item))
        .collect();
    for item in array("/spec/dataFrom") {
        if item["extract"].is_object() {
            entries.push(entry("*", &item["extract"], &item));
        } else if item["find"].is_object() {
            let found = entry("*", &Value::Null, &item);
            entries.push(Entry { remote: "found by name or tags".to_owned(), ..found });
        }
    }
    entries
}

/// `KIND/NAME` of a reference to a store.
fn store_name(reference: &Value) -> Option<String> {
    let name = reference["name"].as_str().filter(|name| !name.is_empty())?;
    let kind = reference["kind"].as_str().filter(|kind| !kind.is_empty()).unwrap_or("SecretStore");
    Some(format!("{kind}/{name}"))
}

/// The store of that `KIND/NAME`.
async fn store(client: &Client, namespace: &str, name: &str) -> Result<Option<DynamicObject>, Error> {
    match name.split_once('/') {
        Some((kind @ "ClusterSecretStore", name)) => {
            api(client, "", kind, "clustersecretstores").get_opt(name).await
        }
        Some((kind, name)) => api(client, namespace, kind, "secretstores").get_opt(name).await,
        None => Ok(None),
    }
}

/// Kind of a store's provider, and its address.
fn provider(store: Option<&DynamicObject>) -> String {
    let Some(store) = store else { return "not found".to_owned() };
    let Some(providers) = store.data.pointer("/spec/provider").and_then(Value::as_object) else {
        return "unknown provider".to_owned();
    };
    let Some((provider, settings)) = providers.iter().next() else { return "no provider".to_owned() };
    let address =
        settings["server"].as_str().or_else(|| settings["server"]["url"].as_str()).unwrap_or_default();
    format!("{provider} {address}").trim_end().to_owned()
}

/// Asks each store which version it holds now. That it may not or cannot be asked is told, and no failure.
pub(crate) async fn ask(client: &Client, namespace: &str, source: &mut Source) {
    let mut readers = BTreeMap::new();
    source.not_asked.clear();
    for entry in source.entries.iter_mut().filter(|entry| !entry.asked_for.is_empty()) {
        if !readers.contains_key(&entry.store) {
            readers.insert(entry.store.clone(), connect(client, namespace, &entry.store).await);
        }
        let answer = match readers.get(&entry.store) {
            Some(Ok(reader)) => reader.current_version(&entry.asked_for).await.map_err(|error| match error {
                ProviderError::NotFound => None,
                other => Some(other.to_string()),
            }),
            Some(Err(why)) => Err(Some(why.clone())),
            None => Err(None),
        };
        match answer {
            Ok(version) => entry.current = version.unwrap_or_default(),
            Err(None) => entry.gone = true,
            Err(Some(why)) if source.not_asked.is_empty() => {
                source.not_asked = format!("{}: {why}", entry.store)
            }
            Err(Some(_)) => {}
        }
    }
    for reader in readers.into_values().flatten() {
        reader.close().await;
    }
}

/// A connection with what the caller may read.
async fn connect(client: &Client, namespace: &str, name: &str) -> Result<StoreReader, String> {
    let store = match store(client, namespace, name).await {
        Ok(Some(store)) => store,
        Ok(None) => return Err("it does not exist".to_owned()),
        Err(Error::Api(status)) => return Err(status.message),
        Err(_) => return Err("the API server gave no answer that can be read".to_owned()),
    };
    let mut store = serde_json::to_value(&store).map_err(|_| "it cannot be read".to_owned())?;
    store["kind"] = Value::from(name.split('/').next().unwrap_or_default());
    let (clock, random) = (Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    StoreReader::connect(client.clone(), clock, random, &store, namespace)
        .await
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_asked_for_where_it_comes_from_unless_its_version_is_pinned() {
        let spec = json!({"data": [
            {"secretKey": "a", "remoteRef": {"key": "one", "property": "p"}},
            {"secretKey": "b", "remoteRef": {"key": "two", "version": "3"}},
            {"secretKey": "c", "remoteRef": {"key": "three"},
             "sourceRef": {"storeRef": {"name": "other", "kind": "ClusterSecretStore"}}},
        ]});
        let found: Vec<(String, String)> =
            entries(&json!({"spec": spec}), &Default::default(), "SecretStore/s")
                .into_iter()
                .map(|entry| (entry.store, entry.asked_for))
                .collect();
        let expected =
            [("SecretStore/s", "one"), ("SecretStore/s", ""), ("ClusterSecretStore/other", "three")];
        assert_eq!(found, expected.map(|(store, key)| (store.to_owned(), key.to_owned())));
    }

    #[test]
    fn entries_have_the_version_of_the_last_sync() {
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
            let found: Vec<String> =
                entries(&json!({ "spec": spec }), versions.as_object().unwrap(), "SecretStore/s")
                    .iter()
                    .map(|entry| format!("{}={}@{}", entry.key, entry.remote, entry.version))
                    .collect();
            assert_eq!(found.join(", "), expected, "{spec}");
        }
    }
}
