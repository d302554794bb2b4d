//! As much of Go's `url.Parse` as it takes to fail where it fails, in its words.

use coffer_types::validation::field::go_quote;

/// The scheme in lower case ("" when there is none), or Go's error.
pub(crate) fn scheme(url: &str) -> Result<String, String> {
    parse(url).map_err(|error| format!("parse {}: {error}", go_quote(url)))
}

fn parse(url: &str) -> Result<String, String> {
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if url == "*" {
        return Ok(String::new());
    }
    let (scheme, rest) = split_scheme(url)?;
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(scheme);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = rest.starts_with("//") && (!scheme.is_empty() || !rest.starts_with("///"));
    let path = if has_authority {
        let authority = &rest[2..];
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        check_authority(authority)?;
        path
    } else {
        rest
    };
    check_escapes(path)?;
    check_escapes(fragment)?;
    Ok(scheme)
}

fn split_scheme(url: &str) -> Result<(String, &str), String> {
    for (index, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((url[..index].to_ascii_lowercase(), &url[index + 1..])),
            _ => break,
        }
    }
    Ok((String::new(), url))
}

fn check_authority(authority: &str) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    check_host(host)?;
    let Some(user) = user else { return Ok(()) };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(allowed) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    check_escapes(user)
}

fn check_host(host: &str) -> Result<(), String> {
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let valid = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    if !valid {
        return Err(format!("invalid port {} after host", go_quote(port)));
    }
    let mut rest = host;
    while let Some(character) = rest.chars().next() {
        if character == '%' {
            let escape = escape_at(rest)?;
            // Only bytes outside of ASCII, and the percent sign of a zone, may be escaped.
            let ascii = matches!(escape.as_bytes()[1], b'0'..=b'7');
            if ascii && escape != "%25" {
                return Err(format!("invalid URL escape {}", go_quote(escape)));
            }
            rest = &rest[escape.len()..];
            continue;
        }
        let allowed = !character.is_ascii()
            || character.is_ascii_alphanumeric()
            || "-_.~!$&'()*+,;=:[]<>\"".contains(character);
        if !allowed {
            return Err(format!("invalid character {} in host name", go_quote(&character.to_string())));
        }
        rest = &rest[character.len_utf8()..];
    }
    Ok(())
}

fn check_escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(start) = rest.find('%') {
        let escape = escape_at(&rest[start..])?;
        rest = &rest[start + escape.len()..];
    }
    Ok(())
}

/// The three characters of the escape that `text` starts with.
fn escape_at(text: &str) -> Result<&str, String> {
    let hex = |index: usize| text.as_bytes().get(index).is_some_and(u8::is_ascii_hexdigit);
    if hex(1) && hex(2) {
        return Ok(&text[..3]);
    }
    // Go cuts after three bytes; a character that is cut in half shows as its first byte.
    let end = (0..=text.len().min(3)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Err(format!("invalid URL escape {}", go_quote(&text[..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_go() {
        let check = |url: &str, expected: Result<&str, &str>| {
            let expected =
                expected.map(str::to_owned).map_err(|text| format!("parse {}: {text}", go_quote(url)));
            assert_eq!(scheme(url), expected);
        };
        check("unix:///a", Ok("unix"));
        check("UNIX:///@a", Ok("unix"));
        check("http://x:80/p?q#f", Ok("http"));
        check("a b", Ok(""));
        check("mailto:x", Ok("mailto"));
        check("*", Ok(""));
        check("///a", Ok(""));
        check("unix://u:p@h", Ok("unix"));
        check("unix://[::1]:80", Ok("unix"));
        check("unix:///a\u{1}b", Err("net/url: invalid control character in URL"));
        check(":foo", Err("missing protocol scheme"));
        check("1a:b", Err("first path segment in URL cannot contain colon"));
        check("%zz", Err("invalid URL escape \"%zz\""));
        check("unix:///%zz", Err("invalid URL escape \"%zz\""));
        check("unix:///%", Err("invalid URL escape \"%\""));
        check("unix:///a#%g", Err("invalid URL escape \"%g\""));
        check("unix://%41", Err("invalid URL escape \"%41\""));
        check("unix://a b", Err("invalid character \" \" in host name"));
        check("unix://h:x", Err("invalid port \":x\" after host"));
        check("unix://[::1", Err("missing ']' in host"));
        check("unix://a b@h", Err("net/url: invalid userinfo"));
    }
}
