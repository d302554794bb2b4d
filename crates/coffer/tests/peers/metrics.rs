//! What `/metrics` tells about stored objects: of the stock kube-apiserver and of the built binary, after
//! the same requests.
//!
//! Names, types, label names and bounds must be the same, and so must what is counted about Secrets where
//! nothing but the requests decides it. What differs is in [`MISSING`], [`OWN`] and [`OTHERWISE`] with its reason;
//! a row of them that no longer differs fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::quiet;

/// What the names of metrics about storage begin with.
const STORAGE: &[&str] = &[
    "etcd_",
    "apiserver_storage_",
    "apiserver_resource_",
    "apiserver_watch_cache_",
    "watch_cache_",
    "apiserver_watch_events_dispatch_",
    "apiserver_init_events_",
    "apiserver_terminated_watchers_",
    "apiserver_encryption_config_",
];

/// What kube-apiserver has and Coffer has not.
const MISSING: &[(&str, &str)] = &[];

/// What kube-apiserver does not show here, though it knows the name.
const OWN: &[(&str, &str)] = &[
    ("apiserver_terminated_watchers_total", COUNTS),
    ("apiserver_storage_decode_errors_total", COUNTS),
    ("apiserver_watch_cache_initialization_errors_total", COUNTS),
    ("watch_cache_capacity_increase_total", COUNTS),
    ("watch_cache_capacity_decrease_total", COUNTS),
];

/// A zero lets a rate begin with the first of them.
const COUNTS: &str = "kube-apiserver shows it once it has counted something, Coffer from the start";

/// What is counted, of Secrets.
const COUNTED: &[&str] = &[
    "etcd_requests_total",
    "etcd_request_duration_seconds_count",
    "etcd_request_errors_total",
    "apiserver_storage_events_received_total",
    "apiserver_storage_decode_errors_total",
    "apiserver_storage_list_total",
    "apiserver_storage_list_fetched_objects_total",
    "apiserver_storage_list_evaluated_objects_total",
    "apiserver_storage_list_returned_objects_total",
    "apiserver_storage_list_duration_seconds_count",
    "apiserver_storage_transformation_operations_total",
    "apiserver_init_events_total",
    "apiserver_terminated_watchers_total",
    "apiserver_watch_cache_events_received_total",
    "apiserver_watch_cache_initializations_total",
    "apiserver_watch_cache_initialization_errors_total",
    "apiserver_watch_cache_consistent_read_total",
    "watch_cache_capacity",
    "watch_cache_capacity_increase_total",
    "watch_cache_capacity_decrease_total",
];

/// What is counted otherwise: the series, kube-apiserver's number, Coffer's, and why.
const OTHERWISE: &[(&str, f64, f64, &str)] = &[];

/// What both are asked: method, path below the namespace, body.
const REQUESTS: &[(&str, &str, &str)] = &[
    ("POST", "secrets", r#"{"metadata":{"name":"a"},"data":{"k":"dg=="}}"#),
    ("POST", "secrets", r#"{"metadata":{"name":"b","labels":{"l":"b"}},"data":{"k":"dg=="}}"#),
    ("POST", "secrets", r#"{"metadata":{"name":"a"}}"#),
    ("GET", "secrets/a", ""),
    ("GET", "secrets/a?resourceVersion=0", ""),
    ("GET", "secrets/absent", ""),
    ("GET", "secrets", ""),
    ("GET", "secrets?resourceVersion=0", ""),
    ("GET", "secrets?labelSelector=l%3Db", ""),
    ("GET", "secrets?fieldSelector=metadata.name%3Db", ""),
    ("GET", "secrets?limit=1", ""),
    ("GET", "secrets?resourceVersion=1&resourceVersionMatch=Exact", ""),
    // In the future: the cache waits in vain.
    ("GET", "secrets?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", ""),
    ("PATCH", "secrets/a", r#"{"metadata":{"labels":{"l":"a"}}}"#),
    ("PATCH", "secrets/a", r#"{"metadata":{"labels":{"l":"a"}}}"#),
    ("GET", "secrets?watch=1&timeoutSeconds=1&resourceVersion=0", ""),
    ("DELETE", "secrets/a", ""),
    (
        "POST",
        "events",
        r#"{"metadata":{"name":"e"},"involvedObject":{"namespace":"default","kind":"Secret","name":"a"},"reason":"r","type":"Normal"}"#,
    ),
];

/// Changes of Secrets that the requests make.
const CHANGES: f64 = 4.0;

/// How long it may take until a cache has seen them.
const PATIENCE: Duration = Duration::from_secs(30);

/// A metric as it is shown.
#[derive(Debug, Default, PartialEq)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
    bounds: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Scrape {
    families: BTreeMap<String, Family>,
    /// Numbers by name and labels, which are in order.
    series: BTreeMap<String, f64>,
}

impl Scrape {
    fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                scrape.families.entry(name.to_owned()).or_default().kind = kind.to_owned();
            } else if !line.starts_with('#') && !line.is_empty() {
                scrape.add(line);
            }
        }
        scrape
    }

    fn add(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.strip_suffix("\"}").unwrap_or_default();
        let labels: BTreeMap<&str, &str> =
            labels.split("\",").filter_map(|label| label.split_once("=\"")).collect();
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let family = match base.filter(|base| self.families.contains_key(*base)) {
            Some(base) => base,
            None => name,
        };
        let family = self.families.get_mut(family).expect("its type stands before it");
        family.labels.extend(labels.keys().filter(|label| **label != "le").map(|label| (*label).to_owned()));
        family.bounds.extend(labels.get("le").map(|bound| (*bound).to_owned()));
        let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        let value = value.parse().expect("a number");
        self.series.insert(format!("{name} {}", labels.join(",")), value);
    }

    /// The numbers of Secrets that are to be counted.
    fn counted(&self) -> BTreeMap<&str, f64> {
        let counted = |series: &str| {
            let (name, labels) = series.split_once(' ').expect("a name");
            let mut labels = labels.split(',');
            COUNTED.contains(&name)
                && labels.clone().any(|label| label == "resource=secrets")
                // Whether a read finds a decrypted value in the cache depends on how far that is.
                && !labels.any(|label| label == "transformation_type=from_storage")
        };
        let counted = self.series.iter().filter(|(series, _)| counted(series));
        counted.map(|(series, value)| (series.as_str(), *value)).collect()
    }

    fn changes(&self) -> f64 {
        let series = "apiserver_storage_events_received_total group=,resource=secrets";
        self.series.get(series).copied().unwrap_or(0.0)
    }
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    // The first answer counts.
    config.default_retry = false;
    Client::try_from(config).expect("a client")
}

async fn scrape(client: &Client) -> Scrape {
    let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    Scrape::parse(&client.request_text(request).await.expect("metrics"))
}

/// What is shown before and after the requests.
async fn ask(kubeconfig: &Path) -> (Scrape, Scrape) {
    let client = client(kubeconfig).await;
    let before = scrape(&client).await;
    for (method, path, body) in REQUESTS {
        let kind = if *method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(*method)
            .uri(format!("/api/v1/namespaces/default/{path}"))
            .header("content-type", kind)
            .body(body.as_bytes().to_vec())
            .expect("a request");
        // Some are refused, by both.
        let _ = client.request_text(request).await;
    }
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let after = scrape(&client).await;
        if before.changes() + CHANGES <= after.changes() {
            return (before, after);
        }
        assert!(std::time::Instant::now() < until, "{} of {CHANGES} changes", after.changes());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_metrics_are_those_of_kube_apiserver() {
    let directory = tempfile::tempdir().expect("a directory");
    let encryption = directory.path().join("encryption.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
                - resources: [secrets]\n  providers:\n  \
                - aesgcm: {keys: [{name: one, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}\n";
    std::fs::write(&encryption, text).expect("written");
    let started = tokio::task::spawn_blocking(move || {
        let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
        let etcds = [Etcd::start(), Etcd::start()];
        let stock = KubeApiserver::start(&etcds[0], &options);
        let coffer = Coffer::apiserver(quiet, &etcds[1], stock.pki(), &options);
        (etcds, stock, coffer, directory)
    });
    let (etcds, stock, coffer, _directory) = started.await.expect("servers");
    let (theirs, ours) = (ask(stock.kubeconfig()).await, ask(coffer.kubeconfig()).await);
    let failures = [families(&theirs.1, &ours.1), counts(&theirs, &ours)].concat();
    drop((stock, coffer, etcds));
    assert!(failures.is_empty(), "\n{failures}");
}

fn families(theirs: &Scrape, ours: &Scrape) -> String {
    let mut failures = String::new();
    let about_storage = |name: &&String| STORAGE.iter().any(|start| name.starts_with(start));
    let named = |table: &[(&str, &str)], name: &str| table.iter().any(|(known, _)| *known == name);
    for name in theirs.families.keys().filter(about_storage) {
        let expected = &theirs.families[name];
        match (ours.families.get(name), named(MISSING, name)) {
            (None, true) => {}
            (None, false) => failures += &format!("{name}: missing: {expected:?}\n"),
            (Some(_), true) => failures += &format!("{name}: no longer missing\n"),
            (Some(found), false) if found == expected => {}
            (Some(found), false) => {
                failures += &format!("{name}:\n  stock  {expected:?}\n  coffer {found:?}\n")
            }
        }
    }
    for name in ours.families.keys().filter(about_storage) {
        let (shown, series) = (theirs.families.contains_key(name), &ours.families[name]);
        if shown == named(OWN, name) {
            failures += &format!("{name}: shown by stock: {shown}: {series:?}\n");
        }
    }
    for (name, _) in MISSING.iter().chain(OWN) {
        if !theirs.families.contains_key(*name) && !ours.families.contains_key(*name) {
            failures += &format!("{name}: shown by nobody\n");
        }
    }
    failures
}

fn counts(theirs: &(Scrape, Scrape), ours: &(Scrape, Scrape)) -> String {
    let grown = |(before, after): &(Scrape, Scrape)| -> BTreeMap<String, f64> {
        let before = before.counted();
        let grown = after.counted().into_iter().map(|(series, value)| {
            let gauge = series.starts_with("watch_cache_capacity ");
            (series.to_owned(), if gauge { value } else { value - before.get(series).unwrap_or(&0.0) })
        });
        grown.filter(|(_, value)| *value != 0.0).collect()
    };
    let (theirs, ours) = (grown(theirs), grown(ours));
    let mut failures = String::new();
    let all: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for series in &all {
        let of = |grown: &BTreeMap<String, f64>| grown.get(*series).copied().unwrap_or(0.0);
        let (expected, found) = (of(&theirs), of(&ours));
        match OTHERWISE.iter().find(|(known, ..)| known == series) {
            None if expected == found => {}
            Some((_, stock, own, _)) if (*stock, *own) == (expected, found) && expected != found => {}
            known => failures += &format!("{series}: stock {expected}, coffer {found}; known {known:?}\n"),
        }
    }
    for (series, ..) in OTHERWISE {
        if !all.iter().any(|known| known == series) {
            failures += &format!("{series}: counted by nobody\n");
        }
    }
    failures
}
