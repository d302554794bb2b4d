//! `cargo xtask fuzz`: every decoder under libFuzzer, on a stable compiler.
//!
//! The compiler counts edges for the project's own crates only (`fuzz/instrument.sh`), so that all
//! others are shared with every other build. Only what a person adds, and what fails, goes into
//! `fuzz/corpus`.
//!
//! A short run draws the same inputs each time, so that a test that passed passes again; a long one
//! draws new ones, and keeps beside the build what reached something new.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;

use crate::peers::{cargo, root};

/// Seconds of each target when nothing else is said.
pub(crate) const SECONDS: u32 = 20;

/// Limits of one input: seconds, MiB of memory, bytes. An input takes milliseconds; these are for
/// what grows without bound.
const TIME: u32 = 20;
const MEMORY: u32 = 2048;
const LENGTH: u64 = 16 * 1024;

/// How long kept inputs become by repeating parts of them: what is linear takes some milliseconds
/// for each of these, and what is quadratic seconds.
const PUMPED: &str = "65536";

/// Seconds from which on a run is a long one.
const LONG: u32 = 60;

/// Where a short run begins to draw.
const SEED: &str = "-seed=20261130";

/// The target that is not a decoder and must fail.
const PLANTED: &str = "planted";

/// Runs the named targets, or all, for so many seconds each.
pub(crate) fn run(names: &[&str], seconds: u32) -> anyhow::Result<()> {
    let program = build()?;
    let all = targets()?;
    for name in names {
        anyhow::ensure!(
            all.iter().any(|target| target == name),
            "no target {name:?}; there are: {}",
            all.join(", ")
        );
    }
    let wanted: Vec<&String> =
        all.iter().filter(|target| names.is_empty() || names.contains(&target.as_str())).collect();
    finds_the_planted_fault(&program)?;
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(target) = wanted.get(next.fetch_add(1, Ordering::SeqCst)) {
                    match one(&program, target, seconds) {
                        Ok(line) => eprintln!("fuzz: {target:<26} {line}"),
                        Err(error) => {
                            eprintln!("fuzz: {target:<26} FAILED\n{error:#}");
                            failed.lock().expect("no panic").push(target.as_str());
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    anyhow::ensure!(
        failed.is_empty(),
        "{} of {} targets failed: {}",
        failed.len(),
        wanted.len(),
        failed.join(", ")
    );
    eprintln!("fuzz: {} targets held for {seconds} s each", wanted.len());
    Ok(())
}

/// Runs one input again, with libFuzzer's report.
pub(crate) fn again(target: &str, input: &str) -> anyhow::Result<()> {
    let program = build()?;
    let input = std::env::current_dir()?.join(input);
    crate::peers::run(fuzzer(&program, target).env("COFFER_FUZZ_PUMP", PUMPED).arg(input))
}

fn corpus(target: &str) -> PathBuf {
    root().join("fuzz/corpus").join(target)
}

/// Every folder of the corpus is a target; a test holds both against each other.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = corpus("");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Builds the fuzzer and gives its path.
fn build() -> anyhow::Result<PathBuf> {
    let wrapper = root().join("fuzz/instrument.sh");
    let output = cargo()
        .args(["build", "--package", "coffer-fuzz", "--bin", "coffer-fuzz", "--message-format", "json"])
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
        .env("CARGO_INCREMENTAL", "0")
        .stderr(std::process::Stdio::inherit())
        .current_dir(root())
        .output()
        .context("cannot run cargo")?;
    anyhow::ensure!(output.status.success(), "the fuzzer does not build");
    let executable = String::from_utf8_lossy(&output.stdout).lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    let executable = executable.context("cargo built no fuzzer")?;
    // A copy: a build without instruments has the same path.
    let program = executable.with_file_name("coffer-fuzz-instrumented");
    std::fs::copy(&executable, &program).context("cannot copy the fuzzer")?;
    Ok(program)
}

/// Bytes of an input at most: no kept input is cut, or nothing would be learnt from it.
fn length(target: &str) -> u64 {
    let kept = std::fs::read_dir(corpus(target)).into_iter().flatten().flatten();
    kept.filter_map(|entry| Some(entry.metadata().ok()?.len())).fold(LENGTH, u64::max)
}

fn fuzzer(program: &Path, target: &str) -> Command {
    let length = length(target);
    let mut command = Command::new(program);
    command.env("COFFER_FUZZ_TARGET", target).args([
        format!("-timeout={TIME}"),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-max_len={length}"),
        "-print_final_stats=1".to_owned(),
    ]);
    command
}

/// First, in a long run, the kept inputs with parts of them repeated; then new ones.
fn one(program: &Path, target: &str, seconds: u32) -> anyhow::Result<String> {
    let kept = corpus(target);
    let long = LONG <= seconds;
    let found = program.with_file_name(if long { "fuzz-corpus" } else { "fuzz-new" }).join(target);
    if !long && found.exists() {
        std::fs::remove_dir_all(&found)?;
    }
    std::fs::create_dir_all(&found).with_context(|| found.display().to_string())?;
    let prefix = format!("-artifact_prefix={}/", kept.display());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&kept)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.sort();
    if long {
        let mut pumps = fuzzer(program, target);
        finish(target, pumps.env("COFFER_FUZZ_PUMP", PUMPED).arg(&prefix).args(&files))?;
    }
    let mut fuzz = fuzzer(program, target);
    fuzz.arg(&prefix).arg(format!("-max_total_time={seconds}"));
    if !long {
        fuzz.args([SEED, "-reload=0"]);
    }
    fuzz.args([&found, &kept]);
    let report = finish(target, &mut fuzz)?;
    let number = |name: &str| {
        let found = report.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        found.map_or("?", |rest| rest.trim_start_matches(':').trim()).to_owned()
    };
    let coverage = report.lines().rev().find_map(|line| line.split("cov: ").nth(1)?.split(' ').next());
    Ok(format!(
        "{:>9} inputs, {:>6} places reached, {:>5} MiB at most",
        number("number_of_executed_units"),
        coverage.unwrap_or("?"),
        number("peak_rss_mb")
    ))
}

/// Runs libFuzzer; a failure names the input and how to run it again.
fn finish(target: &str, command: &mut Command) -> anyhow::Result<String> {
    let output = command.current_dir(root()).output().context("cannot run the fuzzer")?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return Ok(report);
    }
    let tail: Vec<&str> = report.lines().rev().take(REPORTED).collect();
    let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
    let saved = report.lines().rev().find_map(|line| line.split("Test unit written to ").nth(1));
    // A kept input that fails is not written again.
    let running = report.lines().rev().find_map(|line| line.strip_prefix("Running: "));
    let input = saved.or(running).unwrap_or("FILE");
    anyhow::bail!("{tail}\nrun it again: cargo xtask fuzz {target} --input {input}")
}

/// Lines of libFuzzer's report that a failure shows.
const REPORTED: usize = 40;

/// A fuzzer that cannot find what is there would find nothing elsewhere.
fn finds_the_planted_fault(program: &Path) -> anyhow::Result<()> {
    let folder = program.with_file_name("fuzz-planted");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let output = fuzzer(program, PLANTED)
        .arg(format!("-artifact_prefix={}/", folder.display()))
        .arg("-max_total_time=60")
        .output()
        .context("cannot run the fuzzer")?;
    let found = std::fs::read_dir(&folder)?.filter_map(Result::ok).find_map(|entry| {
        let name = entry.file_name();
        let crash = name.to_string_lossy().starts_with("crash-");
        crash.then(|| std::fs::read(entry.path()).ok()).flatten()
    });
    let text = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        !output.status.success() && found.is_some_and(|input| input.starts_with(b"coffer")),
        "the fuzzer did not find the planted fault:\n{text}"
    );
    eprintln!("fuzz: the planted fault was found");
    Ok(())
}
