//! What becomes of custom resources when their definition changes or goes.

use serde_json::{Value, json};

use crate::support::{Client, define, eventually, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(versions: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.life.example.org"},
        "spec": {"group": "life.example.org", "scope": "Namespaced", "names": {"plural": "lamps", "kind": "Lamp"},
                 "versions": versions}
    })
}

fn lamps(version: &str) -> String {
    format!("/apis/life.example.org/{version}/namespaces/default/lamps")
}

fn schema(spec: Value) -> Value {
    json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}})
}

/// While a definition is being deleted, its objects can still be changed: else nobody could let go of them.
#[tokio::test]
async fn objects_of_a_definition_that_goes_can_be_let_go() {
    let api = server().await;
    let client = Client::new(&api);
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema(json!({"note": {"type": "string"}}))}]);
    define(&client, &definition(versions), &lamps("v1")).await;
    let lamp = json!({"apiVersion": "life.example.org/v1", "kind": "Lamp",
                      "metadata": {"name": "held", "finalizers": ["example.org/hold"]}});
    assert_eq!(client.post(&lamps("v1"), &lamp.to_string()).await.code, 201);
    let url = format!("{DEFINITIONS}/lamps.life.example.org");
    assert_eq!(client.delete(&url, "").await.code, 200);
    let held = format!("{}/held", lamps("v1"));
    eventually(&client, &held, |answer| answer.json()["metadata"]["deletionTimestamp"].is_string()).await;
    eventually(&client, "/apis/life.example.org/v1", |answer| {
        answer.json()["resources"][0]["verbs"]
            == json!(["delete", "deletecollection", "get", "list", "watch"])
    })
    .await;
    let new =
        json!({"apiVersion": "life.example.org/v1", "kind": "Lamp", "metadata": {"name": "new"}}).to_string();
    let why = "create not allowed while custom resource definition is terminating";
    let refused = client.post(&lamps("v1"), &new).await;
    let message = format!("lamps.life.example.org \"new\" is forbidden: {why}");
    assert_eq!((refused.code, refused.json()["message"].as_str()), (403, Some(message.as_str())));
    let unnamed = new.replace("\"name\"", "\"generateName\"");
    let refused = client.post(&lamps("v1"), &unnamed).await;
    let message = format!("lamps.life.example.org is forbidden: {why}");
    assert_eq!((refused.code, refused.json()["message"].as_str()), (403, Some(message.as_str())));
    let applied = format!("{}/new?fieldManager=x", lamps("v1"));
    assert_eq!(client.patch(&applied, "application/apply-patch+yaml", &new).await.code, 403);
    assert_eq!(client.patch(&held, "merge", r#"{"spec":{"note":"late"}}"#).await.code, 200);
    assert_eq!(client.patch(&held, "merge", r#"{"metadata":{"finalizers":null}}"#).await.code, 200);
    eventually(&client, &url, |answer| answer.code == 404).await;
}

#[tokio::test]
async fn clients_of_a_deprecated_version_are_told() {
    let api = server().await;
    let client = Client::new(&api);
    let version = |name: &str, storage: bool, more: Value| {
        let mut version =
            json!({"name": name, "served": true, "storage": storage, "schema": schema(json!({}))});
        let members = version.as_object_mut().expect("an object");
        members.extend(more.as_object().cloned().unwrap_or_default());
        version
    };
    let versions = json!([
        version("v1", true, json!({})),
        version("v2beta1", false, json!({"deprecated": true})),
        version("v1beta1", false, json!({"deprecated": true, "deprecationWarning": "do not use this"})),
        version("v3", false, json!({"deprecated": true})),
    ]);
    define(&client, &definition(versions), &lamps("v1")).await;
    for (version, expected) in [
        ("v1", ""),
        ("v2beta1", "299 - \"life.example.org/v2beta1 Lamp is deprecated; use life.example.org/v1 Lamp\""),
        ("v1beta1", "299 - \"do not use this\""),
        ("v3", "299 - \"life.example.org/v3 Lamp is deprecated\""),
    ] {
        for url in [lamps(version), format!("{}/none", lamps(version))] {
            assert_eq!(client.get(&url).await.header("warning"), expected, "{url}");
        }
    }
}

/// A stricter schema does not stand in the way of changes elsewhere in an object.
#[tokio::test]
async fn objects_that_a_new_schema_would_refuse_can_be_changed() {
    let api = server().await;
    let client = Client::new(&api);
    let fields =
        |limit: u32| json!({"note": {"type": "string", "maxLength": limit}, "size": {"type": "integer"}});
    let version = |limit: u32| json!([{"name": "v1", "served": true, "storage": true, "schema": schema(fields(limit))}]);
    define(&client, &definition(version(10)), &lamps("v1")).await;
    let lamp = json!({"apiVersion": "life.example.org/v1", "kind": "Lamp", "metadata": {"name": "old"},
                      "spec": {"note": "too long"}});
    assert_eq!(client.post(&lamps("v1"), &lamp.to_string()).await.code, 201);
    let patch = json!({"spec": {"versions": version(3)}}).to_string();
    let url = format!("{DEFINITIONS}/lamps.life.example.org");
    assert_eq!(client.patch(&url, "merge", &patch).await.code, 200);
    let mut other = lamp.clone();
    for attempt in 0.. {
        other["metadata"]["name"] = format!("new{attempt}").into();
        if client.post(&lamps("v1"), &other.to_string()).await.code == 422 {
            break;
        }
        assert!(attempt < 500, "the new schema was not taken up");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let old = format!("{}/old", lamps("v1"));
    let changed = client.patch(&old, "merge", r#"{"spec":{"size":1}}"#).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    let refused = client.patch(&old, "merge", r#"{"spec":{"note":"still too long"}}"#).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
}

#[tokio::test]
async fn formats_that_mean_nothing_are_told() {
    let api = server().await;
    let client = Client::new(&api);
    let versions = json!([{"name": "v1", "served": true, "storage": true,
                           "schema": schema(json!({"note": {"type": "string", "format": "poem"}}))}]);
    let made = client.post(DEFINITIONS, &definition(versions).to_string()).await;
    assert_eq!((made.code, made.header("warning")), (201, "299 - \"unrecognized format \\\"poem\\\"\""));
}
