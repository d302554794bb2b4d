//! `coffer kms-plugin` and what keeps it from starting.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use coffer_sim::peers::{Process, run};

use super::fixture::{Fixture, coffer};

const KEYS: &str = "one: QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\n";

fn write(path: &Path, content: &str, mode: u32) {
    std::fs::write(path, content).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own file");
}

#[test]
fn what_keeps_it_from_starting() {
    let fixture = Fixture::new();
    let at = fixture.path();
    write(&at.join("keys"), KEYS, 0o600);
    write(&at.join("open"), KEYS, 0o644);
    write(&at.join("broken"), "one: QUFB\n", 0o600);
    let socket = at.join("kms.sock");
    let listen = format!("--listen=unix://{}", socket.display());
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let ran = run(coffer(at).arg("kms-plugin").args(arguments));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{arguments:?}: {}", ran.stderr);
        let text = ran.stderr.replace(&at.display().to_string(), "DIR");
        assert_eq!(text, expected, "{arguments:?}");
        assert!(!text.contains("QUFB"), "{text}");
    };
    let missing = "coffer: cannot read missing: No such file or directory (os error 2)\n  name a file that is there and \
                   that this user may read with ";
    check(&["--key-file=missing", &listen], 3, &format!("{missing}--key-file\n"));
    check(
        &["--key-file=open", &listen],
        1,
        "coffer: open holds keys, but others may use it (mode 0644)\n  type: chmod 600 open\n",
    );
    check(
        &["--key-file=broken", &listen],
        1,
        "coffer: broken: line 1: the key must be 32 bytes, got 3\n  its lines are NAME: BASE64, the first one writes; \
         make a key with: openssl rand -base64 32\n",
    );
    check(
        &["--key-file=keys", "--listen=tcp://localhost:1"],
        2,
        "coffer: --listen: unsupported scheme \"tcp\" for remote KMS provider\n  write it as: --listen \
         unix:///run/coffer/kms.sock\n",
    );
    check(
        &["--key-file=keys", "--listen=unix:///@abstract"],
        2,
        "coffer: --listen \"unix:///@abstract\" names no path\n  write it as: --listen unix:///run/coffer/kms.sock\n",
    );
    check(
        &["--transit-address=localhost", "--transit-key=k", "--transit-token-file=token", &listen],
        2,
        "coffer: --transit-address \"localhost\" is not a URL\n  write it as http://HOST:PORT or https://HOST:PORT\n",
    );
    check(
        &[
            "--transit-address=http://localhost:1",
            "--transit-key=../x",
            "--transit-token-file=token",
            &listen,
        ],
        2,
        "coffer: --transit-key \"../x\" is no name\n  names are made of letters, digits, '-', '_', '.' and '/'\n",
    );
    check(
        &["--transit-address=http://localhost:1", "--transit-key=k", "--transit-token-file=missing", &listen],
        3,
        &format!("{missing}--transit-token-file\n"),
    );
    let in_use =
        "coffer: another plugin serves DIR/kms.sock\n  stop it, or name another path with --listen\n";
    let other = UnixListener::bind(&socket).expect("can be bound");
    check(&["--key-file=keys", &listen], 1, in_use);
    drop(other);
    check(
        &["--key-file=keys", &format!("--listen=unix://{}/keys", at.display())],
        1,
        "coffer: DIR/keys is there already, and is no socket\n  name another path with --listen\n",
    );
}

/// What a dead plugin left is replaced; the socket is the owner's alone, and goes with the plugin.
#[test]
fn it_serves_until_it_is_asked_to_end() {
    let fixture = Fixture::new();
    let at = fixture.path();
    write(&at.join("keys"), KEYS, 0o600);
    let socket = at.join("kms.sock");
    drop(UnixListener::bind(&socket).expect("can be bound"));
    let listen = format!("--listen=unix://{}", socket.display());
    let start =
        |name: &str| Process::start(name, coffer(at).args(["kms-plugin", "--key-file=keys", &listen]), at);
    let mut first = start("first");
    first.wait_until(|| UnixStream::connect(&socket).is_ok());
    assert_eq!(socket.metadata().expect("is there").permissions().mode() & 0o777, 0o600);
    let mut second = start("second");
    assert_eq!(second.wait(), 1);
    assert!(second.log().contains("another plugin serves"), "{}", second.log());
    first.signal(rustix::process::Signal::TERM);
    assert_eq!(first.wait(), 0, "{}", first.log());
    assert!(!socket.exists());
    let log = first.log();
    assert!(
        log.contains("coffer: the KMS plugin serves unix://") && log.contains(" under key one."),
        "{log}"
    );
    assert!(!log.contains("QUFB"), "{log}");
}
