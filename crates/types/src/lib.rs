//! Kubernetes objects and config kinds spoken here: their codecs, defaulting and validation.
//!
//! Absent on purpose: an async runtime, a clock, files, the network, and logging.
//! One dynamic tree ([`Value`]) and one set of tables ([`schema`]) serve all
//! built-in kinds; there is no struct and no code per kind for encoding.

pub mod codec;
pub mod defaults;
pub mod fields;
mod go_quote;
pub mod meta;
pub mod names;
pub mod patch;
pub mod print;
pub mod random;
pub mod schema;
mod secret_bytes;
pub mod status;
pub mod time;
pub mod validation;
pub mod value;

pub use secret_bytes::SecretBytes;
pub use status::Status;
pub use value::{Map, Value};
