//! PUT, beyond what the lifecycle of each kind tries.

use serde_json::{Value, json};

use super::super::request::{APPLY, MERGE, Theme};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("update");
    config_maps(&mut theme);
    others(&mut theme);
    bindings(&mut theme);
    pods(&mut theme);
    theme
}

fn config_maps(theme: &mut Theme) {
    let all = "/api/v1/namespaces/$NS/configmaps";
    let one = format!("{all}/c");
    let object = |content: Value| {
        let mut object = content;
        if object.get("metadata").is_none() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = "c".into();
        object
    };
    theme.post(
        &format!("{all}?fieldManager=first"),
        object(json!({ "data": { "a": "1", "b": "2" }, "metadata": { "labels": { "x": "y" } } })),
    );
    theme.put(&format!("{one}?fieldManager=second"), object(json!({ "data": { "a": "1", "b": "3" } })));
    theme.put(&format!("{one}?fieldManager=second"), object(json!({ "data": { "a": "1", "b": "3" } })));
    theme.put(&format!("{one}?fieldManager=third"), object(json!({ "data": { "b": "3", "c": "4" } })));
    theme.put(
        &format!("{one}?fieldManager=third"),
        object(json!({ "data": { "b": "3", "c": "4" }, "metadata": { "managedFields": [] } })),
    );
    theme.put(
        &format!("{one}?fieldManager=fourth"),
        object(json!({ "data": { "b": "5" }, "metadata": { "managedFields": [{}] } })),
    );
    theme.put(
        &one,
        object(json!({ "metadata": { "managedFields": [{ "manager": "x", "operation": "Odd" }] } })),
    );
    theme.put(&one, object(json!({ "metadata": { "finalizers": ["example.com/a"] } })));
    theme.put(&one, object(json!({ "metadata": { "finalizers": ["bare"] } })));
    theme.put(&one, object(json!({ "metadata": { "generation": 4 } })));
    theme.put(&one, object(json!({ "metadata": { "selfLink": "/x", "generateName": "other-" } })));
    theme.put(&one, object(json!({ "metadata": { "ownerReferences": [{ "apiVersion": "example.com/v1", "kind": "Owner", "name": "p", "uid": "u" }, { "apiVersion": "example.com/v1", "kind": "Owner", "name": "p", "uid": "u" }] } })));
    theme.put(&one, object(json!({ "immutable": true, "data": { "a": "1" } })));
    theme.put(&one, object(json!({ "immutable": true, "data": { "a": "2" } })));
    theme.put(&one, object(json!({ "immutable": true, "data": { "a": "1" }, "binaryData": { "b": "" } })));
    theme.put(&one, object(json!({ "immutable": false, "data": { "a": "1" } })));
    for query in [
        "dryRun=All",
        "dryRun=x",
        "fieldManager=%00",
        "fieldValidation=Odd",
        "force=true",
        "fieldValidation=Strict",
    ] {
        theme.put(
            &format!("{one}?{query}"),
            object(json!({ "immutable": true, "data": { "a": "1" }, "odd": 1 })),
        );
    }
    theme.put(&one, r#"{"metadata":{"name":"c"},"data":{"a":"1"},"data":{"a":"2"},"immutable":true}"#);
    theme.put(&one, "[]");
    theme.put(&one, "null");
    theme.put("/api/v1/namespaces/nowhere/configmaps/c", object(json!({})));
    theme.put("/api/v1/configmaps/c", object(json!({})));
    theme.put(&format!("{one}/status"), object(json!({})));
    theme.put(&format!("{all}/UPPER"), json!({ "metadata": { "name": "UPPER" } }));
}

fn others(theme: &mut Theme) {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/$NS/leases";
    theme.put(
        &format!("{leases}/new"),
        json!({ "metadata": { "name": "new" }, "spec": { "holderIdentity": "me" } }),
    );
    theme.put(
        &format!("{leases}/new"),
        json!({ "metadata": { "name": "new" }, "spec": { "holderIdentity": "you" } }),
    );
    theme.put(&format!("{leases}/newer"), json!({ "metadata": { "name": "newer", "resourceVersion": "5" } }));
    theme.put(&format!("{leases}/newer"), json!({ "metadata": { "name": "newer", "uid": "x" } }));
    theme.put(&format!("{leases}/newer?dryRun=All"), json!({ "metadata": { "name": "newer" } }));
    theme.put(&format!("{leases}/Newer"), json!({ "metadata": { "name": "Newer" } }));
    theme.get(&format!("{leases}/new")).keep("lease");
    theme.put(&format!("{leases}/new"), json!({
        "metadata": { "name": "new", "resourceVersion": "<<lease/metadata/resourceVersion>>" },
        "spec": { "holderIdentity": "you", "renewTime": "2001-02-03T04:05:06.000007Z", "leaseTransitions": -1 },
    }));
    theme.put(
        &format!("{leases}/new"),
        json!({
            "metadata": { "name": "new", "resourceVersion": "<<lease/metadata/resourceVersion>>" },
            "spec": { "holderIdentity": "you", "renewTime": "2001-02-03T04:05:06.000007Z" },
        }),
    );
    let namespace = "/api/v1/namespaces/$NS";
    theme.put(namespace, json!({ "metadata": { "name": "differ-update", "labels": { "a": "b" } } }));
    theme.put(
        namespace,
        json!({ "metadata": { "name": "differ-update", "labels": { "kubernetes.io/metadata.name": "x" } } }),
    );
    theme.put(namespace, json!({ "metadata": { "name": "differ-update" }, "spec": { "finalizers": ["example.com/x"] }, "status": { "phase": "Terminating" } }));
    theme.put(&format!("{namespace}/status"), json!({ "metadata": { "name": "differ-update", "labels": { "c": "d" } }, "status": { "phase": "Terminating" } }));
    theme.put(&format!("{namespace}/finalize"), json!({ "metadata": { "name": "differ-update" }, "spec": { "finalizers": ["kubernetes", "example.com/x"] } }));
    theme.put(
        &format!("{namespace}/finalize"),
        json!({ "metadata": { "name": "differ-update" }, "spec": { "finalizers": ["kubernetes"] } }),
    );
    theme.put(&format!("{namespace}/finalize"), json!({ "metadata": { "name": "other" } }));
    theme.get(&format!("{namespace}/finalize"));
    theme.patch(&format!("{namespace}/finalize"), MERGE, "{}");
    let events = "/api/v1/namespaces/$NS/events";
    theme.put(
        &format!("{events}/e"),
        json!({ "metadata": { "name": "e" }, "involvedObject": { "namespace": "differ-update" } }),
    );
    theme.put(&format!("{events}/e"), json!({ "metadata": { "name": "e" }, "involvedObject": { "namespace": "differ-update" }, "reason": "R" }));
    let accounts = "/api/v1/namespaces/$NS/serviceaccounts";
    theme.post(
        accounts,
        json!({ "metadata": { "name": "a" }, "secrets": [{ "name": "x" }, { "name": "y" }] }),
    );
    theme.put(&format!("{accounts}/a"), json!({ "metadata": { "name": "a" }, "secrets": [{ "name": "y" }] }));
    theme.put(&format!("{accounts}/a"), json!({ "metadata": { "name": "a" } }));
}

fn bindings(theme: &mut Theme) {
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/$NS";
    let binding = format!("{root}/rolebindings/b");
    let with = |role: &str, user: &str| {
        json!({
            "metadata": { "name": "b" }, "subjects": [{ "kind": "User", "name": user }],
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        })
    };
    theme.put(&binding, with("r", "alice"));
    theme.put(&binding, with("r", "bob"));
    theme.put(&binding, with("other", "bob"));
    theme.put(&binding, json!({ "metadata": { "name": "b" } }));
    let role = format!("{root}/roles/r");
    theme.put(&role, json!({ "metadata": { "name": "r" } }));
    theme.put(&role, json!({ "metadata": { "name": "r" }, "rules": [{ "verbs": [] }] }));
    theme.patch(
        &format!("{role}?fieldManager=x"),
        APPLY,
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" },
            "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }],
        }),
    );
    theme.get(&role);
}

fn pods(theme: &mut Theme) {
    let all = "/api/v1/namespaces/$NS/pods";
    let pod = |changes: Value| {
        let mut spec = json!({
            "automountServiceAccountToken": false, "serviceAccountName": "default",
            "containers": [{ "name": "c", "image": "example.com/c:1" }],
        });
        for (key, value) in changes.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        json!({ "metadata": { "name": "p" }, "spec": spec })
    };
    let dry = format!("{all}?dryRun=All");
    for changes in [
        json!({ "containers": [] }),
        json!({ "containers": [{ "name": "A_b", "image": "i" }] }),
        json!({ "containers": [{ "name": "c" }] }),
        json!({ "containers": [{ "name": "c", "image": "i" }, { "name": "c", "image": "i" }] }),
        json!({ "containers": [{ "name": "c", "image": " i" }] }),
        json!({ "restartPolicy": "Sometimes" }),
        json!({ "dnsPolicy": "Odd" }),
        json!({ "terminationGracePeriodSeconds": -1 }),
        json!({ "activeDeadlineSeconds": 0 }),
        json!({ "nodeName": "Bad_Node" }),
        json!({ "nodeSelector": { "a b": "c" } }),
        json!({ "serviceAccountName": "Bad_Name" }),
        json!({ "volumes": [{ "name": "v" }] }),
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s" } }, { "name": "v", "emptyDir": {} }] }),
        json!({ "volumes": [{ "name": "v", "secret": {} }] }),
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s", "defaultMode": 512 } }] }),
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s", "items": [{ "key": "k", "path": "../x" }] } }] }),
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "s" }, "emptyDir": {} }] }),
        json!({ "volumes": [{ "name": "v", "projected": { "sources": [{ "secret": { "name": "s" } }, { "serviceAccountToken": { "path": "t" } }] } }] }),
        json!({ "volumes": [{ "name": "v", "configMap": { "name": "m" } }, { "name": "w", "downwardAPI": { "items": [{ "path": "p", "fieldRef": { "fieldPath": "metadata.name" } }] } }] }),
        json!({ "containers": [{ "name": "c", "image": "i", "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } }, { "name": "B", "valueFrom": {} }] }] }),
        json!({ "containers": [{ "name": "c", "image": "i", "env": [{ "name": "", "value": "x" }, { "name": "C", "value": "x", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }] }] }),
        json!({ "containers": [{ "name": "c", "image": "i", "envFrom": [{ "secretRef": { "name": "s" } }, {}] }] }),
        json!({ "containers": [{ "name": "c", "image": "i", "volumeMounts": [{ "name": "none", "mountPath": "/x" }] }] }),
        json!({ "containers": [{ "name": "c", "image": "i", "ports": [{ "containerPort": 0 }, { "containerPort": 80, "protocol": "ICMP" }] }] }),
        json!({ "imagePullSecrets": [{ "name": "s" }, {}] }),
        json!({ "hostNetwork": true, "containers": [{ "name": "c", "image": "i", "ports": [{ "containerPort": 80 }] }] }),
        json!({ "containers": [{ "name": "c", "image": "i:latest" }], "initContainers": [{ "name": "i", "image": "i" }] }),
        json!({ "securityContext": { "runAsUser": 5, "fsGroup": 7 } }),
    ] {
        theme.post(&dry, pod(changes));
    }
    theme.post(all, pod(json!({})));
    let one = format!("{all}/p");
    theme.put(&one, pod(json!({ "containers": [{ "name": "c", "image": "example.com/c:2" }] })));
    theme.put(&one, pod(json!({ "restartPolicy": "Never" })));
    theme.put(&one, pod(json!({ "activeDeadlineSeconds": 5 })));
    theme.patch(&one, MERGE, r#"{"spec":{"nodeName":"n"}}"#);
    theme.patch(&one, MERGE, r#"{"status":{"phase":"Running"}}"#);
    theme.delete(&format!("{one}?gracePeriodSeconds=0"));
    theme.get(&one);
}
