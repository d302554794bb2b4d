//! `fieldPath` of a rule: a way through the fields of its schema.

use super::schema::{Additional, Schema};

/// The way that `path` is through `schema`, as it is printed; none where it is no way.
pub(super) fn normalize(path: &str, schema: &Schema) -> Option<String> {
    let mut tokens = Tokens(path);
    let mut found = String::new();
    let mut here = Some(schema);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => {
                let quoted = tokens.next()?;
                let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''))?;
                unescape(inner)?
            }
            _ => return None,
        };
        let schema = here?;
        if schema.properties.is_empty() {
            here = match &schema.additional {
                Additional::Absent => return None,
                Additional::Flag(_) => None,
                Additional::Schema(below) => Some(below),
            };
            found.push_str(&format!("[{name}]"));
        } else {
            here = Some(schema.property(&name)?);
            if !found.is_empty() {
                found.push('.');
            }
            found.push_str(&name);
        }
        if token == "[" && tokens.next()? != "]" {
            return None;
        }
    }
    Some(found)
}

/// Dots, brackets, and what stands between them; text in single quotes is one.
struct Tokens<'p>(&'p str);

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let text = self.0;
        let bytes = text.as_bytes();
        let first = *bytes.first()?;
        let end = match first {
            b'.' | b'[' | b']' => 1,
            b'\'' => (1..bytes.len())
                .find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\')
                .map_or(bytes.len(), |at| at + 1),
            _ => bytes.iter().position(|byte| matches!(byte, b'.' | b'[' | b']')).unwrap_or(bytes.len()),
        };
        let (token, rest) = text.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            // A backslash at the end, or before a line's end, escapes nothing.
            None => out.push('\\'),
            Some('\n') => out.push_str("\\\n"),
            Some('a') => out.push('\u{7}'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('v') => out.push('\u{b}'),
            Some(quoted @ ('\'' | '\\')) => out.push(quoted),
            Some(_) => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::testing;

    #[test]
    fn paths_are_those_of_upstream() {
        let schema = testing::schema(
            r#"{"type": "object", "properties": {
                "foo": {"type": "integer"}, "a.b": {"type": "string"}, "e'f": {"type": "string"},
                "foo34$": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
                "bar": {"type": "object", "properties": {"baz": {"type": "string"}}},
                "map": {"type": "object", "additionalProperties":
                    {"type": "object", "properties": {"x": {"type": "string"}}}},
                "open": {"type": "object", "additionalProperties": true}}}"#,
        );
        let cases = [
            (".foo", Some("foo")),
            (".bar.baz", Some("bar.baz")),
            (".map['k'].x", Some("map[k].x")),
            (".map.k.x", Some("map[k].x")),
            ("['a.b']", Some("a.b")),
            (r"['e\'f']", Some("e'f")),
            (".foo34$", Some("foo34$")),
            (".open.any", Some("open[any]")),
            (".open.any.more", None),
            ("foo", None),
            ("..foo", None),
            (".a.b", None),
            (".foo.x", None),
            (".list[0]", None),
            (".bar['baz", None),
            (".bar['baz'", None),
            (".bar['baz']x", None),
            (r".bar['b\q']", None),
            (".", None),
            (".missing", None),
        ];
        for (path, expected) in cases {
            assert_eq!(normalize(path, &schema).as_deref(), expected, "{path}");
        }
    }
}
