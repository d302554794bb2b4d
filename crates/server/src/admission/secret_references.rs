//! Every place in a pod that names a Secret, found by one function.
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

fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use coffer_types::schema::{self, Message, Shape, Type};

    use super::*;

    /// Every path of the pod's spec whose last field names a Secret, from the generated tables:
    /// text fields called `secretName`, and names inside fields that are called after a Secret.
    fn paths_in_tables() -> BTreeSet<String> {
        fn walk(message: &'static Message, path: &str, inside: bool, found: &mut BTreeSet<String>) {
            for field in message.fields {
                let path = match (path.is_empty(), field.json.is_empty()) {
                    (_, true) => path.to_owned(),
                    (true, false) => field.json.to_owned(),
                    (false, false) => format!("{path}.{}", field.json),
                };
                let named_after_secret = field.json.to_lowercase().contains("secret");
                match field.shape {
                    Shape::One(Type::Message(inner)) | Shape::List(Type::Message(inner)) => {
                        // An inlined struct belongs to its parent.
                        let inside = if field.json.is_empty() { inside } else { named_after_secret };
                        walk(inner, &path, inside, found);
                    }
                    Shape::One(Type::String)
                        if field.json == "secretName" || (inside && field.json == "name") =>
                    {
                        found.insert(path);
                    }
                    _ => {}
                }
            }
        }
        let pod = schema::lookup("", "v1", "Pod").expect("the tables hold Pod").message;
        let Some(Shape::One(Type::Message(spec))) = pod.field("spec").map(|field| field.shape) else {
            panic!("a pod has a spec");
        };
        let mut found = BTreeSet::new();
        walk(spec, "", false, &mut found);
        found
    }

    /// A spec with a Secret called after the path at that path, lists made of one item.
    fn spec_with(path: &str) -> Value {
        const LISTS: [&str; 8] = [
            "volumes",
            "sources",
            "initContainers",
            "containers",
            "ephemeralContainers",
            "env",
            "envFrom",
            "imagePullSecrets",
        ];
        let mut value = Value::from(path);
        for field in path.rsplit('.') {
            let inner = if LISTS.contains(&field) { Value::from(vec![value]) } else { value };
            value = Value::from([(field, inner)]);
        }
        value
    }

    #[test]
    fn s9_every_secret_field_of_the_tables_is_visited() {
        let paths = paths_in_tables();
        // The tables must have been walked to every corner: these are the places of v1.37.
        assert_eq!(paths.len(), 3 * 2 + 10 + 1 + 1, "{paths:#?}");
        for path in &paths {
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
