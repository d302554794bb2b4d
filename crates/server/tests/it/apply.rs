//! Server-side apply over HTTP. Tests are named as upstream's that show the same
//! (`test/integration/apiserver/apply`).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use coffer_runtime::clock::SystemClock;
use coffer_server::api::ApiServer;
use coffer_types::time::{Clock, Sleep, Timestamp};
use serde_json::{Value, json};

use crate::support::{Answer, Client, Events, server_with};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const APPLY: &str = "application/apply-patch+yaml";

/// A clock that is a second further each time it is read, so that no two writes have one time.
struct Ticking(SystemClock, AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let second = self.1.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_second(1_700_000_000 + second).expect("in range")
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration)
    }
}

async fn server() -> ApiServer {
    server_with(Arc::new(Ticking(SystemClock::new(), AtomicI64::new(0)))).await
}

async fn apply(client: &Client, url: &str, manager: &str, object: Value) -> Answer {
    client.patch(&format!("{url}?fieldManager={manager}"), APPLY, &object.to_string()).await
}

async fn force(client: &Client, url: &str, manager: &str, object: Value) -> Answer {
    client.patch(&format!("{url}?force=true&fieldManager={manager}"), APPLY, &object.to_string()).await
}

fn map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data})
}

fn url() -> String {
    format!("{MAPS}/m")
}

fn version(answer: &Answer) -> String {
    answer.json()["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

/// Each entry as `manager operation {fields}`.
fn entries(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    entries
        .iter()
        .map(|entry| {
            format!("{} {} {}", text(&entry["manager"]), text(&entry["operation"]), entry["fieldsV1"])
        })
        .collect()
}

#[tokio::test]
async fn apply_also_creates() {
    let api = server().await;
    let client = Client::new(&api);
    let created = apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(entries(&created.json()), [r#"one Apply {"f:data":{"f:a":{}}}"#]);
    let again = apply(&client, &url(), "one", map(json!({"a": "2"}))).await;
    assert_eq!(again.code, 200, "{}", again.text);
}

#[tokio::test]
async fn no_op_apply_same_resource_version() {
    let api = server().await;
    let client = Client::new(&api);
    let created = apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    let same = apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    assert_eq!(version(&same), version(&created), "what changes nothing is not written");
    assert_eq!(same.json(), created.json(), "nor does it move the time");
    let watched =
        client.open("GET", &format!("{MAPS}?watch=1&resourceVersion={}", version(&created)), &[], b"").await;
    let mut events = Events::new(watched);
    apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    // Somebody who wants the same comes to own it too: that is written.
    let shared = apply(&client, &url(), "two", map(json!({"a": "1"}))).await;
    assert_ne!(version(&shared), version(&created));
    let event = events.next().await.expect("an event");
    assert_eq!(event["object"]["metadata"]["resourceVersion"], version(&shared));
    let unchanged = force(&client, &url(), "two", map(json!({"a": "1"}))).await;
    assert_eq!(version(&unchanged), version(&shared));
}

#[tokio::test]
async fn apply_requires_field_manager() {
    let api = server().await;
    let client = Client::new(&api);
    let body = map(json!({})).to_string();
    let refused = client.patch(&url(), APPLY, &body).await;
    assert_eq!(refused.code, 422);
    assert_eq!(
        refused.json()["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let refused = client.patch(&format!("{}?force=true", url()), "merge", "{}").await;
    assert_eq!(
        refused.json()["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
}

#[tokio::test]
async fn create_on_apply_fails_with_uid() {
    let api = server().await;
    let client = Client::new(&api);
    let mut object = map(json!({}));
    object["metadata"]["uid"] = json!("88e00824-7f0e-11e8-94a1-c8d3ffb15800");
    let refused = apply(&client, &url(), "one", object).await;
    assert_eq!(refused.code, 409);
    assert_eq!(
        refused.json()["message"],
        "Operation cannot be fulfilled on configmaps \"m\": uid mismatch: the provided object specified uid 88e00824-7f0e-11e8-94a1-c8d3ffb15800, and no existing object was found"
    );
}

#[tokio::test]
async fn apply_update_apply_conflict_forced() {
    let api = server().await;
    let client = Client::new(&api);
    apply(&client, &url(), "one", map(json!({"a": "1", "b": "1"}))).await;
    let edited =
        client.patch(&format!("{}?fieldManager=edit", url()), "merge", r#"{"data":{"a":"2"}}"#).await;
    assert_eq!(edited.code, 200, "{}", edited.text);
    let refused = apply(&client, &url(), "one", map(json!({"a": "3", "b": "1"}))).await;
    assert_eq!(refused.code, 409);
    let status = refused.json();
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.a");
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(
        status["details"],
        json!({"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"edit\" using v1", "field": ".data.a"}]})
    );
    let before = client.get(&url()).await;
    assert_eq!(before.json()["data"]["a"], "2", "a refused apply changes nothing");
    let forced = force(&client, &url(), "one", map(json!({"a": "3", "b": "1"}))).await;
    assert_eq!(forced.json()["data"], json!({"a": "3", "b": "1"}), "{}", forced.text);
    assert_eq!(entries(&forced.json()), [r#"one Apply {"f:data":{"f:a":{},"f:b":{}}}"#]);
    let both = apply(&client, &url(), "two", map(json!({"a": "4", "b": "4"}))).await;
    assert_eq!(
        both.json()["message"],
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b"
    );
}

#[tokio::test]
async fn apply_unset_exclusively_owned_and_shared_fields() {
    let api = server().await;
    let client = Client::new(&api);
    apply(&client, &url(), "one", map(json!({"own": "1", "shared": "1"}))).await;
    apply(&client, &url(), "two", map(json!({"shared": "1"}))).await;
    client.patch(&format!("{}?fieldManager=edit", url()), "merge", r#"{"data":{"edited":"1"}}"#).await;
    let unset = apply(&client, &url(), "one", map(json!({}))).await;
    assert_eq!(unset.json()["data"], json!({"shared": "1", "edited": "1"}), "{}", unset.text);
    let unset = apply(&client, &url(), "two", map(json!({}))).await;
    assert_eq!(unset.json()["data"], json!({"edited": "1"}), "{}", unset.text);
}

#[tokio::test]
async fn apply_groups_many_separate_updates() {
    let api = server().await;
    let client = Client::new(&api);
    apply(&client, &url(), "one", map(json!({"own": "1"}))).await;
    let mut last = Value::Null;
    for number in 0..20 {
        let body = json!({"data": {format!("k{number}"): "v"}}).to_string();
        let answer = client.patch(&format!("{}?fieldManager=u{number:02}", url()), "merge", &body).await;
        last = answer.json();
    }
    let managers: Vec<String> =
        entries(&last).iter().filter_map(|entry| entry.split(' ').next().map(str::to_owned)).collect();
    let expected: Vec<String> = std::iter::once("one".to_owned())
        .chain(std::iter::once("ancient-changes".to_owned()))
        .chain((11..20).map(|number| format!("u{number:02}")))
        .collect();
    assert_eq!(managers.len(), 11, "{managers:?}");
    assert_eq!(managers, expected);
    assert_eq!(
        last["metadata"]["managedFields"][1]["fieldsV1"]["f:data"].as_object().map(serde_json::Map::len),
        Some(11)
    );
}

#[tokio::test]
async fn clear_managed_fields_with_patches_and_updates() {
    let api = server().await;
    let client = Client::new(&api);
    for (kind, body) in [
        ("merge", r#"{"metadata":{"managedFields":[{}]}}"#),
        ("strategic", r#"{"metadata":{"managedFields":[{}]}}"#),
        ("json", r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#),
        ("merge", r#"{"metadata":{"managedFields":[]}}"#),
        ("json", r#"[{"op":"replace","path":"/metadata/managedFields","value":[]}]"#),
    ] {
        force(&client, &url(), "one", map(json!({"a": "1"}))).await;
        let cleared = client.patch(&url(), kind, body).await;
        assert_eq!(cleared.code, 200, "{kind} {body}: {}", cleared.text);
        assert_eq!(entries(&cleared.json()), Vec::<String>::new(), "{kind} {body}");
    }
    force(&client, &url(), "one", map(json!({"a": "1"}))).await;
    let mut object = map(json!({"a": "1"}));
    object["metadata"]["managedFields"] = json!([]);
    let cleared = client.put(&url(), &object.to_string()).await;
    assert_eq!(entries(&cleared.json()), Vec::<String>::new(), "{}", cleared.text);
    // What was there before anybody applied has an owner of its own.
    let applied = apply(&client, &url(), "two", map(json!({"b": "1"}))).await;
    assert_eq!(
        entries(&applied.json()),
        [r#"two Apply {"f:data":{"f:b":{}}}"#, r#"before-first-apply Update {"f:data":{".":{},"f:a":{}}}"#]
    );
}

#[tokio::test]
async fn errors_dont_fail_updates_and_managed_fields_are_kept() {
    let api = server().await;
    let client = Client::new(&api);
    apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    let invalid = r#"{"metadata":{"managedFields":[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"bad":{}}}]},"data":{"b":"1"}}"#;
    let changed = client.patch(&format!("{}?fieldManager=edit", url()), "merge", invalid).await;
    assert_eq!(changed.code, 200, "{}", changed.text);
    assert_eq!(
        entries(&changed.json()),
        [r#"one Apply {"f:data":{"f:a":{}}}"#, r#"edit Update {"f:data":{"f:b":{}}}"#]
    );
    let refused = apply(
        &client,
        &url(),
        "one",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": []}}),
    )
    .await;
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (400, Some("metadata.managedFields must be nil"))
    );
}

#[tokio::test]
async fn apply_fails_with_version_mismatch() {
    let api = server().await;
    let client = Client::new(&api);
    let created = apply(&client, &url(), "one", map(json!({"a": "1"}))).await;
    apply(&client, &url(), "one", map(json!({"a": "2"}))).await;
    let mut old = map(json!({"a": "3"}));
    old["metadata"]["resourceVersion"] = json!(version(&created));
    let refused = apply(&client, &url(), "one", old).await;
    assert_eq!(refused.code, 409, "{}", refused.text);
    assert_eq!(
        refused.json()["message"],
        "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your changes to the latest version and try again"
    );
    for (body, message) in [
        (
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "m"}}),
            "invalid object type: /v1, Kind=Secret",
        ),
        (json!({"apiVersion": "a/v1", "kind": "ConfigMap"}), "invalid object type: a/v1, Kind=ConfigMap"),
        (json!({}), "invalid object type: /, Kind="),
    ] {
        let refused = apply(&client, &url(), "one", body).await;
        assert_eq!((refused.code, refused.json()["message"].as_str()), (400, Some(message)));
    }
}

#[tokio::test]
async fn apply_default_missing_keys_and_duplicates_in_associative_lists() {
    let api = server().await;
    let client = Client::new(&api);
    let pod = |ports: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}})
    };
    let url = format!("{PODS}/p");
    let created = apply(
        &client,
        &url,
        "one",
        pod(json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])),
    )
    .await;
    assert_eq!(created.code, 201, "{}", created.text);
    let container = r#""k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}}}"#;
    assert_eq!(
        entries(&created.json())[0],
        format!(r#"one Apply {{"f:spec":{{"f:containers":{{{container}}}}}}}"#)
    );
    let refused = apply(
        &client,
        &url,
        "one",
        pod(json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}])),
    )
    .await;
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (
            500,
            Some(
                r#"failed to create typed patch object (/p; /v1, Kind=Pod): .spec.containers[name="c"].ports: duplicate entries for key [containerPort=80,protocol="TCP"]"#
            )
        )
    );
}

#[tokio::test]
async fn apply_converts_managed_fields_version() {
    let api = server().await;
    let client = Client::new(&api);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.net"},
        "spec": {"group": "example.net", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false)]}});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition.to_string()).await;
    let things = |version: &str| format!("/apis/example.net/{version}/namespaces/default/things");
    crate::support::eventually(&client, &things("v2"), |answer| answer.code == 200).await;
    let thing = |version: &str, spec: Value| json!({"apiVersion": format!("example.net/{version}"), "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
    let (one, two) = (format!("{}/t", things("v1")), format!("{}/t", things("v2")));
    let created = apply(&client, &one, "one", thing("v1", json!({"a": "1", "set": ["x", "y"]}))).await;
    assert_eq!(created.code, 201, "{}", created.text);
    // The same manager in another version keeps its one entry.
    let moved = apply(&client, &two, "one", thing("v2", json!({"a": "1", "set": ["y"]}))).await;
    assert_eq!(moved.code, 200, "{}", moved.text);
    assert_eq!(moved.json()["spec"], json!({"a": "1", "set": ["y"]}));
    assert_eq!(moved.json()["metadata"]["generation"], 2);
    let entry = &moved.json()["metadata"]["managedFields"];
    assert_eq!(
        (entry.as_array().map(Vec::len), entry[0]["apiVersion"].as_str()),
        (Some(1), Some("example.net/v2"))
    );
    let other = apply(&client, &one, "two", thing("v1", json!({"a": "2"}))).await;
    assert_eq!(other.json()["message"], "Apply failed with 1 conflict: conflict with \"one\": .spec.a");
    // A status has its own entry, and owns nothing but the status.
    let status = json!({"apiVersion": "example.net/v1", "kind": "Thing",
        "metadata": {"name": "t", "labels": {"a": "b"}}, "spec": {"b": "1"}, "status": {"ready": true}});
    let ready = apply(&client, &format!("{one}/status"), "one", status).await;
    assert_eq!(ready.json()["status"]["ready"], true, "{}", ready.text);
    assert_eq!(ready.json()["metadata"].get("labels"), None);
    assert_eq!(
        entries(&ready.json()),
        [
            r#"one Apply {"f:spec":{"f:a":{},"f:set":{"v:\"y\"":{}}}}"#,
            r#"one Apply {"f:status":{"f:ready":{}}}"#
        ]
    );
    let missing = apply(&client, &format!("{}/u/status", things("v1")), "one", thing("v1", json!({}))).await;
    assert_eq!(missing.code, 404, "a subresource creates nothing");
    let unknown = apply(&client, &one, "one", thing("v1", json!({"bogus": 1}))).await;
    assert_eq!(
        (unknown.code, unknown.json()["message"].as_str()),
        (
            500,
            Some(
                "failed to create typed patch object (/t; example.net/v1, Kind=Thing): .spec.bogus: field not declared in schema"
            )
        )
    );
}

#[tokio::test]
async fn kubectl_takes_over_what_it_applied_from_the_client_side() {
    let api = server().await;
    let client = Client::new(&api);
    let said = map(json!({"a": "1", "b": "1"}));
    let mut object = said.clone();
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": said.to_string()});
    client.post(&format!("{MAPS}?fieldManager=kubectl-client-side-apply"), &object.to_string()).await;
    client.patch(&format!("{}?fieldManager=edit", url()), "merge", r#"{"data":{"b":"2"}}"#).await;
    let other = apply(&client, &url(), "other", map(json!({"a": "3"}))).await;
    assert_eq!(other.code, 409, "only kubectl itself");
    let changed = apply(&client, &url(), "kubectl", map(json!({"a": "3", "b": "3"}))).await;
    assert_eq!(
        changed.json()["message"],
        "Apply failed with 1 conflict: conflict with \"edit\" using v1: .data.b"
    );
    let taken = apply(&client, &url(), "kubectl", map(json!({"a": "3"}))).await;
    assert_eq!(taken.json()["data"], json!({"a": "3", "b": "2"}), "{}", taken.text);
    let annotation =
        &taken.json()["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert_eq!(annotation.as_str(), Some(format!("{}\n", map(json!({"a": "3"}))).as_str()));
}

#[tokio::test]
async fn a_dry_run_of_an_apply_writes_nothing() {
    let api = server().await;
    let client = Client::new(&api);
    let rehearsed = client
        .patch(&format!("{}?fieldManager=one&dryRun=All", url()), APPLY, &map(json!({"a": "1"})).to_string())
        .await;
    assert_eq!(rehearsed.code, 201, "{}", rehearsed.text);
    assert_eq!(entries(&rehearsed.json()), [r#"one Apply {"f:data":{"f:a":{}}}"#]);
    assert_eq!(client.get(&url()).await.code, 404);
}

#[tokio::test]
async fn no_value_of_a_secret_is_in_the_answer_to_a_bad_apply() {
    let api = server().await;
    let client = Client::new(&api);
    let url = "/api/v1/namespaces/default/secrets/s";
    for data in [
        json!({"data": {"k": 123_454_321}}),
        json!({"data": {"k": ["hunter2"]}}),
        json!({"data": {"k": "hunter2!"}}),
        json!({"data": "hunter2"}),
        json!({"stringData": {"k": {"hunter2": "hunter2"}}}),
    ] {
        let mut object = data;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("Secret");
        object["metadata"] = json!({"name": "s"});
        let refused = apply(&client, url, "one", object).await;
        assert!(400 <= refused.code, "{}", refused.text);
        assert!(!refused.text.contains("hunter2") && !refused.text.contains("123454321"), "{}", refused.text);
    }
}

#[tokio::test]
async fn update_and_patch_very_large_object() {
    let api = server().await;
    let client = Client::new(&api);
    // Large by its keys, each of which is in managed fields again.
    let keys = |count: usize| {
        let entries = (0..count).map(|number| (format!("{number:0>120}"), json!("")));
        Value::Object(entries.collect())
    };
    let large = map(keys(9_000));
    let created = client.post(MAPS, &large.to_string()).await;
    assert_eq!(created.code, 201, "{}", &created.text[..200]);
    assert_eq!(entries(&created.json()), Vec::<String>::new());
    client.post(MAPS, &json!({"metadata": {"name": "small"}, "data": {"a": "1"}}).to_string()).await;
    let small = format!("{MAPS}/small");
    let patched = client.patch(&small, "merge", &json!({"data": keys(9_000)}).to_string()).await;
    assert_eq!((patched.code, entries(&patched.json()).len()), (200, 0), "{}", &patched.text[..200]);
    let refused = apply(&client, &url(), "one", map(keys(11_500))).await;
    assert_eq!(
        (refused.code, refused.text.contains("too large")),
        (500, true),
        "an apply is not tried again"
    );
}
