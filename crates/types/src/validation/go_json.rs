//! Whether bytes are a JSON object, with the texts of Go's `encoding/json`.
//!
//! The bytes are secret: of them, a text names at most the one character at
//! which they stop being JSON, as Go does. Nothing is decoded or kept.

/// Deepest nesting that Go's scanner accepts.
const DEPTH_LIMIT: usize = 10_000;

/// What Go's `json.Unmarshal` into `map[string]interface{}` says. `null` is fine there.
pub fn check_object(bytes: &[u8]) -> Result<(), String> {
    let mut scanner = Scanner { bytes, position: 0 };
    scanner.document()?;
    let first = bytes.iter().find(|byte| !is_space(**byte)).copied();
    let kind = match first {
        Some(b'{' | b'n') | None => return scanner.numbers_fit(),
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(_) => "number",
    };
    Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
}

struct Scanner<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), String> {
        // The open brackets; a loop, not recursion, so that depth costs no stack.
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.skip_space();
            match self.next()? {
                bracket @ (b'{' | b'[') => {
                    if open.len() >= DEPTH_LIMIT {
                        return Err(invalid(bracket, "exceeded max depth"));
                    }
                    self.skip_space();
                    let closing = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek() == Some(closing) {
                        self.position += 1;
                    } else {
                        open.push(bracket);
                        if bracket == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                b'-' => {
                    let first = self.next_or_space();
                    self.number(first, "in numeric literal")?;
                }
                digit @ b'0'..=b'9' => self.number(digit, "")?,
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                other => return Err(invalid(other, "looking for beginning of value")),
            }
            if !self.after_value(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Closes brackets and reads a comma. False at the end of the document.
    fn after_value(&mut self, open: &mut Vec<u8>) -> Result<bool, String> {
        loop {
            self.skip_space();
            let Some(bracket) = open.last() else {
                return match self.peek() {
                    None => Ok(false),
                    Some(byte) => Err(invalid(byte, "after top-level value")),
                };
            };
            match (bracket, self.next()?) {
                (b'{', b',') => {
                    self.skip_space();
                    self.key()?;
                    return Ok(true);
                }
                (b'[', b',') => return Ok(true),
                (b'{', b'}') | (b'[', b']') => {
                    open.pop();
                }
                (b'{', other) => return Err(invalid(other, "after object key:value pair")),
                (_, other) => return Err(invalid(other, "after array element")),
            }
        }
    }

    fn key(&mut self) -> Result<(), String> {
        match self.next()? {
            b'"' => self.string()?,
            other => return Err(invalid(other, "looking for beginning of object key string")),
        }
        self.skip_space();
        match self.next()? {
            b':' => Ok(()),
            other => Err(invalid(other, "after object key")),
        }
    }

    fn string(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next_or_space() {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let digit = self.next_or_space();
                            if !digit.is_ascii_hexdigit() {
                                return Err(invalid(digit, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    other => return Err(invalid(other, "in string escape code")),
                },
                control @ 0..=0x1f => return Err(invalid(control, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8, context: &str) -> Result<(), String> {
        match first {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            other => return Err(invalid(other, context)),
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            let digit = self.next_or_space();
            if !digit.is_ascii_digit() {
                return Err(invalid(digit, "after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            let digit = self.next_or_space();
            if !digit.is_ascii_digit() {
                return Err(invalid(digit, "in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes().skip(1) {
            let byte = self.next_or_space();
            if byte != expected {
                let context = format!("in literal {word} (expecting {})", quote(expected));
                return Err(invalid(byte, &context));
            }
        }
        Ok(())
    }

    /// Go refuses numbers that no float holds; ours does not repeat the digits.
    fn numbers_fit(&self) -> Result<(), String> {
        let mut rest = Scanner { bytes: self.bytes, position: 0 };
        while let Some(byte) = rest.peek() {
            rest.position += 1;
            match byte {
                b'"' => rest.string()?,
                b'-' | b'0'..=b'9' => {
                    let start = rest.position - 1;
                    while matches!(rest.peek(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
                        rest.position += 1;
                    }
                    let text = std::str::from_utf8(&rest.bytes[start..rest.position]).unwrap_or_default();
                    if text.parse::<f64>().is_ok_and(f64::is_infinite) {
                        return Err("json: cannot unmarshal number into Go value of type float64".to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.position += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    /// Inside a number, an escape or a word, Go takes the end of the input for a space.
    fn next_or_space(&mut self) -> u8 {
        let byte = self.peek().unwrap_or(b' ');
        self.position += 1;
        byte
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())?;
        self.position += 1;
        Ok(byte)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn invalid(byte: u8, context: &str) -> String {
    format!("invalid character {} {context}", quote(byte))
}

/// One byte as Go quotes it: as the character of that number, in single quotes.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => {
            let quoted = super::field::go_quote(&char::from(other).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: impl AsRef<[u8]>, expected: &str) {
        let actual = check_object(text.as_ref()).err().unwrap_or_default();
        assert_eq!(actual, expected, "{:?}", String::from_utf8_lossy(text.as_ref()));
    }

    #[test]
    fn the_texts_are_go_s() {
        for good in [
            "{}",
            "null",
            " { } ",
            "{\"a\":[1,2.5e-3,-0,true,false,null,{\"b\":\"\\u00e9\\n\"}]}\n",
            "{\"a\":1,\"a\":2}",
        ] {
            check(good, "");
        }
        let end = "unexpected end of JSON input";
        for cut in ["", " ", "{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "[", "[1,"] {
            check(cut, end);
        }
        let map = |kind: &str| {
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        };
        check("[]", &map("array"));
        check(" \"x\"", &map("string"));
        check("1", &map("number"));
        check("-1.5e3", &map("number"));
        check("true", &map("bool"));
        check("tr", "invalid character ' ' in literal true (expecting 'u')");
        check("-", "invalid character ' ' in numeric literal");
        check("{\"a\":1.", "invalid character ' ' after decimal point in numeric literal");
        check("{\"a\":\"\\u12", "invalid character ' ' in \\u hexadecimal character escape");
        check("x", "invalid character 'x' looking for beginning of value");
        check("{} y", "invalid character 'y' after top-level value");
        check("1x", "invalid character 'x' after top-level value");
        check("01", "invalid character '1' after top-level value");
        check("{a", "invalid character 'a' looking for beginning of object key string");
        check("{\"a\":1,}", "invalid character '}' looking for beginning of object key string");
        check("{\"a\" 1", "invalid character '1' after object key");
        check("{\"a\":1 \"", "invalid character '\"' after object key:value pair");
        check("[1 2", "invalid character '2' after array element");
        check("[1,]", "invalid character ']' looking for beginning of value");
        check("{\"a\":\"\n", "invalid character '\\n' in string literal");
        check("{\"a\":\"\\x", "invalid character 'x' in string escape code");
        check("{\"a\":\"\\u12g", "invalid character 'g' in \\u hexadecimal character escape");
        check("-a", "invalid character 'a' in numeric literal");
        check("1.a", "invalid character 'a' after decimal point in numeric literal");
        check("1ea", "invalid character 'a' in exponent of numeric literal");
        check("txue", "invalid character 'x' in literal true (expecting 'r')");
        check("nulL", "invalid character 'L' in literal null (expecting 'l')");
        check("fALSE", "invalid character 'A' in literal false (expecting 'a')");
        check("'", "invalid character '\\'' looking for beginning of value");
        check(b"\xff", "invalid character 'ÿ' looking for beginning of value");
        check(b"\x00", "invalid character '\\x00' looking for beginning of value");
        check("{\"a\":1e999}", "json: cannot unmarshal number into Go value of type float64");
    }

    #[test]
    fn depth_has_a_limit() {
        check("[".repeat(10_000), "unexpected end of JSON input");
        check("[".repeat(10_001), "invalid character '[' exceeded max depth");
    }
}
