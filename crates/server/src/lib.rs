//! The API server: HTTP, discovery, authentication, authorization, admission, resource strategies and in-process controllers.
//!
//! Absent on purpose: printing, arguments, environment, and any use of `node`, `keys` or `operator`.

pub mod admission;
pub mod api;
pub mod authn;
pub mod authz;
pub mod body;
pub mod controllers;
mod conversion;
pub mod crd;
mod discovery;
mod duration;
pub mod encryption;
mod gzip;
mod handlers;
pub mod health;
pub mod kms;
pub mod kubelet;
mod metrics;
mod negotiate;
mod openapi;
pub mod pki;
pub mod pod_references;
pub mod ports;
mod query;
mod quota;
mod reinvocation;
mod resources;
mod respond;
mod route;
pub mod security;
pub mod serve;
pub mod service_addresses;
mod standard_checks;
mod state;
pub mod tokens;
pub mod virtual_resources;
mod webhook;
mod wire;

#[cfg(test)]
mod testing;

pub(crate) use coffer_types::validation::field::go_quote as quote;
