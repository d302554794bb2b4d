//! What quoted literals mean.

/// The bytes that a quoted literal means; escapes are characters in strings and
/// bytes in byte strings.
pub(crate) fn unquote(literal: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let (raw, quoted) = match literal.as_bytes().first() {
        Some(b'r' | b'R') => (true, &literal[1..]),
        _ => (false, literal),
    };
    let normal;
    let quoted = if quoted.contains('\r') {
        normal = quoted.replace("\r\n", "\n").replace('\r', "\n");
        normal.as_str()
    } else {
        quoted
    };
    let quotes =
        if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let inner = &quoted[quotes..quoted.len() - quotes];
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(position) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..position]);
        let escape = rest.as_bytes()[position + 1];
        rest = &rest[position + 2..];
        let simple = match escape {
            b'a' => Some(7),
            b'b' => Some(8),
            b'f' => Some(12),
            b'n' => Some(b'\n'),
            b'r' => Some(b'\r'),
            b't' => Some(b'\t'),
            b'v' => Some(11),
            b'0'..=b'7' | b'x' | b'X' | b'u' | b'U' => None,
            other => Some(other),
        };
        if let Some(byte) = simple {
            out.push(byte);
            continue;
        }
        let (digits, radix, unicode) = match escape {
            b'x' | b'X' => (2, 16, false),
            b'u' => (4, 16, true),
            b'U' => (8, 16, true),
            _ => (3, 8, false),
        };
        if unicode && bytes {
            return Err("unable to unescape string");
        }
        let number = if radix == 8 {
            let first = u32::from(escape - b'0') * 64;
            let others = rest.get(..2).and_then(|text| u32::from_str_radix(text, 8).ok());
            rest = rest.get(2..).unwrap_or_default();
            others.map(|others| first + others)
        } else {
            let number = rest.get(..digits).and_then(|text| u32::from_str_radix(text, radix).ok());
            rest = rest.get(digits..).unwrap_or_default();
            number
        };
        let number = number.ok_or("unable to unescape string")?;
        if bytes {
            out.push(u8::try_from(number).map_err(|_| "unable to unescape string")?);
        } else {
            let character = char::from_u32(number).ok_or("invalid unicode code point")?;
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_unquoted_as_upstream_does() {
        type Case = (&'static str, bool, Result<&'static [u8], &'static str>);
        let cases: [Case; 9] = [
            ("'a'", false, Ok(b"a")),
            (r#""a\"b""#, false, Ok(b"a\"b")),
            ("'''a\r\n'b'''", false, Ok(b"a\n'b")),
            (r"r'\n'", false, Ok(br"\n")),
            (r"'\xe9'", false, Ok("\u{e9}".as_bytes())),
            (r"'\xe9'", true, Ok(b"\xe9")),
            (r"'\303\251'", true, Ok(b"\xc3\xa9")),
            (r"'\u00e9'", true, Err("unable to unescape string")),
            (r"'\ud800'", false, Err("invalid unicode code point")),
        ];
        for (literal, bytes, expected) in cases {
            assert_eq!(unquote(literal, bytes), expected.map(<[u8]>::to_vec), "{literal}");
        }
    }
}
