//! The encryption manager: what is stored under which key, and whether a held key opens it.
//!
//! Absent on purpose: any use of the server, and any value or key in an answer.

pub mod at_rest;
pub mod audit;
pub mod inspect;
pub mod kms_plugin;
pub mod migrate;
mod place;
