//! JSON as Go's decoders and encoders treat it, on the original text.
//!
//! Values stay raw text until they are asked for, because the difference of
//! `1.10` and `1.1`, or of a large number and its nearest float, is a different
//! secret.

use std::fmt;

use coffer_types::SecretBytes;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// How a number becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// As it stands in the text (Go's `json.Number`).
    Raw,
    /// Through a float64 (Go's default).
    Float,
}

/// The members of an object, in the order of the text; `None` when it is none.
pub(crate) fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Members).ok()?;
    reader.end().ok()?;
    Some(members)
}

/// The items of a list; `None` when it is none.
pub(crate) fn items(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// The text of a JSON string; `None` when it is none.
pub(crate) fn string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// The last member of this name, as Go's decoder keeps it.
pub(crate) fn member<'a>(members: &'a [(String, &'a RawValue)], name: &str) -> Option<&'a RawValue> {
    members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
}

/// Decodes and encodes again as Go does: no space, keys sorted, `<`, `>` and `&` escaped when `html`.
pub(crate) fn canonical(text: &str, numbers: Numbers, html: bool) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    write_canonical(text.trim(), numbers, html, &mut out)?;
    Some(out)
}

fn write_canonical(text: &str, numbers: Numbers, html: bool, out: &mut String) -> Option<()> {
    match text.as_bytes().first()? {
        b'{' => {
            let mut members = members(text)?;
            // Stable: of equal keys the last one is kept.
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            let mut kept: Vec<(String, &RawValue)> = Vec::with_capacity(members.len());
            for member in members {
                match kept.last_mut() {
                    Some(last) if last.0 == member.0 => *last = member,
                    _ => kept.push(member),
                }
            }
            out.push('{');
            for (index, (key, value)) in kept.iter().enumerate() {
                if 0 < index {
                    out.push(',');
                }
                write_string(key, html, out);
                out.push(':');
                write_canonical(value.get(), numbers, html, out)?;
            }
            out.push('}');
        }
        b'[' => {
            out.push('[');
            for (index, value) in items(text)?.iter().enumerate() {
                if 0 < index {
                    out.push(',');
                }
                write_canonical(value.get(), numbers, html, out)?;
            }
            out.push(']');
        }
        b'"' => write_string(&string(text)?, html, out),
        b't' | b'f' | b'n' => out.push_str(text),
        _ => match numbers {
            Numbers::Raw => out.push_str(text),
            Numbers::Float => out.push_str(&json_float(text.parse().ok()?)),
        },
    }
    Some(())
}

/// Appends `text` as a JSON string as Go writes it.
pub(crate) fn write_string(text: &str, html: bool, out: &mut String) {
    use std::fmt::Write as _;
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if html => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            control if u32::from(control) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A value as bytes (upstream's `GetByteValue`): a string raw, a container as JSON, `null` as nothing.
pub(crate) fn bytes(text: &str, numbers: Numbers) -> Option<SecretBytes> {
    let text = text.trim();
    let plain = match text.as_bytes().first()? {
        b'"' => string(text)?,
        b'{' | b'[' => canonical(text, numbers, true)?,
        b'n' => String::new(),
        b't' | b'f' => text.to_owned(),
        _ => match numbers {
            Numbers::Raw => text.to_owned(),
            Numbers::Float => text.parse::<f64>().ok()?.to_string(),
        },
    };
    Some(SecretBytes::from(plain))
}

/// A value as bytes (upstream's `JSONToSecretDataMap`): a string unquoted, everything else as it stands.
#[cfg(feature = "fake")]
pub(crate) fn raw_bytes(value: &RawValue) -> SecretBytes {
    let text = value.get();
    SecretBytes::from(string(text).unwrap_or_else(|| text.to_owned()))
}

/// A float as Go's JSON encoder writes it: an exponent below 1e-6 and from 1e21 on.
fn json_float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number.to_string();
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_written_as_go_writes_it() {
        let cases = [
            (r#"{ "b": 1.10, "a": [ 1, "x" ] }"#, r#"{"a":[1,"x"],"b":1.10}"#, r#"{"a":[1,"x"],"b":1.1}"#),
            (r#"{"a":"<&>"}"#, "{\"a\":\"\\u003c\\u0026\\u003e\"}", "{\"a\":\"\\u003c\\u0026\\u003e\"}"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, r#"{"a":2}"#),
            ("12345678901234567890", "12345678901234567890", "12345678901234567000"),
            ("1e21", "1e21", "1e+21"),
            ("0.0000001", "0.0000001", "1e-7"),
            (r#"{"a":null,"b":true}"#, r#"{"a":null,"b":true}"#, r#"{"a":null,"b":true}"#),
        ];
        for (text, raw, float) in cases {
            assert_eq!(canonical(text, Numbers::Raw, true).as_deref(), Some(raw), "{text}");
            assert_eq!(canonical(text, Numbers::Float, true).as_deref(), Some(float), "{text}");
        }
        assert_eq!(canonical("\"<\"", Numbers::Raw, false).as_deref(), Some("\"<\""));
        for bad in ["", "{", "{\"a\":}", "[1,]"] {
            assert_eq!(canonical(bad, Numbers::Raw, false), None, "{bad}");
        }
    }

    #[test]
    fn values_become_bytes_as_upstream() {
        let cases = [
            (r#""x\ny""#, "x\ny"),
            ("true", "true"),
            ("null", ""),
            ("5432", "5432"),
            ("1e3", "1000"),
            ("9007199254740993", "9007199254740992"),
            (r#"{"a": "<"}"#, "{\"a\":\"\\u003c\"}"),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text, Numbers::Float).unwrap().expose(), expected.as_bytes(), "{text}");
        }
        assert_eq!(bytes("9007199254740993", Numbers::Raw).unwrap().expose(), b"9007199254740993");
    }
}
