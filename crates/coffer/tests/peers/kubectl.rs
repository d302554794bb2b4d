//! kubectl against the built binary.

use crate::support::Coffer;

#[test]
fn kubectl_sees_the_namespaces() {
    let coffer = Coffer::start();
    let output = coffer.kubectl().ok(&["get", "namespaces", "-o", "name"]);
    assert!(output.contains("namespace/kube-system\n"), "{output}");
}
