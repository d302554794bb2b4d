//! The kubelet's Secret side: managers, volumes, environment, pull credentials.
//!
//! Absent on purpose: a container runtime (a later room), any use of the server,
//! a disk for secret bytes, and a timer between a change and its file: the watch
//! event moves it, and a periodic pass only makes up for events that were lost.

mod agent;
pub mod data_object;
pub mod env;
pub mod files;
pub mod manager;
mod metrics;
pub mod pod_warnings;
pub mod references;
pub mod report;
pub mod volume;

pub use agent::{NodeConfig, NodeError, run};
