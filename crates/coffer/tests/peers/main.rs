//! The built binary beside the originals: kubectl, kube-apiserver, etcd, OpenBao.
//!
//! They come from the cache that `cargo xtask peers` fills; a missing one is a failure, never a skip.

mod audit;
mod bootstrap;
mod canary;
mod clients;
mod custom_resources;
mod differential;
mod helm;
mod interchange;
mod kms;
mod kubectl;
mod masks;
mod memory;
mod metrics;
mod migrate;
mod openapi;
mod python;
mod reload;
mod requests;
mod story;
mod trip;
mod webhook;
mod webhooks;

use std::process::Command;

/// The binary under test.
fn quiet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coffer"));
    command.env_remove("KUBECONFIG");
    command
}

/// The same with logs at the finest level, its libraries' too: the log is part of what is looked at.
fn loud() -> Command {
    let mut command = quiet();
    command.env("COFFER_LOG", "trace").env("RUST_BACKTRACE", "1").env("NO_COLOR", "1");
    command
}
