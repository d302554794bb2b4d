//! The whole server: RBAC with the bootstrap policy, service account tokens, admission and every controller.

use std::sync::Arc;
use std::time::Duration;

use coffer_crypto::Identity;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::api::{ApiServer, ApiServerConfig, Foundation, Policy};
use coffer_server::authz::Mode;
use coffer_server::controllers;
use coffer_server::pki::{self, Files, Wanted};
use coffer_server::security::{Security, SecurityConfig};
use coffer_store::Storage;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_types::time::Clock as _;
use serde_json::{Value, json};

use crate::support::{Answer, Client, wait};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn secured() -> ApiServer {
    let clock = Arc::new(SystemClock::new());
    let random = Arc::new(SystemRandom::new());
    let mut files = Files::new();
    pki::complete(&mut files, &Wanted::default(), clock.now()).expect("keys");
    let kv = Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store in memory");
    let storage = Storage::new(Arc::new(kv), clock.clone(), "/registry", Box::new(|_, _| Arc::new(Identity)));
    let config =
        ApiServerConfig { storage, clock: clock.clone(), random: random.clone(), metrics: Arc::default() };
    let foundation = Foundation::open(config).expect("stores");
    let objects = foundation.objects();
    let config = SecurityConfig {
        client_ca: Some(files["ca.crt"].expose().to_vec()),
        token_file: None,
        bootstrap_tokens: false,
        anonymous: true,
        issuers: vec!["https://kubernetes.default.svc".to_owned()],
        api_audiences: Vec::new(),
        signing_key: files["service-account.key"].expose().to_vec(),
        verification_keys: Vec::new(),
        extend_expiration: true,
        modes: vec![Mode::Rbac],
        external_address: "127.0.0.1:6443".to_owned(),
        root_ca: "PEM".to_owned(),
        bind_pods: true,
    };
    let security = Security::new(config, objects.clone(), clock.clone(), random).expect("put together");
    let api = foundation.build(Policy {
        authenticator: security.authn,
        authorizer: security.authorizer,
        admission: security.admission,
        create_only: security.create_only,
        routes: Vec::new(),
        health_checks: Vec::new(),
    });
    let fed = Arc::default();
    tokio::spawn(controllers::feed_policy(security.rbac, objects.clone(), Arc::clone(&fed)));
    for controller in security.controllers {
        tokio::spawn(controllers::run(controller, objects.clone(), clock.clone()));
    }
    let ready = security.policy_ready;
    wait(|| api.ready() && fed.load(std::sync::atomic::Ordering::Acquire)).await;
    let admin = admin(&api);
    eventually(&admin, "/api/v1/namespaces/default/serviceaccounts/default", |answer| answer.code == 200)
        .await;
    // The policy is whole once its last binding is stored.
    let last = format!("{RBAC}/clusterrolebindings/coffer:node");
    eventually(&admin, &last, |answer| answer.code == 200).await;
    drop(ready);
    api
}

fn admin(api: &ApiServer) -> Client {
    Client::in_groups(api, "admin", &["system:masters", "system:authenticated"])
}

/// Asks until the answer is as wanted, for at most ten seconds.
async fn eventually(client: &Client, url: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let mut answer = client.get(url).await;
    for _ in 0..500 {
        if wanted(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        answer = client.get(url).await;
    }
    panic!("{url} never was as wanted: {} {}", answer.code, answer.text);
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
    assert_eq!(policy["items"].as_array().map(Vec::len), Some(75));
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
