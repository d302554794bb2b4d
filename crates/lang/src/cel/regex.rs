//! Regular expressions with bounds: RE2's semantics, linear time.

use regex::{Regex, RegexBuilder};

/// Largest compiled form of a pattern.
const COMPILED_SIZE: usize = 1 << 20;
/// Largest cache of states of one match.
const CACHE_SIZE: usize = 1 << 20;

/// Compiles `pattern`; the error is its text.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(COMPILED_SIZE)
        .dfa_size_limit(CACHE_SIZE)
        .build()
        .map_err(|error| go_message(pattern, &error))
}

/// Go's text of the error, as far as the kind of error is the same there.
fn go_message(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit("error: ").next().unwrap_or(&text);
    let kind = if matches!(error, regex::Error::CompiledTooBig(_)) {
        return "error parsing regexp: expression too large".to_owned();
    } else if reason.contains("unclosed group") {
        format!("missing closing ): `{pattern}`")
    } else if reason.contains("unopened group") {
        format!("unexpected ): `{pattern}`")
    } else if reason.contains("unclosed character class") {
        let start = pattern.rfind('[').unwrap_or(0);
        format!("missing closing ]: `{}`", &pattern[start..])
    } else if reason.contains("repetition operator missing expression") {
        let operator = pattern.find(['*', '+', '?']).map_or("*", |at| &pattern[at..=at]);
        format!("missing argument to repetition operator: `{operator}`")
    } else {
        format!("invalid expression: `{pattern}`")
    };
    format!("error parsing regexp: {kind}")
}
