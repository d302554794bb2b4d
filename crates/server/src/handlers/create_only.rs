//! POST to what stores nothing: reviews and token requests.

use std::sync::Arc;

use coffer_types::Status;
use coffer_types::meta::Meta as _;
use http::{Response, StatusCode};

use super::call::Call;
use super::options::{WriteOptions, WriteVerb};
use super::write::Scope;
use crate::body::Body;
use crate::negotiate::{self, Offers};
use crate::ports::Operation;
use crate::resources::Resource;
use crate::resources::info::ResourceInfo;
use crate::wire::{Wire, undecodable};
use crate::{respond, tokens};

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let subresource = call.info.subresource.clone();
    let (answerer, wire) = match resource.create_only_subresources.get(&subresource) {
        Some(answerer) => {
            let described = resource.info.subresource(&subresource).ok_or_else(respond::no_such_resource)?;
            let (group, version) = match described.version.as_str() {
                "" => (resource.info.group.as_str(), resource.info.version.as_str()),
                version => (described.group.as_str(), version),
            };
            let wire = Wire::built_in(group, version, &described.kind, None).ok_or_else(|| {
                Status::internal(format!("no schema for {group}/{version} {}", described.kind))
            })?;
            (Arc::clone(answerer), wire)
        }
        None => (resource.create_only.clone().ok_or_else(respond::no_such_method)?, resource.wire.clone()),
    };
    let accepted = negotiate::accept(&call.headers, Offers::Plain)?;
    let media = negotiate::content_type(&call.headers, Offers::BuiltIn)?;
    let body = call.read_body().await?;
    let options = WriteOptions::parse(&call.query, WriteVerb::Create)?;
    let dry_run = options.dry_run;
    let decoded = wire.decode(&body, media)?;
    let mut scope = Scope::of_call(call, resource, options);
    let (kind, unknown) = (decoded.object.kind().to_owned(), decoded.strict.join(", "));
    let mut object = scope.take_strict(decoded).map_err(|status| {
        // What is posted to a subresource is of another kind.
        if subresource.is_empty() {
            return status;
        }
        let described = ResourceInfo { kind, ..resource.info.clone() };
        undecodable(&described, &format!("strict decoding error: {unknown}"))
    })?;
    if object.kind() == "TokenRequest" {
        tokens::request::set_defaults(&mut object);
    }
    scope.settle_namespace(&mut object)?;
    let api_version = object.api_version().to_owned();
    scope.writer(&api_version).record(&wire, None, &mut object).await;
    let outcome = async {
        scope.mutate(Operation::Create, None, Some(&mut object)).await?;
        if object.kind() == "TokenRequest" && object.name().is_empty() {
            object.set_meta_str("name", &scope.name);
        }
        scope.validate(Operation::Create, None, Some(&object)).await?;
        answerer.create(&scope.attributes, object, dry_run).await
    }
    .await;
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    let bytes = wire.value(&outcome?, accepted.media)?;
    Ok(respond::encoded(StatusCode::CREATED, &accepted, bytes, &call.headers, &call.query))
}
