//! A connection to the server without a socket, for what runs in the same process.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};

use super::pipeline::{Peer, Pipeline};
use crate::body::{self, Body, BoxError};
use crate::ports::UserInfo;

/// A `tower` service that answers as the server does, for one fixed user.
///
/// Authentication is skipped, since the caller holds this handle; authorization
/// and everything behind it is not.
#[derive(Clone)]
pub struct InProcess {
    pipeline: Arc<Pipeline>,
    peer: Arc<Peer>,
}

impl InProcess {
    pub(crate) fn new(pipeline: Arc<Pipeline>, user: UserInfo) -> Self {
        Self { pipeline, peer: Arc::new(Peer { certificates: Vec::new(), user: Some(user) }) }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let pipeline = Arc::clone(&self.pipeline);
        let peer = Arc::clone(&self.peer);
        let request = request.map(body::incoming);
        let answer = pipeline.handle(request, peer);
        Box::pin(async move { Ok(answer.await) })
    }
}
