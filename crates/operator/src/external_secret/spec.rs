//! An ExternalSecret as it is read from the API: parsed once, valid after.

use std::collections::BTreeMap;
use std::time::Duration;

use coffer_providers::contract::{Find, RemoteKey, RemoteRef};
use coffer_providers::duration;
use coffer_runtime::api::ObjectKey;
use coffer_types::time::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;

use super::template::{self, RawTemplate, Template};
use super::versions;
use crate::hash;
use crate::store::StoreKey;

/// Without `spec.refreshInterval`.
pub(crate) const DEFAULT_INTERVAL: Duration = Duration::from_secs(3600);

/// One ExternalSecret.
#[derive(Debug, Clone)]
pub(crate) struct ExternalSecret {
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Without the operator's own.
    pub(crate) annotations: BTreeMap<String, String>,
    /// The operator's own annotation: the versions at the last sync.
    pub(crate) source_versions: Option<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleting: bool,
    /// The specification, or why it cannot be followed.
    pub(crate) spec: Result<Spec, Refused>,
    pub(crate) status: Status,
}

/// Why a specification cannot be followed. The text names the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is wrong, or asks for what this operator does not do.
    Spec(String),
    /// Its template breaks a rule or needs the engine.
    Template(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Spec(why)
    }
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) store: Option<StoreRef>,
    pub(crate) refresh: RefreshPolicy,
    /// Zero for never.
    pub(crate) interval: Duration,
    pub(crate) target: Target,
    pub(crate) data: Vec<DataEntry>,
    pub(crate) data_from: Vec<FromEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefreshPolicy {
    Periodic,
    CreatedOnce,
    OnChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreationPolicy {
    Owner,
    Orphan,
    Merge,
    CreateOrMerge,
    None,
}

impl CreationPolicy {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "Owner",
            Self::Orphan => "Orphan",
            Self::Merge => "Merge",
            Self::CreateOrMerge => "CreateOrMerge",
            Self::None => "None",
        }
    }

    /// Whether keys of others stay.
    pub(crate) fn keeps_foreign_keys(self) -> bool {
        matches!(self, Self::Merge | Self::CreateOrMerge)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeletionPolicy {
    Retain,
    Delete,
    Merge,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// "" for the ExternalSecret's own name.
    pub(crate) name: String,
    pub(crate) creation: CreationPolicy,
    pub(crate) deletion: DeletionPolicy,
    pub(crate) immutable: bool,
    pub(crate) template: Option<Template>,
}

/// A store by kind and name; its namespace is the ExternalSecret's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StoreRef {
    pub(crate) name: String,
    pub(crate) kind: String,
}

impl StoreRef {
    /// Which store that is for an ExternalSecret in `namespace`.
    pub(crate) fn key(&self, namespace: &str) -> StoreKey {
        if self.kind == "ClusterSecretStore" {
            StoreKey { cluster: true, namespace: String::new(), name: self.name.clone() }
        } else {
            StoreKey { cluster: false, namespace: namespace.to_owned(), name: self.name.clone() }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DataEntry {
    pub(crate) secret_key: String,
    pub(crate) remote: RemoteRef,
    pub(crate) decoding: String,
    pub(crate) refuse_null_bytes: bool,
    pub(crate) store: Option<StoreRef>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FromEntry {
    pub(crate) source: Source,
    pub(crate) conversion: String,
    pub(crate) decoding: String,
    pub(crate) refuse_null_bytes: bool,
    pub(crate) rewrites: Vec<Rewrite>,
    pub(crate) store: Option<StoreRef>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Find(Find),
    Extract(RemoteRef),
    /// A store and nothing to read from it: upstream takes it and it gives nothing.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Rewrite {
    Regexp { source: String, target: String },
    Merge(MergeRewrite),
    Transform { template: String },
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MergeRewrite {
    pub(crate) into: String,
    pub(crate) priority: Vec<String>,
    pub(crate) priority_policy: String,
    pub(crate) conflict_policy: String,
    pub(crate) strategy: String,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Status {
    pub(crate) refresh_time: Option<Timestamp>,
    pub(crate) synced: String,
    pub(crate) binding: String,
    pub(crate) conditions: Vec<Condition>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) last_transition_time: String,
}

impl Status {
    /// The status of the Ready condition, or "".
    pub(crate) fn ready(&self) -> &str {
        self.conditions.iter().find(|condition| condition.kind == "Ready").map_or("", |ready| &ready.status)
    }
}

impl ExternalSecret {
    /// From the API's JSON; `None` when it has no name.
    pub(crate) fn parse(object: &Json) -> Option<Self> {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        if text("name").is_empty() {
            return None;
        }
        let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
        let mut annotations = texts(&metadata["annotations"]);
        let source_versions = annotations.remove(versions::ANNOTATION);
        Some(Self {
            key: ObjectKey::new(text("namespace"), text("name")),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            labels: texts(&metadata["labels"]),
            annotations,
            source_versions,
            finalizers: finalizers.filter_map(|item| item.as_str().map(str::to_owned)).collect(),
            deleting: metadata["deletionTimestamp"].is_string(),
            spec: parse_spec(&object["spec"]),
            status: parse_status(&object["status"]),
        })
    }

    /// Name of the Secret.
    pub(crate) fn target(&self) -> ObjectKey {
        let name = self.spec.as_ref().map_or("", |spec| spec.target.name.as_str());
        let name = if name.is_empty() { &self.key.name } else { name };
        ObjectKey::new(self.key.namespace.clone(), name)
    }

    /// What `status.syncedResourceVersion` is after a sync of this state.
    pub(crate) fn current(&self) -> String {
        hash::synced_version(self.generation, &self.labels, &self.annotations)
    }

    /// The store whose lane this waits in.
    pub(crate) fn lane(&self) -> StoreKey {
        let Ok(spec) = &self.spec else { return StoreKey::default() };
        let entries = spec.data_from.iter().map(|entry| entry.store.as_ref());
        let entries = entries.chain(spec.data.iter().map(|entry| entry.store.as_ref()));
        let store = spec.store.as_ref().filter(|store| !store.name.is_empty());
        let store = store.or_else(|| entries.flatten().next());
        store.map_or_else(StoreKey::default, |store| store.key(&self.key.namespace))
    }

    /// Every store that is named.
    pub(crate) fn stores(&self) -> Vec<StoreKey> {
        let Ok(spec) = &self.spec else { return Vec::new() };
        let top = spec.store.iter().filter(|store| !store.name.is_empty());
        let entries = spec.data_from.iter().filter_map(|entry| entry.store.as_ref());
        let entries = entries.chain(spec.data.iter().filter_map(|entry| entry.store.as_ref()));
        let mut keys: Vec<StoreKey> =
            top.chain(entries).map(|store| store.key(&self.key.namespace)).collect();
        keys.sort();
        keys.dedup();
        keys
    }
}

pub(crate) fn texts(map: &Json) -> BTreeMap<String, String> {
    let members = map.as_object().into_iter().flatten();
    members.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawSpec {
    secret_store_ref: Option<StoreRef>,
    refresh_policy: String,
    refresh_interval: Option<String>,
    target: RawTarget,
    data: Vec<RawData>,
    data_from: Vec<RawFrom>,
    sync_windows: Option<Json>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawTarget {
    name: String,
    creation_policy: String,
    deletion_policy: String,
    immutable: bool,
    manifest: Option<Json>,
    template: Option<RawTemplate>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawData {
    secret_key: String,
    remote_ref: RawRemote,
    source_ref: Option<RawSource>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawRemote {
    key: String,
    property: String,
    version: String,
    metadata_policy: String,
    conversion_strategy: String,
    decoding_strategy: String,
    null_byte_policy: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawFrom {
    extract: Option<RawRemote>,
    find: Option<RawFind>,
    rewrite: Vec<Rewrite>,
    source_ref: Option<RawSource>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawFind {
    path: Option<String>,
    name: Option<RawFindName>,
    tags: BTreeMap<String, String>,
    conversion_strategy: String,
    decoding_strategy: String,
    null_byte_policy: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawFindName {
    regexp: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawSource {
    store_ref: Option<StoreRef>,
    generator_ref: Option<Json>,
}

fn parse_spec(spec: &Json) -> Result<Spec, Refused> {
    let raw = if spec.is_null() { RawSpec::default() } else { decode(spec)? };
    let interval = match &raw.refresh_interval {
        Some(text) => duration::parse(text).map_err(|why| format!("invalid refreshInterval: {why}"))?,
        None => DEFAULT_INTERVAL,
    };
    let refresh = match raw.refresh_policy.as_str() {
        "" | "Periodic" => RefreshPolicy::Periodic,
        "CreatedOnce" => RefreshPolicy::CreatedOnce,
        "OnChange" => RefreshPolicy::OnChange,
        other => return Err(format!("unknown refreshPolicy {other:?}").into()),
    };
    if raw.sync_windows.is_some() {
        return Err(unsupported("spec.syncWindows").into());
    }
    if raw.target.manifest.is_some() {
        return Err(unsupported("spec.target.manifest").into());
    }
    let creation = match raw.target.creation_policy.as_str() {
        "" | "Owner" => CreationPolicy::Owner,
        "Orphan" => CreationPolicy::Orphan,
        "Merge" => CreationPolicy::Merge,
        "CreateOrMerge" => CreationPolicy::CreateOrMerge,
        "None" => CreationPolicy::None,
        other => return Err(format!("unknown creationPolicy {other:?}").into()),
    };
    let deletion = match raw.target.deletion_policy.as_str() {
        "" | "Retain" => DeletionPolicy::Retain,
        "Delete" => DeletionPolicy::Delete,
        "Merge" => DeletionPolicy::Merge,
        other => return Err(format!("unknown deletionPolicy {other:?}").into()),
    };
    let target = Target {
        name: raw.target.name,
        creation,
        deletion,
        immutable: raw.target.immutable,
        template: raw.target.template.map(template::checked).transpose().map_err(Refused::Template)?,
    };
    let data = raw.data.into_iter().enumerate().map(|(index, entry)| entry.parse(index));
    let data_from = raw.data_from.into_iter().enumerate().map(|(index, entry)| entry.parse(index));
    Ok(Spec {
        store: raw.secret_store_ref,
        refresh,
        interval,
        target,
        data: data.collect::<Result<_, _>>()?,
        data_from: data_from.collect::<Result<_, _>>()?,
    })
}

fn decode(spec: &Json) -> Result<RawSpec, String> {
    RawSpec::deserialize(spec).map_err(|error| match error.classify() {
        // The decoder quotes what it found, which may be a literal of a template.
        serde_json::error::Category::Data => "the specification does not fit its schema".to_owned(),
        _ => "the specification cannot be decoded".to_owned(),
    })
}

impl RawRemote {
    fn reference(&self) -> RemoteRef {
        let metadata = self.metadata_policy == "Fetch";
        let remote = RemoteKey { key: self.key.clone(), version: self.version.clone(), metadata };
        RemoteRef { remote, property: self.property.clone() }
    }
}

impl RawData {
    fn parse(self, index: usize) -> Result<DataEntry, String> {
        let source = self.source_ref.unwrap_or_default();
        if source.generator_ref.is_some() {
            return Err(unsupported(&format!("spec.data[{index}].sourceRef.generatorRef")));
        }
        Ok(DataEntry {
            secret_key: self.secret_key,
            remote: self.remote_ref.reference(),
            decoding: self.remote_ref.decoding_strategy,
            refuse_null_bytes: self.remote_ref.null_byte_policy == "Fail",
            store: source.store_ref,
        })
    }
}

impl RawFrom {
    fn parse(self, index: usize) -> Result<FromEntry, String> {
        let source = self.source_ref.unwrap_or_default();
        if source.generator_ref.is_some() {
            return Err(unsupported(&format!("spec.dataFrom[{index}].sourceRef.generatorRef")));
        }
        if self.find.is_some() && self.extract.is_some() {
            return Err("extract, find, or generatorRef cannot be set at the same time".to_owned());
        }
        let transform = |rewrite: &Rewrite| matches!(rewrite, Rewrite::Transform { .. });
        if let Some(at) = self.rewrite.iter().position(transform) {
            return Err(unsupported(&format!("spec.dataFrom[{index}].rewrite[{at}].transform")));
        }
        let (rewrites, store) = (self.rewrite, source.store_ref);
        if let Some(find) = self.find {
            return Ok(FromEntry {
                source: Source::Find(Find {
                    path: find.path,
                    name: find.name.map(|name| name.regexp),
                    tags: find.tags,
                    conversion: find.conversion_strategy.clone(),
                }),
                conversion: find.conversion_strategy,
                decoding: find.decoding_strategy,
                refuse_null_bytes: find.null_byte_policy == "Fail",
                rewrites,
                store,
            });
        }
        let Some(extract) = self.extract else {
            let (conversion, decoding) = (String::new(), String::new());
            return Ok(FromEntry {
                source: Source::Nothing,
                conversion,
                decoding,
                refuse_null_bytes: false,
                rewrites,
                store,
            });
        };
        Ok(FromEntry {
            source: Source::Extract(extract.reference()),
            conversion: extract.conversion_strategy,
            decoding: extract.decoding_strategy,
            refuse_null_bytes: extract.null_byte_policy == "Fail",
            rewrites,
            store,
        })
    }
}

fn parse_status(status: &Json) -> Status {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    Status {
        refresh_time: status["refreshTime"].as_str().and_then(|time| time.parse().ok()),
        synced: status["syncedResourceVersion"].as_str().unwrap_or_default().to_owned(),
        binding: status["binding"]["name"].as_str().unwrap_or_default().to_owned(),
        conditions: conditions.filter_map(|condition| Condition::deserialize(condition).ok()).collect(),
    }
}

/// The refusal of a field that is not implemented.
fn unsupported(path: &str) -> String {
    format!("{path} is not supported by this operator")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(spec: Json) -> Result<Spec, Refused> {
        ExternalSecret::parse(&json!({"metadata": {"name": "a", "namespace": "ns"}, "spec": spec}))
            .unwrap()
            .spec
    }

    #[test]
    fn defaults_are_upstreams() {
        let spec = spec(json!({})).unwrap();
        assert_eq!(spec.interval, Duration::from_secs(3600));
        assert_eq!(spec.refresh, RefreshPolicy::Periodic);
        assert_eq!(
            (spec.target.creation, spec.target.deletion),
            (CreationPolicy::Owner, DeletionPolicy::Retain)
        );
    }

    #[test]
    fn what_cannot_be_followed_is_refused_and_not_ignored() {
        let cases = [
            (json!({"refreshInterval": "soon"}), "invalid refreshInterval: time: invalid duration \"soon\""),
            (json!({"refreshPolicy": "Sometimes"}), "unknown refreshPolicy \"Sometimes\""),
            (json!({"target": {"creationPolicy": "Rent"}}), "unknown creationPolicy \"Rent\""),
            (json!({"target": {"deletionPolicy": "Burn"}}), "unknown deletionPolicy \"Burn\""),
            (
                json!({"syncWindows": {"kind": "allow", "windows": []}}),
                "spec.syncWindows is not supported by this operator",
            ),
            (
                json!({"target": {"manifest": {"kind": "ConfigMap"}}}),
                "spec.target.manifest is not supported by this operator",
            ),
            (
                json!({"data": [{"sourceRef": {"generatorRef": {"kind": "Fake", "name": "f"}}}]}),
                "spec.data[0].sourceRef.generatorRef is not supported by this operator",
            ),
            (
                json!({"dataFrom": [{"find": {}}, {"sourceRef": {"generatorRef": {"kind": "Fake", "name": "f"}}}]}),
                "spec.dataFrom[1].sourceRef.generatorRef is not supported by this operator",
            ),
            (
                json!({"dataFrom": [{"find": {}, "extract": {"key": "k"}}]}),
                "extract, find, or generatorRef cannot be set at the same time",
            ),
            (
                json!({"dataFrom": [{"find": {}, "rewrite": [{"transform": {"template": "x"}}]}]}),
                "spec.dataFrom[0].rewrite[0].transform is not supported by this operator",
            ),
            (json!({"data": "hunter2"}), "the specification does not fit its schema"),
        ];
        for (object, expected) in cases {
            let refused = spec(object.clone()).unwrap_err();
            assert_eq!(refused, Refused::Spec(expected.to_owned()), "{object}");
        }
        let engine = spec(json!({"target": {"template": {"engineVersion": "v1"}}})).unwrap_err();
        assert_eq!(engine, Refused::Template("unsupported template engine version: v1".to_owned()));
    }

    /// It is no change of the object: it is neither hashed nor copied into the Secret.
    #[test]
    fn o5_the_own_annotation_is_none_of_the_users() {
        let object = |annotations: Json| {
            let metadata = json!({"name": "a", "namespace": "ns", "annotations": annotations});
            ExternalSecret::parse(&json!({ "metadata": metadata })).unwrap()
        };
        let versions = r#"{"db":"2"}"#;
        let cases = [
            (json!({"note": "x"}), None),
            (json!({"note": "x", "coffer.dev/source-versions": versions}), Some(versions)),
        ];
        let plain = object(json!({"note": "x"}));
        for (annotations, expected) in cases {
            let found = object(annotations);
            assert_eq!(found.source_versions.as_deref(), expected);
            assert_eq!((&found.annotations, found.current()), (&plain.annotations, plain.current()));
        }
    }

    #[test]
    fn stores_and_lanes() {
        let object = json!({"metadata": {"name": "a", "namespace": "ns"}, "spec": {
            "data": [{"sourceRef": {"storeRef": {"name": "two", "kind": "ClusterSecretStore"}}}],
            "dataFrom": [{"extract": {"key": "k"}, "sourceRef": {"storeRef": {"name": "one"}}}],
        }});
        let secret = ExternalSecret::parse(&object).unwrap();
        assert_eq!(secret.lane().to_string(), "SecretStore/ns/one");
        let stores: Vec<String> = secret.stores().iter().map(ToString::to_string).collect();
        assert_eq!(stores, ["SecretStore/ns/one", "ClusterSecretStore/two"]);
    }
}
