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
pub mod kv;
pub mod limits;
pub mod registry;
mod shared;
mod storage;

pub use storage::{Storage, Transformers};
