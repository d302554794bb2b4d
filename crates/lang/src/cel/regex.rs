//! Regular expressions as Go reads them: RE2's syntax, linear time, bounds on size.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::CharIndices;

use regex::{Regex, RegexBuilder};

/// Bounds of a pattern's compiled form: the least one that it fits is what it counts for.
const SIZES: [usize; 3] = [16 << 10, 128 << 10, 1 << 20];
/// Largest cache of states of one match.
const CACHE_SIZE: usize = 1 << 20;
/// Most repetitions that a pattern may ask for.
const REPETITIONS: u32 = 1000;
/// Deepest nesting of groups.
const NESTING: usize = 250;

/// Compiles `pattern`, and tells what that counts for, in bytes; the error is Go's text.
pub(crate) fn compile(pattern: &str) -> (Result<Regex, String>, usize) {
    let translated = match Translator::new(pattern).run() {
        Ok(translated) => translated,
        Err(error) => return (Err(format!("error parsing regexp: {error}")), SIZES[0]),
    };
    for size in SIZES {
        match RegexBuilder::new(&translated).size_limit(size).dfa_size_limit(CACHE_SIZE).build() {
            Ok(regex) => return (Ok(regex), size),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => {
                return (Err(format!("error parsing regexp: invalid character class: `{pattern}`")), size);
            }
        }
    }
    (Err("error parsing regexp: expression too large".to_owned()), SIZES[SIZES.len() - 1])
}

struct Translator<'p> {
    pattern: &'p str,
    characters: Peekable<CharIndices<'p>>,
    out: String,
    groups: usize,
    /// Where the last repetition began, if nothing came since.
    repeated: Option<usize>,
    /// Whether there is something that can be repeated.
    repeatable: bool,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            pattern,
            characters: pattern.char_indices().peekable(),
            out: String::with_capacity(pattern.len() + 16),
            groups: 0,
            repeated: None,
            repeatable: false,
        }
    }

    fn rest(&mut self) -> &'p str {
        self.characters.peek().map_or("", |(position, _)| &self.pattern[*position..])
    }

    fn skip(&mut self, bytes: usize) {
        let end = self.characters.peek().map_or(self.pattern.len(), |(position, _)| position + bytes);
        while self.characters.next_if(|(position, _)| *position < end).is_some() {}
    }

    fn run(mut self) -> Result<String, String> {
        while let Some((position, character)) = self.characters.next() {
            match character {
                '*' | '+' | '?' => self.repetition(position, position + 1)?,
                '{' => match self.counted(position)? {
                    Some(end) => self.repetition(position, end)?,
                    None => self.atom("\\{"),
                },
                '(' => self.group(position)?,
                ')' => {
                    if self.groups == 0 {
                        return Err(format!("unexpected ): `{}`", self.pattern));
                    }
                    self.groups -= 1;
                    self.atom(")");
                }
                '|' => {
                    self.out.push('|');
                    self.repeatable = false;
                    self.repeated = None;
                }
                '[' => self.class(position)?,
                '\\' => self.escape(position)?,
                '}' => self.atom("\\}"),
                other => {
                    self.out.push(other);
                    self.repeatable = true;
                    self.repeated = None;
                }
            }
        }
        if self.groups > 0 {
            return Err(format!("missing closing ): `{}`", self.pattern));
        }
        Ok(self.out)
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = true;
        self.repeated = None;
    }

    fn repetition(&mut self, start: usize, mut end: usize) -> Result<(), String> {
        if self.characters.next_if(|(_, character)| *character == '?').is_some() {
            end += 1;
        }
        if let Some(before) = self.repeated {
            return Err(format!("invalid nested repetition operator: `{}`", &self.pattern[before..end]));
        }
        if !self.repeatable {
            return Err(format!("missing argument to repetition operator: `{}`", &self.pattern[start..end]));
        }
        self.out.push_str(&self.pattern[start..end]);
        self.repeated = Some(start);
        Ok(())
    }

    /// The end of `{2}`, `{2,}` or `{2,3}` at `start`; anything else in braces is text.
    fn counted(&mut self, start: usize) -> Result<Option<usize>, String> {
        let rest = self.rest();
        let Some(length) = rest.find('}') else { return Ok(None) };
        let inner = &rest[..length];
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            (plain && (text == "0" || !text.starts_with('0')))
                .then(|| text.parse::<u32>().unwrap_or(u32::MAX))
        };
        let Some(least) = number(least) else { return Ok(None) };
        let most = if most.is_empty() { Some(least) } else { number(most) };
        let Some(most) = most else { return Ok(None) };
        let end = start + 1 + length + 1;
        if least > REPETITIONS || most > REPETITIONS || most < least {
            return Err(format!("invalid repeat count: `{}`", &self.pattern[start..end]));
        }
        self.skip(length + 1);
        Ok(Some(end))
    }

    fn group(&mut self, start: usize) -> Result<(), String> {
        self.groups += 1;
        if self.groups > NESTING {
            return Err(format!("expression nests too deeply: `{}`", self.pattern));
        }
        self.repeatable = false;
        self.repeated = None;
        self.out.push('(');
        let rest = self.rest();
        let Some(flags) = rest.strip_prefix('?') else { return Ok(()) };
        if let Some(named) = flags.strip_prefix("P<").or_else(|| flags.strip_prefix('<')) {
            let Some(length) = named.find('>') else {
                return Err(format!("invalid named capture: `{}`", &self.pattern[start..]));
            };
            let name = &named[..length];
            let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(word) {
                let prefix = rest.len() - named.len();
                return Err(format!("invalid named capture: `({}>`", &rest[..prefix + length]));
            }
            // The name itself is never asked for, and Go's may begin with a digit.
            self.skip(rest.len() - named.len() + length + 1);
            return Ok(());
        }
        let length = flags.find([':', ')']).unwrap_or(flags.len());
        let valid = flags[..length].bytes().all(|byte| matches!(byte, b'i' | b'm' | b's' | b'U' | b'-'));
        if !valid || length == flags.len() || flags[..length].ends_with('-') {
            let bad = flags.find(|character: char| !matches!(character, 'i' | 'm' | 's' | 'U' | '-'));
            let end =
                bad.map_or(flags.len(), |bad| bad + flags[bad..].chars().next().map_or(0, char::len_utf8));
            return Err(format!("invalid or unsupported Perl syntax: `(?{}`", &flags[..end]));
        }
        self.out.push_str(&rest[..length + 1]);
        self.skip(length + 1);
        if flags[length..].starts_with(')') {
            self.out.push(')');
            self.skip(1);
            self.groups -= 1;
        } else {
            self.out.push(':');
            self.skip(1);
        }
        Ok(())
    }

    fn escape(&mut self, start: usize) -> Result<(), String> {
        let Some((position, escaped)) = self.characters.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match escaped {
            'Q' => {
                let rest = self.rest();
                let literal = rest.find("\\E").map_or(rest, |end| &rest[..end]);
                self.out.push_str(&regex::escape(literal));
                self.repeatable |= !literal.is_empty();
                self.repeated = None;
                self.skip(literal.len() + if literal.len() < rest.len() { 2 } else { 0 });
                Ok(())
            }
            'b' | 'B' => {
                let _ = write!(self.out, "(?-u:\\{escaped})");
                self.repeatable = true;
                self.repeated = None;
                Ok(())
            }
            'A' | 'z' => {
                self.atom(&self.pattern[start..position + 1]);
                Ok(())
            }
            'C' => {
                // A single byte; of text, that is a character of ASCII.
                self.atom("(?s:.)");
                Ok(())
            }
            _ => {
                let item = self.class_escape(start, position, escaped)?;
                match item {
                    Item::Set(set, negated) => {
                        let _ = write!(self.out, "[{}{set}]", if negated { "^" } else { "" });
                    }
                    Item::One(text) => self.out.push_str(&text),
                }
                self.repeatable = true;
                self.repeated = None;
                Ok(())
            }
        }
    }

    /// What an escape means inside a class and outside of one.
    fn class_escape(&mut self, start: usize, position: usize, escaped: char) -> Result<Item, String> {
        let perl = match escaped {
            'd' | 'D' => Some("0-9"),
            'w' | 'W' => Some("0-9A-Za-z_"),
            's' | 'S' => Some("\\t\\n\\x0c\\r "),
            _ => None,
        };
        if let Some(set) = perl {
            return Ok(Item::Set(set.to_owned(), escaped.is_ascii_uppercase()));
        }
        let invalid = |end: usize| format!("invalid escape sequence: `{}`", &self.pattern[start..end]);
        let after = position + escaped.len_utf8();
        Ok(Item::One(match escaped {
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.pattern[start..after].to_owned(),
            'p' | 'P' => {
                let rest = &self.pattern[after..];
                let length = match rest.strip_prefix('{') {
                    Some(named) => named.find('}').map(|end| end + 2).ok_or_else(|| {
                        format!("invalid character class range: `{}`", &self.pattern[start..])
                    })?,
                    None => rest.chars().next().map(char::len_utf8).ok_or_else(|| {
                        format!("invalid character class range: `{}`", &self.pattern[start..])
                    })?,
                };
                self.skip(length);
                let text = &self.pattern[start..after + length];
                if Regex::new(text).is_err() {
                    return Err(format!("invalid character class range: `{text}`"));
                }
                text.to_owned()
            }
            'x' => {
                let rest = &self.pattern[after..];
                let (digits, length) = match rest.strip_prefix('{') {
                    Some(braced) => match braced.find('}') {
                        Some(end) => (&braced[..end], end + 2),
                        None => return Err(invalid(self.pattern.len())),
                    },
                    None => (rest.get(..2).unwrap_or(rest), 2.min(rest.len())),
                };
                let character = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                let Some(character) = character else { return Err(invalid(after)) };
                self.skip(length);
                format!("\\x{{{:x}}}", u32::from(character))
            }
            '1'..='7' if !self.pattern[after..].starts_with(['0', '1', '2', '3', '4', '5', '6', '7']) => {
                return Err(invalid(after));
            }
            '0'..='7' => {
                let digits: String =
                    self.pattern[position..].chars().take(3).take_while(|digit| digit.is_digit(8)).collect();
                self.skip(digits.len() - 1);
                format!("\\x{{{:x}}}", u32::from_str_radix(&digits, 8).unwrap_or(0))
            }
            other if other.is_ascii_punctuation() && other != '_' => regex::escape(&other.to_string()),
            _ => return Err(invalid(after)),
        }))
    }

    fn class(&mut self, start: usize) -> Result<(), String> {
        let missing = |pattern: &str| format!("missing closing ]: `{}`", &pattern[start..]);
        self.out.push('[');
        if self.characters.next_if(|(_, character)| *character == '^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some((position, character)) = self.characters.next() else {
                return Err(missing(self.pattern));
            };
            match character {
                ']' if !first => break,
                '[' if self.pattern[position..].starts_with("[:") => {
                    let rest = &self.pattern[position..];
                    match rest.find(":]") {
                        Some(length) => {
                            let name = &rest[..length + 2];
                            if Regex::new(&format!("[{name}]")).is_err() {
                                return Err(format!("invalid character class range: `{name}`"));
                            }
                            self.out.push_str(name);
                            self.skip(length + 1);
                        }
                        None => self.out.push_str("\\["),
                    }
                }
                _ => {
                    let low = self.class_item(position, character)?;
                    let mut ahead = self.rest().chars();
                    let ranged = ahead.next() == Some('-') && !matches!(ahead.next(), Some(']') | None);
                    match low {
                        Item::One(low) if ranged => {
                            self.skip(1);
                            let Some((high_at, high)) = self.characters.next() else {
                                return Err(missing(self.pattern));
                            };
                            let high_item = self.class_item(high_at, high)?;
                            let end = self.characters.peek().map_or(self.pattern.len(), |(end, _)| *end);
                            let range =
                                format!("invalid character class range: `{}`", &self.pattern[position..end]);
                            let Item::One(high) = high_item else { return Err(range) };
                            if !in_order(&low, &high) {
                                return Err(range);
                            }
                            let _ = write!(self.out, "{low}-{high}");
                        }
                        Item::One(low) => self.out.push_str(&low),
                        Item::Set(set, false) => self.out.push_str(&set),
                        Item::Set(set, true) => {
                            let _ = write!(self.out, "[^{set}]");
                        }
                    }
                }
            }
            first = false;
        }
        self.out.push(']');
        self.repeatable = true;
        self.repeated = None;
        Ok(())
    }

    fn class_item(&mut self, position: usize, character: char) -> Result<Item, String> {
        match character {
            '\\' => {
                let Some((at, escaped)) = self.characters.next() else {
                    return Err("trailing backslash at end of expression: ``".to_owned());
                };
                self.class_escape(position, at, escaped)
            }
            // What has a meaning of its own in a class here, but not in Go.
            '[' | ']' | '&' | '~' | '-' | '^' => Ok(Item::One(format!("\\{character}"))),
            other => Ok(Item::One(other.to_string())),
        }
    }
}

/// Whether a class may have the range from `low` to `high`.
fn in_order(low: &str, high: &str) -> bool {
    let single = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|_| characters.next().is_none())
    };
    match (single(low), single(high)) {
        (Some(low), Some(high)) => low <= high,
        // One of them is escaped.
        _ => Regex::new(&format!("[{low}-{high}]")).is_ok(),
    }
}

/// Part of a class.
enum Item {
    One(String),
    /// The inside of a class, and whether it is meant negated.
    Set(String, bool),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{661}", false),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^[^\s]$", "\u{a0}", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            (r"(?i)abc", "ABC", true),
            (r"^(?P<n>a)b$", "ab", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"\bfoo\b", "a foo b", true),
            (r"^\pL+$", "\u{e9}", true),
            (r"^\x41\101$", "AA", true),
            (r"^[a-]$", "-", true),
        ];
        for (pattern, text, expected) in cases {
            let regex = compile(pattern).0.unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn wrong_patterns_are_refused_with_gos_texts() {
        let cases = [
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("[a", "missing closing ]: `[a`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"\", "trailing backslash at end of expression: ``"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\8", r"invalid escape sequence: `\8`"),
            ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ];
        for (pattern, expected) in cases {
            let found = compile(pattern).0.expect_err(pattern);
            assert_eq!(found, format!("error parsing regexp: {expected}"), "{pattern}");
        }
        let large = compile("((a{100}){100}){100}").0.expect_err("too large");
        assert!(large.starts_with("error parsing regexp: "), "{large}");
    }
}
