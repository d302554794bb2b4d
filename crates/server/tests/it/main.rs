//! The server over HTTP, in one process and without a socket, on the embedded store.
#![allow(missing_docs, reason = "tests")]

mod apply;
mod bad_input;
mod custom_conversion;
mod custom_life;
mod custom_scale;
mod custom_selectors;
mod discovery;
mod full_disk;
mod hook;
mod kinds;
mod kms;
mod large_lists;
mod limits;
mod namespace_limits;
mod network;
mod objects;
mod panics;
mod pod_logs;
mod records;
mod reload;
mod secured;
mod siblings;
mod support;
mod unreadable;
mod webhooks;
mod wire_client;
