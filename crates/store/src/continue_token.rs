//! The `continue` token of a paged list: where to go on, and at which revision.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::kv::Revision;
use coffer_types::validation::field::go_quote;

/// The only version of tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// The revision of a token that goes on at the most recent state.
pub const LATEST: Revision = -1;

/// Where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContinueToken {
    /// Revision of the first page, or [`LATEST`].
    pub revision: Revision,
    /// First key of the next page, relative to the range that is listed.
    pub start: Vec<u8>,
}

/// Why a token is not one, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The revision is 0.
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")]
    Revision,
    /// There is no key.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    Empty,
    /// Not base64, not JSON, or a key that leads elsewhere.
    #[error("continue key is not valid: {0}")]
    Invalid(String),
    /// Another version.
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    Version(String),
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(rename = "v", default)]
    version: String,
    #[serde(rename = "rv", default)]
    revision: Revision,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// The token for the page after the object with this tail (relative to the listed range).
    pub fn after(last: &[u8], revision: Revision) -> Self {
        let mut start = last.to_vec();
        start.push(0);
        Self { revision, start }
    }

    /// The text; `None` when the key is not text.
    pub fn encode(&self) -> Option<String> {
        let start = String::from_utf8(self.start.clone()).ok()?;
        let wire = Wire { version: VERSION.to_owned(), revision: self.revision, start };
        Some(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).ok()?))
    }

    /// Reads both forms: with and without a leading slash (the cache of the original writes one).
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|error| TokenError::Invalid(base64_error(&error)))?;
        let wire: Wire = serde_json::from_slice(&json).map_err(|error| {
            // Our own decoder has Go's words for the same fault.
            let go = coffer_types::codec::json::decode_untyped(&json).err();
            TokenError::Invalid(go.map_or_else(|| error.to_string(), |go| go.0))
        })?;
        if wire.version != VERSION {
            return Err(TokenError::Version(wire.version));
        }
        if wire.revision == 0 {
            return Err(TokenError::Revision);
        }
        if wire.start.is_empty() {
            return Err(TokenError::Empty);
        }
        let relative = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if !is_clean(relative) {
            return Err(TokenError::Invalid(go_quote(&wire.start).trim_matches('"').to_owned()));
        }
        Ok(Self { revision: wire.revision, start: relative.as_bytes().to_vec() })
    }
}

/// As Go words it, where both know the place.
fn base64_error(error: &base64::DecodeError) -> String {
    match error {
        base64::DecodeError::InvalidByte(offset, _) | base64::DecodeError::InvalidLastSymbol(offset, _) => {
            format!("illegal base64 data at input byte {offset}")
        }
        // Go tells where the incomplete group begins.
        base64::DecodeError::InvalidLength(length) => {
            format!("illegal base64 data at input byte {}", length / 4 * 4)
        }
        error => error.to_string(),
    }
}

/// Whether cleaning the path would leave it as it is, so that it cannot lead out of the listed range.
fn is_clean(relative: &str) -> bool {
    relative.is_empty() || relative.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    // The facts' example.
    #[test]
    fn a_token_is_encoded_as_upstream() {
        let token = ContinueToken::after(b"default/s1", 2253);
        assert_eq!(
            token.encode().as_deref(),
            Some("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjI1Mywic3RhcnQiOiJkZWZhdWx0L3MxXHUwMDAwIn0")
        );
        assert_eq!(ContinueToken::decode(&token.encode().expect("text")), Ok(token));
    }

    fn encode(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    // Test_decodeContinue
    #[test]
    fn tokens_are_checked() {
        let version = r#""v":"meta.k8s.io/v1""#;
        for (start, rv, expected) in [
            ("key", 1, Ok("key")),
            ("/key", 1, Ok("key")),
            ("a/b\\u0000", -1, Ok("a/b\0")),
            ("", 1, Err("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")),
            (
                "key",
                0,
                Err(
                    "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                ),
            ),
            ("../secrets", 1, Err("continue key is not valid: ../secrets")),
            ("a/../b", 1, Err("continue key is not valid: a/../b")),
            ("./b", 1, Err("continue key is not valid: ./b")),
            ("a//b", 1, Err("continue key is not valid: a//b")),
            ("a/", 1, Err("continue key is not valid: a/")),
            ("..", 1, Err("continue key is not valid: ..")),
        ] {
            let token = encode(&format!(r#"{{{version},"rv":{rv},"start":"{start}"}}"#));
            let decoded = ContinueToken::decode(&token);
            match expected {
                Ok(key) => assert_eq!(decoded.expect(start).start, key.as_bytes()),
                Err(text) => assert_eq!(decoded.expect_err(start).to_string(), text),
            }
        }
        assert_eq!(
            ContinueToken::decode(&encode(r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a"}"#))
                .expect_err("version")
                .to_string(),
            "continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2"
        );
        for garbage in ["&".to_owned(), "e30=".to_owned(), "e30".to_owned(), encode("7"), encode("{")] {
            assert!(ContinueToken::decode(&garbage).is_err(), "{garbage}");
        }
    }
}
