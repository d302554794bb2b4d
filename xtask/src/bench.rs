//! `cargo xtask bench`: us and a peer side by side in one run, or us against a limit.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::peers::{cache, cargo, install, root, run};

/// How long the demo may take until its first file.
const FIRST_FILE: Duration = Duration::from_secs(5);
/// How much memory the demo may have used at most, in kB of 1,024 bytes.
const DEMO_MEMORY: u64 = 60 * 1_000_000 / 1024;
/// How long a release build from nothing may take, on 2 cores that do nothing else.
const COLD_BUILD: Duration = Duration::from_secs(7 * 60);

/// The whole API path beside kube-apiserver.
pub(crate) fn trip() -> anyhow::Result<()> {
    install(&["etcd", "kube-apiserver", "kubectl", "load"])?;
    measure("trip")
}

/// Reads, writes, memory and readiness beside kube-apiserver, against their targets.
pub(crate) fn store() -> anyhow::Result<()> {
    install(&["etcd", "kube-apiserver", "kubectl", "load"])?;
    measure("store")
}

/// Many watches, server-side apply and their memory beside kube-apiserver, against their targets.
pub(crate) fn clients() -> anyhow::Result<()> {
    install(&["etcd", "kube-apiserver", "kubectl", "load"])?;
    measure("clients")
}

/// Values on their way to and from storage beside the code of kube-apiserver, against their targets.
pub(crate) fn transform() -> anyhow::Result<()> {
    install(&["kms", "transform"])?;
    measure("transform")
}

/// CEL beside the environment of kube-apiserver against its targets, and hostile expressions against limits.
pub(crate) fn cel() -> anyhow::Result<()> {
    install(&["cel"])?;
    run(cargo()
        .args(["bench", "--package", "coffer-lang", "--features", "peers"])
        .args(["--bench", "cel", "--bench", "hostile", "--", "cel"])
        .env("COFFER_PEERS", cache()?))
}

/// A snapshot's audit beside etcdutl.
pub(crate) fn audit() -> anyhow::Result<()> {
    install(&["etcd", "etcdctl", "etcdutl"])?;
    measure("audit")
}

fn measure(name: &str) -> anyhow::Result<()> {
    run(cargo()
        .args(["bench", "--package", "coffer", "--features", "peers", "--bench", name, "--", name])
        .env("COFFER_PEERS", cache()?))
}

/// A release build of `coffer demo --once`: its first file, and its memory at its highest.
pub(crate) fn demo() -> anyhow::Result<()> {
    run(cargo().args(["build", "--release", "--package", "coffer"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let directory = Scratch::make("demo")?;
    let started = Instant::now();
    let mut child = Command::new(target.join("release/coffer"))
        .args(["demo", "--once", "--data-dir"])
        .arg(directory.0.join("data"))
        .env("TMPDIR", &directory.0)
        .stdout(Stdio::piped())
        .spawn()
        .context("the demo does not start")?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let output = child.stdout.take().context("a pipe")?;
    let mut first_file = None;
    let mut highest = None;
    let mut steps_held = false;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if line.contains("s after the start") {
            first_file = Some(started.elapsed());
        }
        steps_held |= line.contains("Every step held.");
        // The kernel keeps the maximum; after the last line the process may be gone.
        highest = high_water(&status).max(highest);
    }
    let ended = child.wait()?;
    anyhow::ensure!(ended.success() && steps_held, "the demo ended with {ended}");
    let first_file = first_file.context("the demo told of no file")?;
    let highest = highest.context("the demo's memory could not be read")?;
    println!("first file   {:>6.2} s    limit {} s", first_file.as_secs_f64(), FIRST_FILE.as_secs());
    println!("VmHWM        {:>6.1} MB   limit 60 MB", highest as f64 * 1024.0 / 1e6);
    anyhow::ensure!(first_file <= FIRST_FILE, "the first file came too late");
    anyhow::ensure!(highest <= DEMO_MEMORY, "the demo used too much memory");
    Ok(())
}

/// The most memory that a process has used, in kB.
fn high_water(status: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// A release build of the program with nothing built before; sources of dependencies are there already.
pub(crate) fn build() -> anyhow::Result<()> {
    run(cargo().args(["fetch", "--locked"]))?;
    let directory = Scratch::make("build")?;
    let started = Instant::now();
    run(cargo()
        .args(["build", "--release", "--locked", "--package", "coffer"])
        .env("CARGO_TARGET_DIR", &directory.0))?;
    let took = started.elapsed();
    println!("cold build   {:>6.0} s    limit {} s", took.as_secs_f64(), COLD_BUILD.as_secs());
    anyhow::ensure!(took <= COLD_BUILD, "the build took too long");
    Ok(())
}

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn make(name: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("coffer-bench-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
