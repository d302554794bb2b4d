//! From a [`Value`] to a message.
//!
//! What does not fit the tables (code built it wrong) is written as the zero value:
//! objects that came in through a decoder always fit.

use super::envelope::wrap;
use crate::codec::wire::{WireType, put_bytes, put_nested, put_number, put_tag};
use crate::codec::{json, times};
use crate::schema::{Field, Kind, Message, Shape, Type, Union};
use crate::{Map, Value};

/// Appends the message of an object (without an envelope).
pub fn encode(message: &Message, object: &Value, out: &mut Vec<u8>) {
    if let Value::Object(members) = object {
        write_message(message, members, out);
    }
}

/// Encodes an object of a built-in kind in its envelope.
pub fn encode_enveloped(kind: &Kind, object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    wrap(&mut out, &kind.api_version(), kind.kind, |out| encode(kind.message, object, out));
    out
}

fn write_message(message: &Message, members: &Map, out: &mut Vec<u8>) {
    for &index in message.wire {
        let field = &message.fields[usize::from(index)];
        if let Some(inlined) = field.inlined() {
            put_nested(out, field.number, |out| write_message(inlined, members, out));
            continue;
        }
        let value = members.get(field.json).filter(|value| !value.is_null());
        match (field.shape, value) {
            (Shape::One(kind), Some(value)) => write_one(kind, field.number, value, out),
            (Shape::One(kind), None) => write_absent(kind, field, out),
            (Shape::List(kind), Some(Value::Array(items))) => {
                for item in items {
                    write_one(kind, field.number, item, out);
                }
            }
            (Shape::Map(kind), Some(Value::Object(entries))) => {
                for (key, value) in entries {
                    put_nested(out, field.number, |out| {
                        put_bytes(out, 1, key.as_bytes());
                        // Only bytes can be nil inside a map.
                        if !(matches!(kind, Type::Bytes) && value.is_null()) {
                            write_one(kind, 2, value, out);
                        }
                    });
                }
            }
            (Shape::List(_) | Shape::Map(_), _) => {}
        }
    }
}

/// Scalars and structs that are no pointers are written even when they are zero.
fn write_absent(kind: Type, field: &Field, out: &mut Vec<u8>) {
    let nil_is_left_out = matches!(kind, Type::Bytes | Type::StringList | Type::Any);
    if !field.optional && !nil_is_left_out {
        write_one(kind, field.number, &Value::Null, out);
    }
}

static EMPTY: Map = Map::new();

fn write_one(kind: Type, number: u32, value: &Value, out: &mut Vec<u8>) {
    match kind {
        Type::String => put_bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        Type::Bytes => match value {
            Value::Bytes(bytes) => put_bytes(out, number, bytes.expose()),
            // Code may build binary data from text.
            Value::String(text) => put_bytes(out, number, text.as_bytes()),
            _ => put_bytes(out, number, b""),
        },
        // Negative numbers are sign-extended to 64 bits, 32-bit ones too.
        Type::Int32 | Type::Int64 => put_number(out, number, value.as_i64().unwrap_or_default() as u64),
        Type::Bool => put_number(out, number, u64::from(value.as_bool().unwrap_or_default())),
        Type::Double => {
            let float = match value {
                Value::Float(float) => *float,
                Value::Int(int) => *int as f64,
                _ => 0.0,
            };
            put_tag(out, number, WireType::Fixed64);
            out.extend_from_slice(&float.to_le_bytes());
        }
        Type::Time => put_nested(out, number, |out| write_time(value, false, out)),
        Type::MicroTime => put_nested(out, number, |out| write_time(value, true, out)),
        Type::IntOrString => put_nested(out, number, |out| {
            let text = value.as_str();
            put_number(out, 1, u64::from(text.is_some()));
            put_number(out, 2, value.as_i64().unwrap_or_default() as u64);
            put_bytes(out, 3, text.unwrap_or_default().as_bytes());
        }),
        Type::Quantity => put_nested(out, number, |out| {
            put_bytes(out, 1, value.as_str().unwrap_or("0").as_bytes());
        }),
        Type::FieldsV1 => put_nested(out, number, |out| write_raw(value, out, json::encode_fields)),
        Type::RawJson | Type::RawExtension => {
            put_nested(out, number, |out| write_raw(value, out, json::encode_untyped))
        }
        Type::StringList => put_nested(out, number, |out| {
            for item in value.as_array().unwrap_or_default() {
                put_bytes(out, 1, item.as_str().unwrap_or_default().as_bytes());
            }
        }),
        Type::Message(message) => put_nested(out, number, |out| {
            write_message(message, value.as_object().unwrap_or(&EMPTY), out);
        }),
        Type::Either(union, message) => {
            put_nested(out, number, |out| write_either(union, message, value, out))
        }
        Type::Any => {}
    }
}

fn write_time(value: &Value, micros: bool, out: &mut Vec<u8>) {
    let Some(text) = value.as_str() else { return };
    let Some(time) = times::read_back(text, micros) else { return };
    if time.is_zero() {
        return;
    }
    put_number(out, 1, time.seconds as u64);
    put_number(out, 2, if micros { u64::from(time.nanos) } else { 0 });
}

fn write_raw(value: &Value, out: &mut Vec<u8>, write: fn(&Value, &mut Vec<u8>)) {
    if !value.is_null() {
        let mut text = Vec::new();
        write(value, &mut text);
        put_bytes(out, 1, &text);
    }
}

fn write_either(union: Union, message: &'static Message, value: &Value, out: &mut Vec<u8>) {
    let schema = value.as_object();
    if union == Union::Bool {
        put_number(out, 1, u64::from(schema.is_some() || value.as_bool().unwrap_or_default()));
    }
    if let Some(schema) = schema {
        let number = if union == Union::Bool { 2 } else { 1 };
        put_nested(out, number, |out| write_message(message, schema, out));
    }
    for item in value.as_array().unwrap_or_default() {
        let kind = if union == Union::List { Type::Message(message) } else { Type::String };
        write_one(kind, 2, item, out);
    }
}
