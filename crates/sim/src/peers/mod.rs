//! The originals, and coffer beside them, as processes: started on free loopback ports, with directories of their own,
//! ended by process id when dropped.
//!
//! Programs come from the cache that `peers/install.py` fills. A missing one is a failure of
//! the test that wants it, never a skip.

mod coffer;
mod etcd;
mod http;
mod kube_apiserver;
mod kubectl;
mod openbao;
mod pki;
mod process;

use std::net::TcpListener;
use std::path::PathBuf;

pub use coffer::Coffer;
pub use etcd::Etcd;
pub use http::{Answer, request};
pub use kube_apiserver::{ApiserverOptions, KubeApiserver};
pub use kubectl::Kubectl;
pub use openbao::OpenBao;
pub use pki::Pki;
pub use process::{Output, Process, run, run_into, until};

/// A program of the peers' cache.
///
/// # Panics
/// When it is not installed; the text says how to install it.
pub fn program(name: &str) -> PathBuf {
    let cache = std::env::var_os("COFFER_PEERS").map(PathBuf::from).unwrap_or_else(|| {
        let caches = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".cache"));
        caches.join("coffer-peers")
    });
    let path = cache.join("bin").join(name);
    assert!(path.exists(), "{} is missing; install it with: cargo xtask peers {name}", path.display());
    path
}

/// A loopback port that was free a moment ago.
///
/// # Panics
/// When the machine has none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
    listener.local_addr().expect("a bound address").port()
}
