//! YAML of a JSON value: block style, every text that could be something else in quotes.

use serde_json::Value as Json;

/// One document.
pub(super) fn document(value: &Json) -> String {
    let mut out = String::from("---\n");
    write(value, 0, &mut out);
    out
}

fn write(value: &Json, indent: usize, out: &mut String) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                pad(indent, out);
                out.push_str(&scalar(key));
                out.push(':');
                nested(value, indent + 2, out);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for item in items {
                pad(indent, out);
                out.push('-');
                match item {
                    Json::Object(members) if !members.is_empty() => {
                        let mut inner = String::new();
                        write(item, indent + 2, &mut inner);
                        out.push(' ');
                        out.push_str(inner.trim_start_matches(' '));
                    }
                    other => nested(other, indent + 2, out),
                }
            }
        }
        other => {
            pad(indent, out);
            out.push_str(&inline(other));
            out.push('\n');
        }
    }
}

fn nested(value: &Json, indent: usize, out: &mut String) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            out.push('\n');
            write(value, indent, out);
        }
        Json::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(value, indent, out);
        }
        other => {
            out.push(' ');
            out.push_str(&inline(other));
            out.push('\n');
        }
    }
}

fn inline(value: &Json) -> String {
    match value {
        Json::String(text) => scalar(text),
        other => other.to_string(),
    }
}

/// Plain when it cannot be mistaken, else as JSON writes it, which is YAML too.
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n" | ".inf" | ".nan"
        );
    if plain { text.to_owned() } else { Json::from(text).to_string() }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text() {
        let value = json!({"a": [{"b": 1, "c": {}}, "no", ["x"]], "d": "^[a-z]$", "e": {"f": true}, "g": ""});
        let expected = "---\na:\n  - b: 1\n    c: {}\n  - \"no\"\n  -\n    - x\nd: \"^[a-z]$\"\ne:\n  f: true\ng: \"\"\n";
        assert_eq!(document(&value), expected);
    }
}
