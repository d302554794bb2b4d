//! Functions of texts, version 2. Positions count characters, not bytes.

use super::{format_string, made, made_list};
use crate::cel::error::Error;
use crate::cel::functions::{CallValidator, Context, Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Text, Value};

pub(super) fn library() -> Library {
    let one = |name: &'static str, id: &'static str, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [Type::String], Type::String, evaluate)])
    };
    let texts = || Type::list(Type::String);
    Library {
        name: "cel.lib.ext.strings",
        functions: vec![
            Function::new(
                "charAt",
                vec![Overload::member(
                    "string_char_at_int",
                    [Type::String, Type::Int],
                    Type::String,
                    char_at,
                )],
            ),
            searching("indexOf", "string_index_of_string", index_of, index_of_from),
            searching("lastIndexOf", "string_last_index_of_string", last_index_of, last_index_of_from),
            one("lowerAscii", "string_lower_ascii", |context, arguments| {
                made(context, arguments[0].as_text()?.to_ascii_lowercase())
            }),
            one("upperAscii", "string_upper_ascii", |context, arguments| {
                made(context, arguments[0].as_text()?.to_ascii_uppercase())
            }),
            one("trim", "string_trim", trim),
            Function::new(
                "replace",
                vec![
                    Overload::member(
                        "string_replace_string_string",
                        [Type::String, Type::String, Type::String],
                        Type::String,
                        |context, arguments| replace(context, arguments, -1),
                    ),
                    Overload::member(
                        "string_replace_string_string_int",
                        [Type::String, Type::String, Type::String, Type::Int],
                        Type::String,
                        |context, arguments| {
                            let limit = arguments[3].as_int()?;
                            replace(context, arguments, limit)
                        },
                    ),
                ],
            ),
            Function::new(
                "split",
                vec![
                    Overload::member(
                        "string_split_string",
                        [Type::String, Type::String],
                        texts(),
                        |context, arguments| split(context, arguments, -1),
                    ),
                    Overload::member(
                        "string_split_string_int",
                        [Type::String, Type::String, Type::Int],
                        texts(),
                        |context, arguments| {
                            let limit = arguments[2].as_int()?;
                            split(context, arguments, limit)
                        },
                    ),
                ],
            ),
            Function::new(
                "substring",
                vec![
                    Overload::member(
                        "string_substring_int",
                        [Type::String, Type::Int],
                        Type::String,
                        substring_from,
                    ),
                    Overload::member(
                        "string_substring_int_int",
                        [Type::String, Type::Int, Type::Int],
                        Type::String,
                        substring,
                    ),
                ],
            ),
            Function::new(
                "format",
                vec![Overload::member(
                    "string_format",
                    [Type::String, Type::list(Type::Dyn)],
                    Type::String,
                    |context, arguments| {
                        let text =
                            format_string::format(context, arguments[0].as_text()?, arguments[1].as_list()?)?;
                        Ok(Value::string(text))
                    },
                )],
            ),
            Function::new(
                "strings.quote",
                vec![Overload::global(
                    "strings_quote",
                    [Type::String],
                    Type::String,
                    |context, arguments| made(context, quoted(arguments[0].as_text()?)),
                )],
            ),
            Function::new(
                "join",
                vec![
                    Overload::member("list_join", [texts()], Type::String, |context, arguments| {
                        join(context, arguments, "")
                    }),
                    Overload::member(
                        "list_join_string",
                        [texts(), Type::String],
                        Type::String,
                        |context, arguments| join(context, arguments, arguments[1].as_text()?),
                    ),
                ],
            ),
        ],
        validators: vec![CallValidator { function: "format", check: format_string::check }],
        ..Library::default()
    }
}

fn searching(name: &'static str, id: &'static str, whole: Evaluate, from: Evaluate) -> Function {
    Function::new(
        name,
        vec![
            Overload::member(id, [Type::String, Type::String], Type::Int, whole),
            Overload::member(format!("{id}_int"), [Type::String, Type::String, Type::Int], Type::Int, from),
        ],
    )
}

/// The byte at which the character with the number `index` begins; the end for the one behind the last.
fn place(text: &str, index: usize) -> Option<usize> {
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(place, _)| place).chain([text.len()]).nth(index)
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

fn char_at<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, index) = (arguments[0].as_text()?, arguments[1].as_int()?);
    let start = usize::try_from(index).ok().and_then(|index| place(text, index));
    let start = start.ok_or_else(|| out_of_range(index))?;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(Value::String(text.slice(start..start + length)))
}

fn index_of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    find_from(arguments[0].as_text()?, arguments[1].as_text()?, 0)
}

fn index_of_from<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    find_from(arguments[0].as_text()?, arguments[1].as_text()?, arguments[2].as_int()?)
}

fn find_from<'v>(text: &Text<'v>, wanted: &str, from: i64) -> Result<Value<'v>, Error> {
    let from = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let length = text.characters();
    if wanted.is_empty() {
        return Ok(Value::Int(from.min(length) as i64));
    }
    let start = if from < length { place(text, from) } else { None };
    let found = start.and_then(|start| text[start..].find(wanted).map(|found| start + found));
    Ok(Value::Int(found.map_or(-1, |found| text[..found].chars().count() as i64)))
}

fn last_index_of<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, wanted) = (arguments[0].as_text()?, arguments[1].as_text()?);
    if wanted.is_empty() {
        return Ok(Value::Int(text.characters() as i64));
    }
    Ok(Value::Int(text.rfind(&**wanted).map_or(-1, |found| text[..found].chars().count() as i64)))
}

fn last_index_of_from<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, wanted, until) = (arguments[0].as_text()?, arguments[1].as_text()?, arguments[2].as_int()?);
    let until = usize::try_from(until).map_err(|_| out_of_range(until))?;
    let length = text.characters();
    if wanted.is_empty() {
        return Ok(Value::Int(until.min(length) as i64));
    }
    if length <= until {
        return Ok(Value::Int(-1));
    }
    // What begins there may end behind; nothing ends within a character.
    let begins_by = place(text, until).unwrap_or(text.len());
    let mut end = (begins_by + wanted.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let found = text[..end].rfind(&**wanted);
    Ok(Value::Int(found.map_or(-1, |found| text[..found].chars().count() as i64)))
}

fn trim<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let text = arguments[0].as_text()?;
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len().max(start);
    Ok(Value::String(text.slice(start..end)))
}

fn replace<'v>(context: &mut Context<'_>, arguments: &[Value<'v>], limit: i64) -> Result<Value<'v>, Error> {
    let (text, old, new) = (arguments[0].as_text()?, arguments[1].as_text()?, arguments[2].as_text()?);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = text.matches(&**old).take(limit).count();
    if count == 0 || **old == **new {
        return Ok(arguments[0].clone());
    }
    context.charge(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::string(text.replacen(&**old, new, count)))
}

fn split<'v>(context: &mut Context<'_>, arguments: &[Value<'v>], limit: i64) -> Result<Value<'v>, Error> {
    let (text, separator) = (arguments[0].as_text()?, arguments[1].as_text()?);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let mut rest = 0;
    // An empty separator is between all characters, but not at the ends.
    let mut part = |context: &mut Context<'_>, from: usize, to: usize| {
        context
            .charge(size_of::<Value<'_>>() + if matches!(text, Text::Shared(_)) { to - from } else { 0 })?;
        items.push(Value::String(text.slice(from..to)));
        Ok::<(), Error>(())
    };
    if limit == 0 || separator.is_empty() && text.is_empty() {
        return made_list(context, items);
    }
    let mut parts = 1;
    for (found, matched) in text.match_indices(&**separator) {
        if parts == limit {
            break;
        }
        if separator.is_empty() && (found == 0 || found == text.len()) {
            continue;
        }
        part(context, rest, found)?;
        parts += 1;
        rest = found + matched.len();
    }
    part(context, rest, text.len())?;
    Ok(Value::list(items))
}

fn substring_from<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, start) = (arguments[0].as_text()?, arguments[1].as_int()?);
    let found = usize::try_from(start).ok().and_then(|start| place(text, start));
    let found = found.ok_or_else(|| out_of_range(start))?;
    Ok(Value::String(text.slice(found..text.len())))
}

fn substring<'v>(_: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let (text, start, end) = (arguments[0].as_text()?, arguments[1].as_int()?, arguments[2].as_int()?);
    if start > end {
        return Err(Error::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let at = |index: i64| {
        let found = usize::try_from(index).ok().and_then(|index| place(text, index));
        found.ok_or_else(|| out_of_range(index))
    };
    let (from, to) = (at(start)?, at(end)?);
    Ok(Value::String(text.slice(from..to)))
}

fn join<'v>(context: &mut Context<'_>, arguments: &[Value<'v>], separator: &str) -> Result<Value<'v>, Error> {
    let mut joined = String::new();
    for (index, item) in arguments[0].as_list()?.iter().enumerate() {
        let item = item?;
        let Value::String(text) = &item else {
            return Err(Error::new(format!("join: invalid input: {}", item.in_messages())));
        };
        let before = if index == 0 { "" } else { separator };
        context.charge(before.len() + text.len())?;
        joined.push_str(before);
        joined.push_str(text);
    }
    Ok(Value::string(joined))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
