//! A stock kube-apiserver on a stock etcd, and an OpenBao server: started for the tests, ended by their handles.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

pub(crate) const TOKEN: &str = "peer-test-admin";
pub(crate) const BAO_TOKEN: &str = "root";

/// The running peers.
pub(crate) struct Plane {
    pub(crate) server: String,
    pub(crate) authority_der: Vec<u8>,
    pub(crate) authority_pem: String,
    pub(crate) bao: String,
    processes: Mutex<Vec<Child>>,
    folder: tempfile::TempDir,
}

impl Drop for Plane {
    fn drop(&mut self) {
        for child in self.processes.lock().iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The peers that other tests still use, or new ones.
pub(crate) fn plane() -> Arc<Plane> {
    static RUNNING: Mutex<Weak<Plane>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock();
    if let Some(plane) = running.upgrade() {
        return plane;
    }
    let plane = Arc::new(start());
    *running = Arc::downgrade(&plane);
    plane
}

fn cache() -> PathBuf {
    let folder = std::env::var_os("COFFER_PEERS")
        .expect("COFFER_PEERS names the folder with the peers; `cargo xtask test` sets it");
    PathBuf::from(folder)
}

fn program(path: &str) -> PathBuf {
    let path = cache().join(path);
    assert!(path.is_file(), "{} is missing: run `cargo xtask peers`", path.display());
    path
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start() -> Plane {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (authority_pem, authority_der) = certificates(path);
    let (etcd, peer, bao) = (free_port(), free_port(), free_port());
    let (etcd_url, peer_url) = (format!("http://127.0.0.1:{etcd}"), format!("http://127.0.0.1:{peer}"));
    let mut plane = Plane {
        server: String::new(),
        authority_der,
        authority_pem,
        bao: format!("http://127.0.0.1:{bao}"),
        processes: Mutex::default(),
        folder,
    };
    plane.spawn(
        "bin/etcd",
        &[
            "--name=e",
            &format!("--data-dir={}", plane.path("etcd")),
            &format!("--listen-client-urls={etcd_url}"),
            &format!("--advertise-client-urls={etcd_url}"),
            &format!("--listen-peer-urls={peer_url}"),
            &format!("--initial-advertise-peer-urls={peer_url}"),
            &format!("--initial-cluster=e={peer_url}"),
            "--unsafe-no-fsync",
            "--log-level=error",
        ],
    );
    plane.wait(etcd, "bin/etcd");
    // OpenBao's own account of every request.
    let audit =
        format!("audit \"file\" \"count\" {{\n  options {{ file_path = {:?} }}\n}}\n", plane.path("audit"));
    std::fs::write(plane.path("bao.hcl"), audit).unwrap();
    plane.spawn(
        "venv/bin/bao",
        &[
            "server",
            "-dev",
            &format!("-config={}", plane.path("bao.hcl")),
            &format!("-dev-root-token-id={BAO_TOKEN}"),
            &format!("-dev-listen-address=127.0.0.1:{bao}"),
        ],
    );
    plane.wait(bao, "venv/bin/bao");
    // OpenBao listens on the next port too, so that the API server's is chosen after.
    let api = free_port();
    plane.server = format!("https://127.0.0.1:{api}");
    std::fs::write(plane.path("tokens.csv"), format!("{TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
    plane.spawn(
        "bin/kube-apiserver",
        &[
            &format!("--etcd-servers={etcd_url}"),
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            &format!("--secure-port={api}"),
            &format!("--tls-cert-file={}", plane.path("server.crt")),
            &format!("--tls-private-key-file={}", plane.path("server.key")),
            &format!("--token-auth-file={}", plane.path("tokens.csv")),
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            &format!("--service-account-key-file={}", plane.path("sa.pub")),
            &format!("--service-account-signing-key-file={}", plane.path("sa.key")),
        ],
    );
    plane.wait(api, "bin/kube-apiserver");
    plane
}

impl Plane {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn spawn(&mut self, name: &str, arguments: &[&str]) {
        let log = std::fs::File::create(self.path(&log_name(name))).unwrap();
        let child = Command::new(program(name))
            .args(arguments)
            // OpenBao's dev server leaves a token there.
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.processes.lock().push(child);
    }

    /// The requests that OpenBao has seen from `user`, who logs in by a password: `OPERATION PATH` of each.
    pub(crate) fn audited(&self, user: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("audit")).unwrap();
        // The last line may be unfinished.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let login = format!("auth/userpass/login/{user}");
        let display_name = format!("userpass-{user}");
        lines
            .filter(|line| line["type"] == "request")
            .filter(|line| line["auth"]["display_name"] == display_name || line["request"]["path"] == login)
            .map(|line| {
                let text = |field: &str| line["request"][field].as_str().unwrap_or_default().to_owned();
                format!("{} {}", text("operation"), text("path"))
            })
            .collect()
    }

    /// The end of a log, last line first.
    pub(crate) fn log(&self, name: &str) -> String {
        let log = std::fs::read_to_string(self.path(&log_name(name))).unwrap_or_default();
        log.lines().rev().take(8).collect::<Vec<_>>().join("\n")
    }

    /// Waits until `name` listens; fails with the end of its log.
    fn wait(&self, port: u16, name: &str) {
        let start = Instant::now();
        while !listens(port) {
            let ended =
                self.processes.lock().last_mut().and_then(|child| child.try_wait().ok().flatten()).is_some();
            if ended || Duration::from_secs(120) < start.elapsed() {
                let log = std::fs::read_to_string(self.path(&log_name(name))).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(8).collect();
                panic!(
                    "{name} does not listen on {port}; the end of its log, last line first:\n{}",
                    tail.join("\n")
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A connection to a port in the range of the clients' own may be one to itself.
fn listens(port: u16) -> bool {
    std::net::TcpStream::connect(("127.0.0.1", port))
        .is_ok_and(|stream| stream.local_addr().ok() != stream.peer_addr().ok())
}

fn log_name(name: &str) -> String {
    format!("{}.log", name.replace('/', "-"))
}

fn certificates(folder: &Path) -> (String, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = CertificateParams::new(names).unwrap().signed_by(&server_key, &issuer).unwrap();
    std::fs::write(folder.join("server.crt"), server.pem()).unwrap();
    std::fs::write(folder.join("server.key"), server_key.serialize_pem()).unwrap();
    let accounts = KeyPair::generate().unwrap();
    std::fs::write(folder.join("sa.key"), accounts.serialize_pem()).unwrap();
    std::fs::write(folder.join("sa.pub"), accounts.public_key_pem()).unwrap();
    (authority.pem(), authority.der().to_vec())
}
