//! The embedded engine in a process that is killed again and again.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use coffer_runtime::clock::SystemClock;
use coffer_sim::SeededRandom;
use coffer_sim::history::{Call, Lines, Load, Outcome, Recorder, Request, follow, read_lines, run_clients};
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::Kv;

use super::{CLIENTS, Length, seed, verify};

/// Tells the child where to work, and the seed; nobody else sets it.
const CHILD: &str = "COFFER_HISTORY_TEST_CHILD";

/// Clients that are killed at once, at the end of a round.
const ROUNDS: usize = 12;

async fn open(directory: &Path) -> Arc<dyn Kv> {
    let options = EmbeddedOptions::new(Arc::new(SystemClock::new()));
    Arc::new(Embedded::open(directory, options).await.expect("opens"))
}

fn load(seed: u64) -> Load {
    Load { prefix: "/h/".into(), clients: CLIENTS, seed, ..Load::default() }
}

/// Not a test of its own: what the test below starts and kills. Without its variable it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout, reason = "it speaks to the test that started it")]
async fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let (seed, directory) = text.split_once(' ').expect("a seed and a directory");
    let kv = open(Path::new(directory)).await;
    // The test harness has begun a line.
    println!();
    let recorder = Arc::new(Recorder::telling(Lines::new(std::io::stdout())));
    run_clients(&recorder, &kv, &Arc::new(load(seed.parse().expect("a number")))).await;
}

/// The lines of a child that was killed.
fn run_and_kill(directory: &Path, seed: u64, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "linearizability::killed::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{seed} {}", directory.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    // The test harness speaks first.
    let mut line = String::new();
    while !line.starts_with('[') {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("readable"), 0, "the child ended by itself");
    }
    // The pipe must not fill up meanwhile.
    let first = line.trim_end().to_owned();
    let reader = std::thread::spawn(move || {
        let rest = lines.lines().map(|line| line.expect("readable"));
        std::iter::once(first).chain(rest).collect()
    });
    std::thread::sleep(after);
    child.kill().expect("it was running");
    child.wait().expect("it ended");
    reader.join().expect("the reader")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_process_killed_under_load() {
    let (seed, length) = (seed(), Length::new(ROUNDS));
    let random = SeededRandom::new(seed);
    let directory = tempfile::tempdir().expect("a directory");
    let start = open(directory.path()).await.range(load(0).range()).await.expect("readable").revision;
    let (mut calls, mut time, mut rounds): (Vec<Call>, u64, u64) = (Vec::new(), 0, 0);
    while length.goes_on(rounds as usize) {
        let after = Duration::from_micros(random.below(150_000));
        // Each round has other values.
        let lines = run_and_kill(directory.path(), seed * 1_000 + rounds, after);
        time = read_lines(&lines, time, &mut calls);
        let kv = open(directory.path()).await;
        let found = kv.range(load(0).range()).await.expect("readable");
        let request = Request::Range(load(0).range());
        calls.push(Call {
            client: CLIENTS,
            invoked: time,
            returned: time + 1,
            request,
            outcome: Outcome::Range(found),
        });
        time += 2;
        rounds += 1;
    }
    // The whole history is there to be watched.
    let kv = open(directory.path()).await;
    let last = kv.range(load(0).range()).await.expect("readable").revision;
    let recorder = Arc::new(Recorder::starting(time));
    let mut watches = Vec::new();
    for from in [start + 1, start + 1 + random.below((last - start).max(1) as u64) as i64] {
        let load = Arc::new(Load { last: AtomicI64::new(last), ..load(0) });
        watches.push(follow(recorder.clone(), kv.clone(), load, from, seed).await);
    }
    assert!(rounds < calls.len() as u64 / 10, "only {} calls in {rounds} rounds", calls.len());
    verify(&format!("embedded, its process killed {rounds} times"), seed, start, &calls, &watches);
}
