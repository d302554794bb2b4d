//! `coffer keys migrate` through a stock kube-apiserver and through coffer: what was stored under an
//! old key, or under none, is stored under the new one, and users see no change.

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl, Pki};
use serde_json::Value;

use super::quiet;

const OLD: &str = "  - aesgcm: {keys: [{name: old, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}\n";
const NEW: &str =
    "  - secretbox: {keys: [{name: new, secret: MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}\n";
const IDENTITY: &str = "  - identity: {}\n";

fn config(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets, configmaps, widgets.example.com]\n  providers:\n{providers}"
    )
}

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn create(kubectl: &Kubectl, prefix: &str) {
    for number in 0..3 {
        let name = format!("{prefix}-{number}");
        kubectl.ok(&["create", "secret", "generic", &name, "--from-literal=k=v"]);
        kubectl.ok(&["create", "configmap", &name, "--from-literal=k=v"]);
        let widget =
            format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec: {{a: 1}}\n");
        kubectl.apply(&widget);
    }
}

/// Everything but what every write changes.
fn seen(kubectl: &Kubectl) -> Value {
    let text = kubectl.ok(&[
        "get",
        "secrets,configmaps,widgets.example.com",
        "-o",
        "json",
        "--show-managed-fields",
        "-n",
        "default",
    ]);
    let mut list: Value = serde_json::from_str(&text).expect("JSON");
    for item in list["items"].as_array_mut().expect("items") {
        item["metadata"]["resourceVersion"].take();
    }
    list["items"].take()
}

fn migrate(kubeconfig: &std::path::Path, more: &[&str]) -> (i32, Value) {
    let output = quiet()
        .args(["keys", "migrate", "-o", "json", "--rate", "1000", "--kubeconfig"])
        .arg(kubeconfig)
        .args(["secrets", "configmaps", "widgets.example.com"])
        .args(more)
        .output()
        .expect("coffer runs");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("a code"), report)
}

fn rewritten(report: &Value) -> Vec<u64> {
    let resources = report["resources"].as_array().expect("resources");
    resources.iter().map(|of| of["rewritten"].as_u64().expect("a number")).collect()
}

fn audit(etcd: &Etcd, config: &std::path::Path) -> (i32, String) {
    let output = quiet()
        .args(["audit", "--etcd-servers", etcd.url(), "--config"])
        .arg(config)
        .output()
        .expect("coffer runs");
    (output.status.code().expect("a code"), String::from_utf8(output.stdout).expect("text"))
}

enum Server {
    Stock(Box<KubeApiserver>),
    Ours(Box<Coffer>),
}

impl Server {
    fn start(ours: bool, etcd: &Etcd, pki: &Pki, options: &ApiserverOptions<'_>) -> Self {
        if ours {
            Self::Ours(Box::new(Coffer::apiserver(quiet, etcd, pki, options)))
        } else {
            Self::Stock(Box::new(KubeApiserver::start(etcd, options)))
        }
    }

    fn kubeconfig(&self) -> std::path::PathBuf {
        match self {
            Self::Stock(server) => server.kubeconfig().to_owned(),
            Self::Ours(server) => server.kubeconfig().to_owned(),
        }
    }
}

fn check(ours: bool) {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let file = directory.path().join("encryption.yaml");
    let start = |providers: &str| {
        std::fs::write(&file, config(providers)).expect("written");
        Server::start(
            ours,
            &etcd,
            &pki,
            &ApiserverOptions { encryption: Some(&file), ..ApiserverOptions::default() },
        )
    };
    {
        let server = start(IDENTITY);
        let kubectl = Kubectl::new(&server.kubeconfig());
        kubectl.apply(DEFINITION);
        kubectl.ok(&["wait", "--for=condition=Established", "crd/widgets.example.com"]);
        create(&kubectl, "plain");
    }
    create(&Kubectl::new(&start(&format!("{OLD}{IDENTITY}")).kubeconfig()), "old");
    let server = start(&format!("{NEW}{OLD}{IDENTITY}"));
    let kubectl = Kubectl::new(&server.kubeconfig());
    create(&kubectl, "new");
    let before = seen(&kubectl);
    let (code, text) = audit(&etcd, &file);
    assert_eq!(code, 1, "{text}");

    let (code, report) = migrate(&server.kubeconfig(), &["--dry-run"]);
    assert_eq!((code, rewritten(&report)), (0, vec![0, 0, 0]), "{report:#}");
    assert_eq!(audit(&etcd, &file).0, 1);
    let (code, report) = migrate(&server.kubeconfig(), &[]);
    assert_eq!(code, 0, "{report:#}");
    let found = rewritten(&report);
    // Three were plaintext and three under the old key; the server's own ConfigMaps are among the others.
    assert_eq!((found[0], found[2]), (6, 6), "{report:#}");
    assert!(found[1] >= 6, "{report:#}");
    assert_eq!(seen(&kubectl), before, "users see no change");
    let (code, text) = audit(&etcd, &file);
    assert_eq!(code, 0, "{text}");
    // Once more there is nothing to do.
    let (code, report) = migrate(&server.kubeconfig(), &[]);
    assert_eq!((code, rewritten(&report)), (0, vec![0, 0, 0]), "{report:#}");
}

#[test]
fn through_a_stock_server() {
    check(false);
}

#[test]
fn through_coffer() {
    check(true);
}
