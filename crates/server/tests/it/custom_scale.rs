//! The `scale` subresource of a custom resource.

use serde_json::json;

use crate::support::{Client, define, server};

const GEARS: &str = "/apis/scale.example.org/v1/namespaces/default/gears";

async fn gears(client: &Client) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.scale.example.org"},
        "spec": {"group": "scale.example.org", "scope": "Namespaced", "names": {"plural": "gears", "kind": "Gear"},
                 "versions": [{"name": "v1", "served": true, "storage": true,
                               "subresources": {"status": {}, "scale": {
                                   "specReplicasPath": ".spec.wanted", "statusReplicasPath": ".status.present",
                                   "labelSelectorPath": ".status.selector"}},
                               "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                                   "spec": {"type": "object", "properties": {
                                       "wanted": {"type": "integer"}, "note": {"type": "string"}}},
                                   "status": {"type": "object", "properties": {
                                       "present": {"type": "integer"}, "selector": {"type": "string"}}}}}}}]}
    });
    define(client, &definition, GEARS).await;
}

#[tokio::test]
async fn a_scale_reads_and_writes_three_fields() {
    let api = server().await;
    let client = Client::new(&api);
    gears(&client).await;
    let url = format!("{GEARS}/a/scale");
    let gear =
        r#"{"apiVersion":"scale.example.org/v1","kind":"Gear","metadata":{"name":"a"},"spec":{"note":"x"}}"#;
    assert_eq!(client.post(&format!("{GEARS}?fieldManager=maker"), gear).await.code, 201);
    let absent = client.get(&url).await;
    assert_eq!(
        (absent.code, absent.json()["message"].as_str()),
        (500, Some("Internal error occurred: the spec replicas field \".spec.wanted\" does not exist"))
    );
    let empty = client.patch(&url, "merge", r#"{"metadata":{"labels":{"a":"b"}}}"#).await;
    assert_eq!(
        (empty.code, empty.json()["message"].as_str()),
        (400, Some("the spec replicas field \".spec.wanted\" cannot be empty"))
    );
    let scaled = client.patch(&url, "merge", r#"{"spec":{"replicas":3}}"#).await;
    assert_eq!(scaled.code, 200, "{}", scaled.text);
    let scale = scaled.json();
    assert_eq!((&scale["apiVersion"], &scale["kind"]), (&json!("autoscaling/v1"), &json!("Scale")));
    assert_eq!((&scale["spec"], &scale["status"]), (&json!({"replicas": 3}), &json!({"replicas": 0})));
    let status = r#"{"status":{"present":2,"selector":"app=a"}}"#;
    assert_eq!(client.patch(&format!("{GEARS}/a/status"), "merge", status).await.code, 200);
    let scale = client.get(&url).await.json();
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=a"}));

    // PUT: with the version, without, with another, as a rehearsal.
    let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let body = |version: &str, replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
               "metadata": {"name": "a", "resourceVersion": version}, "spec": {"replicas": replicas}})
        .to_string()
    };
    let rehearsed = client.put(&format!("{url}?dryRun=All"), &body(&version, 9)).await;
    assert_eq!(rehearsed.json()["spec"]["replicas"], 9, "{}", rehearsed.text);
    assert_eq!(client.put(&url, &body(&version, 5)).await.json()["spec"]["replicas"], 5);
    let stale = client.put(&url, &body(&version, 6)).await;
    assert_eq!(stale.code, 409, "{}", stale.text);
    assert_eq!(client.put(&url, &body("", 7)).await.json()["spec"]["replicas"], 7);
    let gear = client.get(&format!("{GEARS}/a")).await.json();
    assert_eq!(gear["spec"], json!({"note": "x", "wanted": 7}));
    assert_eq!(gear["metadata"]["generation"], 4);

    for (replicas, why) in [
        (json!(-1), "should be a non-negative integer"),
        (
            json!("x"),
            "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32",
        ),
    ] {
        let patch = json!({"spec": {"replicas": replicas}}).to_string();
        let refused = client.patch(&url, "merge", &patch).await;
        assert_eq!(refused.code, 422, "{}", refused.text);
        assert!(refused.text.contains(why), "{}", refused.text);
    }
    assert_eq!(client.patch(&url, "strategic", "{}").await.code, 415);
    assert_eq!(client.delete(&url, "").await.code, 405);
    assert_eq!(client.get(&format!("{GEARS}/none/scale")).await.code, 404);
    let nobody = Client::named(&api, "nobody").get(&url).await;
    assert!(nobody.text.contains("cannot get resource \\\"gears/scale\\\""), "{}", nobody.text);
}

/// Beyond upstream, whose field manager fails on a Scale that nobody owns yet, or that changes.
#[tokio::test]
async fn a_scale_is_applied_and_owned() {
    const APPLY: &str = "application/apply-patch+yaml";
    let api = server().await;
    let client = Client::new(&api);
    gears(&client).await;
    let url = |manager: &str, force: bool| format!("{GEARS}/a/scale?fieldManager={manager}&force={force}");
    let gear = r#"{"apiVersion":"scale.example.org/v1","kind":"Gear","metadata":{"name":"a"},"spec":{"note":"x","wanted":1}}"#;
    assert_eq!(client.patch(&format!("{GEARS}/a?fieldManager=applier"), APPLY, gear).await.code, 201);
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"},
               "spec": {"replicas": replicas}})
        .to_string()
    };
    let refused = client.patch(&url("scaler", false), APPLY, &scale(5)).await;
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (409, Some("Apply failed with 1 conflict: conflict with \"applier\": .spec.replicas"))
    );
    let forced = client.patch(&url("scaler", true), APPLY, &scale(5)).await;
    assert_eq!(forced.json()["spec"]["replicas"], 5, "{}", forced.text);
    let owners = || async {
        let gear = client.get(&format!("{GEARS}/a")).await.json();
        let entries = gear["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let owns = |entry: &&serde_json::Value| entry["fieldsV1"]["f:spec"]["f:wanted"].is_object();
        let named = |entry: &serde_json::Value| {
            format!(
                "{} {} {} {}",
                entry["manager"].as_str().unwrap_or_default(),
                entry["operation"].as_str().unwrap_or_default(),
                entry["apiVersion"].as_str().unwrap_or_default(),
                entry["subresource"].as_str().unwrap_or_default()
            )
        };
        entries.iter().filter(owns).map(named).collect::<Vec<_>>()
    };
    assert_eq!(owners().await, ["scaler Apply scale.example.org/v1 scale"]);
    let merged = format!("{GEARS}/a/scale?fieldManager=other");
    assert_eq!(client.patch(&merged, "merge", r#"{"spec":{"replicas":6}}"#).await.code, 200);
    assert_eq!(owners().await, ["other Update scale.example.org/v1 scale"]);
}

#[tokio::test]
async fn a_scale_is_in_discovery_and_printed() {
    let api = server().await;
    let client = Client::new(&api);
    gears(&client).await;
    let resources = client.get("/apis/scale.example.org/v1").await.json();
    assert_eq!(
        resources["resources"][2],
        json!({"name": "gears/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
               "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]})
    );
    let gear =
        r#"{"apiVersion":"scale.example.org/v1","kind":"Gear","metadata":{"name":"a"},"spec":{"wanted":4}}"#;
    assert_eq!(client.post(GEARS, gear).await.code, 201);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = client.send("GET", &format!("{GEARS}/a/scale"), &[("accept", table)], b"").await.json();
    let columns: Vec<_> = table["columnDefinitions"].as_array().into_iter().flatten().collect();
    let names: Vec<_> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(names, ["Name", "Desired", "Available", "Age"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!((&cells[0], &cells[1], &cells[2]), (&json!("a"), &json!(4), &json!(0)));
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf")];
    let answer = client.send("GET", &format!("{GEARS}/a/scale"), &protobuf, b"").await;
    assert!(answer.bytes.starts_with(b"k8s\0"), "{}", answer.text);
}
