//! Raw requests, well formed and not, to the stock kube-apiserver and to the built binary.
//!
//! Both get the same requests in the same order and must give the same status code, content type,
//! warnings and body, with what differs from run to run masked. What differs on purpose or is not
//! there yet is in [`DIFFERENCES`] with its reason; a row of it that no longer differs fails too, and so does
//! one whose answer is another than the one in `differences/requests.json` (written from Coffer with
//! `COFFER_TRANSCRIPTS=write`).

mod apply;
mod table;

use std::path::Path;
use std::time::Duration;

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver};
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use self::table::DIFFERENCES;
pub(crate) use self::table::Request;
use crate::masks::Masks;
use crate::quiet;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Coffer, and kube-apiserver on its etcd.
pub(crate) async fn both() -> (Coffer, KubeApiserver, Etcd) {
    let etcd = tokio::task::spawn_blocking(Etcd::start).await.expect("etcd");
    let coffer = tokio::task::spawn_blocking(|| Coffer::up(quiet, &[]));
    let (stock, etcd) = tokio::task::spawn_blocking(move || {
        (KubeApiserver::start(&etcd, &ApiserverOptions::default()), etcd)
    })
    .await
    .expect("kube-apiserver");
    (coffer.await.expect("coffer"), stock, etcd)
}

/// Every table of a kind that both serve: the same columns, explained in each server's own words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_differ_in_the_words_about_their_columns_alone() {
    let (coffer, stock, _etcd) = both().await;
    let mut failures = String::new();
    for path in [
        "/api/v1/secrets",
        "/api/v1/configmaps",
        "/api/v1/serviceaccounts",
        "/api/v1/namespaces",
        "/api/v1/pods",
        "/api/v1/nodes",
        "/api/v1/events",
        "/apis/events.k8s.io/v1/events",
        "/apis/coordination.k8s.io/v1/leases",
        "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ] {
        let request: Request = ("GET", path, table::TABLE, "");
        let mut columns = Vec::new();
        for kubeconfig in [stock.kubeconfig(), coffer.kubeconfig()] {
            let answer = ask(&client(kubeconfig).await, &request, &Masks::new(&[])).await;
            let found = answer["body"][0]["columnDefinitions"].as_array().cloned();
            columns.push(found.unwrap_or_else(|| panic!("{path}: {answer}")));
        }
        let plain = |columns: &[Value]| -> Vec<Value> {
            let mut columns = columns.to_vec();
            columns.iter_mut().for_each(|column| column["description"] = Value::Null);
            columns
        };
        if plain(&columns[0]) != plain(&columns[1]) {
            failures += &format!("{path}\n    {:?}\n    {:?}\n", plain(&columns[0]), plain(&columns[1]));
        }
        for (theirs, ours) in columns[0].iter().zip(&columns[1]) {
            let text = ours["description"].as_str().unwrap_or_default();
            if text.is_empty() || ours["description"] == theirs["description"] {
                failures += &format!("{path} {}: {text:?}\n", ours["name"]);
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_requests_get_the_answers_of_kube_apiserver() {
    let (coffer, stock, etcd) = both().await;
    let config = coffer.kubeconfig();
    let (from_stock, from_coffer) = tokio::join!(ask_all(stock.kubeconfig()), ask_all(config));
    let requests: Vec<Request> = requests().copied().collect();
    compare("requests.json", &requests, DIFFERENCES, &from_stock, &from_coffer);
    drop(stock);
    drop(etcd);
}

/// Holds the answers of both against each other, and ours that differ on purpose against a file.
pub(crate) fn compare(
    file: &str,
    requests: &[Request],
    differences: &[(&str, &str)],
    from_stock: &[Value],
    from_coffer: &[Value],
) {
    let mut failures = String::new();
    let mut own = serde_json::Map::new();
    let ordered = |answers: &[Value]| answers.iter().cloned().map(managers_in_order).collect::<Vec<_>>();
    let (from_stock, from_coffer) = (ordered(from_stock), ordered(from_coffer));
    for (request, (expected, found)) in requests.iter().zip(from_stock.iter().zip(&from_coffer)) {
        let title = title(request);
        let reason = differences.iter().find(|(named, _)| *named == title).map(|(_, reason)| reason);
        if let Some(error) = expected.get("error").or_else(|| found.get("error")) {
            failures += &format!("{title}\n    is no test: {error}\n");
            continue;
        }
        if reason.is_some() {
            assert_eq!(own.insert(title.clone(), found.clone()), None, "{title} is asked twice");
        }
        match (expected == found, reason) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(reason)) => failures += &format!("{title}\n    no longer differs: {reason}\n"),
            (false, None) => {
                failures += &format!("{title}\n    kube-apiserver {expected}\n    coffer         {found}\n");
            }
        }
    }
    for (named, _) in differences {
        if !requests.iter().any(|request| title(request) == *named) {
            failures += &format!("{named}\n    is no request\n");
        }
    }
    failures += &changed(file, &own);
    assert!(failures.is_empty(), "\n{failures}");
}

/// Managers stand in the order of time, then of names; which writes share a second is luck.
fn managers_in_order(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                *member = managers_in_order(member.take());
                if name == "managedFields"
                    && let Value::Array(entries) = member
                {
                    entries.sort_by_key(|entry| {
                        ["manager", "operation", "apiVersion", "subresource"]
                            .map(|key| entry[key].to_string())
                    });
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = managers_in_order(item.take())),
        _ => {}
    }
    answer
}

/// In the order in which they are sent.
fn requests() -> impl Iterator<Item = &'static Request> {
    table::REQUESTS.iter().chain(apply::REQUESTS)
}

/// The answers of Coffer's own that are not the expected ones, which are in a file.
pub(crate) fn changed(file: &str, own: &serde_json::Map<String, Value>) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/differences").join(file);
    if std::env::var("COFFER_TRANSCRIPTS").is_ok_and(|value| value == "write") {
        let text = serde_json::to_string_pretty(own).expect("JSON");
        std::fs::write(&file, text + "\n").expect("written");
    }
    let text = std::fs::read_to_string(file).expect("Coffer's own answers");
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&text).expect("JSON");
    let titles: std::collections::BTreeSet<&String> = own.keys().chain(expected.keys()).collect();
    let differing = titles.into_iter().filter(|title| own.get(*title) != expected.get(*title));
    differing
        .map(|title| {
            let shown = |answers: &serde_json::Map<String, Value>| {
                answers.get(title).map_or("nothing".to_owned(), Value::to_string)
            };
            format!(
                "{title}\n    expected of coffer {}\n    found              {}\n",
                shown(&expected),
                shown(own)
            )
        })
        .collect()
}

/// A request in one line, by which [`DIFFERENCES`] names it.
pub(crate) fn title((method, path, kind, body): &Request) -> String {
    [*method, *path, *kind, *body].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A client that tries each request once.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.expect("a configuration");
    // The first answer counts.
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

async fn ask_all(kubeconfig: &Path) -> Vec<Value> {
    let client = client(kubeconfig).await;
    let masks = masks();
    let mut answers = Vec::new();
    for request in requests() {
        answers.push(ask(&client, request, &masks).await);
    }
    answers
}

pub(crate) async fn ask(client: &Client, (method, path, kind, body): &Request, masks: &Masks) -> Value {
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
        values.map(|value| masks.apply(&String::from_utf8_lossy(value.as_bytes()))).collect()
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let text = masks.apply(&String::from_utf8_lossy(&bytes));
    // A watch answers with one document a line.
    let mut documents: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| Value::from(line))).collect();
    for causes in documents.iter_mut().filter_map(|document| document.pointer_mut("/details/causes")) {
        // Upstream walks a map to find who stands in the way.
        if let Some(causes) = causes.as_array_mut()
            && causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict")
        {
            causes.sort_by_key(|cause| cause["field"].to_string());
        }
    }
    json!({
        "code": head.status.as_u16(),
        "type": header("content-type"),
        "warning": header("warning"),
        "body": documents,
    })
}

/// What differs from run to run, and what is written in its place.
pub(crate) fn masks() -> Masks {
    Masks::new(&[
        (r#"("(resourceVersion|continue|selfLink)":) ?"[^"]+""#, "${1}\"MASKED\""),
        (r"(current: |too old resource version: |in record \()\d+( \(\d+\))?", "${1}VERSION"),
        (r#"(resourceVersion: \\?")\d+"#, "${1}VERSION"),
        (r"(not decodable revision=)\d+", "${1}VERSION"),
        (r#"("gen-)[a-z0-9]{5}""#, "${1}RANDOM\""),
        // The words that explain a column are each server's own.
        (r#""description": ?"[^"]*","priority""#, "\"description\":\"TEXT\",\"priority\""),
        (r#""\d+s""#, "\"AGE\""),
    ])
}
