//! From a connection to a handler: limits, classification, authentication, authorization, deadlines.
//!
//! Nothing of a body is read before the user is known and allowed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use coffer_types::{Status, random};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::warnings;
use crate::authz::{self, impersonation};
use crate::body::{self, Body};
use crate::handlers::call::Call;
use crate::handlers::dispatch::dispatch;
use crate::ports::{Attributes, Authenticated, AuthenticationSource, Credentials, Decision, UserInfo};
use crate::query::{self, Query};
use crate::respond;
use crate::route::RequestInfo;
use crate::state::Server;
use crate::{duration, negotiate};

/// Longest that any request but a watch may take.
const REQUEST_DEADLINE: Duration = Duration::from_secs(60);

/// Longest that a write may take.
const WRITE_DEADLINE: Duration = Duration::from_secs(34);

/// Reads in flight, upstream's default.
pub const MAX_READS: usize = 400;

/// Writes in flight, upstream's default.
const MAX_WRITES: usize = 200;

/// Health probes in flight. They have places of their own: a server that has much to do is well.
const MAX_PROBES: usize = 20;

/// Nobody keeps the administrators out, as upstream.
const PRIVILEGED_GROUP: &str = "system:masters";

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Longest audit ID that is taken over from a client.
const MAX_AUDIT_ID: usize = 64;

/// Who is at the other end of a connection.
pub(crate) struct Peer {
    /// Client certificate chain in DER, leaf first, unverified.
    pub(crate) certificates: Vec<Vec<u8>>,
    /// The user of an in-process connection.
    pub(crate) user: Option<UserInfo>,
}

/// What a request begins with.
struct Head {
    method: Method,
    uri: http::Uri,
    headers: Arc<http::HeaderMap>,
}

/// The filters around the handlers.
pub(crate) struct Pipeline {
    server: Arc<Server>,
    reads: Semaphore,
    writes: Semaphore,
    probes: Semaphore,
}

/// What is known about a request once it is answered.
#[derive(Default)]
struct Record {
    /// Warning headers.
    warnings: Vec<String>,
    /// Who asked, and who vouched for them; `None` when the request did not get that far.
    user: Option<(String, AuthenticationSource)>,
    /// As whom the request was carried out, when that is somebody else.
    acting_as: Option<String>,
}

impl Pipeline {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            reads: Semaphore::new(MAX_READS),
            writes: Semaphore::new(MAX_WRITES),
            probes: Semaphore::new(MAX_PROBES),
        }
    }

    /// Answers one request. Never fails: a panic in a handler is an answer too.
    pub(crate) fn handle(
        self: Arc<Self>,
        request: Request<Body>,
        peer: Arc<Peer>,
    ) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move { self.answer(request, peer).await })
    }

    async fn answer(&self, request: Request<Body>, peer: Arc<Peer>) -> Response<Body> {
        let started = self.server.clock.monotonic();
        let (parts, body) = request.into_parts();
        let parts = Head { method: parts.method, uri: parts.uri, headers: Arc::new(parts.headers) };
        let audit_id = self.audit_id(&parts);
        let query = Arc::new(Query::parse(parts.uri.query().unwrap_or_default()));
        let info = RequestInfo::new(&parts.method, parts.uri.path(), &query).map(Arc::new);
        let mut record = Record::default();
        let answer = match &info {
            None if query::unescape(parts.uri.path(), false).is_none() => {
                // Before upstream's own code sees it.
                return respond::raw(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", "400 Bad Request");
            }
            None => Ok(unclassified(parts.uri.path())),
            Some(_) if parts.uri.path().starts_with("//") => Ok(respond::page_not_found()),
            Some(info) => {
                let run = self.run(&parts, body, info, &query, &peer, &mut record);
                match AssertUnwindSafe(run).catch_unwind().await {
                    Ok(answer) => answer,
                    Err(_panic) => {
                        tracing::error!(method = %parts.method, path = %info.path, "a handler panicked");
                        Ok(respond::text(
                            StatusCode::INTERNAL_SERVER_ERROR,
                            "This request caused apiserver to panic. Look in the logs for details.",
                        ))
                    }
                }
            }
        };
        let mut response = answer.unwrap_or_else(|status| {
            if status.code >= 500 {
                tracing::warn!(
                    method = %parts.method, path = parts.uri.path(), code = status.code,
                    user = record.user(), authenticator = record.authenticator(),
                    internal = status.internal.as_deref().unwrap_or_default(), "request failed"
                );
            }
            respond::failure(&status, &parts.headers, &query)
        });
        let headers = response.headers_mut();
        if info.is_some() {
            headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        }
        if let Ok(audit_id) = HeaderValue::from_str(&audit_id) {
            headers.insert(AUDIT_ID, audit_id);
        }
        for warning in warnings::headers(std::mem::take(&mut record.warnings)) {
            headers.append(http::header::WARNING, warning);
        }
        if let Some(info) = &info {
            let elapsed = self.server.clock.monotonic().saturating_sub(started);
            self.server.metrics.request(info, response.status().as_u16(), elapsed);
        }
        tracing::debug!(
            audit_id, method = %parts.method, path = parts.uri.path(), code = response.status().as_u16(),
            user = record.user(), authenticator = record.authenticator(),
            acting_as = record.acting_as.as_deref().unwrap_or_default(), "request"
        );
        response
    }

    /// The filters in their order, then the handler.
    fn run<'a>(
        &'a self,
        parts: &'a Head,
        body: Body,
        info: &'a Arc<RequestInfo>,
        query: &'a Arc<Query>,
        peer: &'a Peer,
        record: &'a mut Record,
    ) -> BoxFuture<'a, Result<Response<Body>, Status>> {
        // Boxed: the compiler cannot tell that a future of this depth may change threads.
        Box::pin(self.filters(parts, body, info, query, peer, record))
    }

    async fn filters(
        &self,
        parts: &Head,
        body: Body,
        info: &Arc<RequestInfo>,
        query: &Arc<Query>,
        peer: &Peer,
        record: &mut Record,
    ) -> Result<Response<Body>, Status> {
        // Cheap and before authentication: a client that announces too much is not even asked who it is.
        if content_length(parts).is_some_and(|length| length > body::MAX_BODY as u64) {
            return Err(body::too_large());
        }
        let deadline =
            if is_long_running(info) { None } else { Some(request_deadline(&parts.method, query)?) };
        let must_end = deadline.map(|(limit, _)| self.server.clock.monotonic() + limit);
        let run = async {
            let authenticated = self.authenticate(parts, peer).await?;
            record.warnings.extend(authenticated.warnings);
            record.user = Some((authenticated.user.name.clone(), authenticated.source));
            let user = match self.impersonated(parts, info, authenticated.user).await {
                Ok(user) => user,
                Err(status) => return Ok(unsniffable(respond::failure(&status, &parts.headers, query))),
            };
            record.note_acting_as(&user);
            let Some(_slot) = self.slot(&parts.method, info, &user) else { return Ok(too_many()) };
            let attributes = attributes(info, user);
            if let Some(refusal) = self.refusal(&attributes, query, parts).await? {
                return Ok(refusal);
            }
            // Custom resources are not behind that router.
            if info.resource_request && !self.server.resources.is_custom_group(&info.group) {
                negotiate::routable(&parts.headers, matches!(info.verb.as_str(), "list" | "watch"))?;
            }
            let mut call = Call {
                server: Arc::clone(&self.server),
                method: parts.method.clone(),
                info: Arc::clone(info),
                query: Arc::clone(query),
                headers: Arc::clone(&parts.headers),
                attributes,
                deadline: must_end,
                body: Mutex::new(Some(body)),
                warnings: Vec::new(),
            };
            let answer = dispatch(&mut call).await;
            record.warnings.append(&mut call.warnings);
            answer
        };
        match deadline {
            None => run.await,
            Some((limit, text)) => tokio::select! {
                answer = run => answer,
                () = self.server.clock.sleep(limit) => Err(timed_out(text)),
            },
        }
    }

    async fn authenticate(&self, parts: &Head, peer: &Peer) -> Result<Authenticated, Status> {
        if let Some(user) = &peer.user {
            return Ok(Authenticated {
                user: user.clone(),
                source: AuthenticationSource::InProcess,
                warnings: Vec::new(),
            });
        }
        let credentials = Credentials { headers: &parts.headers, certificates: &peer.certificates };
        self.server.authenticator.authenticate(credentials).await
    }

    /// The user whom the request wants to act as, when it may.
    async fn impersonated(
        &self,
        parts: &Head,
        info: &RequestInfo,
        user: UserInfo,
    ) -> Result<UserInfo, Status> {
        match impersonation::wanted(&parts.headers)? {
            None => Ok(user),
            Some(wanted) => {
                impersonation::authorize(&*self.server.authorizer, &wanted, &attributes(info, user)).await
            }
        }
    }

    /// A place among the requests in flight; `None` when there is none left.
    fn slot(&self, method: &Method, info: &RequestInfo, user: &UserInfo) -> Option<Slot<'_>> {
        if is_long_running(info) {
            return Some(Slot(None));
        }
        let slots = match method {
            _ if is_probe(info) => &self.probes,
            method if is_read(method) => &self.reads,
            _ => &self.writes,
        };
        match slots.try_acquire() {
            Ok(permit) => Some(Slot(Some(permit))),
            Err(_) => user.groups.iter().any(|group| group == PRIVILEGED_GROUP).then_some(Slot(None)),
        }
    }

    /// The 403, or the 500 of an authorizer that failed; `None` when the request may pass.
    async fn refusal(
        &self,
        attributes: &Attributes,
        query: &Query,
        parts: &Head,
    ) -> Result<Option<Response<Body>>, Status> {
        let (decision, error) = self.server.authorizer.authorize(attributes).await;
        let reason = match decision {
            Decision::Allow(_) => return Ok(None),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
        };
        if let Some(error) = error {
            let path = coffer_types::validation::field::go_quote(&attributes.path);
            return Ok(Some(respond::text(
                StatusCode::INTERNAL_SERVER_ERROR,
                &escape(&format!("Internal Server Error: {path}: {error}")),
            )));
        }
        let response = respond::failure(&authz::forbidden(attributes, &reason), &parts.headers, query);
        Ok(Some(unsniffable(response)))
    }

    fn audit_id(&self, parts: &Head) -> String {
        let sent = parts.headers.get(AUDIT_ID).and_then(|value| value.to_str().ok());
        match sent {
            Some(sent) if !sent.is_empty() && sent.len() <= MAX_AUDIT_ID => sent.to_owned(),
            _ => random::uuid(&*self.server.random).unwrap_or_default(),
        }
    }
}

impl Record {
    fn user(&self) -> &str {
        self.user.as_ref().map_or("", |(name, _)| name)
    }

    fn authenticator(&self) -> &'static str {
        self.user.as_ref().map_or("", |(_, source)| source.as_str())
    }

    fn note_acting_as(&mut self, user: &UserInfo) {
        if user.name != self.user() {
            self.acting_as = Some(user.name.clone());
        }
    }
}

/// A verb in the path without what it is about.
fn unclassified(path: &str) -> Response<Body> {
    let quoted = coffer_types::validation::field::go_quote(path);
    respond::text(
        StatusCode::INTERNAL_SERVER_ERROR,
        &escape(&format!(
            "Internal Server Error: {quoted}: failed to create RequestInfo: unable to determine kind and \
             namespace from url, {path}"
        )),
    )
}

/// With the header by which browsers take a refusal for what it says it is.
fn unsniffable(mut response: Response<Body>) -> Response<Body> {
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// A place among the requests in flight; watches need none.
struct Slot<'a>(#[allow(dead_code, reason = "held, not read")] Option<SemaphorePermit<'a>>);

fn too_many() -> Response<Body> {
    let mut response =
        respond::text(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.");
    response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// What authorization sees of a request.
fn attributes(info: &RequestInfo, user: UserInfo) -> Attributes {
    Attributes {
        user,
        verb: info.verb.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        selected_node: info.selected_node.clone(),
        resource_request: info.resource_request,
        path: info.path.clone(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn is_long_running(info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "watch" | "proxy") || info.subresource == "log"
}

fn is_probe(info: &RequestInfo) -> bool {
    let first = info.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    !info.resource_request && matches!(first, "healthz" | "livez" | "readyz")
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn content_length(parts: &Head) -> Option<u64> {
    parts.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// How long the request may take, and what is said when it took longer.
fn request_deadline(method: &Method, query: &Query) -> Result<(Duration, &'static str), Status> {
    const READ: &str = "Timeout: request did not complete within the allotted timeout";
    const WRITE: &str =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    let asked = match query.text("timeout") {
        "" => REQUEST_DEADLINE,
        text => duration::parse(text).map_err(|error| {
            Status::bad_request(format!("invalid timeout specified in the request URL - {error}"))
        })?,
    };
    let asked = if asked.is_zero() { REQUEST_DEADLINE } else { asked.min(REQUEST_DEADLINE) };
    Ok(if is_read(method) { (asked, READ) } else { (asked.min(WRITE_DEADLINE), WRITE) })
}

fn timed_out(text: &str) -> Status {
    let mut status = Status::new(504, "Timeout", text);
    status.details = Some(Box::default());
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_follow_the_parameter_up_to_the_cap() {
        for (method, query, expected) in [
            (Method::GET, "", Ok(60)),
            (Method::GET, "timeout=5s", Ok(5)),
            (Method::GET, "timeout=1h", Ok(60)),
            (Method::POST, "", Ok(34)),
            (Method::POST, "timeout=40s", Ok(34)),
            (Method::GET, "timeout=abc", Err(400)),
        ] {
            let got = request_deadline(&method, &Query::parse(query));
            assert_eq!(
                got.map(|(limit, _)| limit.as_secs()).map_err(|status| status.code),
                expected,
                "{query}"
            );
        }
    }
}
