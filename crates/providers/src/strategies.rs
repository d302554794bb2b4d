//! What happens to keys and values on the way: conversion, validation, decoding.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use coffer_types::SecretBytes;

use crate::contract::{ProviderError, SecretMap};

/// The longest key of a Secret.
pub const MAX_KEY: usize = 253;

/// Go's decoder wants padding and does not mind bits after the last byte.
const GO: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, GO);
const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, GO);

/// Makes keys into what a Secret takes (`conversionStrategy`).
///
/// # Errors
/// When two keys become one.
pub fn convert_keys(strategy: &str, map: SecretMap) -> Result<SecretMap, String> {
    let mut out = SecretMap::new();
    for (key, value) in map {
        let new = convert_key(strategy, &key);
        if out.contains_key(&new) {
            return Err(format!("secret name collision during conversion: {new}"));
        }
        out.insert(new, value);
    }
    Ok(out)
}

fn convert_key(strategy: &str, key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for character in key.chars() {
        if keeps(character) {
            out.push(character);
        } else {
            match strategy {
                "" | "Default" => out.push('_'),
                "Unicode" => out.push_str(&format!("_U{:04x}_", u32::from(character))),
                _ => out.push(character),
            }
        }
    }
    out
}

fn keeps(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '.' | '_')
}

/// Drops empty keys and refuses those that no Secret takes.
///
/// # Errors
/// Upstream's text about the first key that is too long or holds a strange character.
pub fn validate_keys(map: SecretMap) -> Result<SecretMap, String> {
    let mut out = SecretMap::new();
    for (key, value) in map {
        if key.is_empty() {
            tracing::debug!("a value with an empty key was dropped");
            continue;
        }
        if MAX_KEY < key.len() {
            let mut end = MAX_KEY;
            while !key.is_char_boundary(end) {
                end -= 1;
            }
            return Err(format!(
                "key has length {} but max is {MAX_KEY}: (following is truncated): {}",
                key.len(),
                &key[..end]
            ));
        }
        if let Some(bad) = key.chars().find(|character| !keeps(*character)) {
            return Err(format!(
                "key has invalid character {bad}, only alphanumeric, '-', '.' and '_' are allowed: {key}"
            ));
        }
        out.insert(key, value);
    }
    Ok(out)
}

/// Decodes a value (`decodingStrategy`).
///
/// # Errors
/// Go's text of what is wrong, which names an offset and no content.
pub fn decode(strategy: &str, value: SecretBytes) -> Result<SecretBytes, String> {
    match strategy {
        "" | "None" => Ok(value),
        "Base64" => base64_decode(&STANDARD, &value).map_err(illegal),
        "Base64URL" => base64_decode(&URL, &value).map_err(illegal),
        "Auto" => {
            Ok(base64_decode(&STANDARD, &value).or_else(|_| base64_decode(&URL, &value)).unwrap_or(value))
        }
        other => Err(format!("decoding strategy {other} is not supported")),
    }
}

/// Decodes all values.
///
/// # Errors
/// As [`decode`], with the key.
pub fn decode_map(strategy: &str, map: SecretMap) -> Result<SecretMap, String> {
    map.into_iter()
        .map(|(key, value)| match decode(strategy, value) {
            Ok(value) => Ok((key, value)),
            Err(why) => Err(format!("failure decoding key {key}: {why}")),
        })
        .collect()
}

/// Compiles `find.name.regexp`; it need not match the whole name.
///
/// # Errors
/// When it is no regular expression.
pub fn compile_name(pattern: &str) -> Result<regex::Regex, ProviderError> {
    regex::Regex::new(pattern).map_err(|error| {
        ProviderError::Config(format!("could not compile find.name.regexp [{pattern}]: {error}"))
    })
}

fn illegal(offset: usize) -> String {
    format!("illegal base64 data at input byte {offset}")
}

/// Go's decoder skips line breaks; the error is the offset in the input.
fn base64_decode(engine: &GeneralPurpose, value: &SecretBytes) -> Result<SecretBytes, usize> {
    let input = value.expose();
    let kept =
        SecretBytes::new(input.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect());
    engine.decode(kept.expose()).map(SecretBytes::new).map_err(|error| {
        let offset = match error {
            base64::DecodeError::InvalidByte(offset, _)
            | base64::DecodeError::InvalidLastSymbol(offset, _) => offset,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => kept.len() / 4 * 4,
        };
        // From the offset without line breaks back to the one in the input.
        let counted = input.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
        counted.map(|(index, _)| index).nth(offset).unwrap_or(input.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(keys: &[&str]) -> SecretMap {
        keys.iter().map(|key| ((*key).to_owned(), SecretBytes::default())).collect()
    }

    #[test]
    fn keys_are_converted() {
        let cases = [
            ("", "foo$bar%baz*bing", Ok("foo_bar_baz_bing")),
            ("Default", "foo$bar%baz*bing", Ok("foo_bar_baz_bing")),
            ("Unicode", "😀foo😁bar😂baz😈bing", Ok("_U1f600_foo_U1f601_bar_U1f602_baz_U1f608_bing")),
            ("Unicode", "some-array[0].entity", Ok("some-array_U005b_0_U005d_.entity")),
            ("None", "a b", Ok("a b")),
        ];
        for (strategy, key, expected) in cases {
            let converted =
                convert_keys(strategy, map(&[key])).map(|map| map.keys().next().cloned().unwrap());
            assert_eq!(converted.as_deref().map_err(String::as_str), expected, "{strategy} {key}");
        }
        let collision = convert_keys("Default", map(&["foo$bar", "foo%bar"])).unwrap_err();
        assert_eq!(collision, "secret name collision during conversion: foo_bar");
    }

    #[test]
    fn keys_are_validated() {
        assert_eq!(
            validate_keys(map(&["", "a.B-1_ä"])).unwrap().into_keys().collect::<Vec<_>>(),
            ["a.B-1_ä"]
        );
        assert_eq!(
            validate_keys(map(&["a/b"])).unwrap_err(),
            "key has invalid character /, only alphanumeric, '-', '.' and '_' are allowed: a/b"
        );
        assert!(validate_keys(map(&[&"a".repeat(253)])).is_ok());
        let long = validate_keys(map(&[&"ä".repeat(127)])).unwrap_err();
        assert!(long.starts_with("key has length 254 but max is 253: (following is truncated): ä"), "{long}");
    }

    #[test]
    fn values_are_decoded() {
        let cases = [
            ("Base64", "YmFy", Ok("bar")),
            ("Base64", "Ym\nFy\r\n", Ok("bar")),
            ("Base64", "foo", Err("illegal base64 data at input byte 0")),
            ("Base64", "YmFy\nYm!y", Err("illegal base64 data at input byte 7")),
            ("Base64", "YmE", Err("illegal base64 data at input byte 0")),
            ("Base64URL", "Zm9vJV8_YmFy", Ok("foo%_?bar")),
            ("Auto", "Zm9vJV8/YmFy", Ok("foo%_?bar")),
            ("Auto", "Zm9vJV8_YmFy", Ok("foo%_?bar")),
            ("Auto", "foo", Ok("foo")),
            ("None", "YmFy", Ok("YmFy")),
            ("", "YmFy", Ok("YmFy")),
            ("Rot13", "x", Err("decoding strategy Rot13 is not supported")),
        ];
        for (strategy, value, expected) in cases {
            let decoded = decode(strategy, SecretBytes::from(value.to_owned()));
            let decoded = decoded.map(|value| String::from_utf8(value.expose().to_vec()).unwrap());
            assert_eq!(decoded.as_deref().map_err(String::as_str), expected, "{strategy} {value}");
        }
        let map = SecretMap::from([("k".to_owned(), SecretBytes::from("!".to_owned()))]);
        assert_eq!(
            decode_map("Base64", map).unwrap_err(),
            "failure decoding key k: illegal base64 data at input byte 0"
        );
    }
}
