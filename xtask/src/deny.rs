//! `cargo xtask deny`: licences, banned and doubled crates, and where they come from.

use std::process::Command;

use crate::peers::{cache, install, run};

/// Holds what is built against deny.toml.
pub(crate) fn check() -> anyhow::Result<()> {
    install(&["cargo-deny"])?;
    run(Command::new(cache()?.join("bin/cargo-deny"))
        .args(["--locked", "check", "--hide-inclusion-graph"])
        .args(["bans", "licenses", "sources"]))
}
