//! Tests of the store through its public interface.

mod kv;
mod linearizability;
mod registry;
mod registry_embedded;
mod snapshot;
