//! etcd, one member.

use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Process, free_port, program, request};

/// A running etcd with a directory of its own.
pub struct Etcd {
    process: Process,
    directory: TempDir,
    client: String,
    peer: String,
}

impl Etcd {
    /// Starts one and waits until it is healthy.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let client = format!("http://127.0.0.1:{}", free_port());
        let peer = format!("http://127.0.0.1:{}", free_port());
        let process = launch(&directory, &client, &peer);
        let mut etcd = Self { process, directory, client, peer };
        etcd.wait();
        etcd
    }

    /// The address for clients.
    pub fn url(&self) -> &str {
        &self.client
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The directory that holds its data.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Kills it at once, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again on the same data and address.
    pub fn restart(&mut self) {
        self.process.terminate();
        self.process = launch(&self.directory, &self.client, &self.peer);
        self.wait();
    }

    /// Runs etcdctl against it and gives what it printed.
    ///
    /// # Panics
    /// When etcdctl is missing or fails.
    pub fn ctl(&self, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(program("etcdctl"))
            .arg(format!("--endpoints={}", self.client))
            .args(arguments)
            .output()
            .expect("etcdctl runs");
        assert!(
            output.status.success(),
            "etcdctl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// The raw value of one key, as it is stored.
    pub fn value(&self, key: &str) -> Vec<u8> {
        let mut value = self.ctl(&["get", "--print-value-only", key]);
        // etcdctl ends each value with a line feed of its own.
        value.pop();
        value
    }

    /// Writes any bytes to one key, behind every API server's back.
    ///
    /// # Panics
    /// When etcdctl is missing or fails.
    pub fn put(&self, key: &str, value: &[u8]) {
        let mut child = Command::new(program("etcdctl"))
            .arg(format!("--endpoints={}", self.client))
            .args(["put", key])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("etcdctl runs");
        child.stdin.take().expect("a pipe").write_all(value).expect("etcdctl reads the value");
        assert!(child.wait().expect("etcdctl ends").success(), "etcdctl put {key} failed");
    }

    fn wait(&mut self) {
        let client = self.client.clone();
        self.process.wait_until(|| {
            request(&client, "GET", "/health", &[], "").is_some_and(|answer| answer.status == 200)
        });
    }
}

fn launch(directory: &TempDir, client: &str, peer: &str) -> Process {
    let mut command = Command::new(program("etcd"));
    command
        .args(["--name", "e", "--log-level", "warn", "--quota-backend-bytes", "8589934592"])
        .arg("--data-dir")
        .arg(directory.path().join("data"))
        .args(["--listen-client-urls", client, "--advertise-client-urls", client])
        .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
        .arg("--initial-cluster")
        .arg(format!("e={peer}"));
    Process::start("etcd", &mut command, directory.path())
}
