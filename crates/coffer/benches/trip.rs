//! `cargo xtask bench trip`: coffer and kube-apiserver, one after the other on the same etcd, with the
//! same client (client-go), TLS, RBAC and aesgcm on both. Figures are operations per CPU second of the
//! server's process; each line prints the ratio.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

use std::path::{Path, PathBuf};
use std::process::Command;

use coffer_sim::peers::{ApiserverOptions, Etcd, KubeApiserver, Kubectl, Pki, Process, free_port, program};
use serde_json::Value;

const OBJECTS: usize = 10_000;

const ENCRYPTION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: key1, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
  - identity: {}
";

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "trip") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let encryption = directory.path().join("encryption.yaml");
    std::fs::write(&encryption, ENCRYPTION).expect("written");
    let etcd = Etcd::start();
    let peer = {
        let server = KubeApiserver::start(
            &etcd,
            &ApiserverOptions { encryption: Some(&encryption), prefix: Some("/peer") },
        );
        measure("kube-apiserver", server.kubeconfig(), server.id())
    };
    let ours = {
        let server = Coffer::start(&etcd, &encryption, directory.path());
        measure("coffer", &server.kubeconfig, server.process.id())
    };
    println!("{:<44}{:>16}{:>16}{:>10}", "", "kube-apiserver", "coffer", "ratio");
    for ((what, theirs), (_, ours)) in peer.iter().zip(&ours) {
        println!("{what:<44}{theirs:>16.1}{ours:>16.1}{:>10.2}", ours / theirs);
    }
}

struct Coffer {
    process: Process,
    kubeconfig: PathBuf,
}

impl Coffer {
    fn start(etcd: &Etcd, encryption: &Path, directory: &Path) -> Self {
        let pki = Pki::create(&directory.join("pki"));
        let port = free_port();
        let file = |name: &str| pki.path(name).display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
        command
            .args(["apiserver", "--etcd-servers", etcd.url(), "--etcd-prefix", "/ours"])
            .args(["--bind-address", "127.0.0.1", "--secure-port", &port.to_string()])
            .args(["--tls-cert-file", &file("apiserver.crt")])
            .args(["--tls-private-key-file", &file("apiserver.key")])
            .args(["--client-ca-file", &file("ca.crt")])
            .args(["--service-account-issuer", "https://kubernetes.default.svc.cluster.local"])
            .args(["--service-account-key-file", &file("sa.pub")])
            .args(["--service-account-signing-key-file", &file("sa.key")])
            .arg("--encryption-provider-config")
            .arg(encryption);
        let mut process = Process::start("coffer", &mut command, directory);
        let kubeconfig = pki.kubeconfig("admin", &format!("https://127.0.0.1:{port}"));
        let kubectl = Kubectl::new(&kubeconfig);
        process.wait_until(|| kubectl.run(&["get", "--raw", "/readyz"]).code == 0);
        Self { process, kubeconfig }
    }
}

/// Every figure of one server, in the order in which they are printed.
fn measure(name: &str, kubeconfig: &Path, id: u32) -> Vec<(String, f64)> {
    eprintln!("measuring {name}");
    let mut figures = Vec::new();
    std::thread::sleep(std::time::Duration::from_secs(3));
    figures.push(("resident memory idle (MiB)".to_owned(), resident(id)));
    let load = |arguments: &[&str]| load(kubeconfig, id, arguments);
    let objects = OBJECTS.to_string();
    let create = load(&["-op", "create", "-n", &objects, "-c", "16", "-conns", "4", "-mkns"]);
    figures.push(("create, protobuf, 16 clients (op/CPU s)".to_owned(), rate(&create)));
    let update = load(&["-op", "update", "-n", "4000", "-c", "16", "-conns", "4"]);
    figures.push(("update, protobuf, 16 clients (op/CPU s)".to_owned(), rate(&update)));
    for clients in ["1", "64"] {
        let get = load(&["-op", "get", "-n", "20000", "-c", clients, "-conns", "4"]);
        figures.push((format!("get by name, linearizable, {clients} clients (op/CPU s)"), rate(&get)));
    }
    for content in ["protobuf", "json"] {
        for gzip in ["false", "true"] {
            let gzip_flag = format!("-gzip={gzip}");
            let list = load(&["-op", "list", "-n", "10", "-content", content, "-raw", &gzip_flag]);
            let what = if gzip == "true" { "gzipped" } else { "plain" };
            figures.push((format!("list of {OBJECTS}, {content}, {what} (op/CPU s)"), rate(&list)));
        }
    }
    let fan = load(&["-op", "watchfan", "-watchers", "500", "-n", "200", "-conns", "8"]);
    figures.push(("watch, 500 watchers, 200 updates (event/CPU s)".to_owned(), rate(&fan)));
    figures.push((format!("resident memory after {OBJECTS} (MiB)"), resident(id)));
    figures
}

fn rate(answer: &Value) -> f64 {
    answer["ops_per_cpu_s_server"].as_f64().unwrap_or(f64::NAN)
}

fn load(kubeconfig: &Path, id: u32, arguments: &[&str]) -> Value {
    let output = Command::new(program("load"))
        .arg("-kubeconfig")
        .arg(kubeconfig)
        .args(["-pids", &format!("server={id}")])
        .args(arguments)
        .output()
        .expect("the load generator runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "load {arguments:?}: {errors}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let failed = answer["errors"].as_i64().unwrap_or(0) + answer["fail"].as_i64().unwrap_or(0);
    assert_eq!(failed, 0, "load {arguments:?}: {answer} {errors}");
    eprintln!("  {answer}");
    answer
}

/// MiB.
fn resident(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes: f64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(f64::NAN);
    kilobytes / 1024.0
}
