//! Field selectors on declared fields of custom resources, after upstream's TestSelectableFields.

use serde_json::{Value, json};

use crate::support::{Client, Events, define, server};

const GROUP: &str = "/apis/tests.example.org";

fn version(name: &str, color: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                color: {"type": "string"}, "quantity": {"type": "integer", "default": 1},
                "size": {"type": "string", "enum": ["S", "M", "L", "XL"]}, "branded": {"type": "boolean"}}}}}},
        "selectableFields": [{"jsonPath": format!(".spec.{color}")}, {"jsonPath": ".spec.quantity"},
                             {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.branded"}]})
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shirts.tests.example.org"},
        "spec": {"group": "tests.example.org", "scope": "Namespaced", "names": {"plural": "shirts", "kind": "Shirt"},
                 "versions": [version("v1", "color", true), version("v1beta1", "hue", false)]}
    })
}

fn shirts(version: &str) -> String {
    format!("{GROUP}/{version}/namespaces/default/shirts")
}

async fn make(client: &Client, name: &str, spec: Value) {
    let shirt = json!({"apiVersion": "tests.example.org/v1", "kind": "Shirt",
                       "metadata": {"name": name, "labels": {"made": "here"}}, "spec": spec});
    let made = client.post(&shirts("v1"), &shirt.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
}

async fn three(client: &Client) {
    define(client, &definition(), &shirts("v1beta1")).await;
    make(client, "shirt1", json!({"color": "blue", "quantity": 2, "size": "S", "branded": true})).await;
    make(client, "shirt2", json!({"color": "blue", "quantity": 3, "branded": false})).await;
    make(client, "shirt3", json!({"color": "green", "size": "M"})).await;
}

async fn next_page(client: &Client, url: &str) -> Option<String> {
    let token = client.get(url).await.json()["metadata"]["continue"].as_str().map(str::to_owned);
    token.filter(|token| !token.is_empty())
}

async fn names(client: &Client, url: &str) -> Vec<String> {
    let list = client.get(url).await;
    assert_eq!(list.code, 200, "{url}: {}", list.text);
    let list = list.json();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn lists_are_selected_by_declared_fields() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    for (version, selector, expected) in [
        ("v1", "spec.color=blue", &["shirt1", "shirt2"][..]),
        ("v1", "spec.color!=blue", &["shirt3"]),
        ("v1", "spec.quantity=2", &["shirt1"]),
        // The default is selected by, too.
        ("v1", "spec.quantity=1", &["shirt3"]),
        ("v1", "spec.size=M", &["shirt3"]),
        ("v1", "spec.size=", &["shirt2"]),
        ("v1", "spec.branded=false", &["shirt2"]),
        ("v1", "spec.color=blue,spec.branded=false", &["shirt2"]),
        ("v1", "spec.color=blue,metadata.name=shirt1", &["shirt1"]),
        // Each version has fields of its own: what another version calls them is not there.
        ("v1beta1", "spec.hue=", &["shirt1", "shirt2", "shirt3"]),
        ("v1beta1", "spec.quantity=3", &["shirt2"]),
    ] {
        for at in ["", "&resourceVersion=0", "&limit=1"] {
            let mut url = format!("{}?fieldSelector={selector}{at}", shirts(version));
            let mut found = names(&client, &url).await;
            if at == "&limit=1" {
                while let Some(token) = next_page(&client, &url).await {
                    url = format!("{}?fieldSelector={selector}{at}&continue={token}", shirts(version));
                    found.extend(names(&client, &url).await);
                }
            }
            assert_eq!(found, expected, "{version} {selector} {at}");
        }
    }
    for (version, selector, field) in [
        ("v1", "spec.nosuchfield=xyz", "spec.nosuchfield"),
        ("v1", "spec.hue=blue", "spec.hue"),
        ("v1beta1", "spec.color=blue", "spec.color"),
    ] {
        for url in [
            format!("{}?fieldSelector={selector}", shirts(version)),
            format!("{}?fieldSelector={selector}&watch=1&timeoutSeconds=1", shirts(version)),
        ] {
            let refused = client.get(&url).await;
            let message = format!("field label not supported: {field}");
            assert_eq!((refused.code, refused.json()["message"].as_str()), (400, Some(message.as_str())));
        }
        let url = format!("{}?fieldSelector={selector}", shirts(version));
        assert_eq!(client.delete(&url, "").await.code, 400);
    }
}

#[tokio::test]
async fn a_watch_sees_objects_enter_and_leave() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    let list = client.get(&shirts("v1")).await.json();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let url = format!(
        "{}?watch=1&fieldSelector=spec.color=blue&timeoutSeconds=10&resourceVersion={version}",
        shirts("v1")
    );
    let mut events = Events::new(client.open("GET", &url, &[], b"").await);
    let paint = |name: &'static str, color: &'static str| {
        let (client, patch) = (&client, json!({"spec": {"color": color}}).to_string());
        async move { client.patch(&format!("{}/{name}", shirts("v1")), "merge", &patch).await.code }
    };
    assert_eq!(paint("shirt3", "blue").await, 200);
    assert_eq!(paint("shirt1", "red").await, 200);
    assert_eq!(
        client.patch(&format!("{}/shirt2", shirts("v1")), "merge", r#"{"spec":{"quantity":9}}"#).await.code,
        200
    );
    assert_eq!(client.delete(&format!("{}/shirt2", shirts("v1")), "").await.code, 200);
    assert_eq!(client.delete(&format!("{}/shirt1", shirts("v1")), "").await.code, 200);
    assert_eq!(paint("shirt3", "red").await, 200);
    for (kind, name, color) in [
        ("ADDED", "shirt3", "blue"),
        // Who leaves is told as it last was in the selection.
        ("DELETED", "shirt1", "blue"),
        ("MODIFIED", "shirt2", "blue"),
        ("DELETED", "shirt2", "blue"),
        ("DELETED", "shirt3", "blue"),
    ] {
        let event = events.next().await.expect("an event");
        let object = &event["object"];
        assert_eq!(
            (event["type"].as_str(), object["metadata"]["name"].as_str(), object["spec"]["color"].as_str()),
            (Some(kind), Some(name), Some(color)),
            "{event}"
        );
    }
}

#[tokio::test]
async fn a_collection_is_deleted_by_a_declared_field() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    let deleted = client.delete(&format!("{}?fieldSelector=spec.color=blue", shirts("v1")), "").await;
    assert_eq!(deleted.code, 200, "{}", deleted.text);
    assert_eq!(names(&client, &shirts("v1")).await, ["shirt3"]);
}

#[tokio::test]
async fn a_changed_definition_changes_what_is_selected() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    let url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shirts.tests.example.org";
    let fields = r#"[{"op":"replace","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.size"}]}]"#;
    assert_eq!(client.patch(url, "json", fields).await.code, 200);
    let color = format!("{}?fieldSelector=spec.color=blue", shirts("v1"));
    crate::support::eventually(&client, &color, |answer| answer.code == 400).await;
    assert_eq!(names(&client, &format!("{}?fieldSelector=spec.size=M", shirts("v1"))).await, ["shirt3"]);
}

#[tokio::test]
async fn selectable_fields_are_in_the_document() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    let document = client.get("/openapi/v3/apis/tests.example.org/v1").await.json();
    let expected = json!([{"fieldPath": "spec.color"}, {"fieldPath": "spec.quantity"},
                          {"fieldPath": "spec.size"}, {"fieldPath": "spec.branded"}]);
    for kind in ["Shirt", "ShirtList"] {
        let schema = &document["components"]["schemas"][format!("org.example.tests.v1.{kind}")];
        assert_eq!(schema["x-kubernetes-selectable-fields"], expected, "{kind}");
    }
}

/// Two versions of one object: each watch gets its own.
#[tokio::test]
async fn each_version_is_watched_in_its_own_form() {
    let api = server().await;
    let client = Client::new(&api);
    three(&client).await;
    for version in ["v1", "v1beta1", "v1"] {
        let url = format!("{}?watch=1&timeoutSeconds=5", shirts(version));
        let mut events = Events::new(client.open("GET", &url, &[], b"").await);
        let event = events.next().await.expect("an event");
        assert_eq!(event["object"]["apiVersion"], format!("tests.example.org/{version}"));
    }
}

/// A definition that changes its stored version while objects are watched.
#[tokio::test]
async fn a_new_storage_version_is_taken_up_by_open_watches() {
    let api = server().await;
    let client = Client::new(&api);
    let mut plain = definition();
    for index in 0..2 {
        plain["spec"]["versions"][index]["selectableFields"] = Value::Null;
    }
    define(&client, &plain, &shirts("v1beta1")).await;
    make(&client, "old", json!({"color": "blue"})).await;
    let url = format!("{}?watch=1&timeoutSeconds=20", shirts("v1"));
    let mut events = Events::new(client.open("GET", &url, &[], b"").await);
    assert_eq!(events.next().await.expect("an event")["object"]["metadata"]["name"], "old");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shirts.tests.example.org";
    let mut v2 = version("v2", "color", true);
    v2["selectableFields"] = Value::Null;
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "add", "path": "/spec/versions/-", "value": v2},
    ]);
    let changed = client.patch(definitions, "json", &patch.to_string()).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    assert_eq!(changed.json()["status"]["storedVersions"], json!(["v1", "v2"]));
    crate::support::eventually(&client, &shirts("v2"), |answer| answer.code == 200).await;
    make(&client, "new", json!({"color": "red"})).await;
    let event = events.next().await.expect("an event");
    assert_eq!(
        (event["object"]["metadata"]["name"].as_str(), event["object"]["apiVersion"].as_str()),
        (Some("new"), Some("tests.example.org/v1")),
        "{event}"
    );
    assert_eq!(names(&client, &shirts("v2")).await, ["new", "old"]);
}
