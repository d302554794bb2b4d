//! etcd's data model with two engines, the generic registry store and its watch cache.
//!
//! Absent on purpose: knowledge of any kind's rules, HTTP, and a clock of its own.

pub mod cache;
pub mod compactor;
pub mod continue_token;
pub mod embedded;
pub mod etcd;
pub mod health;
pub mod key;
mod key_writes;
pub mod kv;
pub mod limits;
pub mod registry;
mod round_trips;
mod shared;
pub mod snapshot;
pub mod statistics;
mod storage;
pub mod stored_resource;

pub use key_writes::WRITES_PER_KEY;
pub use storage::{Storage, Transformers};
