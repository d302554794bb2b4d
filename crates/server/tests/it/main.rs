//! The server over HTTP, in one process and without a socket, on the embedded store.
#![allow(missing_docs, reason = "tests")]

mod bad_input;
mod discovery;
mod network;
mod objects;
mod secured;
mod support;
