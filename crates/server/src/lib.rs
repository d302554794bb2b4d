//! The API server: HTTP, discovery, authentication, authorization, admission, resource strategies and in-process controllers.
//!
//! Absent on purpose: printing, arguments, environment, and any use of `node`, `keys` or `operator`.

pub mod ports;
