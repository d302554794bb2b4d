//! `cargo xtask bench store`: what the registry and its cache cost, held against the targets.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

#[allow(dead_code, reason = "shared with the benchmark of clients, which uses the rest of it")]
mod servers;

use servers::{Figure, OBJECTS, Row, Target};

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "store") {
        return;
    }
    let row = |what, figure, target| Row { what, figure, target: Some(target) };
    let rate = |what, arguments, least| row(what, Figure::Rate(arguments), Target::RatioAtLeast(least));
    let cost = |what, arguments, most| row(what, Figure::Cost(arguments), Target::RatioAtMost(most));
    servers::compare(&[
        row("ready, few objects (s)", Figure::Ready, Target::AtMost(0.2)),
        row("resident memory idle (MiB)", Figure::Resident, Target::RatioAtMost(0.12)),
        rate(
            "create, 64 clients (per CPU s)",
            &["-op", "create", "-n", OBJECTS, "-c", "64", "-conns", "4", "-mkns"],
            4.0,
        ),
        row("resident memory after 10,000 (MiB)", Figure::Resident, Target::RatioAtMost(0.15)),
        rate(
            "get by name, 64 clients (per CPU s)",
            &["-op", "get", "-n", "40000", "-c", "64", "-conns", "4"],
            8.0,
        ),
        rate(
            "update, 64 clients (per CPU s)",
            &["-op", "update", "-n", OBJECTS, "-c", "64", "-conns", "4"],
            4.0,
        ),
        cost(
            "LIST of 10,000, protobuf, plain (CPU ms)",
            &["-op", "list", "-n", "20", "-content", "protobuf", "-raw", "-gzip=false"],
            0.2,
        ),
        cost(
            "LIST of 10,000, protobuf, gzipped (CPU ms)",
            &["-op", "list", "-n", "10", "-content", "protobuf", "-raw"],
            0.4,
        ),
        cost(
            "LIST of 10,000, JSON, plain (CPU ms)",
            &["-op", "list", "-n", "20", "-content", "json", "-raw", "-gzip=false"],
            0.2,
        ),
        cost(
            "LIST of 10,000, JSON, gzipped (CPU ms)",
            &["-op", "list", "-n", "10", "-content", "json", "-raw"],
            0.4,
        ),
        row("resident memory after all of this (MiB)", Figure::Resident, Target::RatioAtMost(0.15)),
        row("ready, 10,000 objects (s)", Figure::Ready, Target::AtMost(0.2)),
    ]);
}
