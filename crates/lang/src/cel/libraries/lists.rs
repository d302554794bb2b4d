//! Kubernetes' functions of lists.

use std::cmp::Ordering;

use super::{COMPARABLE, is_comparable};
use crate::cel::equality::compare;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(super) fn library() -> Library {
    let comparable = |overload: fn(&str, Type) -> Overload| {
        COMPARABLE.into_iter().map(|(name, element)| overload(name, element)).collect::<Vec<_>>()
    };
    let element_and = |id: &'static str, evaluate| {
        let parameters = [Type::list(Type::param("A")), Type::param("A")];
        vec![Overload::member(id, parameters, Type::Int, evaluate)]
    };
    Library {
        name: "kubernetes.lists",
        functions: vec![
            Function::new(
                "isSorted",
                comparable(|name, element| {
                    let id = format!("list_{name}_is_sorted_bool");
                    Overload::member(id, [Type::list(element)], Type::Bool, is_sorted)
                }),
            ),
            Function::new(
                "sum",
                vec![
                    summable("int", Type::Int, |_, list| sum(list, Value::Int(0))),
                    summable("uint", Type::Uint, |_, list| sum(list, Value::Uint(0))),
                    summable("double", Type::Double, |_, list| sum(list, Value::Double(0.0))),
                    summable("duration", Type::Duration, |_, list| sum(list, Value::Duration(0))),
                ],
            ),
            Function::new(
                "max",
                comparable(|name, element| {
                    let id = format!("list_{name}_max_{name}");
                    Overload::member(id, [Type::list(element.clone())], element, max)
                }),
            ),
            Function::new(
                "min",
                comparable(|name, element| {
                    let id = format!("list_{name}_min_{name}");
                    Overload::member(id, [Type::list(element.clone())], element, min)
                }),
            ),
            Function::new("indexOf", element_and("list_a_index_of_int", index_of)),
            Function::new("lastIndexOf", element_and("list_a_last_index_of_int", last_index_of)),
            Function::new(
                "includes",
                vec![Overload::member("list_includes_dyn_dyn", [Type::Dyn, Type::Dyn], Type::Bool, includes)],
            ),
        ],
        ..Library::default()
    }
}

fn summable(name: &str, element: Type, evaluate: crate::cel::functions::Evaluate) -> Overload {
    let id = format!("list_{name}_sum_{name}");
    Overload::member(id, [Type::list(element.clone())], element, evaluate)
}

fn is_sorted<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let mut previous: Option<Value<'_>> = None;
    for item in arguments[0].as_list()?.iter() {
        let item = item?;
        if !is_comparable(&item) {
            return Err(Error::no_such_overload());
        }
        // Values without an order, like NaN, are in any order.
        if previous.is_some_and(|previous| compare(&previous, &item) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'v>(arguments: &[Value<'v>], zero: Value<'v>) -> Result<Value<'v>, Error> {
    let mut total = zero;
    for item in arguments[0].as_list()?.iter() {
        let (sum, overflow) = match (total, item?) {
            (Value::Int(total), Value::Int(item)) => {
                (total.checked_add(item).map(Value::Int), "integer overflow")
            }
            (Value::Uint(total), Value::Uint(item)) => {
                (total.checked_add(item).map(Value::Uint), "unsigned integer overflow")
            }
            (Value::Double(total), Value::Double(item)) => (Some(Value::Double(total + item)), ""),
            (Value::Duration(total), Value::Duration(item)) => {
                (total.checked_add(item).map(Value::Duration), "duration overflow")
            }
            _ => return Err(Error::no_such_overload()),
        };
        total = sum.ok_or_else(|| Error::new(overflow))?;
    }
    Ok(total)
}

fn max<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    extreme(&arguments[0], "max", Ordering::Less)
}

fn min<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    extreme(&arguments[0], "min", Ordering::Greater)
}

fn extreme<'v>(list: &Value<'v>, name: &str, replaced_when: Ordering) -> Result<Value<'v>, Error> {
    let mut found: Option<Value<'v>> = None;
    for item in list.as_list()?.iter() {
        let item = item?;
        if !is_comparable(&item) {
            return Err(Error::no_such_overload());
        }
        found = match found {
            Some(found) if compare(&found, &item) != Ok(replaced_when) => Some(found),
            _ => Some(item),
        };
    }
    found.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    for (index, item) in list.iter().enumerate() {
        if item?.equals(&arguments[1]).unwrap_or(false) {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn last_index_of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    for index in (0..list.len()).rev() {
        if list.get(index)?.equals(&arguments[1]).unwrap_or(false) {
            return Ok(Value::Int(index as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn includes<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let Value::List(list) = &arguments[0] else {
        return Ok(Value::Bool(arguments[0].equals(&arguments[1]).unwrap_or(false)));
    };
    for item in list.iter() {
        if item?.equals(&arguments[1]).unwrap_or(false) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
