//! Projected volumes: one directory made of Secrets, ConfigMaps, fields of the pod and tokens.
//!
//! Absent: trust bundles, pod certificates and resource fields. A volume that asks for one fails whole, as
//! every source that cannot be had does.

use std::collections::BTreeSet;
use std::sync::Arc;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{
    DownwardAPIProjection, Pod, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::payload::{FileProjection, Payload, PayloadError, data_payload, file};
use crate::data_object::DataObject;
use crate::env;
use crate::references::containers;

/// Where the content comes from. Objects are `Ok(None)` when they do not exist.
pub trait ProjectedSources {
    /// A Secret of the pod's namespace.
    fn secret(&self, name: &str) -> Result<Option<Arc<DataObject>>, String>;
    /// A ConfigMap of the pod's namespace.
    fn config_map(&self, name: &str) -> Result<Option<Arc<DataObject>>, String>;
    /// A token of the pod's service account.
    fn token(&self, wanted: &ServiceAccountTokenProjection) -> Result<SecretBytes, String>;
}

/// The mode and owner of a token's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenFile {
    /// Permission bits, before `fsGroup` adds the group's.
    pub mode: i32,
    /// The user it is given to.
    pub owner: Option<u32>,
}

/// The kubelet's table (field case N19); `fsGroup` then makes 0600 into 0640 of the group.
///
/// | pod | file |
/// |---|---|
/// | nothing set | root, the volume's `defaultMode` |
/// | all containers run as one user | the user, 0600 |
/// | `fsGroup` | root, 0600 |
/// | both | the user, 0600 |
pub fn token_file(default_mode: i32, common_user: Option<u32>, has_fs_group: bool) -> TokenFile {
    match (common_user, has_fs_group) {
        (None, false) => TokenFile { mode: default_mode, owner: None },
        (owner, _) => TokenFile { mode: 0o600, owner },
    }
}

/// The user that every container of a pod runs as, ephemeral ones included, when there is one.
pub fn common_user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec.security_context.as_ref().and_then(|context| context.run_as_user);
    let users = containers(pod)
        .into_iter()
        .map(|container| container.security_context.and_then(|context| context.run_as_user).or(of_pod));
    let users: BTreeSet<Option<i64>> = users.collect();
    match users.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(user)] => u32::try_from(*user).ok(),
        _ => None,
    }
}

/// The files of a projected volume, or the errors of all sources together, as the kubelet writes them.
pub fn projected_payload(
    source: &ProjectedVolumeSource,
    pod: &Pod,
    sources: &dyn ProjectedSources,
) -> Result<Payload, String> {
    let default_mode = source.default_mode.ok_or_else(|| PayloadError::NoDefaultMode.to_string())?;
    let mut payload = Payload::new();
    let mut errors: Vec<String> = Vec::new();
    for projection in source.sources.iter().flatten() {
        match one(projection, default_mode, pod, sources) {
            // A later source wins.
            Ok(files) => payload.extend(files),
            Err(error) if errors.contains(&error) => {}
            Err(error) => errors.push(error),
        }
    }
    match errors.as_slice() {
        [] => Ok(payload),
        [error] => Err(error.clone()),
        errors => Err(format!("[{}]", errors.join(", "))),
    }
}

fn one(
    projection: &VolumeProjection,
    default_mode: i32,
    pod: &Pod,
    sources: &dyn ProjectedSources,
) -> Result<Payload, String> {
    if let Some(secret) = &projection.secret {
        let optional = secret.optional == Some(true);
        let found = required(sources.secret(&secret.name)?, optional, "secret", &secret.name)?;
        let items = secret.items.as_deref().unwrap_or_default();
        return data_payload(found.as_deref(), items, default_mode, optional, PayloadError::MissingKey)
            .map_err(|error| error.to_string());
    }
    if let Some(map) = &projection.config_map {
        let optional = map.optional == Some(true);
        let found = required(sources.config_map(&map.name)?, optional, "configmap", &map.name)?;
        let items = map.items.as_deref().unwrap_or_default();
        return data_payload(found.as_deref(), items, default_mode, optional, PayloadError::MissingConfigKey)
            .map_err(|error| error.to_string());
    }
    if let Some(token) = &projection.service_account_token {
        let has_fs_group =
            pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group).is_some();
        let TokenFile { mode, owner } = token_file(default_mode, common_user(pod), has_fs_group);
        let content = sources.token(token)?;
        return Ok(Payload::from([(token.path.clone(), FileProjection { owner, ..file(&content, mode) })]));
    }
    if let Some(downward) = &projection.downward_api {
        return downward_payload(downward, default_mode, pod);
    }
    Err("this node serves no clusterTrustBundle and podCertificate sources".to_owned())
}

fn required(
    found: Option<Arc<DataObject>>,
    optional: bool,
    kind: &str,
    name: &str,
) -> Result<Option<Arc<DataObject>>, String> {
    match found {
        None if !optional => Err(format!("{kind} {name:?} not found")),
        found => Ok(found),
    }
}

fn downward_payload(
    downward: &DownwardAPIProjection,
    default_mode: i32,
    pod: &Pod,
) -> Result<Payload, String> {
    let mut payload = Payload::new();
    for item in downward.items.iter().flatten() {
        let Some(field) = &item.field_ref else {
            return Err("resourceFieldRef needs a container runtime, which this node lacks".to_owned());
        };
        let text = env::volume_field(pod, &field.field_path).map_err(|error| error.to_string())?;
        payload.insert(item.path.clone(), file(&SecretBytes::from(text), item.mode.unwrap_or(default_mode)));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn pod(spec: serde_json::Value) -> Pod {
        let mut spec = spec;
        spec.as_object_mut().expect("an object").entry("containers").or_insert(json!([{"name": "c"}]));
        serde_json::from_value(json!({
            "metadata": {
                "name": "web", "namespace": "ns", "uid": "u",
                "labels": {"b": "2", "a": "1"}, "annotations": {"note": "say \"hi\"\n"},
            },
            "spec": spec,
        }))
        .expect("a pod")
    }

    struct Fixed;

    fn object(pairs: &[(&str, &str)]) -> Option<Arc<DataObject>> {
        let bytes = |(key, value): &(&str, &str)| ((*key).to_owned(), SecretBytes::from((*value).to_owned()));
        Some(Arc::new(DataObject {
            namespace: "ns".to_owned(),
            name: "x".to_owned(),
            uid: "u".to_owned(),
            resource_version: "1".to_owned(),
            immutable: false,
            data: pairs.iter().map(bytes).collect(),
            binary_data: BTreeMap::new(),
            seen: std::time::Duration::ZERO,
        }))
    }

    impl ProjectedSources for Fixed {
        fn secret(&self, name: &str) -> Result<Option<Arc<DataObject>>, String> {
            Ok(if name == "db" { object(&[("password", "p")]) } else { None })
        }

        fn config_map(&self, name: &str) -> Result<Option<Arc<DataObject>>, String> {
            match name {
                "ca" => Ok(object(&[("ca.crt", "PEM"), ("password", "from the map")])),
                "slow" => Err("slow".to_owned()),
                _ => Ok(None),
            }
        }

        fn token(&self, wanted: &ServiceAccountTokenProjection) -> Result<SecretBytes, String> {
            match wanted.audience.as_deref() {
                Some("refused") => Err("failed to fetch token: refused".to_owned()),
                _ => Ok(SecretBytes::from("TOKEN".to_owned())),
            }
        }
    }

    fn payload(spec: serde_json::Value, sources: serde_json::Value) -> Result<Vec<String>, String> {
        let source =
            serde_json::from_value(json!({"defaultMode": 420, "sources": sources})).expect("a source");
        projected_payload(&source, &pod(spec), &Fixed).map(|payload| {
            let show = |(path, file): (&String, &FileProjection)| {
                let content = std::str::from_utf8(file.content.expose()).expect("text");
                let owner = file.owner.map_or("root".to_owned(), |owner| owner.to_string());
                format!("{path} {owner} {:04o} {content}", file.mode)
            };
            payload.iter().map(show).collect()
        })
    }

    /// Field case N19: the kubelet's four rows, for each way in which a pod can say who runs.
    #[test]
    fn n19_the_modes_of_token_files_follow_the_kubelets_table() {
        let token = json!([{"serviceAccountToken": {"path": "token"}}]);
        let user = |user: u32| json!({"name": "c", "securityContext": {"runAsUser": user}});
        let cases = [
            // The four rows.
            (json!({}), "token root 0644 TOKEN"),
            (json!({"securityContext": {"runAsUser": 1000}}), "token 1000 0600 TOKEN"),
            (json!({"securityContext": {"fsGroup": 2000}}), "token root 0600 TOKEN"),
            (json!({"securityContext": {"runAsUser": 1000, "fsGroup": 2000}}), "token 1000 0600 TOKEN"),
            // Who the common user is.
            (json!({"containers": [user(7), user(7)]}), "token 7 0600 TOKEN"),
            (json!({"containers": [user(7), user(8)]}), "token root 0644 TOKEN"),
            (json!({"containers": [user(7), {"name": "d"}]}), "token root 0644 TOKEN"),
            (json!({"containers": [user(7)], "initContainers": [user(7)]}), "token 7 0600 TOKEN"),
            (json!({"containers": [user(7)], "initContainers": [user(8)]}), "token root 0644 TOKEN"),
            (json!({"containers": [user(7)], "initContainers": [{"name": "i"}]}), "token root 0644 TOKEN"),
            (
                json!({"containers": [user(7)], "ephemeralContainers": [{"name": "e"}]}),
                "token root 0644 TOKEN",
            ),
            (json!({"containers": [user(7)], "ephemeralContainers": [user(7)]}), "token 7 0600 TOKEN"),
            (
                json!({"securityContext": {"runAsUser": 9}, "containers": [user(7), user(7)]}),
                "token 7 0600 TOKEN",
            ),
            (
                json!({"securityContext": {"runAsUser": 9}, "containers": [user(7), {"name": "d"}]}),
                "token root 0644 TOKEN",
            ),
            (
                json!({"securityContext": {"fsGroup": 1}, "containers": [user(7), user(8)]}),
                "token root 0600 TOKEN",
            ),
            (json!({"containers": [user(0)]}), "token 0 0600 TOKEN"),
        ];
        for (spec, expected) in cases {
            let label = spec.to_string();
            assert_eq!(payload(spec, token.clone()), Ok(vec![expected.to_owned()]), "{label}");
        }
    }

    #[test]
    fn sources_in_order_and_errors_together() {
        let cases: [(serde_json::Value, Result<&[&str], &str>); 11] = [
            (
                // What admission mounts into every container.
                json!([
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                    {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
                ]),
                Ok(&["ca.crt root 0644 PEM", "namespace root 0644 ns", "token root 0644 TOKEN"]),
            ),
            (
                json!([{"secret": {"name": "db"}}, {"configMap": {"name": "ca"}}]),
                Ok(&["ca.crt root 0644 PEM", "password root 0644 from the map"]),
            ),
            (
                json!([{"secret": {"name": "db", "items": [{"key": "password", "path": "a/b", "mode": 256}]}}]),
                Ok(&["a/b root 0400 p"]),
            ),
            (
                json!([{"downwardAPI": {"items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 288},
                    {"path": "notes", "fieldRef": {"fieldPath": "metadata.annotations"}},
                ]}}]),
                Ok(&["labels root 0440 a=\"1\"\nb=\"2\"", "notes root 0644 note=\"say \\\"hi\\\"\\n\""]),
            ),
            (json!([{"secret": {"name": "no", "optional": true}}]), Ok(&[])),
            (json!([{"secret": {"name": "no"}}]), Err("secret \"no\" not found")),
            (json!([{"configMap": {"name": "no"}}]), Err("configmap \"no\" not found")),
            (
                json!([{"configMap": {"name": "ca", "items": [{"key": "no", "path": "p"}]}}]),
                Err("configmap references non-existent config key: no"),
            ),
            (
                json!([{"secret": {"name": "db", "items": [{"key": "no", "path": "p"}]}}, {"configMap": {"name": "slow"}}]),
                Err("[references non-existent secret key: no, slow]"),
            ),
            (
                json!([{"serviceAccountToken": {"path": "t", "audience": "refused"}}]),
                Err("failed to fetch token: refused"),
            ),
            (
                json!([{"clusterTrustBundle": {"path": "p", "name": "b"}}]),
                Err("this node serves no clusterTrustBundle and podCertificate sources"),
            ),
        ];
        for (sources, expected) in cases {
            let label = sources.to_string();
            let expected = expected
                .map(|files| files.iter().map(|file| (*file).to_owned()).collect())
                .map_err(str::to_owned);
            assert_eq!(payload(json!({}), sources), expected, "{label}");
        }
        let no_mode = ProjectedVolumeSource::default();
        let error = projected_payload(&no_mode, &pod(json!({})), &Fixed).expect_err("refused");
        assert_eq!(error, "no defaultMode used, not even the default value for it");
    }
}
