//! The store that `audit` and `inspect` read: a running etcd, a directory that no server uses, or
//! whatever a running server stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coffer_runtime::clock::SystemClock;
use coffer_store::embedded::{DATA_FILE, Lock, OpenError};
use coffer_store::kv::Kv;
use coffer_types::time::Clock;
use serde::de::DeserializeOwned;

use crate::cli::{Global, StoreFlags};
use crate::client::{self, Server};
use crate::control_plane::{data_dir, store};
use crate::exit::Failure;

/// Who reads.
pub(super) enum Place {
    /// This process.
    Store(Arc<dyn Kv>),
    /// The server that holds the store, with the keys that it uses.
    Server(Server),
}

/// Opens what the flags name. A store that does not exist is not made.
pub(super) async fn open(global: &Global, flags: &StoreFlags) -> Result<Place, Failure> {
    if flags.api_server {
        return Ok(Place::Server(connect(global).await?));
    }
    for (flag, given) in
        [("--kubeconfig", global.kubeconfig.is_some()), ("--context", global.context.is_some())]
    {
        if given {
            return Err(Failure::usage(format!("{flag} has no effect without --api-server")));
        }
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let directory = match &flags.data_dir {
        Some(directory) => existing(directory)?,
        None => PathBuf::new(),
    };
    if flags.data_dir.is_some()
        && let Err(error @ OpenError::Locked { .. }) = Lock::take(&directory)
    {
        return holder(global, &directory, &error).await.map(Place::Server);
    }
    Ok(Place::Store(store::open(&flags.etcd, &directory, &clock).await?))
}

/// The embedded store's directory, named itself or as the `--data-dir` of `coffer up`.
fn existing(directory: &Path) -> Result<PathBuf, Failure> {
    let found = [directory.to_owned(), directory.join("store")]
        .into_iter()
        .find(|candidate| candidate.join(DATA_FILE).is_file());
    found.ok_or_else(|| {
        Failure::unreachable(format!("{} holds no embedded store", directory.display()))
            .next("name the --data-dir of coffer up or coffer apiserver")
    })
}

/// The server that holds the store: that of `coffer up` has left its kubeconfig beside it.
async fn holder(global: &Global, store: &Path, locked: &OpenError) -> Result<Server, Failure> {
    let kubeconfig = store.join("..").join(data_dir::KUBECONFIG);
    if !kubeconfig.is_file() {
        return Err(Failure::unreachable(locked)
            .next("or ask that process: add --api-server --kubeconfig FILE in the place of --data-dir"));
    }
    connect(&Global { kubeconfig: Some(kubeconfig), context: None, ..global.clone() }).await
}

/// The server that the user means. One that is busy is not asked again behind the user's back: it says
/// when to come back.
async fn connect(global: &Global) -> Result<Server, Failure> {
    let mut config = client::configuration(global).await?;
    config.default_retry = false;
    Server::of(config)
}

/// The keys of a server stay with it: no others can be tried there.
pub(super) fn refuse_keys(config: Option<&Path>) -> Result<(), Failure> {
    match config {
        None => Ok(()),
        Some(_) => Err(Failure::usage(
            "a running server judges with the keys that it uses, not with those of --config",
        )
        .next("leave --config out, or end the server first")),
    }
}

/// What a server says about what it stores.
pub(super) async fn ask<T: DeserializeOwned>(server: &Server, path: &str) -> Result<T, Failure> {
    let request = http::Request::get(path).body(Vec::new()).map_err(Failure::usage)?;
    server.client.request::<T>(request).await.map_err(|error| not_told(server, &error))
}

/// Why a server does not say it.
pub(super) fn not_told(server: &Server, error: &kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 404 => Failure::unreachable(format!(
            "{} is no coffer API server: it does not tell what it stores",
            server.url
        ))
        .next("name its etcd: --etcd-servers URL"),
        kube::Error::Api(status) if status.code == 429 => {
            let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            client::unreachable(&server.url, error).next(format!("run it again in {} s", seconds.max(1)))
        }
        kube::Error::SerdeError(_) => other_version(server),
        error => client::unreachable(&server.url, error),
    }
}

/// An answer in a form that is not known here.
pub(super) fn other_version(server: &Server) -> Failure {
    Failure::unreachable(format!("{} answers as another version of coffer does", server.url))
}

/// A file that is no snapshot, or cannot be read as one.
pub(super) fn bad_snapshot(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::unreachable(format!("--snapshot {}: {error}", file.display()))
        .next("name a file of: etcdctl snapshot save FILE")
}
