//! Texts between quotation marks, as Go prints them.

use std::fmt::Write as _;

/// Go's `%q` of a string.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            plain if is_print(plain) => quoted.push(plain),
            other => {
                let code = u32::from(other);
                // Writing to a String cannot fail.
                let _ = match code {
                    0..=0x7f => write!(quoted, "\\x{code:02x}"),
                    0x80..=0xffff => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Go's `unicode.IsPrint`: what has a shape of its own, and the ASCII space.
pub fn is_print(character: char) -> bool {
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    // A string's escaping keeps marks, which a character's would not, unless they come first.
    let mut pair = String::with_capacity(5);
    pair.push('a');
    pair.push(character);
    pair.escape_debug().nth(1) == Some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_go_s() {
        let check = |text: &str, expected: &str| assert_eq!(go_quote(text), expected);
        check("", "\"\"");
        check("a b", "\"a b\"");
        check("\\", "\"\\\\\"");
        check("\x00\x07\x08\x0b\x0c\x7f", "\"\\x00\\a\\b\\v\\f\\x7f\"");
        check("ü日本", "\"ü日本\"");
        check("\u{a0}\u{200b}\u{feff}", "\"\\u00a0\\u200b\\ufeff\"");
        check("e\u{301}", "\"e\u{301}\"");
        check("\u{e0001}", "\"\\U000e0001\"");
    }
}
