//! POST: a new object.

use coffer_store::registry::ReadAt;
use coffer_types::meta::Meta as _;
use coffer_types::validation::meta;
use coffer_types::{Status, Value};
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::{Call, Output};
use super::options::{WriteOptions, WriteVerb};
use super::write::{Scope, is_too_large};
use crate::body::Body;
use crate::negotiate;
use crate::ports::Operation;
use crate::resources::Resource;
use crate::resources::strategy::Stamp;
use crate::service_addresses;

/// How often a generated name is tried before giving up.
const GENERATE_ATTEMPTS: usize = 8;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_object(call, &resource.info)?;
    let media = negotiate::content_type(&call.headers, resource.info.behaviour.offers)?;
    let body = call.read_body().await?;
    let options = WriteOptions::parse(&call.query, WriteVerb::Create)?;
    let mut scope = Scope::of_call(call, resource, options);
    let decoded = resource.wire.decode(&body, media)?;
    let object = scope.take_strict(decoded);
    let outcome = match object {
        Ok(object) => run(&mut scope, object).await,
        Err(status) => Err(status),
    };
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    answer_object(call, resource, &accepted, StatusCode::CREATED, &outcome?)
}

/// Creates a decoded object.
pub(crate) async fn run(scope: &mut Scope<'_>, mut object: Value) -> Result<Output, Status> {
    meta::wipe_system_fields(&mut object);
    scope.settle_namespace(&mut object)?;
    scope.merge_owners(&mut object, false);
    scope.record_manager(None, &mut object).await;
    scope.mutate(Operation::Create, None, Some(&mut object)).await?;
    scope.merge_owners(&mut object, true);
    let generated = object.name().is_empty() && !object.meta_str("generateName").is_empty();
    let mut attempt = 1;
    loop {
        let outcome = once(scope, object.clone(), generated).await;
        match outcome {
            Err(status) if generated && status.reason == "AlreadyExists" && attempt < GENERATE_ATTEMPTS => {
                attempt += 1;
            }
            Err(status) if scope.tracks_fields && is_too_large(&status) => {
                scope.tracks_fields = false;
                object.remove(&["metadata", "managedFields"]);
            }
            Err(mut status) if generated && status.reason == "AlreadyExists" => {
                status.message.push_str(", the server was not able to generate a unique name for the object");
                return Err(status.retry_after(1));
            }
            other => return other,
        }
    }
}

/// One attempt, under one name.
async fn once(scope: &mut Scope<'_>, mut object: Value, generate: bool) -> Result<Output, Status> {
    scope.fill_system_fields(&mut object)?;
    if generate {
        let name = scope.generate_name(object.meta_str("generateName"))?;
        object.set_meta_str("name", &name);
    }
    let claims = service_addresses::settle(scope, &mut object, None).await?;
    let outcome = store(scope, object).await;
    if outcome.is_err() {
        claims.release(scope.server).await;
    }
    outcome
}

async fn store(scope: &mut Scope<'_>, mut object: Value) -> Result<Output, Status> {
    prepare(scope, &mut object).await?;
    let info = &scope.resource.info;
    let name = object.name().to_owned();
    let registry = scope.resource.registry()?;
    if scope.options.dry_run {
        return match registry.get(&scope.namespace, &name, ReadAt::Latest).await {
            Ok(_) => Err(Status::already_exists(&info.group, &info.plural, &name)),
            Err(status) if status.code == 404 => Ok(Output::Value(object)),
            Err(status) => Err(status),
        };
    }
    let ttl = info.behaviour.ttl_seconds;
    registry.create(&scope.namespace, &name, &object, ttl).await.map(Output::Stored)
}

/// Everything between admission's changes and the store: also how PUT and PATCH create.
pub(super) async fn prepare(scope: &mut Scope<'_>, object: &mut Value) -> Result<(), Status> {
    let strategy = &*scope.resource.strategy;
    strategy.prepare_create(object);
    let now = coffer_types::time::rfc3339(scope.server.clock.now());
    strategy.stamp("", object, None, &Stamp { user: &scope.attributes.user, now: &now });
    let name = object.name().to_owned();
    scope.refuse_invalid(&name, &strategy.validate_create(object))?;
    let warnings = strategy.warnings(object, None);
    scope.warnings.extend(warnings);
    scope.validate(Operation::Create, None, Some(object)).await
}
