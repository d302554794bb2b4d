//! What is wrong with field sets and those who own them.

/// A `FieldsV1` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SetError(String);

impl SetError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
