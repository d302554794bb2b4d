//! The node beside a stock kube-apiserver.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_node::files::RealFiles;
use coffer_node::report::{ANNOTATION, CONDITION, ConsumerKind, ConsumerState, Report};
use coffer_node::volume::tmpfs::RealMounter;
use coffer_node::{NodeConfig, run};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_sim::peers::{ApiserverOptions, Etcd, KubeApiserver, Kubectl};
use coffer_types::time::{Clock, Sleep, Timestamp};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio_util::sync::CancellationToken;

const NODE: &str = "n1";

/// Wall time goes on, but nothing that waits for a while ever goes on: whatever happens after the
/// start happens because of an event.
struct NoTimers(SystemClock);

impl Clock for NoTimers {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("the node ends");
    }
}

async fn start_node(server: &KubeApiserver, root: &Path) -> Running {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a configuration");
    let stop = CancellationToken::new();
    let node = NodeConfig {
        client: kube::Client::try_from(config).expect("a client"),
        node_name: NODE.to_owned(),
        root: root.to_owned(),
        memory_candidates: Vec::new(),
        instance: NODE.to_owned(),
        clock: Arc::new(NoTimers(SystemClock::new())),
        random: Arc::new(SystemRandom::new()),
        mounter: Arc::new(RealMounter),
        files: Arc::new(RealFiles),
    };
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { run(node, stop).await.expect("the node runs") }
    });
    Running { stop, task }
}

async fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = tokio::task::block_in_place(&mut found) {
            return value;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn report(kubectl: &Kubectl, pod: &str) -> Option<Report> {
    let key = ANNOTATION.replace('.', "\\.");
    let text = kubectl.ok(&["get", "pod", pod, "-o", &format!("jsonpath={{.metadata.annotations.{key}}}")]);
    serde_json::from_str(&text).ok()
}

fn state(kubectl: &Kubectl, pod: &str, kind: ConsumerKind) -> Option<ConsumerState> {
    let consumer = report(kubectl, pod)?.consumers.into_iter().find(|consumer| consumer.kind == kind)?;
    Some(consumer.state)
}

fn volume(root: &Path, uid: &str) -> PathBuf {
    root.join("pods").join(uid).join("volumes/kubernetes.io~secret/v")
}

const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: n1
  automountServiceAccountToken: false
  containers:
  - name: c
    image: none
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
    volumeMounts: [{name: v, mountPath: /v}]
  volumes:
  - {name: v, secret: {secretName: db, defaultMode: 0400}}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n1_a_rotation_reaches_the_file_by_its_event_and_stale_environments_are_named() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let etcd = Etcd::start();
    let server = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    let kubectl = server.kubectl();
    kubectl.run(&["create", "namespace", "kube-node-lease"]);
    // A directory on a tmpfs: works with and without the right to mount.
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory on a tmpfs");
    let root = memory.path().join("node");
    let node = start_node(&server, &root).await;

    // The pod comes before its Secret: the report says what is missing, then the watch fills it.
    kubectl.apply(POD);
    let uid = kubectl.ok(&["get", "pod", "web", "-o", "jsonpath={.metadata.uid}"]);
    eventually("the missing Secret is reported", || {
        let condition = format!("jsonpath={{.status.conditions[?(@.type==\"{CONDITION}\")].message}}");
        let message = kubectl.ok(&["get", "pod", "web", "-o", &condition]);
        message.contains("secret \"db\" not found").then_some(())
    })
    .await;
    kubectl.ok(&["create", "secret", "generic", "db", "--from-literal=password=first"]);
    let file = volume(&root, &uid).join("password");
    eventually("the file", || (std::fs::read_to_string(&file).ok()? == "first").then_some(())).await;
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o400);
    eventually("a current report", || {
        (state(&kubectl, "web", ConsumerKind::Volume)? == ConsumerState::Current
            && state(&kubectl, "web", ConsumerKind::Environment)? == ConsumerState::Current)
            .then_some(())
    })
    .await;

    // Only metadata changes: nothing is stale.
    kubectl.ok(&["label", "secret", "db", "a=b"]);
    let version = kubectl.ok(&["get", "secret", "db", "-o", "jsonpath={.metadata.resourceVersion}"]);
    eventually("the report follows the label", || {
        let report = report(&kubectl, "web")?;
        report
            .consumers
            .iter()
            .all(|consumer| consumer.resource_version == version && consumer.state == ConsumerState::Current)
            .then_some(())
    })
    .await;

    // A rotation: the file flips, the environment is stale, and nothing of the value is reported.
    kubectl.ok(&["patch", "secret", "db", "-p", r#"{"stringData":{"password":"second"}}"#]);
    eventually("the new file", || (std::fs::read_to_string(&file).ok()? == "second").then_some(())).await;
    eventually("the stale environment", || {
        (state(&kubectl, "web", ConsumerKind::Environment)? == ConsumerState::Stale
            && state(&kubectl, "web", ConsumerKind::Volume)? == ConsumerState::Current)
            .then_some(())
    })
    .await;
    let pod = kubectl.ok(&["get", "pod", "web", "-o", "json"]);
    assert!(!pod.contains("second") && !pod.contains("c2Vjb25k"), "a value is in the pod");

    // The node is restarted: files stay, the environment is still known to be stale.
    node.end().await;
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "second");
    let node = start_node(&server, &root).await;
    eventually("the report after the restart", || {
        (state(&kubectl, "web", ConsumerKind::Environment)? == ConsumerState::Stale).then_some(())
    })
    .await;

    // Field case N13: the Secret is gone, and the pod can still end; its files go.
    kubectl.ok(&["delete", "secret", "db"]);
    kubectl.ok(&["delete", "pod", "web", "--wait=true", "--timeout=30s"]);
    eventually("the volume is removed", || (!volume(&root, &uid).exists()).then_some(())).await;
    node.end().await;
}
