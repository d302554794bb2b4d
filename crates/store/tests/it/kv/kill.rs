//! The embedded engine in a process that is killed at any moment.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use coffer_runtime::clock::SystemClock;
use coffer_sim::SeededRandom;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, Op, Txn};
use futures::future::join_all;

use super::helpers::{bytes, prefix, put_op};

/// Tells the child where to work; nobody else sets it.
const CHILD: &str = "COFFER_KILL_TEST_DIRECTORY";

const WRITERS: usize = 8;

/// 200 beside the real peers, fewer in a plain test run.
fn rounds() -> u64 {
    match std::env::var("COFFER_KILL_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("COFFER_KILL_ROUNDS is a number"),
        Err(_) if env!("CARGO_CRATE_NAME") == "peers" => 200,
        Err(_) => 25,
    }
}

async fn open(directory: &Path) -> Embedded {
    let options = EmbeddedOptions::new(Arc::new(SystemClock::new()));
    Embedded::open(directory, options).await.expect("opens")
}

/// Not a test of its own: what the test below starts and kills. Without its variable it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let kv = open(Path::new(&directory)).await;
    let say = |line: String| {
        // Whole lines, so that the parent never reads a torn one unless it is the last.
        std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
    };
    say("ready\n".into());
    let kv = &kv;
    let writers = (0..WRITERS).map(|writer| async move {
        for number in 1.. {
            let text = number.to_string();
            let steps = vec![
                put_op(&format!("/first/{writer}"), &text),
                put_op(&format!("/log/{writer}/{number}"), &"x".repeat(number % 3000)),
                put_op(&format!("/second/{writer}"), &text),
            ];
            let done = kv.txn(Txn { success: steps, ..Txn::default() }).await.expect("written");
            say(format!("ack {writer} {number} {}\n", done.revision));
            if writer == 0 && number % 50 == 0 {
                kv.compact(done.revision - 10).await.expect("compacted");
            }
        }
    });
    join_all(writers).await;
}

/// What the child said: for each writer and number the revision.
type Acknowledged = BTreeMap<(usize, usize), i64>;

fn run_and_kill(directory: &Path, after: Duration) -> Acknowledged {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "kv::kill::child", "--nocapture", "--test-threads=1"])
        .env(CHILD, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("readable"), 0, "the child ended by itself");
    }
    // The pipe must not fill up meanwhile.
    let reader = std::thread::spawn(move || {
        let mut acknowledged = Acknowledged::new();
        let mut line = String::new();
        while lines.read_line(&mut line).expect("readable") != 0 {
            if line.ends_with('\n') && line.starts_with("ack ") {
                let numbers: Vec<i64> =
                    line[4..].split_whitespace().map(|number| number.parse().expect("a number")).collect();
                let [writer, number, revision] = numbers[..] else { panic!("{line:?}") };
                acknowledged.insert((writer as usize, number as usize), revision);
            }
            line.clear();
        }
        acknowledged
    });
    std::thread::sleep(after);
    child.kill().expect("it was running");
    child.wait().expect("it ended");
    reader.join().expect("the reader")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a directory");
    let random = SeededRandom::new(u64::from(std::process::id()));
    let (mut revision, mut total) = (1, 0);
    for round in 0..rounds() {
        let after = Duration::from_micros(random.below(120_000));
        let acknowledged = run_and_kill(directory.path(), after);
        total += acknowledged.len();
        let kv = open(directory.path()).await;
        let found = kv.range(prefix("/")).await.expect("readable");
        let what = format!("round {round}, killed after {after:?}");
        assert!(revision <= found.revision, "{what}: {revision} <= {}", found.revision);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let items: BTreeMap<_, _> = found.items.iter().map(|kv| (text(&kv.key), kv)).collect();
        for ((writer, number), revision) in &acknowledged {
            let log = items.get(&format!("/log/{writer}/{number}"));
            let log = log.unwrap_or_else(|| panic!("{what}: write {number} of {writer} is lost"));
            assert_eq!(log.mod_revision, *revision, "{what}");
            assert_eq!(log.value.len(), number % 3000, "{what}");
        }
        for writer in 0..WRITERS {
            let last = |name: &str| {
                items
                    .get(&format!("/{name}/{writer}"))
                    .map_or(0, |kv| text(&kv.value).parse::<usize>().expect("a number"))
            };
            let (first, second) = (last("first"), last("second"));
            let acknowledged = acknowledged
                .range((writer, 0)..(writer + 1, 0))
                .map(|((_, number), _)| *number)
                .max()
                .unwrap_or(0);
            assert_eq!(first, second, "{what}: half a transaction of writer {writer}");
            assert!(acknowledged <= first && first <= acknowledged + 1, "{what}: {acknowledged}, {first}");
            let log = items.contains_key(&format!("/log/{writer}/{first}"));
            assert!(first == 0 || log, "{what}: half a transaction of writer {writer}");
        }
        // The next round begins with an empty store, of a higher revision.
        let clean = Op::DeleteRange { start: bytes("/"), end: bytes("0") };
        revision = kv.txn(Txn { success: vec![clean], ..Txn::default() }).await.expect("cleaned").revision;
    }
    assert!(rounds() as usize * 10 < total, "only {total} writes were acknowledged");
}
