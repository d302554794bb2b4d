//! The built binary beside the originals: kubectl, kube-apiserver, etcd, OpenBao.
//!
//! They come from the cache that `cargo xtask peers` fills; a missing one is a failure, never a skip.

mod bootstrap;
mod canary;
mod interchange;
mod kubectl;
mod marks;
mod requests;
mod running;
mod support;
mod trip;
