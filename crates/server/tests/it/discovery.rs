//! Discovery, version, health, OpenAPI: the facts that clients rely on, observed on kube-apiserver 1.37.2.

use serde_json::{Value, json};

use crate::support::{Client, server};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn resources_are_listed_as_upstream_lists_them() {
    let api = server().await;
    let client = Client::new(&api);
    let entry = |list: &Value, name: &str| -> Value {
        let resources = list["resources"].as_array().expect("resources");
        resources.iter().find(|resource| resource["name"] == name).cloned().unwrap_or_default()
    };
    let all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let core = client.get("/api/v1").await.json();
    assert_eq!(
        (core["kind"].as_str(), core["groupVersion"].as_str(), core.get("apiVersion")),
        (Some("APIResourceList"), Some("v1"), None)
    );
    for (name, expected) in [
        (
            "secrets",
            json!({"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":all,"storageVersionHash":"S6u1pOWzb84="}),
        ),
        (
            "configmaps",
            json!({"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":all,"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="}),
        ),
        (
            "namespaces",
            json!({"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"storageVersionHash":"Q3oi5N2YM8M="}),
        ),
        (
            "namespaces/finalize",
            json!({"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]}),
        ),
        (
            "namespaces/status",
            json!({"name":"namespaces/status","singularName":"","namespaced":false,"kind":"Namespace","verbs":["get","patch","update"]}),
        ),
        (
            "pods",
            json!({"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":all,"shortNames":["po"],"categories":["all"],"storageVersionHash":"xPOwRZ+Yhw8="}),
        ),
        (
            "pods/binding",
            json!({"name":"pods/binding","singularName":"","namespaced":true,"kind":"Binding","verbs":["create"]}),
        ),
        (
            "nodes",
            json!({"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","verbs":all,"shortNames":["no"],"storageVersionHash":"XwShjMxG9Fs="}),
        ),
        (
            "events",
            json!({"name":"events","singularName":"event","namespaced":true,"kind":"Event","verbs":all,"shortNames":["ev"],"storageVersionHash":"r2yiGXH7wu8="}),
        ),
        (
            "serviceaccounts",
            json!({"name":"serviceaccounts","singularName":"serviceaccount","namespaced":true,"kind":"ServiceAccount","verbs":all,"shortNames":["sa"],"storageVersionHash":"pbx9ZvyFpBE="}),
        ),
        (
            "services",
            json!({"name":"services","singularName":"service","namespaced":true,"kind":"Service","verbs":all,"shortNames":["svc"],"categories":["all"],"storageVersionHash":"0/CO1lhkEBI="}),
        ),
        (
            "endpoints",
            json!({"name":"endpoints","singularName":"endpoints","namespaced":true,"kind":"Endpoints","verbs":all,"shortNames":["ep"],"storageVersionHash":"fWeeMqaN/OA="}),
        ),
    ] {
        assert_eq!(entry(&core, name), expected);
    }
    for (group, name, hash) in [
        ("coordination.k8s.io", "leases", "gqkMMb/YqFM="),
        ("rbac.authorization.k8s.io", "roles", "7FuwZcIIItM="),
        ("rbac.authorization.k8s.io", "clusterrolebindings", "48tpQ8gZHFc="),
        ("events.k8s.io", "events", "r2yiGXH7wu8="),
        ("apiextensions.k8s.io", "customresourcedefinitions", "jfWCUB31mvA="),
    ] {
        let list = client.get(&format!("/apis/{group}/v1")).await.json();
        assert_eq!(entry(&list, name)["storageVersionHash"], hash, "{group}");
        assert_eq!(list["apiVersion"], "v1");
    }
}

#[tokio::test]
async fn aggregated_discovery_has_a_tag() {
    let api = server().await;
    let client = Client::new(&api);
    let answer = client.send("GET", "/apis", &[("accept", AGGREGATED)], b"").await;
    assert_eq!(answer.header("content-type"), AGGREGATED);
    assert_eq!((answer.header("cache-control"), answer.header("vary")), ("public", "Accept"));
    let tag = answer.header("etag").to_owned();
    assert_eq!(tag.len(), 130);
    let again = client.send("GET", "/apis", &[("accept", AGGREGATED), ("if-none-match", &tag)], b"").await;
    assert_eq!((again.code, again.bytes.len()), (304, 0));
    let items = answer.json()["items"].clone();
    assert_eq!(items[0]["metadata"]["name"], "apiregistration.k8s.io");
    let core = client.send("GET", "/api", &[("accept", AGGREGATED)], b"").await.json();
    let secrets = core["items"][0]["versions"][0]["resources"]
        .as_array()
        .expect("resources")
        .iter()
        .find(|one| one["resource"] == "secrets")
        .cloned();
    assert_eq!(
        secrets,
        Some(
            json!({"resource": "secrets", "responseKind": {"group": "", "version": "", "kind": "Secret"}, "scope": "Namespaced", "singularResource": "secret", "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]})
        )
    );
    let old = client
        .send(
            "GET",
            "/apis",
            &[("accept", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")],
            b"",
        )
        .await;
    assert_eq!(old.code, 406);
    let classic = client.get("/apis").await.json();
    assert_eq!(
        classic["groups"][1],
        json!({"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}})
    );
}

/// Whatever the aggregated documents list can be asked for, and what is built into the original and not served here
/// is not listed.
#[tokio::test]
async fn what_aggregated_discovery_lists_is_served() {
    let api = server().await;
    let client = Client::new(&api);
    let mut asked = 0;
    for (root, core) in [("/api", true), ("/apis", false)] {
        let list = client.send("GET", root, &[("accept", AGGREGATED)], b"").await.json();
        for group in list["items"].as_array().expect("groups") {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            assert!(!["internal.apiserver.k8s.io", "lifecycle.k8s.io"].contains(&name), "{name}");
            for version in group["versions"].as_array().expect("versions") {
                let version_name = version["version"].as_str().expect("a version");
                let base = if core {
                    format!("{root}/{version_name}")
                } else {
                    format!("{root}/{name}/{version_name}")
                };
                for resource in version["resources"].as_array().expect("resources") {
                    let plural = resource["resource"].as_str().expect("a name");
                    let place = if resource["scope"] == "Namespaced" { "/namespaces/default" } else { "" };
                    let verbs: Vec<&str> = resource["verbs"]
                        .as_array()
                        .expect("verbs")
                        .iter()
                        .filter_map(Value::as_str)
                        .collect();
                    let path = format!("{base}{place}/{plural}");
                    if verbs.contains(&"list") {
                        assert_eq!(client.get(&path).await.code, 200, "{path}");
                    } else {
                        // Only made, never kept: the body is what is wrong.
                        assert_eq!(verbs, ["create"], "{path}");
                        let code = client.post(&path, "{}").await.code;
                        assert!(![404, 405].contains(&code), "{path}: {code}");
                    }
                    asked += 1;
                }
            }
        }
    }
    assert!(50 < asked, "{asked} resources");
}

#[tokio::test]
async fn the_rest_of_the_paths() {
    let api = server().await;
    let client = Client::new(&api);
    let version = client.get("/version").await.json();
    assert!(version["gitVersion"].as_str().expect("text").starts_with("v1.37.2"));
    assert_eq!((version["major"].as_str(), version["minor"].as_str()), (Some("1"), Some("37")));
    for (url, code, text) in [
        ("/livez", 200, "ok"),
        ("/readyz", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/readyz/xx", 404, "404 page not found\n"),
        ("/healthz/", 404, "404 page not found\n"),
        ("/foo", 404, "404 page not found\n"),
        ("/apis/foo.io", 404, "404 page not found\n"),
        ("/apis/foo.io/v1/bars", 404, "404 page not found\n"),
        ("/metrics/foo", 404, "404 page not found\n"),
    ] {
        let answer = client.get(url).await;
        assert_eq!((answer.code, answer.text.as_str()), (code, text), "{url}");
    }
    let index = client.get("/").await.json();
    let paths = index["paths"].as_array().expect("paths");
    for path in ["/api", "/apis/rbac.authorization.k8s.io/v1", "/readyz/ping", "/version"] {
        assert!(paths.contains(&json!(path)), "{path}");
    }
    client.get("/api/v1/namespaces/default/secrets").await;
    let metrics = client.get("/metrics").await.text;
    assert!(metrics.contains("apiserver_request_total{"), "{metrics}");
    assert!(metrics.contains("apiserver_request_duration_seconds_bucket{"), "{metrics}");
    // A consistent list was answered by the watch cache.
    for line in [
        "apiserver_resource_objects{group=\"\",resource=\"secrets\"} 0\n",
        "apiserver_watch_cache_initializations_total{group=\"\",resource=\"secrets\"} 1\n",
        "apiserver_terminated_watchers_total{group=\"\",resource=\"secrets\"} 0\n",
        "watch_cache_capacity{group=\"\",resource=\"secrets\"} 100\n",
        "apiserver_watch_cache_consistent_read_total{group=\"\",resource=\"secrets\",success=\"true\",fallback=\"false\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

#[tokio::test]
async fn openapi_has_what_kubectl_looks_for() {
    let api = server().await;
    let client = Client::new(&api);
    let index = client.get("/openapi/v3").await.json();
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().expect("a URL").to_owned();
    let document = client.get(&url).await;
    assert_eq!(document.header("cache-control"), "public, immutable");
    let patch = document.json()["paths"]["/api/v1/namespaces/{namespace}/secrets/{name}"]["patch"].clone();
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "", "version": "v1", "kind": "Secret"})
    );
    assert!(
        patch["parameters"]
            .as_array()
            .expect("parameters")
            .iter()
            .any(|one| one["name"] == "fieldValidation")
    );
    assert_eq!(client.get("/openapi/v3/api/v1?hash=x").await.code, 301);
    assert_eq!(client.get("/openapi/v3/nope").await.code, 404);
}
