//! Which etcd versions answer progress requests correctly.

/// Whether progress requests can be trusted: 3.4.31 and later in 3.4, and 3.5.13 and later.
/// Earlier ones report a revision whose events may still be on their way.
pub(super) fn supports_progress(version: &str) -> bool {
    // What follows the numbers names a build, such as "-alpha.0" or "+git".
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = numbers.split('.').map(str::parse::<u64>);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) =
        (numbers.next(), numbers.next(), numbers.next(), numbers.next())
    else {
        return false;
    };
    match (major, minor) {
        (3, 4) => 31 <= patch,
        (3, 5) => 13 <= patch,
        newer => (3, 5) < newer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supports_request_watch_progress() {
        let cases = [
            ("3.3.27", false),
            ("3.4.24", false),
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.4.40", true),
            ("3.5.0", false),
            ("3.5.12", false),
            ("3.5.13", true),
            ("3.5.13-alpha.0", true),
            ("3.6.0", true),
            ("3.6.4+git", true),
            ("4.0.0", true),
            ("2.3.8", false),
            ("", false),
            ("3.5", false),
            ("3.5.13.1", false),
            ("three", false),
        ];
        for (version, expected) in cases {
            assert_eq!(supports_progress(version), expected, "{version}");
        }
    }
}
