//! Hides what differs from run to run.

use regex::Regex;

/// Patterns, and what is written in their place.
pub(crate) struct Masks(Vec<(Regex, &'static str)>);

impl Masks {
    /// What every answer has, and `more`.
    pub(crate) fn new(more: &[(&str, &'static str)]) -> Self {
        let common = [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
            (r"127\.0\.0\.1:\d+", "SERVER"),
        ];
        let all = common.iter().chain(more);
        Self(all.map(|(pattern, instead)| (Regex::new(pattern).expect("a pattern"), *instead)).collect())
    }

    /// The text without it.
    pub(crate) fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (pattern, instead)| {
            pattern.replace_all(&text, *instead).into_owned()
        })
    }
}
