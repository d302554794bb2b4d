//! The API server: HTTP, discovery, authentication, authorization, admission, resource strategies and in-process controllers.
//!
//! Absent on purpose: printing, arguments, environment, and any use of `node`, `keys` or `operator`.

pub mod ports;

pub mod admission;
pub mod authn;
pub mod authz;
pub mod controllers;
pub mod crd;
pub mod pki;
pub mod security;
pub mod tokens;
pub mod virtual_resources;

#[cfg(test)]
mod testing;
