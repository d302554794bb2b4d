//! Where the peers are, and how they get there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// The checkout's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the root").to_owned()
}

/// The cache that `peers/install.py` fills.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("COFFER_PEERS") {
        return Ok(PathBuf::from(named));
    }
    let caches = match std::env::var_os("XDG_CACHE_HOME") {
        Some(named) => PathBuf::from(named),
        None => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(caches.join("coffer-peers"))
}

/// Installs the named peers, or all.
pub(crate) fn install(names: &[&str]) -> anyhow::Result<()> {
    run(Command::new("python3")
        .arg(root().join("peers/install.py"))
        .args(names)
        .env("COFFER_PEERS", cache()?))
}

/// Where the sources of a Go module are that one of the folders builds peers from.
pub(crate) fn module(folder: &str, name: &str) -> anyhow::Result<PathBuf> {
    let output = Command::new("python3")
        .arg(root().join("peers/install.py"))
        .args(["--module", folder, name])
        .env("COFFER_PEERS", cache()?)
        .output()
        .context("cannot run python3")?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Runs a command to its end and fails with its name.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let shown = format!(
        "{} {}",
        command.get_program().to_string_lossy(),
        command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    eprintln!("xtask: {shown}");
    let status = command.current_dir(root()).status().with_context(|| format!("cannot start {shown}"))?;
    anyhow::ensure!(status.success(), "{shown} ended with {status}");
    Ok(())
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    use super::root;

    fn program(path: &Path, prints: &str) {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, format!("#!/bin/sh\necho {prints}\n")).expect("written");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    }

    /// Which Go is used when PATH holds `on_path` (`None`: no Go), and one from PyPI is installed.
    fn check(on_path: Option<&str>, expected: &str) {
        let directory = tempfile::tempdir().expect("a directory");
        let script = root().join("peers/install.py");
        let text = std::fs::read_to_string(&script).expect("the script");
        let wheel = text.split("GO_WHEEL = \"").nth(1).and_then(|rest| rest.split('"').next());
        program(&directory.path().join("venv/bin/go"), "go1.99.0");
        std::fs::create_dir(directory.path().join("stamps")).expect("made");
        std::fs::write(directory.path().join("stamps/go"), wheel.expect("a pinned wheel")).expect("written");
        let path = directory.path().join("path");
        std::fs::create_dir(&path).expect("made");
        if let Some(version) = on_path {
            program(&path.join("go"), version);
        }
        let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let python = String::from_utf8(python.expect("python3 runs").stdout).expect("a path");
        let output = Command::new(python.trim())
            .arg(&script)
            .arg("--go")
            .env("PATH", &path)
            .env("COFFER_PEERS", directory.path())
            .output()
            .expect("the script runs");
        let used = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let expected = directory.path().join(expected).display().to_string();
        assert_eq!(used, expected, "{on_path:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn go_comes_from_path_when_it_is_new_enough() {
        check(Some("go1.99.1"), "path/go");
        check(Some("go1.19.8"), "venv/bin/go");
        check(Some("nonsense"), "venv/bin/go");
        check(None, "venv/bin/go");
    }
}
