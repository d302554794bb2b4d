//! Expressions that mean harm are refused or stopped, soon. `cargo xtask bench cel` measures their
//! time and memory in a release build.

use std::time::{Duration, Instant};

use crate::hostile_rules::{Kind, MILLISECONDS, Surroundings, hostile};

/// The most that any of them may take. Debug builds, on machines with other work, are only kept from hanging.
const TIME: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(120) } else { Duration::from_millis(MILLISECONDS) };
/// How often one may be tried to be within its time.
const TRIES: usize = 5;

fn stopped(kind: Kind) {
    // Frames of debug builds are several times as large as those of release builds.
    let stack = if cfg!(debug_assertions) { 16 << 20 } else { 2 << 20 };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(stack);
        let thread = builder.spawn_scoped(scope, || stopped_here(kind)).expect("a thread");
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn stopped_here(kind: Kind) {
    let surroundings = Surroundings::new();
    for hostile in hostile().iter().filter(|hostile| hostile.kind == kind) {
        let mut best = Duration::MAX;
        for _ in 0..TRIES {
            let started = Instant::now();
            surroundings.stop(hostile);
            best = best.min(started.elapsed());
            if best < TIME {
                break;
            }
        }
        assert!(best < TIME, "{} took {best:?}", hostile.shown());
    }
}

#[test]
fn nested_loops_end_within_their_cost() {
    stopped(Kind::Loops);
}

#[test]
fn growth_ends_within_cost_or_memory() {
    stopped(Kind::Growth);
}

#[test]
fn patterns_do_not_run_away() {
    stopped(Kind::Patterns);
}

#[test]
fn deep_nesting_is_refused() {
    stopped(Kind::Depth);
}

#[test]
fn macros_that_double_what_they_stand_behind_are_refused() {
    stopped(Kind::Macros);
}

#[test]
fn many_terms_are_no_harm() {
    stopped(Kind::Terms);
}
