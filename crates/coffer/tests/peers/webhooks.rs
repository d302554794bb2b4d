//! Admission webhooks: situations in which kube-apiserver and the built binary ask a webhook of the
//! test's own, which lies, hangs, floods, redirects and patches badly. Both must answer the same, with the same
//! warnings, and must have told the webhook the same.
//!
//! What differs on purpose is in [`DIFFERENCES`]; ours is in `differences/webhooks.json`.

mod behaviour;
mod situations;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::join_all;
use kube::Client;
use serde_json::{Value, json};

use self::situations::{DIFFERENCES, SITUATIONS, Situation};
use crate::masks::Masks;
use crate::requests::{Request, ask, both, client, compare};
use crate::webhook::Webhook;

/// How many situations there must be.
const AT_LEAST: usize = 40;
/// How long all situations together may take, the start of the servers not included.
const AT_MOST: Duration = Duration::from_secs(40);
/// How long a server may take to see a configuration.
const PATIENCE: Duration = Duration::from_secs(30);

const JSON: &str = "application/json";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What a webhook was told, by namespace.
type Reviews = Arc<Mutex<BTreeMap<String, Vec<Value>>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_asked_and_heard_as_by_kube_apiserver() {
    assert!(SITUATIONS.len() >= AT_LEAST, "only {} situations", SITUATIONS.len());
    let (coffer, stock, etcd) = both().await;
    let started = Instant::now();
    let (from_stock, from_coffer) = tokio::join!(ask_all(stock.kubeconfig()), ask_all(coffer.kubeconfig()));
    let took = started.elapsed();
    let requests: Vec<Request> = requests().collect();
    compare("webhooks.json", &requests, DIFFERENCES, &from_stock, &from_coffer);
    assert!(took < AT_MOST, "the situations took {took:?}");
    drop((stock, etcd));
}

/// The requests of all situations, and after those of each what the webhook was told.
fn requests() -> impl Iterator<Item = Request> {
    SITUATIONS.iter().flat_map(|situation| {
        let own = situation.requests.iter().map(|(method, path, kind, body)| {
            let path: &'static str = Box::leak(situation.path(path).into_boxed_str());
            (*method, path, *kind, *body)
        });
        own.chain([("reviews", situation.name, "", "")])
    })
}

async fn ask_all(kubeconfig: &Path) -> Vec<Value> {
    let client = client(kubeconfig).await;
    let masks = masks();
    let reviews = Reviews::default();
    let webhook = webhook(&reviews);
    for definition in situations::DEFINITIONS {
        make(&client, DEFINITIONS, definition).await;
    }
    for situation in SITUATIONS {
        let labels = json!({"situation": situation.name});
        let namespace = json!({"metadata": {"name": situation.name, "labels": labels}});
        make(&client, "/api/v1/namespaces", &namespace.to_string()).await;
    }
    for path in situations::SERVED {
        until(&client, ("GET", path, "", ""), 200).await;
    }
    for situation in SITUATIONS {
        configure(&client, situation, &webhook).await;
    }
    // What is configured last is seen last.
    for (kind, namespace) in [("mutating", "marked-m"), ("validating", "marked-v")] {
        make(&client, "/api/v1/namespaces", &json!({"metadata": {"name": namespace}}).to_string()).await;
        let marker = json!({"name": "marker.example.com", "path": "/deny"});
        let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
        configuration(&client, kind, namespace, namespace, &[marker], &webhook).await;
        let path: &'static str = Box::leak(path.into_boxed_str());
        until(&client, ("POST", path, JSON, r#"{"metadata":{"name":"a"}}"#), 400).await;
    }
    let answers = SITUATIONS.iter().map(async |situation| {
        let mut answers = Vec::new();
        for (method, path, kind, body) in situation.requests {
            let path: &'static str = Box::leak(situation.path(path).into_boxed_str());
            answers.push(ask(&client, &(*method, path, *kind, *body), &masks).await);
        }
        let told = reviews.lock().expect("unharmed").remove(situation.name).unwrap_or_default();
        let text = masks.apply(&Value::from(told).to_string());
        let mut told: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        // Those that are asked together are asked in any order.
        told.sort_by_key(|review| (review["phase"] == "validating").then(|| review.to_string()));
        answers.push(json!({"reviews": told}));
        answers
    });
    join_all(answers).await.into_iter().flatten().collect()
}

/// The webhook, which notes what it is told.
fn webhook(reviews: &Reviews) -> Webhook {
    let reviews = Arc::clone(reviews);
    Webhook::start(move |path, review| {
        let (situation, path) = path.trim_start_matches('/').split_once('/').unwrap_or_default();
        let (phase, path) = path.split_once('/').unwrap_or_default();
        let path = format!("/{path}");
        let told = json!({"phase": phase, "path": path, "review": review});
        reviews.lock().expect("unharmed").entry(situation.to_owned()).or_default().push(told);
        behaviour::answer(&path, &review)
    })
}

async fn configure(client: &Client, situation: &Situation, webhook: &Webhook) {
    let hooks: Vec<Value> = serde_json::from_str(situation.hooks).expect(situation.name);
    for kind in ["mutating", "validating"] {
        let own: Vec<Value> = hooks.iter().filter(|hook| hook["phase"] == kind).cloned().collect();
        if !own.is_empty() {
            configuration(client, kind, situation.name, situation.name, &own, webhook).await;
        }
    }
}

/// Writes a configuration whose webhooks see one namespace, unless they say otherwise.
async fn configuration(
    client: &Client,
    kind: &str,
    name: &str,
    namespace: &str,
    hooks: &[Value],
    webhook: &Webhook,
) {
    let hooks: Vec<Value> = hooks
        .iter()
        .enumerate()
        .map(|(index, hook)| {
            let mut made = json!({
                "name": format!("hook{index}.{name}.example.com"),
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
            });
            for (field, value) in hook.as_object().expect("a webhook") {
                match field.as_str() {
                    "phase" | "path" | "name" => {}
                    field => made[field] = value.clone(),
                }
            }
            let path = hook["path"].as_str().expect("a path");
            if hook["clientConfig"].is_null() {
                let url = webhook.url(&format!("/{name}/{kind}{path}"));
                made["clientConfig"] = json!({"url": url, "caBundle": webhook.bundle()});
            } else if hook["clientConfig"]["caBundle"] == "RIGHT" {
                made["clientConfig"]["caBundle"] = webhook.bundle().into();
            } else if hook["clientConfig"]["url"] == "RIGHT" {
                made["clientConfig"]["url"] = webhook.url(&format!("/{name}/{kind}{path}")).into();
            }
            made
        })
        .collect();
    let (kind, plural) = match kind {
        "mutating" => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        _ => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    };
    let body = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                      "metadata": {"name": name}, "webhooks": hooks});
    make(client, &format!("{CONFIGURATIONS}/{plural}"), &body.to_string()).await;
}

async fn make(client: &Client, path: &str, body: &str) {
    let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
    let body: &'static str = Box::leak(body.to_owned().into_boxed_str());
    let made = ask(client, &("POST", path, JSON, body), &masks()).await;
    assert_eq!(made["code"], 201, "{path} {body}: {made}");
}

async fn until(client: &Client, request: Request, code: u16) {
    let started = Instant::now();
    loop {
        let answer = ask(client, &request, &masks()).await;
        if answer["code"] == code {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{request:?}: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn masks() -> Masks {
    Masks::new(&[
        (r#"("resourceVersion":) ?"[^"]+""#, "${1}\"MASKED\""),
        (r#"("gen-)[a-z0-9]{5}""#, "${1}RANDOM\""),
        (r#""username":"(coffer-)?admin""#, "\"username\":\"ADMIN\""),
        (r"X509SHA256=[0-9a-f]+", "X509SHA256=HASH"),
    ])
}
