//! What a namespace's LimitRanges and ResourceQuotas let in; texts as a real kube-apiserver v1.37.2 answers them.

use coffer_server::api::ApiServer;
use serde_json::{Value, json};

use crate::support::{Client, define, eventually, secured};

fn admin(api: &ApiServer) -> Client {
    Client::in_groups(api, "admin", &["system:masters", "system:authenticated"])
}

const HOME: &str = "/api/v1/namespaces/default";

async fn ready(client: &Client) {
    eventually(client, &format!("{HOME}/serviceaccounts/default"), |answer| answer.code == 200).await;
}

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

/// The code and the message of a POST.
async fn post(client: &Client, resource: &str, body: &Value) -> (u16, String) {
    let answer = client.post(&format!("{HOME}/{resource}"), &body.to_string()).await;
    let text = answer.json()["message"].as_str().unwrap_or_default().to_owned();
    (answer.code, text)
}

/// A quota whose use the quota controller has counted, and found so.
async fn quota(client: &Client, name: &str, spec: Value, used: Value) {
    let body = json!({"metadata": {"name": name}, "spec": spec});
    let made = post(client, "resourcequotas", &body).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let path = format!("{HOME}/resourcequotas/{name}");
    eventually(client, &path, |answer| answer.json()["status"]["used"] == used).await;
}

async fn used(client: &Client, name: &str) -> Value {
    client.get(&format!("{HOME}/resourcequotas/{name}")).await.json()["status"]["used"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_charged_and_not_exceeded() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    let hard = json!({"pods": "2", "cpu": "1", "memory": "1Gi", "secrets": "1", "services": "3", "services.nodeports": "1", "count/deployments.apps": "0"});
    let none = json!({"pods": "0", "cpu": "0", "memory": "0", "secrets": "0", "services": "1", "services.nodeports": "0", "count/deployments.apps": "0"});
    quota(&admin, "q", json!({"hard": hard}), none).await;

    let half = json!({"requests": {"cpu": "500m", "memory": "252Mi"}});
    let dry = admin.post(&format!("{HOME}/pods?dryRun=All"), &pod("dry", half.clone()).to_string()).await;
    assert_eq!(dry.code, 201, "{}", dry.text);
    assert_eq!(used(&admin, "q").await["pods"], "0");
    assert_eq!(post(&admin, "pods", &pod("a", half)).await.0, 201);
    let now = used(&admin, "q").await;
    assert_eq!((&now["pods"], &now["cpu"], &now["memory"]), (&json!("1"), &json!("500m"), &json!("252Mi")));
    for (resource, body, expected) in [
        (
            "pods",
            pod("b", json!({"requests": {"cpu": "600m", "memory": "100Mi"}})),
            "pods \"b\" is forbidden: exceeded quota: q, requested: cpu=600m, used: cpu=500m, limited: cpu=1",
        ),
        (
            "pods",
            pod("b", json!({"requests": {"cpu": "100m"}})),
            "pods \"b\" is forbidden: failed quota: q: must specify memory for: c",
        ),
        (
            "services",
            json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}}),
            "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1",
        ),
    ] {
        assert_eq!(post(&admin, resource, &body).await, (403, expected.to_owned()));
    }
    let secret = |name: &str| json!({"metadata": {"name": name}});
    assert_eq!(post(&admin, "secrets", &secret("a")).await.0, 201);
    assert_eq!(
        post(&admin, "secrets", &secret("b")).await,
        (403, "secrets \"b\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1".to_owned())
    );
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let answer = admin.post("/apis/apps/v1/namespaces/default/deployments", &deployment.to_string()).await;
    assert_eq!(
        answer.json()["message"],
        "deployments.apps \"d\" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"
    );
    // A Service that becomes something else is charged for the difference.
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(post(&admin, "services", &service).await.0, 201);
    let answer = admin.patch(&format!("{HOME}/services/s"), "merge", r#"{"spec":{"type":"NodePort"}}"#).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let now = used(&admin, "q").await;
    assert_eq!((&now["services"], &now["services.nodeports"]), (&json!("2"), &json!("1")));
    // What is gone is given back.
    assert_eq!(admin.delete(&format!("{HOME}/secrets/a"), "").await.code, 200);
    eventually(&admin, &format!("{HOME}/resourcequotas/q"), |answer| {
        answer.json()["status"]["used"]["secrets"] == "0"
    })
    .await;
    assert_eq!(post(&admin, "secrets", &secret("b")).await.0, 201);
    // And so is what has ended.
    let ended = json!({"status": {"phase": "Succeeded"}}).to_string();
    assert_eq!(admin.patch(&format!("{HOME}/pods/a/status"), "merge", &ended).await.code, 200);
    eventually(&admin, &format!("{HOME}/resourcequotas/q"), |answer| {
        answer.json()["status"]["used"]["pods"] == "0"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_counts_what_is_in_its_scope_once_its_use_is_known() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    let zero = json!({"pods": "0"});
    let scoped = |scope: &str| json!({"hard": {"pods": "5"}, "scopes": [scope]});
    for scope in ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating"] {
        quota(&admin, &scope.to_lowercase(), scoped(scope), zero.clone()).await;
    }
    let class = json!([{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]);
    let critical = json!({"hard": {"pods": "5"}, "scopeSelector": {"matchExpressions": class}});
    quota(&admin, "critical", critical, zero).await;
    assert_eq!(post(&admin, "pods", &pod("plain", json!({}))).await.0, 201);
    let mut short = pod("short", json!({"requests": {"cpu": "1"}}));
    short["spec"]["activeDeadlineSeconds"] = json!(3600);
    short["spec"]["priorityClassName"] = json!("system-node-critical");
    assert_eq!(post(&admin, "pods", &short).await.0, 201);
    for (name, expected) in [
        ("besteffort", "1"),
        ("notbesteffort", "1"),
        ("terminating", "1"),
        ("notterminating", "1"),
        ("critical", "1"),
    ] {
        assert_eq!(used(&admin, name).await["pods"], expected, "{name}");
    }
    // A pod whose end is set moves from one scope into another, and is charged there.
    let answer =
        admin.patch(&format!("{HOME}/pods/plain"), "merge", r#"{"spec":{"activeDeadlineSeconds":60}}"#).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    assert_eq!(used(&admin, "terminating").await["pods"], "2");
    // And in the end it is in its new scope only.
    eventually(&admin, &format!("{HOME}/resourcequotas/notterminating"), |answer| {
        answer.json()["status"]["used"]["pods"] == "0"
    })
    .await;
}

/// What is served while there are no quotas is counted for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_counted() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    let path = format!("{HOME}/resourcequotas/q");
    quota(&admin, "q", json!({"hard": {"secrets": "1"}}), json!({"secrets": "0"})).await;
    assert_eq!(admin.delete(&path, "").await.code, 200);
    let definition = json!({"metadata": {"name": "lamps.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let lamps = "/apis/example.com/v1/namespaces/default/lamps";
    define(&admin, &definition, lamps).await;
    let count = |number: &str| json!({"count/lamps.example.com": number});
    quota(&admin, "q", json!({"hard": count("1")}), count("0")).await;
    let lamp = |name: &str| {
        json!({"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": name}}).to_string()
    };
    assert_eq!(admin.post(lamps, &lamp("a")).await.code, 201);
    assert_eq!(admin.post(lamps, &lamp("b")).await.code, 403);
    assert_eq!(admin.delete(&format!("{lamps}/a"), "").await.code, 200);
    eventually(&admin, &path, |answer| answer.json()["status"]["used"] == count("0")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_once_do_not_exceed_a_quota() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    quota(&admin, "q", json!({"hard": {"configmaps": "6"}}), json!({"configmaps": "1"})).await;
    let writers =
        (0..20).map(|number| {
            let client = Client::in_groups(&api, "admin", &["system:masters", "system:authenticated"]);
            async move {
                post(&client, "configmaps", &json!({"metadata": {"name": format!("m{number}")}})).await.0
            }
        });
    let codes = futures::future::join_all(writers).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 5, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 15, "{codes:?}");
    assert_eq!(used(&admin, "q").await["configmaps"], "6");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_range_sets_and_holds() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    let limits = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "min": {"cpu": "50m"}, "max": {"cpu": "500m", "memory": "500Mi"}, "default": {"cpu": "500m", "memory": "500Mi"}, "defaultRequest": {"cpu": "100m", "memory": "200Mi"}, "maxLimitRequestRatio": {"cpu": "5"}},
        {"type": "Pod", "max": {"memory": "900Mi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}
    ]}});
    assert_eq!(post(&admin, "limitranges", &limits).await.0, 201);
    let answer = admin
        .post(&format!("{HOME}/pods"), &pod("a", json!({"requests": {"cpu": "200m"}})).to_string())
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let made = answer.json();
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "500Mi"}, "requests": {"cpu": "200m", "memory": "200Mi"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c"
    );
    for (resources, expected) in [
        (
            json!({"requests": {"cpu": "10m"}, "limits": {"cpu": "50m"}}),
            "minimum cpu usage per Container is 50m, but request is 10m",
        ),
        (
            json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "600m"}}),
            "[maximum cpu usage per Container is 500m, but limit is 600m, cpu max limit to request ratio per Container is 5, but provided ratio is 6.000000]",
        ),
        (
            json!({"requests": {"memory": "1Gi"}, "limits": {"cpu": "500m", "memory": "1Gi"}}),
            "[maximum memory usage per Container is 500Mi, but limit is 1Gi, maximum memory usage per Pod is 900Mi, but limit is 1Gi]",
        ),
    ] {
        let found = post(&admin, "pods", &pod("b", resources)).await;
        assert_eq!(found, (403, format!("pods \"b\" is forbidden: {expected}")));
    }
    let claim = |size: &str| json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
    for (size, expected) in [
        ("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
        ("6Gi", "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"),
    ] {
        let found = post(&admin, "persistentvolumeclaims", &claim(size)).await;
        assert_eq!(found, (403, format!("persistentvolumeclaims \"c\" is forbidden: {expected}")));
    }
    assert_eq!(post(&admin, "persistentvolumeclaims", &claim("2Gi")).await.0, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_has_what_its_runtime_class_says() {
    let api = secured().await;
    let admin = admin(&api);
    ready(&admin).await;
    let mut wants = pod("p", json!({}));
    wants["spec"]["runtimeClassName"] = json!("deep");
    assert_eq!(
        post(&admin, "pods", &wants).await,
        (403, "pods \"p\" is forbidden: pod rejected: RuntimeClass \"deep\" not found".to_owned())
    );
    let class = json!({"metadata": {"name": "deep"}, "handler": "h", "overhead": {"podFixed": {"cpu": "10m"}}, "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}});
    let made = admin.post("/apis/node.k8s.io/v1/runtimeclasses", &class.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let answer = admin.post(&format!("{HOME}/pods"), &wants.to_string()).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let made = answer.json();
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "10m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"a": "b"}));
    let tolerations = made["spec"]["tolerations"].as_array().expect("tolerations");
    assert!(tolerations.iter().any(|one| one["key"] == "k"), "{tolerations:?}");
    let mut other = wants.clone();
    other["metadata"]["name"] = json!("q");
    other["spec"]["nodeSelector"] = json!({"a": "c"});
    let conflict = "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c";
    assert_eq!(post(&admin, "pods", &other).await, (403, format!("pods \"q\" is forbidden: {conflict}")));
    let mut bare = pod("r", json!({}));
    bare["spec"]["overhead"] = json!({"cpu": "1"});
    let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    assert_eq!(post(&admin, "pods", &bare).await, (403, format!("pods \"r\" is forbidden: {why}")));
}
