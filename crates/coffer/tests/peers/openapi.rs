//! OpenAPI documents beside kube-apiserver's, and `kubectl explain` on both.
//!
//! Descriptions are upstream's prose and not served for built-in kinds; everything else is compared.

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl};
use serde_json::{Map, Value};

use crate::quiet;

/// A definition with what a schema can hold.
const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.parts.example.com}
spec:
  group: parts.example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    selectableFields: [{jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        description: A gadget.
        required: [spec]
        properties:
          spec:
            type: object
            description: What is wanted.
            properties:
              size: {type: integer, format: int32, minimum: 1, default: 3, description: How large.}
              port: {x-kubernetes-int-or-string: true, description: A port.}
              maker: {type: string, nullable: true, default: somebody}
              glue: {type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              holder: {type: object, x-kubernetes-embedded-resource: true, properties: {kind: {type: string, enum: [Box]}}}
              loose:
                type: array
                items: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: string}}}
              marks: {type: object, additionalProperties: {type: integer, nullable: true}}
              limits:
                type: object
                required: [lowest]
                properties:
                  lowest: {type: number, nullable: true}
                  name: {type: string, maxLength: 5, minLength: 1, pattern: "^a"}
                  all: {type: array, maxItems: 3, minItems: 1, items: {type: number, maximum: 1.5, exclusiveMaximum: true, multipleOf: 0.5}}
              parts:
                type: array
                description: What it is made of.
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, color: {type: string, enum: [red, blue]}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

/// What differs in both versions, and why: the way to it holds these words.
const DIFFERENCES: &[(&str, &str)] = &[
    ("/api/v1/namespaces/{name} delete responses", "the answer is the namespace, and ours says so"),
    (" x-kubernetes-unions", "no client reads it"),
    ("PersistentVolumeClaimStatus properties allocatedResourceStatuses x-kubernetes-map-type", GRANULAR),
    ("PersistentVolumeSpec properties claimRef x-kubernetes-map-type", GRANULAR),
    ("PodDisruptionBudgetSpec properties selector x-kubernetes-patch-strategy", "the default is not told"),
    ("EndpointSlice properties addressType enum", CONSTANTS),
    ("HTTPIngressPath properties pathType enum", CONSTANTS),
    ("DeviceSubRequest properties allocationMode enum", CONSTANTS),
    ("ExactDeviceRequest properties allocationMode enum", CONSTANTS),
];
const GRANULAR: &str = "the default of maps is not told";
const CONSTANTS: &str = "the constants are not found in the sources yet";

/// The same for version 3 alone.
const DIFFERENCES_OF_VERSION_3: &[(&str, &str)] = &[
    ("AzureDiskVolumeSource properties cachingMode", "the marker names a constant"),
    ("AzureDiskVolumeSource properties kind", "the marker names a constant"),
];

/// Fields of a custom resource that are every object's are described in upstream's prose.
const OWN_FIELDS: &[&str] = &["apiVersion", "kind", "metadata", "items"];

/// A parameter of an alpha feature that coffer does not have.
const NOT_SERVED: &str = "shardSelector";

/// Where `kubectl explain` reads the protobuf of version 2.
const VERSION_2: &str = "plaintext-openapiv2";

/// Kinds whose fields are asked for in all depth.
const EXPLAINED: &[&str] = &[
    "secret",
    "configmap",
    "serviceaccount",
    "namespace",
    "node",
    "pod",
    "event",
    "lease",
    "clusterrole",
    "rolebinding",
    "customresourcedefinition.spec.names",
    "gadget",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_documents_are_those_of_kube_apiserver() {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.expect("etcd");
    let coffer = tokio::task::spawn_blocking(|| Coffer::up(quiet, &[]));
    let stock = tokio::task::spawn_blocking(move || {
        (KubeApiserver::start(&etcd, &ApiserverOptions::default()), etcd)
    });
    let (coffer, (stock, _etcd)) = (coffer.await.expect("coffer"), stock.await.expect("kube-apiserver"));
    tokio::task::spawn_blocking(move || {
        let (theirs, ours) = (stock.kubectl(), Kubectl::new(coffer.kubeconfig()));
        for kubectl in [&theirs, &ours] {
            let made = kubectl.run_with_input(&["create", "-f", "-"], DEFINITION);
            assert_eq!(made.code, 0, "{}", made.stderr);
            let wait = ["wait", "--for=condition=Established", "crd/gadgets.parts.example.com"];
            assert_eq!(kubectl.run(&wait).code, 0);
        }
        let mut failures = documents(&theirs, &ours);
        failures.extend(version_2(&theirs, &ours));
        for output in ["plaintext", VERSION_2] {
            failures.extend(EXPLAINED.iter().filter_map(|kind| explained(kind, output, &theirs, &ours)));
        }
        assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
    })
    .await
    .expect("compared");
}

/// Every document that coffer has.
fn documents(theirs: &Kubectl, ours: &Kubectl) -> Vec<String> {
    let mut found_all = Vec::new();
    let index = raw(ours, "/openapi/v3");
    let known = raw(theirs, "/openapi/v3");
    let paths = index["paths"].as_object().expect("paths");
    assert!(paths.contains_key("apis/parts.example.com/v1"));
    // The operator's kinds are not installed on the other.
    for path in paths.keys().filter(|path| known["paths"].get(path.as_str()).is_some()) {
        let (expected, found) =
            (raw(theirs, &format!("/openapi/v3/{path}")), raw(ours, &format!("/openapi/v3/{path}")));
        let part = |document: &Value, pointer: &str| -> Map<String, Value> {
            document.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        assert!(!part(&found, "/paths").is_empty(), "{path}");
        for pointer in ["/paths", "/components/schemas"] {
            let expected = part(&expected, pointer);
            for (name, value) in part(&found, pointer) {
                let custom = name.starts_with("com.example.");
                let wanted = expected.get(&name).map(|wanted| plain(wanted, custom));
                compare(
                    &format!("{path} {name}"),
                    wanted.as_ref(),
                    Some(&plain(&value, custom)),
                    &mut found_all,
                );
            }
        }
    }
    unexpected(found_all, DIFFERENCES_OF_VERSION_3)
}

/// The one document of version 2.
fn version_2(theirs: &Kubectl, ours: &Kubectl) -> Vec<String> {
    let (expected, found) = (raw(theirs, "/openapi/v2"), raw(ours, "/openapi/v2"));
    let mut all = Vec::new();
    for part in ["swagger", "info", "security", "securityDefinitions"] {
        compare(part, expected.get(part), found.get(part), &mut all);
    }
    for part in ["paths", "definitions"] {
        let members = found[part].as_object().expect("an object");
        assert!(50 < members.len(), "{part}: {}", members.len());
        // The operator's kinds are not installed on the other.
        for (name, value) in members.iter().filter(|(name, _)| !name.contains("external")) {
            let custom = name.starts_with("com.example.");
            let wanted =
                expected[part].get(name).map(|wanted| plain(&dereferenced(wanted, &expected), custom));
            compare(name, wanted.as_ref(), Some(&plain(value, custom)), &mut all);
        }
    }
    unexpected(all, &[])
}

/// With shared parameters in their places, and what is a set in one order.
fn dereferenced(value: &Value, document: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let shared = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = shared.and_then(|text| text.strip_prefix("#/parameters/")) {
                return document["parameters"][name].clone();
            }
            members.iter().map(|(key, value)| (key.clone(), dereferenced(value, document))).collect()
        }
        Value::Array(items) => items.iter().map(|item| dereferenced(item, document)).collect(),
        other => other.clone(),
    }
}

/// What is not among the differences that are known, and which of them are no more.
fn unexpected(found: Vec<(String, String)>, own: &[(&str, &str)]) -> Vec<String> {
    let known: Vec<&(&str, &str)> = DIFFERENCES.iter().chain(own).collect();
    let mut used = vec![false; known.len()];
    let mut failures = Vec::new();
    for (title, text) in found {
        let words: Vec<&str> = title.split(' ').collect();
        let prose = match &words[..] {
            [.., "properties", field, "description"] => OWN_FIELDS.contains(field),
            [.., name, "description"] => name.ends_with("List"),
            _ => false,
        };
        // Upstream names it for the groups that it has met so far, which changes from start to start.
        let unsteady = title.contains("meta.v1.DeleteOptions x-kubernetes-group-version-kind");
        if unsteady || (prose && title.contains("com.example.")) {
            continue;
        }
        match known.iter().position(|(words, _)| title.contains(words)) {
            Some(index) => used[index] = true,
            None => failures.push(format!("{title}{text}")),
        }
    }
    let idle = known.iter().zip(used).filter(|(_, used)| !used);
    failures.extend(idle.map(|((words, _), _)| format!("{words} no longer differs")));
    failures
}

/// Where two values differ, as deep as can be told.
fn compare(at: &str, expected: Option<&Value>, found: Option<&Value>, all: &mut Vec<(String, String)>) {
    match (expected, found) {
        _ if expected == found => {}
        (Some(Value::Object(expected)), Some(Value::Object(found))) => {
            let keys: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                compare(&format!("{at} {key}"), expected.get(key), found.get(key), all);
            }
        }
        _ => {
            let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let text =
                format!("\n    kube-apiserver {}\n    coffer         {}", shown(expected), shown(found));
            all.push((at.to_owned(), text));
        }
    }
}

/// Without descriptions, unless they are the definition's own, and with one way to write a reference.
fn plain(value: &Value, described: bool) -> Value {
    match value {
        Value::Object(members) => {
            let mut plain_members: Map<String, Value> = members
                .iter()
                .filter(|(key, value)| key.as_str() != "description" || !value.is_string() || described)
                .map(|(key, value)| (key.clone(), plain(value, described)))
                .collect();
            // Next to a description a reference stands in a list of one.
            if let Some(Value::Array(all)) = plain_members.get("allOf")
                && let [Value::Object(only)] = &all[..]
            {
                let only = only.clone();
                plain_members.remove("allOf");
                plain_members.extend(only);
            }
            plain_members.into()
        }
        Value::Array(items) => {
            let served = items.iter().filter(|item| item["name"] != NOT_SERVED);
            let mut items: Vec<Value> = served.map(|item| plain(item, described)).collect();
            let set = items.iter().all(Value::is_string)
                || ["group", "in"].iter().any(|member| items.iter().all(|item| item.get(member).is_some()));
            if set {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        other => other.clone(),
    }
}

fn raw(kubectl: &Kubectl, path: &str) -> Value {
    let answer = kubectl.run(&["get", "--raw", path]);
    assert_eq!(answer.code, 0, "{path}: {}", answer.stderr);
    serde_json::from_str(&answer.stdout).expect("JSON")
}

fn explained(kind: &str, output: &str, theirs: &Kubectl, ours: &Kubectl) -> Option<String> {
    let ask = |kubectl: &Kubectl| {
        let answer = kubectl.run(&["explain", kind, "--recursive", "--output", output]);
        let fields = answer.stdout.split_once("FIELDS:").map(|(_, fields)| fields.to_owned());
        fields.unwrap_or_else(|| format!("{} {}", answer.code, answer.stderr))
    };
    let (expected, found) = (ask(theirs), ask(ours));
    let line = expected.lines().zip(found.lines()).find(|(one, other)| one != other);
    (expected != found).then(|| format!("explain {kind} --output {output}: {line:?}"))
}
