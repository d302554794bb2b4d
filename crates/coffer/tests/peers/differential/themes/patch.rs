//! Patches of each type: what they do, and what is refused.

use serde_json::{Value, json};

use super::super::request::{CBOR, JSON, MERGE, PATCH, STRATEGIC, Theme, YAML};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("patch");
    let all = "/api/v1/namespaces/$NS/configmaps";
    let one = format!("{all}/c");
    theme.post(all, json!({ "metadata": { "name": "c", "labels": { "a": "b" }, "annotations": { "x/y": "z" } }, "data": { "a": "1", "b": "2", "a/b": "3" } }));
    theme.post(all, json!({ "metadata": { "name": "c", "labels": { "a": "b" }, "annotations": { "x/y": "z" } }, "data": { "a": "1", "b": "2", "c~d": "3" } }));
    theme.post(all, json!({ "metadata": { "name": "c", "labels": { "a": "b" }, "annotations": { "x/y": "z" } }, "data": { "a": "1", "b": "2" } }));
    json_patches(&mut theme, &one);
    merge_patches(&mut theme, &one);
    strategic_patches(&mut theme, &one);
    options(&mut theme, &one);
    lists(&mut theme);
    theme
}

fn json_patches(theme: &mut Theme, one: &str) {
    for operations in [
        json!([]),
        json!([{ "op": "add", "path": "/data/c", "value": "3" }]),
        json!([{ "op": "add", "path": "/data/c", "value": 3 }]),
        json!([{ "op": "add", "path": "/data/c", "value": null }]),
        json!([{ "op": "add", "path": "/data/c" }]),
        json!([{ "op": "replace", "path": "/data/a", "value": "9" }]),
        json!([{ "op": "replace", "path": "/data/none", "value": "9" }]),
        json!([{ "op": "replace", "path": "/none/none", "value": "9" }]),
        json!([{ "op": "remove", "path": "/data/a" }]),
        json!([{ "op": "remove", "path": "/data/a" }]),
        json!([{ "op": "remove", "path": "/none/a" }]),
        json!([{ "op": "move", "from": "/data/b", "path": "/data/m" }]),
        json!([{ "op": "move", "from": "/data/none", "path": "/data/m" }]),
        json!([{ "op": "copy", "from": "/data/m", "path": "/data/n" }]),
        json!([{ "op": "copy", "path": "/data/n" }]),
        json!([{ "op": "test", "path": "/data/m", "value": "2" }]),
        json!([{ "op": "test", "path": "/data/m", "value": "3" }]),
        json!([{ "op": "test", "path": "/data/none", "value": null }]),
        json!([{ "op": "test", "path": "/metadata/annotations/x~1y", "value": "z" }]),
        json!([{ "op": "add", "path": "/metadata/annotations/p~1q", "value": "z" }]),
        json!([{ "op": "add", "path": "", "value": {} }]),
        json!([{ "op": "replace", "path": "", "value": {} }]),
        json!([{ "op": "remove", "path": "" }]),
        json!([{ "op": "test", "path": "", "value": {} }]),
        json!([{ "op": "add", "path": "data/c", "value": "3" }]),
        json!([{ "op": "fly", "path": "/data/c" }]),
        json!([{ "path": "/data/c" }]),
        json!([{ "op": "add", "value": "3" }]),
        json!([{ "op": 5, "path": "/data/c" }]),
        json!([5]),
        json!(["x"]),
        json!([null]),
        json!({}),
        json!("x"),
        json!(null),
        json!([{ "op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"] }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b" }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/0", "value": "example.com/c" }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/9", "value": "example.com/d" }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/x", "value": "example.com/d" }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/-1", "value": "example.com/d" }]),
        json!([{ "op": "remove", "path": "/metadata/finalizers/1" }]),
        json!([{ "op": "remove", "path": "/metadata/finalizers/7" }]),
        json!([{ "op": "remove", "path": "/metadata/finalizers" }]),
        json!([{ "op": "replace", "path": "/metadata/name", "value": "d" }]),
        json!([{ "op": "replace", "path": "/metadata/resourceVersion", "value": "1" }]),
        json!([{ "op": "replace", "path": "/metadata/uid", "value": "1" }]),
        json!([{ "op": "replace", "path": "/metadata", "value": {} }]),
        json!([{ "op": "replace", "path": "/kind", "value": "Secret" }]),
        json!([{ "op": "replace", "path": "/apiVersion", "value": "v2" }]),
        json!([{ "op": "add", "path": "/bogus", "value": 1 }]),
        json!([{ "op": "replace", "path": "/metadata/labels/a", "value": "not valid" }]),
        json!([{ "op": "replace", "path": "/data", "value": [] }]),
        json!([{ "op": "add", "path": "/data/c", "value": "3", "extra": true }]),
    ] {
        theme.patch(one, PATCH, operations);
    }
    theme.patch(one, PATCH, "[");
    theme.patch(one, PATCH, "");
    theme.patch(one, PATCH, "[]x");
    let many: Vec<Value> =
        (0..10_001).map(|_| json!({ "op": "test", "path": "/kind", "value": "ConfigMap" })).collect();
    theme.patch(one, PATCH, Value::from(many));
}

fn merge_patches(theme: &mut Theme, one: &str) {
    for patch in [
        json!({}),
        json!({ "data": { "a": "1", "n": null } }),
        json!({ "data": { "a": "1" } }),
        json!({ "data": { "x": {} } }),
        json!({ "data": { "x": ["y"] } }),
        json!({ "data": "x" }),
        json!({ "data": null }),
        json!({ "data": { "a": "1" }, "binaryData": { "a": "AA==" } }),
        json!({ "data": { "a": "1" } }),
        json!({ "metadata": null }),
        json!({ "metadata": { "labels": null } }),
        json!({ "metadata": { "labels": { "a": "not valid" } } }),
        json!({ "metadata": { "labels": { "a": 1 } } }),
        json!({ "metadata": { "name": null } }),
        json!({ "metadata": { "namespace": "other" } }),
        json!({ "metadata": { "uid": "x" } }),
        json!({ "metadata": { "uid": null } }),
        json!({ "metadata": { "creationTimestamp": null } }),
        json!({ "metadata": { "creationTimestamp": "2001-02-03T04:05:06Z" } }),
        json!({ "metadata": { "deletionTimestamp": "2001-02-03T04:05:06Z" } }),
        json!({ "metadata": { "resourceVersion": "1" } }),
        json!({ "metadata": { "resourceVersion": "x" } }),
        json!({ "metadata": { "resourceVersion": null } }),
        json!({ "metadata": { "managedFields": [] } }),
        json!({ "metadata": { "managedFields": [{}] } }),
        json!({ "metadata": { "managedFields": null } }),
        json!({ "metadata": { "generation": 5 } }),
        json!({ "metadata": { "finalizers": ["bare"] } }),
        json!({ "metadata": { "ownerReferences": [{}] } }),
        json!({ "kind": "Secret" }),
        json!({ "kind": null }),
        json!({ "apiVersion": "v2" }),
        json!({ "apiVersion": "example.com/v1" }),
        json!({ "unknown": { "x": 1 } }),
        json!([]),
        json!("x"),
        json!(null),
        json!(1),
    ] {
        theme.patch(one, MERGE, patch);
    }
    for text in [
        "{",
        "",
        "{}x",
        "data: {}",
        "{\"data\":{\"a\":\"1\",\"a\":\"2\"}}",
        "{\"data\":{\"a\":\"1\"},\"data\":{\"b\":\"2\"}}",
    ] {
        theme.patch(one, MERGE, text);
        theme.patch(&format!("{one}?fieldValidation=Strict"), MERGE, text);
    }
}

fn strategic_patches(theme: &mut Theme, one: &str) {
    for patch in [
        json!({}),
        json!({ "data": { "a": "2" } }),
        json!({ "data": { "a": null } }),
        json!({ "data": { "$patch": "replace", "z": "1" } }),
        json!({ "data": { "$patch": "merge", "y": "1" } }),
        json!({ "data": { "$patch": "delete" } }),
        json!({ "data": { "$patch": 5 } }),
        json!({ "$patch": "replace", "metadata": { "name": "c" }, "data": { "r": "1" } }),
        json!({ "data": { "$retainKeys": ["r"], "s": "1" } }),
        json!({ "data": "x" }),
        json!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"] } }),
        json!({ "metadata": { "finalizers": ["example.com/c"] } }),
        json!({ "metadata": { "$setElementOrder/finalizers": ["example.com/c", "example.com/a", "example.com/b"], "finalizers": ["example.com/c"] } }),
        json!({ "metadata": { "$setElementOrder/finalizers": ["example.com/x"], "finalizers": ["example.com/c"] } }),
        json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b", "example.com/c"] } }),
        json!({ "metadata": { "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Owner", "name": "p", "uid": "1" }] } }),
        json!({ "metadata": { "ownerReferences": [{ "uid": "1", "name": "q" }, { "apiVersion": "example.com/v1", "kind": "Owner", "name": "r", "uid": "2" }] } }),
        json!({ "metadata": { "ownerReferences": [{ "name": "q" }] } }),
        json!({ "metadata": { "ownerReferences": [{ "$patch": "delete", "uid": "1" }] } }),
        json!({ "metadata": { "ownerReferences": [{ "$patch": "replace" }] } }),
        json!({ "metadata": { "ownerReferences": "x" } }),
        json!({ "unknown": 1 }),
        json!({ "metadata": { "labels": { "a": "not valid" } } }),
        json!([]),
        json!(null),
    ] {
        theme.patch(one, STRATEGIC, patch);
    }
    theme.patch(one, STRATEGIC, "{");
    theme.patch(one, STRATEGIC, "");
    theme.patch(one, STRATEGIC, "{\"data\":{\"a\":\"1\",\"a\":\"2\"}}");
    theme.patch(&format!("{one}?fieldValidation=Strict"), STRATEGIC, r#"{"unknown":1,"metadata":{"odd":2}}"#);
    theme.patch(&format!("{one}?fieldValidation=Warn"), STRATEGIC, r#"{"unknown":1,"metadata":{"odd":2}}"#);
    theme.patch(&format!("{one}?fieldValidation=Ignore"), STRATEGIC, r#"{"unknown":1,"metadata":{"odd":2}}"#);
}

fn options(theme: &mut Theme, one: &str) {
    for query in [
        "dryRun=All",
        "dryRun=x",
        "fieldManager=m",
        "fieldManager=%00",
        "fieldValidation=Odd",
        "force=true",
        "force=false",
        "force=x",
        "resourceVersion=1",
        "pretty=true",
        "timeout=x",
    ] {
        theme.patch(&format!("{one}?{query}"), MERGE, r#"{"metadata":{"labels":{"o":"p"}}}"#);
    }
    for kind in [
        JSON,
        YAML,
        CBOR,
        "application/json-patch+json; charset=utf-8",
        "application/merge-patch+json;",
        "Application/Merge-Patch+JSON",
        "application/merge-patch+yaml",
        "text/plain",
        "*/*",
        "",
    ] {
        theme.patch(one, kind, r#"{"metadata":{"labels":{"k":"l"}}}"#);
    }
    theme.get(one).keep("now");
    theme.patch(
        one,
        MERGE,
        r#"{"metadata":{"resourceVersion":"<<now/metadata/resourceVersion>>","labels":{"k":"m"}}}"#,
    );
    theme.patch(
        one,
        MERGE,
        r#"{"metadata":{"resourceVersion":"<<now/metadata/resourceVersion>>","labels":{"k":"n"}}}"#,
    );
    theme.patch(one, MERGE, r#"{"metadata":{"uid":"<<now/metadata/uid>>"}}"#);
    theme.patch("/api/v1/namespaces/nowhere/configmaps/c", MERGE, "{}");
    theme.patch("/api/v1/configmaps/c", MERGE, "{}");
    theme.patch("/api/v1/namespaces/$NS/configmaps/UPPER", MERGE, "{}");
}

/// Lists that are merged by a key, of ServiceAccounts and Pods.
fn lists(theme: &mut Theme) {
    let accounts = "/api/v1/namespaces/$NS/serviceaccounts";
    theme.post(accounts, json!({ "metadata": { "name": "a" }, "secrets": [{ "name": "x" }], "imagePullSecrets": [{ "name": "p" }] }));
    let one = format!("{accounts}/a");
    for patch in [
        json!({ "secrets": [{ "name": "y" }] }),
        json!({ "secrets": [{ "name": "x", "$patch": "delete" }] }),
        json!({ "secrets": [{ "$patch": "replace" }, { "name": "z" }] }),
        json!({ "secrets": [{ "kind": "no key" }] }),
        json!({ "imagePullSecrets": [{ "name": "q" }] }),
        json!({ "imagePullSecrets": null }),
        json!({ "automountServiceAccountToken": "x" }),
    ] {
        theme.patch(&one, STRATEGIC, patch);
    }
    let pods = "/api/v1/namespaces/$NS/pods";
    theme.post(
        pods,
        json!({ "metadata": { "name": "p" }, "spec": {
        "automountServiceAccountToken": false, "serviceAccountName": "default",
        "containers": [{ "name": "c", "image": "i:1" }, { "name": "d", "image": "i:1" }],
    } }),
    );
    let pod = format!("{pods}/p");
    theme.patch(&pod, STRATEGIC, json!({ "spec": { "containers": [{ "name": "d", "image": "i:2" }] } }));
    theme.patch(&pod, STRATEGIC, json!({ "spec": { "containers": [{ "image": "i:2" }] } }));
    let status = format!("{pod}/status");
    theme.patch(&status, STRATEGIC, json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": "2001-02-03T04:05:06Z" }] } }));
    theme.patch(&status, STRATEGIC, json!({ "status": { "conditions": [{ "type": "Other", "status": "False" }, { "type": "Ready", "status": "False" }] } }));
    theme.patch(&status, STRATEGIC, json!({ "status": { "conditions": [{ "$patch": "delete", "type": "Other" }], "podIPs": [{ "ip": "10.0.0.1" }], "podIP": "10.0.0.1" } }));
    theme.patch(&status, MERGE, json!({ "status": { "podIPs": [{ "ip": "x" }], "podIP": "x" } }));
    theme.delete(&format!("{pod}?gracePeriodSeconds=0"));
}
