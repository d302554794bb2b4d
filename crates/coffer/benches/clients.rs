//! `cargo xtask bench clients`: many watches, server-side apply, and their memory, held against the targets.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

#[allow(dead_code, reason = "shared with the benchmark of the store, which uses the rest of it")]
mod servers;

use servers::{Figure, OBJECTS, Row, Target};

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "clients") {
        return;
    }
    let rate = |what, arguments, target| Row { what, figure: Figure::Rate(arguments), target };
    let row = |what, figure, target| Row { what, figure, target: Some(target) };
    let five_times = Some(Target::RatioAtLeast(5.0));
    servers::compare(&[
        rate(
            "create, 64 clients (per CPU s)",
            &["-op", "create", "-n", OBJECTS, "-c", "64", "-conns", "4", "-mkns"],
            None,
        ),
        rate(
            "1,000 watchers, 500 updates, protobuf (per CPU s)",
            &["-op", "watchfan", "-watchers", "1000", "-n", "500", "-conns", "8"],
            five_times,
        ),
        rate(
            "1,000 watchers, 500 updates, JSON (per CPU s)",
            &["-op", "watchfan", "-watchers", "1000", "-n", "500", "-conns", "8", "-content", "json"],
            five_times,
        ),
        row(
            "resident, 10,000 Secrets, 1,000 watches (MiB)",
            Figure::Holding(&["-op", "watchhold", "-watchers", "1000", "-conns", "8"]),
            Target::RatioAtMost(0.12),
        ),
        rate(
            "server-side apply, create (per CPU s)",
            &["-op", "apply", "-n", "4000", "-c", "16", "-conns", "4", "-prefix", "a-", "-seed", "1"],
            five_times,
        ),
        rate(
            "server-side apply, no-op (per CPU s)",
            &["-op", "apply", "-n", "4000", "-c", "16", "-conns", "4", "-prefix", "a-", "-seed", "1"],
            five_times,
        ),
        rate(
            "server-side apply, change (per CPU s)",
            &["-op", "apply", "-n", "4000", "-c", "16", "-conns", "4", "-prefix", "a-", "-seed", "2"],
            five_times,
        ),
        row(
            "20,000 watches closed at once (memory, times)",
            Figure::Closing(&["-op", "watchhold", "-watchers", "20000", "-conns", "100"]),
            Target::AtMost(1.1),
        ),
        row(
            "20,000 watches cut off at once (memory, times)",
            Figure::Closing(&["-op", "watchhold", "-watchers", "20000", "-conns", "100", "-cut"]),
            Target::AtMost(1.1),
        ),
    ]);
}
