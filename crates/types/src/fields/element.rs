//! One step of a field path, its text in `FieldsV1` and its text for people.

use std::cmp::Ordering;
use std::fmt;

use crate::Value;
use crate::codec::{json, text};
use crate::fields::error::SetError;
use crate::fields::name::Name;
use crate::fields::numbers::read_numbers;
use crate::validation::field::go_quote;

/// One step of a field path. The order is that in which Go prints them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A field of an object: `f:name`.
    Field(Name),
    /// An item of a list that is keyed: `k:{"uid":"…"}`, ordered by name.
    Key(Vec<(String, Scalar)>),
    /// An item of a set: `v:"x"`.
    Value(Scalar),
    /// An item by its position: `i:0`.
    Index(i64),
}

/// A value inside a path element, compared as structured-merge-diff compares values.
#[derive(Debug, Clone)]
pub struct Scalar(pub Value);

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

/// Whole and other numbers compare with each other, and stand before text, booleans and the rest.
fn order(left: &Value, right: &Value) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) | Value::Bytes(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (left @ (Value::Int(_) | Value::Float(_)), right @ (Value::Int(_) | Value::Float(_))) => {
            as_float(left).partial_cmp(&as_float(right)).unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let unequal =
                left.iter().zip(right).map(|(left, right)| order(left, right)).find(|it| it.is_ne());
            unequal.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (left, right) if rank(left) == rank(right) => json_text(left).cmp(&json_text(right)),
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn as_float(value: &Value) -> f64 {
    match value {
        #[allow(clippy::cast_precision_loss, reason = "as structured-merge-diff compares them")]
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        _ => 0.0,
    }
}

fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    json::encode_untyped(value, &mut bytes);
    String::from_utf8(bytes).unwrap_or_else(|error| text::lossy(error.as_bytes()))
}

impl PathElement {
    /// The field of that name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// As a key of a `fieldsV1`.
    pub fn serialize(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name.as_str()].concat(),
            Self::Key(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| {
                        format!("{}:{}", json_text(&name.as_str().into()), json_text(&value.0))
                    })
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(value) => format!("v:{}", json_text(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// From a key of a `fieldsV1`; `None` for a kind of element that is not known.
    pub fn deserialize(key: &str) -> Result<Option<Self>, SetError> {
        if key.len() < 2 {
            return Err(SetError::new("key must be 2 characters long:"));
        }
        let (Some(rest), b':') = (key.get(2..), key.as_bytes()[1]) else {
            return Err(SetError::new(format!("missing colon: {key}")));
        };
        let json = || {
            let decoded = json::decode_untyped(rest.as_bytes());
            let mut value = decoded.map_err(|error| SetError::new(error.to_string()))?.object;
            // As the original, which has every number as floating point.
            read_numbers(&mut value);
            Ok(value)
        };
        Ok(Some(match key.as_bytes()[0] {
            b'f' => Self::Field(rest.into()),
            b'v' => Self::Value(Scalar(json()?)),
            b'i' => {
                let index = rest.strip_prefix('+').unwrap_or(rest).parse();
                Self::Index(index.map_err(|_| SetError::new(format!("invalid index: {rest}")))?)
            }
            b'k' => match json()? {
                Value::Object(fields) => {
                    Self::Key(fields.into_iter().map(|(name, value)| (name, Scalar(value))).collect())
                }
                _ => return Err(SetError::new("a key must be an object")),
            },
            _ => return Ok(None),
        }))
    }
}

/// As upstream prints a path, element by element: `.spec.containers[name="c"].image`.
impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(name, value)| format!("{name}={}", shown(&value.0))).collect();
                write!(formatter, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(formatter, "[={}]", shown(&value.0)),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// A whole path as upstream prints it.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

/// A value inside a path, for people.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        // Upstream has read every number as floating point.
        Value::Int(_) | Value::Float(_) => go_float(as_float(value)),
        Value::String(text) => go_quote(text),
        Value::Bytes(_) => "\"<secret contents redacted>\"".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Object(members) => {
            members.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect()
        }
    }
}

/// Go's `%v` of a float: shortest, with an exponent below 1e-4 and from 1e6 on.
pub(crate) fn go_float(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_have_go_s_order_and_form() {
        let port = |number: i64| {
            PathElement::Key(vec![
                ("containerPort".to_owned(), Scalar(Value::Int(number))),
                ("protocol".to_owned(), Scalar("TCP".into())),
            ])
        };
        let value = |value: Value| PathElement::Value(Scalar(value));
        let ordered = [
            PathElement::field("a"),
            PathElement::field("b"),
            port(80),
            port(443),
            value(2.into()),
            value(10.into()),
            value("10".into()),
            value(false.into()),
            PathElement::Index(0),
        ];
        assert!(ordered.is_sorted());
        assert_eq!(port(80).serialize(), r#"k:{"containerPort":80,"protocol":"TCP"}"#);
        assert_eq!(value("a<b".into()).serialize(), r#"v:"a\u003cb""#);
        assert_eq!(Scalar(Value::Float(80.0)), Scalar(Value::Int(80)));
        assert_eq!(
            path_text(&[PathElement::field("spec"), port(80), value("x\"y".into()), PathElement::Index(3)]),
            r#".spec[containerPort=80,protocol="TCP"][="x\"y"][3]"#
        );
    }

    #[test]
    fn floats_print_as_by_go() {
        for (number, text) in [
            (80.0, "80"),
            (0.0, "0"),
            (1.5, "1.5"),
            (999_999.0, "999999"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1.25e-5, "1.25e-05"),
            (0.0001, "0.0001"),
            (-2.5e30, "-2.5e+30"),
        ] {
            assert_eq!(go_float(number), text);
        }
    }
}
