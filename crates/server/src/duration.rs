//! Go's text form of a duration, as the `timeout` parameter holds it.

use std::time::Duration;

/// Parses `1h2m3.5s` and the like. The error is Go's text.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("time: invalid duration {}", coffer_types::validation::field::go_quote(text));
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(number_end);
        let number: f64 = number.parse().map_err(|_| invalid())?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => {
                let quoted = coffer_types::validation::field::go_quote(text);
                return Err(format!("time: missing unit in duration {quoted}"));
            }
            unknown => {
                let (unknown, text) = (
                    coffer_types::validation::field::go_quote(unknown),
                    coffer_types::validation::field::go_quote(text),
                );
                return Err(format!("time: unknown unit {unknown} in duration {text}"));
            }
        };
        total += number * seconds;
        rest = tail;
    }
    if text.starts_with('-') {
        return Ok(Duration::ZERO);
    }
    Duration::try_from_secs_f64(total).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, expected) in [
            ("30s", Ok(Duration::from_secs(30))),
            ("1m30s", Ok(Duration::from_secs(90))),
            ("1.5h", Ok(Duration::from_secs(5400))),
            ("100ms", Ok(Duration::from_millis(100))),
            ("0", Ok(Duration::ZERO)),
            ("-1s", Ok(Duration::ZERO)),
            ("", Err("time: invalid duration \"\"")),
            ("abc", Err("time: invalid duration \"abc\"")),
            ("10", Err("time: missing unit in duration \"10\"")),
            ("10x", Err("time: unknown unit \"x\" in duration \"10x\"")),
        ] {
            assert_eq!(parse(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
