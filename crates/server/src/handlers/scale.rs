//! The `scale` subresource of custom resources: a Scale stands for a few fields of the object.

use async_trait::async_trait;
use coffer_store::registry::{Current, Preconditions, ReadAt, Updater};
use coffer_types::fields::ignore_timestamps;
use coffer_types::meta::Meta as _;
use coffer_types::validation::meta;
use coffer_types::{Status, Value};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::{Call, Output};
use super::options::{self, WriteOptions, WriteVerb};
use super::patching::{Kind, Patch};
use super::update::{Change, check_version, named_as_url};
use super::write::{Scope, decoded, is_too_large};
use crate::body::Body;
use crate::negotiate;
use crate::ports::Operation;
use crate::resources::Resource;
use crate::resources::scale::Scale;

/// Stands in a Scale for a number that the object does not have.
const ABSENT: i64 = i32::MIN as i64;

/// Answers a request to `scale`.
pub(super) async fn handle(
    call: &mut Call,
    resource: &Resource,
    scale: &Scale,
    verb: &str,
) -> Result<Response<Body>, Status> {
    let accepted = accept_object(call, &scale.resource.info)?;
    let object = match verb {
        "get" => read(call, resource, scale).await?,
        "update" => {
            let offers = scale.resource.info.behaviour.offers;
            let media = negotiate::content_type(&call.headers, offers)?;
            let body = call.read_body().await?;
            let options = WriteOptions::parse(&call.query, WriteVerb::Update)?;
            let decoded = scale.resource.wire.decode(&body, media)?;
            write(call, resource, scale, options, |scope| {
                let object = scope.take_strict(decoded)?;
                named_as_url(scope, object).map(Change::Replace)
            })
            .await?
        }
        _ => {
            let content_type = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            // What a patch of a Scale may be is the object's.
            let offers = resource.info.behaviour.offers;
            let kind = Kind::parse(content_type.unwrap_or_default(), offers)?;
            let body = call.read_body().await?;
            let verb = WriteVerb::Patch { apply: kind == Kind::Apply };
            let options = WriteOptions::parse(&call.query, verb)?;
            write(call, resource, scale, options, |scope| Patch::parse(kind, &body, scope).map(Change::Patch))
                .await?
        }
    };
    answer_object(call, &scale.resource, &accepted, StatusCode::OK, &Output::Value(object))
}

async fn read(call: &Call, resource: &Resource, scale: &Scale) -> Result<Value, Status> {
    let at = options::get_at(call.query.text("resourceVersion"))?;
    let registry = resource.registry()?;
    let stored = registry.get(&call.storage_namespace(resource), &call.info.name, at).await?;
    let (object, found) = scale.of(&resource.wire.read(&stored)?).map_err(Status::plain)?;
    if !found {
        let why = format!("the spec replicas field {} does not exist", crate::quote(&scale.paths.spec));
        return Err(Status::internal(why));
    }
    Ok(object)
}

async fn write(
    call: &mut Call,
    resource: &Resource,
    scale: &Scale,
    options: WriteOptions,
    change: impl FnOnce(&mut Scope<'_>) -> Result<Change, Status>,
) -> Result<Value, Status> {
    let mut scope = Scope::of_call(call, resource, options.clone());
    let mut scale_scope = Scope::of_call(call, &scale.resource, options);
    let outcome = match change(&mut scale_scope) {
        Ok(change) => run(&mut scope, &mut scale_scope, scale, &change).await,
        Err(status) => Err(status),
    };
    let mut warnings = std::mem::take(&mut scale_scope.warnings);
    warnings.append(&mut scope.warnings);
    drop((scope, scale_scope));
    call.warnings.extend(warnings);
    outcome
}

async fn run<'a>(
    scope: &mut Scope<'a>,
    scale_scope: &mut Scope<'a>,
    scale: &Scale,
    change: &Change,
) -> Result<Value, Status> {
    match attempt(scope, scale_scope, scale, change).await {
        Err(status) if scale_scope.tracks_fields && !change.is_apply() && is_too_large(&status) => {
            scale_scope.tracks_fields = false;
            attempt(scope, scale_scope, scale, change).await
        }
        outcome => outcome,
    }
}

async fn attempt<'a>(
    scope: &mut Scope<'a>,
    scale_scope: &mut Scope<'a>,
    scale: &Scale,
    change: &Change,
) -> Result<Value, Status> {
    let preconditions = match change {
        Change::Replace(object) if !object.uid().is_empty() => {
            Preconditions { uid: Some(object.uid().to_owned()), ..Preconditions::default() }
        }
        _ => Preconditions::default(),
    };
    let resource = scope.resource;
    let registry = resource.registry()?;
    let (namespace, name, dry_run) = (scope.namespace.clone(), scope.name.clone(), scope.options.dry_run);
    let mut step = Step { scope, scale_scope, scale, change };
    let output = if dry_run {
        let stored = registry.get(&namespace, &name, ReadAt::Latest).await?;
        let current = Current { revision: stored.revision, object: Some(registry.decode(&stored)?) };
        step.update(current).await.map(Output::Value)?
    } else {
        registry.update(&namespace, &name, &preconditions, false, &mut step).await.map(Output::Stored)?
    };
    let object = resource.wire.served(decoded(resource, output)?);
    scale.of(&object).map(|(scale, _)| scale).map_err(Status::bad_request)
}

struct Step<'s, 'a> {
    /// The write of the object.
    scope: &'s mut Scope<'a>,
    /// The same, as what it is to the Scale.
    scale_scope: &'s mut Scope<'a>,
    scale: &'s Scale,
    change: &'s Change,
}

#[async_trait]
impl Updater for Step<'_, '_> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        let info = &self.scope.resource.info;
        let Some(old) = current.object else {
            return Err(Status::not_found(&info.group, &info.plural, &self.scope.name));
        };
        let old = self.scope.resource.wire.served(old);
        let mut new = self.scaled(&old).await?;
        let scope = &mut *self.scope;
        check_version(scope, self.change, &mut new, current.revision)?;
        meta::take_over(&mut new, &old);
        let strategy = &*scope.resource.strategy;
        strategy.prepare_update("", &mut new, &old);
        scope.refuse_invalid(&scope.name, &strategy.validate_update("", &new, &old))?;
        scope.warnings.extend(strategy.warnings(&new, Some(&old)));
        let of = |object: &Value| self.scale.of(object).map(|(scale, _)| scale).map_err(Status::plain);
        let (new_scale, old_scale) = (of(&new)?, of(&old)?);
        self.scale_scope.validate(Operation::Update, Some(&old_scale), Some(&new_scale)).await?;
        Ok(new)
    }
}

impl Step<'_, '_> {
    /// The object as the changed Scale wants it.
    async fn scaled(&mut self, old: &Value) -> Result<Value, Status> {
        let (scale, scope) = (self.scale, &mut *self.scale_scope);
        let (mut old_scale, found) = scale.of(old).map_err(Status::plain)?;
        if !found {
            old_scale.set(&["spec", "replicas"], ABSENT);
        }
        let unreadable = |error: coffer_types::fields::SetError| Status::plain(error.to_string());
        scale.managed.to_scale(old, &mut old_scale).map_err(unreadable)?;
        let mut new_scale = match self.change {
            Change::Replace(object) => object.clone(),
            Change::Patch(patch) => patch.apply(scope, &old_scale).await?,
        };
        scope.merge_owners(&mut new_scale, false);
        if !self.change.is_apply() {
            scope.record_manager(Some(&old_scale), &mut new_scale).await;
        }
        scope.mutate(Operation::Update, Some(&old_scale), Some(&mut new_scale)).await?;
        scope.merge_owners(&mut new_scale, true);
        ignore_timestamps(&mut new_scale, &old_scale);
        let replicas = new_scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
        if replicas == ABSENT {
            let field = crate::quote(&scale.paths.spec);
            return Err(Status::bad_request(format!("the spec replicas field {field} cannot be empty")));
        }
        let mut new = old.clone();
        scale.paths.set(&mut new, replicas).map_err(Status::plain)?;
        if !new_scale.resource_version().is_empty() {
            new.set_meta_str("resourceVersion", new_scale.resource_version());
        }
        let api_version = self.scope.resource.info.api_version();
        scale.managed.to_object(&new_scale, &mut new, &api_version).map_err(unreadable)?;
        Ok(new)
    }
}
