//! `cargo xtask conformance`: the long versions of what every test run does briefly.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use crate::peers::{cache, cargo, install, module, run};

/// Histories of concurrent clients under faults, each kind of run for so many minutes.
pub(crate) fn linearizability(minutes: u32) -> anyhow::Result<()> {
    install(&["etcd"])?;
    run(cargo()
        .args(["test", "--package", "coffer-store", "--features", "peers", "--test", "peers"])
        // One after the other: each has the machine to itself, and its line is seen.
        .args(["linearizability::", "--", "--nocapture", "--test-threads=1"])
        .env("COFFER_PEERS", cache()?)
        .env("COFFER_LINEARIZABILITY_SECONDS", (u64::from(minutes) * 60).to_string()))
}

/// What cannot hold on etcd 3.4.23, which is what Debian has: it does not tell on request how far a watch is. etcd
/// does so from 3.4.31 and 3.5.13 on. Without it there is no watch that begins with a list, and consistent reads go
/// to etcd one by one, as upstream; these tests look for the watch cache's answer.
const WITHOUT_PROGRESS: &[&str] = &[
    "promises::progress_is_reported_on_request",
    "corrupt::unreadable_objects_are_served_once_their_key_is_there",
    "counting::each_request_to_the_engine_is_counted",
    "counting::list_metrics",
    "delegation::should_delegate_list",
    "list::consistent_list",
    "list::consistent_read_fallback",
    "list::consistent_reads_share_round_trips",
    "list_table::list_cases",
    "model::concurrent_clients_agree_with_the_log",
    "unready::an_unfilled_cache_delegates_bounded_lists",
    "unready::an_unready_cache_answers_429",
    "watch::too_large_resource_version_for_watch_list",
    "watch::watch_list_match_single",
    "watch::watch_semantic_initial_events_extended",
    "watch::watch_semantics",
];

/// The store's whole suites on every etcd that is meant to work.
pub(crate) fn etcd() -> anyhow::Result<()> {
    let versions = [("etcd-3.4", WITHOUT_PROGRESS), ("etcd-3.5", &[]), ("etcd-3.6", &[]), ("etcd", &[])];
    install(&versions.map(|(version, _)| version))?;
    for (version, skipped) in versions {
        eprintln!("xtask: {version}, without {skipped:?}");
        run(cargo()
            .args(["test", "--package", "coffer-store", "--features", "peers", "--test", "peers"])
            .args(["--", "promises::", "registry_store::"])
            .args(skipped.iter().flat_map(|name| ["--skip", name]))
            .env("COFFER_PEERS", cache()?)
            .env("COFFER_ETCD", version))?;
    }
    Ok(())
}

/// Programs that are built on client-go and controller-runtime, through so many changes each.
pub(crate) fn clients(changes: u32) -> anyhow::Result<()> {
    install(&["clients", "etcd", "kube-apiserver", "kubectl"])?;
    run(cargo()
        .args(["test", "--package", "coffer", "--features", "peers", "--test", "peers"])
        .args(["clients::", "--", "--nocapture", "--test-threads=1"])
        .env("COFFER_PEERS", cache()?)
        .env("COFFER_CLIENT_CHANGES", changes.to_string()))
}

/// The External Secrets Operator, unmodified, on coffer.
pub(crate) fn operator() -> anyhow::Result<()> {
    install(&["external-secrets", "external-secrets.test", "etcd", "kube-apiserver", "kubectl"])?;
    let sources = module("go/external-secrets", "github.com/external-secrets/external-secrets")?;
    run(cargo()
        .args(["test", "--package", "coffer", "--features", "peers", "--test", "conformance"])
        .args(["external_secrets::", "--", "--nocapture", "--test-threads=1"])
        .env("COFFER_PEERS", cache()?)
        .env("COFFER_EXTERNAL_SECRETS", sources))
}

/// Generated CEL expressions beside kube-apiserver's environment for so many seconds, others each time; the first
/// that differs is made as small as it can be.
pub(crate) fn cel(seconds: u32) -> anyhow::Result<()> {
    install(&["cel"])?;
    let seed = RandomState::new().build_hasher().finish();
    run(cargo()
        .args(["test", "--package", "coffer-lang", "--features", "peers", "--test", "peers"])
        .args(["differential::", "--", "--nocapture"])
        .env("COFFER_PEERS", cache()?)
        .env("COFFER_SEED", seed.to_string())
        .env("COFFER_SECONDS", seconds.to_string()))
}

/// Every decoder for so many minutes.
pub(crate) fn fuzz(minutes: u32) -> anyhow::Result<()> {
    crate::fuzz::run(&[], minutes.saturating_mul(60))
}
