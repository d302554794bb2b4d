//! Every place in a pod that names a Secret, found by one function; and every ConfigMap.
//!
//! Twice the original forgot a place when it walked the pod by hand (CVE-2023-2728, CVE-2024-3177).
//! Here the places are a table, and a test compares it with the tables of the pod's fields.

use coffer_types::Value;

/// A place that names a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// `env[].valueFrom.secretKeyRef` of a container.
    Variable {
        /// The field of the pod's spec that holds the container.
        containers: &'static str,
        /// The container.
        container: &'a str,
        /// The variable.
        variable: &'a str,
    },
    /// `envFrom[].secretRef` of a container.
    AllVariables {
        /// The field of the pod's spec that holds the container.
        containers: &'static str,
        /// The container.
        container: &'a str,
    },
    /// A volume that holds one Secret.
    SecretVolume,
    /// A source of a projected volume, or the credentials of another kind of volume.
    OtherVolume {
        /// The volume.
        volume: &'a str,
    },
    /// `imagePullSecrets[]`.
    PullSecret {
        /// Which one.
        index: usize,
    },
}

/// A Secret's name and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretReference<'a> {
    /// Name of the Secret.
    pub name: &'a str,
    /// Where.
    pub place: Place<'a>,
}

/// The fields of a pod's spec that hold containers.
pub const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Where a volume's source names a Secret, the projected sources left out.
const VOLUME_PATHS: [&[&str]; 11] = [
    &["secret", "secretName"],
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["scaleIO", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["storageos", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
    &["projected", "sources"],
];

/// Every Secret that a pod's spec names, in the order in which upstream checks them:
/// volumes, containers by kind, image pull secrets. Empty names are left out.
pub fn secret_references(spec: &Value) -> Vec<SecretReference<'_>> {
    let mut found = Vec::new();
    for volume in items(spec, "volumes") {
        volume_references(volume, &mut found);
    }
    for containers in CONTAINERS {
        for container in items(spec, containers) {
            container_references(containers, container, &mut found);
        }
    }
    for (index, reference) in items(spec, "imagePullSecrets").iter().enumerate() {
        let place = Place::PullSecret { index };
        found.push(SecretReference { name: reference.str_at(&["name"]), place });
    }
    found.retain(|reference| !reference.name.is_empty());
    found
}

fn volume_references<'a>(volume: &'a Value, found: &mut Vec<SecretReference<'a>>) {
    let other = Place::OtherVolume { volume: volume.str_at(&["name"]) };
    for path in VOLUME_PATHS {
        let Some(value) = volume.at(path) else { continue };
        if let Some(sources) = value.as_array() {
            let named = sources.iter().map(|source| source.str_at(&["secret", "name"]));
            found.extend(named.map(|name| SecretReference { name, place: other }));
        } else {
            let place = if path[0] == "secret" { Place::SecretVolume } else { other };
            found.push(SecretReference { name: value.as_str().unwrap_or_default(), place });
        }
    }
}

fn container_references<'a>(
    containers: &'static str,
    container: &'a Value,
    found: &mut Vec<SecretReference<'a>>,
) {
    let name = container.str_at(&["name"]);
    for variable in items(container, "env") {
        let place = Place::Variable { containers, container: name, variable: variable.str_at(&["name"]) };
        let secret = variable.str_at(&["valueFrom", "secretKeyRef", "name"]);
        found.push(SecretReference { name: secret, place });
    }
    for source in items(container, "envFrom") {
        let place = Place::AllVariables { containers, container: name };
        found.push(SecretReference { name: source.str_at(&["secretRef", "name"]), place });
    }
}

/// Every ConfigMap that a pod's spec names.
pub fn config_maps(spec: &Value) -> impl Iterator<Item = &str> {
    let of_containers = CONTAINERS.into_iter().flat_map(|kind| items(spec, kind)).flat_map(|container| {
        let keys =
            items(container, "env").iter().map(|item| item.str_at(&["valueFrom", "configMapKeyRef", "name"]));
        keys.chain(items(container, "envFrom").iter().map(|item| item.str_at(&["configMapRef", "name"])))
    });
    let of_volumes = items(spec, "volumes").iter().flat_map(|volume| {
        let sources = volume.at(&["projected", "sources"]).and_then(Value::as_array).unwrap_or_default();
        let projected = sources.iter().map(|source| source.str_at(&["configMap", "name"]));
        projected.chain([volume.str_at(&["configMap", "name"])])
    });
    of_containers.chain(of_volumes).filter(|name| !name.is_empty())
}

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use coffer_sim::pod_fields::{secret_fields, spec_with};

    use super::*;

    #[test]
    fn s9_every_secret_field_of_the_tables_is_visited() {
        for path in &secret_fields() {
            let spec = spec_with(path);
            let names: Vec<&str> = secret_references(&spec).iter().map(|reference| reference.name).collect();
            assert_eq!(names, [path.as_str()], "a new field names Secrets: add it to the places");
        }
    }

    #[test]
    fn the_order_and_the_places() {
        let mut spec = spec_with("volumes.secret.secretName");
        for path in [
            "containers.env.valueFrom.secretKeyRef.name",
            "initContainers.envFrom.secretRef.name",
            "imagePullSecrets.name",
        ] {
            let Value::Object(members) = spec_with(path) else { panic!("an object") };
            spec.as_object_mut().expect("an object").extend(members);
        }
        let places: Vec<Place<'_>> =
            secret_references(&spec).iter().map(|reference| reference.place).collect();
        assert_eq!(
            places,
            [
                Place::SecretVolume,
                Place::AllVariables { containers: "initContainers", container: "" },
                Place::Variable { containers: "containers", container: "", variable: "" },
                Place::PullSecret { index: 0 },
            ]
        );
        assert_eq!(secret_references(&Value::object()), []);
    }
}
