//! Go's regular expressions, compiled once per text.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};

/// How large a compiled expression may get; Go has a like limit on repetition.
const COMPILED_BYTES: usize = 1 << 20;

/// An expression that is compiled when it is first used.
///
/// A SecretStore's definition has about 1,800 patterns, but only a few different ones;
/// those are shared, and most are never used.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// The expression as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The compiled expression, or why there is none.
    pub(crate) fn regex(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| compile(&self.text)).as_ref().map_err(String::as_str)
    }
}

/// Hands out one [`Pattern`] for equal texts.
#[derive(Debug, Default)]
pub(crate) struct Patterns(HashMap<String, Arc<Pattern>>);

impl Patterns {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<Pattern> {
        let make = || Arc::new(Pattern { text: text.to_owned(), compiled: OnceLock::new() });
        Arc::clone(self.0.entry(text.to_owned()).or_insert_with(make))
    }
}

fn compile(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(text)).size_limit(COMPILED_BYTES).build().map_err(|error| match error {
        regex::Error::Syntax(_) => format!("error parsing regexp: `{text}`"),
        regex::Error::CompiledTooBig(_) => format!("error parsing regexp: expression too large: `{text}`"),
        other => other.to_string(),
    })
}

/// Perl classes are ASCII in Go, and a class knows neither sets in sets nor `&&`.
fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped) => push_escape(&mut out, escaped, in_class),
                None => out.push('\\'),
            },
            '[' if in_class => {
                // `[:alpha:]` is the one thing that a bracket inside may start.
                if characters.peek() == Some(&':') {
                    out.push('[')
                } else {
                    out.push_str("\\[")
                }
                if characters.peek() == Some(&':') {
                    for inner in characters.by_ref() {
                        out.push(inner);
                        if inner == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
                if characters.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if characters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if in_class && characters.peek() == Some(&'-') => out.push_str("\\-"),
            other => out.push(other),
        }
    }
    out
}

fn push_escape(out: &mut String, escaped: char, in_class: bool) {
    let set = match escaped.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0c\\r ",
        'b' if !in_class => {
            // Writing to a String cannot fail.
            let _ = write!(out, "(?-u:\\{escaped})");
            return;
        }
        _ => {
            out.push('\\');
            out.push(escaped);
            return;
        }
    };
    let negated = if escaped.is_ascii_uppercase() { "^" } else { "" };
    let _ = match (in_class, negated) {
        (true, "") => write!(out, "{set}"),
        _ => write!(out, "[{negated}{set}]"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_in_go() {
        let check = |pattern: &str, text: &str, expected: bool| {
            let pattern = Patterns::default().intern(pattern);
            assert_eq!(
                pattern.regex().expect("compiles").is_match(text),
                expected,
                "{} {text}",
                pattern.text()
            );
        };
        check("^[-._a-zA-Z0-9]+$", "a.b-c_D", true);
        check("^[-._a-zA-Z0-9]+$", "a b", false);
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "\u{661}", false);
        check(r"^[\w.]+$", "a_1.b", true);
        check(r"^\w$", "\u{e9}", false);
        check(r"^[^\s]+$", "a\u{a0}b", true);
        check(r"^[\W]$", "-", true);
        check("^[[a]+$", "[a", true);
        check("^[[:alpha:]]+$", "abc", true);
        check("^[a&&b]+$", "&", true);
        check("^[]a]+$", "]a", true);
        check("^[a-c--]+$", "-", true);
        check(r"\bfoo\b", "a foo b", true);
        check("a", "bab", true);
    }

    #[test]
    fn bad_expressions_are_told_when_they_are_used() {
        assert!(Patterns::default().intern("(").regex().is_err());
        assert!(Patterns::default().intern("(?=a)").regex().is_err());
        assert!(Patterns::default().intern("a{1000}{1000}{10}").regex().is_err());
    }

    #[test]
    fn equal_texts_share_one_pattern() {
        let mut patterns = Patterns::default();
        assert!(Arc::ptr_eq(&patterns.intern("a"), &patterns.intern("a")));
    }
}
