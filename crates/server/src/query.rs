//! Query strings and percent-encoding as Go's `net/url` reads them.

/// A decoded query string, in the order of the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a raw query. Pairs with a bad escape or a semicolon are dropped, as Go drops them.
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((unescape(key, true)?, unescape(value, true)?))
            })
            .collect();
        Self(pairs)
    }

    /// The first value of `key`.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        self.0.clone()
    }

    /// The first value of a parameter.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The first value of `key`, or "".
    pub(crate) fn text(&self, key: &str) -> &str {
        self.first(key).unwrap_or_default()
    }

    /// Every value of `key`.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether `key` is there, with or without a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.first(key).is_some()
    }

    /// A boolean as the API's parameter decoder reads it: anything but `0` and `false` is true.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false"))
    }
}

/// Decodes percent escapes; `None` when one is malformed. Bytes that are no UTF-8 become U+FFFD.
pub(crate) fn unescape(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes().iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let high = char::from(*rest.next()?).to_digit(16)?;
                let low = char::from(*rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_decode_as_in_go() {
        let query = Query::parse("a=1&b=x%20y+z&c&a=2&bad=%zz&d=%3D");
        assert_eq!(query.first("a"), Some("1"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.first("b"), Some("x y z"));
        assert_eq!(query.first("c"), Some(""));
        assert_eq!(query.first("bad"), None);
        assert_eq!(query.first("d"), Some("="));
        assert_eq!(Query::parse(""), Query::default());
    }

    #[test]
    fn flags_are_true_unless_they_say_otherwise() {
        for (raw, expected) in [
            ("watch=true", Some(true)),
            ("watch=1", Some(true)),
            ("watch", Some(true)),
            ("watch=maybe", Some(true)),
            ("watch=0", Some(false)),
            ("watch=False", Some(false)),
            ("", None),
        ] {
            assert_eq!(Query::parse(raw).flag("watch"), expected, "{raw}");
        }
    }
}
