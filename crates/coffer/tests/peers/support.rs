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

/// A running `coffer up` on a directory of its own. Dropping it ends the process, by its id, and then
/// the directory goes.
pub(crate) struct Coffer {
    _process: Process,
    directory: TempDir,
}

impl Coffer {
    /// Starts it on an empty directory, with the embedded store, and waits until it is ready.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = launch(directory.path());
        wait(&mut process, &directory.path().join("data"));
        Self { _process: process, directory }
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("data/kubeconfig")
    }

    /// kubectl for it.
    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig())
    }
}

fn launch(directory: &Path) -> Process {
    let mut command = coffer();
    command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.join("data"));
    Process::start("coffer", &mut command, directory)
}

fn wait(process: &mut Process, data: &Path) {
    let kubeconfig = data.join("kubeconfig");
    process.wait_until(|| {
        kubeconfig.exists() && Kubectl::new(&kubeconfig).run(&["get", "--raw", "/readyz"]).code == 0
    });
}
