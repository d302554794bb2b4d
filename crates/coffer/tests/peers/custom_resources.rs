//! Raw requests about custom resources, to the stock kube-apiserver and to the built binary.
//!
//! As [`crate::requests`]: the same requests in the same order, and the same answers but for
//! [`DIFFERENCES`], where ours are in `differences/custom.json`.

mod conversion;
mod rules;
mod scale;
mod selectors;
mod values;

use std::path::Path;
use std::time::Duration;

use kube::Client;
use serde_json::Value;

use crate::requests::{Request, ask, both, client, compare, masks};

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Definitions, and where their objects are.
const KINDS: &[(&str, &str)] = &[
    (scale::DEFINITION, scale::GEARS),
    (selectors::DEFINITION, selectors::SHIRTS),
    (values::DEFINITION, values::LAMPS),
];

/// Requests whose answers differ, each with the reason.
const DIFFERENCES: &[&[(&str, &str)]] = &[scale::DIFFERENCES, selectors::DIFFERENCES, values::DIFFERENCES];

fn requests() -> impl Iterator<Item = &'static Request> {
    scale::REQUESTS.iter().chain(selectors::REQUESTS).chain(values::REQUESTS)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_about_custom_resources_get_the_answers_of_kube_apiserver() {
    let (coffer, stock, etcd) = both().await;
    let (from_stock, from_coffer) = tokio::join!(ask_all(stock.kubeconfig()), ask_all(coffer.kubeconfig()));
    let (requests, differences): (Vec<Request>, Vec<_>) =
        (requests().copied().collect(), DIFFERENCES.iter().copied().flatten().copied().collect());
    compare("custom.json", &requests, &differences, &from_stock, &from_coffer);
    drop((stock, etcd));
}

async fn ask_all(kubeconfig: &Path) -> Vec<Value> {
    let client = client(kubeconfig).await;
    let masks = masks();
    for (definition, path) in KINDS {
        let made = ask(&client, &("POST", DEFINITIONS, YAML, definition), &masks).await;
        assert_eq!(made["code"], 201, "{made}");
        served(&client, path).await;
    }
    let mut answers = Vec::new();
    for request in requests() {
        answers.push(in_order(ask(&client, request, &masks).await));
    }
    answers
}

/// Upstream walks maps, and tells what is wrong in any order.
fn in_order(mut answer: Value) -> Value {
    if let Some(warnings) = answer["warning"].as_array_mut() {
        warnings.sort_by_key(Value::to_string);
    }
    for document in answer["body"].as_array_mut().into_iter().flatten() {
        let Some(causes) = document.pointer_mut("/details/causes").and_then(Value::as_array_mut) else {
            continue;
        };
        causes.sort_by_key(|cause| (cause["field"].to_string(), cause["message"].to_string()));
        let text = |cause: &Value| {
            let part = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", part("field"), part("message"))
        };
        let texts: Vec<String> = causes.iter().map(text).collect();
        let message = document["message"].as_str().unwrap_or_default();
        if let Some((head, rest)) = message.split_once(" is invalid: ")
            && rest.starts_with('[')
        {
            document["message"] = format!("{head} is invalid: [{}]", texts.join(", ")).into();
        }
    }
    answer
}

/// Waits until objects of a definition are served, with a cache that is filled.
async fn served(client: &Client, path: &'static str) {
    for _ in 0..300 {
        let answer = ask(client, &("GET", path, "", ""), &masks()).await;
        if answer["code"] == 200 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} is not served");
}
