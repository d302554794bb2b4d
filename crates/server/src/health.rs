//! `/healthz`, `/livez` and `/readyz`, with a check under each name.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};

use crate::body::Body;
use crate::query::Query;
use crate::respond;

/// One named check. The text of a failure is for the log, and for who asks for this check alone.
#[async_trait]
pub trait HealthCheck: Send + Sync + 'static {
    /// Name, such as `etcd` or `poststarthook/rbac/bootstrap-roles`.
    fn name(&self) -> &str;

    /// Whether all is well.
    async fn check(&self) -> Result<(), String>;

    /// What is worth knowing although all is well.
    fn detail(&self) -> Option<String> {
        None
    }

    /// Whether `/readyz` alone asks.
    fn ready_only(&self) -> bool {
        false
    }

    /// Whether `/livez` asks too: a failure there ends the server.
    fn live(&self) -> bool {
        true
    }
}

/// Whether `endpoint` asks `check`.
fn asks(endpoint: Endpoint, check: &dyn HealthCheck) -> bool {
    match endpoint {
        Endpoint::Readyz => true,
        Endpoint::Healthz => !check.ready_only(),
        Endpoint::Livez => !check.ready_only() && check.live(),
    }
}

/// Which endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Healthz,
    Livez,
    Readyz,
}

impl Endpoint {
    fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }
}

/// A check that is one function.
pub(crate) struct Simple {
    pub(crate) name: &'static str,
    pub(crate) ready_only: bool,
    pub(crate) check: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

#[async_trait]
impl HealthCheck for Simple {
    fn name(&self) -> &str {
        self.name
    }

    async fn check(&self) -> Result<(), String> {
        (self.check)()
    }

    fn ready_only(&self) -> bool {
        self.ready_only
    }
}

/// Answers `/ENDPOINT` or `/ENDPOINT/CHECK`; `None` for an unknown check.
pub(crate) async fn answer(
    endpoint: Endpoint,
    check: &str,
    checks: &[Arc<dyn HealthCheck>],
    query: &Query,
) -> Option<Response<Body>> {
    let mut asked = checks.iter().filter(|check| asks(endpoint, check.as_ref()));
    if !check.is_empty() {
        let one = asked.find(|candidate| candidate.name() == check)?;
        return Some(match one.check().await {
            Ok(()) => respond::raw(StatusCode::OK, "text/plain; charset=utf-8", well(&**one)),
            Err(error) => {
                failed(endpoint, check, &error);
                respond::text(StatusCode::INTERNAL_SERVER_ERROR, &format!("internal server error: {error}"))
            }
        });
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut unmatched = excluded.clone();
    let mut lines = String::new();
    let mut all_well = true;
    for check in asked {
        let name = check.name();
        if excluded.contains(&name) {
            unmatched.retain(|excluded| *excluded != name);
            lines.push_str(&format!("[+]{name} excluded: ok\n"));
            continue;
        }
        match check.check().await {
            Ok(()) => lines.push_str(&format!("[+]{name} {}\n", well(&**check))),
            Err(error) => {
                all_well = false;
                failed(endpoint, name, &error);
                lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
            }
        }
    }
    if !unmatched.is_empty() {
        let quoted: Vec<String> =
            unmatched.iter().map(|name| coffer_types::validation::field::go_quote(name)).collect();
        let quoted = quoted.join(", ");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {quoted}\n"));
    }
    let name = endpoint.name();
    Some(if !all_well {
        respond::text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{lines}{name} check failed"))
    } else if query.has("verbose") {
        plain(StatusCode::OK, format!("{lines}{name} check passed\n"))
    } else {
        plain(StatusCode::OK, "ok".to_owned())
    })
}

fn well(check: &dyn HealthCheck) -> String {
    check.detail().map_or_else(|| "ok".to_owned(), |detail| format!("ok: {detail}"))
}

fn failed(endpoint: Endpoint, check: &str, error: &str) {
    tracing::warn!(endpoint = endpoint.name(), check, error, "health check failed");
}

fn plain(code: StatusCode, text: String) -> Response<Body> {
    let mut response = respond::raw(code, "text/plain; charset=utf-8", text);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn checks(well: bool) -> Vec<Arc<dyn HealthCheck>> {
        let simple = |name, ready_only, well: bool| {
            let check = Box::new(move || if well { Ok(()) } else { Err("etcd is away".to_owned()) });
            Arc::new(Simple { name, ready_only, check }) as Arc<dyn HealthCheck>
        };
        vec![simple("ping", false, true), simple("etcd", false, well), simple("shutdown", true, true)]
    }

    #[tokio::test]
    async fn answers_read_as_upstream() {
        for (endpoint, check, well, query, code, text) in [
            (Endpoint::Livez, "", true, "", 200, "ok"),
            (Endpoint::Livez, "ping", true, "", 200, "ok"),
            (Endpoint::Livez, "", true, "verbose", 200, "[+]ping ok\n[+]etcd ok\nlivez check passed\n"),
            (
                Endpoint::Readyz,
                "",
                true,
                "verbose&exclude=etcd",
                200,
                "[+]ping ok\n[+]etcd excluded: ok\n[+]shutdown ok\nreadyz check passed\n",
            ),
            (
                Endpoint::Healthz,
                "",
                false,
                "",
                500,
                "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n",
            ),
            (Endpoint::Healthz, "", false, "exclude=etcd", 200, "ok"),
            (Endpoint::Livez, "etcd", false, "", 500, "internal server error: etcd is away\n"),
            (
                Endpoint::Livez,
                "",
                true,
                "verbose&exclude=x",
                200,
                "[+]ping ok\n[+]etcd ok\nwarn: some health checks cannot be excluded: no matches for \"x\"\nlivez check passed\n",
            ),
        ] {
            let response = answer(endpoint, check, &checks(well), &Query::parse(query)).await.expect("known");
            assert_eq!(response.status().as_u16(), code, "{endpoint:?} {query}");
            let body = response.into_body().collect().await.expect("body").to_bytes();
            assert_eq!(String::from_utf8_lossy(&body), text, "{endpoint:?} {query}");
        }
        assert!(answer(Endpoint::Livez, "shutdown", &checks(true), &Query::default()).await.is_none());
    }
}
