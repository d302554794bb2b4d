//! The CustomResourceDefinitions of the kinds that the operator serves.
//!
//! Made from the tables in this module; `deploy/crds/*.yaml` is their output, and
//! a test holds it to them. A provider that is not built in is kept as it stands
//! (`x-kubernetes-preserve-unknown-fields`), so that a store of the original
//! survives a visit here.

mod external_secret;
mod schema;
mod store;
mod yaml;

use serde_json::{Value as Json, json};

/// All definitions, as the API takes them.
pub fn all() -> Vec<Json> {
    vec![external_secret::definition(), store::definition(false), store::definition(true)]
}

/// The same with v1beta1 served, for clients that still speak it.
pub fn all_serving_v1beta1() -> Vec<Json> {
    let mut definitions = all();
    for definition in &mut definitions {
        for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["served"] = true.into();
        }
    }
    definitions
}

/// The version of before: not served, and there so that objects that are stored in it can be read as v1. The API
/// server passes their fields through as they stand and checks them against v1.
fn v1beta1() -> Json {
    json!({
        "name": "v1beta1",
        "served": false,
        "storage": false,
        "deprecated": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "subresources": {"status": {}},
    })
}

/// File name and YAML text of each definition.
pub fn files() -> Vec<(String, String)> {
    let file = |definition: Json| {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        (format!("external-secrets.io_{plural}.yaml"), yaml::document(&definition))
    };
    all().into_iter().map(file).collect()
}

/// What differs between the definitions.
struct Definition {
    plural: &'static str,
    singular: &'static str,
    short: &'static str,
    kind: &'static str,
    namespaced: bool,
    version: Json,
}

impl Definition {
    fn into_json(self) -> Json {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.external-secrets.io", self.plural),
                "labels": {"external-secrets.io/component": "controller"},
            },
            "spec": {
                "group": "external-secrets.io",
                "names": {
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                    "plural": self.plural,
                    "singular": self.singular,
                    "shortNames": [self.short],
                    "categories": ["external-secrets"],
                },
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [self.version, v1beta1()],
            },
        })
    }
}

fn column(name: &str, kind: &str, path: &str) -> Json {
    json!({"name": name, "type": kind, "jsonPath": path})
}

const READY_REASON: &str = ".status.conditions[?(@.type==\"Ready\")].reason";
const READY_STATUS: &str = ".status.conditions[?(@.type==\"Ready\")].status";

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// `COFFER_UPDATE=1 cargo test -p coffer-operator` writes the files anew.
    #[test]
    fn the_files_are_fresh() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        for (name, text) in files() {
            let path = folder.join(&name);
            if std::env::var_os("COFFER_UPDATE").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == text, "{name} is stale: run COFFER_UPDATE=1 cargo test -p coffer-operator");
        }
    }
}
