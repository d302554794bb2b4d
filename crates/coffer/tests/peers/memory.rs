//! What the operator keeps of a cluster that is none of its concern, beside a stock kube-apiserver.

use coffer_sim::peers::{ApiserverOptions, Etcd, KubeApiserver, Process};

use crate::quiet;
use crate::requests::client;

/// What a process holds in memory now, and has held at most, in KiB.
fn memory(process: &Process) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("it runs");
    ["VmRSS:", "VmHWM:"].map(|field| {
        let line = text.lines().find_map(|line| line.strip_prefix(field)).expect(field);
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    })
}

/// Without a single ExternalSecret, what others keep in the cluster costs the operator nothing: neither as it
/// comes, nor when it is there at the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o19_150_megabytes_of_others_are_less_than_10_in_the_operators_memory() {
    const COUNT: usize = 1000;
    const SIZE: usize = 150 * 1000;
    /// KiB.
    const MOST: u64 = 10 * 1024;
    let (server, _etcd) = tokio::task::spawn_blocking(|| {
        let etcd = Etcd::start();
        (KubeApiserver::start(&etcd, &ApiserverOptions::default()), etcd)
    })
    .await
    .expect("kube-apiserver");
    let directory = tempfile::tempdir().expect("a directory");
    let start = |name: &str| {
        let kubeconfig = format!("--kubeconfig={}", server.kubeconfig().display());
        let mut command = quiet();
        command.args(["operator", "--install-crds", "--metrics-addr=0", "--live-addr=0", &kubeconfig]);
        let mut process = Process::start(name, &mut command, directory.path());
        let log = directory.path().join(format!("{name}.log"));
        process.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains(" serves ")));
        process
    };
    let running = start("running");
    let before = memory(&running);

    let client = client(server.kubeconfig()).await;
    // Base64 of zeros: the size counts.
    let value = "A".repeat(SIZE / 3 * 4);
    for start in (0..COUNT).step_by(8) {
        let creates = (start..COUNT.min(start + 8)).map(|index| {
            // Put together by hand: a thousand of these are not worth a tree each.
            let secret = format!(r#"{{"metadata":{{"name":"s-{index}"}},"data":{{"k":"{value}"}}}}"#);
            let client = client.clone();
            async move { client.request_text(create(secret)).await }
        });
        for created in futures::future::join_all(creates).await {
            created.expect("created");
        }
    }
    let fresh = start("fresh");
    for (which, process) in [("that saw them come", &running), ("that found them", &fresh)] {
        let after = memory(process);
        for (what, before, after) in [("now", before[0], after[0]), ("at most", before[1], after[1])] {
            let grown = after.saturating_sub(before);
            assert!(grown < MOST, "the operator {which} holds {grown} KiB more {what}: {before}, {after}");
        }
    }
}

fn create(secret: String) -> http::Request<Vec<u8>> {
    http::Request::post("/api/v1/namespaces/default/secrets")
        .header("content-type", "application/json")
        .body(secret.into_bytes())
        .expect("a request")
}
