//! The work queue of every controller.
//!
//! The rules stand in [`core`] as a pure state machine over an injected time;
//! [`WorkQueue`] is the thin shell that waits, wakes and spawns.
//! Absent on purpose: a second instance of a key at the same time, and any
//! order that lets a slow lane hold up another one.

pub mod core;
mod shell;

pub use self::core::{QueueConfig, Urgency};
pub use shell::{Outcome, Work, WorkQueue};
