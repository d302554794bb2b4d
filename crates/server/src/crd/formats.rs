//! The formats that are checked. Others are remarks.

use std::net::{Ipv4Addr, Ipv6Addr};

use coffer_types::codec::times;

use super::format_codes as codes;

/// Whether `text` is of `format`. Formats that are not known here hold for everything.
pub(crate) fn holds(format: &str, text: &str) -> bool {
    match format {
        "byte" => is_base64(text),
        "date-time" => is_date_time(text),
        "date" => is_date(text),
        "duration" => is_duration(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(text, format.as_bytes().get(4).copied()),
        "k8s-short-name" => coffer_types::names::is_dns1123_label(text).is_empty(),
        "k8s-long-name" => coffer_types::names::is_dns1123_subdomain(text).is_empty(),
        "bsonobjectid" => codes::is_object_id(text),
        "creditcard" => codes::is_credit_card(text),
        "email" => codes::is_email(text),
        "hexcolor" => codes::is_hex_color(text),
        "hostname" => codes::is_hostname(text),
        "isbn" => codes::is_isbn10(text) || codes::is_isbn13(text),
        "isbn10" => codes::is_isbn10(text),
        "isbn13" => codes::is_isbn13(text),
        "mac" => codes::is_mac(text),
        "rgbcolor" => codes::is_rgb_color(text),
        "ssn" => codes::is_ssn(text),
        "uri" => codes::is_uri(text),
        _ => true,
    }
}

/// Every format of a text, hyphens left out.
const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Whether a schema of type `kind` can have the format.
pub(crate) fn is_known(format: &str, kind: &str) -> bool {
    match kind {
        "" | "string" => KNOWN.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Standard alphabet, padded, not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_date_time(text: &str) -> bool {
    // Upstream asks for less than RFC 3339 does: a small `t` and a fraction after a comma are
    // what it takes beside it; the server's own writers use neither.
    times::parse_seconds(text).is_ok()
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && times::parse_seconds(&format!("{text}T00:00:00Z")).is_ok()
}

/// One or more numbers with units; words for units and blanks are allowed.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 24] = [
        "ns", "nano", "nanos", "us", "\u{b5}s", "micro", "micros", "ms", "milli", "millis", "s", "sec",
        "secs", "m", "min", "mins", "h", "hr", "hour", "hours", "d", "day", "days", "w",
    ];
    let mut rest = text.trim().trim_start_matches(['+', '-']);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if number.parse::<f64>().is_err() || !UNITS.contains(&unit) {
            return false;
        }
        rest = after.trim_start();
    }
    true
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u16>().is_ok_and(|bits| bits <= limit)
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    digits.len() == 32
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| digits[12] == version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let check = |format, text, expected| assert_eq!(holds(format, text), expected, "{format} {text}");
        check("byte", "YQ==", true);
        check("byte", "YQ=", false);
        check("byte", "Y===", false);
        check("byte", "_w==", false);
        check("byte", "", false);
        check("date-time", "2026-11-30T07:36:25Z", true);
        check("date-time", "2026-11-30T07:36:25.5+01:00", true);
        check("date-time", "2026-11-30", false);
        check("date", "2026-11-30", true);
        check("date", "2026-13-30", false);
        check("duration", "1h30m", true);
        check("duration", "1 day", true);
        check("duration", "1x", false);
        check("duration", "", false);
        check("ipv4", "10.0.0.1", true);
        check("ipv4", "10.0.0.256", false);
        check("ipv6", "::1", true);
        check("cidr", "10.0.0.0/8", true);
        check("cidr", "10.0.0.0/33", false);
        check("uuid", "11111111-2222-3333-4444-555555555555", true);
        check("uuid4", "11111111-2222-3333-4444-555555555555", false);
        check("uuid3", "11111111-2222-3333-4444-555555555555", true);
        check("password", "anything", true);
        check("int64", "anything", true);
    }
}
