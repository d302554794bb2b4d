//! `coffer node`: the node alone, on any Kubernetes API server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coffer_node::files::RealFiles;
use coffer_node::volume::mounter::RealMounter;
use coffer_node::volume::tmpfs;
use coffer_node::{NodeConfig, NodeError};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::metrics::Registry;
use coffer_runtime::random::SystemRandom;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::cli::{Global, Node};
use crate::client::Server;
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{client, say};

/// Runs until it is asked to end.
pub(crate) async fn run(global: &Global, flags: &Node) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let Server { client, url } = client::connect(global).await?;
    // Absolute, as the pods' reports tell it and as mount points are named.
    let root = std::path::absolute(&flags.root_dir).map_err(Failure::problem)?;
    let name = flags.hostname_override.clone().unwrap_or_else(host_name);
    let stop = CancellationToken::new();
    let (started, place) = oneshot::channel();
    let mut config = config(client, name.clone(), root.clone(), Arc::default());
    config.started = Some(started);
    let node = coffer_node::run(config, stop.clone());
    tokio::pin!(node);
    let told = async {
        if let Ok(place) = place.await {
            let (root, place) = (root.display(), place.describe());
            say(&format!("coffer: node {name} works for {url} until Ctrl-C; -v says what it does"));
            say(&format!("  its root directory is {root}; Secret volumes are {place}"));
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = &mut node => ended.map_err(|error| failure(&url, &error))?,
        () = told => {}
        () = signals.asked_to_end() => {
            stop.cancel();
            node.await.map_err(|error| failure(&url, &error))?;
            // No container holds the files, and nobody would keep them current.
            clear(&name, &root).await?;
            signals::ended();
        }
    }
    Ok(Exit::Done)
}

/// A node on this machine.
pub(crate) fn config(
    client: kube::Client,
    node_name: String,
    root: PathBuf,
    metrics: Arc<Registry>,
) -> NodeConfig {
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
        metrics,
        started: None,
    }
}

/// Wipes and unmounts what a node left in memory, and says who would not let it go.
pub(crate) async fn clear(node_name: &str, root: &Path) -> Result<(), Failure> {
    let clock = SystemClock::new();
    let instance = instance(node_name, root);
    match tmpfs::clear(&RealMounter, &clock, root, &memory_candidates(), &instance).await {
        Ok(None) => Ok(()),
        Ok(Some(detached)) => {
            say(&format!("coffer: {detached}"));
            Ok(())
        }
        Err(error) => Err(Failure::problem(format!("cannot clear {}: {error}", root.display()))
            .next(format!("see what is mounted there: findmnt {}", root.display()))),
    }
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
pub(crate) fn failure(url: &str, error: &NodeError) -> Failure {
    let NodeError::Register { node, error } = error else { return Failure::problem(error) };
    let kube::Error::Api(status) = &**error else { return client::unreachable(url, error) };
    let refused = Failure::problem(format!("cannot register node {node} at {url}: {}", status.message));
    match status.code {
        401 => refused
            .next("the server does not accept the kubeconfig's credentials: name another with --kubeconfig"),
        403 => refused.next(format!(
            "act as this node (user system:node:{node} in the group system:nodes), \
             or name the node that this user is with --hostname-override"
        )),
        _ => refused,
    }
}

pub(super) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_lowercase(),
    }
}
