//! URLs, read and written as Go's `net/url` does, with its messages.

use std::any::Any;

use coffer_types::validation::field::go_quote;

use super::addresses::read_address;
use crate::cel::error::Error;
use crate::cel::types::Type;
use crate::cel::value::Opaque;

/// Most parameters of a query; of a longer one nothing is read.
const MAXIMUM_PARAMETERS: usize = 10_000;

/// A URL.
#[derive(Clone, Default)]
pub struct Url {
    /// In lower case; empty if there is none.
    pub scheme: String,
    /// Host and port, unescaped.
    pub host: String,
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    path: Vec<u8>,
    raw_path: String,
    query: String,
    force_query: bool,
    omit_host: bool,
    fragment: Vec<u8>,
    raw_fragment: String,
}

/// What is escaped depends on the part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// Whether this is an absolute URL or an absolute path: `url.ParseRequestURI`.
pub(super) fn is_request_uri(text: &str) -> Result<(), String> {
    read(text, true).map(drop).map_err(|why| format!("parse {}: {why}", go_quote(text)))
}

impl Url {
    /// The type of URLs.
    pub(super) fn declared() -> Type {
        Type::object("kubernetes.URL")
    }

    /// Reads any URL: `url.Parse`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = read(before, false).map_err(|why| format!("parse {}: {why}", go_quote(before)))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, Part::Fragment)
                .map_err(|why| format!("parse {}: {why}", go_quote(text)))?;
            if escape(&url.fragment, Part::Fragment) != fragment {
                url.raw_fragment = fragment.to_owned();
            }
        }
        Ok(url)
    }

    /// The host without brackets, and the port or nothing.
    pub(super) fn host_and_port(&self) -> (&str, &str) {
        let (mut host, mut port) = (&*self.host, "");
        if let Some(colon) = host.rfind(':')
            && is_optional_port(&host[colon..])
        {
            port = &host[colon + 1..];
            host = &host[..colon];
        }
        let within = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        (within.unwrap_or(host), port)
    }

    /// The path, escaped.
    pub(super) fn escaped_path(&self) -> String {
        escaped(&self.raw_path, &self.path, Part::Path)
    }

    /// The query's values by key, in the order of the keys' first values.
    pub(super) fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        if MAXIMUM_PARAMETERS < self.query.matches('&').count() + 1 {
            return found;
        }
        let mut places = std::collections::HashMap::new();
        for parameter in self.query.split('&') {
            if parameter.is_empty() || parameter.contains(';') {
                continue;
            }
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else {
                continue;
            };
            let (key, value) = (text(&key), text(&value));
            let place = *places.entry(key.clone()).or_insert_with(|| {
                found.push((key, Vec::new()));
                found.len() - 1
            });
            found[place].1.push(value);
        }
        found
    }
}

/// The whole, as `url.String`.
impl std::fmt::Display for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut written = String::new();
        if !self.scheme.is_empty() {
            written.push_str(&self.scheme);
            written.push(':');
        }
        if self.opaque.is_empty() {
            let hidden = self.omit_host && self.host.is_empty() && self.user.is_none();
            let authority = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
            if authority && !hidden {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    written.push_str("//");
                }
                if let Some((name, password)) = &self.user {
                    written.push_str(&escape(name, Part::User));
                    if let Some(password) = password {
                        written.push(':');
                        written.push_str(&escape(password, Part::User));
                    }
                    written.push('@');
                }
                written.push_str(&escape(self.host.as_bytes(), Part::Host));
            }
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                written.push('/');
            }
            if written.is_empty() && path.split('/').next().is_some_and(|first| first.contains(':')) {
                written.push_str("./");
            }
            written.push_str(&path);
        } else {
            written.push_str(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            written.push('?');
            written.push_str(&self.query);
        }
        if !self.fragment.is_empty() {
            written.push('#');
            written.push_str(&escaped(&self.raw_fragment, &self.fragment, Part::Fragment));
        }
        formatter.write_str(&written)
    }
}

impl Opaque for Url {
    fn type_of(&self) -> Type {
        Self::declared()
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, Error> {
        let other = other.as_any().downcast_ref::<Self>().ok_or_else(Error::no_such_overload)?;
        Ok(self.to_string() == other.to_string())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Bytes as text; Go's texts can hold any.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(whole: &str, request: bool) -> Result<Url, String> {
    if whole.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if whole.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if whole == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(whole)?;
    url.scheme = scheme.to_ascii_lowercase();
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        url.force_query = true;
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, query)) = rest.split_once('?') {
        url.query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = authority.find('/').unwrap_or(authority.len());
        rest = &authority[end..];
        read_authority(&mut url, &authority[..end])?;
    } else if !url.scheme.is_empty() && rest.starts_with('/') {
        url.omit_host = true;
    }
    url.path = unescape(rest, Part::Path)?;
    if escape(&url.path, Part::Path) != rest {
        url.raw_path = rest.to_owned();
    }
    Ok(url)
}

fn split_scheme(whole: &str) -> Result<(&str, &str), String> {
    for (index, byte) in whole.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&whole[..index], &whole[index + 1..])),
            _ => break,
        }
    }
    Ok(("", whole))
}

fn read_authority(url: &mut Url, authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    url.host = read_host(&url.scheme, host)?;
    let Some(user) = user else { return Ok(()) };
    let allowed =
        |character: char| character.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(character);
    if !user.chars().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    let name = unescape(name, Part::User)?;
    let password = password.map(|password| unescape(password, Part::User)).transpose()?;
    url.user = Some((name, password));
    Ok(())
}

fn read_host(scheme: &str, host: &str) -> Result<String, String> {
    let bad_port = |port: &str| format!("invalid port {} after host", go_quote(port));
    match host.rfind('[') {
        Some(0) => {
            let end = host.rfind(']').ok_or("missing ']' in host")?;
            let port = &host[end + 1..];
            if !is_optional_port(port) {
                return Err(bad_port(port));
            }
            let name = &host[1..end];
            let unescaped = match name.find("%25") {
                Some(zone) => {
                    let mut whole = unescape(&name[..zone], Part::Host)?;
                    whole.extend(unescape(&name[zone..], Part::Zone)?);
                    whole
                }
                None => unescape(name, Part::Host)?,
            };
            let name = text(&unescaped);
            let read = read_address(&name).map_err(|why| format!("invalid host: {why}"))?;
            if read.address.is_ipv4() {
                return Err("invalid IP-literal".to_owned());
            }
            Ok(format!("[{name}]{port}"))
        }
        Some(_) => Err("invalid IP-literal".to_owned()),
        None => {
            if let Some(first) = host.find(':') {
                let strict = matches!(scheme, "http" | "https");
                let colon = if strict { first } else { host.rfind(':').unwrap_or(first) };
                if !is_optional_port(&host[colon..]) {
                    return Err(bad_port(&host[colon..]));
                }
            }
            Ok(text(&unescape(host, Part::Host)?))
        }
    }
}

fn is_optional_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_escaped(byte: u8, part: Part) -> bool {
    let kept = byte.is_ascii_alphanumeric()
        || b"-_.~".contains(&byte)
        || match part {
            Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"".contains(&byte),
            Part::Path => b"$&+,/:;=@".contains(&byte),
            Part::User => b"$&+,;=".contains(&byte),
            Part::Query => false,
            Part::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
        };
    !kept
}

fn escape(bytes: &[u8], part: Part) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if is_escaped(*byte, part) {
            escaped.push_str(&format!("%{byte:02X}"));
        } else {
            escaped.push(char::from(*byte));
        }
    }
    escaped
}

/// The raw form where it says the same and needs no escapes, else an escaped one.
fn escaped(raw: &str, bytes: &[u8], part: Part) -> String {
    let valid = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !is_escaped(byte, part);
    if !raw.is_empty() && raw.bytes().all(valid) && unescape(raw, part).as_deref() == Ok(bytes) {
        return raw.to_owned();
    }
    if bytes == b"*" && part == Part::Path {
        return "*".to_owned();
    }
    escape(bytes, part)
}

fn unescape(escaped: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = escaped.as_bytes();
    let refused = |bytes: &[u8]| format!("invalid URL escape {}", go_quote(&text(bytes)));
    let mut unescaped = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'%' => {
                let escape = &bytes[index..(index + 3).min(bytes.len())];
                let value = match escape {
                    [_, high, low] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
                    _ => None,
                };
                let value = value.ok_or_else(|| refused(escape))?;
                let percent = escape == b"%25";
                if part == Part::Host && value < 0x80 && !percent {
                    return Err(refused(escape));
                }
                if part == Part::Zone && !percent && value != b' ' && is_escaped(value, Part::Host) {
                    return Err(refused(escape));
                }
                unescaped.push(value);
                index += 3;
                continue;
            }
            b'+' if part == Part::Query => unescaped.push(b' '),
            byte => {
                if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && is_escaped(byte, part) {
                    let shown = go_quote(&char::from(byte).to_string());
                    return Err(format!("invalid character {shown} in host name"));
                }
                unescaped.push(byte);
            }
        }
        index += 1;
    }
    Ok(unescaped)
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
