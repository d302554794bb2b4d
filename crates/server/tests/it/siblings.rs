//! Field case S1 (CVE-2022-3162) over HTTP: resources of one group whose names begin alike.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Answer, Client, eventually, server};

const GROUP: &str = "/apis/example.org/v1";

async fn define(client: &Client, plural: &str, kind: &str) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.org")},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = client.post(definitions, &definition.to_string()).await;
    assert_eq!(created.code, 201, "{}", created.text);
    eventually(client, &format!("{GROUP}/{plural}"), |answer| answer.code == 200).await;
}

async fn create(client: &Client, plural: &str, kind: &str, namespace: &str, name: &str) {
    let object = json!({"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": name}});
    let created = client.post(&format!("{GROUP}/namespaces/{namespace}/{plural}"), &object.to_string()).await;
    assert_eq!(created.code, 201, "{}", created.text);
}

/// The names in a list, or in the events of a watch; nothing for a refusal.
fn names(answer: &Answer) -> Vec<String> {
    if answer.code != 200 {
        // A key that cannot be is a 500 here as upstream.
        assert!((400..=500).contains(&answer.code), "{} {}", answer.code, answer.text);
        return Vec::new();
    }
    let documents: Vec<Value> =
        answer.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let items = documents.iter().flat_map(|document| match document.get("items") {
        Some(items) => items.as_array().cloned().unwrap_or_default(),
        // A watch that cannot be is refused by its only event.
        None if document["type"] == "ERROR" && document["object"]["kind"] == "Status" => Vec::new(),
        None => vec![document["object"].clone()],
    });
    let mut names: Vec<String> =
        items.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn s1_no_namespace_reaches_a_sibling_resource() {
    let api = server().await;
    let client = Client::new(&api);
    let kinds = [("widgets", "Widget"), ("widgetsx", "WidgetX")];
    for (plural, kind) in kinds {
        define(&client, plural, kind).await;
    }
    for namespace in ["other", "x"] {
        let namespace = json!({"metadata": {"name": namespace}}).to_string();
        assert_eq!(client.post("/api/v1/namespaces", &namespace).await.code, 201);
    }
    let own = |plural: &str, namespace: &str| format!("{plural}-in-{namespace}");
    for (plural, kind) in kinds {
        for namespace in ["default", "other", "x"] {
            create(&client, plural, kind, namespace, &own(plural, namespace)).await;
        }
    }
    let secret =
        client.post("/api/v1/namespaces/default/secrets", r#"{"metadata":{"name":"foreign"}}"#).await;
    assert_eq!(secret.code, 201);

    let hostile = [
        "..",
        ".",
        "",
        "%2e%2e",
        "%2E%2E",
        "%2e",
        "a%2fb",
        "a%2Fb",
        "a/b",
        "..%2f",
        "%2e%2e%2fwidgetsx",
        "..%2fwidgetsx%2fdefault",
        "../widgetsx/default",
        "x%2f",
        "%2f",
        "%00",
        "default%00",
        "x/../default",
        "%2e%2e%2f%2e%2e%2fsecrets%2fdefault",
        "%252e%252e",
        "%ff",
        "default%2f..",
    ];
    for (plural, _) in kinds {
        let everywhere: Vec<String> =
            ["default", "other", "x"].iter().map(|namespace| own(plural, namespace)).collect();
        for query in ["", "?watch=1&timeoutSeconds=1", "?limit=1000&resourceVersion=0"] {
            // Cluster-wide, and in one namespace: everything of its own, and nothing else.
            let all = client.get(&format!("{GROUP}/{plural}{query}")).await;
            assert_eq!(names(&all), everywhere, "{plural} {query}: {}", all.text);
            let one = client.get(&format!("{GROUP}/namespaces/x/{plural}{query}")).await;
            assert_eq!(names(&one), [own(plural, "x")], "{plural} {query}: {}", one.text);
            for namespace in hostile {
                // An empty one is no namespace: the list of all, still of its own only.
                let expected = if namespace.is_empty() { everywhere.clone() } else { Vec::new() };
                let url = format!("{GROUP}/namespaces/{namespace}/{plural}{query}");
                let answer = client.get(&url).await;
                assert_eq!(names(&answer), expected, "{url}: {}", answer.text);
                let url = format!("{GROUP}/watch/namespaces/{namespace}/{plural}?timeoutSeconds=1");
                if query.is_empty() {
                    let answer = tokio::time::timeout(Duration::from_secs(30), client.get(&url)).await;
                    let answer = answer.expect("an end");
                    assert_eq!(names(&answer), expected, "{url}: {}", answer.text);
                }
            }
        }
    }
}

/// A watch that is open while siblings change hears of its own only.
#[tokio::test]
async fn s1_an_open_watch_hears_of_no_sibling() {
    let api = server().await;
    let client = Client::new(&api);
    define(&client, "widgets", "Widget").await;
    define(&client, "widgetsx", "WidgetX").await;
    let list = client.get(&format!("{GROUP}/widgets")).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let url = format!("{GROUP}/widgets?watch=1&timeoutSeconds=2&resourceVersion={version}");
    let (answer, ()) = tokio::join!(client.get(&url), async {
        create(&client, "widgetsx", "WidgetX", "default", "foreign").await;
        create(&client, "widgets", "Widget", "default", "own").await;
    });
    assert_eq!(names(&answer), ["own"], "{}", answer.text);
}
