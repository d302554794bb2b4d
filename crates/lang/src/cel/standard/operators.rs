//! Operators, `in`, `size`, and what macros call.

use std::cmp::Ordering;

use crate::cel::declared::{ListIdentity, Shape};
use crate::cel::equality::find_keyed;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Overload};
use crate::cel::syntax::ast::operators;
use crate::cel::types::Type;
use crate::cel::value::{List, Value};

pub(crate) fn functions() -> Vec<Function> {
    let a = || Type::param("A");
    let list = || Type::list(a());
    let map = || Type::map(a(), Type::param("B"));
    let mut functions = vec![
        Function::new(
            operators::CONDITIONAL,
            vec![Overload::global("conditional", [Type::Bool, a(), a()], a(), planned)],
        ),
        Function::new(
            operators::AND,
            vec![Overload::global("logical_and", [Type::Bool, Type::Bool], Type::Bool, planned)],
        ),
        Function::new(
            operators::OR,
            vec![Overload::global("logical_or", [Type::Bool, Type::Bool], Type::Bool, planned)],
        ),
        Function::new(
            operators::NOT,
            vec![Overload::global("logical_not", [Type::Bool], Type::Bool, not).unguarded()],
        ),
        Function::new(
            operators::NOT_STRICTLY_FALSE,
            vec![Overload::global("not_strictly_false", [Type::Bool], Type::Bool, planned)],
        ),
        Function::new(operators::EQUALS, vec![Overload::global("equals", [a(), a()], Type::Bool, planned)]),
        Function::new(
            operators::NOT_EQUALS,
            vec![Overload::global("not_equals", [a(), a()], Type::Bool, planned)],
        ),
        Function::new(
            operators::INDEX,
            vec![
                Overload::global("index_list", [list(), Type::Int], a(), planned),
                Overload::global("index_map", [map(), a()], Type::param("B"), planned),
                Overload::global(
                    "optional_list_index_int",
                    [Type::optional(list()), Type::Int],
                    Type::optional(a()),
                    planned,
                ),
                Overload::global(
                    "optional_map_index_value",
                    [Type::optional(map()), a()],
                    Type::optional(Type::param("B")),
                    planned,
                ),
            ],
        ),
        Function::new(
            operators::MAP_INSERT,
            vec![
                Overload::global("@mapInsert_map_key_value", [map(), a(), Type::param("B")], map(), planned),
                Overload::global("@mapInsert_map_map", [map(), map()], map(), planned),
            ],
        ),
    ];
    for name in [operators::IN, "_in_", "in"] {
        functions.push(Function::new(
            name,
            vec![
                Overload::global("in_list", [a(), list()], Type::Bool, contains).unguarded(),
                Overload::global("in_map", [a(), map()], Type::Bool, contains).unguarded(),
            ],
        ));
    }
    functions.extend(arithmetic());
    functions.extend(comparisons());
    functions.push(sizes());
    functions
}

/// The planner makes something else of these calls.
fn planned<'v>(_: &mut Context<'_>, _: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Err(Error::no_such_overload())
}

fn arithmetic() -> Vec<Function> {
    use Type::{Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let list = || Type::list(Type::param("A"));
    let two = |id: &'static str, left: Type, right: Type, result: Type, evaluate| {
        Overload::global(id, [left, right], result, evaluate).unguarded()
    };
    vec![
        Function::new(
            operators::ADD,
            vec![
                two("add_bytes", Bytes, Bytes, Bytes, add),
                two("add_double", Double, Double, Double, add),
                two("add_duration_duration", Duration, Duration, Duration, add),
                two("add_duration_timestamp", Duration, Timestamp, Timestamp, add),
                two("add_timestamp_duration", Timestamp, Duration, Timestamp, add),
                two("add_int64", Int, Int, Int, add),
                two("add_list", list(), list(), list(), add),
                two("add_string", String, String, String, add),
                two("add_uint64", Uint, Uint, Uint, add),
            ],
        ),
        Function::new(
            operators::DIVIDE,
            vec![
                two("divide_double", Double, Double, Double, divide),
                two("divide_int64", Int, Int, Int, divide),
                two("divide_uint64", Uint, Uint, Uint, divide),
            ],
        ),
        Function::new(
            operators::MODULO,
            vec![two("modulo_int64", Int, Int, Int, modulo), two("modulo_uint64", Uint, Uint, Uint, modulo)],
        ),
        Function::new(
            operators::MULTIPLY,
            vec![
                two("multiply_double", Double, Double, Double, multiply),
                two("multiply_int64", Int, Int, Int, multiply),
                two("multiply_uint64", Uint, Uint, Uint, multiply),
            ],
        ),
        Function::new(
            operators::NEGATE,
            vec![
                Overload::global("negate_double", [Double], Double, negate).unguarded(),
                Overload::global("negate_int64", [Int], Int, negate).unguarded(),
            ],
        ),
        Function::new(
            operators::SUBTRACT,
            vec![
                two("subtract_double", Double, Double, Double, subtract),
                two("subtract_duration_duration", Duration, Duration, Duration, subtract),
                two("subtract_int64", Int, Int, Int, subtract),
                two("subtract_timestamp_duration", Timestamp, Duration, Timestamp, subtract),
                two("subtract_timestamp_timestamp", Timestamp, Timestamp, Duration, subtract),
                two("subtract_uint64", Uint, Uint, Uint, subtract),
            ],
        ),
    ]
}

fn comparisons() -> Vec<Function> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let pairs = [
        ("bool", Bool, Bool),
        ("int64", Int, Int),
        ("int64_double", Int, Double),
        ("int64_uint64", Int, Uint),
        ("uint64", Uint, Uint),
        ("uint64_double", Uint, Double),
        ("uint64_int64", Uint, Int),
        ("double", Double, Double),
        ("double_int64", Double, Int),
        ("double_uint64", Double, Uint),
        ("string", String, String),
        ("bytes", Bytes, Bytes),
        ("timestamp", Timestamp, Timestamp),
        ("duration", Duration, Duration),
    ];
    let operators: [(&'static str, &str, crate::cel::functions::Evaluate); 4] = [
        (operators::LESS, "less", less),
        (operators::LESS_EQUALS, "less_equals", less_equals),
        (operators::GREATER, "greater", greater),
        (operators::GREATER_EQUALS, "greater_equals", greater_equals),
    ];
    operators
        .into_iter()
        .map(|(name, prefix, evaluate)| {
            let overloads = pairs.iter().map(|(suffix, left, right)| {
                let id = format!("{prefix}_{suffix}");
                Overload::global(id, [left.clone(), right.clone()], Bool, evaluate).unguarded()
            });
            Function::new(name, overloads.collect())
        })
        .collect()
}

fn sizes() -> Function {
    let list = || Type::list(Type::param("A"));
    let map = || Type::map(Type::param("A"), Type::param("B"));
    Function::new(
        "size",
        vec![
            Overload::global("size_bytes", [Type::Bytes], Type::Int, size).unguarded(),
            Overload::member("bytes_size", [Type::Bytes], Type::Int, size).unguarded(),
            Overload::global("size_list", [list()], Type::Int, size).unguarded(),
            Overload::member("list_size", [list()], Type::Int, size).unguarded(),
            Overload::global("size_map", [map()], Type::Int, size).unguarded(),
            Overload::member("map_size", [map()], Type::Int, size).unguarded(),
            Overload::global("size_string", [Type::String], Type::Int, size).unguarded(),
            Overload::member("string_size", [Type::String], Type::Int, size).unguarded(),
        ],
    )
}

fn not<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Bool(flag)] => Ok(Value::Bool(!flag)),
        _ => Err(Error::no_such_overload()),
    }
}

fn unsigned_overflow() -> Error {
    Error::new("unsigned integer overflow")
}

/// What upstream says of a first operand without the operator: text, timestamps and durations have methods,
/// and are asked whether it is one.
fn no_overload(name: &str, arguments: &[Value<'_>]) -> Error {
    match arguments.first() {
        Some(Value::String(_) | Value::Timestamp(_) | Value::Duration(_)) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {name}")),
    }
}

fn add<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => {
            left.checked_add(*right).map(Value::Int).ok_or_else(Error::integer_overflow)
        }
        [Value::Uint(left), Value::Uint(right)] => {
            left.checked_add(*right).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left + right)),
        [Value::String(left), Value::String(right)] => {
            context.charge(left.len() + right.len())?;
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(left);
            text.push_str(right);
            Ok(Value::string(text))
        }
        [Value::Bytes(left), Value::Bytes(right)] => {
            context.charge(left.len() + right.len())?;
            Ok(Value::bytes([&**left, &**right].concat()))
        }
        [Value::List(left), Value::List(right)] => {
            context.charge(64)?;
            add_lists(left, right).map(Value::List)
        }
        [Value::Duration(left), Value::Duration(right)] => {
            left.checked_add(*right).map(Value::Duration).ok_or_else(Error::integer_overflow)
        }
        [Value::Timestamp(instant), Value::Duration(duration)]
        | [Value::Duration(duration), Value::Timestamp(instant)] => {
            instant.add(*duration).map(Value::Timestamp).ok_or_else(|| Error::new("timestamp overflow"))
        }
        [
            Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::List(_)
            | Value::Duration(_)
            | Value::Timestamp(_),
            _,
        ] => Err(Error::no_such_overload()),
        _ => Err(no_overload(operators::ADD, arguments)),
    }
}

/// Two lists behind each other; a list of a schema that is a set or has keys is joined with the other.
fn add_lists<'v>(left: &List<'v>, right: &List<'v>) -> Result<List<'v>, Error> {
    let identity = match left.schema().map(|schema| &schema.shape) {
        Some(Shape::List { identity, .. }) => identity,
        _ => &ListIdentity::Atomic,
    };
    match identity {
        ListIdentity::Atomic => left.clone().concatenate(right.clone()),
        ListIdentity::Set => {
            let mut items = left.iter().collect::<Result<Vec<_>, _>>()?;
            for item in right.iter() {
                let item = item?;
                let known = items.iter().any(|candidate| candidate.equals(&item).unwrap_or(false));
                if !known {
                    items.push(item);
                }
            }
            Ok(List::new(items))
        }
        ListIdentity::Map(keys) => {
            let mut items = left.iter().collect::<Result<Vec<_>, _>>()?;
            for item in right.iter() {
                let item = item?;
                match find_keyed(&List::new(items.clone()), &item, keys)? {
                    Some(position) => items[position] = item,
                    None => items.push(item),
                }
            }
            Ok(List::new(items))
        }
    }
}

fn subtract<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => {
            left.checked_sub(*right).map(Value::Int).ok_or_else(Error::integer_overflow)
        }
        [Value::Uint(left), Value::Uint(right)] => {
            left.checked_sub(*right).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left - right)),
        [Value::Duration(left), Value::Duration(right)] => {
            left.checked_sub(*right).map(Value::Duration).ok_or_else(Error::integer_overflow)
        }
        [Value::Timestamp(left), Value::Timestamp(right)] => {
            left.since(right).map(Value::Duration).ok_or_else(Error::integer_overflow)
        }
        [Value::Timestamp(left), Value::Duration(right)] => {
            let moved = right.checked_neg().and_then(|negative| left.add(negative));
            moved.map(Value::Timestamp).ok_or_else(|| Error::new("timestamp overflow"))
        }
        [Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Duration(_) | Value::Timestamp(_), _] => {
            Err(Error::no_such_overload())
        }
        _ => Err(no_overload(operators::SUBTRACT, arguments)),
    }
}

fn multiply<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(left), Value::Int(right)] => {
            left.checked_mul(*right).map(Value::Int).ok_or_else(Error::integer_overflow)
        }
        [Value::Uint(left), Value::Uint(right)] => {
            left.checked_mul(*right).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left * right)),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => Err(Error::no_such_overload()),
        _ => Err(no_overload(operators::MULTIPLY, arguments)),
    }
}

fn divide<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("division by zero"))
        }
        [Value::Int(left), Value::Int(right)] => {
            left.checked_div(*right).map(Value::Int).ok_or_else(Error::integer_overflow)
        }
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left / right)),
        [Value::Double(left), Value::Double(right)] => Ok(Value::Double(left / right)),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => Err(Error::no_such_overload()),
        _ => Err(no_overload(operators::DIVIDE, arguments)),
    }
}

fn modulo<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("modulus by zero"))
        }
        [Value::Int(left), Value::Int(right)] => {
            left.checked_rem(*right).map(Value::Int).ok_or_else(Error::integer_overflow)
        }
        [Value::Uint(left), Value::Uint(right)] => Ok(Value::Uint(left % right)),
        [Value::Int(_) | Value::Uint(_), _] => Err(Error::no_such_overload()),
        _ => Err(no_overload(operators::MODULO, arguments)),
    }
}

fn negate<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::Int(number)] => number.checked_neg().map(Value::Int).ok_or_else(Error::integer_overflow),
        [Value::Double(number)] => Ok(Value::Double(-number)),
        [Value::Duration(nanoseconds)] => {
            nanoseconds.checked_neg().map(Value::Duration).ok_or_else(|| Error::new("duration overflow"))
        }
        _ => Err(no_overload(operators::NEGATE, arguments)),
    }
}

fn order<'v>(
    name: &str,
    arguments: &[Value<'v>],
    accept: impl FnOnce(Ordering) -> bool,
) -> Result<Value<'v>, Error> {
    let [left, right] = arguments else { return Err(Error::no_such_overload()) };
    match left {
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => Ok(Value::Bool(accept(left.compare(right)?))),
        _ => Err(no_overload(name, arguments)),
    }
}

fn less<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    order(operators::LESS, arguments, Ordering::is_lt)
}

fn less_equals<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    order(operators::LESS_EQUALS, arguments, Ordering::is_le)
}

fn greater<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    order(operators::GREATER, arguments, Ordering::is_gt)
}

fn greater_equals<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    order(operators::GREATER_EQUALS, arguments, Ordering::is_ge)
}

fn contains<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [element, Value::List(list)] => {
            let strict = list.schema().is_some_and(|schema| !matches!(schema.shape, Shape::Dyn));
            let mut error = None;
            for item in list.iter() {
                match item.and_then(|item| element.equals(&item)) {
                    Ok(true) => return Ok(Value::Bool(true)),
                    Ok(false) => {}
                    Err(found) => error = error.or(Some(found)),
                }
            }
            match error {
                Some(error) if strict => Err(error),
                _ => Ok(Value::Bool(false)),
            }
        }
        [key, Value::Map(map)] => Ok(Value::Bool(map.contains(key))),
        [Value::String(name), Value::Object(object)] => Ok(Value::Bool(object.has(name))),
        _ => Err(Error::no_such_overload()),
    }
}

fn size<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match arguments {
        [Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::Object(_)] => {
            Ok(Value::Int(arguments[0].cost_size() as i64))
        }
        [Value::Opaque(inner)] if inner.size().is_some() => Ok(Value::Int(inner.size().unwrap_or(0) as i64)),
        _ => Err(no_overload("size", arguments)),
    }
}
