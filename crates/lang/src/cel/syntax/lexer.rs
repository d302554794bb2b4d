//! From characters to tokens.
//!
//! As the generated lexer of upstream: the longest token wins, and where no
//! token can be made, everything up to and including the character that ended
//! the last hope is reported and skipped.

use super::issues::{Issue, Source};
use super::token::{Lexeme, Token};

/// The tokens of a source, what was skipped, and what was wrong.
pub(crate) type Lexed = (Vec<Lexeme>, Vec<(usize, usize)>, Vec<Issue>);

/// All tokens of a source, the last one [`Token::End`].
pub(crate) fn lex(source: &Source<'_>) -> Lexed {
    let mut issues = Vec::new();
    let mut skipped = Vec::new();
    let mut lexer = Lexer { text: source.text, position: 0, offset: 0 };
    let mut lexemes = Vec::with_capacity(source.text.len() / 3 + 2);
    loop {
        lexer.skip_hidden();
        let (start, offset) = (lexer.position, lexer.offset);
        if start == source.text.len() {
            lexemes.push(Lexeme { token: Token::End, start, end: start, offset });
            return (lexemes, skipped, issues);
        }
        match lexer.token() {
            Ok((token, length)) => {
                lexer.advance(length);
                lexemes.push(Lexeme { token, start, end: start + length, offset });
            }
            Err(length) => {
                let rest = &source.text[start + length..];
                let failing = rest.chars().next().map_or(0, char::len_utf8);
                let text = &source.text[start..start + length + failing];
                issues.push(
                    source.issue(Some(offset), format!("Syntax error: token recognition error at: '{text}'")),
                );
                lexer.advance(length + failing);
                skipped.push((start, start + length + failing));
            }
        }
    }
}

struct Lexer<'s> {
    text: &'s str,
    position: usize,
    offset: u32,
}

impl Lexer<'_> {
    fn advance(&mut self, length: usize) {
        let passed = &self.text[self.position..self.position + length];
        self.offset += if passed.is_ascii() { length } else { passed.chars().count() } as u32;
        self.position += length;
    }

    fn skip_hidden(&mut self) {
        loop {
            let rest = &self.text.as_bytes()[self.position..];
            let blank =
                rest.iter().take_while(|byte| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)).count();
            if blank > 0 {
                self.advance(blank);
            } else if rest.starts_with(b"//") {
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.advance(length);
            } else {
                return;
            }
        }
    }

    /// The kind and the length of the token here, or how far a token could have gone.
    fn token(&self) -> Result<(Token, usize), usize> {
        let rest = &self.text.as_bytes()[self.position..];
        let next = |index: usize| rest.get(index).copied().unwrap_or(0);
        let simple = |token| Ok((token, 1));
        let double = |second: u8, both: Token, single: Option<Token>| {
            if next(1) == second { Ok((both, 2)) } else { single.map(|token| (token, 1)).ok_or(1) }
        };
        match rest[0] {
            b'=' => double(b'=', Token::Equals, None),
            b'!' => double(b'=', Token::NotEquals, Some(Token::Not)),
            b'<' => double(b'=', Token::LessEquals, Some(Token::Less)),
            b'>' => double(b'=', Token::GreaterEquals, Some(Token::Greater)),
            b'&' => double(b'&', Token::And, None),
            b'|' => double(b'|', Token::Or, None),
            b'[' => simple(Token::LeftBracket),
            b']' => simple(Token::RightBracket),
            b'{' => simple(Token::LeftBrace),
            b'}' => simple(Token::RightBrace),
            b'(' => simple(Token::LeftParenthesis),
            b')' => simple(Token::RightParenthesis),
            b'.' if next(1).is_ascii_digit() => Ok(number(rest)),
            b'.' => simple(Token::Dot),
            b',' => simple(Token::Comma),
            b'-' => simple(Token::Minus),
            b'?' => simple(Token::Question),
            b':' => simple(Token::Colon),
            b'+' => simple(Token::Plus),
            b'*' => simple(Token::Star),
            b'/' => simple(Token::Slash),
            b'%' => simple(Token::Percent),
            b'0'..=b'9' => Ok(number(rest)),
            b'"' | b'\'' => string(rest, false).map(|length| (Token::String, length)),
            b'`' => escaped_identifier(rest),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => Ok(word(rest)),
            _ => Err(0),
        }
    }
}

/// An identifier, a keyword, or a string with a prefix.
fn word(rest: &[u8]) -> (Token, usize) {
    let quote = |index: usize| matches!(rest.get(index), Some(b'"' | b'\''));
    let letter =
        |index: usize, upper: u8| rest.get(index).is_some_and(|byte| byte.to_ascii_uppercase() == upper);
    let prefixed = if letter(0, b'R') && quote(1) {
        string(&rest[1..], true).ok().map(|length| (Token::String, length + 1))
    } else if letter(0, b'B') && quote(1) {
        string(&rest[1..], false).ok().map(|length| (Token::Bytes, length + 1))
    } else if letter(0, b'B') && letter(1, b'R') && quote(2) {
        string(&rest[2..], true).ok().map(|length| (Token::Bytes, length + 2))
    } else {
        None
    };
    if let Some(found) = prefixed {
        return found;
    }
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let token = match &rest[..length] {
        b"in" => Token::In,
        b"true" => Token::True,
        b"false" => Token::False,
        b"null" => Token::Null,
        _ => Token::Identifier,
    };
    (token, length)
}

fn number(rest: &[u8]) -> (Token, usize) {
    let digits =
        |from: usize| rest[from.min(rest.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let at = |index: usize| rest.get(index).copied().unwrap_or(0);
    if rest.starts_with(b"0x") {
        let length = 2 + rest[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if length > 2 {
            return if matches!(at(length), b'u' | b'U') {
                (Token::Uint, length + 1)
            } else {
                (Token::Int, length)
            };
        }
    }
    let whole = digits(0);
    let mut length = whole;
    let mut float = false;
    if at(length) == b'.' && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
        float = true;
    }
    if matches!(at(length), b'e' | b'E') {
        let sign = usize::from(matches!(at(length + 1), b'+' | b'-'));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            return (Token::Float, length + 1 + sign + exponent);
        }
    }
    if float {
        return (Token::Float, length);
    }
    if matches!(at(length), b'u' | b'U') { (Token::Uint, length + 1) } else { (Token::Int, length) }
}

/// The length of a quoted string, or how far it could have gone.
fn string(rest: &[u8], raw: bool) -> Result<usize, usize> {
    let quote = rest[0];
    if rest[1..].starts_with(&[quote, quote]) {
        // Unterminated, it is the empty string and what follows.
        return Ok(triple(rest, quote, raw).unwrap_or(2));
    }
    let mut index = 1;
    while let Some(byte) = rest.get(index) {
        match byte {
            b'\n' | b'\r' => return Err(index),
            b'\\' if !raw => index += escape(&rest[index..]).map_err(|reached| index + reached)?,
            byte if *byte == quote => return Ok(index + 1),
            _ => index += 1,
        }
    }
    Err(index)
}

fn triple(rest: &[u8], quote: u8, raw: bool) -> Option<usize> {
    let mut index = 3;
    while index < rest.len() {
        if rest[index..].starts_with(&[quote, quote, quote]) {
            return Some(index + 3);
        }
        index += if rest[index] == b'\\' && !raw { escape(&rest[index..]).ok()? } else { 1 };
    }
    None
}

/// The length of an escape sequence, or how far it could have gone.
fn escape(rest: &[u8]) -> Result<usize, usize> {
    let at = |index: usize| rest.get(index).copied().unwrap_or(0);
    let run = |length: usize, fits: fn(&u8) -> bool| {
        let found = rest.iter().skip(2).take(length).take_while(|byte| fits(byte)).count();
        if found == length { Ok(2 + length) } else { Err(2 + found) }
    };
    match at(1) {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Ok(2),
        b'0'..=b'3' => run(2, |byte| matches!(byte, b'0'..=b'7')),
        b'x' | b'X' => run(2, u8::is_ascii_hexdigit),
        b'u' => run(4, u8::is_ascii_hexdigit),
        b'U' => run(8, u8::is_ascii_hexdigit),
        _ => Err(1),
    }
}

fn escaped_identifier(rest: &[u8]) -> Result<(Token, usize), usize> {
    let length = rest
        .iter()
        .skip(1)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/' | b' '))
        .count();
    if length > 0 && rest.get(length + 1) == Some(&b'`') {
        Ok((Token::EscapedIdentifier, length + 2))
    } else {
        Err(length + 1)
    }
}
