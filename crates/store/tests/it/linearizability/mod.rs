//! Histories of concurrent clients on each engine while things fail, checked against a model:
//! every answer must be explained by one order of all calls that agrees with their times, and every
//! watch must have told what happened.
//!
//! A test run takes some seconds; `cargo xtask conformance linearizability` takes minutes. The seed
//! is printed with each result; `COFFER_SEED` replays what the clients want to do, though not how
//! their calls meet.

pub(crate) mod disks;
pub(crate) mod embedded;
pub(crate) mod killed;
pub(crate) mod objects;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use coffer_sim::SeededRandom;
use coffer_sim::history::{
    Call, Load, Log, Outcome, Recorder, Request, WatchRecord, check_watches, follow, linearize, run_clients,
};
use coffer_store::kv::{Kv, Revision};

/// How many clients there are.
const CLIENTS: usize = 8;
/// How many watches follow from the beginning.
const WATCHERS: u64 = 3;
/// How many watches begin in the past when all is over.
const LATE_WATCHERS: u64 = 8;
/// Calls between two faults, at most.
const BETWEEN: u64 = 400;

/// How long things go on: faults in a test run, a time in a long run.
pub(crate) struct Length {
    faults: usize,
    until: Option<Instant>,
}

impl Length {
    pub(crate) fn new(faults: usize) -> Self {
        let seconds = std::env::var("COFFER_LINEARIZABILITY_SECONDS").ok();
        let seconds = seconds.map(|text| text.parse().expect("COFFER_LINEARIZABILITY_SECONDS is a number"));
        Self { faults, until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)) }
    }

    pub(crate) fn goes_on(&self, faults: usize) -> bool {
        self.until.map_or(faults < self.faults, |until| Instant::now() < until)
    }
}

pub(crate) fn seed() -> u64 {
    let named = std::env::var("COFFER_SEED").ok().map(|seed| seed.parse().expect("COFFER_SEED is a number"));
    named.unwrap_or_else(|| u64::from(std::process::id()))
}

/// A history that is being made.
pub(crate) struct Run {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) load: Arc<Load>,
    kv: Arc<dyn Kv>,
    start: Revision,
    clients: tokio::task::JoinHandle<()>,
    watchers: Vec<tokio::task::JoinHandle<Vec<WatchRecord>>>,
}

impl Run {
    /// Starts clients and watchers on an empty store.
    pub(crate) async fn start(kv: Arc<dyn Kv>, seed: u64) -> Self {
        let recorder = Arc::new(Recorder::default());
        let load = Arc::new(Load { prefix: "/h/".into(), clients: CLIENTS, seed, ..Load::default() });
        let start = kv.range(load.range()).await.expect("the store answers").revision;
        let watchers = (0..WATCHERS)
            .map(|number| {
                // One from now on, the others from a revision.
                let from = if number == 0 { 0 } else { start + 1 };
                tokio::spawn(follow(recorder.clone(), kv.clone(), load.clone(), from, seed + number))
            })
            .collect();
        let clients = {
            let (recorder, kv, load) = (recorder.clone(), kv.clone(), load.clone());
            tokio::spawn(async move { run_clients(&recorder, &kv, &load).await })
        };
        Self { recorder, load, kv, start, clients, watchers }
    }

    /// Waits until clients have made some more calls.
    pub(crate) async fn more_calls(&self, random: &SeededRandom) {
        let wanted = self.load.calls.load(Ordering::SeqCst) + 50 + random.below(BETWEEN) as usize;
        while self.load.calls.load(Ordering::SeqCst) < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends the clients, waits for the watchers, and checks everything.
    pub(crate) async fn check(self, what: &str) {
        self.load.stop.store(true, Ordering::SeqCst);
        self.clients.await.expect("the clients");
        let last = self.recorder.call(&*self.kv, CLIENTS, Request::Range(self.load.range())).await;
        let Outcome::Range(last) = last else { panic!("{what}: {last:?}") };
        self.load.last.store(last.revision, Ordering::SeqCst);
        let mut watches = Vec::new();
        for watcher in self.watchers {
            watches.push(watcher.await.expect("the watcher"));
        }
        // Watches can begin at any revision.
        let random = SeededRandom::new(self.load.seed);
        for _ in 0..LATE_WATCHERS {
            let from = self.start + 1 + random.below((last.revision - self.start).max(1) as u64) as Revision;
            let late =
                follow(self.recorder.clone(), self.kv.clone(), self.load.clone(), from, random.next_u64());
            watches.push(late.await);
        }
        verify(what, self.load.seed, self.start, &self.recorder.calls(), &watches);
    }
}

/// Checks a history and says in one line what it was.
#[allow(clippy::print_stdout, reason = "the result of a run is its line")]
pub(crate) fn verify(
    what: &str,
    seed: u64,
    start: Revision,
    calls: &[Call],
    watches: &[Vec<WatchRecord>],
) -> Log {
    let what = format!("{what}, seed {seed}");
    let parts = watches.concat();
    let log = linearize(start, calls, &parts).unwrap_or_else(|violation| panic!("{what}: {violation}"));
    for watch in watches {
        check_watches(&log, watch).unwrap_or_else(|violation| panic!("{what}: {violation}"));
    }
    let lost = |call: &&Call| call.outcome == Outcome::Unknown && matches!(call.request, Request::Txn(_));
    let lost = calls.iter().filter(lost).count();
    println!(
        "linearizability: {what}: {} calls, {lost} writes without an answer ({} of them happened), {} revisions, {} watches: kept",
        calls.len(),
        log.recovered,
        log.changes.len(),
        parts.len(),
    );
    log
}
