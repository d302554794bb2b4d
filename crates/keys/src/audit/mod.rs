//! What is stored, under which provider and key: every copy, live or in a snapshot file.
//!
//! An [`Auditor`] judges one stored copy; [`live`] and [`snapshot`] bring it all copies there
//! are; the [`Report`] holds totals by resource, provider and key, and each copy that is not as
//! it should be by name. Nothing of a value or key is ever in a report.

pub mod live;
mod misplaced;
mod newest;
mod report;
pub mod snapshot;
mod verdict;

pub use report::{Copies, Finding, Problem, Report};
pub use verdict::{Auditor, Verdict};
