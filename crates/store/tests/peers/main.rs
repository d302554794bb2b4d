//! The store's tests that need a real etcd, or minutes.
//!
//! `COFFER_PEERS` names the directory with `bin/etcd`; without it they fail.

#[path = "../it/kv/shared.rs"]
mod kv;

mod differential;
mod etcd;
mod network;
mod tls;

mod promises {
    crate::kv::suite::promises!(crate::etcd::fixture);
}
