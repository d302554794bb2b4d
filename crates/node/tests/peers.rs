//! The node beside a stock kube-apiserver.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_node::files::RealFiles;
use coffer_node::report::{ANNOTATION, CONDITION, ConsumerKind, ConsumerState, Report};
use coffer_node::volume::mounter::{Mounter, RealMounter};
use coffer_node::volume::tmpfs;
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
        metrics: Arc::default(),
        started: None,
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

/// A mount of the kernel, held by another process: nothing is left in it, it is out of sight, and the holder
/// is told.
#[tokio::test]
async fn n15_a_mount_that_a_process_holds_is_wiped_and_detached_and_the_process_told() {
    let base = tempfile::tempdir().expect("a directory");
    let root = base.path().canonicalize().expect("a path").join("node");
    let volume = root.join("pods/u/volumes/kubernetes.io~secret/v");
    std::fs::create_dir(&root).expect("made");
    let mount = || RealMounter.mount_tmpfs(&root, 1 << 20).expect("this test needs the right to mount");
    let fill = || {
        std::fs::create_dir_all(&volume).expect("made");
        std::fs::write(volume.join("password"), "hunter2").expect("written");
        std::fs::write(root.join("late"), "hunter2").expect("written");
    };
    let mounted = || RealMounter.is_mount_point(&root).expect("there");
    let clock = SystemClock::new();
    mount();
    fill();
    assert!(mounted() && RealMounter.in_memory(&root).expect("there"));

    let open = |path: PathBuf| std::fs::File::open(path).expect("a file");
    let mut holder = std::process::Command::new("sleep")
        .arg("600")
        .stdin(open(volume.join("password")))
        .stderr(std::fs::File::options().append(true).open(root.join("late")).expect("a file"))
        .spawn()
        .expect("sleep");
    let held = |descriptor: u8| {
        std::fs::read_to_string(format!("/proc/{}/fd/{descriptor}", holder.id())).expect("still held")
    };
    assert_eq!((held(0), held(2)), ("hunter2".to_owned(), "hunter2".to_owned()));
    let detached = tmpfs::clear(&RealMounter, &clock, &root, &[], NODE).await;
    let found = (held(0), held(2), mounted(), std::fs::read_dir(&root).expect("there").count());
    let pid = holder.id();
    holder.kill().expect("ended");
    holder.wait().expect("ended");
    assert_eq!(found, (String::new(), String::new(), false, 0));
    let detached = detached.expect("cleared").expect("it was busy");
    let text = detached.to_string();
    assert!(detached.holders.iter().any(|found| found.pid == pid && found.name == "sleep"), "{text}");
    assert!(text.contains(&format!("process {pid} (sleep)")), "{text}");

    // Nobody holds the next one.
    mount();
    fill();
    let cleared = tmpfs::clear(&RealMounter, &clock, &root, &[], NODE).await.expect("cleared");
    assert_eq!((cleared, mounted()), (None, false));
}

/// What a container would be given, without a runtime: the volume bound to a place of its own in a mount
/// namespace of its own, and a process of another user. `None` when it may not read `token` there.
fn read_as(volume: &Path, user: u32, groups: &str) -> Option<String> {
    let script = "mount --bind \"$1\" /mnt && exec setpriv --reuid \"$2\" --regid \"$2\" $3 --no-new-privs \
        --bounding-set=-all sh -c 'cat /mnt/token; echo $? >&2'";
    let groups = if groups.is_empty() { "--clear-groups".to_owned() } else { format!("--groups={groups}") };
    let ran = std::process::Command::new("unshare")
        .args(["--mount", "--propagation=private", "sh", "-c", script, "sh"])
        .args([volume.as_os_str(), user.to_string().as_ref(), groups.as_ref()])
        .output()
        .expect("util-linux");
    let errors = String::from_utf8_lossy(&ran.stderr);
    match errors.lines().last() {
        Some("0") => Some(String::from_utf8(ran.stdout).expect("text")),
        _ if errors.contains("Permission denied") && errors.contains("/mnt/token") => None,
        _ => panic!("this test needs the right to mount: {errors}"),
    }
}

/// A token of the API server in the files of the kubelet's four rows, read by processes as user 1000: whoever the
/// pod runs as may read it, and nobody else where the pod says who that is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n19_a_process_as_uid_1000_reads_the_token_through_a_bind_mount() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let etcd = Etcd::start();
    let server = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    let kubectl = server.kubectl();
    kubectl.run(&["create", "namespace", "kube-node-lease"]);
    kubectl.run(&["create", "serviceaccount", "default"]);
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory on a tmpfs");
    let root = memory.path().join("node");
    let node = start_node(&server, &root).await;
    // The pod's security context; then user, groups, and whether they may read.
    type Row = (&'static str, &'static str, &'static [(u32, &'static str, bool)]);
    let rows: [Row; 4] = [
        ("nothing", "{}", &[(1000, "", true)]),
        ("user", "{runAsUser: 1000}", &[(1000, "", true), (1001, "", false), (1001, "2000", false)]),
        ("group", "{fsGroup: 2000}", &[(1000, "2000", true), (1000, "", false), (1000, "2001", false)]),
        (
            "both",
            "{runAsUser: 1000, fsGroup: 2000}",
            &[(1000, "", true), (1000, "2000", true), (1001, "2000", true), (1001, "", false)],
        ),
    ];
    for (name, context, readers) in rows {
        kubectl.apply(&format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: n1
  serviceAccountName: default
  automountServiceAccountToken: false
  securityContext: {context}
  containers:
  - {{name: c, image: none, volumeMounts: [{{name: v, mountPath: /v}}]}}
  volumes:
  - {{name: v, projected: {{sources: [{{serviceAccountToken: {{path: token}}}}]}}}}
"
        ));
        let uid = kubectl.ok(&["get", "pod", name, "-o", "jsonpath={.metadata.uid}"]);
        let volume = root.join("pods").join(&uid).join("volumes/kubernetes.io~projected/v");
        let token = eventually("the token", || std::fs::read_to_string(volume.join("token")).ok()).await;
        assert_eq!(token.split('.').count(), 3, "{name}: a token of the server");
        for (user, groups, may) in readers {
            let read = read_as(&volume, *user, groups);
            assert_eq!(read.as_deref() == Some(&token), *may, "{name}: user {user}, groups {groups:?}");
            assert_eq!(read.is_none(), !may, "{name}: user {user}, groups {groups:?}");
        }
    }
    node.end().await;
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
