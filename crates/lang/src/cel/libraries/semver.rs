//! Semantic versions, read as upstream's parser does, with its messages.

use std::any::Any;
use std::cmp::Ordering;

use coffer_types::validation::field::go_quote;

use crate::cel::error::Error;
use crate::cel::functions::{Evaluate, Function, Library, Overload};
use crate::cel::types::Type;
use crate::cel::value::{Opaque, Value};

/// A semantic version.
#[derive(Debug, Clone)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: Vec<Identifier>,
    build: Vec<String>,
}

/// A part of a prerelease. Numbers come before texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

pub(super) fn library() -> Library {
    let declared = Semver::declared;
    let number = |name: &'static str, id: &'static str, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [declared()], Type::Int, evaluate)])
    };
    let comparing = |name: &'static str, id: &'static str, result: Type, evaluate: Evaluate| {
        Function::new(name, vec![Overload::member(id, [declared(), declared()], result, evaluate)])
    };
    Library {
        name: "kubernetes.Semver",
        functions: vec![
            Function::new(
                "semver",
                vec![
                    Overload::global("string_to_semver", [Type::String], declared(), |_, arguments| {
                        Semver::parse(arguments[0].as_text()?).map(Value::opaque).map_err(Error::new)
                    }),
                    Overload::global(
                        "string_bool_to_semver",
                        [Type::String, Type::Bool],
                        declared(),
                        |_, arguments| read(arguments)?.map(Value::opaque).map_err(Error::new),
                    ),
                ],
            ),
            Function::new(
                "isSemver",
                vec![
                    Overload::global("is_semver_string", [Type::String], Type::Bool, |_, arguments| {
                        Ok(Value::Bool(Semver::parse(arguments[0].as_text()?).is_ok()))
                    }),
                    Overload::global(
                        "is_semver_string_bool",
                        [Type::String, Type::Bool],
                        Type::Bool,
                        |_, arguments| Ok(Value::Bool(read(arguments)?.is_ok())),
                    ),
                ],
            ),
            comparing("isGreaterThan", "semver_is_greater_than", Type::Bool, |_, arguments| {
                Ok(Value::Bool(compare(arguments)? == Ordering::Greater))
            }),
            comparing("isLessThan", "semver_is_less_than", Type::Bool, |_, arguments| {
                Ok(Value::Bool(compare(arguments)? == Ordering::Less))
            }),
            comparing("compareTo", "semver_compare_to", Type::Int, |_, arguments| {
                Ok(Value::Int(compare(arguments)? as i64))
            }),
            // As upstream, numbers beyond 63 bits wrap.
            number("major", "semver_major", |_, arguments| {
                Ok(Value::Int(version(&arguments[0])?.major.cast_signed()))
            }),
            number("minor", "semver_minor", |_, arguments| {
                Ok(Value::Int(version(&arguments[0])?.minor.cast_signed()))
            }),
            number("patch", "semver_patch", |_, arguments| {
                Ok(Value::Int(version(&arguments[0])?.patch.cast_signed()))
            }),
        ],
        ..Library::default()
    }
}

fn version<'a>(value: &'a Value<'_>) -> Result<&'a Semver, Error> {
    value.downcast::<Semver>().ok_or_else(Error::no_such_overload)
}

fn compare(arguments: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(version(&arguments[0])?.compare(version(&arguments[1])?))
}

/// The version of a text that may have to be normalized first.
fn read(arguments: &[Value<'_>]) -> Result<Result<Semver, String>, Error> {
    let text = arguments[0].as_text()?;
    match &arguments[1] {
        Value::Bool(true) => Ok(normalized(text).and_then(|text| Semver::parse(&text))),
        Value::Bool(false) => Ok(Semver::parse(text)),
        _ => Err(Error::no_such_overload()),
    }
}

impl Semver {
    /// The type of versions.
    pub(super) fn declared() -> Type {
        Type::object("kubernetes.Semver")
    }

    /// Reads a version.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (number(major, "major")?, number(minor, "minor")?);
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let patch = number(patch, "patch")?;
        let prerelease = prerelease.into_iter().flat_map(|text| text.split('.')).map(identifier);
        let prerelease = prerelease.collect::<Result<Vec<_>, String>>()?;
        let build = build.into_iter().flat_map(|text| text.split('.')).map(|part| {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_alphanumeric(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", go_quote(part)));
            }
            Ok(part.to_owned())
        });
        let build = build.collect::<Result<Vec<_>, String>>()?;
        Ok(Self { major, minor, patch, prerelease, build })
    }

    /// The order of versions; build data does not count.
    fn compare(&self, other: &Semver) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

impl std::fmt::Display for Semver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.prerelease.iter().enumerate() {
            formatter.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => write!(formatter, "{number}")?,
                Identifier::Text(text) => formatter.write_str(text)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            formatter.write_str(if index == 0 { "+" } else { "." })?;
            formatter.write_str(part)?;
        }
        Ok(())
    }
}

impl Opaque for Semver {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        Ok(self.compare(other) == Ordering::Equal)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn number(text: &str, which: &str) -> Result<u64, String> {
    if !is_numeric(text) {
        return Err(format!("Invalid character(s) found in {which} number {}", go_quote(text)));
    }
    if has_leading_zero(text) {
        let which = format!("{}{}", which[..1].to_ascii_uppercase(), &which[1..]);
        return Err(format!("{which} number must not contain leading zeroes {}", go_quote(text)));
    }
    parse_number(text)
}

/// Digits or nothing, with Go's errors.
fn parse_number(digits: &str) -> Result<u64, String> {
    digits.parse().map_err(|_| {
        let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {why}", go_quote(digits))
    })
}

fn identifier(text: &str) -> Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_numeric(text) {
        if has_leading_zero(text) {
            let shown = go_quote(text);
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {shown}"));
        }
        return parse_number(text).map(Identifier::Number);
    }
    if is_alphanumeric(text) {
        return Ok(Identifier::Text(text.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", go_quote(text)))
}

/// Without a leading `v` and leading zeros, with what is missing of minor and patch.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() <= 1 {
                return part.to_owned();
            }
            let stripped = part.trim_start_matches('0');
            let digit = stripped.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
            if digit { stripped.to_owned() } else { format!("0{stripped}") }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}
