//! Coffer itself: the built binary as a process.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{ApiserverOptions, Etcd, Kubectl, Output, Pki, Process, free_port, run};

/// A running `coffer up` or `coffer apiserver` with a directory of its own. Dropping it ends the process, by
/// its id, and then the directory goes.
pub struct Coffer {
    process: Process,
    directory: TempDir,
    kubeconfig: PathBuf,
    program: fn() -> Command,
    arguments: Vec<String>,
}

impl Coffer {
    /// `coffer up` on a fresh data directory, with more arguments, ready. `program` is the binary, with the
    /// environment that it is to have.
    ///
    /// # Panics
    /// When it does not start.
    pub fn up(program: fn() -> Command, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().join("data");
        let mut all: Vec<String> =
            ["up", "--listen", "127.0.0.1:0", "--data-dir"].map(str::to_owned).to_vec();
        all.push(data.display().to_string());
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Self::start(program, all, directory, data.join("kubeconfig"))
    }

    /// `coffer apiserver` on an etcd, with the certificates of `pki`, ready.
    ///
    /// # Panics
    /// When it does not start.
    pub fn apiserver(
        program: fn() -> Command,
        etcd: &Etcd,
        pki: &Pki,
        options: &ApiserverOptions<'_>,
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let mut arguments = vec!["apiserver".to_owned()];
        arguments.extend(options.flags(etcd, pki, port));
        let kubeconfig = pki.kubeconfig("admin", &format!("https://127.0.0.1:{port}"));
        let own = directory.path().join("kubeconfig");
        std::fs::copy(kubeconfig, &own).expect("copied");
        Self::start(program, arguments, directory, own)
    }

    fn start(
        program: fn() -> Command,
        arguments: Vec<String>,
        directory: TempDir,
        kubeconfig: PathBuf,
    ) -> Self {
        let process = launch(program, &arguments, directory.path());
        Self { process, directory, kubeconfig, program, arguments }
    }

    /// Starts it again on the same directory, after [`Coffer::end`] or [`Coffer::kill`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.process.terminate();
        self.process = launch(self.program, &self.arguments, self.directory.path());
    }

    /// Tries to start it again; it must refuse.
    pub fn refuses_to_start(&mut self) -> Output {
        self.process.terminate();
        run((self.program)().args(&self.arguments))
    }

    /// Its directory; that of the data is below it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// kubectl for it.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(&self.kubeconfig)
    }

    /// Everything that it printed.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Ends it and keeps its files.
    pub fn end(&mut self) {
        self.process.terminate();
    }

    /// Kills it and keeps its files.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// `coffer ARGUMENTS` against it.
    pub fn ask(&self, arguments: &[&str]) -> Output {
        run((self.program)().arg("--kubeconfig").arg(&self.kubeconfig).args(arguments))
    }

    /// `coffer trace secret/NAME -o json`, parsed.
    ///
    /// # Panics
    /// When that is no JSON.
    pub fn trace(&self, name: &str) -> Value {
        let output = self.ask(&["trace", &format!("secret/{name}"), "-o", "json"]);
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr))
    }
}

/// How the line ends that says that it serves.
const READY: [&str; 2] = [" is up. ", " is ready\n"];

fn launch(program: fn() -> Command, arguments: &[String], directory: &Path) -> Process {
    let log = directory.join("coffer.log");
    let told = || {
        let log = std::fs::read(&log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        READY.iter().map(|text| log.matches(text).count()).sum::<usize>()
    };
    // What an earlier start told is still there.
    let before = told();
    let mut process = Process::start("coffer", program().args(arguments), directory);
    process.wait_until(|| told() > before);
    process
}
