//! What the tests with and without peers share.

#[path = "helpers.rs"]
pub(crate) mod helpers;
#[path = "suite.rs"]
pub(crate) mod suite;

#[path = "crash.rs"]
mod crash;
#[path = "kill.rs"]
mod kill;
