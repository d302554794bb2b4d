//! kubectl, as a user runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Output, program};

/// kubectl with one kubeconfig and a home of its own.
pub struct Kubectl {
    kubeconfig: PathBuf,
    home: TempDir,
}

impl Kubectl {
    /// For the server that `kubeconfig` names.
    ///
    /// # Panics
    /// When there is no temporary directory.
    pub fn new(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned(), home: tempfile::tempdir().expect("a directory") }
    }

    /// Runs it.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with_input(arguments, "")
    }

    /// Runs it with `input` on standard input.
    ///
    /// # Panics
    /// When it is not installed.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("kubectl starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("kubectl reads");
        child.wait_with_output().expect("kubectl ends").into()
    }

    /// Runs it and gives what it printed.
    ///
    /// # Panics
    /// When it fails.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.code, 0, "kubectl {arguments:?}: {}{}", output.stdout, output.stderr);
        output.stdout
    }

    /// Applies a manifest and gives what was printed.
    ///
    /// # Panics
    /// When it fails.
    pub fn apply(&self, manifest: &str) -> String {
        let output = self.run_with_input(&["apply", "-f", "-"], manifest);
        assert_eq!(output.code, 0, "kubectl apply: {}{}", output.stdout, output.stderr);
        output.stdout
    }

    /// The command, for callers that want to watch its output.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("kubectl"));
        command
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}
