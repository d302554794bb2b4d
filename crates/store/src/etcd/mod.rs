//! The etcd engine.

pub(crate) mod wire;
