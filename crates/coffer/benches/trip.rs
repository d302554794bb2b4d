//! `cargo xtask bench trip`: the whole API path of coffer and kube-apiserver, with few clients and many.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

#[allow(
    dead_code,
    reason = "shared with the benchmarks of the store and of clients, which use the rest of it"
)]
mod servers;

use servers::{Figure, OBJECTS, Row};

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "trip") {
        return;
    }
    let row = |what, figure| Row { what, figure, target: None };
    let rate = |what, arguments| row(what, Figure::Rate(arguments));
    servers::compare(&[
        row("resident memory idle (MiB)", Figure::Resident),
        rate("create, 16 clients", &["-op", "create", "-n", OBJECTS, "-c", "16", "-conns", "4", "-mkns"]),
        rate("update, 16 clients", &["-op", "update", "-n", "4000", "-c", "16", "-conns", "4"]),
        rate("get by name, linearizable, 1 client", &["-op", "get", "-n", "20000", "-c", "1"]),
        rate(
            "get by name, linearizable, 64 clients",
            &["-op", "get", "-n", "20000", "-c", "64", "-conns", "4"],
        ),
        rate(
            "list of 10,000, protobuf, plain",
            &["-op", "list", "-n", "10", "-content", "protobuf", "-raw", "-gzip=false"],
        ),
        rate(
            "list of 10,000, protobuf, gzipped",
            &["-op", "list", "-n", "10", "-content", "protobuf", "-raw"],
        ),
        rate(
            "list of 10,000, JSON, plain",
            &["-op", "list", "-n", "10", "-content", "json", "-raw", "-gzip=false"],
        ),
        rate("list of 10,000, JSON, gzipped", &["-op", "list", "-n", "10", "-content", "json", "-raw"]),
        rate(
            "watch, 500 watchers, 200 updates (events)",
            &["-op", "watchfan", "-watchers", "500", "-n", "200", "-conns", "8"],
        ),
        row("resident memory afterwards (MiB)", Figure::Resident),
    ]);
}
