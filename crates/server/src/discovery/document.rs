//! Documents that a client keeps as long as their tag stays the same.

use http::header::{ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Response, StatusCode};

use crate::body::Body;
use crate::handlers::call::Call;
use crate::respond;

/// `"HEX"` of SHA-512, upper case, as upstream tags its documents.
pub(crate) fn etag(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, bytes);
    digest.as_ref().iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a string does not fail.
        let _infallible = write!(text, "{byte:02X}");
        text
    })
}

/// The document, or 304 when the client has it.
pub(crate) fn tagged(call: &Call, hash: &str, bytes: Vec<u8>, content_type: &'static str) -> Response<Body> {
    let quoted = format!("\"{hash}\"");
    let has = call
        .headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|tag| tag.trim().trim_start_matches("W/") == quoted);
    let mut response = if has {
        respond::raw(StatusCode::NOT_MODIFIED, content_type, "")
    } else {
        let mut parts = Response::new(());
        parts.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        respond::compressed(parts, bytes, &call.headers)
    };
    if let Ok(value) = HeaderValue::from_str(&quoted) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// `Host`, for what a client may be told about addresses.
pub(crate) fn host(headers: &HeaderMap) -> String {
    const AUTHORITY: HeaderName = http::header::HOST;
    headers.get(AUTHORITY).and_then(|value| value.to_str().ok()).unwrap_or("localhost").to_owned()
}
