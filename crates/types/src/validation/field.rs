//! Errors about one field of an object, worded exactly as upstream words them.
//!
//! Clients and runbooks match on these texts. A value that may be secret must
//! never become a [`Shown`]; [`Shown::redacted`] stands for one that is.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

pub use crate::go_quote::{go_quote, is_print};
use crate::status::{Cause, Details, Status};
use crate::{Map, Value};

/// Where in an object something is, such as `spec.containers[0].name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The first element. An empty name is the whole object and prints as `[]`.
    pub fn new(name: &str) -> Self {
        Self(if name.is_empty() { "[]".to_owned() } else { name.to_owned() })
    }

    /// The elements `names`, one below the other; at least one.
    pub fn of(names: &[&str]) -> Self {
        Self(names.join("."))
    }

    /// A field of what this path leads to.
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// An item of the list that this path leads to.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// An entry of the map that this path leads to.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// As upstream prints it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A reference leads nowhere.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique is not.
    Duplicate,
    /// A value is malformed.
    Invalid,
    /// A value is not one of those that are allowed.
    NotSupported,
    /// A value is not allowed here or now.
    Forbidden,
    /// A value has too many bytes.
    TooLong,
    /// A value has too few characters.
    TooShort,
    /// A list has too many items.
    TooMany,
    /// A list has too few items.
    TooFew,
    /// Not the client's fault.
    Internal,
    /// A value has the wrong JSON type.
    TypeInvalid,
}

impl ErrorKind {
    /// The reason of the cause in a Status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    /// Kinds whose text never carries the value.
    fn hides_value(self) -> bool {
        matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal)
    }
}

/// A bad value as it is shown to the client. `None` inside shows nothing at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown(Option<String>);

impl Shown {
    /// Stands for a value that is secret.
    pub fn redacted() -> Self {
        Self::from("<secret contents redacted>")
    }

    /// The value is left out.
    pub fn omitted() -> Self {
        Self(None)
    }

    /// Text that the caller has made, such as JSON in the order of a Go struct.
    pub fn verbatim(text: impl Into<String>) -> Self {
        Self(Some(text.into()))
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Self {
        Self(Some(go_quote(text)))
    }
}

impl From<&String> for Shown {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<i64> for Shown {
    fn from(number: i64) -> Self {
        Self(Some(number.to_string()))
    }
}

impl From<bool> for Shown {
    fn from(flag: bool) -> Self {
        Self(Some(flag.to_string()))
    }
}

impl From<&Value> for Shown {
    fn from(value: &Value) -> Self {
        match value {
            Value::Bytes(_) => Self::redacted(),
            Value::String(text) => Self::from(text),
            other => Self(Some(go_json(other))),
        }
    }
}

/// One thing that is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where.
    pub field: String,
    /// The value, as it is shown.
    pub shown: Shown,
    /// Why; may be empty.
    pub detail: String,
}

/// Everything that is wrong with an object.
pub type FieldErrors = Vec<FieldError>;

/// Each error once, as upstream tells them of kinds that it validates by declaration too.
pub fn without_repetitions(errors: FieldErrors) -> FieldErrors {
    let mut once = FieldErrors::new();
    for error in errors {
        if !once.contains(&error) {
            once.push(error);
        }
    }
    once
}

impl FieldError {
    fn new(kind: ErrorKind, path: &Path, shown: Shown, detail: impl Into<String>) -> Self {
        Self { kind, field: path.as_str().to_owned(), shown, detail: detail.into() }
    }

    /// A value is missing.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, path, Shown::omitted(), detail)
    }

    /// A value is malformed.
    pub fn invalid(path: &Path, shown: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, path, shown.into(), detail)
    }

    /// A value has the wrong JSON type.
    pub fn type_invalid(path: &Path, shown: impl Into<Shown>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, path, shown.into(), detail)
    }

    /// A value is not one of `supported`.
    pub fn not_supported<S: AsRef<str>>(path: &Path, shown: impl Into<Shown>, supported: &[S]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|value| go_quote(value.as_ref())).collect();
        let detail = match quoted.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", quoted.join(", ")),
        };
        Self::new(ErrorKind::NotSupported, path, shown.into(), detail)
    }

    /// A value is not allowed.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, path, Shown::omitted(), detail)
    }

    /// A value must be unique.
    pub fn duplicate(path: &Path, shown: impl Into<Shown>) -> Self {
        Self::new(ErrorKind::Duplicate, path, shown.into(), "")
    }

    /// A reference leads nowhere.
    pub fn not_found(path: &Path, shown: impl Into<Shown>) -> Self {
        Self::new(ErrorKind::NotFound, path, shown.into(), "")
    }

    /// More than `limit` bytes.
    pub fn too_long(path: &Path, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {limit} {unit}");
        Self::new(ErrorKind::TooLong, path, Shown::omitted(), detail)
    }

    /// More than `limit` items.
    pub fn too_many(path: &Path, actual: usize, limit: usize) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let shown = Shown(Some(actual.to_string()));
        Self::new(ErrorKind::TooMany, path, shown, format!("must have at most {limit} {unit}"))
    }

    /// Not the client's fault.
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, path, Shown::omitted(), detail)
    }

    /// The text without the field.
    pub fn body(&self) -> String {
        let mut text = self.kind.text().to_owned();
        if let (false, Some(shown)) = (self.kind.hides_value(), &self.shown.0) {
            text.push_str(": ");
            text.push_str(shown);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// Several errors as one text: equal texts once, in brackets when there is more than one.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = BTreeSet::new();
    let texts: Vec<_> =
        errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [single] => single.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The 422 that tells a client what is wrong with its object.
pub fn to_status(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Status {
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut message = format!("{qualified} {} is invalid", go_quote(name));
    if !errors.is_empty() {
        message.push_str(": ");
        message.push_str(&aggregate(errors));
    }
    let mut status = Status::new(422, "Invalid", message);
    status.details = Some(Box::new(Details {
        name: name.to_owned(),
        group: group.to_owned(),
        kind: kind.to_owned(),
        causes: errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.field.clone(),
            })
            .collect(),
        ..Details::default()
    }));
    status
}

/// `value` as Go's JSON encoder prints it, secret bytes redacted.
pub fn go_json(value: &Value) -> String {
    let mut text = String::new();
    push_json(&mut text, value);
    text
}

fn push_json(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Float(number) => text.push_str(&number.to_string()),
        Value::String(string) => push_json_string(text, string),
        Value::Bytes(_) => push_json_string(text, "<secret contents redacted>"),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_json(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            push_members(text, members.iter().map(|(key, value)| (key.as_str(), value)))
        }
    }
}

/// The members of `object` in the order of a Go struct's fields; others are left out.
pub fn go_struct_json(object: &Map, fields: &[&str]) -> String {
    let mut text = String::new();
    push_members(&mut text, fields.iter().filter_map(|field| Some((*field, object.get(*field)?))));
    text
}

fn push_members<'a>(text: &mut String, members: impl Iterator<Item = (&'a str, &'a Value)>) {
    text.push('{');
    for (index, (key, value)) in members.enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_json_string(text, key);
        text.push(':');
        push_json(text, value);
    }
    text.push('}');
}

fn push_json_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            plain => text.push(plain),
        }
    }
    text.push('"');
}

impl Shown {
    /// A list of structs, each with its members in the order of `fields`.
    pub fn structs(items: &[Value], fields: &[&str]) -> Self {
        let items: Vec<_> =
            items.iter().filter_map(Value::as_object).map(|item| go_struct_json(item, fields)).collect();
        Self(Some(format!("[{}]", items.join(","))))
    }

    /// A struct with its members in the order of `fields`.
    pub fn one_struct(item: &Value, fields: &[&str]) -> Self {
        Self(item.as_object().map(|item| go_struct_json(item, fields)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_upstream() {
        let check = |path: Path, expected: &str| assert_eq!(path.as_str(), expected);
        check(Path::new("metadata"), "metadata");
        check(Path::of(&["spec", "finalizers"]), "spec.finalizers");
        check(Path::new("spec").child("containers").index(0).child("name"), "spec.containers[0].name");
        check(Path::new("data").key(".dockercfg"), "data[.dockercfg]");
        check(Path::new(""), "[]");
    }

    #[test]
    fn errors_print_as_upstream() {
        let path = Path::new("f");
        let check = |error: FieldError, reason: &str, expected: &str| {
            assert_eq!(error.kind.reason(), reason);
            assert_eq!(error.to_string(), format!("f: {expected}"));
        };
        check(FieldError::required(&path, ""), "FieldValueRequired", "Required value");
        check(FieldError::required(&path, "why"), "FieldValueRequired", "Required value: why");
        check(FieldError::invalid(&path, "x", "why"), "FieldValueInvalid", "Invalid value: \"x\": why");
        check(
            FieldError::invalid(&path, "a\"b\n", "w"),
            "FieldValueInvalid",
            "Invalid value: \"a\\\"b\\n\": w",
        );
        check(FieldError::invalid(&path, 7, "why"), "FieldValueInvalid", "Invalid value: 7: why");
        check(FieldError::invalid(&path, true, "why"), "FieldValueInvalid", "Invalid value: true: why");
        check(
            FieldError::invalid(&path, &Value::Null, "why"),
            "FieldValueInvalid",
            "Invalid value: null: why",
        );
        check(
            FieldError::invalid(&path, &Value::from([("a", Value::from(vec![Value::from("<")]))]), "why"),
            "FieldValueInvalid",
            "Invalid value: {\"a\":[\"\\u003c\"]}: why",
        );
        check(FieldError::invalid(&path, Shown::omitted(), "why"), "FieldValueInvalid", "Invalid value: why");
        check(FieldError::type_invalid(&path, "x", "w"), "FieldValueTypeInvalid", "Invalid value: \"x\": w");
        check(FieldError::forbidden(&path, "why"), "FieldValueForbidden", "Forbidden: why");
        check(FieldError::duplicate(&path, "x"), "FieldValueDuplicate", "Duplicate value: \"x\"");
        check(FieldError::not_found(&path, "x"), "FieldValueNotFound", "Not found: \"x\"");
        check(
            FieldError::not_supported(&path, "x", &["a", "b"]),
            "FieldValueNotSupported",
            "Unsupported value: \"x\": supported values: \"a\", \"b\"",
        );
        check(
            FieldError::not_supported::<&str>(&path, "x", &[]),
            "FieldValueNotSupported",
            "Unsupported value: \"x\"",
        );
        check(
            FieldError::too_long(&path, 1_048_576),
            "FieldValueTooLong",
            "Too long: may not be more than 1048576 bytes",
        );
        check(FieldError::too_long(&path, 1), "FieldValueTooLong", "Too long: may not be more than 1 byte");
        check(
            FieldError::too_many(&path, 3, 2),
            "FieldValueTooMany",
            "Too many: 3: must have at most 2 items",
        );
        check(
            FieldError::too_many(&path, 3, 1),
            "FieldValueTooMany",
            "Too many: 3: must have at most 1 item",
        );
        check(FieldError::internal(&path, "why"), "InternalError", "Internal error: why");
    }

    #[test]
    fn secret_bytes_are_redacted_in_a_shown_value() {
        let bytes = Value::Bytes(b"hunter2".to_vec().into());
        let error = FieldError::invalid(&Path::new("f"), &Value::from([("k", bytes.clone())]), "");
        assert_eq!(error.body(), "Invalid value: {\"k\":\"\\u003csecret contents redacted\\u003e\"}");
        let error = FieldError::invalid(&Path::new("f"), &bytes, "");
        assert_eq!(error.body(), "Invalid value: \"<secret contents redacted>\"");
    }

    #[test]
    fn a_status_counts_equal_texts_once_but_keeps_their_causes() {
        let path = Path::new("metadata").child("name");
        let missing = FieldError::required(&path, "name or generateName is required");
        let check = |group: &str, errors: &[FieldError], message: &str, causes: usize| {
            let status = to_status(group, "Secret", "s1", errors);
            assert_eq!((status.code, &*status.reason), (422, "Invalid"));
            assert_eq!(status.message, message);
            assert_eq!(status.details.expect("always there").causes.len(), causes);
        };
        check("", &[], "Secret \"s1\" is invalid", 0);
        check(
            "",
            std::slice::from_ref(&missing),
            "Secret \"s1\" is invalid: metadata.name: Required value: name or generateName is required",
            1,
        );
        check(
            "g.io",
            &[missing.clone(), missing.clone()],
            "Secret.g.io \"s1\" is invalid: metadata.name: Required value: name or generateName is required",
            2,
        );
        check(
            "",
            &[missing, FieldError::forbidden(&Path::new("data"), "no")],
            "Secret \"s1\" is invalid: [metadata.name: Required value: name or generateName is required, \
             data: Forbidden: no]",
            2,
        );
    }
}
