//! PUT, and the steps that PUT and PATCH share: from the stored object to the new one.

use async_trait::async_trait;
use coffer_store::registry::{Current, DeleteCheck, Preconditions, ReadAt, Updater};
use coffer_types::fields::ignore_timestamps;
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{FieldError, Path, to_status};
use coffer_types::validation::meta;
use coffer_types::{Status, Value};
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::{Call, Output};
use super::create;
use super::options::{WriteOptions, WriteVerb, parse_unsigned};
use super::patching::{Kind, Patch};
use super::write::{Scope, is_too_large};
use crate::body::Body;
use crate::negotiate;
use crate::ports::{Decision, Operation};
use crate::resources::Resource;
use crate::resources::strategy::Stamp;
use crate::service_addresses::{self, Claims};

/// Upstream's words for a lost race.
pub(super) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Code of the status that ends an update which became a deletion; it never leaves this file.
const EMPTIED: u16 = 0;
/// The same of a deletion which found the object changed.
const OVERTAKEN: u16 = 1;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let accepted = accept_object(call, &resource.info)?;
    let media = negotiate::content_type(&call.headers, resource.info.behaviour.offers)?;
    let body = call.read_body().await?;
    let options = WriteOptions::parse(&call.query, WriteVerb::Update)?;
    let mut scope = Scope::of_call(call, resource, options);
    let decoded = resource.wire.decode(&body, media)?;
    let outcome = async {
        let object = scope.take_strict(decoded)?;
        let object = named_as_url(&scope, object)?;
        let create = resource.info.behaviour.create_on_update && scope.subresource.is_empty();
        run(&mut scope, &Change::Replace(object), create).await
    }
    .await;
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    let done = outcome?;
    let code = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    answer_object(call, resource, &accepted, code, &done.output)
}

/// The object's name and namespace must be the URL's.
pub(super) fn named_as_url(scope: &Scope<'_>, mut object: Value) -> Result<Value, Status> {
    scope.settle_namespace(&mut object)?;
    let (own, wanted) = (object.name(), scope.name.as_str());
    if own == wanted {
        return Ok(object);
    }
    Err(Status::bad_request(if own.is_empty() {
        format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided")
    } else {
        format!("the name of the object ({own}) does not match the name on the URL ({wanted})")
    }))
}

/// What makes the new object of the old one.
pub(crate) enum Change {
    /// PUT.
    Replace(Value),
    /// PATCH.
    Patch(Patch),
}

impl Change {
    pub(super) fn is_apply(&self) -> bool {
        matches!(self, Self::Patch(Patch { kind: Kind::Apply, .. }))
    }
}

/// How a write ended.
pub(crate) struct Done {
    pub(crate) output: Output,
    pub(crate) created: bool,
}

/// Updates, creating a missing object when `create` says so.
pub(crate) async fn run(scope: &mut Scope<'_>, change: &Change, create: bool) -> Result<Done, Status> {
    loop {
        match attempt(scope, change, create).await {
            Err(status) if scope.tracks_fields && !change.is_apply() && is_too_large(&status) => {
                scope.tracks_fields = false;
            }
            // Whoever was faster has got on: this ends.
            Err(status) if status.code == OVERTAKEN => {}
            outcome => return outcome,
        }
    }
}

async fn attempt(scope: &mut Scope<'_>, change: &Change, create: bool) -> Result<Done, Status> {
    let preconditions = match change {
        Change::Replace(object) if !object.uid().is_empty() => {
            Preconditions { uid: Some(object.uid().to_owned()), ..Preconditions::default() }
        }
        _ => Preconditions::default(),
    };
    let resource = scope.resource;
    let registry = resource.registry()?;
    let (namespace, name, dry_run) = (scope.namespace.clone(), scope.name.clone(), scope.options.dry_run);
    let mut step =
        Step { scope, change, created: false, emptied: None, claims: Claims::default(), replaced: None };
    let result = if dry_run {
        step.rehearse(&namespace, &name, create).await
    } else {
        registry.update(&namespace, &name, &preconditions, create, &mut step).await.map(Output::Stored)
    };
    let (created, emptied) = (step.created, step.emptied.take());
    let (claims, replaced) = (std::mem::take(&mut step.claims), step.replaced.take());
    match (&result, replaced) {
        (Err(_), _) => claims.release(scope.server).await,
        (Ok(_), Some(replaced)) if !dry_run => {
            service_addresses::release(scope.server, &replaced.0, Some(&replaced.1)).await;
        }
        _ => {}
    }
    match (result, emptied) {
        (Ok(output), _) => Ok(Done { output, created }),
        (Err(status), Some(object)) if status.code == EMPTIED => {
            let output = remove_emptied(scope, object).await?;
            Ok(Done { output, created: false })
        }
        (Err(status), _) => Err(status),
    }
}

/// Deletes an object whose last finalizer an update took away.
async fn remove_emptied(scope: &Scope<'_>, object: Value) -> Result<Output, Status> {
    if scope.options.dry_run {
        return Ok(Output::Value(object));
    }
    let preconditions = Preconditions { uid: Some(object.uid().to_owned()), ..Preconditions::default() };
    let registry = scope.resource.registry()?;
    let mut check = StillEmpty(scope.resource, object.resource_version().to_owned());
    match registry.delete(&scope.namespace, &scope.name, &preconditions, &mut check).await {
        Ok(_) => {
            if service_addresses::is_service(scope) {
                service_addresses::release(scope.server, &object, None).await;
            }
            Ok(Output::Value(object))
        }
        // Somebody else was as quick; the outcome is the same.
        Err(status) if status.code == 404 => Ok(Output::Value(object)),
        Err(status) => Err(status),
    }
}

/// The deletion goes ahead unless somebody has changed the object and holds it: the stored one
/// still carries the finalizer that the update took away, so its version is what is compared.
/// If so, the update is made again, of what is there now.
struct StillEmpty<'a>(&'a Resource, String);

#[async_trait]
impl DeleteCheck for StillEmpty<'_> {
    async fn check(&mut self, object: &Value) -> Result<(), Status> {
        let resource = self.0;
        let released = resource.strategy.is_released(object) || object.resource_version() == self.1;
        if released { Ok(()) } else { Err(Status::new(OVERTAKEN, "", "")) }
    }
}

struct Step<'s, 'a> {
    scope: &'s mut Scope<'a>,
    change: &'s Change,
    created: bool,
    /// The object, once the update has turned into its deletion.
    emptied: Option<Value>,
    /// Addresses that the last attempt claimed.
    claims: Claims,
    /// A Service that lets go of addresses, before and after.
    replaced: Option<Box<(Value, Value)>>,
}

#[async_trait]
impl Updater for Step<'_, '_> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        match current.object {
            None => self.create().await,
            Some(old) => {
                let old = self.scope.resource.wire.served(old);
                self.change(old, current.revision).await
            }
        }
    }
}

impl Step<'_, '_> {
    /// Everything but the store's write.
    async fn rehearse(&mut self, namespace: &str, name: &str, create: bool) -> Result<Output, Status> {
        let registry = self.scope.resource.registry()?;
        let current = match registry.get(namespace, name, ReadAt::Latest).await {
            Ok(stored) => Current { revision: stored.revision, object: Some(registry.decode(&stored)?) },
            Err(status) if status.code == 404 && create => Current { object: None, revision: 0 },
            Err(status) => return Err(status),
        };
        self.update(current).await.map(Output::Value)
    }

    async fn create(&mut self) -> Result<Value, Status> {
        let scope = &mut *self.scope;
        let mut object = match self.change {
            Change::Replace(object) => object.clone(),
            Change::Patch(patch) => patch.new_object(scope).await?,
        };
        let mut attributes = scope.attributes.clone();
        "create".clone_into(&mut attributes.verb);
        if scope.admission
            && let (Decision::Deny(reason) | Decision::NoOpinion(reason), _) =
                scope.server.authorizer.authorize(&attributes).await
        {
            return Err(crate::authz::forbidden(&attributes, &reason));
        }
        let replaces = matches!(self.change, Change::Replace(_));
        object.set_meta_str("resourceVersion", "");
        meta::wipe_system_fields(&mut object);
        scope.merge_owners(&mut object, false);
        if replaces {
            scope.record_manager(None, &mut object).await;
        }
        scope.mutate(Operation::Create, None, Some(&mut object)).await?;
        scope.fill_system_fields(&mut object)?;
        std::mem::take(&mut self.claims).release(scope.server).await;
        self.claims = service_addresses::settle(scope, &mut object, None).await?;
        create::prepare(scope, &mut object).await?;
        self.created = true;
        Ok(object)
    }

    async fn change(&mut self, old: Value, revision: i64) -> Result<Value, Status> {
        let scope = &mut *self.scope;
        self.created = false;
        let mut new = match self.change {
            Change::Replace(object) => object.clone(),
            Change::Patch(patch) => patch.apply(scope, &old).await?,
        };
        scope.merge_owners(&mut new, false);
        if !self.change.is_apply() {
            scope.record_manager(Some(&old), &mut new).await;
        }
        scope.mutate(Operation::Update, Some(&old), Some(&mut new)).await?;
        check_version(scope, self.change, &mut new, revision)?;
        meta::take_over(&mut new, &old);
        scope.merge_owners(&mut new, true);
        std::mem::take(&mut self.claims).release(scope.server).await;
        self.claims = service_addresses::settle(scope, &mut new, Some(&old)).await?;
        let strategy = &*scope.resource.strategy;
        let subresource = scope.subresource.clone();
        strategy.prepare_update(&subresource, &mut new, &old);
        let now = coffer_types::time::rfc3339(scope.server.clock.now());
        let stamp = Stamp { user: &scope.attributes.user, now: &now };
        strategy.stamp(&subresource, &mut new, Some(&old), &stamp);
        // A write that changes nothing but times is none.
        ignore_timestamps(&mut new, &old);
        let mut warnings = Vec::new();
        let errors = strategy.validate_update_warning(&subresource, &new, &old, &mut warnings);
        scope.warnings.extend(warnings);
        scope.refuse_invalid(&scope.name, &errors)?;
        scope.warnings.extend(strategy.warnings(&new, Some(&old)));
        scope.validate(Operation::Update, Some(&old), Some(&new)).await?;
        if old.deletion_timestamp().is_some() && strategy.is_released(&new) {
            self.emptied = Some(new);
            return Err(Status::new(EMPTIED, "", ""));
        }
        if service_addresses::lets_go(scope, &old, &new) {
            self.replaced = Some(Box::new((old, new.clone())));
        }
        Ok(new)
    }
}

/// The `resourceVersion` of the new object must be the stored one, or unset where that overwrites.
pub(super) fn check_version(
    scope: &Scope<'_>,
    change: &Change,
    new: &mut Value,
    revision: i64,
) -> Result<(), Status> {
    let info = &scope.resource.info;
    let wanted = match new.resource_version() {
        "" => 0,
        text => parse_unsigned(text).map_err(Status::plain)?,
    };
    if wanted == 0 {
        if !info.behaviour.unconditional_update && matches!(change, Change::Replace(_)) {
            let error = FieldError::invalid(
                &Path::of(&["metadata", "resourceVersion"]),
                0,
                "must be specified for an update",
            );
            return Err(to_status(&info.group, &info.plural, &scope.name, &[error]));
        }
    } else if wanted != revision {
        return Err(Status::conflict(&info.group, &info.plural, &scope.name, MODIFIED));
    }
    new.set_meta_str("resourceVersion", &revision.to_string());
    Ok(())
}
