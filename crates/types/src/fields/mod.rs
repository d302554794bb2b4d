//! Who owns which field: `metadata.managedFields` and server-side apply, as upstream's field manager
//! and structured merge have them.
//!
//! [`set`] and [`element`] are the paths that an entry holds, [`shape`] is what a schema says of a
//! place, [`compare`] finds what a write changed, [`update`] moves ownership, [`apply`] merges what a
//! manager wants. Everything is pure: the time and the schemas come in.

pub mod apply;
pub mod compare;
pub mod conflict;
pub mod element;
pub mod error;
mod last_applied;
mod managers;
mod merge;
mod name;
pub mod numbers;
mod reconcile;
mod remove;
pub mod scale;
pub mod set;
mod shape;
pub mod typed;
pub mod update;

pub use apply::{Applied, Apply, ApplyError};
pub use compare::{Comparison, compare};
pub use conflict::{Conflict, Conflicts};
pub use element::{PathElement, Scalar};
pub use error::SetError;
pub use managers::{UPDATE_ENTRIES_LIMIT, check, ignore_timestamps};
pub use name::Name;
pub use set::Set;
pub use shape::Schema;
pub use typed::{Duplicates, TypeErrors, validate};
pub use update::{OneVersion, VersionError, Versions, Write, update};
