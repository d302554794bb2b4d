//! Single objects as answers, in the form that the client wants.

use coffer_types::Status;
use http::{Response, StatusCode};

use super::call::{Call, Output};
use super::table;
use crate::body::Body;
use crate::negotiate::{self, Accepted, Shape};
use crate::resources::Resource;
use crate::resources::info::ResourceInfo;
use crate::{respond, wire};

/// Negotiates the answer of a single object.
pub(crate) fn accept_object(call: &Call, resource: &ResourceInfo) -> Result<Accepted, Status> {
    let accepted = negotiate::accept(&call.headers, resource.behaviour.offers)?;
    match accepted.shape {
        Shape::PartialList(_) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                go_type(resource, "")
            ),
        )),
        _ => Ok(accepted),
    }
}

/// Negotiates the answer of a list.
pub(crate) fn accept_list(call: &Call, resource: &ResourceInfo) -> Result<Accepted, Status> {
    let accepted = negotiate::accept(&call.headers, resource.behaviour.offers)?;
    match accepted.shape {
        Shape::Partial(_) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                go_type(resource, "List")
            ),
        )),
        _ => Ok(accepted),
    }
}

fn go_type(resource: &ResourceInfo, suffix: &str) -> String {
    match resource.behaviour.go_type {
        "" => format!("*unstructured.Unstructured{suffix}"),
        name => format!("*{name}{suffix}"),
    }
}

/// Writes one object in the negotiated form.
pub(crate) fn answer_object(
    call: &Call,
    resource: &Resource,
    accepted: &Accepted,
    code: StatusCode,
    output: &Output,
) -> Result<Response<Body>, Status> {
    let bytes = match accepted.shape {
        Shape::Object | Shape::PartialList(_) => match output {
            Output::Stored(stored) => resource.wire.object(stored, accepted.media)?,
            Output::Value(value) => resource.wire.value(value, accepted.media)?,
        },
        Shape::Partial(version) => match output {
            Output::Stored(stored) => resource.wire.partial(stored, version, accepted.media)?,
            Output::Value(value) => wire::partial_value(value, version, accepted.media)?,
        },
        Shape::Table(version) => {
            let include = table::Include::parse(&call.query)?;
            table::of_one(call, resource, output, version, include, accepted.media)?
        }
    };
    Ok(respond::encoded(code, accepted, bytes, &call.headers, &call.query))
}
