//! The document as protobuf: gnostic's messages of `openapi.v2` (github.com/google/gnostic-models).

use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Value;

/// What a member of a message is.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Bool,
    Int,
    Double,
    /// Each text of a list.
    Texts,
    /// The text of a schema's `type`, or a list of them, in a message of its own.
    Types,
    /// Each value of a list, as YAML; JSON is YAML too.
    AnyValues,
    One(&'static Message),
    List(&'static Message),
    /// Named messages, in a message of their own that holds each as field 1.
    Named(&'static Message),
    /// Named messages, in a message of their own that holds each under this number.
    NamedAs(u32, &'static Message),
    /// In messages that choose: the first of these numbers is the outermost.
    Within(&'static [u32], &'static Message),
    Parameters,
}

struct Message {
    members: &'static [(&'static str, u32, Shape)],
    /// The number of what begins with `x-`.
    extension: Option<u32>,
}

static DOCUMENT: Message = Message {
    members: &[
        ("swagger", 1, Shape::Text),
        ("info", 2, Shape::One(&INFO)),
        ("paths", 8, Shape::NamedAs(2, &PATH_ITEM)),
        ("definitions", 9, Shape::Named(&SCHEMA)),
        ("security", 12, Shape::List(&REQUIREMENT)),
        ("securityDefinitions", 13, Shape::NamedAs(1, &SECURITY)),
    ],
    extension: Some(16),
};
static INFO: Message =
    Message { members: &[("title", 1, Shape::Text), ("version", 2, Shape::Text)], extension: Some(7) };
static SECURITY: Message = Message { members: &[("", 2, Shape::One(&API_KEY))], extension: None };
static API_KEY: Message = Message {
    members: &[
        ("type", 1, Shape::Text),
        ("name", 2, Shape::Text),
        ("in", 3, Shape::Text),
        ("description", 4, Shape::Text),
    ],
    extension: Some(5),
};
static REQUIREMENT: Message = Message { members: &[("", 1, Shape::NamedAs(1, &TEXTS))], extension: None };
static TEXTS: Message = Message { members: &[("", 1, Shape::Texts)], extension: None };
static PATH_ITEM: Message = Message {
    members: &[
        ("get", 2, Shape::One(&OPERATION)),
        ("put", 3, Shape::One(&OPERATION)),
        ("post", 4, Shape::One(&OPERATION)),
        ("delete", 5, Shape::One(&OPERATION)),
        ("patch", 8, Shape::One(&OPERATION)),
        ("parameters", 9, Shape::Parameters),
    ],
    extension: Some(10),
};
static OPERATION: Message = Message {
    members: &[
        ("tags", 1, Shape::Texts),
        ("description", 3, Shape::Text),
        ("operationId", 5, Shape::Text),
        ("produces", 6, Shape::Texts),
        ("consumes", 7, Shape::Texts),
        ("parameters", 8, Shape::Parameters),
        ("responses", 9, Shape::Named(&ANSWER)),
        ("schemes", 10, Shape::Texts),
    ],
    extension: Some(13),
};
static ANSWER: Message = Message { members: &[("", 1, Shape::One(&RESPONSE))], extension: None };
static RESPONSE: Message = Message {
    members: &[("description", 1, Shape::Text), ("schema", 2, Shape::Within(&[1], &SCHEMA))],
    extension: Some(5),
};
static BODY: Message = Message {
    members: &[
        ("description", 1, Shape::Text),
        ("name", 2, Shape::Text),
        ("in", 3, Shape::Text),
        ("required", 4, Shape::Bool),
        ("schema", 5, Shape::One(&SCHEMA)),
    ],
    extension: Some(6),
};
static QUERY: Message = Message {
    members: &[
        ("required", 1, Shape::Bool),
        ("in", 2, Shape::Text),
        ("description", 3, Shape::Text),
        ("name", 4, Shape::Text),
        ("type", 6, Shape::Text),
        ("uniqueItems", 20, Shape::Bool),
    ],
    extension: Some(23),
};
static PATH: Message = Message {
    members: &[
        ("required", 1, Shape::Bool),
        ("in", 2, Shape::Text),
        ("description", 3, Shape::Text),
        ("name", 4, Shape::Text),
        ("type", 5, Shape::Text),
        ("uniqueItems", 19, Shape::Bool),
    ],
    extension: Some(22),
};
static SCHEMA: Message = Message {
    members: &[
        ("$ref", 1, Shape::Text),
        ("format", 2, Shape::Text),
        ("title", 3, Shape::Text),
        ("description", 4, Shape::Text),
        ("multipleOf", 6, Shape::Double),
        ("maximum", 7, Shape::Double),
        ("exclusiveMaximum", 8, Shape::Bool),
        ("minimum", 9, Shape::Double),
        ("exclusiveMinimum", 10, Shape::Bool),
        ("maxLength", 11, Shape::Int),
        ("minLength", 12, Shape::Int),
        ("pattern", 13, Shape::Text),
        ("maxItems", 14, Shape::Int),
        ("minItems", 15, Shape::Int),
        ("uniqueItems", 16, Shape::Bool),
        ("maxProperties", 17, Shape::Int),
        ("minProperties", 18, Shape::Int),
        ("required", 19, Shape::Texts),
        ("enum", 20, Shape::AnyValues),
        ("additionalProperties", 21, Shape::Within(&[1], &SCHEMA)),
        ("type", 22, Shape::Types),
        ("items", 23, Shape::Within(&[1], &SCHEMA)),
        ("properties", 25, Shape::Named(&SCHEMA)),
    ],
    extension: Some(31),
};

/// The document of version 2 as protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    DOCUMENT.write(document, &mut out);
    out
}

impl Message {
    fn write(&self, value: &Value, out: &mut Vec<u8>) {
        for (name, number, shape) in self.members {
            let member = if name.is_empty() { Some(value) } else { value.get(*name) };
            if let Some(member) = member {
                shape.write(*number, member, out);
            }
        }
        let members = self.extension.map(|number| (number, value.as_object()));
        if let Some((number, Some(members))) = members {
            for (name, value) in members.iter().filter(|(name, _)| name.starts_with("x-")) {
                put_named(number, name, out, |out| any(2, value, out));
            }
        }
    }
}

impl Shape {
    fn write(self, number: u32, value: &Value, out: &mut Vec<u8>) {
        match self {
            Self::Text => put(number, value.as_str().unwrap_or_default().as_bytes(), out),
            Self::Bool => varint(number, u64::from(value.as_bool().unwrap_or_default()), out),
            Self::Int => varint(number, value.as_i64().unwrap_or_default() as u64, out),
            Self::Double => {
                encode_key(number, WireType::SixtyFourBit, out);
                out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
            }
            Self::Texts => {
                for text in items(value).filter_map(Value::as_str) {
                    put(number, text.as_bytes(), out);
                }
            }
            Self::Types => nested(number, out, |out| match value.as_str() {
                Some(text) => put(1, text.as_bytes(), out),
                None => Self::Texts.write(1, value, out),
            }),
            Self::AnyValues => items(value).for_each(|value| any(number, value, out)),
            Self::One(message) => nested(number, out, |out| message.write(value, out)),
            Self::List(message) => {
                items(value).for_each(|value| nested(number, out, |out| message.write(value, out)))
            }
            Self::Named(message) => Self::NamedAs(1, message).write(number, value, out),
            Self::NamedAs(inner, message) => nested(number, out, |out| {
                for (name, value) in value.as_object().into_iter().flatten() {
                    put_named(inner, name, out, |out| nested(2, out, |out| message.write(value, out)));
                }
            }),
            Self::Within(&[], message) => nested(number, out, |out| message.write(value, out)),
            Self::Within([first, rest @ ..], message) => {
                nested(number, out, |out| Self::Within(rest, message).write(*first, value, out));
            }
            Self::Parameters => {
                for parameter in items(value) {
                    // A parameter of an item, then what kind it is of.
                    let (choice, message): (&'static [u32], _) = match parameter["in"].as_str() {
                        Some("body") => (&[1, 1], &BODY),
                        Some("path") => (&[1, 2, 4], &PATH),
                        _ => (&[1, 2, 3], &QUERY),
                    };
                    Self::Within(choice, message).write(number, parameter, out);
                }
            }
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn put(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(number: u32, value: u64, out: &mut Vec<u8>) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

fn nested(number: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    write(&mut inner);
    put(number, &inner, out);
}

/// A message with a name as field 1, and what `write` adds.
fn put_named(number: u32, name: &str, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    nested(number, out, |out| {
        put(1, name.as_bytes(), out);
        write(out);
    });
}

/// `Any { yaml = 2 }`.
fn any(number: u32, value: &Value, out: &mut Vec<u8>) {
    nested(number, out, |out| put(2, value.to_string().as_bytes(), out));
}
