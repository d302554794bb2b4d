//! Who owns which field: `metadata.managedFields`, kept as upstream's field manager keeps it.
//!
//! [`set`] is the set of paths that an entry holds, [`compare`] finds what a
//! write changed, [`manage`] moves ownership. Server-side apply is not here.

pub mod compare;
pub mod manage;
pub mod set;

pub use compare::{Comparison, Schema, compare};
pub use manage::{Write, ignore_timestamps, update};
pub use set::{PathElement, Set};
