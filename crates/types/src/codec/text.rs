//! Scalars as Go's `encoding/json` writes them, appended to a buffer.

/// Whether Go's encoder writes the byte as it is. Bytes above 0x7f need a closer look.
const PLAIN: [bool; 256] = plain();

const fn plain() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0x20;
    while byte < 0x80 {
        table[byte] = !matches!(byte as u8, b'"' | b'\\' | b'<' | b'>' | b'&');
        byte += 1;
    }
    table
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A quoted string. Invalid UTF-8 becomes `\ufffd`, as in Go.
pub fn quote(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    escape(out, text);
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if PLAIN[usize::from(byte)] {
            at += 1;
            continue;
        }
        if byte < 0x80 {
            out.extend_from_slice(&text[start..at]);
            escape_ascii(out, byte);
            at += 1;
            start = at;
            continue;
        }
        let length = sequence(&text[at..]);
        match length {
            0 => {
                out.extend_from_slice(&text[start..at]);
                out.extend_from_slice(b"\\ufffd");
                at += 1;
                start = at;
            }
            3 if text[at..].starts_with(&[0xe2, 0x80]) && matches!(text[at + 2], 0xa8 | 0xa9) => {
                out.extend_from_slice(&text[start..at]);
                out.extend_from_slice(if text[at + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                at += 3;
                start = at;
            }
            _ => at += length,
        }
    }
    out.extend_from_slice(&text[start..]);
}

fn escape_ascii(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 0xf)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Length of the UTF-8 sequence that `text` begins with, 0 when it is invalid.
pub(super) fn sequence(text: &[u8]) -> usize {
    let head = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or(0, char::len_utf8)
}

/// Text with every invalid byte replaced by U+FFFD, as Go's decoders do.
pub fn lossy(bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) if text.is_empty() => return valid.to_owned(),
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => {
                let (valid, invalid) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &invalid[1..];
            }
        }
    }
}

/// A whole number.
pub fn int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A floating point number: shortest digits, an exponent outside 1e-6..1e21.
/// What is no number (never in a valid object) becomes `null`.
pub fn float(out: &mut Vec<u8>, number: f64) {
    if !number.is_finite() {
        out.extend_from_slice(b"null");
        return;
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let scientific = format!("{number:e}");
        // Rust writes 1e21 where Go writes 1e+21.
        let text = match scientific.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => scientific,
        };
        out.extend_from_slice(text.as_bytes());
    } else {
        out.extend_from_slice(number.to_string().as_bytes());
    }
}

/// Base64 with the standard alphabet and padding, quoted.
pub fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    base64_simd::STANDARD.encode_append(bytes, out);
    out.push(b'"');
}

/// JSON text in Go's compact form: no white space, HTML characters escaped.
/// `json` must be well formed.
pub fn compact(out: &mut Vec<u8>, json: &[u8]) {
    let mut start = 0;
    let mut in_string = false;
    let mut at = 0;
    while at < json.len() {
        let byte = json[at];
        let special = match byte {
            b'"' => {
                in_string = !in_string;
                false
            }
            b'\\' => {
                // The escaped character is never special.
                at += 1;
                false
            }
            b'<' | b'>' | b'&' => true,
            b' ' | b'\t' | b'\r' | b'\n' => !in_string,
            0xe2 => json[at..].starts_with(b"\xe2\x80\xa8") || json[at..].starts_with(b"\xe2\x80\xa9"),
            _ => false,
        };
        if special {
            out.extend_from_slice(&json[start..at]);
            match byte {
                0xe2 => {
                    out.extend_from_slice(if json[at + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                    at += 2;
                }
                b'<' | b'>' | b'&' => escape_ascii(out, byte),
                _ => {}
            }
            start = at + 1;
        }
        at += 1;
    }
    out.extend_from_slice(&json[start.min(json.len())..]);
}

/// Well-formed compact JSON, indented by two spaces as Go's `MarshalIndent` does.
pub fn indent(out: &mut Vec<u8>, json: &[u8]) {
    let mut depth = 0;
    let mut at = 0;
    while at < json.len() {
        let byte = json[at];
        match byte {
            b'"' => {
                let end = string_end(json, at);
                out.extend_from_slice(&json[at..end]);
                at = end;
                continue;
            }
            b'{' | b'[' if matches!(json.get(at + 1), Some(b'}' | b']')) => {
                out.extend_from_slice(&json[at..at + 2]);
                at += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                new_line(out, depth);
            }
            b'}' | b']' => {
                depth -= 1;
                new_line(out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
        at += 1;
    }
}

fn new_line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * depth));
}

/// The position after the string that begins at `at`.
pub(super) fn string_end(json: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < json.len() && json[end] != b'"' {
        end += if json[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(json.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn strings_are_escaped_as_in_go() {
        for (text, expected) in [
            (&b"plain"[..], r#""plain""#),
            (b"<a&b>", r#""\u003ca\u0026b\u003e""#),
            (b"\"\\\n\r\t\x08\x0c\x01\x7f", "\"\\\"\\\\\\n\\r\\t\\b\\f\\u0001\x7f\""),
            ("ä\u{2028}\u{2029}\u{1f600}".as_bytes(), "\"ä\\u2028\\u2029\u{1f600}\""),
            (b"a\xffb\xe2\x82", r#""a\ufffdb\ufffd\ufffd""#),
        ] {
            assert_eq!(written(|out| quote(out, text)), expected);
        }
    }

    #[test]
    fn floats_print_as_in_go() {
        for (number, expected) in [
            (1.0, "1"),
            (0.0, "0"),
            (0.5, "0.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-07"),
            (0.000001, "0.000001"),
            (-2.5e30, "-2.5e+30"),
        ] {
            let expected = expected.replace("e-07", "e-7");
            assert_eq!(written(|out| float(out, number)), expected);
        }
    }

    #[test]
    fn compacting_and_indenting_follow_go() {
        let json = b"{ \"a\" : [ 1 , {} ],\n\"b<\":\"x \\\" <\" }";
        let compacted = written(|out| compact(out, json));
        assert_eq!(compacted, r#"{"a":[1,{}],"b\u003c":"x \" \u003c"}"#);
        let pretty = "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\\u003c\": \"x \\\" \\u003c\"\n}";
        assert_eq!(written(|out| indent(out, compacted.as_bytes())), pretty);
    }
}
