//! Parsed JSON before it has types: every member kept, duplicates too, numbers as text.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Decoded;
use crate::codec::DecodeError;
use crate::codec::limits::MAX_STRICT_ERRORS;
use crate::{Map, Value};

/// One piece of JSON.
#[derive(Clone)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// The name of the kind of JSON in Go's errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// What lies at a path of member names; of a doubled member the last one counts, as in Go.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| match node {
            Self::Object(members) => {
                members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        })
    }

    /// Untyped JSON as a node.
    pub(crate) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(number) => Self::Number(number.to_string().into()),
            Value::Float(number) => {
                let mut text = Vec::new();
                crate::codec::text::float(&mut text, *number);
                Self::Number(String::from_utf8(text).unwrap_or_default().into())
            }
            Value::String(text) => Self::String(Cow::Borrowed(text)),
            Value::Bytes(bytes) => Self::String(STANDARD.encode(bytes.expose()).into()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(key, value)| (Cow::Borrowed(&**key), Self::from_value(value))).collect(),
            ),
        }
    }

    /// Untyped JSON; the last of several members of one name wins.
    pub(crate) fn into_untyped(self) -> Result<Decoded, DecodeError> {
        let mut strict = Strict::default();
        let object = self.untyped(&mut strict)?;
        Ok(Decoded { object, strict_errors: strict.errors })
    }

    pub(super) fn untyped(self, strict: &mut Strict) -> Result<Value, DecodeError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Number(text) => number(&text)?,
            Self::String(text) => Value::String(text.into_owned()),
            Self::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    let mark = strict.enter_index(index);
                    values.push(item.untyped(strict)?);
                    strict.leave(mark);
                }
                Value::Array(values)
            }
            Self::Object(members) => {
                let mut values = Map::new();
                for (key, value) in members {
                    if values.contains_key(&*key) {
                        strict.duplicate(&key);
                    }
                    let mark = strict.enter_key(&key);
                    let value = value.untyped(strict)?;
                    strict.leave(mark);
                    values.insert(key.into_owned(), value);
                }
                Value::Object(values)
            }
        })
    }
}

/// A whole number where the text is one that fits, else a floating point number.
fn number(text: &str) -> Result<Value, DecodeError> {
    if !text.contains('.')
        && let Ok(int) = text.parse()
    {
        return Ok(Value::Int(int));
    }
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Value::Float(float)),
        _ => Err(DecodeError::new(format!(
            "json: cannot unmarshal number {text} into Go value of type float64"
        ))),
    }
}

/// What strict decoding found, and where the decoder is.
#[derive(Default)]
pub(crate) struct Strict {
    path: String,
    seen: HashSet<String>,
    pub(super) errors: Vec<String>,
    /// Inside what upstream decodes on its own, where nothing is reported.
    pub(super) quiet: usize,
}

impl Strict {
    pub(super) fn enter_key(&mut self, key: &str) -> usize {
        let mark = self.path.len();
        if mark > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        mark
    }

    pub(super) fn enter_index(&mut self, index: usize) -> usize {
        let mark = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        mark
    }

    pub(super) fn leave(&mut self, mark: usize) {
        self.path.truncate(mark);
    }

    pub(super) fn unknown(&mut self, field: &str) {
        self.report("unknown field", field);
    }

    pub(super) fn duplicate(&mut self, field: &str) {
        self.report("duplicate field", field);
    }

    fn report(&mut self, what: &str, field: &str) {
        if self.quiet > 0 || self.errors.len() >= MAX_STRICT_ERRORS {
            return;
        }
        let dot = if self.path.is_empty() { "" } else { "." };
        let error = format!("{what} {:?}", format!("{}{dot}{field}", self.path));
        if self.seen.insert(error.clone()) {
            self.errors.push(error);
        }
    }
}
