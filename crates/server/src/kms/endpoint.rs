//! From the endpoint of a configuration to a socket.

/// The path of a `unix:` URL, which validation has parsed: what stands behind the host, decoded.
/// `/@NAME` is the socket `NAME` of Linux's abstract namespace, and is returned as `@NAME`.
pub fn socket_name(endpoint: &str) -> Result<String, String> {
    if endpoint.is_empty() {
        return Err("remote KMS provider can't use empty string as endpoint".to_owned());
    }
    let (scheme, rest) = endpoint.split_once(':').unwrap_or(("", endpoint));
    if !scheme.eq_ignore_ascii_case("unix") {
        return Err(format!("unsupported scheme {scheme:?} for remote KMS provider"));
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.find('/').map_or("", |start| &authority[start..]),
        // `unix:name` has no path.
        None if !rest.starts_with('/') => "",
        None => rest,
    };
    let path = percent_decoded(path);
    Ok(path
        .strip_prefix('/')
        .filter(|name| name.starts_with('@'))
        .map_or_else(|| path.clone(), str::to_owned))
}

fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.filter(|_| bytes[at] == b'%').and_then(|text| u8::from_str_radix(text, 16).ok());
        out.push(decoded.unwrap_or(bytes[at]));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's TestParseEndpoint, and what Go's URLs do besides.
    #[test]
    fn test_parse_endpoint() {
        let check = |endpoint: &str, expected: Result<&str, &str>| {
            let found = socket_name(endpoint);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{endpoint}");
        };
        check("unix:///kms-socket.sock", Ok("/kms-socket.sock"));
        check("unix:///@kms-socket.sock", Ok("@kms-socket.sock"));
        check("unix:///a/@b", Ok("/a/@b"));
        check("UNIX:///a%20b.sock?x#y", Ok("/a b.sock"));
        check("unix://host/run/a.sock", Ok("/run/a.sock"));
        check("unix:/run/a.sock", Ok("/run/a.sock"));
        check("unix:///a%2", Ok("/a%2"));
        check("unix://host", Ok(""));
        check("unix:name", Ok(""));
        check("", Err("remote KMS provider can't use empty string as endpoint"));
        check("tcp://localhost:1234", Err("unsupported scheme \"tcp\" for remote KMS provider"));
    }
}
