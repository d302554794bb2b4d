//! Why an evaluation has no value.

use std::borrow::Cow;
use std::fmt;

use super::value::Value;

/// An evaluation's error.
///
/// `&&`, `||` and comprehensions over them absorb an error whose other side
/// decides; they never absorb one that ends the whole evaluation
/// ([`Error::ends_evaluation`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    message: Cow<'static, str>,
    kind: Kind,
}

/// What of an error is told by its kind and not by its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Of an operation.
    Plain,
    /// The cost limit is exceeded.
    Cost,
    /// The caller asked to stop.
    Interrupted,
    /// What the evaluation holds in memory is exceeded.
    Memory,
}

impl Error {
    /// An error of an operation.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), kind: Kind::Plain }
    }

    /// No overload fits the values.
    pub fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// A map or an object lacks `key`.
    pub fn no_such_key(key: &Value<'_>) -> Self {
        Self::new(format!("no such key: {}", key.in_messages()))
    }

    /// A map or an object lacks the member `name`.
    pub fn no_such_member(name: &str) -> Self {
        Self::new(format!("no such key: {name}"))
    }

    /// An integer's result does not fit.
    pub fn integer_overflow() -> Self {
        Self::new("integer overflow")
    }

    /// The cost limit is exceeded.
    pub fn cost_limit() -> Self {
        Self { message: Cow::Borrowed("operation cancelled: actual cost limit exceeded"), kind: Kind::Cost }
    }

    /// The caller asked to stop.
    pub fn interrupted() -> Self {
        Self { message: Cow::Borrowed("operation interrupted"), kind: Kind::Interrupted }
    }

    /// The evaluation would hold too much.
    pub fn memory_limit() -> Self {
        Self {
            message: Cow::Borrowed("operation cancelled: the expression's values need too much memory"),
            kind: Kind::Memory,
        }
    }

    /// The text, as upstream's.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the cost limit was exceeded.
    pub fn is_cost_limit(&self) -> bool {
        self.kind == Kind::Cost
    }

    /// Whether the caller's interruption ended the evaluation.
    pub fn is_interrupted(&self) -> bool {
        self.kind == Kind::Interrupted
    }

    /// Whether nothing may absorb the error: a limit was exceeded or the caller asked to stop.
    pub fn ends_evaluation(&self) -> bool {
        self.kind != Kind::Plain
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

/// The kind only: a text may quote a value of the object that was evaluated.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Error({:?})", self.kind)
    }
}

impl std::error::Error for Error {}
