//! Base64 of schemas' `format: byte`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The bytes of `text`, if it is base64 with the standard alphabet and padding.
/// Line breaks are skipped, as Go does.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.contains(['\r', '\n']) {
        let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
        return STANDARD.decode(text).ok();
    }
    STANDARD.decode(text).ok()
}
