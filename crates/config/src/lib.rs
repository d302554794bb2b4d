//! Strict loading of the apiserver.config.k8s.io kinds and of our own.
//!
//! Every rule and every text is upstream's, because runbooks match on them, with one
//! exception: nothing of a key, and nothing of a file that may hold one, is ever in
//! an error.
//!
//! Absent on purpose: files. Callers bring bytes; when new bytes replace old ones is a table
//! ([`encryption::reload`]) that callers act on.

pub mod encryption;
mod error;
mod go_duration;
mod go_url;
mod strict;

pub use error::{ConfigError, Problem};
