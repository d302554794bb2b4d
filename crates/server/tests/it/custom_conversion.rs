//! Custom resources in several versions that a webhook converts, after upstream's conversion tests.

use serde_json::{Value, json};

use crate::hook::Hook;
use crate::support::{Answer, Client, Events, define, eventually, server};

const GROUP: &str = "/apis/stable.example.org";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY: &str = "application/apply-patch+yaml";

fn hosts(version: &str) -> String {
    format!("{GROUP}/{version}/namespaces/default/hosts")
}

/// `v1` has one field `hostPort`, `v2` has `host` and `port`; both are served, the first is stored.
fn definition(conversion: Value) -> Value {
    let version = |name: &str, storage: bool, fields: Value, selectable: Value| {
        json!({"name": name, "served": true, "storage": storage,
               "subresources": {"status": {}},
               "selectableFields": selectable,
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                   "hostPort": fields["hostPort"], "host": fields["host"], "port": fields["port"],
                   "note": {"type": "string"}, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
    };
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.stable.example.org"},
        "spec": {"group": "stable.example.org", "scope": "Namespaced", "names": {"plural": "hosts", "kind": "Host"},
                 "conversion": conversion,
                 "versions": [
                     version("v1", true, json!({"hostPort": {"type": "string"}}), json!([{"jsonPath": ".hostPort"}])),
                     version("v2", false, json!({"host": {"type": "string"}, "port": {"type": "string"}}),
                             json!([{"jsonPath": ".host"}]))]}
    });
    // A field that a version does not have is not in its schema.
    for version in definition["spec"]["versions"].as_array_mut().into_iter().flatten() {
        let properties = version["schema"]["openAPIV3Schema"]["properties"].as_object_mut();
        properties.expect("properties").retain(|_, schema| !schema.is_null());
    }
    definition
}

fn convert(desired: &str, objects: Vec<Value>) -> Result<Vec<Value>, String> {
    Ok(objects
        .into_iter()
        .map(|mut object| {
            object["apiVersion"] = desired.into();
            let members = object.as_object_mut().expect("an object");
            if desired.ends_with("/v2") {
                if let Some(both) = members.remove("hostPort") {
                    let both = both.as_str().unwrap_or_default().to_owned();
                    let (host, port) = both.split_once(':').unwrap_or((&both, ""));
                    members.insert("host".into(), host.into());
                    members.insert("port".into(), port.into());
                }
            } else {
                let part = |name: &str, from: &serde_json::Map<String, Value>| {
                    from.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                if members.contains_key("host") || members.contains_key("port") {
                    let both = format!("{}:{}", part("host", members), part("port", members));
                    members.remove("host");
                    members.remove("port");
                    members.insert("hostPort".into(), both.into());
                }
            }
            object
        })
        .collect())
}

async fn hook(client: &Client) -> Hook {
    let hook = Hook::start(convert).await;
    define(client, &definition(hook.conversion()), &hosts("v2")).await;
    hook
}

fn v1(name: &str, host_port: &str) -> String {
    json!({"apiVersion": "stable.example.org/v1", "kind": "Host",
           "metadata": {"name": name, "labels": {"made": "v1"}}, "hostPort": host_port})
    .to_string()
}

fn v2(name: &str, host: &str, port: &str) -> String {
    json!({"apiVersion": "stable.example.org/v2", "kind": "Host", "metadata": {"name": name},
           "host": host, "port": port})
    .to_string()
}

fn ok(answer: &Answer) -> Value {
    assert!(answer.code < 300, "{} {}", answer.code, answer.text);
    answer.json()
}

fn shown(object: &Value) -> (String, String) {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), format!("{}|{}|{}", text("hostPort"), text("host"), text("port")))
}

fn is(version: &str, fields: &str) -> (String, String) {
    (format!("stable.example.org/{version}"), fields.to_owned())
}

#[tokio::test]
async fn objects_are_read_and_written_in_each_version() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    assert_eq!(shown(&ok(&client.post(&hosts("v1"), &v1("a", "one:80")).await)), is("v1", "one:80||"));
    assert_eq!(hook.calls(), 0, "the stored version is not converted");
    assert_eq!(shown(&ok(&client.post(&hosts("v2"), &v2("b", "two", "81")).await)), is("v2", "|two|81"));
    for (version, name, fields) in
        [("v1", "a", "one:80||"), ("v2", "a", "|one|80"), ("v1", "b", "two:81||"), ("v2", "b", "|two|81")]
    {
        let url = format!("{}/{name}", hosts(version));
        assert_eq!(shown(&ok(&client.get(&url).await)), is(version, fields), "{url}");
        let listed = ok(&client.get(&hosts(version)).await);
        let found =
            listed["items"].as_array().expect("items").iter().find(|item| item["metadata"]["name"] == name);
        assert_eq!(shown(found.expect("listed")), is(version, fields), "{url}");
    }
    // PUT, the three patches and the status, in the version that is not stored.
    let mut b = ok(&client.get(&format!("{}/b", hosts("v2"))).await);
    b["host"] = "three".into();
    let url = format!("{}/b", hosts("v2"));
    assert_eq!(shown(&ok(&client.put(&url, &b.to_string()).await)), is("v2", "|three|81"));
    assert_eq!(shown(&ok(&client.patch(&url, "merge", r#"{"port":"82"}"#).await)), is("v2", "|three|82"));
    let json_patch = r#"[{"op":"replace","path":"/host","value":"four"}]"#;
    let patched = ok(&client.patch(&url, "json", json_patch).await);
    assert_eq!(shown(&patched), is("v2", "|four|82"));
    assert_eq!(patched["metadata"]["generation"], 4);
    let status = ok(&client.patch(&format!("{url}/status"), "merge", r#"{"status":{"up":true}}"#).await);
    assert_eq!(status["status"]["up"], true);
    let rehearsed = ok(&client.patch(&format!("{url}?dryRun=All"), "merge", r#"{"port":"9"}"#).await);
    assert_eq!(shown(&rehearsed), is("v2", "|four|9"));
    assert_eq!(shown(&ok(&client.get(&format!("{}/b", hosts("v1"))).await)), is("v1", "four:82||"));
    // Pages, metadata and tables.
    let page = ok(&client.get(&format!("{}?limit=1", hosts("v2"))).await);
    assert_eq!(shown(&page["items"][0]), is("v2", "|one|80"));
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let page = ok(&client.get(&format!("{}?limit=1&continue={token}", hosts("v2"))).await);
    assert_eq!(shown(&page["items"][0]), is("v2", "|four|82"));
    let partial = [("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")];
    let partial = ok(&client.send("GET", &hosts("v2"), &partial, b"").await);
    assert_eq!(partial["items"][0]["metadata"]["labels"]["made"], "v1");
    let deleted = client.delete(&format!("{}/a", hosts("v2")), "").await;
    assert_eq!(deleted.code, 200, "{}", deleted.text);
    let deleted = ok(&client.delete(&hosts("v2"), "").await);
    assert_eq!(shown(&deleted["items"][0]), is("v2", "|four|82"));
}

#[tokio::test]
async fn a_list_is_converted_in_one_call_and_remembered() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    for index in 0..20 {
        ok(&client.post(&hosts("v1"), &v1(&format!("h{index:02}"), "h:1")).await);
    }
    assert_eq!(hook.calls(), 0);
    assert_eq!(ok(&client.get(&hosts("v2")).await)["items"].as_array().map(Vec::len), Some(20));
    assert_eq!(hook.calls(), 1);
    ok(&client.get(&hosts("v2")).await);
    ok(&client.get(&format!("{}/h07", hosts("v2"))).await);
    assert_eq!(hook.calls(), 1);
    ok(&client.patch(&format!("{}/h07", hosts("v1")), "merge", r#"{"hostPort":"x:2"}"#).await);
    assert_eq!(shown(&ok(&client.get(&format!("{}/h07", hosts("v2"))).await)), is("v2", "|x|2"));
    assert_eq!(hook.calls(), 2);
}

#[tokio::test]
async fn a_watch_sees_converted_objects_by_their_own_fields() {
    let api = server().await;
    let client = Client::new(&api);
    let _hook = hook(&client).await;
    ok(&client.post(&hosts("v1"), &v1("a", "blue:1")).await);
    let all = format!("{}?watch=1&timeoutSeconds=20", hosts("v2"));
    let blue = format!("{all}&fieldSelector=host=blue");
    let mut all = Events::new(client.open("GET", &all, &[], b"").await);
    let mut blue = Events::new(client.open("GET", &blue, &[], b"").await);
    let told =
        |event: Value| (event["type"].as_str().unwrap_or_default().to_owned(), shown(&event["object"]).1);
    let event = |kind: &str, fields: &str| (kind.to_owned(), fields.to_owned());
    for events in [&mut all, &mut blue] {
        assert_eq!(told(events.next().await.expect("an event")), event("ADDED", "|blue|1"));
    }
    let url = format!("{}/a", hosts("v1"));
    ok(&client.patch(&url, "merge", r#"{"hostPort":"red:1"}"#).await);
    ok(&client.patch(&url, "merge", r#"{"hostPort":"red:2"}"#).await);
    ok(&client.patch(&url, "merge", r#"{"hostPort":"blue:2"}"#).await);
    ok(&client.patch(&url, "merge", r#"{"hostPort":"blue:3"}"#).await);
    ok(&client.delete(&url, "").await);
    for expected in [
        event("MODIFIED", "|red|1"),
        event("MODIFIED", "|red|2"),
        event("MODIFIED", "|blue|2"),
        event("MODIFIED", "|blue|3"),
        event("DELETED", "|blue|3"),
    ] {
        assert_eq!(told(all.next().await.expect("an event")), expected);
    }
    for expected in [
        event("DELETED", "|blue|1"),
        event("ADDED", "|blue|2"),
        event("MODIFIED", "|blue|3"),
        event("DELETED", "|blue|3"),
    ] {
        assert_eq!(told(blue.next().await.expect("an event")), expected);
    }
}

#[tokio::test]
async fn selectors_look_at_what_was_converted() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    for (name, host) in [("a", "blue:1"), ("b", "red:1"), ("c", "blue:2")] {
        ok(&client.post(&hosts("v1"), &v1(name, host)).await);
    }
    hook.becomes(|desired, objects| {
        let mut objects = convert(desired, objects)?;
        for object in &mut objects {
            if desired.ends_with("/v2") {
                object["metadata"]["labels"] = json!({"made": "v2"});
            }
        }
        Ok(objects)
    });
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
    };
    for (version, selector, expected) in [
        ("v2", "fieldSelector=host=blue", &["a", "c"][..]),
        ("v2", "fieldSelector=host=blue&limit=1", &["a"]),
        ("v2", "fieldSelector=host!=blue", &["b"]),
        ("v1", "fieldSelector=hostPort=red:1", &["b"]),
        ("v2", "labelSelector=made=v2", &["a", "b", "c"]),
        ("v2", "labelSelector=made=v1", &[]),
        ("v1", "labelSelector=made=v1", &["a", "b", "c"]),
    ] {
        let list = ok(&client.get(&format!("{}?{selector}", hosts(version))).await);
        assert_eq!(names(&list), expected, "{version} {selector}");
    }
    let first = ok(&client.get(&format!("{}?fieldSelector=host=blue&limit=1", hosts("v2"))).await);
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let url = format!("{}?fieldSelector=host=blue&limit=1&continue={token}", hosts("v2"));
    assert_eq!(names(&ok(&client.get(&url).await)), ["c"]);
    let refused = client.get(&format!("{}?fieldSelector=hostPort=red:1", hosts("v2"))).await;
    assert_eq!(refused.json()["message"], "field label not supported: hostPort");
}

#[tokio::test]
async fn failures_are_worded_as_upstream() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    ok(&client.post(&hosts("v1"), &v1("a", "one:80")).await);
    let of = "conversion webhook for stable.example.org/v1, Kind=Host";
    let message = |answer: &Answer| answer.json()["message"].as_str().unwrap_or_default().to_owned();
    // A GET says of what it cannot convert what it says of whatever it cannot read.
    let unread = |answer: &Answer| {
        let text = message(answer);
        let (head, why) = text.split_once(": conversion webhook").unwrap_or((&text, ""));
        let expected = "Internal error occurred: StorageError: corrupt object, Code: 7, Key: \
                        /stable.example.org/hosts/default/a, ResourceVersion: 0, AdditionalErrorMsg: \
                        object not decodable revision=";
        assert!(head.starts_with(expected), "{text}");
        format!("conversion webhook{why}")
    };
    let broken = |change: fn(&mut Value)| {
        move |desired: &str, objects: Vec<Value>| {
            let mut objects = convert(desired, objects)?;
            objects.iter_mut().for_each(change);
            Ok(objects)
        }
    };
    hook.becomes(|_, _| Err("no conversion today".to_owned()));
    let url = format!("{}/a", hosts("v2"));
    let failed = client.get(&url).await;
    assert_eq!((failed.code, unread(&failed)), (500, format!("{of} failed: no conversion today")));
    let failed = message(&client.patch(&url, "merge", r#"{"port":"1"}"#).await);
    assert!(failed.starts_with("object not decodable revision="), "{failed}");
    assert_eq!(message(&client.get(&hosts("v2")).await), format!("{of} failed: no conversion today"));
    let refused = client.post(&hosts("v2"), &v2("x", "h", "1")).await;
    let expected = "conversion webhook for stable.example.org/v2, Kind=Host failed: no conversion today";
    assert_eq!((refused.code, message(&refused)), (500, expected.to_owned()));
    assert_eq!(client.get(&format!("{}/x", hosts("v1"))).await.code, 404, "nothing was stored");

    hook.becomes(|_, _| Ok(Vec::new()));
    assert_eq!(unread(&client.get(&url).await), format!("{of} returned 0 objects, expected 1"));
    for (change, why) in [
        (
            (|object| object["apiVersion"] = "stable.example.org/v3".into()) as fn(&mut Value),
            "returned invalid object at index 0: invalid groupVersion (expected stable.example.org/v2, received stable.example.org/v3)",
        ),
        (
            |object| object["kind"] = "Hosts".into(),
            "returned invalid object at index 0: invalid kind (expected Host, received Hosts)",
        ),
        (
            |object| object["metadata"]["name"] = "b".into(),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |object| object["metadata"]["namespace"] = "b".into(),
            "returned invalid object: must have the same namespace: default != b",
        ),
        (
            |object| object["metadata"]["labels"] = json!({"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            |object| {
                object.as_object_mut().map(|members| members.remove("metadata"));
            },
            "returned invalid object: must have the same name: a != ",
        ),
    ] {
        hook.becomes(broken(change));
        assert_eq!(unread(&client.get(&url).await), format!("{of} {why}"));
    }
    // Whatever else of the metadata is changed is taken back; labels and annotations count.
    hook.becomes(broken(|object| {
        object["metadata"]["generation"] = 77.into();
        object["metadata"]["finalizers"] = json!(["example.org/x"]);
        object["metadata"]["annotations"] = json!({"new": "one"});
        object["unknown"] = 1.into();
    }));
    let found = ok(&client.get(&url).await);
    assert_eq!(
        (&found["metadata"]["generation"], found["metadata"].get("finalizers"), found.get("unknown")),
        (&json!(1), None, None)
    );
    assert_eq!(found["metadata"]["annotations"], json!({"new": "one"}));

    // A webhook that is not there, and then is.
    let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig/url",
                        "value": "https://127.0.0.1:1/convert"}]);
    let definition = format!("{DEFINITIONS}/hosts.stable.example.org");
    ok(&client.patch(&definition, "json", &patch.to_string()).await);
    let expected = format!(
        "{of} failed: Post \"https://127.0.0.1:1/convert?timeout=30s\": dial tcp 127.0.0.1:1: connect: connection refused"
    );
    eventually(&client, &url, |answer| answer.code == 500 && message(answer).ends_with(&expected)).await;
    assert_eq!(client.get(&format!("{}/a", hosts("v1"))).await.code, 200);
    let none = json!([{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]);
    ok(&client.patch(&definition, "json", &none.to_string()).await);
    let plain = eventually(&client, &url, |answer| answer.code == 200).await;
    assert_eq!(
        shown(&plain.json()),
        is("v2", "||"),
        "without conversion the fields of another version are lost"
    );
}

/// As with what cannot be decrypted there is a way out.
#[tokio::test]
async fn what_cannot_be_converted_can_be_deleted_unread() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    ok(&client.post(&hosts("v1"), &v1("a", "one:80")).await);
    let url = format!("{}/a", hosts("v2"));
    let unread = r#"{"ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;
    assert_eq!(client.delete(&url, unread).await.code, 409, "it can be read");
    hook.becomes(|_, _| Err("no".to_owned()));
    ok(&client.post(&hosts("v1"), &v1("b", "two:80")).await);
    let url = format!("{}/b", hosts("v2"));
    assert_eq!(client.delete(&url, "").await.code, 500);
    ok(&client.delete(&url, unread).await);
    assert_eq!(client.get(&format!("{}/b", hosts("v1"))).await.code, 404);
}

#[tokio::test]
async fn a_service_is_found_by_its_endpoints_and_its_certificate_is_checked() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = Hook::start(convert).await;
    let mut conversion = hook.conversion();
    conversion["webhook"]["clientConfig"] = json!({
        "service": {"namespace": "default", "name": "hook", "path": "/convert", "port": 9443}, "caBundle": hook.bundle});
    define(&client, &definition(conversion), &hosts("v1")).await;
    ok(&client.post(&hosts("v1"), &v1("a", "one:80")).await);
    let url = format!("{}/a", hosts("v2"));
    let head = "conversion webhook for stable.example.org/v1, Kind=Host failed: Post \"https://hook.default.svc:9443/convert?timeout=30s\": ";
    let fails = |answer: Answer, why: &str| {
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.ends_with(&format!("{head}{why}")), "{message}");
    };
    fails(client.get(&url).await, "service \"hook\" not found");
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 9443, "name": "web"}]}});
    ok(&client.post("/api/v1/namespaces/default/services", &service.to_string()).await);
    fails(client.get(&url).await, "no endpoints available for service \"hook\"");
    // An endpoint is never on loopback, so from here on the webhook is called by its address.
    let direct = json!([{"op": "replace", "path": "/spec/conversion", "value": hook.conversion()}]);
    let definition = format!("{DEFINITIONS}/hosts.stable.example.org");
    ok(&client.patch(&definition, "json", &direct.to_string()).await);
    eventually(&client, &url, |answer| answer.code == 200).await;
    assert_eq!(shown(&ok(&client.get(&url).await)), is("v2", "|one|80"));
    // Another authority than the one that signed.
    let other = Hook::start(convert).await;
    let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": other.bundle}]);
    ok(&client.patch(&format!("{DEFINITIONS}/hosts.stable.example.org"), "json", &patch.to_string()).await);
    eventually(&client, &url, |answer| {
        answer.code == 500 && answer.text.contains("tls: failed to verify certificate: x509: ")
    })
    .await;
}

/// An object that was stored in an older version is served and rewritten in the newer one.
#[tokio::test]
async fn objects_of_an_old_storage_version_are_converted() {
    let api = server().await;
    let client = Client::new(&api);
    let hook = hook(&client).await;
    ok(&client.post(&hosts("v1"), &v1("old", "one:80")).await);
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
                       {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]);
    let changed = ok(&client
        .patch(&format!("{DEFINITIONS}/hosts.stable.example.org"), "json", &patch.to_string())
        .await);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    // Once the change is taken up, writing in the new version needs no conversion.
    let mut attempt = 0;
    loop {
        let (calls, name) = (hook.calls(), format!("new{attempt}"));
        ok(&client.post(&hosts("v2"), &v2(&name, "two", "81")).await);
        if hook.calls() == calls {
            break;
        }
        attempt += 1;
        assert!(attempt < 200, "the new storage version was not taken up");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let new = format!("new{attempt}");
    for (version, old, converted) in [("v1", "one:80||", "two:81||"), ("v2", "|one|80", "|two|81")] {
        for (name, fields) in [("old", old), (new.as_str(), converted)] {
            let found = ok(&client.get(&format!("{}/{name}", hosts(version))).await);
            assert_eq!(shown(&found), is(version, fields), "{name}");
        }
    }
    ok(&client.patch(&format!("{}/old", hosts("v2")), "merge", r#"{"port":"90"}"#).await);
    assert_eq!(shown(&ok(&client.get(&format!("{}/old", hosts("v1"))).await)), is("v1", "one:90||"));
}

/// Who owns which field in which version: the webhook tells what a field of one version is in another.
#[tokio::test]
async fn appliers_of_two_versions_own_fields_of_one_object() {
    let api = server().await;
    let client = Client::new(&api);
    let _hook = hook(&client).await;
    let url = |version: &str, manager: &str, force: bool| {
        format!("{}/a?fieldManager={manager}&force={force}", hosts(version))
    };
    ok(&client.patch(&url("v1", "one", false), APPLY, &v1("a", "blue:1")).await);
    let refused = client.patch(&url("v2", "two", false), APPLY, &v2("a", "red", "1")).await;
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (409, Some("Apply failed with 1 conflict: conflict with \"one\": .hostPort")),
        "{}",
        refused.text
    );
    let forced = ok(&client.patch(&url("v2", "two", true), APPLY, &v2("a", "red", "1")).await);
    assert_eq!(shown(&forced), is("v2", "|red|1"));
    let owners = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let one = |entry: &Value| {
            let fields = entry["fieldsV1"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
            let fields: Vec<_> = fields.collect();
            format!(
                "{} {} {}",
                entry["manager"].as_str().unwrap_or_default(),
                entry["apiVersion"].as_str().unwrap_or_default(),
                fields.join(",")
            )
        };
        entries.iter().map(one).collect()
    };
    assert_eq!(
        owners(&forced),
        ["one stable.example.org/v1 f:metadata", "two stable.example.org/v2 f:host,f:port"]
    );
    // An update in the first version takes from who applied in the second.
    let merged = format!("{}/a?fieldManager=three", hosts("v1"));
    let merged = ok(&client.patch(&merged, "merge", r#"{"hostPort":"red:2"}"#).await);
    assert_eq!(shown(&merged), is("v1", "red:2||"));
    assert_eq!(
        owners(&merged),
        [
            "one stable.example.org/v1 f:metadata",
            "two stable.example.org/v2 f:host",
            "three stable.example.org/v1 f:hostPort"
        ]
    );
}
