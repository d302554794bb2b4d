//! DELETE of a collection: what the selectors choose, one by one.

use coffer_store::registry::ListRequest;
use coffer_types::Status;
use http::Response;

use super::answer::accept_list;
use super::call::Call;
use super::options::{ListOptions, WriteOptions};
use super::selection::Selection;
use super::write::Scope;
use super::{delete, list};
use crate::body::Body;
use crate::resources::Resource;

/// Objects that are listed at one time.
const PAGE: usize = 10_000;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_list(call, &resource.info)?;
    let options = ListOptions::parse(&call.query, false)?;
    let deletion = delete::read_options(call).await?.for_collection()?;
    let registry = resource.registry()?;
    let selection = Selection::parse(&options, resource)?;
    let namespace = call.storage_namespace(resource);
    let at = options.list_at(selection.is_of_one_key(&namespace, resource))?;
    let name = selection.name();
    let predicate = selection.into_predicate();
    let mut whole = None;
    let mut continue_token = options.continue_token.clone();
    let mut warnings = Vec::new();
    loop {
        let limit = if options.limit == 0 { PAGE } else { options.limit };
        let mut page = registry
            .list(ListRequest {
                namespace: namespace.clone(),
                name: name.clone(),
                at,
                limit,
                continue_token: std::mem::take(&mut continue_token),
                predicate: std::sync::Arc::clone(&predicate),
            })
            .await?;
        for item in &page.items {
            let write = WriteOptions { dry_run: deletion.dry_run, ..WriteOptions::default() };
            let mut scope = Scope::of_call(call, resource, write);
            scope.name.clone_from(&item.name);
            scope.attributes.name.clone_from(&item.name);
            scope.of_collection = true;
            let outcome = delete::run(&mut scope, &deletion).await;
            warnings.append(&mut scope.warnings);
            match outcome {
                Ok(_) => {}
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        continue_token = std::mem::take(&mut page.continue_token);
        page.remaining = None;
        match &mut whole {
            None => whole = Some(page),
            Some(whole) => whole.items.append(&mut page.items),
        }
        if continue_token.is_empty() || options.limit > 0 {
            break;
        }
    }
    call.warnings.append(&mut warnings);
    let mut whole = whole.ok_or_else(|| Status::internal("a collection without a page"))?;
    if options.limit > 0 {
        whole.continue_token = continue_token;
    }
    list::answer(call, resource, &accepted, whole)
}
