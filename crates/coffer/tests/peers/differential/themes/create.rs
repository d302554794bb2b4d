//! Creation, beyond what the lifecycle of each kind tries.

use serde_json::{Value, json};

use super::super::protobuf::{Field, envelope, message, named};
use super::super::request::{PROTOBUF, Theme, YAML};

pub(super) fn themes() -> Vec<Theme> {
    vec![metadata(), kinds()]
}

/// The rules of metadata, with a ConfigMap that never comes to be.
fn metadata() -> Theme {
    let mut theme = Theme::new("metadata");
    let all = "/api/v1/namespaces/$NS/configmaps";
    let create = format!("{all}?dryRun=All");
    let long = "x".repeat(64);
    for name in ["a.b", "a..b", ".a", "a.", "-a", "a-", "a_b", "é", "a:b", "a%b", "0", "a/../b", " ", "a\n"]
    {
        theme.post(&create, json!({ "metadata": { "name": name } }));
    }
    for name in ["gen-", "gen-a", "-", "A", "a.", "gen--", ""] {
        theme.post(&create, json!({ "metadata": { "generateName": name } }));
    }
    theme
        .post(all, json!({ "metadata": { "generateName": format!("gen-{}", "x".repeat(100)) } }))
        .head_only();
    let label = |key: &str, value: Value| json!({ "metadata": { "name": "n", "labels": { key: value } } });
    for (key, value) in [
        ("a", json!("b")),
        ("a", json!("")),
        ("a", json!(null)),
        ("a", json!(1)),
        ("a", json!(["b"])),
        ("", json!("b")),
        ("a/b/c", json!("d")),
        ("/a", json!("b")),
        ("a/", json!("b")),
        ("Example.com/a", json!("b")),
        ("example.com/a", json!("b")),
        ("-a", json!("b")),
        ("a", json!("-b")),
        ("a", json!("b c")),
        ("a", json!(long)),
        (&long, json!("b")),
        ("a.b_c-d", json!("b.c_d-e")),
    ] {
        theme.post(&create, label(key, value));
    }
    for annotations in [
        json!({ "A/b": "" }),
        json!({ "a b": "c" }),
        json!({ "a": 1 }),
        json!({ "a": null }),
        json!({ "a": "x".repeat(262_144) }),
        json!([]),
        json!("x"),
    ] {
        let request = theme.post(&create, json!({ "metadata": { "name": "n", "annotations": annotations } }));
        if request.body.len() > 10_000 {
            request.head_only();
        }
    }
    let owner = |changes: Value| {
        let mut owner = json!({ "apiVersion": "example.com/v1", "kind": "Owner", "name": "p", "uid": "u" });
        for (key, value) in changes.as_object().expect("an object") {
            owner[key] = value.clone();
        }
        owner
    };
    for owners in [
        json!([owner(json!({}))]),
        json!([owner(json!({ "apiVersion": "" }))]),
        json!([owner(json!({ "apiVersion": "a/b/c" }))]),
        json!([owner(json!({ "kind": "", "name": "", "uid": "" }))]),
        json!([owner(json!({ "kind": "Event" }))]),
        json!([owner(json!({})), owner(json!({}))]),
        json!([
            owner(json!({ "controller": true })),
            owner(json!({ "controller": true, "uid": "v", "name": "q" }))
        ]),
        json!([owner(json!({ "controller": "x" }))]),
        json!([owner(json!({ "blockOwnerDeletion": true, "bogus": 1 }))]),
    ] {
        theme.post(&create, json!({ "metadata": { "name": "n", "ownerReferences": owners } }));
    }
    for finalizers in [
        json!(["kubernetes"]),
        json!(["orphan", "foregroundDeletion"]),
        json!(["example.com/x y"]),
        json!(["a/b/c"]),
        json!([""]),
        json!("x"),
        json!([1]),
        json!(["example.com/a", "bare.example.com"]),
    ] {
        theme.post(&create, json!({ "metadata": { "name": "n", "finalizers": finalizers } }));
    }
    for managed in [
        json!([{}]),
        json!([{ "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:data": {} } }]),
        json!([{ "manager": "m", "operation": "Other", "apiVersion": "v1" }]),
        json!([{ "manager": "m", "operation": "Update", "fieldsType": "FieldsV2" }]),
        json!("x"),
    ] {
        theme.post(
            &create,
            json!({ "metadata": { "name": "n", "managedFields": managed }, "data": { "a": "b" } }),
        );
    }
    for (field, value) in [
        ("creationTimestamp", json!("2001-02-03T04:05:06Z")),
        ("creationTimestamp", json!("yesterday")),
        ("creationTimestamp", json!(null)),
        ("deletionTimestamp", json!("2001-02-03T04:05:06Z")),
        ("deletionGracePeriodSeconds", json!(5)),
        ("deletionGracePeriodSeconds", json!("x")),
        ("uid", json!("given")),
        ("selfLink", json!("/x")),
        ("generation", json!(5)),
        ("generation", json!(1.5)),
        ("generation", json!("5")),
        ("clusterName", json!("c")),
        ("namespace", json!("")),
        ("namespace", json!("metadata")),
        ("resourceVersion", json!("")),
        ("resourceVersion", json!("x")),
        ("resourceVersion", json!(5)),
    ] {
        let mut object = json!({ "metadata": { "name": "n" } });
        object["metadata"][field] = value;
        theme.post(&create, object);
    }
    query_options(&mut theme, all);
    theme
}

fn query_options(theme: &mut Theme, all: &str) {
    let object = json!({ "metadata": { "name": "n" } });
    for query in [
        "dryRun=",
        "dryRun=none",
        "dryRun=All&dryRun=None",
        "dryRun=all",
        "dryRun=All&fieldManager=",
        "dryRun=All&fieldManager=a%20b",
        "dryRun=All&fieldManager=%00",
        "dryRun=All&fieldManager=%C3%A9",
        "dryRun=All&fieldManager=a&fieldManager=b",
        "dryRun=All&fieldValidation=",
        "dryRun=All&fieldValidation=strict",
        "dryRun=All&fieldValidation=Strict&fieldValidation=Warn",
        "dryRun=All&pretty=maybe",
        "dryRun=All&bogus=1",
        "dryRun=All&force=true",
        "dryRun=All&resourceVersion=5",
        "dryRun=All&timeout=1s",
        "dryRun=All&timeout=-1s",
        "dryRun=All&timeout=0",
        "dryRun=All&timeout=1h",
        "dryRun=All&timeout=x",
        "dryRun=All;a=b",
        "dryRun=All&%zz",
        "dryRun=All&kind=x&apiVersion=y",
    ] {
        theme.post(&format!("{all}?{query}"), &object);
    }
    let manager = "m".repeat(129);
    theme.post(&format!("{all}?dryRun=All&fieldManager={manager}"), &object);
    theme.post(&format!("{all}?dryRun=All"), &object).header("user-agent", "");
    theme.post(&format!("{all}?dryRun=All"), &object).header("user-agent", "a".repeat(200));
    theme.post(&format!("{all}?dryRun=All"), &object).header("user-agent", "curl/8.0");
    theme.post(&format!("{all}?dryRun=All"), &object).header("user-agent", "Mozilla/5.0 (X)");
    theme.post("/api/v1/namespaces/nowhere/configmaps", &object);
    theme.post("/api/v1/configmaps", &object);
    theme.post("/api/v1/namespaces/Bad_Name/configmaps", &object);
}

/// What only some kinds have.
fn kinds() -> Theme {
    let mut theme = Theme::new("validation");
    let dry = |path: &str| format!("{path}?dryRun=All");
    let maps = dry("/api/v1/namespaces/$NS/configmaps");
    for content in [
        json!({ "data": { "a": "b" }, "binaryData": { "a": "AA==" } }),
        json!({ "data": { "": "b" } }),
        json!({ "data": { "a/b": "c" } }),
        json!({ "data": { "..b": "e", ".a": "d" } }),
        json!({ "data": { "a": 1 } }),
        json!({ "data": { "a": null } }),
        json!({ "data": { "a": { "b": "c" } } }),
        json!({ "data": [] }),
        json!({ "data": "x" }),
        json!({ "binaryData": { "a": "!" } }),
        json!({ "binaryData": { "a": 1 } }),
        json!({ "binaryData": { "a": "AA" } }),
        json!({ "binaryData": { "a": null } }),
        json!({ "immutable": "x" }),
        json!({ "immutable": null, "data": {} }),
        json!({ "immutable": true, "data": null }),
    ] {
        let mut object = content;
        object["metadata"] = json!({ "name": "n" });
        theme.post(&maps, object);
    }
    let accounts = dry("/api/v1/namespaces/$NS/serviceaccounts");
    for content in [
        json!({ "secrets": [{ "name": "" }] }),
        json!({ "secrets": ["x"] }),
        json!({ "imagePullSecrets": [{ "bogus": 1 }] }),
        json!({ "automountServiceAccountToken": 1 }),
    ] {
        let mut object = content;
        object["metadata"] = json!({ "name": "n" });
        theme.post(&accounts, object);
    }
    let leases = dry("/apis/coordination.k8s.io/v1/namespaces/$NS/leases");
    for spec in [
        json!({}),
        json!(null),
        json!("x"),
        json!({ "leaseDurationSeconds": 0 }),
        json!({ "leaseDurationSeconds": -1, "leaseTransitions": -1 }),
        json!({ "leaseDurationSeconds": 3_000_000_000_i64 }),
        json!({ "leaseDurationSeconds": 1.5 }),
        json!({ "renewTime": "2001-02-03T04:05:06Z" }),
        json!({ "renewTime": "2001-02-03T04:05:06.123Z" }),
        json!({ "renewTime": "2001-02-03T04:05:06.123456+02:00" }),
        json!({ "renewTime": "x" }),
        json!({ "renewTime": 5 }),
        json!({ "holderIdentity": "" }),
        json!({ "strategy": "Odd" }),
        json!({ "preferredHolder": "p" }),
        json!({ "strategy": "OldestEmulationVersion", "preferredHolder": "p" }),
    ] {
        theme.post(&leases, json!({ "metadata": { "name": "n" }, "spec": spec }));
    }
    theme.post(&leases, json!({ "metadata": { "name": "n" } }));
    let namespaces = dry("/api/v1/namespaces");
    for content in [
        json!({ "metadata": { "name": "a.b" } }),
        json!({ "metadata": { "name": "differ-long-".to_owned() + &"x".repeat(60) } }),
        json!({ "metadata": { "name": "differ-n", "namespace": "x" } }),
        json!({ "metadata": { "name": "differ-n", "labels": { "kubernetes.io/metadata.name": "other" } } }),
        json!({ "metadata": { "name": "differ-n" }, "spec": { "finalizers": ["example.com/x"] } }),
        json!({ "metadata": { "name": "differ-n" }, "spec": { "finalizers": ["bare"] } }),
        json!({ "metadata": { "name": "differ-n" }, "status": { "phase": "Terminating" } }),
        json!({ "metadata": { "generateName": "differ-gen-" } }),
    ] {
        theme.post(&namespaces, content);
    }
    rbac(&mut theme);
    events(&mut theme);
    protobuf(&mut theme);
    theme.post(&maps, "metadata: {name: n}\ndata: {a: yes}\n").sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}\ndata: {a: \"yes\", b: 'no', c: |\n  x\n  y\n}\n").sent_as(YAML);
    theme
        .post(&maps, "metadata: {name: n}\ndata:\n  a: |\n    x\n    y\n  b: >-\n    x\n    y\n")
        .sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}\ndata: &x {a: b}\nbinaryData: *x\n").sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}\n---\nmetadata: {name: m}\n").sent_as(YAML);
    theme.post(&maps, "metadata: {name: 5}\n").sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}\ndata: {1: b, true: c, ~: d}\n").sent_as(YAML);
    theme.post(&maps, "# nothing\n").sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}\nmetadata: {name: m}\n").sent_as(YAML);
    theme
        .post(&format!("{maps}&fieldValidation=Strict"), "metadata: {name: n}\nmetadata: {name: m}\n")
        .sent_as(YAML);
    theme
        .post(&format!("{maps}&fieldValidation=Strict"), "metadata: {name: n, odd: 1}\nodd: 2\n")
        .sent_as(YAML);
    theme.post(&maps, "metadata: {name: n}").sent_as("application/yaml; charset=utf-8");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("application/json; charset=utf-8");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("application/JSON");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("application/json;");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("*/*");
    theme.post(&maps, r#"{"metadata":{"name":"n"}}"#).sent_as("application");
    for text in [
        r#"{"metadata":{"name":"n"},"data":{"a":"\ud800"}}"#,
        r#"{"metadata":{"name":"n"},"data":{"a":"\u00e9\/\b\t"}}"#,
        r#"{"metadata":{"name":"n"},"data":{"a":"\x"}}"#,
        r#"{"metadata":{"name":"n"},"data":{"a":"b"},}"#,
        r#"{"metadata":{"name":"n"}} {"metadata":{"name":"m"}}"#,
        r#"{"METADATA":{"Name":"n"},"Data":{"a":"b"}}"#,
        r#"{"metadata":{"name":"n","name":"m"}}"#,
        r#" 	{"metadata":{"name":"n"}}
"#,
        r#"{"metadata":{"name":"n"},"data":{"a":"b" "c":"d"}}"#,
        r#"{'metadata':{}}"#,
        r#"{"metadata":{"name":"n"},"immutable":TRUE}"#,
        r#"{"metadata":{"name":"n"},"data":{"a":"b"}"#,
        "{\"metadata\":{\"name\":\"n\"},\"data\":{\"a\":\"b\nc\"}}",
    ] {
        theme.post(&maps, text);
    }
    let mut broken = br#"{"metadata":{"name":"n"},"data":{"a":""#.to_vec();
    broken.extend([0xff, 0xfe]);
    broken.extend(br#""}}"#);
    theme.post(&maps, broken);
    theme
}

fn rbac(theme: &mut Theme) {
    let root = "/apis/rbac.authorization.k8s.io/v1";
    let roles = format!("{root}/namespaces/$NS/roles?dryRun=All");
    let cluster = format!("{root}/clusterroles?dryRun=All");
    for rule in [
        json!({}),
        json!({ "verbs": [] }),
        json!({ "verbs": ["get"] }),
        json!({ "verbs": ["get"], "apiGroups": [""] }),
        json!({ "verbs": ["get"], "resources": ["pods"] }),
        json!({ "verbs": ["get"], "nonResourceURLs": ["/x"] }),
        json!({ "verbs": ["get"], "nonResourceURLs": ["x"] }),
        json!({ "verbs": ["get"], "nonResourceURLs": ["/x*y"] }),
        json!({ "verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"] }),
        json!({ "verbs": "get" }),
        json!({ "verbs": [""], "apiGroups": ["*"], "resources": [""], "resourceNames": [""] }),
    ] {
        theme.post(&roles, json!({ "metadata": { "name": "n:a" }, "rules": [rule] }));
        theme.post(&cluster, json!({ "metadata": { "name": "differ:n" }, "rules": [rule] }));
    }
    for name in ["a:b", "a b", "a%b", "a/b", ".", "", "Ü"] {
        theme.post(&roles, json!({ "metadata": { "name": name } }));
    }
    theme.post(&cluster, json!({ "metadata": { "name": "n" }, "aggregationRule": {} }));
    theme.post(&cluster, json!({ "metadata": { "name": "n" }, "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a b": "c" } }] } }));
    theme.post(&cluster, json!({ "metadata": { "name": "n" }, "aggregationRule": { "clusterRoleSelectors": [{ "matchExpressions": [{ "key": "k", "operator": "Odd" }] }] } }));
    let bindings = format!("{root}/namespaces/$NS/rolebindings?dryRun=All");
    let cluster = format!("{root}/clusterrolebindings?dryRun=All");
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" });
    for (role, subject) in [
        (role.clone(), json!({ "kind": "User", "name": "" })),
        (role.clone(), json!({ "kind": "Robot", "name": "r" })),
        (role.clone(), json!({ "kind": "ServiceAccount", "name": "A_b" })),
        (role.clone(), json!({ "kind": "ServiceAccount", "name": "a" })),
        (role.clone(), json!({ "kind": "ServiceAccount", "name": "a", "namespace": "b", "apiGroup": "x" })),
        (role.clone(), json!({ "kind": "Group", "name": "g", "namespace": "b", "apiGroup": "x" })),
        (role, json!("x")),
        (json!({}), json!({ "kind": "User", "name": "u" })),
        (json!({ "kind": "Other", "name": "r" }), json!({ "kind": "User", "name": "u" })),
        (
            json!({ "kind": "ClusterRole", "name": "a/b", "apiGroup": "x" }),
            json!({ "kind": "User", "name": "u" }),
        ),
        (json!({ "kind": "ClusterRole", "name": "view" }), json!({ "kind": "User", "name": "u" })),
    ] {
        theme.post(&bindings, json!({ "metadata": { "name": "n" }, "roleRef": role, "subjects": [subject] }));
        theme.post(
            &cluster,
            json!({ "metadata": { "name": "differ:n" }, "roleRef": role, "subjects": [subject] }),
        );
    }
}

fn events(theme: &mut Theme) {
    let old = "/api/v1/namespaces/$NS/events?dryRun=All";
    for content in [
        json!({}),
        json!({ "involvedObject": { "namespace": "other" } }),
        json!({ "involvedObject": { "namespace": "differ-validation", "name": "x" } }),
        json!({ "involvedObject": { "kind": "Node", "name": "x" } }),
        json!({ "count": "x" }),
        json!({ "firstTimestamp": "x" }),
        json!({ "eventTime": "2001-02-03T04:05:06.000007Z" }),
        json!({ "series": { "count": 1 } }),
    ] {
        let mut object = content;
        object["metadata"] = json!({ "name": "n" });
        theme.post(old, object);
    }
    let new = "/apis/events.k8s.io/v1/namespaces/$NS/events?dryRun=All";
    let whole = || {
        json!({
            "metadata": { "name": "n" }, "eventTime": "2001-02-03T04:05:06.000007Z",
            "reportingController": "example.com/c", "reportingInstance": "i", "action": "A", "reason": "R",
            "type": "Normal", "regarding": { "kind": "Secret", "name": "s", "namespace": "differ-validation" },
        })
    };
    theme.post(new, whole());
    for (field, value) in [
        ("eventTime", json!(null)),
        ("reportingController", json!("")),
        ("reportingController", json!("bad name")),
        ("reportingInstance", json!("")),
        ("reportingInstance", json!("x".repeat(129))),
        ("action", json!("")),
        ("reason", json!("")),
        ("reason", json!("x".repeat(129))),
        ("type", json!("Odd")),
        ("note", json!("x".repeat(1025))),
        ("series", json!({ "count": 1, "lastObservedTime": "2001-02-03T04:05:06.000007Z" })),
        ("series", json!({ "count": 2 })),
        ("regarding", json!({ "namespace": "other" })),
        ("deprecatedCount", json!(1)),
        ("deprecatedFirstTimestamp", json!("2001-02-03T04:05:06Z")),
        ("deprecatedSource", json!({ "component": "c" })),
    ] {
        let mut object = whole();
        object[field] = value;
        theme.post(new, object);
    }
}

fn protobuf(theme: &mut Theme) {
    let maps = "/api/v1/namespaces/$NS/configmaps?dryRun=All";
    let one = |number| named("v1", "ConfigMap", "n", &[Field::Number(number, 1)]);
    for body in [
        named("v1", "ConfigMap", "n", &[]),
        named("v1", "Secret", "n", &[]),
        named("v2", "ConfigMap", "n", &[]),
        named("", "", "n", &[]),
        named("", "ConfigMap", "n", &[]),
        one(15),
        one(2),
        named("v1", "ConfigMap", "n", &[Field::Text(2, "\u{1}x")]),
        named("v1", "ConfigMap", "n", &[Field::Message(2, message(&[Field::Text(2, "no key")]))]),
        named("v1", "ConfigMap", "n", &[Field::Number(4, 5)]),
        envelope("v1", "ConfigMap", b"\x0a\xff".to_vec()),
        envelope("v1", "ConfigMap", Vec::new()),
        b"k8s\0\x0a\xff".to_vec(),
        b"k8s\0".to_vec(),
        b"k8t\0".to_vec(),
    ] {
        theme.post(maps, body).sent_as(PROTOBUF);
    }
    theme.post(&format!("{maps}&fieldValidation=Strict"), one(15)).sent_as(PROTOBUF);
    theme
        .post(maps, named("v1", "ConfigMap", "n", &[]))
        .sent_as("application/vnd.kubernetes.protobuf;stream=watch");
}
