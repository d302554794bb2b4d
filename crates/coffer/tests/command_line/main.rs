//! The command line as a user meets it: transcripts that are run again, and what scripts rely on.
#![allow(missing_docs, reason = "tests")]

#[path = "../../../config/tests/cases/mod.rs"]
#[allow(dead_code, reason = "shared by several test targets")]
mod cases;
mod config;
mod fixture;
mod output;
mod transcripts;
