//! What upstream sets where a client leaves it out, by the message that holds the field.
//!
//! One walk over an object by its tables: what a container gets, it gets wherever a
//! container stands, in a Pod as in the template of a Deployment. A message's own rule
//! runs before those of what it holds, as upstream's does. Held to the Go code by
//! `tests/golden/kinds`.

mod core;
mod others;

use crate::schema::{Field, Message, Shape, Type};
use crate::{Map, Value};

/// Sets everything that is left out of an object of this message.
pub fn apply(message: &'static Message, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    rule(message.name, members);
    for field in message.fields {
        if let Some(inlined) = field.inlined() {
            apply(inlined, object);
            continue;
        }
        let Some(members) = object.as_object_mut() else { return };
        preset(field, members);
        let Some(value) = members.get_mut(field.json) else { continue };
        match field.shape {
            Shape::One(Type::Message(inner)) => apply(inner, value),
            Shape::List(Type::Message(inner)) => {
                for item in value.as_array_mut().into_iter().flatten() {
                    apply(inner, item);
                }
            }
            Shape::Map(Type::Message(inner)) => {
                for item in value.as_object_mut().into_iter().flat_map(|map| map.values_mut()) {
                    apply(inner, item);
                }
            }
            _ => {}
        }
    }
}

/// The default of a field's own marker.
fn preset(field: &Field, members: &mut Map) {
    let value = match field.patch.default {
        "" => return,
        // Zero values need no default where Go has no pointer.
        "\"\"" | "0" | "false" if !field.optional => return,
        text if text.starts_with('"') => Value::from(text.trim_matches('"')),
        "false" => Value::Bool(false),
        "true" => Value::Bool(true),
        number => match number.parse::<i64>() {
            Ok(number) => Value::Int(number),
            Err(_) => return,
        },
    };
    if field.optional {
        set_absent(members, field.json, value);
    } else {
        set_default(members, field.json, value);
    }
}

/// A message's own rule.
fn rule(name: &str, members: &mut Map) {
    if name == "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.ServiceReference" {
        return set_absent(members, "port", 443);
    }
    let Some(name) = name.strip_prefix("k8s.io/api/") else { return };
    match name.split_once("/v") {
        Some(("core", kind)) => core::rule(kind.split_once('.').map_or("", |(_, kind)| kind), members),
        Some(_) => others::rule(name, members),
        None => {}
    }
}

/// Sets a field that Go has no pointer for where it is absent or zero.
pub(crate) fn set_default(object: &mut Map, field: &str, value: impl Into<Value>) {
    let absent = match object.get(field) {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if absent {
        object.insert(field.to_owned(), value.into());
    }
}

/// Sets a field that is a pointer in Go where it is absent: zero is a choice.
pub(crate) fn set_absent(object: &mut Map, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(Value::is_null) {
        object.insert(field.to_owned(), value.into());
    }
}

/// The object in a field, made where there is none.
fn object_in<'a>(object: &'a mut Map, field: &str) -> Option<&'a mut Map> {
    set_absent(object, field, Value::object());
    object.get_mut(field).and_then(Value::as_object_mut)
}

/// The text in a field, or "".
fn text<'a>(object: &'a Map, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a list or map is absent or empty.
fn is_empty(object: &Map, field: &str) -> bool {
    match object.get(field) {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => true,
    }
}

fn is_set(object: &Map, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn items_mut<'a>(object: &'a mut Map, field: &str) -> impl Iterator<Item = &'a mut Map> {
    let items = object.get_mut(field).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}
