//! Tokens, bindings and status.

use serde_json::{Value, json};

use super::super::protobuf::{Field, envelope, message};
use super::super::request::{MERGE, PROTOBUF, STRATEGIC, TABLE, Theme, YAML};

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("subresources");
    tokens(&mut theme);
    binding(&mut theme);
    nodes(&mut theme);
    absent(&mut theme);
    theme
}

fn tokens(theme: &mut Theme) {
    let accounts = "/api/v1/namespaces/$NS/serviceaccounts";
    theme.post(accounts, json!({ "metadata": { "name": "robot" } })).keep("robot");
    let token = format!("{accounts}/robot/token");
    for body in [
        json!({}),
        json!({ "spec": {} }),
        json!({ "spec": { "audiences": ["a", "b"], "expirationSeconds": 600 } }),
        json!({ "spec": { "audiences": [] } }),
        json!({ "spec": { "audiences": [""] } }),
        json!({ "spec": { "audiences": "x" } }),
        json!({ "spec": { "expirationSeconds": 599 } }),
        json!({ "spec": { "expirationSeconds": 0 } }),
        json!({ "spec": { "expirationSeconds": -5 } }),
        json!({ "spec": { "expirationSeconds": 4_294_967_297_i64 } }),
        json!({ "spec": { "expirationSeconds": "x" } }),
        json!({ "spec": { "boundObjectRef": {} } }),
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v1" } } }),
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "none" } } }),
        json!({ "spec": { "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "none" } } }),
        json!({ "spec": { "boundObjectRef": { "kind": "Node", "apiVersion": "v1", "name": "none" } } }),
        json!({ "spec": { "boundObjectRef": { "kind": "ConfigMap", "apiVersion": "v1", "name": "none" } } }),
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v2", "name": "none" } } }),
        json!({ "metadata": { "name": "other" } }),
        json!({ "metadata": { "name": "robot", "namespace": "other" } }),
        json!({ "metadata": { "uid": "00000000-0000-0000-0000-000000000000" } }),
        json!({ "metadata": { "uid": "<<robot/metadata/uid>>" } }),
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} }),
        json!({ "apiVersion": "v1", "kind": "TokenRequest", "spec": {} }),
        json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {} }),
        json!({ "status": { "token": "given" } }),
        json!({ "bogus": 1 }),
        json!([]),
        json!("x"),
    ] {
        theme.post(&token, body);
    }
    theme.post(&token, "");
    theme.post(&token, "{");
    theme.post(&token, "spec: {audiences: [x]}\n").sent_as(YAML).accept(YAML).head_only();
    theme
        .post(
            &token,
            envelope(
                "authentication.k8s.io/v1",
                "TokenRequest",
                message(&[Field::Message(2, message(&[Field::Text(1, "x")]))]),
            ),
        )
        .sent_as(PROTOBUF);
    theme.post(&token, "{}").sent_as("text/plain");
    theme.post(&token, "{}").accept(TABLE);
    theme.post(&format!("{token}?dryRun=All"), json!({ "spec": {} }));
    theme.post(&format!("{token}?dryRun=x"), json!({ "spec": {} }));
    theme.post(&format!("{token}?fieldValidation=Strict"), json!({ "spec": { "odd": 1 } }));
    theme.post(&format!("{accounts}/none/token"), json!({ "spec": {} }));
    theme.post("/api/v1/namespaces/nowhere/serviceaccounts/robot/token", json!({ "spec": {} }));
    theme.get(&token);
    theme.put(&token, "{}");
    theme.patch(&token, MERGE, "{}");
    theme.delete(&token);
    theme.post("/api/v1/namespaces/$NS/secrets", json!({ "metadata": { "name": "bound" } })).keep("bound");
    theme.post(
        &token,
        json!({ "spec": { "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "bound" } } }),
    );
    theme.post(&token, json!({ "spec": { "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": "00000000-0000-0000-0000-000000000000" } } }));
    theme.post(&token, json!({ "spec": { "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "bound", "uid": "<<bound/metadata/uid>>" } } }));
}

fn pod(name: &str, account: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": {
        "automountServiceAccountToken": false, "serviceAccountName": account,
        "containers": [{ "name": "c", "image": "i:1" }],
    } })
}

fn binding(theme: &mut Theme) {
    let pods = "/api/v1/namespaces/$NS/pods";
    theme.post(pods, pod("p", "robot"));
    theme.post(pods, pod("q", "default"));
    let token = "/api/v1/namespaces/$NS/serviceaccounts/robot/token";
    theme.post(
        token,
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "q" } } }),
    );
    theme.post(
        token,
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "p" } } }),
    );
    theme.post(token, json!({ "spec": { "expirationSeconds": 3607, "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "p" } } }));
    let bind = format!("{pods}/p/binding");
    for body in [
        json!({}),
        json!({ "target": {} }),
        json!({ "target": { "kind": "Node" } }),
        json!({ "target": { "kind": "Pod", "name": "n" } }),
        json!({ "metadata": { "name": "other" }, "target": { "kind": "Node", "name": "n" } }),
        json!({ "metadata": { "name": "p", "uid": "00000000-0000-0000-0000-000000000000" }, "target": { "kind": "Node", "name": "differ-n" } }),
        json!({ "metadata": { "name": "p", "annotations": { "a": "b" } }, "target": { "kind": "Node", "name": "differ-n" } }),
        json!({ "metadata": { "name": "p" }, "target": { "kind": "Node", "name": "differ-n" } }),
    ] {
        theme.post(&bind, body);
    }
    theme.get(&format!("{pods}/p"));
    theme.post(
        token,
        json!({ "spec": { "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "p" } } }),
    );
    theme.post(
        &format!("{pods}/none/binding"),
        json!({ "metadata": { "name": "none" }, "target": { "name": "n" } }),
    );
    theme.get(&bind);
    theme.post(
        "/api/v1/namespaces/$NS/bindings",
        json!({ "metadata": { "name": "q" }, "target": { "name": "differ-n" } }),
    );
    let status = format!("{pods}/p/status");
    theme.get(&status);
    theme.patch(&status, STRATEGIC, r#"{"status":{"phase":"Odd"}}"#);
    theme.patch(&status, STRATEGIC, r#"{"status":{"phase":"Running","startTime":"2001-02-03T04:05:06Z"}}"#);
    theme.patch(&status, STRATEGIC, r#"{"metadata":{"labels":{"a":"b"}},"spec":{"nodeName":"other"}}"#);
    theme.patch(&status, STRATEGIC, r#"{"status":{"containerStatuses":[{"name":"c","ready":true,"restartCount":1,"image":"i","imageID":"","state":{"running":{"startedAt":"2001-02-03T04:05:06Z"}}}]}}"#);
    theme.get(&status).accept(TABLE);
    theme.put(&status, pod("p", "robot"));
    theme.delete(&format!("{pods}/p?gracePeriodSeconds=0"));
}

fn nodes(theme: &mut Theme) {
    let nodes = "/api/v1/nodes";
    theme.post(nodes, json!({ "metadata": { "name": "differ-subresources" }, "status": { "capacity": { "cpu": "2", "memory": "1Gi" } } }));
    let one = format!("{nodes}/differ-subresources");
    let status = format!("{one}/status");
    theme.get(&status);
    theme.patch(
        &status,
        STRATEGIC,
        r#"{"status":{"capacity":{"cpu":"1500m","memory":"1024Mi"},"allocatable":{"cpu":"1.5"}}}"#,
    );
    theme.patch(&status, STRATEGIC, r#"{"status":{"capacity":{"cpu":"x"}}}"#);
    theme.patch(&status, STRATEGIC, r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"},{"type":"Hostname","address":"h"}]}}"#);
    theme.patch(&status, STRATEGIC, r#"{"status":{"$setElementOrder/addresses":[{"type":"Hostname"}],"addresses":[{"type":"Hostname","address":"i"}]}}"#);
    theme.patch(&status, MERGE, r#"{"spec":{"unschedulable":true},"status":{"phase":"Running"}}"#);
    theme.patch(&one, MERGE, r#"{"status":{"phase":"Pending"}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"podCIDR":"10.2.0.0/24"}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"podCIDR":"10.3.0.0/24"}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"taints":[{"key":"a b","effect":"Odd"}]}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"providerID":"p"}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"providerID":"q"}}"#);
    theme.get(&one).accept(TABLE);
    theme.delete(&status);
    theme.delete(&one);
}

/// Subresources that a kind does not have.
fn absent(theme: &mut Theme) {
    for path in [
        "/api/v1/namespaces/$NS/secrets/x/status",
        "/api/v1/namespaces/$NS/secrets/x/scale",
        "/api/v1/namespaces/$NS/configmaps/x/finalize",
        "/api/v1/namespaces/$NS/serviceaccounts/x/status",
        "/api/v1/namespaces/$NS/status/x",
        "/apis/coordination.k8s.io/v1/namespaces/$NS/leases/x/status",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/x/status",
    ] {
        theme.get(path);
        theme.put(path, "{}");
        theme.patch(path, MERGE, "{}");
        theme.delete(path);
        theme.post(path, "{}");
    }
}
