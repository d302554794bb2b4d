//! CEL as Kubernetes 1.37 has it: compiled once with declared types, evaluated
//! within budgets.
//!
//! [`functions`] says how a library declares its functions, [`environment`]
//! what an expression can use, [`value`] what it works on.
//! Absent on purpose: a clock, randomness, and any function that can reach
//! outside of its arguments.

pub mod admission;
mod base64;
mod check;
pub mod declared;
pub mod environment;
mod equality;
pub mod error;
pub mod estimate;
pub mod functions;
pub mod libraries;
pub mod limits;
mod list;
mod map;
pub mod patches;
pub mod program;
mod regex;
pub mod schemas;
mod standard;
pub mod syntax;
mod text;
pub mod times;
pub mod types;
pub mod value;
