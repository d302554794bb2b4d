//! The kubelet's Secret side: managers, volumes, environment, pull credentials.
//!
//! Absent on purpose: a container runtime (a later room), any use of the server,
//! a disk for secret bytes, and a timer between a change and its file: the watch
//! event alone moves it.

mod agent;
pub mod env;
pub mod files;
pub mod manager;
pub mod pod_warnings;
pub mod references;
pub mod report;
pub mod secret;
pub mod volume;

pub use agent::{NodeConfig, NodeError, run};
