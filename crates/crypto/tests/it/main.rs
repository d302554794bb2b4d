//! The stored forms against vectors, upstream's cases and random input.
#![allow(missing_docs, reason = "tests")]

mod check_values;
mod prefix_list;
mod properties;
mod rotation;
mod support;
mod vectors;
