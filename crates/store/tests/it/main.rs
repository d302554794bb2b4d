//! Tests of the store through its public interface.

mod kv;
mod registry;
mod registry_embedded;
