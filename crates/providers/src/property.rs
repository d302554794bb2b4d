//! The part of a JSON text that a path names, with gjson's syntax.
//!
//! Spoken: members, indexes, `\` escapes, `*` and `?` in names, `#`, `#.x`,
//! `#(name=="x")`, `#(…)#` and the pipe. Refused with an error: modifiers (`@…`)
//! and multipaths (`{…}`, `[…]`).

use crate::contract::ProviderError;
use crate::json;

/// How deep a path may go; JSON itself is bounded by its decoder.
const MAX_STEPS: usize = 128;

/// The text at `path` as gjson's `String()` prints it; `None` when there is nothing.
pub(crate) fn get(text: &str, path: &str) -> Result<Option<String>, ProviderError> {
    let steps = parse(path)?;
    if MAX_STEPS < steps.len() {
        return Err(unsupported(path, "more than 128 steps"));
    }
    Ok(walk(text.trim(), &steps).map(|found| display(&found)))
}

#[derive(Debug, PartialEq)]
enum Step {
    /// A member or an index; with wildcards when `true`.
    Name(String, bool),
    /// `#`.
    Each,
    /// `#(…)`, or `#(…)#` when `all`.
    Query { path: String, operator: String, value: String, all: bool },
}

fn unsupported(path: &str, what: &str) -> ProviderError {
    ProviderError::Config(format!("property {path:?} is not supported: {what}"))
}

fn parse(path: &str) -> Result<Vec<Step>, ProviderError> {
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        match rest.as_bytes().first() {
            Some(b'@') => return Err(unsupported(path, "gjson modifiers")),
            Some(b'{' | b'[') => return Err(unsupported(path, "gjson multipaths")),
            Some(b'!') => return Err(unsupported(path, "gjson literals")),
            _ => {}
        }
        let (step, tail) =
            if rest.starts_with("#(") || rest.starts_with("#[") { query(path, rest)? } else { name(rest) };
        steps.push(step);
        match tail {
            Some(tail) => rest = tail,
            None => return Ok(steps),
        }
    }
}

/// A name up to the next separator.
fn name(text: &str) -> (Step, Option<&str>) {
    let (mut out, mut wild) = (String::new(), false);
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '\\' => {
                if let Some((_, escaped)) = characters.next() {
                    // Inside a pattern an escaped wildcard stays escaped.
                    if matches!(escaped, '*' | '?') {
                        out.push('\\');
                    }
                    out.push(escaped);
                }
            }
            '.' | '|' => return (finish(out, wild), Some(&text[index + 1..])),
            '*' | '?' => {
                wild = true;
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    (finish(out, wild), None)
}

fn finish(name: String, wild: bool) -> Step {
    if name == "#" && !wild {
        Step::Each
    } else if wild {
        Step::Name(name, true)
    } else {
        Step::Name(name.replace("\\*", "*").replace("\\?", "?"), false)
    }
}

fn query<'a>(path: &str, text: &'a str) -> Result<(Step, Option<&'a str>), ProviderError> {
    let (mut depth, mut quoted, mut escaped, mut end) = (0_usize, false, false, None);
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    end = Some(index);
                    break;
                }
            }
            _ => {}
        }
    }
    let end = end.ok_or_else(|| unsupported(path, "a query without its end"))?;
    let inside = &text[2..end];
    let mut tail = &text[end + 1..];
    let all = tail.starts_with('#');
    if all {
        tail = &tail[1..];
    }
    let tail = match tail.as_bytes().first() {
        None => None,
        Some(b'.' | b'|') => Some(&tail[1..]),
        Some(_) => return Err(unsupported(path, "text after a query")),
    };
    let at = operator_at(inside);
    let (left, operator, value) = match at {
        None => (inside, "", ""),
        Some(at) => {
            let operators = ["==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"];
            let operator = operators.into_iter().find(|operator| inside[at..].starts_with(operator));
            let operator = operator.ok_or_else(|| unsupported(path, "the query's operator"))?;
            (&inside[..at], operator, inside[at + operator.len()..].trim())
        }
    };
    let value = json::string(value).unwrap_or_else(|| value.to_owned());
    let operator = if operator == "=" { "==" } else { operator };
    Ok((Step::Query { path: left.trim().to_owned(), operator: operator.to_owned(), value, all }, tail))
}

/// Where the comparison stands: outside of any nested query.
fn operator_at(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(index, character)| {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '=' | '!' | '<' | '>' | '%' if depth == 0 => return Some(index),
            _ => {}
        }
        None
    })
}

fn walk(text: &str, steps: &[Step]) -> Option<String> {
    let Some((step, rest)) = steps.split_first() else { return Some(text.to_owned()) };
    match step {
        Step::Name(name, wild) => {
            if text.starts_with('{') {
                let members = json::members(text)?;
                let (_, value) =
                    members.iter().find(|(key, _)| if *wild { matches(name, key) } else { key == name })?;
                walk(value.get(), rest)
            } else if text.starts_with('[') && !wild && name.bytes().all(|byte| byte.is_ascii_digit()) {
                let items = json::items(text)?;
                walk(items.get(name.parse::<usize>().ok()?)?.get(), rest)
            } else {
                None
            }
        }
        Step::Each => {
            let items = json::items(text)?;
            if rest.is_empty() {
                return Some(items.len().to_string());
            }
            let found: Vec<String> = items.iter().filter_map(|item| walk(item.get(), rest)).collect();
            Some(format!("[{}]", found.join(",")))
        }
        Step::Query { path, operator, value, all } => {
            let items = json::items(text)?;
            let mut hits = items.iter().filter(|item| holds(item.get(), path, operator, value));
            if !all {
                return walk(hits.next()?.get(), rest);
            }
            let found: Vec<String> = hits.filter_map(|item| walk(item.get(), rest)).collect();
            Some(format!("[{}]", found.join(",")))
        }
    }
}

fn holds(item: &str, path: &str, operator: &str, value: &str) -> bool {
    let found = if path.is_empty() {
        Some(item.to_owned())
    } else {
        parse(path).ok().and_then(|steps| walk(item, &steps))
    };
    let Some(found) = found else { return false };
    if operator.is_empty() {
        return true;
    }
    if let Some(text) = json::string(&found) {
        return match operator {
            "==" => text == value,
            "!=" => text != value,
            "<" => text.as_str() < value,
            "<=" => text.as_str() <= value,
            ">" => text.as_str() > value,
            ">=" => text.as_str() >= value,
            "%" => matches(value, &text),
            _ => !matches(value, &text),
        };
    }
    if let (Ok(left), Ok(right)) = (found.parse::<f64>(), value.parse::<f64>()) {
        return match operator {
            "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            ">=" => left >= right,
            _ => false,
        };
    }
    match operator {
        "==" => found == value,
        "!=" => found != value,
        _ => false,
    }
}

/// `*` is any text, `?` any character, `\` takes the next one as it is. Linear in time for each star.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        let (literal, width) = match pattern.get(at) {
            Some('\\') if at + 1 < pattern.len() => (pattern.get(at + 1), 2),
            other => (other, 1),
        };
        let plain = width == 2;
        match literal {
            Some('*') if !plain => {
                star = Some((at, read));
                at += 1;
            }
            Some(character) if (*character == '?' && !plain) || *character == text[read] => {
                at += width;
                read += 1;
            }
            _ => match star {
                Some((star_at, star_read)) => {
                    star = Some((star_at, star_read + 1));
                    at = star_at + 1;
                    read = star_read + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == '*')
}

fn display(found: &str) -> String {
    let found = found.trim();
    match found.as_bytes().first() {
        Some(b'"') => json::string(found).unwrap_or_default(),
        Some(b'n') => String::new(),
        Some(b'-' | b'0'..=b'9') => {
            let digits = found.strip_prefix('-').unwrap_or(found);
            if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return found.to_owned();
            }
            found.parse::<f64>().map_or_else(|_| found.to_owned(), |number| number.to_string())
        }
        _ => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document of gjson's own documentation.
    const PEOPLE: &str = r#"{
  "name": {"first": "Tom", "last": "Anderson"},
  "age": 37,
  "children": ["Sara","Alex","Jack"],
  "fav.movie": "Deer Hunter",
  "friends": [
    {"first": "Dale", "last": "Murphy", "age": 44, "nets": ["ig", "fb", "tw"]},
    {"first": "Roger", "last": "Craig", "age": 68, "nets": ["fb", "tw"]},
    {"first": "Jane", "last": "Murphy", "age": 47, "nets": ["ig", "tw"]}
  ],
  "big": 12345678901234567890, "float": 1.50, "exp": 1e3, "null": null, "yes": true, "a*b": 1
}"#;

    #[test]
    fn paths_of_gjsons_documentation() {
        let cases = [
            ("name.last", Some("Anderson")),
            ("name", Some(r#"{"first": "Tom", "last": "Anderson"}"#)),
            ("age", Some("37")),
            ("children", Some(r#"["Sara","Alex","Jack"]"#)),
            ("children.0", Some("Sara")),
            ("children.1", Some("Alex")),
            ("children.9", None),
            ("child*.2", Some("Jack")),
            ("c?ildren.0", Some("Sara")),
            ("fav\\.movie", Some("Deer Hunter")),
            ("fav.movie", None),
            ("a\\*b", Some("1")),
            ("children.#", Some("3")),
            ("friends.#.age", Some("[44,68,47]")),
            ("friends.#.first", Some(r#"["Dale","Roger","Jane"]"#)),
            (r#"friends.#(last=="Murphy").first"#, Some("Dale")),
            (r#"friends.#(last=="Murphy")#.first"#, Some(r#"["Dale","Jane"]"#)),
            ("friends.#(age>45)#.last", Some(r#"["Craig","Murphy"]"#)),
            (r#"friends.#(first%"D*").last"#, Some("Murphy")),
            (r#"friends.#(first!%"D*").last"#, Some("Craig")),
            (r#"friends.#(nets.#(=="fb"))#.first"#, Some(r#"["Dale","Roger"]"#)),
            ("friends|1|first", Some("Roger")),
            ("friends.1.first", Some("Roger")),
            ("big", Some("12345678901234567890")),
            ("float", Some("1.5")),
            ("exp", Some("1000")),
            ("null", Some("")),
            ("yes", Some("true")),
            ("absent", None),
            ("age.x", None),
            ("", None),
        ];
        for (path, expected) in cases {
            assert_eq!(get(PEOPLE, path).unwrap().as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_spoken_is_refused() {
        for path in ["@this", "name.@reverse", "{name,age}", "[age]", "friends.#(last==\"x\"", "!\"x\""] {
            assert!(matches!(get(PEOPLE, path), Err(ProviderError::Config(_))), "{path}");
        }
    }

    #[test]
    fn hostile_paths_end() {
        let stars = "*a".repeat(200);
        assert_eq!(get(&format!("{{\"{}\":1}}", "a".repeat(2000)), &stars).unwrap(), Some("1".to_owned()));
        assert!(get(PEOPLE, &"a.".repeat(1000)).is_err());
        assert_eq!(get("not json", "a").unwrap(), None);
        assert_eq!(get("", "a").unwrap(), None);
    }
}
