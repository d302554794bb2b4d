//! Which zero values Go's JSON shows and which it leaves out.

use crate::schema::{Field, Message, Shape, Type};
use crate::{Map, Value};

/// Brings an object that code has built or changed into the normal form (see [`crate::codec`]).
pub fn normalize(message: &'static Message, members: &mut Map) {
    for field in message.fields {
        if let Some(inlined) = field.inlined() {
            normalize(inlined, members);
            continue;
        }
        match members.get_mut(field.json) {
            None => {}
            Some(value) => {
                each_message(field.shape, value);
                if leaves_out(field, value) {
                    members.remove(field.json);
                }
            }
        }
    }
    fill(message, members);
}

fn each_message(shape: Shape, value: &mut Value) {
    match (shape, value) {
        (Shape::One(Type::Message(message)), Value::Object(members)) => normalize(message, members),
        (Shape::List(Type::Message(message)), Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| normalize(message, item));
        }
        (Shape::Map(Type::Message(message)), Value::Object(entries)) => {
            entries.values_mut().filter_map(Value::as_object_mut).for_each(|item| normalize(message, item));
        }
        _ => {}
    }
}

/// Adds the zero values of the fields that JSON always shows.
pub(super) fn fill(message: &'static Message, members: &mut Map) {
    for field in message.fields {
        if let Some(inlined) = field.inlined() {
            fill(inlined, members);
        } else if !field.omit_empty && !members.contains_key(field.json) {
            members.insert(field.json.to_owned(), of_field(field));
        }
    }
}

/// Whether JSON leaves `value` of `field` out.
pub(super) fn leaves_out(field: &Field, value: &Value) -> bool {
    field.omit_empty && (value.is_null() || (!field.optional && is_zero(value)))
}

/// Empty bytes count as set: protobuf tells them from absent ones.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(_) => false,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// The zero value of a field as JSON shows it.
pub(super) fn of_field(field: &Field) -> Value {
    match field.shape {
        Shape::One(kind) if !field.optional => of_type(kind),
        _ => Value::Null,
    }
}

/// The zero value of a type as JSON shows it.
pub(super) fn of_type(kind: Type) -> Value {
    match kind {
        Type::String => Value::String(String::new()),
        Type::Int32 | Type::Int64 | Type::IntOrString => Value::Int(0),
        Type::Double => Value::Float(0.0),
        Type::Bool => Value::Bool(false),
        Type::Quantity => Value::from("0"),
        Type::Message(message) => {
            let mut members = Map::new();
            fill(message, &mut members);
            Value::Object(members)
        }
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::FieldsV1
        | Type::RawJson
        | Type::RawExtension
        | Type::StringList
        | Type::Any
        | Type::Either(..) => Value::Null,
    }
}
