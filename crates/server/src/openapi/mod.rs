//! OpenAPI v3: for each group and version a document of its operations and the schemas of its kinds;
//! and v2, where all of them are one document.

mod custom;
mod descriptions;
mod paths;
mod schemas;
mod version_2;

use std::collections::{BTreeMap, BTreeSet};

use coffer_store::registry::ReadAt;
use coffer_types::Status;
use http::header::{ACCEPT, CACHE_CONTROL, EXPIRES, HeaderValue, LOCATION, VARY};
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::discovery::document::{etag, tagged};
use crate::discovery::version::{GIT_VERSION, MINOR_VERSION};
use crate::handlers::call::Call;
use crate::negotiate::Offers;
use crate::ports::GroupResource;
use crate::resources::Served;
use crate::respond;

/// Answers `/openapi/v3` and below.
pub(crate) async fn answer(call: &Call, served: &Served, path: &str) -> Result<Response<Body>, Status> {
    let hashes = served.openapi.get_or_init(|| hashes(served));
    if path.is_empty() {
        let paths: Map<String, Value> = hashes
            .iter()
            .map(|(path, hash)| {
                (path.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") }))
            })
            .collect();
        let bytes = json!({ "paths": paths }).to_string().into_bytes();
        return Ok(tagged(call, &etag(&bytes), bytes, "application/json"));
    }
    let (Some(hash), Some((_, group, version))) =
        (hashes.get(path), group_versions(served).into_iter().find(|(known, _, _)| known == path))
    else {
        return Ok(respond::page_not_found());
    };
    if !accepts(call, VERSION_3_PROTOBUF) {
        return Ok(not_acceptable());
    }
    let wanted = call.query.text("hash");
    if !wanted.is_empty() && wanted != *hash {
        let mut response = respond::raw(StatusCode::MOVED_PERMANENTLY, "application/json", "");
        if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={hash}")) {
            response.headers_mut().insert(LOCATION, location);
        }
        return Ok(response);
    }
    let definitions = definitions(served, &group).await?;
    let bytes = document(served, &group, &version, &definitions);
    let mut response = tagged(call, hash, bytes, "application/json");
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    if !wanted.is_empty() {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let year = std::time::Duration::from_secs(365 * 24 * 3600);
        if let Ok(expires) = call.server.clock.now().checked_add(year) {
            let text = expires.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            if let Ok(value) = HeaderValue::from_str(&text) {
                response.headers_mut().insert(EXPIRES, value);
            }
        }
    }
    Ok(response)
}

/// Whether JSON will do, or the protobuf of this name, in whose place JSON is given.
fn accepts(call: &Call, protobuf: &str) -> bool {
    let values = call.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut clauses = values.flat_map(|value| value.split(',')).map(|clause| {
        let media = clause.split(';').next().unwrap_or_default().trim();
        matches!(media, "" | "*/*" | "application/*" | "application/json") || media.contains(protobuf)
    });
    clauses.next().is_none_or(|first| first || clauses.any(|fits| fits))
}

fn not_acceptable() -> Response<Body> {
    let mut response = respond::raw(StatusCode::NOT_ACCEPTABLE, "text/plain", "");
    response.headers_mut().remove(http::header::CONTENT_TYPE);
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// Documents of built-in kinds by their content; those of custom resources by the versions of their
/// definitions, which are all that changes them and are not read for it.
fn hashes(served: &Served) -> BTreeMap<String, String> {
    let hash = |(path, group, version): (String, String, String)| {
        let hash = if served.is_custom_group(&group) {
            let definitions: Vec<String> = served
                .of_version(&group, &version)
                .map(|resource| format!("{}@{}", resource.info.plural, resource.definition_version))
                .collect();
            etag(
                format!("{GIT_VERSION} {} {path} {}", env!("CARGO_PKG_VERSION"), definitions.join(" "))
                    .as_bytes(),
            )
        } else {
            etag(&document(served, &group, &version, &Definitions::new()))
        };
        (path, hash)
    };
    group_versions(served).into_iter().map(hash).collect()
}

/// Definitions by their names.
type Definitions = BTreeMap<String, coffer_types::Value>;

/// The definitions of a group's custom resources.
async fn definitions(served: &Served, group: &str) -> Result<Definitions, Status> {
    let mut found = Definitions::new();
    let definitions =
        served.preferred(&GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions"));
    if let Some(definitions) = definitions.filter(|_| served.is_custom_group(group)) {
        let plurals: BTreeSet<&str> = served
            .all()
            .filter(|resource| resource.info.group == group)
            .map(|resource| resource.info.plural.as_str())
            .collect();
        for plural in plurals {
            let name = format!("{plural}.{group}");
            match definitions.registry()?.get("", &name, ReadAt::Any).await {
                Ok(stored) => {
                    found.insert(name, definitions.wire.read(&stored)?);
                }
                // It went meanwhile.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
    }
    Ok(found)
}

/// What media types of `/openapi/v3` as protobuf have in their names.
const VERSION_3_PROTOBUF: &str = "proto-openapi.spec.v3";
/// The same of `/openapi/v2`.
const VERSION_2: &str = "proto-openapi.spec.v2";
/// Media type of `/openapi/v2` as protobuf; the older spelling is taken too.
const VERSION_2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Answers `/openapi/v2`.
pub(crate) async fn answer_version_2(call: &Call, served: &Served) -> Result<Response<Body>, Status> {
    if !accepts(call, VERSION_2) {
        return Ok(not_acceptable());
    }
    let wants_protobuf = call
        .headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains(VERSION_2) && value.contains("protobuf"));
    let hashes = served.openapi.get_or_init(|| hashes(served));
    let tag = etag(hashes.values().map(String::as_str).collect::<String>().as_bytes());
    let (mut paths, mut components) = (Map::new(), schemas::Components::new());
    let mut known = Definitions::new();
    for (_, group, version) in group_versions(served) {
        if served.is_custom_group(&group) {
            known.extend(definitions(served, &group).await?);
        }
        describe(served, &group, &version, &known, &mut paths, &mut components);
    }
    let document = version_2::document(paths, components);
    let (bytes, kind) = match wants_protobuf {
        true => (version_2::encode(&document), VERSION_2_PROTOBUF),
        false => (document.to_string().into_bytes(), "application/json"),
    };
    Ok(tagged(call, &tag, bytes, kind))
}

/// Path below `/openapi/v3/`, group and version of every document.
fn group_versions(served: &Served) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for group in served.groups() {
        for version in &group.versions {
            let path = if group.name.is_empty() {
                format!("api/{version}")
            } else {
                format!("apis/{}/{version}", group.name)
            };
            all.push((path, group.name.clone(), version.clone()));
        }
    }
    all
}

/// Adds the paths and schemas of a group's version.
fn describe(
    served: &Served,
    group: &str,
    version: &str,
    definitions: &Definitions,
    paths: &mut Map<String, Value>,
    components: &mut schemas::Components,
) {
    for resource in served.of_version(group, version) {
        let info = &resource.info;
        let names = if info.behaviour.offers == Offers::Custom {
            custom::add(info, definitions.get(&format!("{}.{}", info.plural, info.group)), components)
        } else {
            let mut name = |kind: &str| {
                schemas::add_kind(&info.group, &info.version, kind, components).unwrap_or_default()
            };
            (
                name(&info.kind),
                if info.verbs.contains(&"list") { name(&info.list_kind) } else { String::new() },
            )
        };
        paths::add(resource, names, components, paths);
    }
}

fn document(served: &Served, group: &str, version: &str, definitions: &Definitions) -> Vec<u8> {
    let (mut paths, mut components) = (Map::new(), schemas::Components::new());
    describe(served, group, version, definitions, &mut paths, &mut components);
    schemas::name_for(group, version, &mut components);
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": MINOR_VERSION },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "BearerToken": { "type": "apiKey", "in": "header", "name": "authorization", "description": "Bearer token" },
            },
        },
    });
    document.to_string().into_bytes()
}
