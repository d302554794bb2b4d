//! The bootstrap policy of a new cluster, beside a stock kube-apiserver's.

use std::collections::BTreeMap;

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl};
use serde_json::Value;

use crate::quiet;

/// What coffer adds for its own operator and node.
const OURS: &str = "coffer:";

#[test]
fn the_policy_is_the_originals() {
    let etcd = Etcd::start();
    let server = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    let ours = Coffer::up(quiet, &[]);
    for kind in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        let expected = policy(&server.kubectl(), kind);
        let mut found = policy(&ours.kubectl(), kind);
        found.retain(|name, _| !name.contains(OURS) && !is_of_a_custom_resource(name));
        assert!(expected.len() > 5, "{kind}: the original has only {}", expected.len());
        for (name, object) in &expected {
            assert_eq!(found.get(name), Some(object), "{kind} {name}");
        }
        let more: Vec<&String> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
        assert!(more.is_empty(), "{kind}: {more:?}");
    }
}

fn is_of_a_custom_resource(name: &str) -> bool {
    name.contains("external-secrets")
}

/// Objects by namespace and name, without what differs from server to server.
fn policy(kubectl: &Kubectl, kind: &str) -> BTreeMap<String, Value> {
    let text = kubectl.ok(&["get", kind, "-A", "-o", "json"]);
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|item| {
            let mut item = item.clone();
            if item.get("aggregationRule").is_some() {
                // Filled by a controller that does not run beside the stock server.
                item["rules"] = Value::Null;
            }
            let metadata = item["metadata"].as_object_mut().expect("metadata");
            for field in ["uid", "creationTimestamp", "resourceVersion", "managedFields"] {
                metadata.remove(field);
            }
            let name = format!(
                "{}/{}",
                metadata.get("namespace").and_then(Value::as_str).unwrap_or_default(),
                metadata["name"].as_str().expect("a name")
            );
            (name, item)
        })
        .collect()
}
