//! Which Secrets a pod refers to: one visitor for everyone who asks.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, Pod, Volume};

/// The names of all Secrets in the pod's namespace that the node must have for it.
///
/// The complete list of Kubernetes 1.36, in its order: pull secrets, the three kinds of
/// containers (`envFrom`, then `env`), then every volume source that names a Secret.
pub fn secret_names(pod: &Pod) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Some(spec) = &pod.spec else { return names };
    let mut add = |name: Option<&str>| {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            names.insert(name.to_owned());
        }
    };
    for reference in spec.image_pull_secrets.iter().flatten() {
        add(Some(&reference.name));
    }
    for container in containers(pod) {
        for source in container.env_from.iter().flatten() {
            add(source.secret_ref.as_ref().map(|reference| reference.name.as_str()));
        }
        for variable in container.env.iter().flatten() {
            let key = variable.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
            add(key.map(|reference| reference.name.as_str()));
        }
    }
    for volume in spec.volumes.iter().flatten() {
        volume_secrets(volume, &mut add);
    }
    names
}

/// Every container of a pod: init, regular and ephemeral, as regular ones.
pub fn containers(pod: &Pod) -> Vec<Container> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut all: Vec<Container> = spec.init_containers.iter().flatten().cloned().collect();
    all.extend(spec.containers.iter().cloned());
    all.extend(spec.ephemeral_containers.iter().flatten().map(as_regular));
    all
}

fn as_regular(container: &EphemeralContainer) -> Container {
    Container {
        name: container.name.clone(),
        env: container.env.clone(),
        env_from: container.env_from.clone(),
        volume_mounts: container.volume_mounts.clone(),
        security_context: container.security_context.clone(),
        ..Container::default()
    }
}

fn volume_secrets(volume: &Volume, add: &mut dyn FnMut(Option<&str>)) {
    let local = |reference: &Option<k8s_openapi::api::core::v1::LocalObjectReference>| {
        reference.as_ref().map(|reference| reference.name.clone())
    };
    if let Some(source) = &volume.azure_file {
        add(Some(&source.secret_name));
    }
    if let Some(source) = &volume.cephfs {
        add(local(&source.secret_ref).as_deref());
    }
    if let Some(source) = &volume.cinder {
        add(local(&source.secret_ref).as_deref());
    }
    if let Some(source) = &volume.flex_volume {
        add(local(&source.secret_ref).as_deref());
    }
    for projection in volume.projected.iter().flat_map(|source| source.sources.iter().flatten()) {
        add(projection.secret.as_ref().map(|secret| secret.name.as_str()));
    }
    if let Some(source) = &volume.rbd {
        add(local(&source.secret_ref).as_deref());
    }
    if let Some(source) = &volume.secret {
        add(source.secret_name.as_deref());
    }
    if let Some(source) = &volume.scale_io {
        add(Some(&source.secret_ref.name));
    }
    if let Some(source) = &volume.iscsi {
        add(local(&source.secret_ref).as_deref());
    }
    if let Some(source) = &volume.storageos {
        add(local(&source.secret_ref).as_deref());
    }
    if let Some(source) = &volume.csi {
        add(local(&source.node_publish_secret_ref).as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(spec: serde_json::Value, expected: &[&str]) {
        let mut spec = spec;
        spec.as_object_mut().expect("an object").entry("containers").or_insert(json!([]));
        let pod: Pod =
            serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec}))
                .expect("a pod");
        let names = secret_names(&pod);
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    /// Field case S9: every place of the generated tables is visited, and a new one fails here.
    #[test]
    fn s9_every_secret_field_of_the_tables_is_visited() {
        for path in &coffer_sim::pod_fields::secret_fields() {
            let mut spec = Vec::new();
            let with = coffer_sim::pod_fields::spec_with(path);
            coffer_types::codec::json::encode_untyped(&with, &mut spec);
            check(serde_json::from_slice(&spec).expect("JSON"), &[path]);
        }
    }

    /// Field case S9: no kind of container and no kind of source is forgotten, and nothing else is taken.
    #[test]
    fn s9_only_secrets_are_visited() {
        let container = |index: usize| {
            json!([{
                "name": format!("c{index}"),
                "envFrom": [{"secretRef": {"name": format!("from{index}")}}, {"configMapRef": {"name": "no"}}],
                "env": [
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": format!("key{index}"), "key": "k"}}},
                    {"name": "B", "value": "no"},
                ],
            }])
        };
        check(json!({"initContainers": container(1)}), &["from1", "key1"]);
        check(json!({"containers": container(2)}), &["from2", "key2"]);
        check(json!({"ephemeralContainers": container(3)}), &["from3", "key3"]);
        check(json!({"imagePullSecrets": [{"name": "pull"}, {"name": ""}]}), &["pull"]);
        let volumes: &[(serde_json::Value, &str)] = &[
            (json!({"azureFile": {"secretName": "s", "shareName": "x"}}), "s"),
            (json!({"cephfs": {"monitors": [], "secretRef": {"name": "s"}}}), "s"),
            (json!({"cinder": {"volumeID": "x", "secretRef": {"name": "s"}}}), "s"),
            (json!({"flexVolume": {"driver": "x", "secretRef": {"name": "s"}}}), "s"),
            (
                json!({"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "no"}}]}}),
                "s",
            ),
            (json!({"rbd": {"image": "x", "monitors": [], "secretRef": {"name": "s"}}}), "s"),
            (json!({"secret": {"secretName": "s"}}), "s"),
            (json!({"scaleIO": {"gateway": "x", "system": "x", "secretRef": {"name": "s"}}}), "s"),
            (json!({"iscsi": {"iqn": "x", "lun": 0, "targetPortal": "x", "secretRef": {"name": "s"}}}), "s"),
            (json!({"storageos": {"secretRef": {"name": "s"}}}), "s"),
            (json!({"csi": {"driver": "x", "nodePublishSecretRef": {"name": "s"}}}), "s"),
        ];
        for (source, name) in volumes {
            let mut volume = source.clone();
            volume["name"] = json!("v");
            check(json!({"volumes": [volume]}), &[name]);
        }
        check(json!({"volumes": [{"name": "v", "emptyDir": {}}]}), &[]);
    }
}
