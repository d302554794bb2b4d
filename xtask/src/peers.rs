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
