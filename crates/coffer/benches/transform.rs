//! `cargo xtask bench transform`: a Secret's value to and from storage, by coffer and by the Go module
//! k8s.io/apiserver, in turns.
//!
//! Both load the same EncryptionConfiguration the way their servers do, metrics included, and transform the
//! same bytes for the same etcd key in one thread. Figures are CPU time, what is allocated and freed
//! included: on the Go side of the whole process, because its garbage is collected beside.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's output is what it prints")]

#[path = "../../crypto/tests/peers/original.rs"]
mod original;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use coffer_config::encryption::Reload;
use coffer_crypto::Transformer;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use coffer_server::encryption::{Loader, LoaderParts};
use coffer_sim::peers::{Process, program};
use original::Original;
use serde_json::{Value, json};

const CONTEXT: &str = "/registry/secrets/namespace-1/database-credentials";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// CPU time of one measurement at least.
const ENOUGH: Duration = Duration::from_millis(100);
/// Each side's turns; the fastest one counts.
const TURNS: usize = 7;

/// Provider, direction, and by how many times coffer is to be faster at 1 KiB and at 16 KiB.
const TARGETS: [(&str, f64, f64); 4] =
    [("aesgcm", 2.5, 4.0), ("aescbc", 2.0, 4.0), ("secretbox", 3.0, 4.0), ("kms", 4.0, 4.0)];

fn main() {
    // `cargo test --all-targets` builds and runs benchmarks too: only a named run measures.
    if !std::env::args().any(|argument| argument == "transform") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let _plugin = plugin(directory.path());
    let mut original = Original::start("transform");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("{:<34}{:>10}{:>10}{:>8}  {:<9}", "ns of CPU time per value", "Go", "coffer", "ratio", "target");
    let mut missed = 0;
    for (provider, small, large) in TARGETS {
        let config = configuration(provider, directory.path());
        let loaded = runtime.block_on(loader().load(config.as_bytes())).expect("a configuration");
        let transformer = loaded.transformers().transformer_for("", "secrets");
        for (size, target) in [(1 << 10, small), (16 << 10, large)] {
            let plain: Vec<u8> = (0..size).map(|index: u32| (index * 167 % 251) as u8).collect();
            for direction in ["to", "from"] {
                let (theirs, ours) = turns(&mut original, &config, &*transformer, direction, &plain);
                let ratio = theirs / ours;
                let verdict = if target <= ratio { "holds" } else { "MISSING" };
                missed += usize::from(ratio < target);
                let what = format!("{provider} {direction} storage, {} KiB", size >> 10);
                println!("{what:<34}{theirs:>10.0}{ours:>10.0}{ratio:>8.2}  >= {target:<6} {verdict}");
            }
        }
    }
    if 0 < missed {
        println!("{missed} targets are missed");
    }
}

/// The fastest of each side, which take turns.
fn turns(
    original: &mut Original,
    config: &str,
    transformer: &dyn Transformer,
    direction: &str,
    plain: &[u8],
) -> (f64, f64) {
    let (mut theirs, mut ours) = (f64::MAX, f64::MAX);
    for _ in 0..TURNS {
        let answer = original.ask(&json!({
            "op": "bench", "config": config, "direction": direction, "context": CONTEXT,
            "value": STANDARD.encode(plain), "milliseconds": ENOUGH.as_millis() as u64,
        }));
        let took = answer.get("nanoseconds").and_then(Value::as_f64);
        theirs = theirs.min(took.unwrap_or_else(|| panic!("{direction}: {answer}")));
        // The work is the same: each side reads what the other wrote.
        let stored = STANDARD.decode(answer["value"].as_str().unwrap_or_default()).expect("base64");
        let read = transformer.from_storage(&stored, CONTEXT.as_bytes()).expect("readable");
        assert!(read.bytes.expose() == plain, "another value was read");
        ours = ours.min(match direction {
            "to" => cost(|| {
                // As the registry does.
                let sealed = transformer.to_storage(plain, CONTEXT.as_bytes()).expect("can be written");
                drop(std::hint::black_box(Bytes::from(sealed)));
            }),
            _ => cost(|| {
                let opened = transformer.from_storage(&stored, CONTEXT.as_bytes()).expect("readable");
                drop(std::hint::black_box(Bytes::from_owner(opened.bytes)));
            }),
        });
    }
    (theirs, ours)
}

/// Runs something more and more often, until that takes long enough, and gives nanoseconds of one run.
fn cost(mut once: impl FnMut()) -> f64 {
    let mut count = 1_u32;
    loop {
        let before = thread_time();
        for _ in 0..count {
            once();
        }
        let took = thread_time() - before;
        if ENOUGH <= took {
            return took.as_nanos() as f64 / f64::from(count);
        }
        count *= 2;
    }
}

/// How long this thread has run.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts");
    let nanoseconds = text.split_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn loader() -> Loader {
    Loader::new(LoaderParts {
        file: "bench".to_owned(),
        reload: Reload::Never,
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::new()),
        metrics: Arc::default(),
        allow_kms_v1: false,
    })
}

fn configuration(provider: &str, directory: &Path) -> String {
    let provider = match provider {
        "kms" => {
            let endpoint = format!("unix://{}", directory.join("kms.sock").display());
            json!({"kms": {"apiVersion": "v2", "name": "plugin", "endpoint": endpoint}})
        }
        keyed => json!({keyed: {"keys": [{"name": "key1", "secret": KEY}]}}),
    };
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [provider]}],
    })
    .to_string()
}

/// A KMS plugin that owes nothing to coffer, for both sides.
fn plugin(directory: &Path) -> Process {
    let (keys, socket) = (directory.join("keys"), directory.join("kms.sock"));
    std::fs::write(&keys, "key-one").expect("written");
    let mut process = Process::start("kms", Command::new(program("kms")).arg(&socket).arg(&keys), directory);
    process.wait_until(|| socket.exists());
    process
}
