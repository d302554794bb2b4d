//! A JSON parser with Go's grammar and Go's words for what breaks it.

use std::borrow::Cow;

use super::Node;
use crate::codec::DecodeError;
use crate::codec::limits::MAX_DEPTH;

/// Parses one JSON document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Node<'_>, DecodeError> {
    let mut parser = Parser { bytes, at: 0 };
    let node = parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(node),
        Some(byte) => Err(invalid(byte, "after top-level value")),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Inside a literal Go takes the end of the input for a space.
    fn peek_or_space(&self) -> u8 {
        self.peek().unwrap_or(b' ')
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The next byte that is no white space.
    fn token(&mut self) -> Result<u8, DecodeError> {
        self.skip_space();
        self.peek().ok_or_else(unexpected_end)
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, DecodeError> {
        match self.token()? {
            b'{' => self.object(deeper(depth)?),
            b'[' => self.array(deeper(depth)?),
            b'"' => Ok(Node::String(self.string()?)),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true", Node::Bool(true)),
            b'f' => self.literal("false", Node::Bool(false)),
            b'n' => self.literal("null", Node::Null),
            byte => Err(invalid(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Node<'a>, DecodeError> {
        self.at += 1;
        let mut members = Vec::new();
        if self.token()? == b'}' {
            self.at += 1;
            return Ok(Node::Object(members));
        }
        loop {
            match self.token()? {
                b'"' => {}
                byte => return Err(invalid(byte, "looking for beginning of object key string")),
            }
            let key = self.string()?;
            match self.token()? {
                b':' => self.at += 1,
                byte => return Err(invalid(byte, "after object key")),
            }
            let value = self.value(depth)?;
            members.push((key, value));
            match self.token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(Node::Object(members));
                }
                byte => return Err(invalid(byte, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Node<'a>, DecodeError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.token()? == b']' {
            self.at += 1;
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            match self.token()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Node::Array(items));
                }
                byte => return Err(invalid(byte, "after array element")),
            }
        }
    }

    fn literal(&mut self, word: &'static str, node: Node<'a>) -> Result<Node<'a>, DecodeError> {
        for expected in word.bytes() {
            let byte = self.peek_or_space();
            if byte != expected {
                let expected = char::from(expected);
                return Err(invalid(byte, &format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(node)
    }

    fn number(&mut self) -> Result<Node<'a>, DecodeError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek_or_space() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            byte => return Err(invalid(byte, "in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        // Only ASCII was accepted.
        let text = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        Ok(Node::Number(Cow::Borrowed(text)))
    }

    fn some_digits(&mut self, context: &str) -> Result<(), DecodeError> {
        match self.peek_or_space() {
            b'0'..=b'9' => {
                self.digits();
                Ok(())
            }
            byte => Err(invalid(byte, context)),
        }
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// A string whose opening quote is next.
    fn string(&mut self) -> Result<Cow<'a, str>, DecodeError> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek() {
                None => return Err(unexpected_end()),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(byte) if byte < 0x20 => return Err(invalid(byte, "in string literal")),
                Some(_) => self.at += 1,
            }
        }
        let raw = &self.bytes[start..self.at];
        self.at += 1;
        if !escaped && let Ok(text) = std::str::from_utf8(raw) {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(unquote(raw)))
    }

    /// Checks what follows a backslash.
    fn escape(&mut self) -> Result<(), DecodeError> {
        match self.peek_or_space() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.at += 1;
                Ok(())
            }
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    match self.peek_or_space() {
                        byte if byte.is_ascii_hexdigit() => self.at += 1,
                        byte => return Err(invalid(byte, "in \\u hexadecimal character escape")),
                    }
                }
                Ok(())
            }
            byte => Err(invalid(byte, "in string escape code")),
        }
    }
}

/// The text of a checked string. Invalid UTF-8 and lone surrogates become U+FFFD.
fn unquote(raw: &[u8]) -> String {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    let mut buffer = [0; 4];
    while at < raw.len() {
        if raw[at] != b'\\' {
            text.push(raw[at]);
            at += 1;
            continue;
        }
        at += 2;
        match raw.get(at - 1) {
            Some(b'b') => text.push(0x08),
            Some(b'f') => text.push(0x0c),
            Some(b'n') => text.push(b'\n'),
            Some(b'r') => text.push(b'\r'),
            Some(b't') => text.push(b'\t'),
            Some(b'u') => {
                let unit = hex(raw, at);
                at += 4;
                let mut decoded = char::from_u32(unit);
                if (0xd800..0xdc00).contains(&unit) && raw[at..].starts_with(b"\\u") {
                    let low = hex(raw, at + 2);
                    if (0xdc00..0xe000).contains(&low) {
                        decoded = char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                        at += 6;
                    }
                }
                let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(decoded.encode_utf8(&mut buffer).as_bytes());
            }
            Some(other) => text.push(*other),
            None => {}
        }
    }
    crate::codec::text::lossy(&text)
}

fn hex(raw: &[u8], at: usize) -> u32 {
    let digits = raw.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xd800)
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(DecodeError::new("exceeded max depth")) }
}

fn unexpected_end() -> DecodeError {
    DecodeError::new("unexpected end of JSON input")
}

fn invalid(byte: u8, context: &str) -> DecodeError {
    let shown = match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        // Go takes the byte for a code point.
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    };
    DecodeError::new(format!("invalid character {shown} {context}"))
}
