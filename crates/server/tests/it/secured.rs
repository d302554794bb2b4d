//! The whole server: RBAC with the bootstrap policy, service account tokens, admission and every controller.

use coffer_server::api::ApiServer;
use serde_json::{Value, json};

use crate::support::{Answer, Client, eventually, secured};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

fn admin(api: &ApiServer) -> Client {
    Client::in_groups(api, "admin", &["system:masters", "system:authenticated"])
}

async fn created(client: &Client, url: &str, body: Value) -> Value {
    let answer = client.post(url, &body.to_string()).await;
    assert_eq!(answer.code, 201, "{url}: {}", answer.text);
    answer.json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_cluster_has_all_it_needs() {
    let api = secured().await;
    let admin = admin(&api);
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let map = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        let map = eventually(&admin, &map, |answer| answer.code == 200).await.json();
        assert_eq!(map["data"], json!({"ca.crt": "PEM"}));
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        eventually(&admin, &account, |answer| answer.code == 200).await;
    }
    let aggregated =
        |answer: &Answer| answer.json()["rules"].as_array().is_some_and(|rules| rules.len() > 10);
    eventually(&admin, &format!("{RBAC}/clusterroles/admin"), aggregated).await;
    let policy = admin.get(&format!("{RBAC}/clusterroles")).await.json();
    assert_eq!(policy["items"].as_array().map(Vec::len), Some(74));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_account_gets_a_token_and_rights() {
    let api = secured().await;
    let admin = admin(&api);
    let url = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let answer = created(&admin, url, json!({"spec": {}})).await;
    let token = answer["status"]["token"].as_str().expect("a token");
    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let review = created(&admin, "/apis/authentication.k8s.io/v1/tokenreviews", review).await;
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:default");

    let robot = Client::in_groups(&api, "system:serviceaccount:default:default", &["system:authenticated"]);
    let secrets = "/api/v1/namespaces/default/secrets";
    let refused = robot.get(secrets).await;
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.json()["message"],
        "secrets is forbidden: User \"system:serviceaccount:default:default\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\""
    );
    let binding = json!({
        "metadata": {"name": "robots"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    });
    created(&admin, &format!("{RBAC}/namespaces/default/rolebindings"), binding).await;
    eventually(&robot, secrets, |answer| answer.code == 200).await;
    assert_eq!(robot.get("/api/v1/namespaces/kube-system/secrets").await.code, 403);

    let more = json!({"metadata": {"name": "more"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
    let binder = json!({
        "metadata": {"name": "role-writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:aggregate-to-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
    });
    let roles = format!("{RBAC}/namespaces/default/roles");
    created(&admin, &format!("{RBAC}/namespaces/default/rolebindings"), binder).await;
    eventually(&robot, &roles, |answer| answer.code == 200).await;
    let refused = robot.post(&roles, &more.to_string()).await;
    assert_eq!(refused.code, 403);
    let message = refused.json()["message"].as_str().expect("a message").to_owned();
    assert!(message.starts_with("roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"system:serviceaccount:default:default\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_get_a_token_volume_and_a_node() {
    let api = secured().await;
    let admin = admin(&api);
    created(&admin, "/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await;
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    assert_eq!(admin.patch("/api/v1/nodes/n1/status", "merge", ready).await.code, 200);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = created(&admin, "/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(pod["spec"]["serviceAccountName"], "default");
    let volume = &pod["spec"]["volumes"][0];
    assert!(volume["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-")), "{volume}");
    let bound = |answer: &Answer| answer.json()["spec"]["nodeName"] == "n1";
    eventually(&admin, "/api/v1/namespaces/default/pods/p", bound).await;
    let refused =
        admin.post("/api/v1/namespaces/gone/pods", &json!({"metadata": {"name": "p"}}).to_string()).await;
    assert_eq!(
        (refused.code, refused.json()["message"].clone()),
        (404, json!("namespaces \"gone\" not found"))
    );
}

/// A node from its registration to a pod of its own, and what stays closed to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_reads_and_changes_only_what_is_its_own() {
    let api = secured().await;
    let admin = admin(&api);
    let node = |name: &str| {
        Client::in_groups(&api, &format!("system:node:{name}"), &["system:nodes", "system:authenticated"])
    };
    let n1 = node("n1");
    let body = json!({"metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}}});
    created(&n1, "/api/v1/nodes", body).await;
    let ready = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    assert_eq!(n1.patch("/api/v1/nodes/n1/status", "merge", ready).await.code, 200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    created(&n1, leases, json!({"metadata": {"name": "n1"}})).await;
    for name in ["used", "unused"] {
        let secret = json!({"metadata": {"name": name}, "stringData": {"k": "v"}});
        created(&admin, "/api/v1/namespaces/default/secrets", secret).await;
    }
    let spec = json!({
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "secret": {"secretName": "used"}}],
    });
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let pod = created(&admin, "/api/v1/namespaces/default/pods", pod).await;
    let bound = |answer: &Answer| answer.json()["spec"]["nodeName"] == "n1";
    eventually(&admin, "/api/v1/namespaces/default/pods/p", bound).await;

    let secrets = "/api/v1/namespaces/default/secrets";
    for allowed in [
        format!("{secrets}/used"),
        format!("{secrets}?fieldSelector=metadata.name%3Dused"),
        "/api/v1/namespaces/default/configmaps/kube-root-ca.crt".to_owned(),
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1".to_owned(),
        "/api/v1/namespaces/default/pods/p".to_owned(),
        "/api/v1/nodes/n1".to_owned(),
        format!("{leases}/n1"),
    ] {
        let answer = n1.get(&allowed).await;
        assert_eq!(answer.code, 200, "{allowed}: {}", answer.text);
    }
    let get = "User \"system:node:n1\" cannot get resource \"secrets\" in API group \"\" in the namespace \"default\"";
    let none = "no relationship found between node 'n1' and this object";
    for (refused, expected) in [
        (format!("{secrets}/unused"), format!("secrets \"unused\" is forbidden: {get}: node: {none}")),
        (secrets.to_owned(), "No Object name found".to_owned()),
        (format!("{secrets}?fieldSelector=metadata.name%3Dunused"), none.to_owned()),
        ("/api/v1/secrets".to_owned(), "can only read namespaced object of this type".to_owned()),
        ("/api/v1/pods".to_owned(), "can only list/watch pods with spec.nodeName field selector".to_owned()),
        ("/api/v1/nodes".to_owned(), "node 'n1' cannot read all nodes, only its own Node object".to_owned()),
    ] {
        let answer = n1.get(&refused).await;
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.code, message.ends_with(&expected)), (403, true), "{refused}: {message}");
    }
    assert_eq!(node("n2").get(&format!("{secrets}/used")).await.code, 403);

    // Admission: another's Node, a label of trust, its own pod's labels, a pod of its own making.
    let refusals = [
        (n1.post("/api/v1/nodes", r#"{"metadata":{"name":"n2"}}"#).await, "node \"n1\" is not allowed to modify node \"n2\""),
        (
            n1.patch("/api/v1/nodes/n1", "merge", r#"{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}}"#).await,
            "is not allowed to modify labels: node-restriction.kubernetes.io/x",
        ),
        (
            n1.patch("/api/v1/namespaces/default/pods/p/status", "merge", r#"{"metadata":{"labels":{"a":"b"}}}"#).await,
            "node \"n1\" cannot update labels through pod status",
        ),
        (
            n1.post("/api/v1/namespaces/default/pods", r#"{"metadata":{"name":"q"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}"#).await,
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n1\" can only create mirror pods",
        ),
        (
            n1.post("/api/v1/namespaces/default/serviceaccounts/default/token", r#"{"spec":{}}"#).await,
            "node requested token not bound to a pod",
        ),
    ];
    for (answer, expected) in refusals {
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((answer.code, message.ends_with(expected)), (403, true), "{message}");
    }
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": pod["metadata"]["uid"]});
    let token = json!({"spec": {"boundObjectRef": reference}});
    created(&n1, "/api/v1/namespaces/default/serviceaccounts/default/token", token).await;

    // Its pod is gone: so is its right.
    let own = "/api/v1/namespaces/default/pods/p";
    assert_eq!(n1.delete(own, r#"{"gracePeriodSeconds":0}"#).await.code, 200);
    eventually(&n1, &format!("{secrets}/used"), |answer| answer.code == 403).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_and_namespaces_go_with_all_they_hold() {
    let api = secured().await;
    let admin = admin(&api);
    created(&admin, "/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let owner = created(&admin, "/api/v1/namespaces/a/configmaps", json!({"metadata": {"name": "o"}})).await;
    let reference = |uid: &Value| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid}]);
    for (name, uid) in [("d", owner["metadata"]["uid"].clone()), ("stale", json!("old-uid"))] {
        let secret = json!({"metadata": {"name": name, "ownerReferences": reference(&uid)}});
        created(&admin, "/api/v1/namespaces/a/secrets", secret).await;
    }
    eventually(&admin, "/api/v1/namespaces/a/secrets/stale", |answer| answer.code == 404).await;
    assert_eq!(admin.get("/api/v1/namespaces/a/secrets/d").await.code, 200);
    assert_eq!(admin.delete("/api/v1/namespaces/a/configmaps/o", "").await.code, 200);
    eventually(&admin, "/api/v1/namespaces/a/secrets/d", |answer| answer.code == 404).await;

    created(&admin, "/api/v1/namespaces/a/secrets", json!({"metadata": {"name": "s"}})).await;
    assert_eq!(admin.delete("/api/v1/namespaces/a", "").await.code, 200);
    eventually(&admin, "/api/v1/namespaces/a", |answer| answer.code == 404).await;
    let left = admin.get("/api/v1/secrets").await.json();
    assert_eq!(left["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_secret_is_filled() {
    let api = secured().await;
    let admin = admin(&api);
    let secret = json!({
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
        "type": "kubernetes.io/service-account-token"
    });
    created(&admin, "/api/v1/namespaces/default/secrets", secret).await;
    let filled = |answer: &Answer| answer.json()["data"]["token"].is_string();
    let secret = eventually(&admin, "/api/v1/namespaces/default/secrets/t", filled).await.json();
    assert_eq!(secret["data"]["namespace"], "ZGVmYXVsdA==");
    assert_eq!(secret["data"]["ca.crt"], "UEVN");
    assert!(secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"].is_string());
}
