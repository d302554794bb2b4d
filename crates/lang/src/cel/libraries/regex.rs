//! What of a text fits a regular expression.

use super::{made, made_list};
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::Value;

pub(super) fn library() -> Library {
    let texts = || Type::list(Type::String);
    Library {
        name: "kubernetes.regex",
        functions: vec![
            Function::new(
                "find",
                vec![
                    Overload::member("string_find_string", [Type::String, Type::String], Type::String, find)
                        .regex(1),
                ],
            ),
            Function::new(
                "findAll",
                vec![
                    Overload::member(
                        "string_find_all_string",
                        [Type::String, Type::String],
                        texts(),
                        |context, arguments| find_all(context, arguments, usize::MAX),
                    )
                    .regex(1),
                    Overload::member(
                        "string_find_all_string_int",
                        [Type::String, Type::String, Type::Int],
                        texts(),
                        |context, arguments| {
                            // A negative limit is none.
                            let limit = usize::try_from(arguments[2].as_int()?).unwrap_or(usize::MAX);
                            find_all(context, arguments, limit)
                        },
                    )
                    .regex(1),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn find<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let text = arguments[0].as_text()?;
    let regex = compiled(context, &arguments[1])?;
    match regex.find(text) {
        Some(found) => Ok(Value::String(text.slice(found.range()))),
        None => made(context, String::new()),
    }
}

fn find_all<'v>(
    context: &mut Context<'_>,
    arguments: &[Value<'v>],
    limit: usize,
) -> Result<Value<'v>, Error> {
    let text = arguments[0].as_text()?;
    let regex = compiled(context, &arguments[1])?;
    let mut items = Vec::new();
    for found in regex.find_iter(text).take(limit) {
        context.charge(found.len())?;
        items.push(Value::String(text.slice(found.range())));
    }
    made_list(context, items)
}

fn compiled(context: &mut Context<'_>, pattern: &Value<'_>) -> Result<std::sync::Arc<regex::Regex>, Error> {
    let pattern = pattern.as_text()?;
    context.regex(pattern).map_err(|error| Error::new(format!("Illegal regex: {}", error.message())))
}
