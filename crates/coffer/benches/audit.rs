//! `cargo xtask bench audit`: a snapshot of 1 GiB with 100,000 keys and a long history, read by
//! `coffer audit` with every live value opened, and by `etcdutl snapshot status`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_config::encryption::{Reload, Transformers, parse};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_sim::peers::{Etcd, program};
use coffer_store::etcd::{EtcdConfig, EtcdKv};
use coffer_store::kv::{Kv, Op, SharedValue, Txn};

const KEYS: usize = 100_000;
const RECORDS: usize = 760_000;
/// etcd takes at most 128.
const BATCH: usize = 100;
const RUNS: usize = 5;

const ENCRYPTION: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: key1, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}
";

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "audit") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (config, snapshot) = (directory.path().join("encryption.yaml"), directory.path().join("snapshot.db"));
    std::fs::write(&config, ENCRYPTION).expect("written");
    let etcd = Etcd::start();
    eprintln!("writing {RECORDS} records");
    tokio::runtime::Runtime::new().expect("a runtime").block_on(fill(&etcd));
    etcd.ctl(&["snapshot", "save", snapshot.to_str().expect("text")]);
    drop(etcd);
    let size = std::fs::metadata(&snapshot).expect("a file").len();
    println!("snapshot of {} MiB, {KEYS} keys, {RECORDS} records", size >> 20);

    let coffer = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
        command.args(["audit", "--snapshot"]).arg(&snapshot).args(more);
        command
    };
    let config = config.to_str().expect("text");
    let mut status = Command::new(program("etcdutl"));
    status.args(["snapshot", "status"]).arg(&snapshot);
    let theirs = measure("etcdutl snapshot status", &mut status, 0);
    let ours = measure("coffer audit --config", &mut coffer(&["--config", config]), 0);
    let without = measure("coffer audit", &mut coffer(&[]), 0);
    println!("{:<28}{:>10}{:>12}", "", "seconds", "MiB");
    for (name, (seconds, memory)) in
        [("etcdutl snapshot status", theirs), ("coffer audit --config", ours), ("coffer audit", without)]
    {
        println!("{name:<28}{seconds:>10.2}{memory:>12.1}");
    }
    println!("etcdutl's time is {:.2} of ours", theirs.0 / ours.0);
}

/// Every key again and again, encrypted as the API server does.
async fn fill(etcd: &Etcd) {
    let kv = EtcdKv::connect(EtcdConfig::new(vec![etcd.url().to_owned()], Arc::new(SystemClock::new())))
        .await
        .expect("connected");
    let parsed = parse("bench", ENCRYPTION.as_bytes(), Reload::Never).expect("a configuration");
    let transformer = Transformers::build("bench", &parsed, Arc::new(SystemRandom::new()))
        .expect("transformers")
        .transformer_for("", "secrets");
    for batch in 0..RECORDS / BATCH {
        let put = |number: usize| {
            let (namespace, name) = (number % KEYS / 100, format!("secret-{}", number % KEYS));
            let key = format!("/registry/secrets/namespace-{namespace}/{name}");
            let object = secret(&format!("namespace-{namespace}"), &name);
            let value = transformer.to_storage(&object, key.as_bytes()).expect("encrypted");
            Op::Put { key: Bytes::from(key), value: SharedValue(Bytes::from(value)), lease: 0 }
        };
        let success = (batch * BATCH..(batch + 1) * BATCH).map(put).collect();
        kv.txn(Txn { success, ..Txn::default() }).await.expect("written");
    }
}

/// A Secret of 1 KiB in its stored form.
fn secret(namespace: &str, name: &str) -> Vec<u8> {
    let object = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{{\"name\":\"{name}\",\"namespace\":\"{namespace}\"}},\
         \"data\":{{\"value\":\"{}\"}}}}\n",
        "A".repeat(1024)
    );
    object.into_bytes()
}

/// The fastest run's seconds, and the most memory that any took, in MiB.
fn measure(name: &str, command: &mut Command, expected: i32) -> (f64, f64) {
    eprintln!("measuring {name}");
    let (mut fastest, mut most) = (f64::MAX, 0.0_f64);
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut child = command.stdout(Stdio::null()).spawn().expect("it runs");
        let status = loop {
            most = most.max(peak(child.id()));
            if let Some(status) = child.try_wait().expect("it can be asked") {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert_eq!(status.code(), Some(expected), "{name}");
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (fastest, most)
}

/// The most memory that a process has had resident.
fn peak(id: u32) -> f64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) / 1024.0
}
