//! Questions about text.

use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(crate) fn functions() -> Vec<Function> {
    let two = |id: &'static str, evaluate| {
        Overload::member(id, [Type::String, Type::String], Type::Bool, evaluate).unguarded()
    };
    vec![
        Function::new("contains", vec![two("contains_string", contains)]),
        Function::new("endsWith", vec![two("ends_with_string", ends_with)]),
        Function::new("startsWith", vec![two("starts_with_string", starts_with)]),
        Function::new(
            "matches",
            vec![
                Overload::global("matches", [Type::String, Type::String], Type::Bool, matches)
                    .unguarded()
                    .regex(1),
                two("matches_string", matches).regex(1),
            ],
        ),
    ]
}

fn contains<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, part) = (arguments[0].as_text()?, arguments[1].as_text()?);
    Ok(Value::Bool(text.contains(&**part)))
}

fn ends_with<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, part) = (arguments[0].as_text()?, arguments[1].as_text()?);
    Ok(Value::Bool(text.ends_with(&**part)))
}

fn starts_with<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, part) = (arguments[0].as_text()?, arguments[1].as_text()?);
    Ok(Value::Bool(text.starts_with(&**part)))
}

fn matches<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let Value::String(text) = &arguments[0] else { return Err(Error::new("no such overload: matches")) };
    let pattern = arguments[1].as_text()?;
    Ok(Value::Bool(context.regex(pattern)?.is_match(text)))
}
