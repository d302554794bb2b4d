//! The External Secrets Operator itself, unmodified, on coffer.
//!
//! `COFFER_EXTERNAL_SECRETS` names the sources of the version that the peers are built from.

mod manifests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use coffer_sim::peers::{
    ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl, Pki, Process, free_port, program,
};
use serde_json::{Map, Value};

use crate::quiet;

/// How many specs its controller's suite has.
const SPECS: u64 = 96;
/// How long the suite and the binary may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Where its sources are.
fn sources() -> PathBuf {
    let named = std::env::var_os("COFFER_EXTERNAL_SECRETS");
    PathBuf::from(named.expect("COFFER_EXTERNAL_SECRETS is set by `cargo xtask conformance operator`"))
}

#[test]
#[expect(clippy::print_stderr, reason = "a long run tells what it did")]
fn its_controllers_own_suite_passes() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let etcd = Etcd::start();
    let coffer = Coffer::apiserver(quiet, &etcd, &pki, &ApiserverOptions::default());
    let report = directory.path().join("report.json");
    let mut command = Command::new(program("external-secrets.test"));
    command
        .arg(format!("-ginkgo.json-report={}", report.display()))
        .args(["-ginkgo.no-color", "-test.timeout=14m"])
        // It finds its definitions from where its sources are.
        .current_dir(sources().join("pkg/controllers/externalsecret"))
        .env("USE_EXISTING_CLUSTER", "true")
        .env("KUBECONFIG", coffer.kubeconfig());
    let started = Instant::now();
    let mut suite = Process::start("suite", &mut command, directory.path());
    let code = loop {
        if let Some(code) = suite.ended() {
            break code;
        }
        assert!(started.elapsed() < PATIENCE, "the suite still runs:\n{}", end(&suite.log()));
        std::thread::sleep(Duration::from_millis(100));
    };
    let report = std::fs::read(&report).ok().and_then(|report| serde_json::from_slice::<Value>(&report).ok());
    let report = report.unwrap_or_else(|| panic!("no report, exit code {code}:\n{}", end(&suite.log())));
    let specs = report[0]["SpecReports"].as_array().expect("specs");
    let specs = specs.iter().filter(|spec| spec["LeafNodeType"] == "It");
    let (mut passed, mut failures) = (0, String::new());
    for spec in specs {
        match spec["State"].as_str() {
            Some("passed") => passed += 1,
            state => {
                let (text, failure) = (&spec["LeafNodeText"], &spec["Failure"]["Message"]);
                write!(failures, "{text}: {state:?}: {failure}\n\n").expect("a text");
            }
        }
    }
    eprintln!("{passed} specs passed in {:?}", started.elapsed());
    assert!(failures.is_empty(), "{failures}");
    assert_eq!((passed, code), (SPECS, 0));
}

#[test]
fn five_hundred_external_secrets_end_as_on_kube_apiserver() {
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let (etcd, other) = (Etcd::start(), Etcd::start());
    let coffer = Coffer::apiserver(quiet, &etcd, &pki, &ApiserverOptions::default());
    let stock = KubeApiserver::start(&other, &ApiserverOptions::default());
    let ours = followed("coffer", &coffer.kubectl(), coffer.kubeconfig());
    let theirs = followed("kube-apiserver", &stock.kubectl(), stock.kubeconfig());
    assert_eq!(ours.len(), theirs.len());
    for (kind, objects) in &ours {
        // One of the kubernetes provider's: `su7`, under a key that changes.
        if let Some(word) = kind.strip_suffix(": secrets") {
            assert_eq!(objects.len(), manifests::COUNT);
            assert_eq!(objects["target-7"]["data"], serde_json::json!({ word: "c3U3" }));
        }
    }
    let mut differences = String::new();
    for ((kind, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        for name in ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name))) {
            let absent = Value::Null;
            let (ours, theirs) = (ours.get(name).unwrap_or(&absent), theirs.get(name).unwrap_or(&absent));
            if ours != theirs {
                writeln!(differences, "{kind} {name}\nkube-apiserver {theirs}\ncoffer {ours}\n")
                    .expect("a text");
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.chars().take(20_000).collect::<String>());
}

/// Objects by name, without what is made anew each time.
type Objects = (String, Map<String, Value>);

/// Lets the operator follow five hundred ExternalSecrets, then their changes, and tells what is there after each.
#[expect(clippy::print_stderr, reason = "a long run tells what it did")]
fn followed(server: &str, kubectl: &Kubectl, kubeconfig: &Path) -> Vec<Objects> {
    let bundle = std::fs::read_to_string(sources().join("deploy/crds/bundle.yaml")).expect("the definitions");
    given(kubectl, &["apply", "--server-side", "-f", "-"], &bundle);
    kubectl.ok(&["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"]);
    given(kubectl, &["create", "-f", "-"], manifests::NAMESPACES);
    given(kubectl, &["create", "-f", "-"], &manifests::sources(kubectl));
    given(kubectl, &["create", "-f", "-"], &manifests::external_secrets("first"));

    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(program("external-secrets"));
    // One worker, as by default: two of them write the fake provider's map at once.
    command.env("KUBECONFIG", kubeconfig).args([
        format!("--metrics-addr=127.0.0.1:{}", free_port()).as_str(),
        "--client-qps=500",
        "--client-burst=1000",
    ]);
    let mut operator = Process::start("external-secrets", &mut command, directory.path());
    let mut found = Vec::new();
    for word in ["first", "second"] {
        if word == "second" {
            given(kubectl, &["replace", "-f", "-"], &manifests::external_secrets(word));
        }
        let started = Instant::now();
        loop {
            let waiting = unsynced(kubectl);
            if waiting.is_empty() {
                break;
            }
            assert!(
                operator.ended().is_none() && started.elapsed() < PATIENCE,
                "{server}, {word}: {} wait: {:?}\n{}",
                waiting.len(),
                &waiting[..waiting.len().min(5)],
                end(&operator.log()),
            );
            std::thread::sleep(Duration::from_millis(500));
        }
        eprintln!("{server}, {word}: synced after {:?}", started.elapsed());
        for kind in ["secrets", "externalsecrets", "secretstores"] {
            let objects = objects(kubectl, kind);
            eprintln!("{server}, {word}: {} {kind}", objects.len());
            found.push((format!("{word}: {kind}"), objects));
        }
    }
    operator.terminate();
    found
}

fn given(kubectl: &Kubectl, arguments: &[&str], manifests: &str) {
    let output = kubectl.run_with_input(arguments, manifests);
    assert_eq!(output.code, 0, "kubectl {arguments:?}: {}", output.stderr);
}

/// The end of a log.
fn end(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// The ExternalSecrets whose status does not tell that this state of theirs is synced.
fn unsynced(kubectl: &Kubectl) -> Vec<String> {
    let list = list(kubectl, "externalsecrets");
    assert_eq!(list.len(), manifests::COUNT);
    let synced = |object: &Value| {
        let version = object["status"]["syncedResourceVersion"].as_str().unwrap_or_default();
        let generation = object["metadata"]["generation"].to_string();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        version.starts_with(&format!("{generation}-"))
            && conditions
                .iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    list.iter()
        .filter(|object| !synced(object))
        .map(|object| format!("{} {}", object["metadata"]["name"], object["status"]))
        .collect()
}

fn list(kubectl: &Kubectl, kind: &str) -> Vec<Value> {
    let namespace = format!("--namespace={}", manifests::NAMESPACE);
    let output = kubectl.ok(&["get", kind, &namespace, "-o", "json", "--show-managed-fields"]);
    let list: Value = serde_json::from_str(&output).expect("JSON");
    list["items"].as_array().expect("a list").clone()
}

fn objects(kubectl: &Kubectl, kind: &str) -> Map<String, Value> {
    let owners = list(kubectl, "externalsecrets");
    let named = list(kubectl, kind).into_iter().map(|object| {
        let mut object = with_names_of_owners(&object, &owners);
        mask(&mut object);
        (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object)
    });
    named.collect()
}

/// The object with the names of its owners wherever their uids are, in the names of managed fields too.
fn with_names_of_owners(object: &Value, owners: &[Value]) -> Value {
    let mut text = object.to_string();
    for reference in object["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        let owner = owners.iter().find(|owner| owner["metadata"]["uid"] == reference["uid"]);
        let owner = owner.unwrap_or_else(|| panic!("no ExternalSecret is {reference}"));
        let (uid, name) = (&reference["uid"], &owner["metadata"]["name"]);
        text = text.replace(uid.as_str().expect("a uid"), name.as_str().expect("a name"));
    }
    serde_json::from_str(&text).expect("JSON")
}

/// Takes away what is made anew each time, wherever it is.
fn mask(object: &mut Value) {
    object["metadata"]["uid"] = Value::String("masked".to_owned());
    mask_fields(object);
}

fn mask_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "resourceVersion" | "creationTimestamp" | "time" | "lastTransitionTime"
                    // The server that is a store, too.
                    | "refreshTime" | "url" | "caBundle" => *field = Value::String("masked".to_owned()),
                    // Which of two that wrote in one second is first is chance.
                    "managedFields" => sort(field),
                    _ => {}
                }
                mask_fields(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_fields),
        _ => {}
    }
}

fn sort(entries: &mut Value) {
    if let Value::Array(entries) = entries {
        entries.sort_by_key(|entry| {
            format!("{} {} {}", entry["manager"], entry["operation"], entry["subresource"])
        });
    }
}
