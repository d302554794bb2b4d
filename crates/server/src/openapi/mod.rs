//! OpenAPI, as much as kubectl needs: in v3 the patch operation of each kind with its parameters.
//!
//! No schemas: kubectl then leaves validation to the server and uses the types it was built with.
//! The document of v2 is empty. kubectl asks for it about lists and about kinds that are not there,
//! and goes on when it says nothing of them.

use coffer_types::Status;
use http::header::{ACCEPT, CACHE_CONTROL, EXPIRES, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::discovery::{etag, tagged};
use crate::handlers::Call;
use crate::resources::{Resource, Served};
use crate::respond;
use crate::serve::Body;

/// Answers `/openapi/v3` and below.
pub(crate) fn answer(call: &Call, served: &Served, path: &str) -> Result<Response<Body>, Status> {
    if path.is_empty() {
        let paths: serde_json::Map<String, Value> = group_versions(served)
            .into_iter()
            .map(|(path, group, version)| {
                let hash = etag(&document(served, &group, &version));
                let url = format!("/openapi/v3/{path}?hash={hash}");
                (path, json!({ "serverRelativeURL": url }))
            })
            .collect();
        let bytes = json!({ "paths": paths }).to_string().into_bytes();
        return Ok(tagged(call, &etag(&bytes), bytes, "application/json"));
    }
    let Some((_, group, version)) = group_versions(served).into_iter().find(|(known, _, _)| known == path)
    else {
        return Ok(respond::page_not_found());
    };
    let bytes = document(served, &group, &version);
    let hash = etag(&bytes);
    let wanted = call.query.text("hash");
    if !wanted.is_empty() && wanted != hash {
        let mut response = respond::raw(StatusCode::MOVED_PERMANENTLY, "application/json", "");
        if let Ok(location) = HeaderValue::from_str(&format!("/openapi/v3/{path}?hash={hash}")) {
            response.headers_mut().insert(LOCATION, location);
        }
        return Ok(response);
    }
    let mut response = tagged(call, &hash, bytes, "application/json");
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

/// Media type of `/openapi/v2` as protobuf; the older spelling is taken too.
const VERSION_2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Answers `/openapi/v2`.
pub(crate) fn answer_version_2(call: &Call) -> Response<Body> {
    let wants_protobuf = call
        .headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("proto-openapi.spec.v2") && value.contains("protobuf"));
    let (bytes, kind) = if wants_protobuf {
        (version_2_protobuf(), VERSION_2_PROTOBUF)
    } else {
        let document = json!({
            "swagger": "2.0",
            "info": { "title": "Kubernetes", "version": crate::discovery::GIT_VERSION },
            "paths": {},
        });
        (document.to_string().into_bytes(), "application/json")
    };
    tagged(call, &etag(&bytes), bytes, kind)
}

/// `Document { swagger = 1, info = 2 { title = 1, version = 2 }, paths = 8 {} }`.
fn version_2_protobuf() -> Vec<u8> {
    let field = |number: u8, content: &[u8]| -> Vec<u8> {
        // Texts here are shorter than the 128 bytes that one byte of length can say.
        let length = u8::try_from(content.len()).unwrap_or(u8::MAX) & 0x7f;
        [&[number << 3 | 2, length], content].concat()
    };
    let info = [field(1, b"Kubernetes"), field(2, crate::discovery::GIT_VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, b"")].concat()
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

fn document(served: &Served, group: &str, version: &str) -> Vec<u8> {
    let mut paths = serde_json::Map::new();
    for resource in served.of_version(group, version) {
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let plural = &resource.info.plural;
        let collection = if resource.info.namespaced {
            format!("{root}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{root}/{plural}")
        };
        let verbs = &resource.info.verbs;
        let mut of_collection = serde_json::Map::new();
        let mut of_object = serde_json::Map::new();
        for (method, verb, on_object) in [
            ("get", "list", false),
            ("post", "create", false),
            ("delete", "deletecollection", false),
            ("get", "get", true),
            ("put", "update", true),
            ("patch", "patch", true),
            ("delete", "delete", true),
        ] {
            if verbs.contains(&verb) {
                let target = if on_object { &mut of_object } else { &mut of_collection };
                target.insert(method.to_owned(), operation(resource, verb));
            }
        }
        if !of_collection.is_empty() {
            paths.insert(collection.clone(), Value::Object(of_collection));
        }
        if !of_object.is_empty() {
            paths.insert(format!("{collection}/{{name}}"), Value::Object(of_object));
        }
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": crate::discovery::GIT_VERSION },
        "paths": paths,
        "components": { "schemas": {} },
    });
    document.to_string().into_bytes()
}

fn operation(resource: &Resource, verb: &str) -> Value {
    let info = &resource.info;
    let action = match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    };
    let parameters: Vec<Value> = match verb {
        "create" | "update" => vec!["dryRun", "fieldManager", "fieldValidation"],
        "patch" => vec!["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" | "deletecollection" => vec!["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        "list" => vec!["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch"],
        _ => Vec::new(),
    }
    .into_iter()
    .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } }))
    .collect();
    json!({
        "operationId": format!("{verb}{}{}", info.version, info.kind),
        "parameters": parameters,
        "responses": { "200": { "description": "OK" } },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": { "group": info.group, "version": info.version, "kind": info.kind },
    })
}
