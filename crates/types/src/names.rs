//! What may be a name, a label, a key: upstream's rules with upstream's texts.
//!
//! Each rule returns what is wrong, nothing when all is well. A [`PathSegment`]
//! is a name that has been found safe as one element of a path or storage key.

use std::fmt;

/// Longest DNS label, in bytes.
pub const DNS_LABEL_LIMIT: usize = 63;
/// Longest DNS subdomain, and longest key of a Secret or ConfigMap, in bytes.
pub const DNS_SUBDOMAIN_LIMIT: usize = 253;
/// Longest name part of a label key, and longest label value, in bytes.
pub const LABEL_LIMIT: usize = 63;

/// A rule for names. The flag says that something will be appended (`generateName`).
pub type NameRule = fn(&str, bool) -> Vec<String>;

/// A name that is safe as one element of a path: not empty, not `.` or `..`, no `/`, `%` or NUL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathSegment(String);

impl PathSegment {
    /// Checks `name`.
    pub fn parse(name: &str) -> Result<Self, Vec<String>> {
        let mut faults = is_path_segment(name);
        if name.is_empty() {
            faults.push("must be non-empty".to_owned());
        }
        if name.contains('\0') {
            faults.push("may not contain '\\x00'".to_owned());
        }
        if faults.is_empty() { Ok(Self(name.to_owned())) } else { Err(faults) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PathSegment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// [`NameRule`] of most kinds: a DNS subdomain.
pub fn dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_subdomain(&masked(name, prefix))
}

/// [`NameRule`] of namespaces: a DNS label.
pub fn dns_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_label(&masked(name, prefix))
}

/// A [`NameRule`]: a DNS label that begins with a letter.
pub fn dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&masked(name, prefix))
}

/// [`NameRule`] of roles and bindings: any path segment.
pub fn path_segment(name: &str, _prefix: bool) -> Vec<String> {
    is_path_segment(name)
}

/// [`NameRule`] of the generic checks: a path segment, or its beginning.
pub fn path_segment_or_prefix(name: &str, prefix: bool) -> Vec<String> {
    if prefix { path_segment_characters(name) } else { is_path_segment(name) }
}

/// Upstream replaces the last two characters of a prefix that ends in a dash.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if prefix && !rest.is_empty() => {
            let mut rest: Vec<char> = rest.chars().collect();
            rest.pop();
            rest.into_iter().chain(['a']).collect()
        }
        _ => name.to_owned(),
    }
}

const DNS_LABEL_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_SUBDOMAIN_FORMAT: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// A lower case DNS label (RFC 1123).
pub fn is_dns1123_label(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > DNS_LABEL_LIMIT {
        faults.push(max_characters(DNS_LABEL_LIMIT));
    }
    if !matches_dns_label(value) {
        faults.push(if matches_dns_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
                 and must start and end with an alphanumeric character",
                DNS_LABEL_FORMAT,
                &["my-name", "123-abc"],
            )
        });
    }
    faults
}

/// Lower case DNS labels joined by dots (RFC 1123).
pub fn is_dns1123_subdomain(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > DNS_SUBDOMAIN_LIMIT {
        faults.push(max_characters(DNS_SUBDOMAIN_LIMIT));
    }
    faults.extend(subdomain_form(value));
    faults
}

/// A label that begins with a letter (RFC 1035).
pub fn is_dns1035_label(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > DNS_LABEL_LIMIT {
        faults.push(max_characters(DNS_LABEL_LIMIT));
    }
    if !(matches_dns_label(value) && value.starts_with(|first: char| first.is_ascii_lowercase())) {
        faults.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', \
             start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

const LABEL_KEY_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                              with an alphanumeric character";

/// A label key, annotation key (lower-cased), finalizer or condition type: `[prefix/]name`.
pub fn is_qualified_name(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let examples = ["MyName", "my.name", "123-abc"];
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                if prefix.len() > DNS_SUBDOMAIN_LIMIT {
                    faults.push(format!("prefix part {}", max_bytes(DNS_SUBDOMAIN_LIMIT)));
                }
                faults.extend(subdomain_form(prefix).map(|fault| format!("prefix part {fault}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex_error(LABEL_KEY_TEXT, LABEL_KEY_FORMAT, &examples)
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LIMIT {
        faults.push(format!("name part {}", max_bytes(LABEL_LIMIT)));
    }
    if !matches_label(name) {
        faults.push(format!("name part {}", regex_error(LABEL_KEY_TEXT, LABEL_KEY_FORMAT, &examples)));
    }
    faults
}

/// A label value; empty is fine.
pub fn is_label_value(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > LABEL_LIMIT {
        faults.push(max_bytes(LABEL_LIMIT));
    }
    if !(value.is_empty() || matches_label(value)) {
        faults.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A key of a Secret or ConfigMap, which may become a file name.
pub fn is_config_map_key(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > DNS_SUBDOMAIN_LIMIT {
        faults.push(max_characters(DNS_SUBDOMAIN_LIMIT));
    }
    if value.is_empty() || !value.bytes().all(is_label_byte) {
        faults.push(regex_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    faults.extend(directory_change(value));
    faults
}

/// A name of an environment variable: printable ASCII without `=`.
pub fn is_environment_name(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.is_empty() {
        faults.push("environment variable name must be non-empty".to_owned());
    }
    if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    faults
}

/// A name of a port.
pub fn is_port_name(value: &str) -> Vec<String> {
    const PORT_NAME_LIMIT: usize = 15;
    let mut faults = Vec::new();
    if value.len() > PORT_NAME_LIMIT {
        faults.push(max_characters(PORT_NAME_LIMIT));
    }
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if value.is_empty() || !value.bytes().all(allowed) {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        faults.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        faults.push("must not begin or end with a hyphen".to_owned());
    }
    faults
}

/// A name that may stand between two slashes of a URL.
pub fn is_path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => path_segment_characters(name),
    }
}

fn path_segment_characters(name: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|character| name.contains(**character))
        .map(|character| format!("may not contain '{character}'"))
        .collect()
}

/// A number must lie between two limits.
pub fn range_error(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// A number of a port.
pub fn is_port_number(port: i64) -> Vec<String> {
    if (1..=65_535).contains(&port) { Vec::new() } else { vec![range_error(1, 65_535)] }
}

fn max_characters(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn max_bytes(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// Upstream's text for a value that does not match a pattern.
pub fn regex_error(text: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{text} (regex used for validation is '{pattern}')");
    }
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn subdomain_form(value: &str) -> Option<String> {
    (!matches_dns_subdomain(value)).then(|| {
        regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character",
            DNS_SUBDOMAIN_FORMAT,
            &["example.com"],
        )
    })
}

fn directory_change(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        other if other.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn matches_dns_subdomain(value: &str) -> bool {
    value.split('.').all(matches_dns_label)
}

fn matches_dns_label(value: &str) -> bool {
    let alphanumeric = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9');
    let bytes = value.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

fn matches_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().copied().all(is_label_byte)
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
        or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
        is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
        must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation \
        is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
        or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
        end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
        is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

    #[track_caller]
    fn check(faults: Vec<String>, expected: &[&str]) {
        assert_eq!(faults, expected);
    }

    #[test]
    fn subdomains() {
        let check = |value: &str, expected: &[&str]| check(is_dns1123_subdomain(value), expected);
        for good in ["a", "0", "a.b", "a-b.c-d", "1.2", &"a".repeat(253)] {
            check(good, &[]);
        }
        for bad in ["", "A", "-a", "a-", ".", "a..b", "a.", ".a", "a_b", "a b", "ä", "a.-b", "a\n"] {
            check(bad, &[SUBDOMAIN]);
        }
        check(&"a".repeat(254), &["must be no more than 253 characters"]);
        check(&"A".repeat(254), &["must be no more than 253 characters", SUBDOMAIN]);
    }

    #[test]
    fn labels() {
        let check = |value: &str, expected: &[&str]| check(is_dns1123_label(value), expected);
        check("a", &[]);
        check(&"a".repeat(63), &[]);
        check(&"a".repeat(64), &["must be no more than 63 characters"]);
        check("a.b", &["must not contain dots"]);
        check("", &[LABEL]);
        check("a_b", &[LABEL]);
    }

    #[test]
    fn prefixes_may_end_in_a_dash() {
        check(dns_subdomain("a-", true), &[]);
        check(dns_subdomain("a-", false), &[SUBDOMAIN]);
        check(dns_subdomain("-", true), &[SUBDOMAIN]);
        check(dns_subdomain("ü-", true), &[]);
        check(path_segment_or_prefix("..", true), &[]);
        check(path_segment_or_prefix("..", false), &["may not be '..'"]);
        check(path_segment_or_prefix("a/b%", true), &["may not contain '/'", "may not contain '%'"]);
    }

    #[test]
    fn qualified_names() {
        let check = |value: &str, expected: &[&str]| check(is_qualified_name(value), expected);
        for good in ["a", "A.b_c-d", "x.y/z", "0", &"a".repeat(63), &format!("{}/a", "a".repeat(253))] {
            check(good, &[]);
        }
        check("", &["name part must be non-empty", QUALIFIED]);
        check("a b", &[QUALIFIED]);
        check(&"a".repeat(64), &["name part must be no more than 63 bytes"]);
        check("/a", &["prefix part must be non-empty"]);
        check("a/", &["name part must be non-empty", QUALIFIED]);
        check("A/a", &[&format!("prefix part {SUBDOMAIN}")]);
        check(&format!("{}/a", "a".repeat(254)), &["prefix part must be no more than 253 bytes"]);
        check(
            "a/b/c",
            &[
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
               with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
               validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
               and '/' (e.g. 'example.com/MyName')",
            ],
        );
    }

    #[test]
    fn label_values() {
        let form = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
            and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
            regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
        let check = |value: &str, expected: &[&str]| check(is_label_value(value), expected);
        for good in ["", "a", "A_b.c-1", &"a".repeat(63)] {
            check(good, &[]);
        }
        check(&"a".repeat(64), &["must be no more than 63 bytes"]);
        check("-a", &[form]);
        check("a/b", &[form]);
        check(&"-".repeat(64), &["must be no more than 63 bytes", form]);
    }

    #[test]
    fn config_map_keys() {
        let check = |value: &str, expected: &[&str]| check(is_config_map_key(value), expected);
        for good in ["a", ".foo", "A_b-c.d", "-", &"a".repeat(253)] {
            check(good, &[]);
        }
        check("", &[KEY]);
        check("a/b", &[KEY]);
        check("a\n", &[KEY]);
        check(".", &["must not be '.'"]);
        check("..", &["must not be '..'"]);
        check("..data", &["must not start with '..'"]);
        check("../x", &[KEY, "must not start with '..'"]);
        check(&"a".repeat(254), &["must be no more than 253 characters"]);
    }

    #[test]
    fn ports_and_environment_names() {
        check(is_port_name("http"), &[]);
        check(is_port_name("a-1"), &[]);
        check(is_port_name(&"a".repeat(16)), &["must be no more than 15 characters"]);
        check(is_port_name("1"), &["must contain at least one letter (a-z)"]);
        check(
            is_port_name("a--b-"),
            &["must not contain consecutive hyphens", "must not begin or end with a hyphen"],
        );
        check(is_port_number(1), &[]);
        check(is_port_number(65_535), &[]);
        check(is_port_number(0), &["must be between 1 and 65535, inclusive"]);
        check(is_port_number(65_536), &["must be between 1 and 65535, inclusive"]);
        check(is_environment_name("1 a/b"), &[]);
        check(is_environment_name(""), &["environment variable name must be non-empty"]);
        let form = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        check(is_environment_name("a=b"), &[form]);
        check(is_environment_name("ä"), &[form]);
    }

    /// CVE-2015-5305: a name with path parts must never reach the storage.
    #[test]
    fn s3_two_hundred_hostile_names_are_refused() {
        let parts = ["..", ".", "/", "%", "\0"];
        let words = ["", "a", "kube-system", "registry", "secrets", "%2f", "%2e%2e", "../..", "x\0y", "//"];
        let mut hostile = std::collections::BTreeSet::new();
        for part in parts {
            for word in words {
                for name in [
                    format!("{part}/{word}"),
                    format!("{word}/{part}"),
                    format!("{word}%{part}"),
                    format!("{part}\0{word}"),
                    format!("/{word}{part}"),
                    format!("{word}{part}/../x"),
                ] {
                    hostile.insert(name);
                }
            }
        }
        hostile.extend(["", ".", "..", "\0", "%", "/"].map(str::to_owned));
        assert!(hostile.len() >= 200, "{}", hostile.len());
        for name in &hostile {
            assert!(PathSegment::parse(name).is_err(), "{name:?} passed as a path segment");
            assert!(!dns_subdomain(name, false).is_empty(), "{name:?} passed as a subdomain");
            assert!(!dns_label(name, false).is_empty(), "{name:?} passed as a label");
            assert!(!is_config_map_key(name).is_empty(), "{name:?} passed as a key");
        }
        assert_eq!(
            PathSegment::parse("system:node-1").map(|segment| segment.to_string()),
            Ok("system:node-1".into())
        );
    }
}
