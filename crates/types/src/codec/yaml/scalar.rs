//! What a plain scalar is in YAML 1.1, by the rules of Go's library.

use std::borrow::Cow;

use crate::codec::json::Node;
use crate::codec::text;

/// What a scalar resolves to.
pub(super) enum Scalar {
    Null,
    Bool(bool),
    /// A whole number, as decimal text.
    Int(String),
    Float(f64),
    Text,
}

/// Resolves a plain scalar.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => float(text).map_or(Scalar::Text, Scalar::Float),
        b'0'..=b'9' | b'+' | b'-' => number(&text.replace('_', "")),
        _ => Scalar::Text,
    }
}

fn number(plain: &str) -> Scalar {
    if let Some(int) = int(plain) {
        return Scalar::Int(int);
    }
    float(plain).map_or(Scalar::Text, Scalar::Float)
}

/// A whole number with Go's prefixes; a leading zero means octal.
fn int(plain: &str) -> Option<String> {
    let (sign, unsigned) = match plain.as_bytes().first()? {
        b'-' => ("-", &plain[1..]),
        b'+' => ("+", &plain[1..]),
        _ => ("", plain),
    };
    let prefix = unsigned.get(..2).unwrap_or_default();
    let (digits, radix) = match prefix {
        "0x" | "0X" => (&unsigned[2..], 16),
        "0b" | "0B" => (&unsigned[2..], 2),
        "0o" | "0O" => (&unsigned[2..], 8),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    match sign {
        "-" if value <= 1 << 63 => Some(if value == 0 { "0".to_owned() } else { format!("-{value}") }),
        "-" => None,
        // Go reads numbers beyond 63 bits only without a sign.
        "+" if i64::try_from(value).is_err() => None,
        _ => Some(value.to_string()),
    }
}

/// A floating point number in YAML's notation: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn float(plain: &str) -> Option<f64> {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = match mantissa.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction) && mantissa.len() > 1,
        None => digits(mantissa) && !mantissa.is_empty(),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if !well_formed || !exponent_fits {
        return None;
    }
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Whether the text looks like a number in base 60, which other readers take it for.
pub(super) fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let starts = first.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    if !starts || !first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') || !unsigned.contains(':')
    {
        return false;
    }
    let mut rest: Vec<&str> = parts.collect();
    if let Some(last) = rest.last_mut() {
        let (sexagesimal, fraction) = last.split_once('.').unwrap_or((last, ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') {
            return false;
        }
        *last = sexagesimal;
    }
    rest.iter().all(|part| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [ten, digit] => (b'0'..=b'5').contains(ten) && digit.is_ascii_digit(),
        _ => false,
    })
}

/// Whether the text looks like a date or a time. It is text all the same, but is quoted.
pub(super) fn is_timestamp(text: &str) -> bool {
    let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let mut parts = date.split('-');
    let mut part = |least: usize, most: usize, range: std::ops::RangeInclusive<u32>| {
        parts.next().is_some_and(|part| (least..=most).contains(&part.len()) && is_number(part, range))
    };
    if !(part(4, 4, 0..=9_999) && part(1, 2, 1..=12) && part(1, 2, 1..=31)) || parts.next().is_some() {
        return false;
    }
    let Some(time) = text.get(date.len() + 1..) else { return text.len() == date.len() };
    let time = if text[date.len()..].starts_with(' ') { Some(time) } else { without_zone(time) };
    time.is_some_and(is_time_of_day)
}

fn without_zone(time: &str) -> Option<&str> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some(time);
    }
    let (time, zone) = time.split_at_checked(time.len().checked_sub(6)?)?;
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    (is_number(hours, 0..=24) && is_number(minutes, 0..=60)).then_some(time)
}

fn is_time_of_day(time: &str) -> bool {
    let (whole, fraction) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let mut parts = whole.split(':');
    let mut part = |most| parts.next().is_some_and(|part| part.len() <= 2 && is_number(part, 0..=most));
    let fits = part(23) && part(59) && part(59);
    fits && parts.next().is_none()
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str, range: std::ops::RangeInclusive<u32>) -> bool {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits && text.parse().is_ok_and(|number| range.contains(&number))
}

/// A node for a number, or Go's error for one that JSON does not have.
pub(super) fn float_node(float: f64) -> Result<Node<'static>, String> {
    if float.is_nan() {
        return Err("json: unsupported value: NaN".to_owned());
    }
    if float.is_infinite() {
        let sign = if float > 0.0 { '+' } else { '-' };
        return Err(format!("json: unsupported value: {sign}Inf"));
    }
    let mut out = Vec::new();
    text::float(&mut out, float);
    Ok(Node::Number(Cow::Owned(String::from_utf8(out).unwrap_or_default())))
}

/// A number where text is wanted: whole numbers as they are, others in Go's `%g` of 32 bits.
pub(super) fn number_as_text(number: &str) -> String {
    if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return number.to_owned();
    }
    let float: f64 = number.parse().unwrap_or(0.0);
    general(format!("{:e}", float as f32))
}

/// A 64-bit float in Go's `%g`.
pub(super) fn float_as_text(float: f64) -> String {
    general(format!("{float:e}"))
}

/// From Rust's shortest scientific notation to Go's `%g`.
fn general(scientific: String) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    // Within the range the plain notation has the same digits.
    let (sign, unsigned) = mantissa.strip_prefix('-').map_or(("", mantissa), |unsigned| ("-", unsigned));
    let digits = unsigned.replace('.', "");
    let point = exponent + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    if point <= 0 {
        format!("{sign}0.{}{digits}", zeros(-point))
    } else if point >= count {
        format!("{sign}{digits}{}", zeros(point - count))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{sign}{whole}.{fraction}")
    }
}
