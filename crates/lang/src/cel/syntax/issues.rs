//! What is wrong with an expression, printed as upstream does.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// The line, from 1; -1 where it is of the whole.
    pub line: i32,
    /// The column in characters, from 0; -1 where it is of the whole.
    pub column: i32,
    /// What is wrong.
    pub message: String,
}

/// All that is wrong with an expression.
#[derive(Clone, PartialEq, Eq)]
pub struct Issues {
    /// In the order of the source.
    pub issues: Vec<Issue>,
    source: String,
    total: usize,
}

/// Most issues that are printed.
const MAXIMUM: usize = 100;
/// Longest line that is quoted.
const SNIPPET: usize = 16_384;

/// A source text and its lines.
pub(crate) struct Source<'s> {
    pub(crate) text: &'s str,
    /// The offset in characters at which each line starts.
    starts: Vec<u32>,
}

impl<'s> Source<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        let mut starts = vec![0];
        if text.contains('\n') {
            for (position, character) in (0u32..).zip(text.chars()) {
                if character == '\n' {
                    starts.push(position + 1);
                }
            }
        }
        Self { text, starts }
    }

    /// An issue at an offset in characters.
    pub(crate) fn issue(&self, offset: Option<u32>, message: impl Into<String>) -> Issue {
        let message = message.into();
        let Some(offset) = offset else { return Issue { line: -1, column: -1, message } };
        if self.text.is_empty() {
            return Issue { line: 1, column: -1, message };
        }
        let line = self.starts.partition_point(|start| *start <= offset);
        Issue { line: line as i32, column: (offset - self.starts[line - 1]) as i32, message }
    }

    pub(crate) fn issues(&self, mut issues: Vec<Issue>) -> Issues {
        let total = issues.len();
        issues.truncate(MAXIMUM);
        issues.sort_by_key(|issue| (issue.line, issue.column));
        Issues { issues, source: self.text.to_owned(), total }
    }
}

impl Issues {
    fn snippet(&self, line: i32) -> Option<String> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        if self.source.is_empty() {
            return None;
        }
        let snippet = self.source.split('\n').nth(index)?;
        (snippet.len() <= SNIPPET).then(|| snippet.replace('\t', " "))
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "ERROR: <input>:{}:{}: {}", issue.line, issue.column + 1, issue.message)?;
            let Some(snippet) = self.snippet(issue.line) else { continue };
            write!(formatter, "\n | {snippet}\n | ")?;
            let mut characters = snippet.chars();
            for character in characters.by_ref().take(usize::try_from(issue.column).unwrap_or(0)) {
                formatter.write_str(if character.is_ascii() { "." } else { "\u{ff0e}" })?;
            }
            let wide = characters.next().is_some_and(|character| !character.is_ascii());
            formatter.write_str(if wide { "\u{ff3e}" } else { "^" })?;
        }
        if self.total > MAXIMUM {
            write!(formatter, "\n{} more errors were truncated", self.total - MAXIMUM)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Issues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for Issues {}
