//! A stock kube-apiserver and coffer on one etcd, with one EncryptionConfiguration: each reads all
//! that the other wrote, and writes the same.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl};
use serde_json::{Value, json};

use super::loud;
use coffer_sim::marks::Mark;

const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// What both servers encrypt.
const ENCRYPTED: [&str; 5] =
    ["secrets", "configmaps", "serviceaccounts", "leases.coordination.k8s.io", "widgets.example.com"];

/// `size` bytes in which every value occurs.
fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at.wrapping_mul(31) ^ (at >> 8)) as u8).collect()
}

fn object(version: &str, kind: &str, name: &str, members: Value) -> Value {
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    for (name, member) in members.as_object().expect("members") {
        if name == "metadata" {
            for (name, member) in member.as_object().expect("members") {
                object["metadata"][name] = member.clone();
            }
        } else {
            object[name] = member.clone();
        }
    }
    object
}

fn secrets() -> Vec<Value> {
    let secret = |name: &str, members| object("v1", "Secret", &format!("x-{name}"), members);
    let encoded = |data: &[u8]| STANDARD.encode(data);
    let mut secrets: Vec<Value> = [0, 1, 15, 16, 17, 31, 32, 33, 255, 4095, 4096, 65_537, 700_000]
        .into_iter()
        .map(|size| secret(&format!("size-{size}"), json!({"data": {"value": encoded(&bytes(size))}})))
        .collect();
    let text = encoded(b"text");
    let config = encoded(br#"{"auths":{"registry.example":{"auth":"dTpw"}}}"#);
    let old_config = encoded(br#"{"registry.example":{"auth":"dTpw"}}"#);
    secrets.extend([
        secret("empty", json!({})),
        secret("many", json!({"data": (0..200).map(|at| (format!("key-{at}"), json!(encoded(&bytes(at))))).collect::<serde_json::Map<_, _>>()})),
        secret("basic", json!({"type": "kubernetes.io/basic-auth", "data": {"username": text, "password": text}})),
        secret("ssh", json!({"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": text}})),
        secret("tls", json!({"type": "kubernetes.io/tls", "data": {"tls.crt": text, "tls.key": ""}})),
        secret("dockerconfigjson", json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": config}})),
        secret("dockercfg", json!({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": old_config}})),
        secret("bootstrap", json!({"type": "bootstrap.kubernetes.io/token", "data": {"token-id": text}})),
        secret("own-type", json!({"type": "example.com/own", "stringData": {"text": "ünïcödé \u{1f511}\n"}})),
        secret("immutable", json!({"immutable": true, "data": {"a": text}})),
        secret("mutable", json!({"immutable": false, "data": {"a": text}})),
        secret(
            "metadata",
            json!({"data": {"a": text}, "metadata": {
                "labels": {"app": "web", "example.com/tier": "back"},
                "annotations": {"note": "ünïcödé \u{1f511}", "empty": ""},
                "finalizers": ["example.com/hold"],
            }}),
        ),
    ]);
    secrets
}

fn others() -> Vec<Value> {
    vec![
        object(
            "v1",
            "ConfigMap",
            "x-config",
            json!({"data": {"a": "b", "empty": ""}, "binaryData": {"c": STANDARD.encode(bytes(300))}, "immutable": true}),
        ),
        object("v1", "ConfigMap", "x-empty", json!({})),
        object(
            "v1",
            "ServiceAccount",
            "x-account",
            json!({"automountServiceAccountToken": false, "secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]}),
        ),
        object(
            "coordination.k8s.io/v1",
            "Lease",
            "x-lease",
            json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 3, "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.678901Z"}}),
        ),
    ]
}

fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "ratio": {"type": "number"},
            "mode": {"type": "string", "enum": ["Slow", "Fast"], "default": "Slow"},
            "names": {"type": "array", "items": {"type": "string"}},
            "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
    }});
    object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &format!("{plural}.example.com"),
        json!({"spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        }}),
    )
}

fn custom(kind: &str) -> Value {
    object(
        "example.com/v1",
        kind,
        "x-custom",
        json!({"spec": {
            "size": 9_007_199_254_740_993_i64, "ratio": 1.5, "names": ["a", "ü"], "limits": {"cpu": 2, "memory": "1Gi"},
            "free": {"deep": [{"er": null}, 1.0, true]},
            "unknown": "pruned",
        }}),
    )
}

/// Documents one after the other.
fn list(items: Vec<Value>) -> String {
    items.iter().map(|item| format!("---\n{item}\n")).collect()
}

/// Creates everything in `namespace`, and changes some of it in several ways.
fn write(kubectl: &Kubectl, namespace: &str) {
    let create = |items: Vec<Value>| {
        let output = kubectl.run_with_input(&["create", "-n", namespace, "-f", "-"], &list(items));
        assert_eq!(output.code, 0, "{namespace}: {}", output.stderr);
    };
    kubectl.ok(&["create", "namespace", namespace]);
    let mut all = secrets();
    all.extend(others());
    create(all);
    kubectl.ok(&["label", "-n", namespace, "secret", "x-size-16", "x-tls", "colour=red"]);
    kubectl.ok(&[
        "patch",
        "-n",
        namespace,
        "secret",
        "x-basic",
        "-p",
        r#"{"stringData":{"password":"new"}}"#,
    ]);
    kubectl.ok(&["annotate", "-n", namespace, "configmap", "x-empty", "note=added"]);
}

fn write_custom(kubectl: &Kubectl, namespace: &str, kind: &str) {
    let item = custom(kind).to_string();
    let mut last = String::new();
    let started = std::time::Instant::now();
    while started.elapsed().as_secs() < 20 {
        // Unknown fields are pruned, not refused.
        let arguments = ["create", "--validate=ignore", "-n", namespace, "-f", "-"];
        let output = kubectl.run_with_input(&arguments, &item);
        if output.code == 0 {
            return;
        }
        last = output.stderr;
    }
    panic!("{kind} in {namespace}: {last}");
}

/// The test's objects of a list, by name, as the server sends them.
fn objects(kubectl: &Kubectl, path: &str) -> BTreeMap<String, Value> {
    let output = kubectl.run(&["get", "--raw", path]);
    let list: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items
        .into_iter()
        .map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item))
        .filter(|(name, _)| name.starts_with("x-"))
        .collect()
}

/// What does not depend on who wrote it, when, and where.
fn essence(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["uid", "resourceVersion", "creationTimestamp", "namespace"] {
        metadata.remove(field).expect(field);
    }
    // A server that kept none shows as a difference to the other.
    for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry.as_object_mut().expect("an entry").remove("time").expect("a time");
    }
    object
}

fn same(what: &str, left: &BTreeMap<String, Value>, right: &BTreeMap<String, Value>) -> Result<(), String> {
    let names = |map: &BTreeMap<String, Value>| map.keys().cloned().collect::<Vec<_>>();
    if names(left) != names(right) {
        return Err(format!("{what}: {:?} and {:?}", names(left), names(right)));
    }
    for (name, object) in left {
        if object != &right[name] {
            let short = |value: &Value| value.to_string().chars().take(3000).collect::<String>();
            return Err(format!("{what} {name}:\n{}\n{}", short(object), short(&right[name])));
        }
    }
    Ok(())
}

const PATHS: [(&str, &str, usize); 6] = [
    ("/api/v1", "secrets", 25),
    ("/api/v1", "configmaps", 2),
    ("/api/v1", "serviceaccounts", 1),
    ("/apis/coordination.k8s.io/v1", "leases", 1),
    ("/apis/example.com/v1", "widgets", 1),
    ("/apis/example.com/v1", "gadgets", 1),
];

fn interchange(provider: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let etcd = Etcd::start();
    let config = directory.path().join("encryption.yaml");
    let settings = match provider {
        "identity" => json!({}),
        _ => json!({"keys": [{"name": "key1", "secret": KEY}]}),
    };
    let text = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ENCRYPTED, "providers": [{provider: settings}]}],
    });
    std::fs::write(&config, text.to_string()).expect("written");
    let options = ApiserverOptions { encryption: Some(&config), ..ApiserverOptions::default() };
    let original = KubeApiserver::start(&etcd, &options);
    let coffer = Coffer::apiserver(loud, &etcd, original.pki(), &options);
    let (theirs, ours) = (original.kubectl(), coffer.kubectl());

    write(&theirs, "from-original");
    write(&ours, "from-coffer");
    // Each definition is made through one server and used through the other.
    theirs.apply(&definition("Widget").to_string());
    ours.apply(&definition("Gadget").to_string());
    for kind in ["Widget", "Gadget"] {
        write_custom(&ours, "from-coffer", kind);
        write_custom(&theirs, "from-original", kind);
    }

    for (base, plural, expected) in PATHS {
        let mut written = Vec::new();
        for namespace in ["from-original", "from-coffer"] {
            let path = format!("{base}/namespaces/{namespace}/{plural}");
            let started = std::time::Instant::now();
            // Each server hears of the other's last writes through its watch of etcd.
            let found = loop {
                let (read, reread) = (objects(&theirs, &path), objects(&ours, &path));
                let last = match same(&path, &read, &reread) {
                    Ok(()) if read.len() == expected => break read,
                    Ok(()) => format!("{path}: {} objects", read.len()),
                    Err(difference) => difference,
                };
                assert!(started.elapsed().as_secs() < 20, "{provider}: {last}");
            };
            written.push(found);
        }
        let [original, coffer] = [0, 1].map(|at| -> BTreeMap<String, Value> {
            written[at].iter().map(|(name, object)| (name.clone(), essence(object.clone()))).collect()
        });
        if let Err(difference) = same(plural, &original, &coffer) {
            panic!("{provider}: original, then coffer, wrote {difference}");
        }
    }
    for path in ["/api/v1/namespaces/from-original", "/api/v1/namespaces/from-coffer"] {
        let get = |kubectl: &Kubectl| -> Value {
            serde_json::from_str(&kubectl.ok(&["get", "--raw", path])).expect("JSON")
        };
        assert_eq!(get(&theirs), get(&ours), "{provider}");
    }
    let prefix = match provider {
        "identity" => "k8s\0".to_owned(),
        _ => format!("k8s:enc:{provider}:v1:key1:"),
    };
    for namespace in ["from-original", "from-coffer"] {
        for key in ["secrets", "configmaps", "serviceaccounts", "leases"] {
            let name = match key {
                "secrets" => "x-size-17",
                "configmaps" => "x-config",
                "serviceaccounts" => "x-account",
                _ => "x-lease",
            };
            let value = etcd.value(&format!("/registry/{key}/{namespace}/{name}"));
            assert!(value.starts_with(prefix.as_bytes()), "{key} of {namespace}");
        }
        let value = etcd.value(&format!("/registry/example.com/widgets/{namespace}/x-custom"));
        let json = provider == "identity" && value.starts_with(b"{");
        assert!(json || value.starts_with(prefix.as_bytes()), "widgets of {namespace}");
    }
    Mark::new(KEY).assert_absent("the log", coffer.log());
}

#[test]
fn each_reads_what_the_other_wrote_identity() {
    interchange("identity");
}

#[test]
fn each_reads_what_the_other_wrote_aescbc() {
    interchange("aescbc");
}

#[test]
fn each_reads_what_the_other_wrote_aesgcm() {
    interchange("aesgcm");
}

#[test]
fn each_reads_what_the_other_wrote_secretbox() {
    interchange("secretbox");
}
