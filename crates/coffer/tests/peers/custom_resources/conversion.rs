//! Two versions that a webhook converts: both servers call the same one.

use std::path::Path;

use serde_json::{Value, json};

use super::{APPLY, JSON, MERGE, PATCH, Request, TABLE, in_order, served};
use crate::requests::{ask, both, client, compare, masks};
use crate::webhook::Webhook;

const DIFFERENCES: &[(&str, &str)] = &[];

macro_rules! hosts {
    ($version:literal, $rest:literal) => {
        concat!("/apis/convert.example.com/", $version, "/namespaces/default/hosts", $rest)
    };
}

macro_rules! host {
    ($version:literal, $name:literal, $fields:literal) => {
        concat!(
            r#"{"apiVersion":"convert.example.com/"#,
            $version,
            r#"","kind":"Host","metadata":{"name":""#,
            $name,
            r#""},"#,
            $fields,
            "}"
        )
    };
}

const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

/// In the order in which they are sent.
const REQUESTS: &[Request] = &[
    ("POST", hosts!("v1", "?fieldManager=one"), JSON, host!("v1", "a", r#""hostPort":"blue:80""#)),
    ("POST", hosts!("v2", "?fieldManager=two"), JSON, host!("v2", "b", r#""host":"red","port":"81""#)),
    ("GET", hosts!("v1", "/a"), "", ""),
    ("GET", hosts!("v2", "/a"), "", ""),
    ("GET", hosts!("v1", "/b"), "", ""),
    ("GET", hosts!("v2", "/b"), "", ""),
    ("GET", hosts!("v1", ""), "", ""),
    ("GET", hosts!("v2", ""), "", ""),
    ("GET", hosts!("v2", "?limit=1"), "", ""),
    ("GET", hosts!("v2", "?resourceVersion=0"), "", ""),
    ("GET", hosts!("v2", "?fieldSelector=host=blue"), "", ""),
    ("GET", hosts!("v2", "?fieldSelector=host!=blue"), "", ""),
    ("GET", hosts!("v1", "?fieldSelector=hostPort=red:81"), "", ""),
    ("GET", hosts!("v2", "?fieldSelector=hostPort=red:81"), "", ""),
    ("GET", hosts!("v2", "?watch=1&timeoutSeconds=1"), "", ""),
    ("GET", hosts!("v2", "?watch=1&timeoutSeconds=1&fieldSelector=host=red"), "", ""),
    ("GET", hosts!("v2", ""), TABLE, ""),
    ("GET", hosts!("v2", ""), PARTIAL_LIST, ""),
    ("PATCH", hosts!("v2", "/b?fieldManager=three"), MERGE, r#"{"port":"82"}"#),
    (
        "PATCH",
        hosts!("v2", "/b?fieldManager=three"),
        PATCH,
        r#"[{"op":"replace","path":"/host","value":"green"}]"#,
    ),
    ("PATCH", hosts!("v2", "/b?fieldManager=three&dryRun=All"), MERGE, r#"{"port":"83"}"#),
    (
        "PATCH",
        hosts!("v2", "/b?fieldManager=three"),
        MERGE,
        r#"{"metadata":{"labels":{"a":"b"}},"unknown":1}"#,
    ),
    ("PATCH", hosts!("v2", "/b?fieldManager=three"), MERGE, r#"{"port":7}"#),
    ("PATCH", hosts!("v2", "/b/status?fieldManager=four"), MERGE, r#"{"status":{"up":true}}"#),
    ("GET", hosts!("v1", "/b"), "", ""),
    // Apply in both versions.
    (
        "PATCH",
        hosts!("v1", "/c?fieldManager=one"),
        APPLY,
        host!("v1", "c", r#""hostPort":"blue:1","note":"x""#),
    ),
    ("PATCH", hosts!("v2", "/c?fieldManager=two"), APPLY, host!("v2", "c", r#""host":"red","port":"1""#)),
    ("PATCH", hosts!("v2", "/c?fieldManager=two"), APPLY, host!("v2", "c", r#""host":"blue","port":"1""#)),
    (
        "PATCH",
        hosts!("v2", "/c?fieldManager=two&force=true"),
        APPLY,
        host!("v2", "c", r#""host":"red","port":"1""#),
    ),
    ("PATCH", hosts!("v1", "/c?fieldManager=three"), MERGE, r#"{"hostPort":"red:2"}"#),
    (
        "PATCH",
        hosts!("v1", "/c?fieldManager=one&force=true"),
        APPLY,
        host!("v1", "c", r#""hostPort":"blue:3""#),
    ),
    ("GET", hosts!("v2", "/c"), "", ""),
    ("DELETE", hosts!("v2", "/c"), "", ""),
    ("DELETE", hosts!("v2", "?fieldSelector=host=green"), "", ""),
    ("GET", hosts!("v1", ""), "", ""),
    // What the webhook does wrong; the name says what.
    ("POST", hosts!("v1", ""), JSON, host!("v1", "fails", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/fails"), "", ""),
    ("PATCH", hosts!("v2", "/fails"), MERGE, r#"{"port":"82"}"#),
    ("POST", hosts!("v2", ""), JSON, host!("v2", "fails-too", r#""host":"a""#)),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "renames", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/renames"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "loses", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/loses"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "mistakes-version", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/mistakes-version"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "mistakes-kind", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/mistakes-kind"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "labels", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/labels"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "mislabels", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/mislabels"), "", ""),
    ("POST", hosts!("v1", ""), JSON, host!("v1", "empties", r#""hostPort":"a:1""#)),
    ("GET", hosts!("v2", "/empties"), "", ""),
    ("GET", hosts!("v1", ""), "", ""),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn converted_resources_get_the_answers_of_kube_apiserver() {
    let webhook = Webhook::converting(convert);
    let definition = definition(&webhook).to_string();
    let (coffer, stock, etcd) = both().await;
    let (from_stock, from_coffer) =
        tokio::join!(ask_all(stock.kubeconfig(), &definition), ask_all(coffer.kubeconfig(), &definition));
    compare("conversion.json", REQUESTS, DIFFERENCES, &from_stock, &from_coffer);
    drop((stock, etcd));
}

async fn ask_all(kubeconfig: &Path, definition: &str) -> Vec<Value> {
    let client = client(kubeconfig).await;
    let masks = masks();
    // A request is made of texts that last.
    let definition: &'static str = Box::leak(definition.to_owned().into_boxed_str());
    let made = ask(&client, &("POST", super::DEFINITIONS, JSON, definition), &masks).await;
    assert_eq!(made["code"], 201, "{made}");
    served(&client, hosts!("v1", "")).await;
    served(&client, hosts!("v2", "")).await;
    let mut answers = Vec::new();
    for request in REQUESTS {
        answers.push(in_order(ask(&client, request, &masks).await));
    }
    answers
}

fn definition(webhook: &Webhook) -> Value {
    let version = |name: &str, storage: bool, fields: Value, selectable: &str| {
        let mut properties = fields;
        properties["note"] = json!({"type": "string"});
        properties["status"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
               "selectableFields": [{"jsonPath": selectable}],
               "additionalPrinterColumns": [{"name": "Field", "type": "string", "jsonPath": selectable}],
               "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hosts.convert.example.com"},
        "spec": {"group": "convert.example.com", "scope": "Namespaced", "names": {"plural": "hosts", "kind": "Host"},
                 "conversion": {"strategy": "Webhook", "webhook": {
                     "conversionReviewVersions": ["v1"],
                     "clientConfig": {"url": webhook.url("/convert"), "caBundle": webhook.bundle()}}},
                 "versions": [
                     version("v1", true, json!({"hostPort": {"type": "string"}}), ".hostPort"),
                     version("v2", false, json!({"host": {"type": "string"}, "port": {"type": "string"}}), ".host")]}
    })
}

/// Splits `hostPort`, or puts it together; an object's name may ask for a mistake.
fn convert(desired: &str, objects: Vec<Value>) -> Result<Vec<Value>, String> {
    let mut converted = Vec::new();
    for mut object in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        object["apiVersion"] = desired.into();
        let members = object.as_object_mut().expect("an object");
        if desired.ends_with("/v2") {
            if let Some(both) = members.remove("hostPort") {
                let both = both.as_str().unwrap_or_default().to_owned();
                let (host, port) = both.split_once(':').unwrap_or((&both, ""));
                members.insert("host".into(), host.into());
                members.insert("port".into(), port.into());
            }
        } else if members.contains_key("host") || members.contains_key("port") {
            let mut part = |name: &str| {
                members.remove(name).and_then(|part| part.as_str().map(str::to_owned)).unwrap_or_default()
            };
            let both = format!("{}:{}", part("host"), part("port"));
            members.insert("hostPort".into(), both.into());
        }
        match name.as_str() {
            "fails" | "fails-too" => return Err(format!("{name}: not today")),
            "renames" => object["metadata"]["name"] = "other".into(),
            "loses" => continue,
            "mistakes-version" => object["apiVersion"] = "convert.example.com/v3".into(),
            "mistakes-kind" => object["kind"] = "Hosts".into(),
            "labels" => {
                object["metadata"] = json!({"name": name, "namespace": "default",
                "uid": object["metadata"]["uid"], "labels": {"a": "b"}, "annotations": {"c": "d"}, "generation": 9})
            }
            "mislabels" => object["metadata"]["labels"] = json!({"a": "-"}),
            "empties" => object = json!({"apiVersion": desired, "kind": "Host"}),
            _ => {}
        }
        converted.push(object);
    }
    Ok(converted)
}
