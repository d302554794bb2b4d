//! Defaulting and validation of the kinds that are spoken, with upstream's exact texts.
//!
//! Absent on purpose: admission, authorization, and anything that looks at other objects.

pub mod field;
