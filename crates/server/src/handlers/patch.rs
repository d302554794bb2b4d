//! PATCH.

use coffer_types::Status;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::Call;
use super::options::{WriteOptions, WriteVerb};
use super::patching::{Kind, Patch};
use super::update::{self, Change};
use super::write::Scope;
use crate::body::Body;
use crate::resources::Resource;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_object(call, &resource.info)?;
    let content_type =
        call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = Kind::parse(content_type, resource.info.behaviour.offers)?;
    let body = call.read_body().await?;
    let options = WriteOptions::parse(&call.query, WriteVerb::Patch { apply: kind == Kind::Apply })?;
    let mut scope = Scope::of_call(call, resource, options);
    let outcome = async {
        let patch = Patch::parse(kind, &body, &mut scope)?;
        let create = kind == Kind::Apply && scope.subresource.is_empty();
        update::run(&mut scope, &Change::Patch(patch), create).await
    }
    .await;
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    let done = outcome?;
    let code = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    answer_object(call, resource, &accepted, code, &done.output)
}
