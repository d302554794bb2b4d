//! Ctrl-C.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use coffer_sim::peers::Process;
use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::fixture::{Fixture, coffer};

/// A command that runs until it is asked to end, and what it says when it does.
fn start(fixture: &Fixture, name: &str, arguments: &[&str], sign: &str) -> Process {
    let mut process = Process::start(name, coffer(fixture.path()).args(arguments), fixture.path());
    let log = fixture.path().join(format!("{name}.log"));
    process.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains(sign)));
    process
}

fn up(fixture: &Fixture) -> Process {
    start(fixture, "up", &["up", "--data-dir", "data", "--listen", "127.0.0.1:0"], "is up")
}

#[test]
fn ctrl_c_says_that_it_stops_and_that_it_has_stopped() {
    let fixture = Fixture::new();
    let mut up = up(&fixture);
    let kubeconfig = ["--kubeconfig", "data/kubeconfig"];
    for (name, arguments, sign) in [
        ("operator", ["operator"].as_slice(), "until Ctrl-C"),
        ("node", &["node", "--hostname-override", "other", "--root-dir", "root"], "until Ctrl-C"),
    ] {
        let arguments: Vec<&str> = arguments.iter().chain(&kubeconfig).copied().collect();
        ends_well(&mut start(&fixture, name, &arguments, sign), name);
    }
    ends_well(&mut up, "up");
    ends_well(&mut start(&fixture, "demo", &["demo"], "coffer trace secret/db"), "demo");
    assert!(!fixture.path().join("data/node/pods").exists(), "the volumes are gone");
}

fn ends_well(process: &mut Process, name: &str) {
    process.signal(Signal::INT);
    assert_eq!(process.wait(), 0, "{name}: {}", process.log());
    let log = process.log();
    let told: Vec<&str> = log.lines().rev().take(2).collect();
    let expected = ["coffer: stopped", "coffer: stopping; Ctrl-C again ends it at once"];
    assert_eq!(told, expected, "{name}: {log}");
}

#[test]
fn an_early_ctrl_c_leaves_nothing() {
    let fixture = Fixture::new();
    let demo = ["demo", "--data-dir"];
    let mut process = start(&fixture, "demo", &[demo.as_slice(), &["early"]].concat(), "1. ");
    process.signal(Signal::INT);
    assert_eq!(process.wait(), 1, "{}", process.log());
    assert!(process.log().ends_with("coffer: interrupted before the show was over\n"), "{}", process.log());
    let mut temporary = start(&fixture, "temporary", &["demo"], "1. ");
    temporary.signal(Signal::INT);
    assert_eq!(temporary.wait(), 1);
    let left = std::fs::read_dir(fixture.path())
        .expect("a directory")
        .any(|entry| entry.expect("an entry").file_name().to_string_lossy().starts_with("coffer-demo-"));
    assert!(!left, "the temporary directory is left");
}

/// A client that never sends the rest of its request holds the end up for a while.
#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let fixture = Fixture::new();
    let mut process = up(&fixture);
    let _held = half_a_request(&fixture.path().join("data"));
    process.signal(Signal::INT);
    process.wait_until(|| {
        std::fs::read_to_string(fixture.path().join("up.log")).is_ok_and(|log| log.contains("stopping"))
    });
    process.signal(Signal::INT);
    assert_eq!(process.wait(), 1, "{}", process.log());
    let log = process.log();
    assert!(log.contains("coffer: ended at once"), "{log}");
    assert!(!log.contains("coffer: stopped"), "{log}");
}

fn half_a_request(data: &Path) -> impl Sized + use<> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let pem = |name: &str| data.join("pki").join(name);
    let certificate = |name: &str| CertificateDer::from_pem_file(pem(name)).expect("a certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate("ca.crt")).expect("a root");
    let key = PrivateKeyDer::from_pem_file(pem("admin.key")).expect("a key");
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![certificate("admin.crt")], key)
        .expect("a configuration");
    let kubeconfig = std::fs::read_to_string(data.join("kubeconfig")).expect("a kubeconfig");
    let address = kubeconfig.split("https://").nth(1).and_then(|rest| rest.split(['"', '\n']).next());
    let socket = TcpStream::connect(address.expect("an address").trim()).expect("connected");
    let name = "127.0.0.1".try_into().expect("a name");
    let session = rustls::ClientConnection::new(Arc::new(config), name).expect("a session");
    let mut stream = rustls::StreamOwned::new(session, socket);
    stream
        .write_all(
            b"POST /api/v1/namespaces/default/secrets HTTP/1.1\r\nHost: coffer\r\n\
              Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n{",
        )
        .expect("written");
    stream.flush().expect("written");
    // The server asks for the body when it has begun with the request.
    let mut answer = [0_u8; 12];
    std::io::Read::read_exact(&mut stream, &mut answer).expect("an interim answer");
    assert_eq!(&answer, b"HTTP/1.1 100");
    stream
}
