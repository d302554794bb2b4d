//! Durations as Go writes them: `1h2m3.5s`.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// The greatest magnitude, which only a negative duration can have.
const LIMIT: u64 = 1 << 63;

/// Nanoseconds, or Go's error.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    use coffer_types::validation::field::go_quote;
    let invalid = || format!("time: invalid duration {}", go_quote(text));
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", go_quote(text)));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {} in duration {}", go_quote(unit), go_quote(text)));
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
        total = whole
            .checked_mul(*scale)
            .and_then(|part| part.checked_add(fraction_of(fraction, *scale)))
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LIMIT)
            .ok_or_else(invalid)?;
        rest = after;
    }
    match (negative, total) {
        (true, LIMIT) => Ok(i64::MIN),
        (true, total) => i64::try_from(total).map(|total| -total).map_err(|_| invalid()),
        (false, total) => i64::try_from(total).map_err(|_| invalid()),
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// What the digits after the point are worth in nanoseconds, cut off like Go does.
fn fraction_of(digits: &str, scale: u64) -> u64 {
    // No unit has more than 13 digits of nanoseconds; further ones are worth nothing.
    let digits = &digits[..digits.len().min(18)];
    let Ok(number) = digits.parse::<u128>() else { return 0 };
    let worth = number * u128::from(scale) / 10_u128.pow(digits.len() as u32);
    u64::try_from(worth).unwrap_or(0)
}

/// As Go prints it: `1m0s`, `1.5s`, `100ms`, `0s`.
pub(crate) fn format(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (scale, unit) = match total {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "\u{b5}s"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{unit}", decimal(total, scale));
    }
    let seconds = total / 1_000_000_000;
    let last = format!("{}s", decimal(total % 60_000_000_000, 1_000_000_000));
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, 0) => format!("{sign}{last}"),
        (0, minutes) => format!("{sign}{minutes}m{last}"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{last}"),
    }
}

/// `number / scale` without trailing zeros; `scale` is a power of ten.
fn decimal(number: u64, scale: u64) -> String {
    let (whole, fraction) = (number / scale, number % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    format!("{whole}.{}", format!("{fraction:0width$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_go() {
        let check = |text: &str, expected: Result<(i64, &str), &str>| {
            let parsed = parse(text);
            assert_eq!(
                parsed.as_ref().map(|nanos| *nanos).map_err(String::as_str),
                expected.map(|(nanos, _)| nanos)
            );
            if let (Ok(nanos), Ok((_, printed))) = (parsed, expected) {
                assert_eq!(format(nanos), printed);
            }
        };
        check("3s", Ok((3_000_000_000, "3s")));
        check("-1m", Ok((-60_000_000_000, "-1m0s")));
        check("1.5h", Ok((5_400_000_000_000, "1h30m0s")));
        check("1h2m3.25s", Ok((3_723_250_000_000, "1h2m3.25s")));
        check("100ms", Ok((100_000_000, "100ms")));
        check("1.5us", Ok((1_500, "1.5\u{b5}s")));
        check(".5s", Ok((500_000_000, "500ms")));
        check("5.s", Ok((5_000_000_000, "5s")));
        check("0", Ok((0, "0s")));
        check("+0", Ok((0, "0s")));
        check("7ns", Ok((7, "7ns")));
        check("-9223372036854775808ns", Ok((i64::MIN, "-2562047h47m16.854775808s")));
        check("9223372036854775808ns", Err("time: invalid duration \"9223372036854775808ns\""));
        check("", Err("time: invalid duration \"\""));
        check("-", Err("time: invalid duration \"-\""));
        check("abc", Err("time: invalid duration \"abc\""));
        check(".s", Err("time: invalid duration \".s\""));
        check("3", Err("time: missing unit in duration \"3\""));
        check("3x", Err("time: unknown unit \"x\" in duration \"3x\""));
        check("1d", Err("time: unknown unit \"d\" in duration \"1d\""));
    }
}
