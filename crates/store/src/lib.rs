//! etcd's data model with two engines, the generic registry store and its watch cache.
//!
//! Absent on purpose: knowledge of any kind's rules, HTTP, and a clock of its own.

pub mod embedded;
pub mod etcd;
pub mod kv;
pub mod limits;
pub mod registry;
