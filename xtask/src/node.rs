//! `cargo xtask conformance node`: the stock kubelet and kube-scheduler against `coffer apiserver`, in a network
//! namespace of their own.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::control_plane::{ControlPlane, NODE, NODE_ADDRESS, Options, SERVICE, inside, program};
use crate::kubernetes::{PROTOBUF, expressions, judge, not_yet, specs_of};
use crate::peers::{cache, cargo, install, module, root, run};

const CONTAINERD: &str = r#"version = 2
root = "@RUN@/containers/root"
state = "@RUN@/containers/state"
oom_score = 0
[grpc]
  address = "@RUN@/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10.2"
  # A root without CAP_SYS_RESOURCE may not lower it.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "@DEBS@/usr/lib/cni"
    conf_dir = "@RUN@/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "@DEBS@/usr/sbin/runc"
        SystemdCgroup = false
"#;

const NETWORK: &str = r#"{"cniVersion": "0.4.0", "name": "conformance", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "@RUN@/ipam",
            "ranges": [[{"subnet": "10.88.0.0/16", "rangeStart": "10.88.1.1", "rangeEnd": "10.88.9.250", "gateway": "10.88.0.1"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}}]}
"#;

const KUBELET: &str = r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
oomScoreAdj: 0
readOnlyPort: 0
tlsCertFile: "@RUN@/pki/node.crt"
tlsPrivateKeyFile: "@RUN@/pki/node.key"
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: "@RUN@/pki/ca.crt"}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: "unix://@RUN@/containerd.sock"
evictionHard: {}
imageMinimumGCAge: 24h
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: false
syncFrequency: 10s
podLogsDir: "@RUN@/kubelet/logs"
"#;

/// How long the namespace may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the specs that need a node; `focus` instead of all.
pub(crate) fn conformance(focus: Option<&str>) -> anyhow::Result<()> {
    anyhow::ensure!(std::fs::metadata("/proc/self")?.uid() == 0, "a node needs root");
    install(&["e2e.test", "ginkgo", "kubectl", "containerd", "agnhost"])?;
    install(&["kube-controller-manager", "kube-scheduler", "kubelet"])?;
    run(cargo().args(["build", "--package", "coffer"]))?;
    let directory = tempfile::Builder::new().prefix("cn").tempdir()?;
    let holder = Holder::start()?;
    let options = Options {
        controllers: true,
        namespace: Some(holder.0.id()),
        issuer: "https://10.96.0.1",
        names: &[NODE_ADDRESS, SERVICE],
    };
    let mut plane = ControlPlane::start(directory.path(), &options)?;
    let outcomes = Node::start(directory.path(), &mut plane, &options).and_then(|node| {
        let focus = focus.map_or_else(|| expressions("node.focus"), |focus| Ok(focus.to_owned()))?;
        let skip = expressions("node.skip")?;
        let outcomes = specs_of(directory.path(), &plane, &options, PROTOBUF, &focus, &skip);
        node.end(&plane, &options);
        outcomes
    });
    drop(plane);
    drop(holder);
    unmount(directory.path())?;
    judge(&outcomes?, &not_yet("node-not-yet.txt")?)
}

/// The process that holds the network namespace.
struct Holder(std::process::Child);

impl Holder {
    fn start() -> anyhow::Result<Self> {
        let outside = std::fs::read_link("/proc/self/ns/net")?;
        let child = Command::new("unshare")
            .args(["--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start unshare")?;
        let holder = Self(child);
        let own = PathBuf::from(format!("/proc/{}/ns/net", holder.0.id()));
        let started = Instant::now();
        while std::fs::read_link(&own).is_ok_and(|own| own == outside) {
            anyhow::ensure!(started.elapsed() < PATIENCE, "there is no new network namespace");
            std::thread::sleep(Duration::from_millis(50));
        }
        let network = format!(
            "ip link set lo up && ip link add cni0 type bridge && ip addr add {NODE_ADDRESS}/16 dev cni0 && \
             ip link set cni0 up && ip addr add {SERVICE}/32 dev lo && echo 1 >/proc/sys/net/ipv4/ip_forward"
        );
        run(inside(Some(holder.0.id()), Path::new("sh")).args(["-c", &network]))?;
        Ok(holder)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// containerd, the kubelet, the scheduler and what stands for kube-proxy; they end with the control plane.
struct Node {
    containers: PathBuf,
    socket: PathBuf,
}

impl Node {
    fn start(directory: &Path, plane: &mut ControlPlane, options: &Options<'_>) -> anyhow::Result<Self> {
        let debs = cache()?.join("deb/containerd");
        let path = format!(
            "{debs}/usr/bin:{debs}/usr/sbin:{}",
            std::env::var("PATH").unwrap_or_default(),
            debs = debs.display()
        );
        let write = |name: &str, text: &str| {
            let text = text.replace("@RUN@", &directory.display().to_string());
            let file = directory.join(name);
            if let Some(parent) = file.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&file, text.replace("@DEBS@", &debs.display().to_string()))?;
            Ok::<_, std::io::Error>(file)
        };
        let configuration = write("containerd.toml", CONTAINERD)?;
        write("cni/10-bridge.conflist", NETWORK)?;
        let kubelet = write("kubelet/config.yaml", KUBELET)?;
        let node = Self { containers: debs.join("usr/bin/ctr"), socket: directory.join("containerd.sock") };
        let started = |program: &Path| {
            let mut command = inside(options.namespace, program);
            command.env("PATH", &path);
            command
        };
        let mut containerd = started(&debs.join("usr/bin/containerd"));
        containerd.arg("--config").arg(&configuration);
        plane.run("containerd", containerd)?;
        plane.until("containerd", |_| node.ctr(&["version"]).is_ok())?;
        node.import(&images(directory, &debs)?)?;

        let mut scheduler = started(&program("kube-scheduler")?);
        scheduler
            .arg(format!("--kubeconfig={}", plane.pki.path("scheduler.kubeconfig").display()))
            .args(["--bind-address=127.0.0.1", "--leader-elect=false"]);
        plane.run("kube-scheduler", scheduler)?;
        let mut forward = inside(options.namespace, Path::new("python3"));
        forward.arg(root().join("peers/node/forward.py")).args([
            SERVICE,
            "443",
            "127.0.0.1",
            &plane.port.to_string(),
        ]);
        plane.run("forward", forward)?;
        let mut process = started(&program("kubelet")?);
        process
            .arg(format!("--config={}", kubelet.display()))
            .arg(format!("--kubeconfig={}", plane.pki.path("node.kubeconfig").display()))
            .arg(format!("--hostname-override={NODE}"))
            .arg(format!("--node-ip={NODE_ADDRESS}"))
            .arg(format!("--root-dir={}", directory.join("kubelet/data").display()))
            .arg(format!("--cert-dir={}", directory.join("kubelet/pki").display()));
        plane.run("kubelet", process)?;
        let ready = ["wait", "--for=condition=Ready", "--timeout=1s", "node", NODE];
        plane.until("kubelet", |plane| plane.kubectl(options, &ready))?;
        Ok(node)
    }

    fn import(&self, images: &Path) -> anyhow::Result<()> {
        for name in ["pause", "busybox", "agnhost"] {
            let archive = images.join(format!("{name}.tar"));
            self.ctr(&["images", "import", &archive.display().to_string()])?;
        }
        Ok(())
    }

    fn ctr(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.containers)
            .arg("--address")
            .arg(&self.socket)
            .args(["--namespace", "k8s.io"])
            .args(arguments)
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        anyhow::ensure!(output.status.success(), "ctr {}: {error}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Takes the pods away, with their networks, and then what is left of containers.
    fn end(&self, plane: &ControlPlane, options: &Options<'_>) {
        let pods = ["delete", "pods", "--all-namespaces", "--all", "--grace-period=1", "--timeout=40s"];
        if !plane.kubectl(options, &pods) {
            eprintln!("conformance: pods were left");
        }
        for task in self.ctr(&["tasks", "ls", "--quiet"]).unwrap_or_default().split_whitespace() {
            if let Err(error) = self.ctr(&["tasks", "rm", "--force", task]) {
                eprintln!("conformance: {error}");
            }
        }
    }
}

/// The images that the tests ask for.
fn images(directory: &Path, debs: &Path) -> anyhow::Result<PathBuf> {
    let images = directory.join("images");
    std::fs::create_dir_all(&images)?;
    let module = module("go/kubernetes", "k8s.io/kubernetes")?;
    run(Command::new("python3").arg(root().join("peers/node/images.py")).args([
        &images,
        debs,
        &program("agnhost")?,
        &module.join("test/images/agnhost"),
    ]))?;
    Ok(images)
}

/// Whatever is still mounted below a directory that is to be removed.
fn unmount(directory: &Path) -> anyhow::Result<()> {
    let mounts = std::fs::read_to_string("/proc/mounts")?;
    let below = format!("{}/", directory.display());
    let mut places: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    places.retain(|place| place.starts_with(&below));
    places.sort_unstable_by(|one, other| other.cmp(one));
    for place in places {
        run(Command::new("umount").arg(place))?;
    }
    Ok(())
}
