//! Deletion: options, preconditions, finalizers and collections.

use serde_json::{Value, json};

use super::super::protobuf::{Field, envelope, message};
use super::super::request::{MERGE, PARTIAL, PROTOBUF, TABLE, Theme, YAML};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("delete");
    let all = "/api/v1/namespaces/$NS/configmaps";
    options(&mut theme, all);
    finalizers(&mut theme, all);
    collections(&mut theme, all);
    pods(&mut theme);
    theme
}

fn options(theme: &mut Theme, all: &str) {
    let one = format!("{all}/d");
    let make = |theme: &mut Theme| {
        theme.post(all, json!({ "metadata": { "name": "d", "labels": { "l": "d" } } }));
    };
    make(theme);
    for query in [
        "dryRun=All",
        "dryRun=x",
        "dryRun=All&dryRun=x",
        "gracePeriodSeconds=x",
        "gracePeriodSeconds=-1&dryRun=All",
        "gracePeriodSeconds=1.5",
        "propagationPolicy=Sometimes",
        "propagationPolicy=background",
        "propagationPolicy=&dryRun=All",
        "orphanDependents=x&dryRun=All",
        "orphanDependents=true&propagationPolicy=Orphan",
        "ignoreStoreReadErrorWithClusterBreakingPotential=true",
        "timeout=x",
        "pretty=1&dryRun=All",
        "fieldValidation=x&dryRun=All",
        "resourceVersion=1&dryRun=All",
        "preconditions=x&dryRun=All",
        "uid=x&dryRun=All",
    ] {
        theme.delete(&format!("{one}?{query}"));
    }
    for body in [
        json!({ "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"] }),
        json!({ "apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions", "dryRun": ["All"] }),
        json!({ "apiVersion": "example.com/v1", "kind": "DeleteOptions", "dryRun": ["All"] }),
        json!({ "apiVersion": "v2", "kind": "DeleteOptions", "dryRun": ["All"] }),
        json!({ "kind": "DeleteOptions", "dryRun": ["All"] }),
        json!({ "apiVersion": "v1", "kind": "Status" }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "d" } }),
        json!({ "dryRun": "All" }),
        json!({ "dryRun": ["All", "All"] }),
        json!({ "dryRun": [] , "preconditions": { "uid": "x" } }),
        json!({ "preconditions": "x" }),
        json!({ "preconditions": { "uid": 1 } }),
        json!({ "preconditions": {}, "dryRun": ["All"] }),
        json!({ "preconditions": { "uid": "" } }),
        json!({ "preconditions": { "resourceVersion": "" } }),
        json!({ "preconditions": { "resourceVersion": "x" } }),
        json!({ "preconditions": { "uid": "x", "resourceVersion": "1" } }),
        json!({ "propagationPolicy": "Sometimes" }),
        json!({ "propagationPolicy": 1 }),
        json!({ "propagationPolicy": null, "dryRun": ["All"] }),
        json!({ "orphanDependents": "x" }),
        json!({ "orphanDependents": false, "propagationPolicy": "Background" }),
        json!({ "gracePeriodSeconds": 9_999_999_999_i64, "dryRun": ["All"] }),
        json!({ "gracePeriodSeconds": 99_999_999_999_999_999_999_f64 }),
        json!({ "bogus": 1, "dryRun": ["All"] }),
        json!(null),
        json!("x"),
        json!([]),
    ] {
        theme.delete_with(&one, body);
    }
    theme.delete_with(&one, "{");
    theme.delete_with(&one, "dryRun: [All]\n").sent_as(YAML);
    theme.delete_with(&one, "dryRun: [\n").sent_as(YAML);
    theme.delete_with(&one, "{}").sent_as("text/plain");
    theme.delete_with(&one, r#"{"dryRun":["All"]}"#).sent_as("");
    theme.delete_with(&one, r#"{"dryRun":["All"],"dryRun":["All"]}"#);
    theme.delete_with(&format!("{one}?dryRun=All"), json!({ "propagationPolicy": "Orphan" }));
    make(theme);
    // DeleteOptions: preconditions 2 (uid 1), dryRun 5.
    let wrong = message(&[Field::Message(2, message(&[Field::Text(1, "x")]))]);
    let dry = message(&[Field::Text(5, "All")]);
    theme.delete_with(&one, envelope("v1", "DeleteOptions", wrong)).sent_as(PROTOBUF);
    theme.delete_with(&one, envelope("v1", "DeleteOptions", dry.clone())).sent_as(PROTOBUF);
    theme.delete_with(&one, envelope("meta.k8s.io/v1", "DeleteOptions", dry)).sent_as(PROTOBUF);
    theme.delete_with(&one, "k8s").sent_as(PROTOBUF);
    for accept in [YAML, PROTOBUF, TABLE, PARTIAL, "text/html"] {
        make(theme);
        theme.delete(&one).accept(accept);
    }
    make(theme);
    theme.delete(&format!("{one}?orphanDependents=false"));
    make(theme);
    theme.delete(&format!("{one}?propagationPolicy=Background&gracePeriodSeconds=0"));
    theme.delete(&one);
    theme.delete("/api/v1/configmaps/d");
    theme.delete("/api/v1/namespaces/nowhere/configmaps/d");
    theme.delete("/api/v1/namespaces/nowhere/configmaps");
    theme.delete(&format!("{all}/UPPER"));
    theme.delete(&format!("{all}/d/status"));
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        theme.delete(&format!("/api/v1/namespaces/{name}?dryRun=All"));
    }
    theme.delete("/api/v1/namespaces/$NS?dryRun=All");
    theme.delete_with("/api/v1/namespaces/$NS", json!({ "preconditions": { "uid": "x" } }));
    theme.delete("/api/v1/namespaces");
}

fn finalizers(theme: &mut Theme, all: &str) {
    for (name, finalizers, policy) in [
        ("held", json!(["example.com/hold"]), ""),
        ("heldbackground", json!(["example.com/hold"]), "?propagationPolicy=Background"),
        ("heldboth", json!(["example.com/hold", "foregroundDeletion"]), "?propagationPolicy=Background"),
        ("heldorphan", json!(["example.com/hold"]), "?propagationPolicy=Orphan&dryRun=All"),
        ("heldforeground", json!(["example.com/hold"]), "?propagationPolicy=Foreground&dryRun=All"),
    ] {
        let one = format!("{all}/{name}");
        theme.post(all, json!({ "metadata": { "name": name, "finalizers": finalizers } }));
        theme.delete(&format!("{one}{policy}"));
        theme.delete(&format!("{one}{policy}"));
        theme.get(&one);
    }
    let one = format!("{all}/held");
    theme.put(
        &one,
        json!({ "metadata": { "name": "held", "finalizers": ["example.com/hold", "example.com/new"] } }),
    );
    theme.patch(&one, MERGE, r#"{"metadata":{"finalizers":["example.com/other"]}}"#);
    theme.patch(&one, MERGE, r#"{"data":{"still":"changes"}}"#);
    theme.patch(&one, MERGE, r#"{"metadata":{"deletionTimestamp":null}}"#);
    theme.patch(&one, MERGE, r#"{"metadata":{"deletionTimestamp":"2001-02-03T04:05:06Z"}}"#);
    theme.patch(&one, MERGE, r#"{"metadata":{"deletionGracePeriodSeconds":5}}"#);
    theme.delete_with(&one, json!({ "gracePeriodSeconds": 5 }));
    theme.post(all, json!({ "metadata": { "name": "held" } }));
    theme.patch(&format!("{one}?dryRun=All"), MERGE, r#"{"metadata":{"finalizers":[]}}"#);
    theme.put(&one, json!({ "metadata": { "name": "held" } }));
    theme.get(&one);
    theme.patch(&format!("{all}/heldboth"), MERGE, r#"{"metadata":{"finalizers":null}}"#);
    theme.get(&format!("{all}/heldboth"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/$NS/leases";
    theme.post(lease, json!({ "metadata": { "name": "l", "finalizers": ["example.com/hold"] } }));
    theme.delete(&format!("{lease}/l"));
    theme.patch(&format!("{lease}/l"), MERGE, r#"{"metadata":{"finalizers":null}}"#);
    let account = "/api/v1/namespaces/$NS/serviceaccounts";
    theme.post(account, json!({ "metadata": { "name": "a" } }));
    theme.delete(&format!("{account}/a"));
}

fn collections(theme: &mut Theme, all: &str) {
    let make = |theme: &mut Theme, name: &str, metadata: Value| {
        let mut metadata = metadata;
        metadata["name"] = name.into();
        theme.post(all, json!({ "metadata": metadata }));
    };
    for index in 0..4 {
        make(
            theme,
            &format!("c{index}"),
            json!({ "labels": { "set": if index < 2 { "low" } else { "high" } } }),
        );
    }
    make(theme, "c4", json!({ "labels": { "set": "kept" }, "finalizers": ["example.com/hold"] }));
    for query in [
        "dryRun=All&labelSelector=set",
        "dryRun=x",
        "labelSelector=a+b",
        "fieldSelector=data.x%3Dy",
        "fieldSelector=metadata.name%3Dc0&dryRun=All",
        "propagationPolicy=Sometimes&labelSelector=set",
        "gracePeriodSeconds=x&labelSelector=set",
        "labelSelector=none",
        "resourceVersion=x&labelSelector=none",
        "resourceVersion=99999999999&labelSelector=none",
        "resourceVersionMatch=Exact&labelSelector=none",
        "limit=x&labelSelector=none",
        "continue=x&labelSelector=none",
        "sendInitialEvents=true&labelSelector=none",
        "watch=1&labelSelector=none",
        "timeoutSeconds=x&labelSelector=none",
        "ignoreStoreReadErrorWithClusterBreakingPotential=true&labelSelector=none",
    ] {
        theme.delete(&format!("{all}?{query}"));
    }
    theme.delete_with(&format!("{all}?labelSelector=set"), json!({ "preconditions": { "uid": "x" } }));
    theme.delete_with(
        &format!("{all}?labelSelector=set"),
        json!({ "preconditions": { "resourceVersion": "1" } }),
    );
    theme.delete_with(&format!("{all}?labelSelector=set"), json!({ "dryRun": ["All"] }));
    theme.delete_with(&format!("{all}?labelSelector=set"), "{");
    theme.delete_with(&format!("{all}?labelSelector=none"), "{}").sent_as("text/plain");
    theme.delete(&format!("{all}?labelSelector=set%3Dlow")).accept(TABLE);
    theme.delete(&format!("{all}?labelSelector=set%3Dhigh&limit=1"));
    theme.get(&format!("{all}?labelSelector=set"));
    theme.delete(&format!("{all}?labelSelector=set"));
    theme.delete(&format!("{all}?labelSelector=set")).accept(PROTOBUF).head_only();
    theme.patch(&format!("{all}/c4"), MERGE, r#"{"metadata":{"finalizers":null}}"#);
    theme.get(&format!("{all}?labelSelector=set"));
    theme.delete("/api/v1/configmaps?labelSelector=none");
    theme.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=none");
    theme.delete("/api/v1/nodes?labelSelector=none");
}

fn pods(theme: &mut Theme) {
    let all = "/api/v1/namespaces/$NS/pods";
    let make = |theme: &mut Theme, name: &str, grace: Value, node: &str| {
        theme.post(
            all,
            json!({ "metadata": { "name": name }, "spec": {
            "automountServiceAccountToken": false, "serviceAccountName": "default", "nodeName": node,
            "terminationGracePeriodSeconds": grace, "containers": [{ "name": "c", "image": "i:1" }],
        } }),
        );
    };
    make(theme, "unbound", json!(null), "");
    theme.delete(&format!("{all}/unbound"));
    theme.get(&format!("{all}/unbound"));
    make(theme, "bound", json!(20), "differ-no-node");
    let bound = format!("{all}/bound");
    theme.delete(&format!("{bound}?dryRun=All"));
    theme.delete(&bound);
    theme.get(&bound);
    theme.delete(&bound);
    theme.delete(&format!("{bound}?gracePeriodSeconds=30"));
    theme.delete(&format!("{bound}?gracePeriodSeconds=5"));
    theme.delete(&format!("{bound}?gracePeriodSeconds=-1"));
    theme.delete_with(&bound, json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": "x" } }));
    theme.delete(&format!("{bound}?gracePeriodSeconds=0"));
    theme.get(&bound);
    make(theme, "quick", json!(0), "differ-no-node");
    theme.delete(&format!("{all}/quick"));
    make(theme, "gone", json!(5), "differ-no-node");
    theme.delete(&format!("{all}?fieldSelector=metadata.name%3Dgone"));
    theme.delete(&format!("{all}?gracePeriodSeconds=0&fieldSelector=metadata.name%3Dgone"));
}
