//! YAML as Kubernetes reads and writes it: YAML 1.1 scalars, keys made text, what comes of it
//! handled as JSON.
//!
//! A body is its first document. Duplicate keys are strict errors; the last one wins.
//! Syntax errors name the line as upstream does, in the parser's own words.

mod plain;
mod read;
mod scalar;
mod write;

pub use write::{encode, encode_untyped, from_json};

use super::DecodeError;
use super::json::{Decoded, Node, decode_node};
use crate::Value;
use crate::schema::{Message, Shape, Type};

/// Decodes the first document as an object of a built-in kind. Text fields take text only.
pub fn decode(message: &'static Message, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let (node, duplicates) = first(bytes)?;
    with_duplicates(duplicates, decode_node(message, node)?)
}

/// As [`decode`], but text fields take numbers and booleans too, as configuration files have it.
pub fn decode_coercing(message: &'static Message, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let (mut node, duplicates) = first(bytes)?;
    coerce(message, &mut node);
    with_duplicates(duplicates, decode_node(message, node)?)
}

/// Decodes the first document as it is; no document at all is `null`.
pub fn decode_untyped(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    if let Some(node) = plain::read(bytes) {
        return node.into_untyped();
    }
    let (node, duplicates) = first(bytes)?;
    with_duplicates(duplicates, node.into_untyped()?)
}

/// Decodes all documents as they are, in order; it ends after the first error.
pub fn documents(bytes: &[u8]) -> impl Iterator<Item = Result<Decoded, DecodeError>> {
    let (stream, broken) = match read::Stream::new(bytes) {
        Ok(stream) => (Some(stream), None),
        Err(error) => (None, Some(Err(error))),
    };
    let documents = stream.into_iter().flatten().map(|document| {
        let (node, duplicates) = document?;
        with_duplicates(duplicates, node.into_untyped()?)
    });
    broken.into_iter().chain(documents)
}

/// The text that a text field of a configuration file takes for a number or boolean.
pub fn text_of(value: &Value) -> Option<String> {
    coerced(&Node::from_value(value))
}

fn first(bytes: &[u8]) -> Result<(Node<'_>, Vec<String>), DecodeError> {
    read::Stream::new(bytes)?.next().unwrap_or(Ok((Node::Null, Vec::new())))
}

fn with_duplicates(duplicates: Vec<String>, mut decoded: Decoded) -> Result<Decoded, DecodeError> {
    if !duplicates.is_empty() {
        // One error with a line for each, as upstream's YAML library words it.
        let error = format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "));
        decoded.strict_errors.insert(0, error);
    }
    Ok(decoded)
}

fn coerce(message: &'static Message, node: &mut Node<'_>) {
    let Node::Object(members) = node else { return };
    for (name, member) in members {
        let Some(field) = message.field(name) else { continue };
        match (field.shape, member) {
            (Shape::One(kind), member) => coerce_one(kind, member),
            (Shape::List(kind), Node::Array(items)) => {
                items.iter_mut().for_each(|item| coerce_one(kind, item))
            }
            (Shape::Map(kind), Node::Object(entries)) => {
                entries.iter_mut().for_each(|(_, entry)| coerce_one(kind, entry));
            }
            (Shape::List(_) | Shape::Map(_), _) => {}
        }
    }
}

fn coerce_one(kind: Type, node: &mut Node<'_>) {
    match kind {
        Type::String => {
            if let Some(text) = coerced(node) {
                *node = Node::String(text.into());
            }
        }
        Type::Message(message) => coerce(message, node),
        _ => {}
    }
}

fn coerced(node: &Node<'_>) -> Option<String> {
    match node {
        Node::Bool(flag) => Some(flag.to_string()),
        Node::Number(text) => Some(scalar::number_as_text(text)),
        _ => None,
    }
}
