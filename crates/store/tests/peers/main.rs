//! The store's tests that need a real etcd, or minutes.
//!
//! `COFFER_PEERS` names the directory with `bin/etcd`; without it they fail.

#[path = "../it/kv/shared.rs"]
mod kv;
#[path = "../it/linearizability/mod.rs"]
mod linearizability;
#[path = "../it/registry/mod.rs"]
mod registry;

mod differential;
mod etcd;
mod etcd_history;
mod network;
mod snapshot;
mod tls;

mod promises {
    crate::kv::suite::promises!(crate::etcd::fixture);
}

mod registry_store {
    use std::sync::Arc;

    use crate::registry::world::Engine;

    async fn engine() -> Engine {
        let server = crate::etcd::Etcd::start().await;
        Engine { kv: Arc::new(server.client().await), clock: None, server: Box::new(server) }
    }

    crate::registry::suite!(crate::registry_store::engine);
}
