//! EncryptionConfiguration: every rule and text, and which transformer a resource gets.
#![allow(missing_docs, reason = "tests")]

mod build;
#[path = "../cases/mod.rs"]
#[allow(dead_code, reason = "shared by two test targets")]
mod cases;
mod rules;
mod support;
