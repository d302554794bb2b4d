//! LIST: stored bytes are transcoded one after the other into the answer; no object is built.

use coffer_store::registry::{List, ListRequest};
use coffer_types::Status;
use http::{Response, StatusCode};

use super::answer::accept_list;
use super::call::Call;
use super::options::ListOptions;
use super::selection::Selection;
use super::table;
use crate::body::Body;
use crate::negotiate::{Accepted, Shape};
use crate::resources::Resource;
use crate::respond;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_list(call, &resource.info)?;
    let options = ListOptions::parse(&call.query, false)?;
    let selection = Selection::parse(&options, resource)?;
    let namespace = call.storage_namespace(resource);
    let request = ListRequest {
        at: options.list_at(selection.is_of_one_key(&namespace, resource))?,
        name: selection.name(),
        namespace,
        limit: options.limit,
        continue_token: options.continue_token,
        predicate: selection.into_predicate(),
    };
    let page = resource.registry()?.list(request).await?;
    answer(call, resource, &accepted, &page)
}

/// Writes a page in the negotiated form.
pub(super) fn answer(
    call: &Call,
    resource: &Resource,
    accepted: &Accepted,
    page: &List,
) -> Result<Response<Body>, Status> {
    let bytes = match accepted.shape {
        Shape::Object | Shape::Partial(_) => resource.wire.list(&resource.info, page, accepted.media)?,
        Shape::PartialList(version) => resource.wire.partial_list(page, version, accepted.media)?,
        Shape::Table(version) => {
            let include = table::Include::parse(&call.query)?;
            table::of_list(call, resource, page, version, include, accepted.media)?
        }
    };
    Ok(respond::encoded(StatusCode::OK, accepted, bytes, &call.headers, &call.query))
}
