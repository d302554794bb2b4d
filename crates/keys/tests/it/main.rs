//! Tests of the audit through its public interface.

mod audit;
mod inspect;
mod migrate;
mod plugin;
mod snapshot;
