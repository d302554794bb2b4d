//! A stock kube-apiserver on an etcd.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{Etcd, Kubectl, Pki, Process, free_port, program};

/// How it is started.
#[derive(Default)]
pub struct ApiserverOptions<'a> {
    /// `--encryption-provider-config`.
    pub encryption: Option<&'a Path>,
    /// `--etcd-prefix`; `/registry` unless given.
    pub prefix: Option<&'a str>,
}

/// A running kube-apiserver with certificates of its own.
pub struct KubeApiserver {
    process: Process,
    pki: Pki,
    _directory: TempDir,
    url: String,
    kubeconfig: PathBuf,
}

impl KubeApiserver {
    /// Starts one and waits until it is ready.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    pub fn start(etcd: &Etcd, options: &ApiserverOptions<'_>) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let pki = Pki::create(&directory.path().join("pki"));
        let port = free_port();
        let url = format!("https://127.0.0.1:{port}");
        let file = |flag: &str, name: &str| format!("--{flag}={}", pki.path(name).display());
        let mut command = Command::new(program("kube-apiserver"));
        command.args([
            format!("--etcd-servers={}", etcd.url()),
            format!("--etcd-prefix={}", options.prefix.unwrap_or("/registry")),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            file("tls-cert-file", "apiserver.crt"),
            file("tls-private-key-file", "apiserver.key"),
            file("client-ca-file", "ca.crt"),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            file("service-account-key-file", "sa.pub"),
            file("service-account-signing-key-file", "sa.key"),
            "--authorization-mode=Node,RBAC".to_owned(),
            // No controller-manager runs: pods would wait for their service account for ever.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ]);
        if let Some(path) = options.encryption {
            command.arg(format!("--encryption-provider-config={}", path.display()));
        }
        let mut process = Process::start("kube-apiserver", &mut command, directory.path());
        let kubeconfig = pki.kubeconfig("admin", &url);
        let kubectl = Kubectl::new(&kubeconfig);
        process.wait_until(|| kubectl.run(&["get", "--raw", "/readyz"]).code == 0);
        Self { process, pki, _directory: directory, url, kubeconfig }
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig of a member of system:masters.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// kubectl for it.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig)
    }

    /// Its certificates.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}
