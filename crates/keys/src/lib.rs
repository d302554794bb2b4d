//! The encryption manager: key files, and where a stored copy's key is named.
//!
//! Absent on purpose: any use of the server, and any value or key in an answer.

pub mod at_rest;
