//! What every handler can reach: resources, policy, clock, metrics.

use std::sync::Arc;

use bytes::Bytes;
use coffer_types::Status;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use crate::health::HealthCheck;
use crate::kubelet::Kubelets;
use crate::metrics::Metrics;
use crate::ports::{AdmissionChain, Authenticator, Authorizer};
use crate::resources::Resources;
use crate::service_addresses::range::Range;

/// Everything that handlers share.
pub(crate) struct Server {
    pub(crate) resources: Arc<Resources>,
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) admission: AdmissionChain,
    pub(crate) routes: Vec<Route>,
    pub(crate) health_checks: Vec<Arc<dyn HealthCheck>>,
    /// Who asks kubelets.
    pub(crate) kubelets: Option<Kubelets>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) metrics: Metrics,
    /// Addresses of Services.
    pub(crate) service_range: Range,
    /// Ends watches.
    pub(crate) stop: CancellationToken,
}

/// A document under a path of its own, such as the OpenID configuration.
pub struct Route {
    /// Path.
    pub path: &'static str,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// `Cache-Control`, when it is not the usual one.
    pub cache_control: Option<&'static str>,
    /// Makes the document.
    pub answer: Answer,
}

/// What makes a document from the parameters of the query, already unescaped.
pub enum Answer {
    /// All of it at once, within the time that requests have.
    Whole(Make<Vec<u8>>),
    /// Piece by piece. Only the beginning has to be there within that time; the document ends early
    /// when the server does, and is dropped when its reader is gone.
    Pieces(Make<BoxStream<'static, Bytes>>),
}

/// Makes what answers a request.
pub type Make<T> = Box<dyn Fn(Vec<(String, String)>) -> BoxFuture<'static, Result<T, Status>> + Send + Sync>;

impl Route {
    /// A document that is made at each request.
    pub fn new(path: &'static str, content_type: &'static str, make: Make<Vec<u8>>) -> Self {
        Self { path, content_type, cache_control: None, answer: Answer::Whole(make) }
    }

    /// A document that takes longer than a request may.
    pub fn streamed(
        path: &'static str,
        content_type: &'static str,
        make: Make<BoxStream<'static, Bytes>>,
    ) -> Self {
        Self { path, content_type, cache_control: None, answer: Answer::Pieces(make) }
    }

    /// A document that never changes.
    pub fn fixed(
        path: &'static str,
        content_type: &'static str,
        cache_control: &'static str,
        body: Vec<u8>,
    ) -> Self {
        let make: Make<Vec<u8>> = Box::new(move |_| {
            let body = body.clone();
            Box::pin(async move { Ok(body) })
        });
        Self { path, content_type, cache_control: Some(cache_control), answer: Answer::Whole(make) }
    }
}
