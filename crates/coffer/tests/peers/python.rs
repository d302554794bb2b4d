//! Python's client (`peers/python/client.py`) is told the same by coffer and by kube-apiserver.

use std::path::Path;
use std::process::Command;

use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, program};

use crate::quiet;

/// What the program prints.
fn run(kubeconfig: &Path) -> String {
    // The program of a virtual environment finds its packages by its own place.
    let python =
        std::fs::read_link(program("kubernetes-client")).expect("a link into the virtual environment");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/python/client.py");
    let output = Command::new(python)
        .arg(script)
        .arg(kubeconfig)
        .env_remove("KUBECONFIG")
        .output()
        .expect("the program starts");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{errors}");
    told.into_owned()
}

#[test]
fn pythons_client_is_told_the_same_as_by_kube_apiserver() {
    let etcd = Etcd::start();
    let stock = KubeApiserver::start(&etcd, &ApiserverOptions::default());
    let expected = run(stock.kubeconfig());
    let coffer = Coffer::up(quiet, &[]);
    let found = run(coffer.kubeconfig());
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
    assert!(20 < found.lines().count(), "{found}");
}
