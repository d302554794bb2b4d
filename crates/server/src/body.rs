//! Bodies of requests and answers.

use bytes::{Bytes, BytesMut};
use coffer_types::Status;
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// Any error a body can end with.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body on its way in or out.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Size of one request body, upstream's limit.
pub const MAX_BODY: usize = 3 * 1024 * 1024;

/// A whole body.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body that comes from a socket or from inside the process.
pub(crate) fn incoming<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// The 413 of a body that is too large.
pub(crate) fn too_large() -> Status {
    Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {MAX_BODY}"))
}

/// Reads a whole body, but no more than [`MAX_BODY`].
pub(crate) async fn read(mut body: Body) -> Result<Bytes, Status> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Status::bad_request("the body of the request could not be read").with_internal(error.to_string())
        })?;
        // Trailers say nothing that is needed here.
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > MAX_BODY {
            return Err(too_large());
        }
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}
