//! Admission webhooks over HTTP. What both servers do alike is compared beside kube-apiserver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::hook::Hook;
use crate::support::{Answer, Client, define, secured};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// One webhook for everything in `default`.
fn configuration(name: &str, hook: &Hook, path: &str, more: Value) -> String {
    let mut webhook = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": hook.client_config(path),
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 2,
    });
    for (field, value) in more.as_object().expect("fields") {
        webhook[field] = value.clone();
    }
    json!({"metadata": {"name": name}, "webhooks": [webhook]}).to_string()
}

fn map(name: &str) -> String {
    json!({"metadata": {"name": name}}).to_string()
}

/// `/allow`, `/deny`, `/hang`, or `/patch/KEY`, which adds a label.
fn answer(path: &str, review: &Value) -> Value {
    let mut response = json!({"uid": review["request"]["uid"], "allowed": path != "/deny"});
    if path == "/hang" {
        return Value::Null;
    }
    if let Some(key) = path.strip_prefix("/patch/") {
        let labels = &review["request"]["object"]["metadata"]["labels"];
        let patch = if labels.is_null() {
            json!([{"op": "add", "path": "/metadata/labels", "value": {key: "yes"}}])
        } else {
            json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": "yes"}])
        };
        response["patchType"] = "JSONPatch".into();
        response["patch"] = base64::engine::general_purpose::STANDARD.encode(patch.to_string()).into();
    }
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

/// A webhook with what it was told, path and request.
async fn hook() -> (Hook, Arc<Mutex<Vec<(String, Value)>>>) {
    let told: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let noted = Arc::clone(&told);
    let hook = Hook::answering(move |path, review| {
        noted.lock().push((path.to_owned(), review["request"].clone()));
        answer(path, &review)
    });
    (hook.await, told)
}

async fn admin() -> Client {
    Client::in_groups(&secured().await, "admin", &["system:masters"])
}

fn message(answer: &Answer) -> (u16, String) {
    (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_configuration_holds_from_the_next_request_on() {
    let client = admin().await;
    let (hook, _) = hook().await;
    for round in 0..5 {
        let name = format!("round{round}");
        let made = client.post(VALIDATING, &configuration("deny", &hook, "/deny", json!({}))).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let denied = client.post(MAPS, &map(&name)).await;
        let text = "admission webhook \"deny.example.com\" denied the request without explanation";
        assert_eq!(message(&denied), (400, text.to_owned()), "{round}");
        assert_eq!(client.send("DELETE", &format!("{VALIDATING}/deny"), &[], b"").await.code, 200);
        assert_eq!(client.post(MAPS, &map(&name)).await.code, 201, "{round}");
    }
}

#[tokio::test]
async fn webhooks_change_an_object_in_the_order_of_their_names() {
    let client = admin().await;
    let (hook, told) = hook().await;
    for (name, path, policy) in [("b", "/patch/b", "Never"), ("a", "/patch/a", "IfNeeded")] {
        let body = configuration(name, &hook, path, json!({"reinvocationPolicy": policy}));
        assert_eq!(client.post(MUTATING, &body).await.code, 201);
    }
    assert_eq!(client.post(VALIDATING, &configuration("v", &hook, "/allow", json!({}))).await.code, 201);
    let made = client.post(MAPS, &map("m")).await;
    assert_eq!((made.code, &made.json()["metadata"]["labels"]), (201, &json!({"a": "yes", "b": "yes"})));
    let told: Vec<(String, Value)> = std::mem::take(&mut *told.lock());
    let seen: Vec<(&str, &Value)> = told
        .iter()
        .map(|(path, request)| (path.as_str(), &request["object"]["metadata"]["labels"]))
        .collect();
    let both = json!({"a": "yes", "b": "yes"});
    assert_eq!(
        seen,
        [
            ("/patch/a", &Value::Null),
            ("/patch/b", &json!({"a": "yes"})),
            ("/patch/a", &both),
            ("/allow", &both)
        ]
    );
    let identities: std::collections::BTreeSet<String> =
        told.iter().map(|(_, request)| request["uid"].to_string()).collect();
    assert_eq!(identities.len(), told.len(), "each call has an identity of its own");
}

#[tokio::test]
async fn a_webhook_that_hangs_takes_no_longer_than_it_may() {
    let client = admin().await;
    let (hook, _) = hook().await;
    for (name, policy, expected) in [("open", "Ignore", 201), ("closed", "Fail", 500)] {
        let more = json!({"timeoutSeconds": 1, "failurePolicy": policy});
        assert_eq!(client.post(VALIDATING, &configuration(name, &hook, "/hang", more)).await.code, 201);
        let started = Instant::now();
        let made = client.post(MAPS, &map(name)).await;
        assert_eq!(made.code, expected, "{}", made.text);
        assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&started.elapsed()));
        assert_eq!(client.send("DELETE", &format!("{VALIDATING}/{name}"), &[], b"").await.code, 200);
    }
    // The request's own time is the webhook's too, and is told to it.
    let more = json!({"timeoutSeconds": 30, "failurePolicy": "Ignore"});
    assert_eq!(client.post(VALIDATING, &configuration("long", &hook, "/hang", more)).await.code, 201);
    let late = client.post(&format!("{MAPS}?timeout=1s"), &map("late")).await;
    assert_eq!((late.code, late.json()["reason"].as_str()), (504, Some("Timeout")), "{}", late.text);
}

#[tokio::test]
async fn conditions_decide_and_the_policy_where_they_fail() {
    let client = admin().await;
    let (hook, told) = hook().await;
    for (name, expression, policy, expected) in [
        ("no", "request.name == 'other'", "Fail", 201),
        ("yes", "object.metadata.name == 'yes' && request.userInfo.username == 'admin'", "Fail", 400),
        ("open", "object.nothing == 1", "Ignore", 201),
        ("closed", "object.nothing == 1", "Fail", 403),
        ("asks", "!authorizer.requestResource.check('create').allowed()", "Fail", 201),
    ] {
        let conditions = json!([{"name": "a", "expression": expression}]);
        let more = json!({"matchConditions": conditions, "failurePolicy": policy});
        let made = client.post(VALIDATING, &configuration(name, &hook, "/deny", more)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let made = client.post(MAPS, &map(name)).await;
        assert_eq!(made.code, expected, "{name}: {}", made.text);
        assert_eq!(client.send("DELETE", &format!("{VALIDATING}/{name}"), &[], b"").await.code, 200);
    }
    assert_eq!(told.lock().len(), 1, "only the one whose condition holds is asked");
    let bad = json!({"matchConditions": [{"name": "a", "expression": "1"}]});
    let refused = client.post(VALIDATING, &configuration("bad", &hook, "/deny", bad)).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    let metrics = client.get("/metrics").await.text;
    for line in [
        r#"apiserver_admission_match_condition_exclusions_total{name="no.example.com",kind="webhook",type="validate",operation="CREATE"} 1"#,
        r#"apiserver_admission_match_condition_evaluation_errors_total{name="closed.example.com",kind="webhook",type="validating",operation="CREATE"} 1"#,
        r#"apiserver_admission_match_condition_evaluation_seconds_count{name="yes.example.com",kind="webhook",type="validating",operation="CREATE"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn webhooks_are_counted_under_upstreams_names() {
    let client = admin().await;
    let (hook, _) = hook().await;
    assert_eq!(client.post(MUTATING, &configuration("m", &hook, "/allow", json!({}))).await.code, 201);
    let open = json!({"failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/"}});
    assert_eq!(client.post(VALIDATING, &configuration("gone", &hook, "/", open)).await.code, 201);
    assert_eq!(client.post(MAPS, &map("a")).await.code, 201);
    assert_eq!(client.post(VALIDATING, &configuration("v", &hook, "/deny", json!({}))).await.code, 201);
    assert_eq!(client.post(MAPS, &map("b")).await.code, 400);
    let metrics = client.get("/metrics").await.text;
    for line in [
        r#"apiserver_admission_webhook_request_total{name="m.example.com",type="admit",operation="CREATE",code="200",rejected="false"} 2"#,
        r#"apiserver_admission_webhook_request_total{name="v.example.com",type="validating",operation="CREATE",code="400",rejected="true"} 1"#,
        r#"apiserver_admission_webhook_request_total{name="gone.example.com",type="validating",operation="CREATE",code="503",rejected="false"} 2"#,
        r#"apiserver_admission_webhook_rejection_count{name="v.example.com",type="validating",operation="CREATE",error_type="no_error",rejection_code="400"} 1"#,
        r#"apiserver_admission_webhook_fail_open_count{name="gone.example.com",type="validating"} 2"#,
        r#"apiserver_admission_webhook_admission_duration_seconds_count{name="m.example.com",type="admit",operation="CREATE",rejected="false"} 2"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

/// A webhook for one version is asked about the object as it is in that version, whichever is written.
#[tokio::test]
async fn objects_are_converted_for_a_webhook_and_back() {
    let client = admin().await;
    let (hook, told) = hook().await;
    // The one version calls `name` what the other calls `title`.
    let converter = Hook::start(|desired, objects| {
        let (from, to) = if desired.ends_with("/v2") { ("name", "title") } else { ("title", "name") };
        let convert = |mut object: Value| {
            object["apiVersion"] = desired.into();
            let members = object.as_object_mut().expect("an object");
            if let Some(value) = members.remove(from) {
                members.insert(to.to_owned(), value);
            }
            object
        };
        Ok(objects.into_iter().map(convert).collect())
    })
    .await;
    let version = |name: &str, field: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {field: {"type": "string"}}}}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "books.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "books", "kind": "Book"},
                 "conversion": converter.conversion(),
                 "versions": [version("v1", "name", true), version("v2", "title", false)]}
    });
    define(&client, &definition, "/apis/example.org/v2/books").await;
    let rules = json!([{"apiGroups": ["example.org"], "apiVersions": ["v2"], "resources": ["books"], "operations": ["CREATE"]}]);
    let body = configuration("m", &hook, "/patch/seen", json!({"rules": rules}));
    assert_eq!(client.post(MUTATING, &body).await.code, 201);
    let books = "/apis/example.org/v1/namespaces/default/books";
    let book =
        json!({"apiVersion": "example.org/v1", "kind": "Book", "metadata": {"name": "b"}, "name": "Ulysses"});
    let made = client.post(books, &book.to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let made = made.json();
    assert_eq!((&made["name"], &made["metadata"]["labels"]), (&json!("Ulysses"), &json!({"seen": "yes"})));
    let told = told.lock();
    let (_, request) = told.first().expect("it was asked");
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v2"), &json!("v1"))
    );
    assert_eq!(request["object"]["title"], "Ulysses");
}
