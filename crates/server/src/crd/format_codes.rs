//! Formats of numbers and names with rules of their own: cards, books, colours, addresses.

use std::sync::LazyLock;

use regex::Regex;

fn pattern(text: &str) -> Regex {
    // The texts are constants below, and a test uses each.
    Regex::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}

static CARD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
static RGB: LazyLock<Regex> = LazyLock::new(|| {
    const PART: &str = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    pattern(&format!(r"^rgb\({PART},{PART},{PART}\)$"))
});
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});
static SSN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));

/// Digits that a checksum makes likely to be a card's; what is between them does not count.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(index, byte)| {
            let digit = u32::from(byte - b'0') << (index % 2);
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Ten digits, the last of which may be an X.
pub(super) fn is_isbn10(text: &str) -> bool {
    let signs = signs(text);
    let [digits @ .., last] = signs.as_slice() else { return false };
    if digits.len() != 9 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match last {
        b'X' => 10,
        digit if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let sum: u32 = digits.iter().zip(1..).map(|(digit, factor)| factor * u32::from(digit - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

/// Thirteen digits.
pub(super) fn is_isbn13(text: &str) -> bool {
    let signs = signs(text);
    if signs.len() != 13 || !signs.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = signs[..12]
        .iter()
        .enumerate()
        .map(|(index, digit)| u32::from(digit - b'0') * if index % 2 == 0 { 1 } else { 3 })
        .sum();
    u32::from(signs[12] - b'0') == (10 - sum % 10) % 10
}

fn signs(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'-').collect()
}

pub(super) fn is_ssn(text: &str) -> bool {
    text.len() == 11 && SSN.is_match(text)
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    RGB.is_match(text)
}

/// Twelve bytes in hexadecimal.
pub(super) fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Six, eight or twenty bytes, between colons or hyphens, or in pairs between dots.
pub(super) fn is_mac(text: &str) -> bool {
    let (separator, digits) = match text {
        _ if text.contains('.') => ('.', 4),
        _ if text.contains(':') => (':', 2),
        _ => ('-', 2),
    };
    let parts: Vec<&str> = text.split(separator).collect();
    let hexadecimal = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().all(hexadecimal) && matches!(parts.len() * digits, 12 | 16 | 40)
}

pub(super) fn is_hostname(text: &str) -> bool {
    HOST.is_match(text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// An address with a scheme, or a path from the root.
pub(super) fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_ascii_control()) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let host = rest.strip_prefix("//").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    named && host.is_none_or(|host| !host.contains([' ', '<', '>', '"']))
}

/// `name@host`, or the same in angle brackets behind the words of a name.
pub(super) fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text,
    };
    let Some((name, host)) = address.rsplit_once('@') else { return false };
    let atoms = |text: &str, more: &[u8]| {
        text.split('.').all(|atom| {
            !atom.is_empty()
                && atom
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii() || more.contains(&byte))
        })
    };
    let quoted = name.len() > 2 && name.starts_with('"') && name.ends_with('"');
    (quoted || atoms(name, b"!#$%&'*+/=?^_`{|}~-")) && atoms(host, b"!#$%&'*+/=?^_`{|}~-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of upstream's own tests of these formats.
    #[test]
    fn codes_are_checked_as_upstream() {
        type Check = (&'static str, fn(&str) -> bool, &'static [&'static str], &'static [&'static str]);
        let checks: &[Check] = &[
            (
                "card",
                is_credit_card,
                &["4111-1111-1111-1111", "375556917985515", "36050234196908", "4716461583322103"],
                &["foo", "5398228707871528", "4111-1111-1111-1112"],
            ),
            (
                "isbn10",
                is_isbn10,
                &["3836221195", "1-61729-085-8", "3 423 21412 0", "3 401 01319 X"],
                &["", "foo", "3423214121", "978-3836221191", "123456789a"],
            ),
            (
                "isbn13",
                is_isbn13,
                &["9-783836221191", "978-3401013190", "978-4-87311-368-5"],
                &["", "3-8362-2119-5", "01234567890ab", "978 3 8362 2119 0"],
            ),
            ("ssn", is_ssn, &["111-22-3333", "111 22 3333"], &["00-90-8787", "665-13-35", "111223333"]),
            ("hexcolor", is_hex_color, &["#FFFFFF", "#fff", "CCccCC"], &["#ff", "#fffff", "CCccCX", "fff0"]),
            (
                "rgbcolor",
                is_rgb_color,
                &["rgb(0,31,255)", "rgb( 0, 31, 255 )"],
                &["rgb(1,349,275)", "rgb(01,31,255)", "rgba(0,31,255)"],
            ),
            (
                "object id",
                is_object_id,
                &["507f1f77bcf86cd799439011"],
                &["507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"],
            ),
            (
                "mac",
                is_mac,
                &["3D:F2:C9:A6:B3:4F", "08-00-2b-01-02-03", "0800.2b01.0203", "02:00:5e:10:00:00:00:01"],
                &["", "123", "3D:F2:C9:A6:B3:4G", "08002b010203"],
            ),
            (
                "hostname",
                is_hostname,
                &["somewhere.com", "localhost", "a.b.c.dot-isbn.co.uk", "1.foo.com"],
                &["", "somewhere.com!", "-a.com", "www.c", "a b.com"],
            ),
            (
                "uri",
                is_uri,
                &["http://somewhere.com", "/absolute/path", "mailto:a@b"],
                &["", "somewhere.com", "http://a b/"],
            ),
            (
                "email",
                is_email,
                &["somebody@somewhere.com", "Barry Gibbs <bg@example.com>", "x+y@z"],
                &["", "somebody@", "@b", "a b@c", "some..body@x"],
            ),
        ];
        for (name, holds, good, bad) in checks {
            good.iter().for_each(|text| assert!(holds(text), "{name} {text}"));
            bad.iter().for_each(|text| assert!(!holds(text), "{name} {text}"));
        }
    }
}
