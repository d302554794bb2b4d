//! The built binary as a process, and where its files are.

use std::path::{Path, PathBuf};
use std::process::Command;

use coffer_sim::peers::{Kubectl, Process};
use tempfile::TempDir;

/// The binary under test, for tests of its command line.
pub(crate) fn coffer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
    command.env_remove("KUBECONFIG");
    command
}

/// A running `coffer up` on a directory of its own. Dropping it ends the process, by its id.
pub(crate) struct Coffer {
    process: Process,
    directory: TempDir,
}

impl Coffer {
    /// Starts it on an empty directory, with the embedded store, and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more arguments for `coffer up`.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = launch(directory.path(), arguments);
        let data = directory.path().join("data");
        wait(&mut process, &data);
        Self { process, directory }
    }

    /// Kills it at once, as a crash would, and starts it again on the same directory.
    #[allow(dead_code, reason = "for the modules of this target that need a restart")]
    pub(crate) fn crash_and_restart(&mut self, arguments: &[&str]) {
        self.process.kill();
        // Readiness is asked of the address in the new file.
        std::fs::remove_file(self.kubeconfig()).expect("the old kubeconfig");
        self.process = launch(self.directory.path(), arguments);
        wait(&mut self.process, &self.directory.path().join("data"));
    }

    /// Its data directory.
    #[allow(dead_code, reason = "for the modules of this target that look at files")]
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("data/kubeconfig")
    }

    /// kubectl for it.
    #[allow(dead_code, reason = "for the modules of this target that type commands")]
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig())
    }

    /// Everything that it printed.
    #[allow(dead_code, reason = "for the modules of this target that read logs")]
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// The process id.
    #[allow(dead_code, reason = "for the modules of this target that measure the process")]
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Coffer {
    fn drop(&mut self) {
        self.process.terminate();
        // A node that may mount leaves its tmpfs mounted, as kubelet does; the directory goes now.
        let node = self.directory.path().join("data/node");
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        if mounts.lines().any(|line| line.split(' ').nth(1) == node.to_str()) {
            let _ = Command::new("umount").arg(&node).status();
        }
    }
}

fn launch(directory: &Path, arguments: &[&str]) -> Process {
    let mut command = coffer();
    command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.join("data")).args(arguments);
    Process::start("coffer", &mut command, directory)
}

fn wait(process: &mut Process, data: &Path) {
    let kubeconfig = data.join("kubeconfig");
    process.wait_until(|| {
        kubeconfig.exists() && Kubectl::new(&kubeconfig).run(&["get", "--raw", "/readyz"]).code == 0
    });
}
