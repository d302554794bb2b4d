//! Why a configuration was refused.

use std::fmt;

use coffer_types::validation::field::{FieldError, FieldErrors, aggregate};

/// A configuration that was refused.
///
/// `Display` is upstream's text, which names the field and the rule, but not always
/// the file; `file` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as the caller named it.
    pub file: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a configuration. No text holds bytes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// There is nothing in it.
    Empty,
    /// It is no configuration of this kind, or holds fields that the kind does not have.
    Decode(String),
    /// It is a configuration of another kind.
    Kind(String),
    /// It breaks rules.
    Invalid(FieldErrors),
    /// It keeps the rules, but nothing can be built from it.
    Build(String),
}

impl ConfigError {
    /// The fields that break rules, if that is what is wrong.
    pub fn fields(&self) -> &[FieldError] {
        match &self.problem {
            Problem::Invalid(errors) => errors,
            Problem::Empty | Problem::Decode(_) | Problem::Kind(_) | Problem::Build(_) => &[],
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WHAT: &str = "encryption provider configuration file";
        let file = &self.file;
        match &self.problem {
            Problem::Empty => {
                write!(
                    formatter,
                    "error while parsing file: error while loading file: {WHAT} {file:?} is empty"
                )
            }
            Problem::Decode(text) => {
                write!(formatter, "error while parsing file: error decoding {WHAT} {file:?}: {text}")
            }
            Problem::Kind(kind) => {
                write!(formatter, "error while parsing file: got unexpected config type: {kind}")
            }
            Problem::Invalid(errors) => write!(formatter, "error while parsing file: {}", aggregate(errors)),
            Problem::Build(text) => write!(formatter, "error while building transformers: {text}"),
        }
    }
}

impl std::error::Error for ConfigError {}
