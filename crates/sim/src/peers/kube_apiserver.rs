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
    /// `--feature-gates`.
    pub feature_gates: Option<&'a str>,
    /// `--encryption-provider-config-automatic-reload`.
    pub reload: bool,
    /// `--etcd-prefix`; `/registry` unless given.
    pub prefix: Option<&'a str>,
}

impl ApiserverOptions<'_> {
    /// The flags that coffer's server has too.
    pub(super) fn flags(&self, etcd: &Etcd, pki: &Pki, port: u16) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers={}", etcd.url()),
            format!("--etcd-prefix={}", self.prefix.unwrap_or("/registry")),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
        ];
        flags.extend(pki.server_flags());
        flags.extend(self.feature_gates.map(|gates| format!("--feature-gates={gates}")));
        flags.extend(self.encryption.map(|path| format!("--encryption-provider-config={}", path.display())));
        if self.reload {
            flags.push("--encryption-provider-config-automatic-reload=true".to_owned());
        }
        flags
    }
}

/// A running kube-apiserver with certificates of its own.
pub struct KubeApiserver {
    process: Process,
    command: Command,
    pki: Pki,
    directory: TempDir,
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
        let mut command = Command::new(program("kube-apiserver"));
        command.args(options.flags(etcd, &pki, port)).args([
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/16",
            // No controller-manager runs: pods would wait for their service account for ever.
            "--disable-admission-plugins=ServiceAccount",
        ]);
        // A copy of its own: whoever uses the same certificates for another server writes over the file.
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::copy(pki.kubeconfig("admin", &url), &kubeconfig).expect("copied");
        let process = launch(&mut command, directory.path(), &kubeconfig);
        Self { process, command, pki, directory, url, kubeconfig }
    }

    /// Ends it and keeps its files.
    pub fn end(&mut self) {
        self.process.terminate();
    }

    /// Starts it again as before, after [`KubeApiserver::end`], and waits until it is ready.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.process.terminate();
        self.process = launch(&mut self.command, self.directory.path(), &self.kubeconfig);
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

fn launch(command: &mut Command, directory: &Path, kubeconfig: &Path) -> Process {
    let mut process = Process::start("kube-apiserver", command, directory);
    let kubectl = Kubectl::new(kubeconfig);
    process.wait_until(|| kubectl.run(&["get", "--raw", "/readyz"]).code == 0);
    process
}
