//! What lets others verify service account tokens: the OpenID provider document and the key set.

use super::jws::{KeyError, PublicKey};

/// Path of the provider document.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Path of the key set.
pub const JWKS_PATH: &str = "/openid/v1/jwks";
/// `Content-Type` of the provider document.
pub const CONFIGURATION_CONTENT_TYPE: &str = "application/json";
/// `Content-Type` of the key set.
pub const JWKS_CONTENT_TYPE: &str = "application/jwk-set+json";
/// `Cache-Control` of both.
pub const CACHE_CONTROL: &str = "public, max-age=3600";

/// The two documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// Body of [`CONFIGURATION_PATH`].
    pub configuration: String,
    /// Body of [`JWKS_PATH`].
    pub jwks: String,
}

/// Makes both documents. `external_address` is host and port under which the server is reached.
///
/// # Errors
/// Upstream's text when the issuer cannot be one; then the documents are not served.
pub fn documents(issuer: &str, external_address: &str, keys: &[PublicKey]) -> Result<Documents, String> {
    if issuer.is_empty() {
        return Err("empty issuer URL".to_owned());
    }
    if !issuer.starts_with("https://") {
        return Err(format!("issuer URL must use https scheme, got: {issuer}"));
    }
    let (before_fragment, fragment) = issuer.split_once('#').unwrap_or((issuer, ""));
    if before_fragment.contains('?') {
        return Err(format!("issuer URL may not include a query, got: {issuer}"));
    }
    if !fragment.is_empty() {
        return Err(format!("issuer URL may not include a fragment, got: {issuer}"));
    }
    let mut algorithms: Vec<&str> = keys.iter().map(PublicKey::algorithm).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let configuration = format!(
        r#"{{"issuer":{},"jwks_uri":{},"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":{}}}"#,
        json(issuer),
        json(&format!("https://{external_address}{JWKS_PATH}")),
        serde_json::Value::from(algorithms),
    );
    let jwks = jwks(keys).map_err(|error| error.to_string())?;
    Ok(Documents { configuration, jwks })
}

fn jwks(keys: &[PublicKey]) -> Result<String, KeyError> {
    let mut entries = Vec::new();
    for key in keys {
        let members: Vec<String> =
            key.to_jwk()?.into_iter().map(|(name, text)| format!("{}:{}", json(name), json(&text))).collect();
        entries.push(format!("{{{}}}", members.join(",")));
    }
    Ok(format!(r#"{{"keys":[{}]}}"#, entries.join(",")))
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
