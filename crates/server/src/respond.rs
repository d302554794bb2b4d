//! Answers: Status, plain text, and encoded objects, compressed and indented where that is wanted.

use bytes::Bytes;
use coffer_types::Status;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio_util::sync::CancellationToken;

use crate::body::{self, Body};
use crate::gzip;
use crate::handlers::list_body::ListBody;
use crate::negotiate::{self, Accepted, Media, Offers};
use crate::query::Query;
use crate::wire::{self, Pieces};

/// Answers below this size are never compressed, as upstream.
pub(crate) const GZIP_THRESHOLD: usize = 128 * 1024;

/// Plain text, with the newline that Go's `http.Error` adds.
pub(crate) fn text(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = raw(code, "text/plain; charset=utf-8", format!("{text}\n"));
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// What Go's router says of an unknown path.
pub(crate) fn page_not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found")
}

/// 404 for a path of a served group that no route has.
pub(crate) fn no_such_resource() -> Status {
    let mut status = Status::new(404, "NotFound", "the server could not find the requested resource");
    status.details = Some(Box::default());
    status
}

/// 405 for a route that has no such method.
pub(crate) fn no_such_method() -> Status {
    let mut status = Status::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    status.details = Some(Box::default());
    status
}

/// Any body with its type.
pub(crate) fn raw(code: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(body::full(bytes));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A body that is made while it is read; it ends with the server.
pub(crate) fn streamed(
    content_type: &'static str,
    pieces: BoxStream<'static, Bytes>,
    stop: CancellationToken,
) -> Response<Body> {
    let frames = pieces.take_until(stop.cancelled_owned()).map(|piece| Ok(Frame::data(piece)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A failure in the media type that the client wants. A client whose wish cannot be met gets indented JSON.
pub(crate) fn failure(status: &Status, headers: &HeaderMap, query: &Query) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let value = status.to_value();
    let mut response = match negotiate::accept(headers, Offers::Plain) {
        Ok(accepted) => {
            let bytes = wire::encode_status(&value, accepted.media);
            let bytes = indented(bytes, negotiate::pretty(query, headers, &accepted));
            raw(code, accepted.media.name(), bytes)
        }
        Err(_) => raw(code, Media::Json.name(), indent(&wire::encode_status(&value, Media::Json))),
    };
    if let Some(details) = &status.details
        && details.retry_after_seconds > 0
    {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(details.retry_after_seconds));
    }
    response
}

/// Encoded objects.
pub(crate) fn encoded(
    code: StatusCode,
    accepted: &Accepted,
    bytes: Vec<u8>,
    headers: &HeaderMap,
    query: &Query,
) -> Response<Body> {
    let bytes = indented(bytes, negotiate::pretty(query, headers, accepted));
    compressed(raw_parts(code, accepted.media.name()), bytes, headers)
}

fn raw_parts(code: StatusCode, content_type: &'static str) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A list, whose end is made while its beginning is sent when it is large.
pub(crate) fn in_pieces(
    accepted: &Accepted,
    mut pieces: Pieces,
    headers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let response = raw_parts(StatusCode::OK, accepted.media.name());
    let mut ready = Vec::with_capacity(GZIP_THRESHOLD + GZIP_THRESHOLD / 8);
    if !pieces.write(GZIP_THRESHOLD + 1, &mut ready)? {
        return Ok(compressed(response, ready, headers));
    }
    let (mut parts, ()) = response.into_parts();
    let compressed = takes_gzip(headers);
    if compressed {
        note_gzip(&mut parts.headers);
    }
    Ok(Response::from_parts(parts, ListBody::new(pieces, ready, compressed).boxed_unsync()))
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| coding.trim().split(';').next() == Some("gzip"))
}

fn note_gzip(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Adds the body, compressed when it is large and the client takes gzip.
pub(crate) fn compressed(response: Response<()>, bytes: Vec<u8>, headers: &HeaderMap) -> Response<Body> {
    let (mut parts, ()) = response.into_parts();
    if takes_gzip(headers) && bytes.len() > GZIP_THRESHOLD {
        note_gzip(&mut parts.headers);
        return Response::from_parts(parts, body::full(gzip::compress(&bytes)));
    }
    Response::from_parts(parts, body::full(bytes))
}

fn indented(bytes: Vec<u8>, pretty: bool) -> Vec<u8> {
    if pretty { indent(&bytes) } else { bytes }
}

/// Go's `json.Indent` with two spaces, without a last newline.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut bytes = json.iter().copied().peekable();
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + depth * 2, b' ');
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                out.push(byte);
                while let Some(inner) = bytes.next() {
                    out.push(inner);
                    match inner {
                        b'\\' => out.extend(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => {
                out.push(byte);
                let close = if byte == b'{' { b'}' } else { b']' };
                if bytes.next_if_eq(&close).is_some() {
                    out.push(close);
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' | b' ' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_as_in_go() {
        for (json, expected) in [
            (r#"{"a":1,"b":[],"c":{}}"#, "{\n  \"a\": 1,\n  \"b\": [],\n  \"c\": {}\n}"),
            (r#"{"a":["x,:{\"","y"]}"#, "{\n  \"a\": [\n    \"x,:{\\\"\",\n    \"y\"\n  ]\n}"),
            ("{\"a\":1}\n", "{\n  \"a\": 1\n}"),
        ] {
            assert_eq!(String::from_utf8_lossy(&indent(json.as_bytes())), expected);
        }
    }

    #[test]
    fn only_large_answers_are_compressed_and_only_on_demand() {
        let mut gzip = HeaderMap::new();
        gzip.insert(ACCEPT_ENCODING, HeaderValue::from_static("deflate, gzip;q=0.9"));
        for (size, headers, expected) in [
            (GZIP_THRESHOLD, &gzip, false),
            (GZIP_THRESHOLD + 1, &gzip, true),
            (GZIP_THRESHOLD + 1, &HeaderMap::new(), false),
        ] {
            let response = compressed(Response::new(()), vec![b'x'; size], headers);
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), expected, "{size}");
        }
    }
}
