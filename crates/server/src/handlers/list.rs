//! LIST: stored bytes are transcoded one after the other into the answer; no object is built, and no
//! large answer is whole in memory.

use coffer_store::registry::{List, ListRequest};
use coffer_types::Status;
use http::{Response, StatusCode};

use super::answer::accept_list;
use super::call::Call;
use super::options::ListOptions;
use super::selection::Selection;
use super::table;
use crate::body::Body;
use crate::negotiate::{self, Accepted, Shape};
use crate::resources::Resource;
use crate::respond;
use crate::wire::Pieces;

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
    answer(call, resource, &accepted, page)
}

/// Writes a page in the negotiated form.
pub(super) fn answer(
    call: &Call,
    resource: &Resource,
    accepted: &Accepted,
    page: List,
) -> Result<Response<Body>, Status> {
    let page = match in_pieces(call, resource, accepted, page)? {
        Ok(response) => return Ok(response),
        Err(page) => page,
    };
    let bytes = match accepted.shape {
        Shape::Object | Shape::Partial(_) => resource.wire.list(&resource.info, &page, accepted.media)?,
        Shape::PartialList(version) => resource.wire.partial_list(&page, version, accepted.media)?,
        Shape::Table(version) => {
            let include = table::Include::parse(&call.query)?;
            table::of_list(call, resource, &page, version, include, accepted.media)?
        }
    };
    Ok(respond::encoded(StatusCode::OK, accepted, bytes, &call.headers, &call.query))
}

/// A large page as an answer that is made while it is sent; gives the page back where that cannot be.
fn in_pieces(
    call: &Call,
    resource: &Resource,
    accepted: &Accepted,
    page: List,
) -> Result<Result<Response<Body>, List>, Status> {
    let stored: usize = page.items.iter().map(|stored| stored.bytes.len()).sum();
    if stored <= respond::GZIP_THRESHOLD || negotiate::pretty(&call.query, &call.headers, accepted) {
        return Ok(Err(page));
    }
    let pieces = match accepted.shape {
        Shape::Object | Shape::Partial(_) => {
            Pieces::of_objects(&resource.wire, &resource.info, page, accepted.media)
        }
        Shape::PartialList(version) => Pieces::of_metadata(&resource.wire, page, version, accepted.media),
        Shape::Table(_) => Err(page),
    };
    Ok(match pieces {
        Ok(pieces) => Ok(respond::in_pieces(accepted, pieces, &call.headers)?),
        Err(page) => Err(page),
    })
}
