//! Go's duration texts.

use std::time::Duration;

/// Parses a duration as Go's `time.ParseDuration` does; `Err` holds its error text.
///
/// A negative duration is returned with `true`.
pub fn parse_signed(text: &str) -> Result<(bool, Duration), String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok((false, Duration::ZERO));
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (whole, tail) = rest.split_at(digits);
        let (fraction, tail) = match tail.strip_prefix('.') {
            Some(tail) => tail.split_at(tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())),
            None => ("", tail),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = tail.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let scale: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(format!("time: unknown unit {unit:?} in duration {text:?}")),
        };
        let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        let mut nanos = whole.checked_mul(scale).ok_or_else(invalid)?;
        // Digits beyond a nanosecond do not count.
        let mut digit_scale = scale;
        for digit in fraction.bytes() {
            digit_scale /= 10;
            nanos += u128::from(digit - b'0') * digit_scale;
        }
        total = total.checked_add(nanos).filter(|total| *total <= i64::MAX as u128).ok_or_else(invalid)?;
        rest = tail;
    }
    let nanos = u64::try_from(total).map_err(|_| invalid())?;
    Ok((negative && nanos != 0, Duration::from_nanos(nanos)))
}

/// Parses a duration that must not be negative; a negative one counts as zero.
pub fn parse(text: &str) -> Result<Duration, String> {
    parse_signed(text).map(|(negative, duration)| if negative { Duration::ZERO } else { duration })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_go_takes() {
        let cases = [
            ("0", 0),
            ("5s", 5_000_000_000),
            ("1h0m0s", 3_600_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("100ms", 100_000_000),
            ("5us", 5_000),
            ("5µs", 5_000),
            ("1.0000000001s", 1_000_000_000),
            ("2562047h47m16.854775807s", u64::MAX / 2),
            ("+3m", 180_000_000_000),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_signed(text), Ok((false, Duration::from_nanos(nanos))), "{text}");
        }
        assert_eq!(parse_signed("-1s"), Ok((true, Duration::from_secs(1))));
        assert_eq!(parse_signed("-0s"), Ok((false, Duration::ZERO)));
    }

    #[test]
    fn texts_that_go_refuses() {
        let cases = [
            ("", "time: invalid duration \"\""),
            ("3", "time: missing unit in duration \"3\""),
            ("-", "time: invalid duration \"-\""),
            ("s", "time: invalid duration \"s\""),
            (".", "time: invalid duration \".\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1h 5m", "time: unknown unit \"h \" in duration \"1h 5m\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            (
                "99999999999999999999999999999999999999999h",
                "time: invalid duration \"99999999999999999999999999999999999999999h\"",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_signed(text).unwrap_err(), expected, "{text}");
        }
    }
}
