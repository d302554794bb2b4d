//! A real etcd of one member, on free ports and in a directory of its own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_runtime::clock::SystemClock;
use coffer_store::etcd::{EtcdConfig, EtcdKv};
use tempfile::TempDir;

use crate::kv::helpers::Fixture;

/// How long a server may take to answer for the first time.
const START: Duration = Duration::from_secs(60);

/// A running server. It is killed when this is dropped.
pub(crate) struct Etcd {
    process: Child,
    pub(crate) port: u16,
    scheme: &'static str,
    arguments: Vec<String>,
    directory: TempDir,
}

fn binary() -> PathBuf {
    let peers = std::env::var_os("COFFER_PEERS")
        .expect("COFFER_PEERS must name the directory of the peers; `cargo xtask test` installs them");
    // Another version; `cargo xtask conformance etcd` names each in turn.
    let name = std::env::var("COFFER_ETCD").unwrap_or_else(|_| "etcd".to_owned());
    let binary = PathBuf::from(peers).join("bin").join(&name);
    assert!(binary.is_file(), "{} is missing; `cargo xtask peers {name}` installs it", binary.display());
    binary
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound").port()
}

impl Etcd {
    pub(crate) async fn start() -> Self {
        Self::start_with("http", &[]).await
    }

    pub(crate) async fn start_with(scheme: &'static str, arguments: &[String]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = free_port();
        let process = Self::spawn(&directory, port, scheme, arguments);
        let server = Self { process, port, scheme, arguments: arguments.to_vec(), directory };
        server.wait().await;
        server
    }

    fn spawn(directory: &TempDir, port: u16, scheme: &str, arguments: &[String]) -> Child {
        let client = format!("{scheme}://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{}", free_port());
        let log = std::fs::File::create(directory.path().join("log")).expect("a log");
        Command::new(binary())
            .args(["--name", "one", "--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}"), "--unsafe-no-fsync"])
            .arg("--data-dir")
            .arg(directory.path().join("data"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("etcd starts")
    }

    async fn wait(&self) {
        let begin = Instant::now();
        let log = || std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        while !log().contains("ready to serve client requests") {
            assert!(begin.elapsed() < START, "etcd is not ready; its log:\n{}", log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    pub(crate) fn stop(&mut self) {
        self.process.kill().expect("it was running");
        self.process.wait().expect("it ended");
    }

    /// Starts it again on the same port and data.
    pub(crate) async fn restart(&mut self) {
        self.process = Self::spawn(&self.directory, self.port, self.scheme, &self.arguments);
        self.wait().await;
    }

    pub(crate) fn config(&self) -> EtcdConfig {
        config(vec![self.url()])
    }

    pub(crate) async fn client(&self) -> EtcdKv {
        EtcdKv::connect(self.config()).await.expect("it answers")
    }
}

pub(crate) fn config(endpoints: Vec<String>) -> EtcdConfig {
    EtcdConfig::new(endpoints, Arc::new(SystemClock::new()))
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

pub(crate) async fn fixture() -> Fixture {
    let server = Etcd::start().await;
    Fixture { kv: Box::new(server.client().await), clock: None, _server: Box::new(server) }
}
