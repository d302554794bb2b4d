//! EncryptionConfiguration: every rule and text, and which transformer a resource gets.
#![allow(missing_docs, reason = "tests")]

mod build;
mod kms;
mod rules;
mod support;
