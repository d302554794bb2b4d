//! Strategic merge patch: lists are merged by key where the tables say so, and
//! directives (`$patch`, `$retainKeys`, `$setElementOrder/…`,
//! `$deleteFromPrimitiveList/…`) say what plain merging cannot.

use crate::schema::{Field, Message, Shape, Type};
use crate::{Map, Value};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList";

/// Why a strategic merge patch was not applied. No text holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrategicError {
    /// The patch's form is wrong: 400.
    #[error("{0}")]
    BadRequest(&'static str),
    /// The patch cannot be processed: 422.
    #[error("{0}")]
    Unprocessable(&'static str),
    /// What upstream does not sort out: 500.
    #[error("{0}")]
    Internal(String),
}

/// `document` with `patch` merged into it, both in JSON form, by the tables of the kind.
pub fn apply(document: Value, patch: Value, message: &'static Message) -> Result<Value, StrategicError> {
    match (document, patch) {
        (Value::Object(original), Value::Object(patch)) => {
            merge_map(original, patch, Some(message)).map(Value::Object)
        }
        _ => Err(StrategicError::BadRequest("invalid JSON document")),
    }
}

type Result<T, E = StrategicError> = std::result::Result<T, E>;

/// Where the tables end (maps, embedded objects), `message` is `None`.
fn merge_map(mut original: Map, mut patch: Map, message: Option<&'static Message>) -> Result<Map> {
    match patch.get(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            return Ok(patch);
        }
        Some(Value::String(directive)) if directive == "delete" => return Ok(Map::new()),
        Some(_) => return Err(StrategicError::Internal("unknown patch type in map".to_owned())),
    }
    retain_keys(&mut original, &mut patch)?;
    set_element_order(&mut original, &mut patch, message)?;
    for (key, value) in patch {
        if let Some(rest) = key.strip_prefix(DELETE_PRIMITIVES) {
            delete_primitives(&mut original, rest, value)?;
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let merged = match (original.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let field = lookup(message, &key)?;
                Some(Value::Object(merge_map(old, new, field.and_then(struct_of))?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let field = lookup(message, &key)?;
                Some(Value::Array(merge_field(old, new, field)?))
            }
            (Some(old), new) if same_scalar_type(&old, &new) => Some(new),
            (_, new) => without_directives(without_nulls(new)),
        };
        if let Some(merged) = merged {
            original.insert(key, merged);
        }
    }
    Ok(original)
}

/// Keeps only the members that the patch names, once it has been checked against itself.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<()> {
    const BAD: StrategicError = StrategicError::BadRequest("invalid patch format of retainKeys");
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let retained = retained.as_array().ok_or(BAD)?;
    let keeps = |key: &String| retained.iter().any(|one| one.as_str() == Some(key));
    let foreign = patch.iter().any(|(key, value)| {
        let exempt = value.is_null() || key.starts_with(DELETE_PRIMITIVES) || key.starts_with(ELEMENT_ORDER);
        !exempt && !keeps(key)
    });
    if foreign {
        return Err(BAD);
    }
    original.retain(|key, _| keeps(key));
    Ok(())
}

/// Merges each list that comes with an order, and puts it into that order.
fn set_element_order(original: &mut Map, patch: &mut Map, message: Option<&'static Message>) -> Result<()> {
    const BAD: StrategicError = StrategicError::BadRequest("invalid patch format of setElementOrder list");
    let orders: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for order_key in orders {
        let order = patch.remove(&order_key).unwrap_or_default();
        let Value::Array(order) = order else { return Err(bad_type("[]interface {}", &order)) };
        let key = order_key.strip_prefix("$setElementOrder/").ok_or(BAD)?;
        let list = |members: &mut Map| match members.remove(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let field = lookup(message, key)?;
        let merge_key = field.map_or("", |field| field.patch.merge_key);
        let (old, new) = (list(original)?, list(patch)?);
        check_order(new.as_deref().unwrap_or_default(), &order, merge_key)?;
        let server_order = old.clone().unwrap_or_default();
        let merged = match (old, new) {
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) => merge_field(old, new, field)?,
            (None, None) => continue,
        };
        let merged = in_order(merged, &order, &server_order, merge_key)?;
        original.insert(key.to_owned(), Value::Array(merged));
    }
    Ok(())
}

/// The items of the patch must stand in the order list, in its order.
fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let id = identity(item, merge_key)?;
        let mut found = false;
        for ordered in rest.by_ref() {
            if identity(ordered, merge_key)? == id {
                found = true;
                break;
            }
        }
        if !found {
            return Err(StrategicError::Internal(format!(
                "The order in patch list doesn't match {ELEMENT_ORDER} list"
            )));
        }
    }
    Ok(())
}

fn delete_primitives(original: &mut Map, rest: &str, value: Value) -> Result<()> {
    let bad = StrategicError::BadRequest("invalid patch format of primitive list");
    let key = rest.strip_prefix('/').ok_or(bad)?;
    if value.is_null() {
        original.remove(key);
        return Ok(());
    }
    if let (Some(Value::Array(items)), Value::Array(doomed)) = (original.get_mut(key), &value) {
        items.retain(|item| !doomed.contains(item));
    }
    Ok(())
}

fn merge_field(old: Vec<Value>, new: Vec<Value>, field: Option<&'static Field>) -> Result<Vec<Value>> {
    match field {
        Some(field) if field.patch.merge => merge_list(old, new, field),
        _ => Ok(new),
    }
}

fn merge_list(old: Vec<Value>, new: Vec<Value>, field: &'static Field) -> Result<Vec<Value>> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let all = || old.iter().chain(&new);
    if all().any(|item| matches!(item, Value::Array(_))) {
        return Err(StrategicError::Unprocessable("lists of lists are not supported"));
    }
    let objects = all().filter(|item| item.as_object().is_some()).count();
    if objects == 0 {
        let mut merged: Vec<Value> = Vec::with_capacity(old.len() + new.len());
        for item in all() {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return in_order(merged, &new, &old, "");
    }
    if objects != old.len() + new.len() {
        return Err(StrategicError::Internal("list element types are not identical".to_owned()));
    }
    let merge_key = field.patch.merge_key;
    if merge_key.is_empty() {
        return Err(StrategicError::Internal(format!(
            "cannot merge lists without merge key for {}",
            field.json
        )));
    }
    let (old, new) = special_items(old, new, merge_key)?;
    let mut merged = old.clone();
    for item in &new {
        let id = identity(item, merge_key)?.clone();
        let position = merged.iter().position(|known| known.get(merge_key) == Some(&id));
        match position {
            None => merged.push(item.clone()),
            Some(position) => {
                if let (Value::Object(known), Value::Object(item)) = (&merged[position], item) {
                    let both = merge_map(known.clone(), item.clone(), item_of(field))?;
                    merged[position] = Value::Object(both);
                }
            }
        }
    }
    in_order(merged, &new, &old, merge_key)
}

/// Applies the items that carry `$patch`; what is left of both lists.
fn special_items(mut old: Vec<Value>, new: Vec<Value>, merge_key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut rest = Vec::with_capacity(new.len());
    let mut replace = false;
    for item in new {
        match item.get(DIRECTIVE) {
            None => rest.push(item),
            Some(Value::String(directive)) if directive == "delete" => {
                let id = identity(&item, merge_key)?;
                old.retain(|known| known.get(merge_key) != Some(id));
            }
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(Value::String(directive)) if directive == "merge" => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Internal(text.to_owned()));
            }
            Some(_) => return Err(StrategicError::Internal("unknown patch type in map".to_owned())),
        }
    }
    if replace { Ok((rest, Vec::new())) } else { Ok((old, rest)) }
}

/// Orders `merged`: items of the patch as the patch has them, those that only
/// the server has as the server has them, and the two interleaved by the
/// server's order as far as it knows both.
fn in_order(merged: Vec<Value>, patch: &[Value], server: &[Value], merge_key: &str) -> Result<Vec<Value>> {
    for item in merged.iter().chain(patch) {
        identity(item, merge_key)?;
    }
    let place = |list: &[Value], item: &Value| {
        let id = identity(item, merge_key).ok()?;
        list.iter().position(|known| identity(known, merge_key).ok() == Some(id))
    };
    let (mut patched, mut kept): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| place(patch, item).is_some());
    patched.sort_by_key(|item| place(patch, item));
    kept.sort_by_key(|item| place(server, item).unwrap_or(usize::MAX));
    let (mut patched, mut kept) = (patched.into_iter().peekable(), kept.into_iter().peekable());
    let mut ordered = Vec::new();
    loop {
        let kept_first = match (kept.peek(), patched.peek()) {
            (Some(left), Some(right)) => match (place(server, left), place(server, right)) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(ordered),
        };
        ordered.extend(if kept_first { kept.next() } else { patched.next() });
    }
}

/// What an item is known by: its merge key's value, or itself.
fn identity<'a>(item: &'a Value, merge_key: &str) -> Result<&'a Value> {
    if merge_key.is_empty() {
        return Ok(item);
    }
    match item {
        Value::Object(members) => members.get(merge_key).ok_or_else(|| {
            StrategicError::Internal(format!("map does not contain declared merge key: {merge_key}"))
        }),
        other => Err(bad_type("map[string]interface {}", other)),
    }
}

fn bad_type(expected: &str, actual: &Value) -> StrategicError {
    let kind = actual.json_kind();
    StrategicError::Internal(format!("expected a {expected}, but received a {kind}"))
}

fn lookup(message: Option<&'static Message>, key: &str) -> Result<Option<&'static Field>> {
    let Some(message) = message else { return Ok(None) };
    message.field(key).map(Some).ok_or_else(|| {
        StrategicError::Internal(format!(
            "unable to find api field in struct {} for the json field {}",
            message.go_name(),
            crate::validation::field::go_quote(key)
        ))
    })
}

fn struct_of(field: &'static Field) -> Option<&'static Message> {
    match field.shape {
        Shape::One(Type::Message(message)) => Some(message),
        _ => None,
    }
}

fn item_of(field: &'static Field) -> Option<&'static Message> {
    match field.shape {
        Shape::List(Type::Message(message)) => Some(message),
        _ => None,
    }
}

fn same_scalar_type(old: &Value, new: &Value) -> bool {
    let scalar = |value: &Value| !matches!(value, Value::Object(_) | Value::Array(_) | Value::Null);
    scalar(old) && scalar(new)
}

/// What is new to the document loses its nulls, in objects inside lists too.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(key, member)| (key, without_nulls(member)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// An object that carries `$patch` has nothing to act on where there was nothing: it goes.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .into_iter()
                .filter_map(|(key, member)| Some((key, without_directives(member)?)))
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

#[cfg(test)]
#[path = "strategic_tests.rs"]
mod tests;
