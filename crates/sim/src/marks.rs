//! Looks for a secret in every form that a program may print it in.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// A text that occurs nowhere but where a test puts it.
pub struct Mark {
    text: String,
    forms: Vec<(&'static str, Vec<u8>)>,
}

impl Mark {
    /// `text` should hold characters that escaping changes.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let escape = |keep: fn(u8) -> bool, digits: fn(u8) -> String| -> Vec<u8> {
            let kept = |byte: &u8| match keep(*byte) {
                true => char::from(*byte).to_string(),
                false => format!("%{}", digits(*byte)),
            };
            bytes.iter().map(kept).collect::<String>().into_bytes()
        };
        let letters: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric();
        let unreserved: fn(u8) -> bool = |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let upper: fn(u8) -> String = |byte| format!("{byte:02X}");
        let lower: fn(u8) -> String = |byte| format!("{byte:02x}");
        let list = |separator: &str| -> Vec<u8> {
            let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
            numbers.join(separator).into_bytes()
        };
        let middle = bytes.len() / 2;
        let mut forms = vec![
            ("plain", bytes.to_vec()),
            // A text that was cut somewhere still holds one half.
            ("first half", bytes[..middle].to_vec()),
            ("second half", bytes[middle..].to_vec()),
            ("hex", hex.clone().into_bytes()),
            ("HEX", hex.to_uppercase().into_bytes()),
            ("URL-escaped", escape(letters, upper)),
            ("url-escaped", escape(letters, lower)),
            ("URL-escaped, unreserved kept", escape(unreserved, upper)),
            ("url-escaped, unreserved kept", escape(unreserved, lower)),
            ("list of numbers", list(", ")),
            ("list of numbers, tight", list(",")),
            ("Go's list of numbers", list(" ")),
        ];
        for (name, engine) in [("base64", &STANDARD), ("base64url", &URL_SAFE)] {
            for offset in 0..3 {
                let mut padded = vec![0_u8; offset];
                padded.extend_from_slice(bytes);
                let encoded = engine.encode(padded).trim_end_matches('=').as_bytes().to_vec();
                // The first and last characters also depend on the neighbours.
                forms.push((name, encoded[if offset == 0 { 0 } else { 4 }..encoded.len() - 2].to_vec()));
            }
        }
        Self { text: text.to_owned(), forms }
    }

    /// The text itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The form in which `bytes` hold it.
    pub fn found_in(&self, bytes: &[u8]) -> Option<String> {
        self.forms.iter().find_map(|(name, form)| {
            let at = position(bytes, form)?;
            let around = &bytes[at.saturating_sub(200)..(at + form.len() + 40).min(bytes.len())];
            Some(format!("{name} at {at}: {}", String::from_utf8_lossy(around)))
        })
    }

    /// # Panics
    /// When `bytes` hold it.
    pub fn assert_absent(&self, place: &str, bytes: impl AsRef<[u8]>) {
        if let Some(found) = self.found_in(bytes.as_ref()) {
            panic!("{place} holds the mark, {found}");
        }
    }

    /// Reads every file below `directory` that is on its file system. What is mounted there must
    /// be a tmpfs.
    ///
    /// # Panics
    /// When a file holds the mark, or something else is mounted.
    pub fn assert_in_no_file(&self, directory: &Path) -> usize {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(directory).expect("a directory").dev();
        let mut files = 0;
        let mut pending = vec![directory.to_owned()];
        while let Some(directory) = pending.pop() {
            if std::fs::metadata(&directory).expect("a directory").dev() != device {
                assert!(on_tmpfs(&directory), "{} is no tmpfs", directory.display());
                continue;
            }
            for entry in std::fs::read_dir(&directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                let kind = std::fs::symlink_metadata(&path).expect("there").file_type();
                if kind.is_dir() {
                    pending.push(path);
                } else if kind.is_file() {
                    self.assert_absent(&path.display().to_string(), std::fs::read(&path).expect("read"));
                    files += 1;
                }
            }
        }
        files
    }
}

/// Whether a path is on a tmpfs.
pub fn on_tmpfs(path: &Path) -> bool {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
}

/// Where `part` begins in `bytes`.
pub fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    let first = *part.first()?;
    let mut at = 0;
    while let Some(next) = bytes.get(at..)?.iter().position(|byte| *byte == first) {
        at += next;
        if bytes[at..].starts_with(part) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_mark_is_found() {
        let mark = Mark::new("a+b/c&d=e~f.g-h_i");
        let found = |text: &[u8]| mark.found_in(text).is_some();
        for text in [
            "x a+b/c&d=e~f.g-h_i y",
            "x a+b/c&d=",
            "=e~f.g-h_i y",
            "a%2Bb%2Fc%26d%3De~f.g-h_i",
            "a%2Bb%2Fc%26d%3De%7Ef%2Eg%2Dh%5Fi",
            "a%2bb%2fc%26d%3de~f.g-h_i",
            "a%2bb%2fc%26d%3de%7ef%2eg%2dh%5fi",
        ] {
            assert!(found(text.as_bytes()), "{text}");
        }
        for before in ["", "1", "12", "123"] {
            let text = format!("{before}{}after", mark.text());
            assert!(found(STANDARD.encode(&text).as_bytes()), "{text}");
            assert!(found(URL_SAFE.encode(&text).as_bytes()), "{text}");
        }
        let bytes = mark.text().as_bytes();
        assert!(found(format!("{bytes:?}").as_bytes()));
        assert!(found(bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>().as_bytes()));
        assert!(!found(b"another text of the same length"));
    }
}
