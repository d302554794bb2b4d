//! Output for people: columns and colours.

pub(crate) mod audit;
pub(crate) mod inspect;
pub(crate) mod progress;

use std::io::IsTerminal;

use coffer_types::codec::{json, yaml};
use serde::Serialize;

use crate::cli::{Color, Output};
use crate::exit::Failure;

/// Colours, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint(bool);

impl Paint {
    /// As the user wants it for standard output.
    pub(crate) fn new(color: Color) -> Self {
        Self(match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stdout().is_terminal()
            }
        })
    }

    /// Emphasised.
    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// Good.
    pub(crate) fn green(self, text: &str) -> String {
        self.wrap("32", text)
    }

    /// Bad.
    pub(crate) fn red(self, text: &str) -> String {
        self.wrap("31", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// A document for programs: YAML where that is asked for, else JSON.
pub(crate) fn document(shown: &impl Serialize, output: Output) -> Result<String, Failure> {
    let cannot = |error: &dyn std::fmt::Display| Failure::problem(format!("cannot print: {error}"));
    if output != Output::Yaml {
        let text = serde_json::to_string_pretty(shown).map_err(|error| cannot(&error))?;
        return Ok(text + "\n");
    }
    let text = serde_json::to_vec(shown).map_err(|error| cannot(&error))?;
    let value = json::decode_untyped(&text).map_err(|error| cannot(&error))?.object;
    let mut out = Vec::new();
    yaml::encode_untyped(&value, &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Rows in aligned columns, three spaces apart, as kubectl prints them.
pub(crate) fn columns(rows: &[Vec<String>], indent: &str) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from(indent);
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 3));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_end_without_spaces() {
        let rows = vec![vec!["A".to_owned(), "LONG".to_owned()], vec!["bcd".to_owned(), "e".to_owned()]];
        assert_eq!(columns(&rows, " "), " A     LONG\n bcd   e\n");
    }

    #[test]
    fn colours_can_be_off() {
        assert_eq!(Paint(false).red("x"), "x");
        assert_eq!(Paint(true).red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
