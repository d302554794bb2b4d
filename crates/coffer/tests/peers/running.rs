//! Coffer with logs at the finest level, and what is read from it while it runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use coffer_sim::peers::{Kubectl, Output, Process};
use serde_json::Value;
use tempfile::TempDir;

use super::support::coffer;

/// How long anything may take on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A running `coffer up` or `coffer apiserver` whose log is part of what is looked at.
pub(crate) struct Running {
    process: Process,
    directory: TempDir,
}

impl Running {
    /// `coffer up` with more arguments, ready.
    pub(crate) fn up(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = loud();
        command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
        let mut process = Process::start("coffer", command.args(arguments), directory.path());
        process.wait_until(|| log(directory.path()).contains(" is up. "));
        Self { process, directory }
    }

    /// `coffer apiserver` with these arguments, ready.
    pub(crate) fn apiserver(arguments: &[String]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = loud();
        let mut process =
            Process::start("coffer", command.arg("apiserver").args(arguments), directory.path());
        process.wait_until(|| log(directory.path()).contains(" is ready"));
        Self { process, directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("data/kubeconfig")
    }

    pub(crate) fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig())
    }

    /// Everything that it printed.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    /// Ends it and keeps its files.
    pub(crate) fn end(&mut self) {
        self.process.terminate();
    }

    /// `coffer ARGUMENTS` against it.
    pub(crate) fn coffer(&self, arguments: &[&str]) -> Output {
        run(loud().arg("--kubeconfig").arg(self.kubeconfig()).args(arguments))
    }

    /// `coffer trace secret/NAME -o json`, parsed.
    pub(crate) fn trace(&self, name: &str) -> Value {
        let output = self.coffer(&["trace", &format!("secret/{name}"), "-o", "json"]);
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr))
    }
}

/// The program with logs at the finest level, its libraries' too.
pub(crate) fn loud() -> Command {
    let mut command = coffer();
    command.env("COFFER_LOG", "trace").env("RUST_BACKTRACE", "1").env("NO_COLOR", "1");
    command
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Asks again until there is an answer.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < LIMIT, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log(directory: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(directory.join("coffer.log")).unwrap_or_default()).into_owned()
}
