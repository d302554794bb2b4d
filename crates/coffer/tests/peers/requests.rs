//! Raw requests, well formed and not, to the stock kube-apiserver and to the built binary.
//!
//! Both get the same requests in the same order and must give the same status code, content type,
//! warnings and body, with what differs from run to run masked. What differs on purpose or is not
//! there yet is in [`DIFFERENCES`] with its reason; a row of it that no longer differs fails too.

mod table;

use std::path::Path;
use std::time::Duration;

use coffer_sim::peers::{ApiserverOptions, Etcd, KubeApiserver};
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use regex::Regex;
use serde_json::{Value, json};

use self::table::{DIFFERENCES, REQUESTS, Request};
use crate::support::Coffer;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_requests_get_the_answers_of_kube_apiserver() {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.expect("etcd");
    let coffer = tokio::task::spawn_blocking(Coffer::start);
    let (stock, etcd) = tokio::task::spawn_blocking(move || {
        (KubeApiserver::start(&etcd, &ApiserverOptions::default()), etcd)
    })
    .await
    .expect("kube-apiserver");
    let coffer = coffer.await.expect("coffer");

    let config = coffer.kubeconfig();
    let (from_stock, from_coffer) = tokio::join!(ask_all(stock.kubeconfig()), ask_all(&config));
    let mut failures = String::new();
    for (request, (expected, found)) in REQUESTS.iter().zip(from_stock.iter().zip(&from_coffer)) {
        let title = title(request);
        let reason = DIFFERENCES.iter().find(|(named, _)| *named == title).map(|(_, reason)| reason);
        if let Some(error) = expected.get("error").or_else(|| found.get("error")) {
            failures += &format!("{title}\n    is no test: {error}\n");
            continue;
        }
        match (expected == found, reason) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(reason)) => failures += &format!("{title}\n    no longer differs: {reason}\n"),
            (false, None) => {
                failures += &format!("{title}\n    kube-apiserver {expected}\n    coffer         {found}\n");
            }
        }
    }
    for (named, _) in DIFFERENCES {
        if !REQUESTS.iter().any(|request| title(request) == *named) {
            failures += &format!("{named}\n    is no request\n");
        }
    }
    drop(stock);
    drop(etcd);
    assert!(failures.is_empty(), "\n{failures}");
}

/// A request in one line, by which [`DIFFERENCES`] names it.
fn title((method, path, kind, body): &Request) -> String {
    [*method, *path, *kind, *body].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

async fn ask_all(kubeconfig: &Path) -> Vec<Value> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.expect("a configuration");
    // The first answer counts.
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client");
    let masks = masks();
    let mut answers = Vec::new();
    for request in REQUESTS {
        answers.push(ask(&client, request, &masks).await);
    }
    answers
}

async fn ask(client: &Client, (method, path, kind, body): &Request, masks: &[(Regex, &str)]) -> Value {
    let path = if path.starts_with("/api") || path.starts_with("/version") {
        (*path).to_owned()
    } else {
        format!("{}{path}", table::SECRETS)
    };
    let mut request = http::Request::builder().method(*method).uri(path);
    if !kind.is_empty() {
        // What is read has no content; there the column says what is accepted.
        request = request.header(if *method == "GET" { "accept" } else { "content-type" }, *kind);
    }
    let request = request.body(Body::from(body.as_bytes().to_vec())).expect("a request");
    let answer = tokio::time::timeout(PATIENCE, async {
        let (head, body) = client.send(request).await?.into_parts();
        Ok::<_, kube::Error>((head, body.collect_bytes().await))
    });
    let (head, bytes) = match answer.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return json!({ "error": error.to_string() }),
        Err(_) => return json!({ "error": "no answer in time" }),
    };
    let header = |name: &str| -> Vec<String> {
        let values = head.headers.get_all(name).iter();
        values.map(|value| mask(&String::from_utf8_lossy(value.as_bytes()), masks)).collect()
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let text = mask(&String::from_utf8_lossy(&bytes), masks);
    // A watch answers with one document a line.
    let documents: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line))).collect();
    json!({
        "code": head.status.as_u16(),
        "type": header("content-type"),
        "warning": header("warning"),
        "body": documents,
    })
}

/// What differs from run to run, and what is written in its place.
fn masks() -> Vec<(Regex, &'static str)> {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r#"("(resourceVersion|continue|selfLink)":) ?"[^"]+""#, "${1}\"MASKED\""),
        (r"(current: |too old resource version: |in record \()\d+( \(\d+\))?", "${1}VERSION"),
        (r#"(resourceVersion: \\?")\d+"#, "${1}VERSION"),
        (r#"("gen-)[a-z0-9]{5}""#, "${1}RANDOM\""),
        // The words that explain a column are each server's own.
        (r#""description": ?"[^"]*","priority""#, "\"description\":\"TEXT\",\"priority\""),
        (r#""\d+s""#, "\"AGE\""),
        (r"127\.0\.0\.1:\d+", "SERVER"),
    ]
    .into_iter()
    .map(|(pattern, replacement)| (Regex::new(pattern).expect("a pattern"), replacement))
    .collect()
}

fn mask(text: &str, masks: &[(Regex, &str)]) -> String {
    masks.iter().fold(text.to_owned(), |text, (pattern, replacement)| {
        pattern.replace_all(&text, *replacement).into_owned()
    })
}
