//! Defaulting and validation of the kinds that are spoken, with upstream's exact texts.
//!
//! Absent on purpose: admission, authorization, and anything that looks at other objects.

pub mod field;
pub mod go_json;
pub mod meta;
pub mod node;
pub mod pem;
pub mod plain;
pub mod pod;
pub mod rbac;
pub mod secret;
#[cfg(test)]
pub(crate) mod testing;
