//! The operator on a stock kube-apiserver and etcd, with a real OpenBao.
//!
//! `COFFER_PEERS` names the folder with the peers' programs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails at that place")]

mod lead;
mod plane;
mod policies;
mod sharing;
mod trip;
mod world;
