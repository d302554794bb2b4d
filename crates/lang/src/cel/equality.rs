//! Equality and order of values, and how upstream's messages print a value.

use std::cmp::Ordering;

use coffer_types::Value as Tree;

use super::declared::{DeclaredType, ListIdentity, Shape};
use super::error::Error;
use super::times;
use super::value::{List, Map, Object, Value};

/// Whether two values are equal.
pub(crate) fn equal(one: &Value<'_>, other: &Value<'_>) -> Result<bool, Error> {
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Null, _) | (_, Value::Null) => Ok(false),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::String(one), Value::String(other)) => Ok(**one == **other),
        (Value::Bytes(one), Value::Bytes(other)) => Ok(**one == **other),
        (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one.cmp_instant(other) == Ordering::Equal),
        (Value::Duration(one), Value::Duration(other)) => Ok(one == other),
        (Value::Type(one), Value::Type(other)) => Ok(one.name() == other.name()),
        (Value::List(one), Value::List(other)) => equal_lists(one, other),
        (Value::List(List::Tree { schema, .. }), _) if !matches!(schema.shape, Shape::Dyn) => {
            Err(Error::no_such_overload())
        }
        (Value::Map(one), Value::Map(other)) => equal_maps(one, other),
        (Value::Object(one), Value::Object(other)) => equal_objects(one, other),
        (Value::Map(map), Value::Object(object)) | (Value::Object(object), Value::Map(map)) => {
            equal_object_and_map(object, map)
        }
        (Value::Optional(one), Value::Optional(other)) => match (one, other) {
            (None, None) => Ok(true),
            (Some(one), Some(other)) => equal(one, other),
            _ => Ok(false),
        },
        (Value::Opaque(one), Value::Opaque(other)) => one.equals(&**other),
        // Values of libraries know only their like; whatever else is asked first just says no.
        (Value::Opaque(_), _) => Err(Error::no_such_overload()),
        _ => Ok(one.numeric_cmp(other) == Some(Ordering::Equal)),
    }
}

/// How two values are ordered, with upstream's errors.
pub(crate) fn compare(one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Error> {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Ok(one.cmp(other)),
        (Value::String(one), Value::String(other)) => Ok((**one).cmp(&**other)),
        (Value::Bytes(one), Value::Bytes(other)) => Ok((**one).cmp(&**other)),
        (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one.cmp_instant(other)),
        (Value::Duration(one), Value::Duration(other)) => Ok(one.cmp(other)),
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => one.numeric_cmp(other).ok_or_else(|| Error::new("NaN values cannot be ordered")),
        _ => Err(Error::no_such_overload()),
    }
}

fn equal_lists(one: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.schema().map(|schema| &schema.shape) {
        Some(Shape::List { identity: ListIdentity::Set, .. }) => return equal_sets(one, other),
        Some(Shape::List { identity: ListIdentity::Map(keys), .. }) => {
            return equal_keyed(one, other, keys);
        }
        _ => {}
    }
    for index in 0..one.len() {
        if !equal(&one.get(index)?, &other.get(index)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two lists of unique scalars have the same elements.
fn equal_sets(one: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    let mut items = one.iter().collect::<Result<Vec<_>, _>>()?;
    for item in other.iter() {
        let item = item?;
        let mut found = None;
        for (position, candidate) in items.iter().enumerate() {
            if equal(candidate, &item)? {
                found = Some(position);
                break;
            }
        }
        let Some(position) = found else { return Ok(false) };
        items.swap_remove(position);
    }
    Ok(true)
}

/// Whether two lists of objects with keys have equal objects for equal keys.
fn equal_keyed(one: &List<'_>, other: &List<'_>, keys: &[String]) -> Result<bool, Error> {
    for item in other.iter() {
        let item = item?;
        let Some(position) = find_keyed(one, &item, keys)? else { return Ok(false) };
        if !equal(&one.get(position)?, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where in `list` is an object with the keys of `item`.
pub(crate) fn find_keyed(list: &List<'_>, item: &Value<'_>, keys: &[String]) -> Result<Option<usize>, Error> {
    for position in 0..list.len() {
        let candidate = list.get(position)?;
        let mut same = true;
        for key in keys {
            same = match (member(&candidate, key)?, member(item, key)?) {
                (None, None) => true,
                (Some(one), Some(other)) => equal(&one, &other)?,
                _ => false,
            };
            if !same {
                break;
            }
        }
        if same {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

fn member<'v>(value: &Value<'v>, name: &str) -> Result<Option<Value<'v>>, Error> {
    match value {
        Value::Map(map) => map.member(name),
        Value::Object(object) => object.field(name),
        _ => Ok(None),
    }
}

fn equal_maps(one: &Map<'_>, other: &Map<'_>) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in one.entries()? {
        match other.get(&key)? {
            Some(found) if equal(&value, &found)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn equal_objects(one: &Object<'_>, other: &Object<'_>) -> Result<bool, Error> {
    match (one, other) {
        (Object::Tree { members, schema }, Object::Tree { members: others, schema: other_schema }) => {
            if members.len() != others.len() {
                return Ok(false);
            }
            for (name, value) in *members {
                let Some(found) = others.get(name) else { return Ok(false) };
                match (property(schema, name), property(other_schema, name)) {
                    (Some(declared), Some(other_declared)) => {
                        if value.is_null() || found.is_null() {
                            if value.is_null() != found.is_null() {
                                return Ok(false);
                            }
                        } else if !equal(
                            &Value::view(value, declared)?,
                            &Value::view(found, other_declared)?,
                        )? {
                            return Ok(false);
                        }
                    }
                    _ => {
                        if !same_tree(value, found) {
                            return Ok(false);
                        }
                    }
                }
            }
            Ok(true)
        }
        (Object::Made(one), Object::Made(other)) => {
            if one.type_name != other.type_name || one.fields.len() != other.fields.len() {
                return Ok(false);
            }
            for (name, value) in &one.fields {
                let found = other.fields.iter().find(|(candidate, _)| candidate == name);
                match found {
                    Some((_, found)) if equal(value, found)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn equal_object_and_map(object: &Object<'_>, map: &Map<'_>) -> Result<bool, Error> {
    let Object::Tree { members, schema } = object else { return Ok(false) };
    if members.len() != map.len() {
        return Ok(false);
    }
    let Shape::Object(fields) = &schema.shape else { return Ok(false) };
    for field in fields.iter() {
        match (object.field(&field.name)?, map.member(&field.name)?) {
            (None, None) => {}
            (Some(one), Some(other)) if equal(&one, &other)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn property<'v>(schema: &'v DeclaredType, property: &str) -> Option<&'v DeclaredType> {
    let Shape::Object(fields) = &schema.shape else { return None };
    fields.by_property(property).map(|field| &*field.declared)
}

fn same_tree(one: &Tree, other: &Tree) -> bool {
    one == other
}

/// The value as Go's `%v` prints it.
pub(crate) fn go_text(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL_VALUE".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => go_float(*number),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => {
            let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", numbers.join(" "))
        }
        Value::Timestamp(instant) => times::go_time(*instant),
        Value::Duration(nanoseconds) => times::go_duration(*nanoseconds),
        Value::List(list) => {
            let items: Vec<String> = list.iter().flatten().map(|item| go_text(&item)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries()
                .unwrap_or_default()
                .iter()
                .map(|(key, value)| format!("{}: {}", go_text(key), go_text(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Object(object) => object.type_of().name().to_owned(),
        Value::Type(inner) => inner.name().to_owned(),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", go_text(inner)),
        Value::Opaque(inner) => inner.type_of().name().to_owned(),
    }
}

/// A float as Go's `%g` with the shortest digits prints it.
pub(crate) fn go_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) || number == 0.0 {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
