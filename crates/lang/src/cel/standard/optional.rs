//! Optional values.

use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Overload};
use crate::cel::syntax::ast::operators;
use crate::cel::times::Instant;
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(crate) fn functions() -> Vec<Function> {
    let v = || Type::param("V");
    let k = || Type::param("K");
    let optional = || Type::optional(v());
    let list = || Type::list(v());
    let map = || Type::map(k(), v());
    vec![
        Function::new("optional.of", vec![Overload::global("optional_of", [v()], optional(), of)]),
        Function::new(
            "optional.ofNonZeroValue",
            vec![Overload::global("optional_ofNonZeroValue", [v()], optional(), of_non_zero)],
        ),
        Function::new("optional.none", vec![Overload::global("optional_none", [], optional(), none)]),
        Function::new(
            "optional.unwrap",
            vec![Overload::global("optional_unwrap", [Type::list(optional())], list(), unwrap)],
        ),
        Function::new(
            "unwrapOpt",
            vec![Overload::member("optional_unwrapOpt", [Type::list(optional())], list(), unwrap)],
        ),
        Function::new("value", vec![Overload::member("optional_value", [optional()], v(), value)]),
        Function::new(
            "hasValue",
            vec![Overload::member("optional_hasValue", [optional()], Type::Bool, has_value)],
        ),
        Function::new(
            "or",
            vec![Overload::member("optional_or_optional", [optional(), optional()], optional(), planned)],
        ),
        Function::new(
            "orValue",
            vec![Overload::member("optional_orValue_value", [optional(), v()], v(), planned)],
        ),
        Function::new("first", vec![Overload::member("list_first", [list()], optional(), first)]),
        Function::new("last", vec![Overload::member("list_last", [list()], optional(), last)]),
        Function::new(
            operators::OPTIONAL_SELECT,
            vec![Overload::global("select_optional_field", [Type::Dyn, Type::String], optional(), planned)],
        ),
        Function::new(
            operators::OPTIONAL_INDEX,
            vec![
                Overload::global("list_optindex_optional_int", [list(), Type::Int], optional(), planned),
                Overload::global(
                    "optional_list_optindex_optional_int",
                    [Type::optional(list()), Type::Int],
                    optional(),
                    planned,
                ),
                Overload::global("map_optindex_optional_value", [map(), k()], optional(), planned),
                Overload::global(
                    "optional_map_optindex_optional_value",
                    [Type::optional(map()), k()],
                    optional(),
                    planned,
                ),
            ],
        ),
    ]
}

/// The planner makes something else of these calls.
fn planned<'v>(_: &mut Context<'_>, _: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Err(Error::no_such_overload())
}

fn of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Ok(Value::some(arguments[0].clone()))
}

fn of_non_zero<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let zero = match &arguments[0] {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(nanoseconds) => *nanoseconds == 0,
        // Go's zero time is the first instant of year 1.
        Value::Timestamp(Instant { seconds, nanoseconds, .. }) => {
            *seconds == crate::cel::times::FIRST_SECOND && *nanoseconds == 0
        }
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Optional(inner) => inner.is_none(),
        Value::Object(_) | Value::Type(_) | Value::Opaque(_) => false,
    };
    Ok(if zero { Value::Optional(None) } else { Value::some(arguments[0].clone()) })
}

fn none<'v>(_: &mut Context<'_>, _: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Ok(Value::Optional(None))
}

fn unwrap<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    context.charge(list.len() * size_of::<Value<'static>>())?;
    let mut items = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(inner)) => items.push((*inner).clone()),
            Value::Optional(None) => {}
            other => return Err(Error::new(format!("value {} is not optional", other.in_messages()))),
        }
    }
    Ok(Value::list(items))
}

fn value<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match &arguments[0] {
        Value::Optional(Some(inner)) => Ok((**inner).clone()),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match &arguments[0] {
        Value::Optional(inner) => Ok(Value::Bool(inner.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn first<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    if list.is_empty() { Ok(Value::Optional(None)) } else { Ok(Value::some(list.get(0)?)) }
}

fn last<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let list = arguments[0].as_list()?;
    match list.len().checked_sub(1) {
        None => Ok(Value::Optional(None)),
        Some(position) => Ok(Value::some(list.get(position)?)),
    }
}
