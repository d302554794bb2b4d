//! `cargo xtask bench`: us and a peer side by side in one run.

use crate::peers::{cache, cargo, install, run};

/// The whole API path beside kube-apiserver.
pub(crate) fn trip() -> anyhow::Result<()> {
    install(&["etcd", "kube-apiserver", "kubectl", "load"])?;
    run(cargo()
        .args(["bench", "--package", "coffer", "--features", "peers", "--bench", "trip", "--", "trip"])
        .env("COFFER_PEERS", cache()?))
}
