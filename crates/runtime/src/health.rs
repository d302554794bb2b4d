//! `/healthz`, `/readyz`, `/livez` and `/metrics` of a controller, over plain HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::RwLock;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::metrics::{CONTENT_TYPE, Registry};

/// Connections at once; more wait, so that a scanner cannot fill the memory.
const CONNECTIONS: usize = 64;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

type Check = Box<dyn Fn() -> bool + Send + Sync>;

/// Named checks; all must hold for `/readyz`.
#[derive(Default)]
pub struct Health {
    checks: RwLock<Vec<(String, Check)>>,
}

impl Health {
    /// Adds a check.
    pub fn add(&self, name: &str, check: impl Fn() -> bool + Send + Sync + 'static) {
        self.checks.write().push((name.to_owned(), Box::new(check)));
    }

    /// The names of the checks that fail.
    pub fn failing(&self) -> Vec<String> {
        let checks = self.checks.read();
        checks.iter().filter(|(_, check)| !check()).map(|(name, _)| name.clone()).collect()
    }
}

/// Serves until `stop`. What is not given is answered with 404.
pub async fn serve(
    listener: TcpListener,
    health: Option<Arc<Health>>,
    metrics: Option<Arc<Registry>>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (health, metrics, stop) = (health.clone(), metrics.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let response =
                    answer(request.method(), request.uri().path(), health.as_deref(), metrics.as_deref());
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                () = stop.cancelled() => {}
                // A client that breaks its connection concerns nobody else.
                _ = connection => {}
            }
            drop(place);
        });
    }
}

fn answer(
    method: &Method,
    path: &str,
    health: Option<&Health>,
    metrics: Option<&Registry>,
) -> Response<Full<Bytes>> {
    let (code, kind, body) = match (method, path, health, metrics) {
        (&Method::GET, "/healthz" | "/livez", Some(_), _) => (StatusCode::OK, "text/plain", "ok".to_owned()),
        (&Method::GET, "/readyz", Some(health), _) => {
            let failing = health.failing();
            if failing.is_empty() {
                (StatusCode::OK, "text/plain", "ok".to_owned())
            } else {
                let body = failing.iter().map(|name| format!("[-]{name} failed\n")).collect();
                (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", body)
            }
        }
        (&Method::GET, "/metrics", _, Some(metrics)) => (StatusCode::OK, CONTENT_TYPE, metrics.render()),
        _ => (StatusCode::NOT_FOUND, "text/plain", "404 page not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = code;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let (health, metrics) = (Health::default(), Registry::default());
        health.add("informers", || true);
        let code = |health: Option<&Health>, metrics: Option<&Registry>, path: &str| {
            answer(&Method::GET, path, health, metrics).status().as_u16()
        };
        let cases = [
            ("/healthz", 200, 404),
            ("/livez", 200, 404),
            ("/readyz", 200, 404),
            ("/metrics", 200, 404),
            ("/", 404, 404),
        ];
        for (path, given, absent) in cases {
            assert_eq!(code(Some(&health), Some(&metrics), path), given, "{path}");
            assert_eq!(code(None, None, path), absent, "{path}");
        }
        health.add("leader", || false);
        assert_eq!(code(Some(&health), None, "/readyz"), 500);
        assert_eq!(code(Some(&health), None, "/healthz"), 200);
        assert_eq!(answer(&Method::POST, "/healthz", Some(&health), None).status().as_u16(), 404);
    }
}
