//! Named formats of texts.

use std::any::Any;
use std::sync::Arc;

use coffer_types::names;

use super::made;
use super::url::is_request_uri;
use crate::cel::error::Error;
use crate::cel::functions::{Context, Function, Library, Overload};
use crate::cel::times;
use crate::cel::types::Type;
use crate::cel::value::{Opaque, Value};

/// A named format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    function: &'static str,
    name: &'static str,
    /// What is wrong with a text; nothing when all is well.
    check: fn(&str) -> Vec<String>,
    /// How long a regular expression for it would be.
    pub(super) regex_size: u64,
}

/// Upstream's patterns are that long.
const UUID_PATTERN: u64 = 70;
const DATE_TIME_PATTERN: u64 = 71;

const FORMATS: [Format; 13] = [
    format("dns1123Label", "DNS1123Label", |text| names::dns_label(text, false), 30),
    format("dns1123Subdomain", "DNS1123Subdomain", |text| names::dns_subdomain(text, false), 60),
    format("dns1035Label", "DNS1035Label", |text| names::dns1035_label(text, false), 30),
    format("qualifiedName", "QualifiedName", names::is_qualified_name, 60),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", |text| names::dns_label(text, true), 30),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", |text| names::dns_subdomain(text, true), 60),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", |text| names::dns1035_label(text, true), 30),
    format("labelValue", "LabelValue", names::is_label_value, 40),
    format("uri", "URI", |text| is_request_uri(text).err().into_iter().collect(), 1103),
    format("uuid", "uuid", |text| refused(is_uuid(text), "does not match the UUID format"), UUID_PATTERN),
    format("byte", "byte", |text| refused(is_base64(text), "invalid base64"), 84),
    format(
        "date",
        "date",
        |text| refused(times::parse_date(text).is_some(), "invalid date"),
        DATE_TIME_PATTERN,
    ),
    format("datetime", "datetime", |text| refused(is_date_time(text), "invalid datetime"), DATE_TIME_PATTERN),
];

const fn format(
    function: &'static str,
    name: &'static str,
    check: fn(&str) -> Vec<String>,
    regex_size: u64,
) -> Format {
    Format { function, name, check, regex_size }
}

pub(super) fn library() -> Library {
    let mut functions = vec![
        Function::new(
            "validate",
            vec![Overload::member(
                "format-validate",
                [Format::declared(), Type::String],
                Type::optional(Type::list(Type::String)),
                validate,
            )],
        ),
        Function::new(
            "format.named",
            vec![Overload::global(
                "format-named",
                [Type::String],
                Type::optional(Format::declared()),
                |_, arguments| {
                    let name = arguments[0].as_text()?;
                    let found = FORMATS.iter().find(|format| format.function == &**name);
                    Ok(Value::Optional(found.map(|format| Arc::new(Value::opaque(*format)))))
                },
            )],
        ),
    ];
    functions.extend(FORMATS.iter().enumerate().map(|(index, format)| {
        let name = format!("format.{}", format.function);
        Function::new(
            name.clone(),
            vec![Overload::global(name, Vec::new(), Format::declared(), CONSTRUCTORS[index])],
        )
    }));
    Library { name: "kubernetes.format", functions, ..Library::default() }
}

type Constructor = for<'v> fn(&mut Context<'_>, &[Value<'v>]) -> Result<Value<'v>, Error>;

/// The functions of [`FORMATS`], in their order.
const CONSTRUCTORS: [Constructor; 13] = [
    |_, _| Ok(Value::opaque(FORMATS[0])),
    |_, _| Ok(Value::opaque(FORMATS[1])),
    |_, _| Ok(Value::opaque(FORMATS[2])),
    |_, _| Ok(Value::opaque(FORMATS[3])),
    |_, _| Ok(Value::opaque(FORMATS[4])),
    |_, _| Ok(Value::opaque(FORMATS[5])),
    |_, _| Ok(Value::opaque(FORMATS[6])),
    |_, _| Ok(Value::opaque(FORMATS[7])),
    |_, _| Ok(Value::opaque(FORMATS[8])),
    |_, _| Ok(Value::opaque(FORMATS[9])),
    |_, _| Ok(Value::opaque(FORMATS[10])),
    |_, _| Ok(Value::opaque(FORMATS[11])),
    |_, _| Ok(Value::opaque(FORMATS[12])),
];

fn validate<'v>(context: &mut Context<'_>, arguments: &[Value<'v>]) -> Result<Value<'v>, Error> {
    let format = arguments[0].downcast::<Format>().ok_or_else(Error::no_such_overload)?;
    let faults = (format.check)(arguments[1].as_text()?);
    if faults.is_empty() {
        return Ok(Value::Optional(None));
    }
    let faults = faults.into_iter().map(|fault| made(context, fault)).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::some(Value::list(faults)))
}

impl Format {
    /// The type of formats.
    pub(super) fn declared() -> Type {
        Type::object("kubernetes.NamedFormat")
    }

    /// Upstream's name of it.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Opaque for Format {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        Ok(self.name == other.name)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn refused(valid: bool, why: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![why.to_owned()] }
}

/// Groups of hexadecimal digits that may have dashes between them.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..length) {
            Some(group) if group.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest = &rest[length..],
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Groups of four digits, the last of which may be padded.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && padding <= 2 && text.len().is_multiple_of(4) && digits.bytes().all(digit)
}

/// A date, and a time with a zone; upstream looks no further than at a second `t`.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    times::parse_date(date).is_some() && is_time(time)
}

fn is_time(time: &str) -> bool {
    let Some(clock) = time.get(..8) else { return false };
    if !is_clock(clock, 3) || clock[..2] > *"23" || clock[3..5] > *"59" || clock[6..] > *"59" {
        return false;
    }
    let mut rest = &time[8..];
    let is_zone =
        |zone: &str| zone == "z" || zone.strip_prefix(['+', '-']).is_some_and(|zone| is_clock(zone, 2));
    if is_zone(rest) {
        return true;
    }
    // A fraction behind any character.
    let mut characters = rest.chars();
    match characters.next() {
        Some(point) if point != '\n' => rest = characters.as_str(),
        _ => return false,
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && is_zone(&rest[digits..])
}

/// So many groups of two digits with colons between them.
fn is_clock(text: &str, groups: usize) -> bool {
    text.len() == 3 * groups - 1
        && text.bytes().enumerate().all(
            |(index, byte)| {
                if index % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() }
            },
        )
}
