//! CustomResourceDefinitions and what they do to custom resources.
//!
//! Everything here is a pure function of trees: a definition is checked and read once
//! ([`definition`], [`schema`]), then each object of it is pruned, defaulted, validated,
//! converted and printed by that. The order for a write is: [`prune`], [`defaults`], the
//! rules of [`resource`], [`validate`], [`list_type`], and the expressions of [`validations`].
//!
//! Absent on purpose: requests and storage.

pub mod columns;
mod correlation;
pub mod defaults;
pub mod definition;
pub mod embedded;
mod field_path;
mod format_codes;
mod formats;
pub(crate) mod go_value;
pub mod list_type;
pub(crate) mod names;
mod pattern;
pub mod prune;
pub mod resource;
mod rule;
mod rule_checks;
pub mod scale;
pub mod schema;
mod schema_rules;
pub mod selectable;
mod structural;
pub mod validate;
pub(crate) mod validations;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
