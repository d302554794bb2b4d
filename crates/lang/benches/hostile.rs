//! `cargo xtask bench cel`, second half: time and memory of expressions that mean harm, against limits.
//!
//! Time is what the thread ran for one, the least of some tries, in each of which there are as many as take
//! long; memory is the most that was allocated at a time beyond what was there before, in any of them. The
//! stack is that of a server's thread.

#![allow(clippy::print_stdout, reason = "a benchmark's output is what it prints")]

#[path = "../tests/it/hostile_rules.rs"]
#[allow(dead_code, reason = "the tests take them by kind")]
mod hostile_rules;

use std::time::Duration;

use hostile_rules::{MILLISECONDS, Surroundings, hostile};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const MEMORY: usize = 16 << 20;
const STACK: usize = 2 << 20;
const TRIES: usize = 3;
/// The kernel counts in ticks: a try takes at least some of them.
const ENOUGH: Duration = Duration::from_millis(100);

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "cel") {
        return;
    }
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(measure).expect("a thread");
    let missed = thread.join().expect("nothing panics");
    assert!(missed == 0, "{missed} limits are exceeded");
}

/// How many limits are exceeded.
fn measure() -> usize {
    let surroundings = Surroundings::new();
    let time = Duration::from_millis(MILLISECONDS);
    println!("{:<64}{:>8}{:>8}", "hostile expressions", "ms", "MiB");
    let mut missed = 0;
    for hostile in hostile() {
        let (mut least, mut most) = (Duration::MAX, 0);
        for _ in 0..TRIES {
            let (before, mut took, mut count) = (thread_time(), Duration::ZERO, 0);
            while took < ENOUGH {
                ALLOCATED.reset_peak_usage();
                let had = ALLOCATED.current_usage();
                surroundings.stop(&hostile);
                most = most.max(ALLOCATED.peak_usage().saturating_sub(had));
                took = thread_time() - before;
                count += 1;
            }
            least = least.min(took / count);
        }
        let held = least < time && most < MEMORY;
        missed += usize::from(!held);
        let (milliseconds, mebibytes) = (least.as_secs_f64() * 1e3, most as f64 / f64::from(1 << 20));
        let verdict = if held { "holds" } else { "EXCEEDED" };
        println!("{:<64}{milliseconds:>8.2}{mebibytes:>8.2}  {verdict}", hostile.shown());
    }
    println!("limits: {MILLISECONDS} ms, {} MiB", MEMORY >> 20);
    missed
}

/// How long this thread has run.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts");
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}
