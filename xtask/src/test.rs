//! `cargo xtask test`: the checks in the order of their price, then the tests.

use crate::peers::{cache, cargo, install, run};
use crate::{arrows, deny, fuzz, generate};

/// What needs no peer.
pub(crate) fn quick() -> anyhow::Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    arrows::check()?;
    run(cargo().args(["test", "--workspace", "--no-fail-fast"]))
}

/// Everything. A peer that cannot be installed is a failure.
pub(crate) fn all() -> anyhow::Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    arrows::check()?;
    install(&[])?;
    deny::check()?;
    generate::check()?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    // Not among all targets: only `cargo xtask conformance operator` runs it.
    run(cargo()
        .args(["clippy", "--package", "coffer", "--test", "conformance", "--all-features"])
        .args(["--", "-D", "warnings"]))?;
    // One build for both tiers: the feature `peers` only adds test targets.
    run(cargo()
        .args(["test", "--workspace", "--all-features", "--no-fail-fast"])
        .env("COFFER_PEERS", cache()?))?;
    fuzz::run(&[], fuzz::SECONDS)
}
