//! What selectors look at, read from stored bytes.

use crate::codec::json::{Node, parse};
use crate::codec::proto::{self, MAGIC};
use crate::codec::wire::{Payload, Reader};
use crate::codec::{DecodeError, text};
use crate::schema::{Kind, Message, Shape, Type};

/// Labels, and the text of the fields that were asked for, in the order asked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Selectable {
    /// `metadata.labels`.
    pub labels: Vec<(String, String)>,
    /// One for each path; "" where there is nothing or no scalar.
    pub fields: Vec<String>,
}

/// Reads labels and fields. `kind` is `None` for a custom resource.
pub fn attributes(
    kind: Option<&'static Kind>,
    stored: &[u8],
    paths: &[&[&str]],
) -> Result<Selectable, DecodeError> {
    match kind {
        Some(kind) if stored.starts_with(MAGIC) => {
            let raw = proto::open(stored)?.raw;
            let fields =
                paths.iter().map(|path| scalar(kind.message, raw, path)).collect::<Result<_, _>>()?;
            Ok(Selectable { labels: labels(kind.message, raw)?, fields })
        }
        _ => {
            let node = parse(stored)?;
            let labels = match node.at(&["metadata", "labels"]) {
                Some(Node::Object(members)) => members
                    .iter()
                    .map(|(key, value)| (key.clone().into_owned(), node_text(Some(value))))
                    .collect(),
                _ => Vec::new(),
            };
            Ok(Selectable { labels, fields: paths.iter().map(|path| node_text(node.at(path))).collect() })
        }
    }
}

fn node_text(node: Option<&Node<'_>>) -> String {
    match node {
        Some(Node::String(text) | Node::Number(text)) => text.clone().into_owned(),
        Some(Node::Bool(flag)) => flag.to_string(),
        _ => String::new(),
    }
}

fn labels(message: &'static Message, raw: &[u8]) -> Result<Vec<(String, String)>, DecodeError> {
    let mut labels = Vec::new();
    let Some((Type::Message(object_meta), Payload::Bytes(metadata))) = find(message, raw, "metadata")? else {
        return Ok(labels);
    };
    let number = object_meta.field("labels").map_or(0, |field| field.number);
    let mut reader = Reader::new(metadata, "ObjectMeta");
    while let Some(entry) = reader.next()? {
        if let (true, Payload::Bytes(bytes)) = (entry.number == number, entry.payload) {
            labels.push(label(bytes)?);
        }
    }
    Ok(labels)
}

fn label(bytes: &[u8]) -> Result<(String, String), DecodeError> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut reader = Reader::new(bytes, "LabelsEntry");
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.payload) {
            (1, Payload::Bytes(bytes)) => key = text::lossy(bytes),
            (2, Payload::Bytes(bytes)) => value = text::lossy(bytes),
            _ => {}
        }
    }
    Ok((key, value))
}

fn scalar(message: &'static Message, raw: &[u8], path: &[&str]) -> Result<String, DecodeError> {
    let Some((name, rest)) = path.split_first() else { return Ok(String::new()) };
    let found = find(message, raw, name)?;
    Ok(match found {
        Some((Type::Message(inner), Payload::Bytes(bytes))) if !rest.is_empty() => {
            scalar(inner, bytes, rest)?
        }
        Some((Type::String, Payload::Bytes(bytes))) if rest.is_empty() => text::lossy(bytes),
        Some((Type::Bool, Payload::Number(number))) => (number != 0).to_string(),
        Some((Type::Int32, Payload::Number(number))) => (number as i32).to_string(),
        Some((Type::Int64, Payload::Number(number))) => (number as i64).to_string(),
        // A boolean that is no pointer is false where it is not written.
        _ => String::new(),
    })
}

/// The last occurrence of a field that holds one value.
fn find<'a>(
    message: &'static Message,
    raw: &'a [u8],
    name: &str,
) -> Result<Option<(Type, Payload<'a>)>, DecodeError> {
    for field in message.fields {
        let inlined = field.inlined();
        let wanted = match inlined {
            Some(inlined) => inlined.field(name).is_some(),
            None => field.json == name,
        };
        let (true, Shape::One(kind)) = (wanted, field.shape) else { continue };
        let mut last = None;
        let mut reader = Reader::new(raw, message.name);
        while let Some(entry) = reader.next()? {
            if entry.number == field.number {
                last = Some(entry.payload);
            }
        }
        return match (inlined, last) {
            (Some(inlined), Some(Payload::Bytes(bytes))) => find(inlined, bytes, name),
            (Some(_), _) | (None, None) => Ok(None),
            (None, Some(payload)) => Ok(Some((kind, payload))),
        };
    }
    Ok(None)
}
