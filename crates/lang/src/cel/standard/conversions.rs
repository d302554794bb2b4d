//! Conversions between types.

use crate::cel::equality::go_float;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Overload};
use crate::cel::times::{self, Instant};
use crate::cel::types::Type;
use crate::cel::value::{Object, Text, Value};

pub(crate) fn functions() -> Vec<Function> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let one = |id: &'static str, from: Type, to: &Type, evaluate| {
        Overload::global(id, [from], to.clone(), evaluate)
    };
    let a = || Type::param("A");
    vec![
        Function::new("type", vec![Overload::global("type", [a()], Type::type_of(a()), type_of).unguarded()]),
        Function::new("dyn", vec![Overload::global("to_dyn", [a()], Type::Dyn, same).unguarded()]),
        Function::new(
            "bool",
            vec![one("bool_to_bool", Bool, &Bool, same), one("string_to_bool", String, &Bool, to_bool)],
        ),
        Function::new(
            "bytes",
            vec![
                one("bytes_to_bytes", Bytes, &Bytes, same),
                one("string_to_bytes", String, &Bytes, to_bytes),
            ],
        ),
        Function::new(
            "double",
            vec![
                one("double_to_double", Double, &Double, same),
                one("int64_to_double", Int, &Double, to_double),
                one("string_to_double", String, &Double, to_double),
                one("uint64_to_double", Uint, &Double, to_double),
            ],
        ),
        Function::new(
            "duration",
            vec![
                one("duration_to_duration", Duration, &Duration, same),
                one("string_to_duration", String, &Duration, to_duration),
            ],
        ),
        Function::new(
            "int",
            vec![
                one("int64_to_int64", Int, &Int, same),
                one("double_to_int64", Double, &Int, to_int),
                one("duration_to_int64", Duration, &Int, to_int),
                one("string_to_int64", String, &Int, to_int),
                one("timestamp_to_int64", Timestamp, &Int, to_int),
                one("uint64_to_int64", Uint, &Int, to_int),
            ],
        ),
        Function::new(
            "string",
            vec![
                one("string_to_string", String, &String, same),
                one("bool_to_string", Bool, &String, to_string),
                one("bytes_to_string", Bytes, &String, to_string),
                one("double_to_string", Double, &String, to_string),
                one("duration_to_string", Duration, &String, to_string),
                one("int64_to_string", Int, &String, to_string),
                one("timestamp_to_string", Timestamp, &String, to_string),
                one("uint64_to_string", Uint, &String, to_string),
            ],
        ),
        Function::new(
            "timestamp",
            vec![
                one("timestamp_to_timestamp", Timestamp, &Timestamp, same),
                one("int64_to_timestamp", Int, &Timestamp, to_timestamp),
                one("string_to_timestamp", String, &Timestamp, to_timestamp),
            ],
        ),
        Function::new(
            "uint",
            vec![
                one("uint64_to_uint64", Uint, &Uint, same),
                one("double_to_uint64", Double, &Uint, to_uint),
                one("int64_to_uint64", Int, &Uint, to_uint),
                one("string_to_uint64", String, &Uint, to_uint),
            ],
        ),
    ]
}

fn same<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Ok(arguments[0].clone())
}

fn type_of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Ok(Value::Type(match &arguments[0] {
        // As upstream: the type of a type.
        Value::Object(Object::Made(_)) => Type::type_of(arguments[0].type_of()),
        other => other.type_of(),
    }))
}

fn no_conversion(value: &Value<'_>, to: &Type) -> Error {
    Error::new(format!("type conversion error from '{}' to '{}'", value.type_of().name(), to.name()))
}

fn to_bool<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match &**arguments[0].as_text()? {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
        _ => Err(no_conversion(&arguments[0], &Type::Bool)),
    }
}

fn to_bytes<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let text = arguments[0].as_text()?;
    context.charge(text.len())?;
    Ok(Value::bytes(text.as_bytes()))
}

fn to_double<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match &arguments[0] {
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::String(text) => {
            parse_float(text).map(Value::Double).ok_or_else(|| no_conversion(&arguments[0], &Type::Double))
        }
        _ => Err(Error::no_such_overload()),
    }
}

/// A float as Go reads it, without underscores and hexadecimal digits.
fn parse_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let word = digits.to_ascii_lowercase();
    if matches!(word.as_str(), "inf" | "infinity" | "nan") {
        return text.parse().ok();
    }
    if let Some(hexadecimal) = word.strip_prefix("0x") {
        return parse_hexadecimal(hexadecimal)
            .map(|number| if text.starts_with('-') { -number } else { number });
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}

fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0f64;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let number = number * 2f64.powi(exponent - 4 * i32::try_from(fraction.len()).ok()?);
    number.is_finite().then_some(number)
}

fn to_duration<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    times::parse_duration(arguments[0].as_text()?)
        .map(Value::Duration)
        .ok_or_else(|| no_conversion(&arguments[0], &Type::Duration))
}

fn to_int<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    match &arguments[0] {
        Value::Double(number) => {
            let fits = *number > -9_223_372_036_854_775_808.0 && *number < 9_223_372_036_854_775_807.0;
            if fits { Ok(Value::Int(*number as i64)) } else { Err(Error::integer_overflow()) }
        }
        Value::Duration(nanoseconds) => Ok(Value::Int(*nanoseconds)),
        Value::Timestamp(instant) => Ok(Value::Int(instant.seconds)),
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| Error::integer_overflow()),
        Value::String(text) => {
            text.parse().map(Value::Int).map_err(|_| no_conversion(&arguments[0], &Type::Int))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn to_uint<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let overflow = || Error::new("unsigned integer overflow");
    match &arguments[0] {
        Value::Double(number) => {
            let fits = *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            if fits { Ok(Value::Uint(*number as u64)) } else { Err(overflow()) }
        }
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        Value::String(text) if !text.starts_with('+') => {
            text.parse().map(Value::Uint).map_err(|_| no_conversion(&arguments[0], &Type::Uint))
        }
        other => Err(no_conversion(other, &Type::Uint)),
    }
}

fn to_string<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    Ok(match &arguments[0] {
        Value::Bool(flag) => Value::String(Text::Borrowed(if *flag { "true" } else { "false" })),
        Value::Int(number) => Value::string(number.to_string()),
        Value::Uint(number) => Value::string(number.to_string()),
        Value::Double(number) => Value::string(go_float(*number)),
        Value::Duration(nanoseconds) => Value::string(seconds(*nanoseconds)),
        Value::Timestamp(instant) => Value::string(instant.rfc3339()),
        Value::Bytes(bytes) => {
            context.charge(bytes.len())?;
            let text = std::str::from_utf8(bytes);
            Value::string(text.map_err(|_| Error::new("invalid UTF-8 in bytes, cannot convert to string"))?)
        }
        _ => return Err(Error::no_such_overload()),
    })
}

/// A duration in seconds, as a float that was never exact beyond its digits.
fn seconds(nanoseconds: i64) -> String {
    let whole = nanoseconds / 1_000_000_000;
    let fraction = nanoseconds % 1_000_000_000;
    format!("{}s", whole as f64 + fraction as f64 / 1e9)
}

fn to_timestamp<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let overflow = || Error::new("timestamp overflow");
    match &arguments[0] {
        Value::Int(seconds) => Instant::new(*seconds, 0).map(Value::Timestamp).ok_or_else(overflow),
        Value::String(text) => {
            let instant =
                times::parse_rfc3339(text).ok_or_else(|| no_conversion(&arguments[0], &Type::Timestamp))?;
            if Instant::new(instant.seconds, instant.nanoseconds).is_none() {
                return Err(overflow());
            }
            Ok(Value::Timestamp(instant))
        }
        _ => Err(Error::no_such_overload()),
    }
}
