//! Server-side apply: conflicts, force, lists and what is refused.

use serde_json::{Value, json};

use super::super::request::{APPLY, JSON, MERGE, PARTIAL, PROTOBUF, STRATEGIC, TABLE, Theme, YAML};

pub(super) fn themes() -> Vec<Theme> {
    vec![config_maps(), lists(), custom()]
}

fn config_maps() -> Theme {
    let mut theme = Theme::new("apply");
    let one = "/api/v1/namespaces/$NS/configmaps/c";
    let object = |content: Value| {
        let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
        for (key, value) in content.as_object().expect("an object") {
            if key == "metadata" {
                for (key, value) in value.as_object().expect("an object") {
                    object["metadata"][key] = value.clone();
                }
            } else {
                object[key] = value.clone();
            }
        }
        object
    };
    let by = |manager: &str| format!("{one}?fieldManager={manager}");
    let forced = |manager: &str| format!("{one}?fieldManager={manager}&force=true");
    for query in [
        "",
        "?fieldManager=",
        "?fieldManager=%00",
        "?fieldManager=m&force=x",
        "?fieldManager=m&force=",
        "?fieldManager=m&dryRun=x",
        "?fieldManager=m&fieldValidation=Odd",
        "?force=true",
    ] {
        theme.patch(&format!("{one}{query}"), APPLY, object(json!({})));
    }
    let long = "m".repeat(129);
    theme.patch(&by(&long), APPLY, object(json!({})));
    for kind in [
        "application/apply-patch+json",
        "application/apply-patch",
        "application/apply-patch+yaml; charset=utf-8",
        "application/apply-patch+cbor",
    ] {
        theme.patch(&format!("{}&dryRun=All", by("m")), kind, object(json!({})));
    }
    for body in [
        json!({}),
        json!(null),
        json!([]),
        json!("x"),
        json!({ "kind": "ConfigMap" }),
        json!({ "apiVersion": "v1" }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "c" } }),
        json!({ "apiVersion": "v2", "kind": "ConfigMap", "metadata": { "name": "c" } }),
        json!({ "apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": { "name": "c" } }),
        object(json!({ "metadata": { "name": "d" } })),
        object(json!({ "metadata": { "name": "" } })),
        object(json!({ "metadata": { "name": 5 } })),
        object(json!({ "metadata": { "namespace": "other" } })),
        object(json!({ "metadata": { "managedFields": [] } })),
        object(json!({ "metadata": { "managedFields": [{}] } })),
        object(json!({ "metadata": { "uid": "00000000-0000-4000-8000-000000000000" } })),
        object(json!({ "metadata": { "resourceVersion": "1" } })),
        object(json!({ "metadata": { "labels": { "a b": "c" } } })),
        object(json!({ "metadata": { "labels": "x" } })),
        object(json!({ "metadata": { "odd": 1 } })),
        object(json!({ "odd": 1 })),
        object(json!({ "data": { "a": 1 } })),
        object(json!({ "data": [] })),
        object(json!({ "data": { "a": null } })),
        object(json!({ "data": null })),
        object(json!({ "binaryData": { "a": "!" } })),
        object(json!({ "immutable": "x" })),
        object(json!({ "metadata": { "generateName": "gen-" } })),
        object(json!({ "metadata": { "creationTimestamp": "2001-02-03T04:05:06Z" } })),
        object(json!({ "metadata": { "finalizers": ["bare"] } })),
    ] {
        theme.patch(&format!("{}&dryRun=All", by("m")), APPLY, body);
    }
    for text in [
        "",
        "{",
        "a: [",
        "# x\n",
        "kind: x\nkind: y\n",
        "--- \n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {yes: no}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {yes: \"no\", 1: \"2\"}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\nkind: x\n",
    ] {
        theme.patch(&format!("{}&dryRun=All", by("m")), APPLY, text);
    }
    for validation in ["Strict", "Warn", "Ignore"] {
        let path = format!("{}&dryRun=All&fieldValidation={validation}", by("m"));
        theme.patch(&path, APPLY, object(json!({ "odd": 1 })));
        theme.patch(
            &path,
            APPLY,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, name: c}\ndata: {a: b, a: b}\n",
        );
        theme.patch(&path, APPLY, r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"},"data":{"a":"2"}}"#);
    }
    theme.patch("/api/v1/namespaces/nowhere/configmaps/c?fieldManager=m", APPLY, object(json!({})));
    theme.patch(
        "/api/v1/namespaces/$NS/configmaps/UPPER?fieldManager=m",
        APPLY,
        object(json!({ "metadata": { "name": "UPPER" } })),
    );
    theme.patch("/api/v1/namespaces/$NS/configmaps?fieldManager=m", APPLY, object(json!({})));
    owners(&mut theme, one, &object, &by, &forced);
    theme
}

fn owners(
    theme: &mut Theme,
    one: &str,
    object: &dyn Fn(Value) -> Value,
    by: &dyn Fn(&str) -> String,
    forced: &dyn Fn(&str) -> String,
) {
    let data = |data: Value| object(json!({ "data": data }));
    theme.patch(&by("one"), APPLY, data(json!({ "a": "1", "b": "1" })));
    theme.patch(&by("one"), APPLY, data(json!({ "a": "1", "b": "1" })));
    theme.patch(&by("two"), APPLY, data(json!({ "b": "1", "c": "2" })));
    theme.patch(&by("two"), APPLY, data(json!({ "a": "2", "b": "2" })));
    theme.patch(&format!("{}&dryRun=All", forced("two")), APPLY, data(json!({ "a": "2" })));
    theme.patch(&forced("two"), APPLY, data(json!({ "a": "2", "b": "2" })));
    theme.patch(&by("one"), APPLY, data(json!({ "a": "1" })));
    theme.patch(&by("one"), APPLY, data(json!({ "a": "2" })));
    theme.patch(&by("one"), APPLY, object(json!({})));
    theme.patch(&by("two"), APPLY, data(json!({ "b": "2" })));
    theme.patch(&format!("{one}?fieldManager=writer"), MERGE, r#"{"data":{"b":"3","w":"1"}}"#);
    theme.patch(&by("two"), APPLY, data(json!({ "b": "2" })));
    theme.patch(&by("two"), APPLY, data(json!({ "b": "3" })));
    theme.patch(&format!("{one}?fieldManager=writer"), STRATEGIC, r#"{"data":{"w":null}}"#);
    theme.put(&format!("{one}?fieldManager=two"), object(json!({ "data": { "b": "4" } })));
    theme.patch(&by("two"), APPLY, data(json!({ "b": "5" })));
    theme.patch(&forced("two"), APPLY, data(json!({ "b": "5" })));
    theme.patch(&by("three"), APPLY, object(json!({ "metadata": { "labels": { "x": "1", "y": "2" }, "annotations": { "n": "m" } }, "binaryData": { "bin": "AAE=" } })));
    theme.patch(
        &by("four"),
        APPLY,
        object(json!({ "metadata": { "labels": { "x": "2", "y": "3" }, "annotations": { "n": "o" } } })),
    );
    theme.patch(&by("three"), APPLY, object(json!({ "metadata": { "labels": { "y": "2" } } })));
    theme.patch(&by("five"), APPLY, object(json!({ "metadata": { "finalizers": ["example.com/a", "example.com/b"], "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Owner", "name": "p", "uid": "1" }] } })));
    theme.patch(&by("six"), APPLY, object(json!({ "metadata": { "finalizers": ["example.com/b", "example.com/c"], "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Owner", "name": "q", "uid": "1" }, { "apiVersion": "example.com/v1", "kind": "Owner", "name": "r", "uid": "2" }] } })));
    theme.patch(
        &by("six"),
        APPLY,
        object(json!({ "metadata": { "finalizers": ["example.com/b", "example.com/c"] } })),
    );
    theme.patch(&by("five"), APPLY, object(json!({ "metadata": { "finalizers": [] } })));
    theme.patch(
        &by("six"),
        APPLY,
        object(json!({ "metadata": { "finalizers": ["example.com/c", "example.com/c"] } })),
    );
    theme.patch(&by("six"), APPLY, object(json!({})));
    theme.patch(&by("five"), APPLY, object(json!({})));
    theme.get(one).keep("now");
    theme.patch(&by("seven"), APPLY, object(json!({ "metadata": { "resourceVersion": "<<now/metadata/resourceVersion>>" }, "data": { "g": "1" } })));
    theme.patch(&by("seven"), APPLY, object(json!({ "metadata": { "resourceVersion": "<<now/metadata/resourceVersion>>" }, "data": { "g": "2" } })));
    theme.patch(
        &by("seven"),
        APPLY,
        object(json!({ "metadata": { "uid": "<<now/metadata/uid>>" }, "data": { "g": "2" } })),
    );
    theme.patch(
        &by("seven"),
        APPLY,
        object(json!({ "metadata": { "uid": "00000000-0000-4000-8000-000000000000" } })),
    );
    theme.patch(&by("seven"), APPLY, object(json!({ "immutable": true, "data": { "g": "2" } })));
    theme.patch(&by("seven"), APPLY, object(json!({ "immutable": true, "data": { "g": "3" } })));
    for accept in [YAML, TABLE, PARTIAL, PROTOBUF, "text/html"] {
        let same = object(json!({ "immutable": true, "data": { "g": "2" } }));
        let request = theme.patch(&by("seven"), APPLY, same).accept(accept);
        if matches!(accept, YAML | PROTOBUF) {
            // Whose write is the older one is luck, and these tell it by their order.
            request.head_only();
        }
    }
    theme.patch(one, MERGE, r#"{"metadata":{"managedFields":[{}]}}"#);
    theme.patch(&by("eight"), APPLY, object(json!({ "metadata": { "labels": { "y": "9" } } })));
    theme.patch(one, JSON, "{}");
    theme.delete(one);
    migration(theme);
    ancients(theme);
}

/// From kubectl's client-side apply to its server-side one.
fn migration(theme: &mut Theme) {
    let all = "/api/v1/namespaces/$NS/configmaps";
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},"name":"k","namespace":"differ-apply"},"data":{"a":"1","b":"2"}}"#;
    theme.post(&format!("{all}?fieldManager=kubectl-client-side-apply"), json!({
        "metadata": { "name": "k", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": last } },
        "data": { "a": "1", "b": "2" },
    }));
    let applied = |data: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "k" }, "data": data });
    let one = format!("{all}/k?fieldManager=kubectl");
    theme.patch(&one, APPLY, applied(json!({ "a": "1", "c": "3" })));
    theme.patch(&one, APPLY, applied(json!({ "a": "2" })));
    theme.patch(&format!("{all}/k?fieldManager=other"), APPLY, applied(json!({ "a": "3" })));
    theme.get(&format!("{all}/k"));
}

/// More than ten writers: the oldest become one. Their names are in the order of their writes, so
/// that it does not matter which of them share a second.
fn ancients(theme: &mut Theme) {
    let all = "/api/v1/namespaces/$NS/configmaps";
    theme.post(
        &format!("{all}?fieldManager=w00"),
        json!({ "metadata": { "name": "old" }, "data": { "k0": "0" } }),
    );
    for index in 1..13 {
        let patch = json!({ "data": { format!("k{index}"): "x" } });
        theme.patch(&format!("{all}/old?fieldManager=w{index:02}"), MERGE, patch);
    }
    theme.patch(&format!("{all}/old?fieldManager=w13"), MERGE, r#"{"data":{"k1":"y"}}"#);
}

/// Lists by key, sets, and atomic ones, of built-in kinds.
fn lists() -> Theme {
    let mut theme = Theme::new("applylists");
    let account = |manager: &str| format!("/api/v1/namespaces/$NS/serviceaccounts/a?fieldManager={manager}");
    let with = |content: Value| {
        let mut object = content;
        object["apiVersion"] = "v1".into();
        object["kind"] = "ServiceAccount".into();
        object["metadata"] = json!({ "name": "a" });
        object
    };
    for (manager, content) in [
        ("one", json!({ "secrets": [{ "name": "x" }, { "name": "y" }] })),
        ("two", json!({ "secrets": [{ "name": "y" }, { "name": "z" }] })),
        ("two", json!({ "secrets": [{ "name": "y", "kind": "Secret" }] })),
        ("one", json!({ "secrets": [{ "name": "x" }, { "name": "y", "kind": "Other" }] })),
        ("one", json!({ "secrets": [{ "name": "x" }, { "name": "x" }] })),
        ("one", json!({ "secrets": [{ "kind": "no name" }] })),
        ("one", json!({ "secrets": [{ "name": null }] })),
        ("one", json!({ "imagePullSecrets": [{ "name": "p" }] })),
        ("two", json!({ "imagePullSecrets": [{ "name": "p" }, { "name": "q" }] })),
        ("one", json!({ "automountServiceAccountToken": true })),
        ("two", json!({ "automountServiceAccountToken": false })),
        ("one", json!({})),
        ("two", json!({})),
    ] {
        theme.patch(&account(manager), APPLY, with(content));
    }
    let rules = "/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles/r";
    let role = |verbs: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": verbs }],
        })
    };
    theme.patch(&format!("{rules}?fieldManager=one"), APPLY, role(json!(["get"])));
    theme.patch(&format!("{rules}?fieldManager=two"), APPLY, role(json!(["get"])));
    theme.patch(&format!("{rules}?fieldManager=two"), APPLY, role(json!(["list"])));
    theme.patch(&format!("{rules}?fieldManager=two&force=true"), APPLY, role(json!(["list"])));
    theme.patch(&format!("{rules}?fieldManager=two"), APPLY, role(json!([])));
    let pods = "/api/v1/namespaces/$NS/pods/p";
    let pod =
        |spec: Value| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": spec });
    let base = || {
        json!({
            "automountServiceAccountToken": false, "serviceAccountName": "default",
            "containers": [{ "name": "c", "image": "i:1", "env": [{ "name": "A", "value": "1" }], "ports": [{ "containerPort": 80 }] }],
        })
    };
    theme.patch(&format!("{pods}?fieldManager=one"), APPLY, pod(base()));
    theme.patch(&format!("{pods}?fieldManager=one"), APPLY, pod(base()));
    theme.patch(
        &format!("{pods}?fieldManager=two"),
        APPLY,
        pod(json!({ "containers": [{ "name": "c", "image": "i:2" }] })),
    );
    theme.patch(
        &format!("{pods}?fieldManager=two"),
        APPLY,
        pod(json!({ "containers": [{ "name": "c", "env": [{ "name": "A", "value": "2" }] }] })),
    );
    theme.patch(
        &format!("{pods}?fieldManager=two&force=true"),
        APPLY,
        pod(json!({ "containers": [{ "name": "c", "image": "i:2" }] })),
    );
    theme.patch(
        &format!("{pods}?fieldManager=two"),
        APPLY,
        pod(json!({ "tolerations": [{ "key": "k", "operator": "Exists" }] })),
    );
    theme.patch(
        &format!("{pods}/status?fieldManager=kubelet"),
        APPLY,
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }], "phase": "Running" },
        }),
    );
    theme.patch(&format!("{pods}/status?fieldManager=other"), APPLY, json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "status": { "conditions": [{ "type": "Ready", "status": "False" }, { "type": "Mine", "status": "True" }] },
    }));
    theme.patch(&format!("{pods}/status?fieldManager=kubelet"), APPLY, json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": { "nodeName": "x" }, "status": {},
    }));
    theme.delete(&format!("{pods}?gracePeriodSeconds=0"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/$NS/leases/l";
    for (manager, holder) in [("one", "a"), ("two", "b"), ("two", "a")] {
        theme.patch(
            &format!("{lease}?fieldManager={manager}"),
            APPLY,
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" },
                "spec": { "holderIdentity": holder, "renewTime": "2001-02-03T04:05:06.000007Z" },
            }),
        );
    }
    theme
}

/// Custom resources, whose lists are as their schema says.
fn custom() -> Theme {
    let mut theme = Theme::new("applywidgets");
    super::definitions::define(&mut theme, "apply.example.com");
    let one = "/apis/apply.example.com/v1/namespaces/$NS/widgets/w";
    let widget = |spec: Value| json!({ "apiVersion": "apply.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": spec });
    for (manager, force, spec) in [
        (
            "one",
            false,
            json!({ "size": 1, "parts": [{ "name": "a", "count": 1 }, { "name": "b" }], "tags": ["x", "y"], "whole": ["1", "2"], "labels": { "l": "1" }, "any": { "deep": { "er": [1] } } }),
        ),
        ("two", false, json!({ "parts": [{ "name": "b" }, { "name": "c" }], "tags": ["y", "z"] })),
        ("two", false, json!({ "parts": [{ "name": "a", "count": 2 }], "whole": ["1"] })),
        ("two", true, json!({ "parts": [{ "name": "a", "count": 2 }], "whole": ["1"] })),
        ("two", false, json!({ "labels": { "l": "2" }, "size": 5 })),
        ("two", false, json!({ "any": { "deep": { "er": [2] } } })),
        ("one", false, json!({ "size": 1 })),
        ("one", false, json!({ "parts": [{ "name": "a" }, { "name": "a" }] })),
        ("one", false, json!({ "parts": [{ "count": 1 }] })),
        ("one", false, json!({ "tags": ["x", "x"] })),
        ("one", false, json!({ "tags": "x" })),
        ("one", false, json!({ "size": "x" })),
        ("one", false, json!({ "unknown": 1 })),
        ("one", false, json!({ "color": null })),
        ("one", false, json!({})),
        ("two", false, json!({})),
    ] {
        theme.patch(&format!("{one}?fieldManager={manager}&force={force}"), APPLY, widget(spec));
    }
    theme.patch(
        &format!("{one}?fieldManager=one&fieldValidation=Strict"),
        APPLY,
        widget(json!({ "unknown": 1 })),
    );
    theme.patch(
        &format!("{one}?fieldManager=one"),
        APPLY,
        json!({ "apiVersion": "apply.example.com/v2", "kind": "Widget", "metadata": { "name": "w" } }),
    );
    theme.patch(
        &format!("{one}?fieldManager=one"),
        APPLY,
        json!({ "apiVersion": "apply.example.com/v1", "kind": "Gadget", "metadata": { "name": "w" } }),
    );
    theme.patch(&format!("{one}?fieldManager=one"), APPLY, json!({ "apiVersion": "apply.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "status": { "phase": "x" }, "spec": {} }));
    theme.patch(&format!("{one}/status?fieldManager=s"), APPLY, json!({ "apiVersion": "apply.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "status": { "phase": "x" } }));
    theme.patch(&format!("{one}/status?fieldManager=t"), APPLY, json!({ "apiVersion": "apply.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "status": { "phase": "y" } }));
    theme.get(one);
    theme
}
