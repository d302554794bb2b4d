//! The life of objects: create, read in every form, change, watch, delete.

use serde_json::{Value, json};

use crate::support::{Client, Events, server};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

#[tokio::test]
async fn a_secret_lives_its_whole_life() {
    let api = server().await;
    let client = Client::new(&api);
    let created =
        client.post(SECRETS, r#"{"metadata":{"name":"s1","labels":{"a":"b"}},"stringData":{"k":"v"}}"#).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let secret = created.json();
    assert_eq!(secret["data"], json!({"k": "dg=="}));
    assert_eq!(secret["type"], "Opaque");
    assert_eq!(secret["kind"], "Secret");
    let version = secret["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();

    let read = client.get(&format!("{SECRETS}/s1")).await;
    assert_eq!(read.json(), secret);

    let same = client.put(&format!("{SECRETS}/s1"), &secret.to_string()).await;
    assert_eq!(same.code, 200, "{}", same.text);
    assert_eq!(same.json()["metadata"]["resourceVersion"], version, "equal bytes are not written");

    let merged = client
        .patch(
            &format!("{SECRETS}/s1"),
            "merge",
            r#"{"stringData":{"k2":"w"},"metadata":{"labels":{"a":null}}}"#,
        )
        .await;
    assert_eq!(merged.code, 200, "{}", merged.text);
    assert_eq!(merged.json()["data"], json!({"k": "dg==", "k2": "dw=="}));
    assert_eq!(merged.json()["metadata"].get("labels"), None);

    let patched =
        client.patch(&format!("{SECRETS}/s1"), "json", r#"[{"op":"remove","path":"/data/k2"}]"#).await;
    assert_eq!(patched.json()["data"], json!({"k": "dg=="}), "{}", patched.text);

    let strategic =
        client.patch(&format!("{SECRETS}/s1"), "strategic", r#"{"data":{"k":null,"x":"eQ=="}}"#).await;
    assert_eq!(strategic.json()["data"], json!({"x": "eQ=="}), "{}", strategic.text);

    let deleted = client.delete(&format!("{SECRETS}/s1"), r#"{"propagationPolicy":"Background"}"#).await;
    assert_eq!(deleted.code, 200);
    let uid = &secret["metadata"]["uid"];
    assert_eq!(
        deleted.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
               "details": {"name": "s1", "kind": "secrets", "uid": uid}})
    );
    assert_eq!(client.get(&format!("{SECRETS}/s1")).await.code, 404);
}

/// The garbage collector and a client often take their finalizers away at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_finalizer_goes_whoever_else_changes_the_object() {
    let api = server().await;
    let client = Client::new(&api);
    let path = format!("{SECRETS}/held");
    for round in 0..50 {
        client.post(SECRETS, r#"{"metadata":{"name":"held","finalizers":["example.com/hold"]}}"#).await;
        assert_eq!(client.delete(&path, "").await.code, 200);
        let label = format!(r#"{{"metadata":{{"labels":{{"round":"{round}"}}}}}}"#);
        let (first, released, second) = tokio::join!(
            client.patch(&path, "merge", &label),
            client.patch(&path, "merge", r#"{"metadata":{"finalizers":null}}"#),
            client.patch(&path, "json", r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#),
        );
        assert_eq!(released.code, 200, "{}", released.text);
        for other in [first, second] {
            assert!([200, 404].contains(&other.code), "{}", other.text);
        }
        assert_eq!(client.get(&path).await.code, 404);
    }
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let api = server().await;
    let client = Client::new(&api);
    let answer = client.post(&format!("{SECRETS}?dryRun=All"), r#"{"metadata":{"name":"s1"}}"#).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(answer.json()["metadata"].get("resourceVersion"), None);
    assert!(answer.json()["metadata"]["uid"].is_string());
    assert_eq!(client.get(&format!("{SECRETS}/s1")).await.code, 404);
    client.post(SECRETS, r#"{"metadata":{"name":"s2"}}"#).await;
    let patched = client.patch(&format!("{SECRETS}/s2?dryRun=All"), "merge", r#"{"data":{"a":""}}"#).await;
    assert_eq!(patched.json()["data"], json!({"a": ""}), "{}", patched.text);
    assert_eq!(client.get(&format!("{SECRETS}/s2")).await.json().get("data"), None);
    assert_eq!(client.delete(&format!("{SECRETS}/s2?dryRun=All"), "").await.code, 200);
    assert_eq!(client.get(&format!("{SECRETS}/s2")).await.code, 200);
}

#[tokio::test]
async fn generated_names_have_five_random_characters() {
    let api = server().await;
    let client = Client::new(&api);
    let answer = client.post(SECRETS, r#"{"metadata":{"generateName":"s-"}}"#).await;
    let name = answer.json()["metadata"]["name"].as_str().expect("a name").to_owned();
    assert_eq!(name.len(), 7, "{name}");
    assert!(name[2..].bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte)), "{name}");
}

#[tokio::test]
async fn unknown_fields_are_warned_about() {
    let api = server().await;
    let client = Client::new(&api);
    let answer = client.post(SECRETS, r#"{"metadata":{"name":"s1"},"foo":1}"#).await;
    assert_eq!(answer.code, 201);
    assert_eq!(answer.header("warning"), "299 - \"unknown field \\\"foo\\\"\"");
    let ignored = client
        .post(&format!("{SECRETS}?fieldValidation=Ignore"), r#"{"metadata":{"name":"s2"},"foo":1}"#)
        .await;
    assert_eq!((ignored.code, ignored.header("warning")), (201, ""));
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let api = server().await;
    let client = Client::new(&api);
    client.post(SECRETS, r#"{"metadata":{"name":"s1","finalizers":["a.b/c"]}}"#).await;
    let deleted = client.delete(&format!("{SECRETS}/s1"), "").await;
    assert_eq!(deleted.code, 200);
    let object = deleted.json();
    assert_eq!(object["kind"], "Secret");
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = client.post(SECRETS, r#"{"metadata":{"name":"s1"}}"#).await;
    assert_eq!(again.json()["message"], "object is being deleted: secrets \"s1\" already exists");
    let added = client
        .patch(&format!("{SECRETS}/s1"), "merge", r#"{"metadata":{"finalizers":["a.b/c","d.e/f"]}}"#)
        .await;
    assert_eq!(added.code, 422, "{}", added.text);
    let freed = client.patch(&format!("{SECRETS}/s1"), "merge", r#"{"metadata":{"finalizers":null}}"#).await;
    assert_eq!(freed.code, 200, "{}", freed.text);
    assert_eq!(client.get(&format!("{SECRETS}/s1")).await.code, 404);
    client.post(SECRETS, r#"{"metadata":{"name":"s2"}}"#).await;
    let orphaned = client.delete(&format!("{SECRETS}/s2?propagationPolicy=Orphan"), "").await;
    assert_eq!(orphaned.json()["metadata"]["finalizers"], json!(["orphan"]), "{}", orphaned.text);
}

#[tokio::test]
async fn preconditions_are_compared() {
    let api = server().await;
    let client = Client::new(&api);
    let secret = client.post(SECRETS, r#"{"metadata":{"name":"s1"}}"#).await.json();
    let (uid, version) = (&secret["metadata"]["uid"], &secret["metadata"]["resourceVersion"]);
    let answer = client.delete(&format!("{SECRETS}/s1"), r#"{"preconditions":{"uid":"x"}}"#).await;
    assert_eq!(answer.code, 409);
    assert_eq!(
        answer.json()["message"],
        format!(
            "Operation cannot be fulfilled on Secret \"s1\": the UID in the precondition (x) does not match the UID in record ({}). The object might have been deleted and then recreated",
            uid.as_str().expect("text")
        )
    );
    assert_eq!(answer.json()["details"], json!({"name": "s1", "kind": "Secret"}));
    let answer =
        client.delete(&format!("{SECRETS}/s1"), r#"{"preconditions":{"resourceVersion":"1"}}"#).await;
    assert_eq!(
        answer.json()["message"],
        format!(
            "Operation cannot be fulfilled on Secret \"s1\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({}). The object might have been modified",
            version.as_str().expect("text")
        )
    );
    let wrong = client.put(&format!("{SECRETS}/s1"), r#"{"metadata":{"name":"s1","uid":"x"}}"#).await;
    assert_eq!(
        wrong.json()["message"],
        format!(
            "Operation cannot be fulfilled on secrets \"s1\": StorageError: invalid object, Code: 4, Key: /registry/secrets/default/s1, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: {}",
            uid.as_str().expect("text")
        )
    );
    let right = client
        .delete(
            &format!("{SECRETS}/s1"),
            &json!({"preconditions": {"uid": uid, "resourceVersion": version}}).to_string(),
        )
        .await;
    assert_eq!(right.code, 200, "{}", right.text);
}

/// TestValidateListOptions: a limit makes a list exact only where it can cut it.
#[tokio::test]
async fn a_limited_list_of_one_object_is_not_older_than_asked_for() {
    let api = server().await;
    let client = Client::new(&api);
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().expect("one").to_owned();
    let created = version(&client.post(SECRETS, r#"{"metadata":{"name":"a"}}"#).await.json());
    let change = r#"{"stringData":{"k":"v"}}"#;
    let changed = version(&client.patch(&format!("{SECRETS}/a"), "merge", change).await.json());
    // From here on the cache has the change.
    assert_eq!(version(&client.get(SECRETS).await.json()), changed);
    for (namespace, query, expected) in [
        ("/namespaces/default", "", &changed),
        ("/namespaces/default", "&resourceVersionMatch=Exact", &created),
        ("", "", &created),
    ] {
        let url = format!(
            "/api/v1{namespace}/secrets?fieldSelector=metadata.name%3Da&limit=1&resourceVersion={created}{query}"
        );
        let list = client.get(&url).await.json();
        assert_eq!(&version(&list["items"][0]), expected, "{url}");
    }
}

#[tokio::test]
async fn lists_come_in_every_form() {
    let api = server().await;
    let client = Client::new(&api);
    for name in ["a", "b", "c"] {
        client.post(SECRETS, &json!({"metadata": {"name": name, "labels": {"n": name}}}).to_string()).await;
    }
    let names = |list: &Value| -> Vec<String> {
        list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| item["metadata"]["name"].as_str().expect("name").to_owned())
            .collect()
    };
    let list = client.get(SECRETS).await.json();
    assert_eq!((list["kind"].as_str(), list["apiVersion"].as_str()), (Some("SecretList"), Some("v1")));
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!(list["items"][0].get("kind"), None);
    assert_eq!(names(&client.get("/api/v1/secrets").await.json()), ["a", "b", "c"]);
    assert_eq!(names(&client.get("/api/v1/namespaces//secrets").await.json()), ["a", "b", "c"]);
    assert_eq!(names(&client.get("/api/v1/namespaces/other/secrets").await.json()), Vec::<String>::new());
    assert_eq!(
        names(&client.get(&format!("{SECRETS}?labelSelector=n%20in%20(a,c)")).await.json()),
        ["a", "c"]
    );
    assert_eq!(names(&client.get(&format!("{SECRETS}?fieldSelector=metadata.name%3Db")).await.json()), ["b"]);
    assert_eq!(
        names(&client.get(&format!("{SECRETS}?fieldSelector=type%3DOpaque,metadata.name!%3Db")).await.json()),
        ["a", "c"]
    );
    let page = client.get(&format!("{SECRETS}?limit=2")).await.json();
    assert_eq!(
        (names(&page), page["metadata"]["remainingItemCount"].as_i64()),
        (vec!["a".to_owned(), "b".to_owned()], Some(1))
    );
    let token = page["metadata"]["continue"].as_str().expect("a token");
    assert_eq!(names(&client.get(&format!("{SECRETS}?limit=2&continue={token}")).await.json()), ["c"]);

    let accept = |value: &'static str| [("accept", value)];
    let table = client
        .send("GET", SECRETS, &accept("application/json;as=Table;v=v1;g=meta.k8s.io"), b"")
        .await
        .json();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let partial = client
        .send(
            "GET",
            SECRETS,
            &accept("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
            b"",
        )
        .await
        .json();
    assert_eq!(partial["kind"], "PartialObjectMetadataList");
    assert_eq!(partial["items"][2]["metadata"]["name"], "c");
    assert_eq!(partial["items"][2].get("type"), None);
    let wrong = client
        .send("GET", SECRETS, &accept("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"), b"")
        .await;
    assert_eq!(
        (wrong.code, wrong.json()["message"].as_str()),
        (
            406,
            Some(
                "you requested PartialObjectMetadata, but the requested object is a list (*core.SecretList)"
            )
        )
    );
    let protobuf = client.send("GET", SECRETS, &accept("application/vnd.kubernetes.protobuf"), b"").await;
    assert_eq!(protobuf.header("content-type"), "application/vnd.kubernetes.protobuf");
    assert!(protobuf.bytes.starts_with(b"k8s\0\x0a\x10\x0a\x02v1\x12\x0aSecretList"));
    let none = client.send("GET", SECRETS, &accept("text/html"), b"").await;
    assert_eq!(none.code, 406);
}

#[tokio::test]
async fn watches_show_every_change() {
    let api = server().await;
    let client = Client::new(&api);
    client.post(SECRETS, r#"{"metadata":{"name":"a"}}"#).await;
    let mut events = Events::new(client.open("GET", &format!("{SECRETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"), &[], b"").await);
    let first = events.next().await.expect("an event");
    assert_eq!(
        (first["type"].as_str(), first["object"]["metadata"]["name"].as_str()),
        (Some("ADDED"), Some("a"))
    );
    assert_eq!(first["object"]["kind"], "Secret");
    let bookmark = events.next().await.expect("a bookmark");
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    client.patch(&format!("{SECRETS}/a"), "merge", r#"{"data":{"k":"dg=="}}"#).await;
    client.delete(&format!("{SECRETS}/a"), "").await;
    let modified = events.next().await.expect("an event");
    assert_eq!(
        (modified["type"].as_str(), modified["object"]["data"]["k"].as_str()),
        (Some("MODIFIED"), Some("dg=="))
    );
    let deleted = events.next().await.expect("an event");
    assert_eq!(
        (deleted["type"].as_str(), deleted["object"]["data"]["k"].as_str()),
        (Some("DELETED"), Some("dg=="))
    );
    api.shutdown();
    assert_eq!(events.next().await, None, "a watch ends with the server");
}

#[tokio::test]
async fn a_watch_ends_in_its_time_and_an_old_one_is_told_so() {
    let api = server().await;
    let client = Client::new(&api);
    let mut events = Events::new(
        client.open("GET", &format!("{SECRETS}?watch=1&timeoutSeconds=1&resourceVersion=0"), &[], b"").await,
    );
    assert_eq!(events.next().await, None);
    let mut named = Events::new(
        client.open("GET", &format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Db"), &[], b"").await,
    );
    client.post(SECRETS, r#"{"metadata":{"name":"a"}}"#).await;
    client.post(SECRETS, r#"{"metadata":{"name":"b"}}"#).await;
    assert_eq!(named.next().await.expect("an event")["object"]["metadata"]["name"], "b");
}

#[tokio::test]
async fn a_namespace_is_terminated_and_finalized() {
    let api = server().await;
    let client = Client::new(&api);
    let created = client.post("/api/v1/namespaces", r#"{"metadata":{"name":"n1"}}"#).await.json();
    assert_eq!(created["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(created["status"], json!({"phase": "Active"}));
    assert_eq!(created["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n1"}));
    let deleted = client.delete("/api/v1/namespaces/n1", "").await;
    assert_eq!(deleted.code, 200);
    assert_eq!(
        (deleted.json()["kind"].as_str(), deleted.json()["status"]["phase"].as_str()),
        (Some("Namespace"), Some("Terminating"))
    );
    let freed = client
        .put("/api/v1/namespaces/n1/finalize", r#"{"metadata":{"name":"n1"},"spec":{"finalizers":[]}}"#)
        .await;
    assert_eq!(freed.code, 200, "{}", freed.text);
    assert_eq!(client.get("/api/v1/namespaces/n1").await.code, 404);
}

#[tokio::test]
async fn a_pod_is_bound_reported_on_and_deleted() {
    let api = server().await;
    let client = Client::new(&api);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let created = client.post(pods, pod).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(created.json()["status"]["phase"], "Pending");
    let bound = client
        .post(
            &format!("{pods}/p/binding"),
            r#"{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}}"#,
        )
        .await;
    assert_eq!(bound.code, 201, "{}", bound.text);
    assert_eq!(client.get(&format!("{pods}/p")).await.json()["spec"]["nodeName"], "n1");
    let other = client
        .post(&format!("{pods}/p/binding"), r#"{"metadata":{"name":"q"},"target":{"name":"n2"}}"#)
        .await;
    assert_eq!(other.json()["message"], "name in URL does not match name in Binding object");
    let twice = client
        .post(&format!("{pods}/p/binding"), r#"{"metadata":{"name":"p"},"target":{"name":"n2"}}"#)
        .await;
    assert_eq!(twice.code, 409);
    let status = client
        .patch(
            &format!("{pods}/p/status"),
            "strategic",
            r#"{"status":{"phase":"Running"},"spec":{"nodeName":"n3"}}"#,
        )
        .await;
    assert_eq!(status.code, 200, "{}", status.text);
    assert_eq!(
        (status.json()["status"]["phase"].as_str(), status.json()["spec"]["nodeName"].as_str()),
        (Some("Running"), Some("n1"))
    );
    let terminating = client.delete(&format!("{pods}/p"), "").await;
    assert_eq!(terminating.json()["metadata"]["deletionGracePeriodSeconds"], 30, "{}", terminating.text);
    let gone = client.delete(&format!("{pods}/p"), r#"{"gracePeriodSeconds":0}"#).await;
    assert_eq!(gone.code, 200, "{}", gone.text);
    assert_eq!(client.get(&format!("{pods}/p")).await.code, 404);
}

#[tokio::test]
async fn leases_are_created_by_put_and_both_events_are_one() {
    let api = server().await;
    let client = Client::new(&api);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let created = client
        .put(&format!("{leases}/l"), r#"{"metadata":{"name":"l"},"spec":{"holderIdentity":"me"}}"#)
        .await;
    assert_eq!(created.code, 201, "{}", created.text);
    let unconditional = client.put(&format!("{leases}/l"), r#"{"metadata":{"name":"l"}}"#).await;
    assert_eq!(unconditional.code, 422);
    assert_eq!(
        unconditional.json()["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    let event = client.post("/apis/events.k8s.io/v1/namespaces/default/events", r#"{"metadata":{"name":"e"},"note":"hello","reason":"R","type":"Normal","action":"A","eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"c.d/e","reportingInstance":"i","regarding":{"kind":"Secret","namespace":"default","name":"s"}}"#).await;
    assert_eq!(event.code, 201, "{}", event.text);
    let core = client.get("/api/v1/namespaces/default/events/e").await.json();
    assert_eq!(
        (core["message"].as_str(), core["involvedObject"]["name"].as_str()),
        (Some("hello"), Some("s"))
    );
}

#[tokio::test]
async fn a_collection_is_deleted() {
    let api = server().await;
    let client = Client::new(&api);
    for name in ["a", "b"] {
        client.post(SECRETS, &json!({"metadata": {"name": name, "labels": {"n": name}}}).to_string()).await;
    }
    let deleted = client.delete(&format!("{SECRETS}?labelSelector=n%3Da"), "").await;
    assert_eq!(
        (deleted.code, deleted.json()["items"].as_array().map(Vec::len)),
        (200, Some(1)),
        "{}",
        deleted.text
    );
    assert_eq!(client.get(SECRETS).await.json()["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(client.delete("/api/v1/secrets", "").await.code, 405);
    assert_eq!(client.post("/api/v1/secrets", "{}").await.code, 405);
}

#[tokio::test]
async fn custom_resources_come_and_go_without_a_restart() {
    let api = server().await;
    let client = Client::new(&api);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced",
                 "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
                 "versions": [{"name": "v1", "served": true, "storage": true,
                               "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created = client.post(definitions, &definition.to_string()).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let widgets = "/apis/example.org/v1/namespaces/default/widgets";
    for attempt in 0..500 {
        if client.get(widgets).await.code == 200 {
            break;
        }
        assert!(attempt < 499, "{}", client.get(&format!("{definitions}/widgets.example.org")).await.text);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let widget = r#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1},"status":{"x":1}}"#;
    let created = client.post(widgets, widget).await;
    assert_eq!(created.code, 201, "{}", created.text);
    assert_eq!(
        (created.json()["metadata"]["generation"].as_i64(), created.json().get("status").cloned()),
        (Some(1), None)
    );
    let changed = client.patch(&format!("{widgets}/w"), "merge", r#"{"spec":{"size":2}}"#).await;
    assert_eq!(changed.json()["metadata"]["generation"], 2, "{}", changed.text);
    let status = client
        .patch(&format!("{widgets}/w/status"), "merge", r#"{"spec":{"size":3},"status":{"ready":true}}"#)
        .await;
    assert_eq!(
        (
            status.json()["spec"]["size"].as_i64(),
            status.json()["status"]["ready"].as_bool(),
            status.json()["metadata"]["generation"].as_i64()
        ),
        (Some(2), Some(true), Some(2)),
        "{}",
        status.text
    );
    let list = client.get(widgets).await.json();
    assert_eq!(
        (list["kind"].as_str(), list["items"][0]["kind"].as_str()),
        (Some("WidgetList"), Some("Widget"))
    );
    let protobuf = client
        .send("POST", widgets, &[("content-type", "application/vnd.kubernetes.protobuf")], b"k8s\0")
        .await;
    assert_eq!(protobuf.code, 415);
    let resources = client.get("/apis/example.org/v1").await.json();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    let gone = client.delete(&format!("{definitions}/widgets.example.org"), "").await;
    assert_eq!(gone.code, 200, "{}", gone.text);
    for attempt in 0..500 {
        if client.get(widgets).await.code == 404
            && client.get(&format!("{definitions}/widgets.example.org")).await.code == 404
        {
            break;
        }
        assert!(attempt < 499, "{}", client.get(&format!("{definitions}/widgets.example.org")).await.text);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
