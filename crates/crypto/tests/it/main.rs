//! The stored forms against vectors, upstream's cases and random input.
#![allow(missing_docs, reason = "tests")]

mod check_values;
mod derivation;
mod kms_fake;
mod kms_object;
mod kms_v1;
mod kms_v2;
mod prefix_list;
mod properties;
mod rotation;
mod support;
mod vectors;
