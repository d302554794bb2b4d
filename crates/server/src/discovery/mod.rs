//! Everything that is not about a resource: discovery, version, health, metrics, OpenAPI.

mod aggregated;
mod classic;
pub(crate) mod document;
pub(crate) mod version;

use coffer_types::Status;
use http::header::{CACHE_CONTROL, HeaderValue, VARY};
use http::{Method, Response, StatusCode};

use self::document::{etag, tagged};
use crate::body::Body;
use crate::handlers::call::Call;
use crate::health::{self, Endpoint};
use crate::resources::Served;
use crate::state::Answer;
use crate::{negotiate, openapi, respond, wire};

/// Answers a request whose path is not one of a resource.
pub(crate) async fn dispatch(call: &mut Call) -> Result<Response<Body>, Status> {
    let path = call.info.path.clone();
    let trimmed = path.trim_matches('/');
    let parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
    let served = call.server.resources.load();
    let health = match parts.first().copied() {
        Some("healthz") => Some(Endpoint::Healthz),
        Some("livez") => Some(Endpoint::Livez),
        Some("readyz") => Some(Endpoint::Readyz),
        _ => None,
    };
    if let Some(endpoint) = health {
        if path.ends_with('/') {
            return Ok(respond::page_not_found());
        }
        let answer =
            health::answer(endpoint, &parts[1..].join("/"), &call.server.health_checks, &call.query).await;
        return Ok(answer.unwrap_or_else(respond::page_not_found));
    }
    // Upstream's handlers of these look at no method.
    let any_method = match parts.as_slice() {
        ["apis"] | ["metrics"] | ["openapi", ..] | [] => true,
        ["apis", group] => classic::group(&served, group).is_some(),
        _ => false,
    };
    if !any_method && call.method != Method::GET {
        let known = known(&parts, &served) || call.server.routes.iter().any(|route| route.path == path);
        return if known { Err(respond::no_such_method()) } else { Ok(respond::page_not_found()) };
    }
    if let Some(route) = call.server.routes.iter().find(|route| route.path == path) {
        negotiate::routable(&call.headers, false)?;
        let parameters = call.query.pairs();
        let mut response = match &route.answer {
            Answer::Whole(make) => respond::raw(StatusCode::OK, route.content_type, make(parameters).await?),
            Answer::Pieces(make) => {
                respond::streamed(route.content_type, make(parameters).await?, call.server.stop.clone())
            }
        };
        if let Some(control) = route.cache_control {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(control));
        }
        return Ok(response);
    }
    match parts.as_slice() {
        [] | ["index.html"] => Ok(index(call, &served)),
        ["version"] => negotiate::routable(&call.headers, false)
            .map(|()| respond::raw(StatusCode::OK, "application/json", version::document())),
        ["metrics"] => Ok(respond::raw(
            StatusCode::OK,
            coffer_runtime::metrics::CONTENT_TYPE,
            call.server.metrics.render().await,
        )),
        ["api"] | ["apis"] => groups(call, &served, parts[0] == "api"),
        ["api", version] => match served.of_version("", version).next() {
            Some(_) => routed(call, classic::resources(&served, "", version)),
            None => Err(respond::no_such_resource()),
        },
        ["apis", group] => match classic::group(&served, group) {
            Some(bytes) => document(call, bytes),
            None => Ok(respond::page_not_found()),
        },
        ["apis", group, version] => {
            if served.of_version(group, version).next().is_some() {
                routed(call, classic::resources(&served, group, version))
            } else if classic::group(&served, group).is_some() && !served.is_custom_group(group) {
                Err(respond::no_such_resource())
            } else {
                Ok(respond::page_not_found())
            }
        }
        ["openapi", "v2"] => openapi::answer_version_2(call, &served).await,
        ["openapi", "v3", rest @ ..] => openapi::answer(call, &served, &rest.join("/")).await,
        _ => Ok(respond::page_not_found()),
    }
}

fn known(parts: &[&str], served: &Served) -> bool {
    match parts {
        [] | ["version"] | ["api"] | ["apis"] => true,
        ["api", version] => served.of_version("", version).next().is_some(),
        ["apis", group] => classic::group(served, group).is_some(),
        ["apis", group, version] => served.of_version(group, version).next().is_some(),
        _ => false,
    }
}

/// One that the router looks at first.
fn routed(call: &Call, bytes: Vec<u8>) -> Result<Response<Body>, Status> {
    negotiate::routable(&call.headers, false)?;
    document(call, bytes)
}

/// A discovery document in the medium that is accepted.
fn document(call: &Call, bytes: Vec<u8>) -> Result<Response<Body>, Status> {
    let accepted = negotiate::accept(&call.headers, negotiate::Offers::Plain)?;
    let bytes = match accepted.media {
        negotiate::Media::Json => bytes,
        media => wire::encode_discovery(&bytes, media)?,
    };
    Ok(respond::encoded(StatusCode::OK, &accepted, bytes, &call.headers, &call.query))
}

/// `/api` or `/apis`, classic or aggregated as the client wants.
fn groups(call: &Call, served: &Served, core: bool) -> Result<Response<Body>, Status> {
    match aggregated::wish(&call.headers) {
        aggregated::Wish::Aggregated => {
            let bytes = aggregated::document(served, core);
            let etag = etag(&bytes);
            let mut response = tagged(call, &etag, bytes, aggregated::CONTENT_TYPE);
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public"));
            Ok(response)
        }
        aggregated::Wish::Classic => {
            if core {
                routed(call, classic::versions(&call.headers))
            } else {
                document(call, classic::groups(served))
            }
        }
    }
}

/// `GET /`: every path there is.
fn index(call: &Call, served: &Served) -> Response<Body> {
    let mut paths = vec![
        "/api".to_owned(),
        "/api/v1".to_owned(),
        "/apis".to_owned(),
        "/apis/".to_owned(),
        "/healthz".to_owned(),
        "/livez".to_owned(),
        "/metrics".to_owned(),
        "/openapi/v2".to_owned(),
        "/openapi/v3".to_owned(),
        "/openapi/v3/".to_owned(),
        "/readyz".to_owned(),
        "/version".to_owned(),
    ];
    for group in served.groups().iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{}/{version}", group.name)));
    }
    for check in &call.server.health_checks {
        let endpoints: &[&str] = match (check.ready_only(), check.live()) {
            (true, _) => &["readyz"],
            (false, true) => &["healthz", "livez", "readyz"],
            (false, false) => &["healthz", "readyz"],
        };
        paths.extend(endpoints.iter().map(|endpoint| format!("/{endpoint}/{}", check.name())));
    }
    paths.extend(call.server.routes.iter().map(|route| route.path.to_owned()));
    paths.sort();
    paths.dedup();
    let document = serde_json::json!({ "paths": paths });
    respond::raw(StatusCode::OK, "application/json", respond::indent(document.to_string().as_bytes()))
}
