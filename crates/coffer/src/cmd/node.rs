//! `coffer node`: the node alone, on any Kubernetes API server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coffer_node::files::RealFiles;
use coffer_node::volume::tmpfs::{self, RealMounter};
use coffer_node::{NodeConfig, NodeError};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::random::SystemRandom;
use tokio_util::sync::CancellationToken;

use crate::cli::{Global, Node};
use crate::exit::{Exit, Failure};
use crate::{client, signals};

/// Runs until it is asked to end.
pub(crate) async fn run(global: &Global, flags: &Node) -> Result<Exit, Failure> {
    let client = client::connect(global).await?;
    let name = flags.hostname_override.clone().unwrap_or_else(host_name);
    let stop = CancellationToken::new();
    let node = coffer_node::run(config(client, name.clone(), flags.root_dir.clone()), stop.clone());
    tokio::pin!(node);
    tokio::select! {
        ended = &mut node => ended.map_err(|error| failure(&error))?,
        () = signals::asked_to_end() => {
            stop.cancel();
            node.await.map_err(|error| failure(&error))?;
            // No container holds the files, and nobody would keep them current.
            clear(&name, &flags.root_dir)?;
        }
    }
    Ok(Exit::Done)
}

/// A node on this machine.
pub(crate) fn config(client: kube::Client, node_name: String, root: PathBuf) -> NodeConfig {
    NodeConfig {
        client,
        instance: instance(&node_name, &root),
        node_name,
        root,
        memory_candidates: memory_candidates(),
        clock: Arc::new(SystemClock::new()),
        random: Arc::new(SystemRandom::new()),
        mounter: Arc::new(RealMounter),
        files: Arc::new(RealFiles),
    }
}

/// Wipes and unmounts what a node left in memory.
pub(crate) fn clear(node_name: &str, root: &Path) -> Result<(), Failure> {
    tmpfs::clear(&RealMounter, root, &memory_candidates(), &instance(node_name, root))
        .map_err(|error| Failure::problem(format!("cannot clear {}: {error}", root.display())))
}

fn memory_candidates() -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.into_iter().chain([PathBuf::from("/dev/shm")]).collect()
}

/// Two nodes of one name in two directories on one machine do not share a directory in memory.
fn instance(node_name: &str, root: &Path) -> String {
    format!("{node_name}-{:016x}", fingerprint(root))
}

/// FNV-1a of a path: the same at every start, and no secret.
fn fingerprint(path: &Path) -> u64 {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// What the user reads when the node cannot go on.
pub(crate) fn failure(error: &NodeError) -> Failure {
    Failure::problem(error)
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_lowercase(),
    }
}
