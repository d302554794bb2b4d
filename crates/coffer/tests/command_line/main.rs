//! The command line as a user meets it: transcripts that are run again, and what scripts rely on.
#![allow(missing_docs, reason = "tests")]

mod config;
mod deep_rules;
mod fixture;
mod foreign_keys;
mod keys;
mod kms_plugin;
mod operator;
mod output;
mod running;
mod signals;
mod transcripts;
mod watch;
