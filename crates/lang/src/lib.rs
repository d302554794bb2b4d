//! Pure evaluators with step and size limits: selectors, JSONPath and CEL.
//!
//! Absent on purpose: an async runtime, a clock, files, the network, and logging.

pub mod cel;
pub mod field_selector;
pub mod jsonpath;
pub mod label_selector;
pub mod limits;
pub mod printer_columns;
