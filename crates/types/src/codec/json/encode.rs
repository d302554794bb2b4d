//! From a [`Value`] to JSON text.

use std::cmp::Ordering;

use super::parse;
use crate::codec::text;
use crate::codec::zero;
use crate::schema::{Field, Message, Shape, Type, Union};
use crate::{Map, Value};

/// Appends an object of a built-in kind: fields in Go's order, zero values as Go shows them.
pub fn encode(message: &'static Message, object: &Value, out: &mut Vec<u8>) {
    match object {
        Value::Object(members) => write_message(message, members, out),
        other => encode_untyped(other, out),
    }
}

/// As [`encode`], with the new line that ends every document Go's encoder writes.
pub fn encode_line(message: &'static Message, object: &Value, out: &mut Vec<u8>) {
    encode(message, object, out);
    out.push(b'\n');
}

/// As [`encode`], indented by two spaces.
pub fn encode_pretty(message: &'static Message, object: &Value, out: &mut Vec<u8>) {
    let mut compact = Vec::new();
    encode(message, object, &mut compact);
    text::indent(out, &compact);
}

/// Appends any JSON, keys sorted.
pub fn encode_untyped(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Int(number) => text::int(out, *number),
        Value::Float(number) => text::float(out, *number),
        Value::String(content) => text::quote(out, content.as_bytes()),
        Value::Bytes(bytes) => text::base64(out, bytes.expose()),
        Value::Array(items) => write_list(items, out, encode_untyped),
        Value::Object(members) => write_map(members.iter(), out, encode_untyped),
    }
}

fn write_list(items: &[Value], out: &mut Vec<u8>, write: impl Fn(&Value, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_map<'a>(
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    out: &mut Vec<u8>,
    write: impl Fn(&Value, &mut Vec<u8>),
) {
    out.push(b'{');
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        text::quote(out, key.as_bytes());
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

fn write_message(message: &'static Message, members: &Map, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    write_fields(message, members, &mut first, out);
    out.push(b'}');
}

fn write_fields(message: &'static Message, members: &Map, first: &mut bool, out: &mut Vec<u8>) {
    for field in message.fields {
        if let Some(inlined) = field.inlined() {
            write_fields(inlined, members, first, out);
            continue;
        }
        let value = members.get(field.json).unwrap_or(&Value::Null);
        let empty_bytes = matches!(value, Value::Bytes(bytes) if bytes.is_empty() && field.omit_empty);
        if empty_bytes || zero::leaves_out(field, value) {
            continue;
        }
        if !std::mem::take(first) {
            out.push(b',');
        }
        text::quote(out, field.json.as_bytes());
        out.push(b':');
        write_field(field, value, out);
    }
}

fn write_field(field: &Field, value: &Value, out: &mut Vec<u8>) {
    match (field.shape, value) {
        (Shape::List(kind), Value::Array(items)) => {
            write_list(items, out, |item, out| write_one(kind, item, out));
        }
        (Shape::Map(kind), Value::Object(entries)) => {
            write_map(entries.iter(), out, |item, out| write_one(kind, item, out));
        }
        (Shape::One(kind), Value::Null) if !field.optional => write_one(kind, &zero::of_type(kind), out),
        (Shape::One(kind), value) => write_one(kind, value, out),
        (Shape::List(_) | Shape::Map(_), value) => encode_untyped(value, out),
    }
}

fn write_one(kind: Type, value: &Value, out: &mut Vec<u8>) {
    match (kind, value) {
        (Type::Message(message), Value::Object(members)) => write_message(message, members, out),
        (Type::Either(_, message), Value::Object(members)) => write_message(message, members, out),
        (Type::Either(Union::List, message), Value::Array(items)) => {
            write_list(items, out, |item, out| write_one(Type::Message(message), item, out));
        }
        (Type::Bytes, Value::String(content)) => text::base64(out, content.as_bytes()),
        (Type::FieldsV1, value) => encode_fields(value, out),
        (_, value) => encode_untyped(value, out),
    }
}

/// Appends `fieldsV1`, keys ordered as field management orders path elements.
pub fn encode_fields(value: &Value, out: &mut Vec<u8>) {
    let Value::Object(members) = value else { return encode_untyped(value, out) };
    let mut sorted: Vec<_> =
        members.iter().map(|(key, value)| (PathElement::parse(key), key, value)).collect();
    sorted.sort_by(|left, right| left.0.compare(&right.0).then_with(|| left.1.cmp(right.1)));
    write_map(sorted.into_iter().map(|(_, key, value)| (key, value)), out, encode_fields);
}

/// One key of `fieldsV1`, as far as its order goes.
enum PathElement<'a> {
    /// `.`
    Itself,
    /// `f:name`
    Name(&'a str),
    /// `k:{"name":"x"}`
    Key(Value),
    /// `v:"x"`
    Item(Value),
    /// `i:0`
    Index(i64),
    /// Anything else.
    Unknown,
}

impl<'a> PathElement<'a> {
    fn parse(key: &'a str) -> Self {
        let json = |text: &str| parse(text.as_bytes()).and_then(super::Node::into_untyped).ok();
        match key.split_once(':') {
            Some(("f", name)) => Self::Name(name),
            Some(("k", text)) => json(text).map_or(Self::Unknown, |key| Self::Key(key.object)),
            Some(("v", text)) => json(text).map_or(Self::Unknown, |item| Self::Item(item.object)),
            Some(("i", text)) => text.parse().map_or(Self::Unknown, Self::Index),
            _ if key == "." => Self::Itself,
            _ => Self::Unknown,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Itself => 0,
            Self::Name(_) => 1,
            Self::Key(_) => 2,
            Self::Item(_) => 3,
            Self::Index(_) => 4,
            Self::Unknown => 5,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Name(left), Self::Name(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) | (Self::Item(left), Self::Item(right)) => {
                compare_values(left, right)
            }
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn compare_values(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) | Value::Bytes(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    let float = |value: &Value| match value {
        Value::Int(int) => *int as f64,
        Value::Float(float) => *float,
        _ => 0.0,
    };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Object(left), Value::Object(right)) => {
            let mut pairs = left.iter().zip(right);
            let unequal = pairs.find_map(|((left_key, left), (right_key, right))| {
                let order = left_key.cmp(right_key).then_with(|| compare_values(left, right));
                order.is_ne().then_some(order)
            });
            unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        _ if rank(left) == 0 && rank(right) == 0 => float(left).total_cmp(&float(right)),
        _ => rank(left).cmp(&rank(right)),
    }
}
