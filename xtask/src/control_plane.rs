//! A control plane for conformance runs: coffer's API server, and kube-controller-manager for the controllers that
//! coffer does not have. Processes end, by their ids, with the value.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::peers::{cache, cargo};
use crate::pki::Pki;

/// How long a server may take until it is there, on a busy machine.
const START: Duration = Duration::from_secs(120);
/// Name of the node.
pub(crate) const NODE: &str = "n1";
/// Address of the node, in a network namespace of its own.
pub(crate) const NODE_ADDRESS: &str = "10.88.0.1";
/// Address of the Service `kubernetes`.
pub(crate) const SERVICE: &str = "10.96.0.1";
/// Addresses of Services.
const SERVICES: &str = "10.96.0.0/16";
/// The controllers that are coffer's own.
const OURS: [&str; 7] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "node-lifecycle-controller",
    "clusterrole-aggregation-controller",
];

/// What is to run.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// Whether kube-controller-manager runs, too.
    pub(crate) controllers: bool,
    /// The network namespace that everything runs in, by the process that holds it.
    pub(crate) namespace: Option<u32>,
    /// Addresses and names of the server besides loopback.
    pub(crate) names: &'a [&'a str],
    /// Issuer of tokens; that of every cluster when empty.
    pub(crate) issuer: &'a str,
}

/// A running control plane.
pub(crate) struct ControlPlane {
    /// The administrator's.
    pub(crate) kubeconfig: PathBuf,
    /// Its certificates.
    pub(crate) pki: Pki,
    /// Port of the API server, on loopback.
    pub(crate) port: u16,
    directory: PathBuf,
    // In the order in which they end.
    processes: Vec<Process>,
}

impl ControlPlane {
    /// Starts one below `directory` and waits until it is ready.
    pub(crate) fn start(directory: &Path, options: &Options<'_>) -> anyhow::Result<Self> {
        let pki = Pki::create(&directory.join("pki"))?;
        let mut names =
            vec!["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        names.extend(options.names);
        pki.certificate("apiserver", "kube-apiserver", "", &names)?;
        pki.certificate("admin", "admin", "system:masters", &[])?;
        pki.certificate("controllers", "system:kube-controller-manager", "", &[])?;
        if options.namespace.is_some() {
            pki.certificate("scheduler", "system:kube-scheduler", "", &[])?;
            pki.certificate("node", &format!("system:node:{NODE}"), "system:nodes", &[NODE, NODE_ADDRESS])?;
            pki.certificate("kubelets", "kubelet-client", "system:masters", &[])?;
        }
        let port = free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = pki.kubeconfig("admin", &url)?;
        if options.namespace.is_some() {
            pki.kubeconfig("scheduler", &url)?;
            pki.kubeconfig("node", &url)?;
        }
        let mut plane =
            Self { kubeconfig, pki, port, directory: directory.to_owned(), processes: Vec::new() };
        let issuer = match options.issuer {
            "" => "https://kubernetes.default.svc.cluster.local",
            issuer => issuer,
        };
        let pki = &plane.pki;
        let mut command = inside(options.namespace, &target_directory()?.join("debug/coffer"));
        command
            .arg("apiserver")
            .arg(format!("--data-dir={}", directory.join("data").display()))
            .arg(format!("--secure-port={port}"))
            .arg(format!(
                "--bind-address={}",
                if options.namespace.is_some() { "0.0.0.0" } else { "127.0.0.1" }
            ))
            .arg(format!("--service-cluster-ip-range={SERVICES}"))
            .arg(format!("--service-account-issuer={issuer}"))
            .arg("--authorization-mode=Node,RBAC")
            .args([
                pki.flag("tls-cert-file", "apiserver.crt"),
                pki.flag("tls-private-key-file", "apiserver.key"),
            ])
            .args([pki.flag("client-ca-file", "ca.crt"), pki.flag("service-account-key-file", "sa.pub")])
            .arg(pki.flag("service-account-signing-key-file", "sa.key"));
        if options.namespace.is_some() {
            command
                .args([
                    pki.flag("kubelet-client-certificate", "kubelets.crt"),
                    pki.flag("kubelet-client-key", "kubelets.key"),
                ])
                .arg(pki.flag("kubelet-certificate-authority", "ca.crt"))
                .arg(format!("--advertise-address={NODE_ADDRESS}"))
                .arg("--kubelet-preferred-address-types=InternalIP");
        }
        plane.run("coffer", command)?;
        plane.until("coffer", |plane| plane.kubectl(options, &["get", "--raw", "/readyz"]))?;
        if options.controllers {
            plane.start_controllers(options, &url)?;
        }
        Ok(plane)
    }

    fn start_controllers(&mut self, options: &Options<'_>, url: &str) -> anyhow::Result<()> {
        let pki = &self.pki;
        let kubeconfig = pki.kubeconfig("controllers", url)?;
        let ours: String = OURS.iter().map(|name| format!(",-{name}")).collect();
        let mut command = inside(options.namespace, &program("kube-controller-manager")?);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args([
                "--bind-address=127.0.0.1",
                "--leader-elect=false",
                "--use-service-account-credentials=true",
            ])
            .arg(format!("--secure-port={}", free_port()?))
            .arg(format!("--controllers=*{ours}"))
            // Else one spec takes minutes.
            .arg("--resource-quota-sync-period=20s")
            .args([
                pki.flag("root-ca-file", "ca.crt"),
                pki.flag("service-account-private-key-file", "sa.key"),
            ])
            .args([
                pki.flag("cluster-signing-cert-file", "ca.crt"),
                pki.flag("cluster-signing-key-file", "ca.key"),
            ]);
        self.run("kube-controller-manager", command)?;
        // Its quota controller makes no sense of the world before it has seen it.
        let account = ["get", "serviceaccount", "resourcequota-controller", "--namespace=kube-system"];
        self.until("kube-controller-manager", |plane| plane.kubectl(options, &account))
    }

    /// Starts a process that ends with this.
    pub(crate) fn run(&mut self, name: &str, mut command: Command) -> anyhow::Result<()> {
        let log = std::fs::File::create(self.directory.join(format!("{name}.log")))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        self.processes.insert(0, Process { name: name.to_owned(), child });
        Ok(())
    }

    /// Waits until something holds, and fails with the log's end when the process has ended or time is up.
    pub(crate) fn until(&mut self, name: &str, holds: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let started = Instant::now();
        while !holds(self) {
            let process = self.processes.iter_mut().find(|process| process.name == name);
            let ended = process.map(|process| process.child.try_wait()).transpose()?.flatten();
            if ended.is_some() || START < started.elapsed() {
                let log = std::fs::read(self.directory.join(format!("{name}.log"))).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                let lines: Vec<&str> = log.lines().collect();
                let end = lines[lines.len().saturating_sub(15)..].join("\n");
                anyhow::bail!("{name} is not ready ({ended:?}):\n{end}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// Whether kubectl says yes.
    pub(crate) fn kubectl(&self, options: &Options<'_>, arguments: &[&str]) -> bool {
        let Ok(kubectl) = program("kubectl") else { return false };
        inside(options.namespace, &kubectl)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for process in &mut self.processes {
            drop(process.child.kill());
            drop(process.child.wait());
        }
    }
}

struct Process {
    name: String,
    child: Child,
}

/// An installed peer.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    Ok(cache()?.join("bin").join(name))
}

/// A command, in the network namespace of a process if one is named.
pub(crate) fn inside(namespace: Option<u32>, program: &Path) -> Command {
    match namespace {
        None => Command::new(program),
        Some(holder) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{holder}/ns/net")).arg(program);
            command
        }
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Where cargo builds.
fn target_directory() -> anyhow::Result<PathBuf> {
    let output = cargo().args(["metadata", "--no-deps", "--format-version=1"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(PathBuf::from(metadata["target_directory"].as_str().context("cargo names no target directory")?))
}
