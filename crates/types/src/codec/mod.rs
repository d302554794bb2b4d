//! Between bytes and [`crate::Value`]: JSON, YAML and protobuf, driven by the tables.
//!
//! A decoded object of a built-in kind is *normal*: it holds exactly the fields that Go's
//! JSON encoding of the same object shows. So a field without `omitempty` is present
//! with its zero value (`""`, `0`, `null`, `{}`), and one with it is absent when it is
//! zero. One list stays when it is empty: `managedFields`, where that is a request. Patches
//! and field management can work on the tree as if it were that JSON.
//!
//! Absent on purpose: any code for one kind, and bytes of a value in an error's text.

use std::fmt;

pub mod autoscaling;
pub mod definitions;
pub mod identity;
pub mod json;
pub mod limits;
pub mod proto;
pub mod quantity;
pub mod text;
pub mod times;
pub mod transcode;
mod wire;
pub mod yaml;
mod zero;

pub use zero::normalize;

/// Why bytes are no object, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl DecodeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}
