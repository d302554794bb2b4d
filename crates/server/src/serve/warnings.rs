//! The `Warning` headers of an answer: each text once, and all together of a bounded length.

use std::collections::BTreeSet;

use http::HeaderValue;

/// Runes of all warnings of one answer; above it each is cut to [`CUT`].
const TOTAL: usize = 4096;

/// Runes to which a warning is cut when there are too many.
const CUT: usize = 256;

/// The headers, in the order of the warnings. Upstream makes them one by one and starts over with cut
/// texts at the first that is too much; a cut text is sent as long as the others are below the limit.
pub(super) fn headers(warnings: Vec<String>) -> Vec<HeaderValue> {
    let mut seen = BTreeSet::new();
    let distinct: Vec<&str> =
        warnings.iter().map(String::as_str).filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let mut whole = 0;
    let first_too_much = distinct.iter().position(|text| {
        whole += if header(text).is_some() { text.chars().count() } else { 0 };
        whole > TOTAL
    });
    let Some(first_too_much) = first_too_much else {
        return distinct.into_iter().filter_map(header).collect();
    };
    let mut headers = Vec::new();
    let mut written = 0;
    for (index, text) in distinct.into_iter().enumerate() {
        if index > first_too_much && written >= TOTAL {
            break;
        }
        let cut = text.char_indices().nth(CUT).map_or(text, |(end, _)| &text[..end]);
        if let Some(header) = header(cut) {
            written += cut.chars().count();
            headers.push(header);
        }
    }
    headers
}

/// `299 - "text"`; none for a text with control characters.
fn header(text: &str) -> Option<HeaderValue> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let mut quoted = String::with_capacity(text.len() + 10);
    quoted.push_str("299 - \"");
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    HeaderValue::from_bytes(quoted.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(warnings: &[&str]) -> Vec<String> {
        let headers = headers(warnings.iter().map(|text| (*text).to_owned()).collect());
        headers.iter().map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn warnings_are_quoted_and_each_is_sent_once() {
        assert_eq!(
            texts(&["unknown field \"a\"", "", "b\\", "b\\"]),
            ["299 - \"unknown field \\\"a\\\"\"", "299 - \"b\\\\\""]
        );
        assert_eq!(texts(&["größer"]), ["299 - \"größer\""]);
        assert_eq!(texts(&["two\nlines", "a"]), ["299 - \"a\""]);
    }

    /// Upstream's Test_recorder_AddWarning: cut when all together are too long.
    #[test]
    fn warnings_are_cut_when_they_are_too_long_together() {
        let sizes = |warnings: &[&str]| -> Vec<usize> {
            texts(warnings).iter().map(|text| text.chars().count() - "299 - \"\"".len()).collect()
        };
        let long = "x".repeat(TOTAL);
        assert_eq!(sizes(&[&long]), [TOTAL]);
        assert_eq!(sizes(&[&long, "y"]), [CUT, 1]);
        assert_eq!(sizes(&[&format!("{long}x"), "y"]), [CUT, 1]);
        let many: Vec<String> = (0..40).map(|number| format!("{number:03}{}", "x".repeat(1000))).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        // The fifth is too much: five are cut, and more follow until the limit is reached.
        assert_eq!(sizes(&many), vec![CUT; TOTAL / CUT]);
    }
}
