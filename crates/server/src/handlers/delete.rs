//! DELETE: at once, gracefully, or as far as finalizers let it.

use std::time::Duration;

use async_trait::async_trait;
use coffer_store::registry::{Current, DeleteCheck, Preconditions, ReadAt, Updater};
use coffer_types::meta::Meta as _;
use coffer_types::time::{Timestamp, rfc3339};
use coffer_types::{Status, Value};
use http::{Response, StatusCode};

use super::answer::{accept_object, answer_object};
use super::call::{Call, Output};
use super::finalizers;
use super::options::{DeleteOptions, WriteOptions};
use super::write::Scope;
use crate::body::Body;
use crate::negotiate::{self, Accepted, Offers, Shape};
use crate::ports::Decision;
use crate::resources::Resource;
use crate::respond;
use crate::service_addresses;
use crate::wire;

pub(super) async fn handle(call: &mut Call, resource: &Resource) -> Result<Response<Body>, Status> {
    let mut accepted = accept_object(call, &resource.info)?;
    let options = read_options(call).await?;
    if options.ignore_read_error {
        return unread(call, resource, accepted, &options).await;
    }
    let write = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
    let mut scope = Scope::of_call(call, resource, write);
    let outcome = run(&mut scope, &options).await;
    let warnings = std::mem::take(&mut scope.warnings);
    drop(scope);
    call.warnings.extend(warnings);
    let deleted = outcome?;
    let code = if !deleted.gone && options.orphan_dependents == Some(false) {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    if deleted.gone && !resource.info.behaviour.returns_deleted {
        let status = success(resource, &deleted);
        // A Status has no Table and no metadata of its own.
        accepted.shape = Shape::Object;
        let bytes = wire::encode_status(&status, accepted.media);
        return Ok(respond::encoded(code, &accepted, bytes, &call.headers, &call.query));
    }
    answer_object(call, resource, &accepted, code, &deleted.output)
}

/// Verb that deleting what cannot be read needs beside `delete`.
const UNREAD_VERB: &str = "unsafe-delete-ignore-read-errors";

/// Deletes an object that cannot be read. Nobody can know its finalizers or what admission would say
/// of it, so neither is asked; the store refuses when it can be read after all.
async fn unread(
    call: &Call,
    resource: &Resource,
    mut accepted: Accepted,
    options: &DeleteOptions,
) -> Result<Response<Body>, Status> {
    let mut attributes = call.attributes.clone();
    UNREAD_VERB.clone_into(&mut attributes.verb);
    let (group, name) = (&resource.info.group, &call.info.name);
    let forbidden = |why: String| Status::forbidden(group, &resource.info.plural, name, why);
    match call.server.authorizer.authorize(&attributes).await {
        (Decision::Allow(_), _) => {}
        (_, Some(error)) => {
            return Err(forbidden(format!("error while checking permission for \"{UNREAD_VERB}\", {error}")));
        }
        (Decision::Deny(reason) | Decision::NoOpinion(reason), None) => {
            return Err(forbidden(format!("not permitted to do \"{UNREAD_VERB}\", reason: {reason}")));
        }
    }
    let namespace = call.storage_namespace(resource);
    resource.registry()?.delete_unreadable(&namespace, name, options.dry_run).await?;
    if !options.dry_run {
        tracing::warn!(
            user = attributes.user.name,
            group,
            resource = resource.info.plural,
            namespace,
            name,
            "an object that cannot be read was deleted unread"
        );
    }
    let mut status = Value::from([("kind", "Status"), ("apiVersion", "v1")]);
    status.set(&["metadata"], Value::object());
    status.set(&["status"], "Success");
    status.set_str(&["details", "name"], name);
    status.set_str(&["details", "kind"], &resource.info.kind);
    status.set(&["code"], 200);
    accepted.shape = Shape::Object;
    let bytes = wire::encode_status(&status, accepted.media);
    Ok(respond::encoded(StatusCode::OK, &accepted, bytes, &call.headers, &call.query))
}

/// Options from the body, or from the query when there is no body.
pub(super) async fn read_options(call: &mut Call) -> Result<DeleteOptions, Status> {
    let body = call.read_body().await?;
    if body.is_empty() {
        return DeleteOptions::from_query(&call.query);
    }
    let media = negotiate::content_type(&call.headers, Offers::BuiltIn)?;
    DeleteOptions::from_body(&wire::decode_delete_options(&body, media)?)
}

fn success(resource: &Resource, deleted: &Deleted) -> Value {
    let mut status = Value::from([("kind", "Status"), ("apiVersion", "v1")]);
    status.set(&["metadata"], Value::object());
    status.set(&["status"], "Success");
    status.set_str(&["details", "name"], &deleted.name);
    status.set_str(&["details", "group"], &resource.info.group);
    status.set_str(&["details", "kind"], &resource.info.plural);
    status.set_str(&["details", "uid"], &deleted.uid);
    status
}

/// How a deletion ended.
pub(crate) struct Deleted {
    /// The object: its last state, or as it is now that it waits for its finalizers.
    pub(crate) output: Output,
    /// Whether it is gone.
    pub(crate) gone: bool,
    name: String,
    uid: String,
}

/// Deletes one object.
pub(crate) async fn run(scope: &mut Scope<'_>, options: &DeleteOptions) -> Result<Deleted, Status> {
    let resource = scope.resource;
    let registry = resource.registry()?;
    let stored = registry.get(&scope.namespace, &scope.name, ReadAt::Latest).await?;
    let object = resource.wire.read(&stored)?;
    check_preconditions(scope, options, &object, &stored.revision.to_string())?;
    scope.deletion = Some(options.to_value());
    let (name, uid) = (scope.name.clone(), object.uid().to_owned());
    let waits = |output: Output| Deleted { output, gone: false, name: name.clone(), uid: uid.clone() };
    let plan = plan(resource, options, &object, scope.server.clock.now());
    match plan {
        Plan::Pending => {
            // A graceful deletion that is under way already asks nobody.
            if resource.strategy.grace_period(&object, options.grace_period_seconds).is_none() {
                scope.admit_deletion(&object).await?;
            }
            return Ok(waits(Output::Stored(stored)));
        }
        Plan::Mark(_) => {
            let preconditions = preconditions(options);
            let (namespace, name) = (scope.namespace.clone(), scope.name.clone());
            let mut marker = Marker { scope, options, end: End::Marked };
            let result = if marker.scope.options.dry_run {
                marker
                    .update(Current { object: Some(object.clone()), revision: stored.revision })
                    .await
                    .map(Output::Value)
            } else {
                registry
                    .update(&namespace, &name, &preconditions, false, &mut marker)
                    .await
                    .map(Output::Stored)
            };
            match (result, marker.end) {
                (Ok(output), End::Marked) => return Ok(waits(output)),
                (Ok(_), End::DeleteNow) => {}
                (Err(status), End::Pending(existing)) if status.code == INTERRUPTED => {
                    return Ok(waits(Output::Value(*existing)));
                }
                (Err(status), End::DeleteNow) if status.code == INTERRUPTED => {}
                (Ok(output), End::Pending(_)) => return Ok(waits(output)),
                (Err(status), _) => return Err(status),
            }
        }
        Plan::Now => {}
    }
    if scope.options.dry_run {
        scope.admit_deletion(&object).await?;
        return Ok(Deleted { output: Output::Value(object), gone: true, name, uid });
    }
    let (namespace, key) = (scope.namespace.clone(), scope.name.clone());
    let mut check = Check { scope, options, uid: uid.clone() };
    let stored = registry.delete(&namespace, &key, &preconditions(options), &mut check).await?;
    if service_addresses::is_service(scope) {
        service_addresses::release(scope.server, &object, None).await;
    }
    Ok(Deleted { output: Output::Stored(stored), gone: true, name, uid })
}

fn preconditions(options: &DeleteOptions) -> Preconditions {
    // The version is compared once, at the start: marking the object moves it on.
    Preconditions { uid: options.uid.clone(), resource_version: None }
}

/// UID and version must be what the client expects.
fn check_preconditions(
    scope: &Scope<'_>,
    options: &DeleteOptions,
    object: &Value,
    version: &str,
) -> Result<(), Status> {
    let info = &scope.resource.info;
    let conflict = |what: &str, wanted: &str, found: &str| -> Status {
        // Two kinds look before everyone does, in words of their own.
        let early = match info.kind.as_str() {
            "Namespace" => Some("Precondition"),
            "CustomResourceDefinition" => Some("precondition"),
            _ => None,
        };
        if let Some(word) = early {
            let why =
                format!("{word} failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Status::conflict(&info.group, &info.plural, &scope.name, why);
        }
        let hint = match what {
            "UID" => "been deleted and then recreated",
            _ => "been modified",
        };
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have {hint}"
        );
        // Events of both groups are one kind inside.
        let group = if info.group == "events.k8s.io" { "" } else { &info.group };
        Status::conflict(group, &info.kind, &scope.name, why)
    };
    if let Some(wanted) = options.uid.as_deref().filter(|uid| *uid != object.uid()) {
        return Err(conflict("UID", wanted, object.uid()));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return Err(conflict("ResourceVersion", wanted, version));
    }
    Ok(())
}

/// What a deletion does to an object first.
#[derive(Debug, PartialEq)]
enum Plan {
    /// It goes at once.
    Now,
    /// It is on its way out already, and nothing changes.
    Pending,
    /// It is marked, and goes later.
    Mark(Box<Marked>),
}

#[derive(Debug, PartialEq)]
struct Marked {
    object: Value,
    /// It can go right after the mark: a graceful kind with no grace left and no finalizer.
    then_delete: bool,
}

fn plan(resource: &Resource, options: &DeleteOptions, object: &Value, now: Timestamp) -> Plan {
    let grace = resource.strategy.grace_period(object, options.grace_period_seconds);
    let mut marked = object.clone();
    let mut graceful = false;
    if let Some(grace) = grace {
        match shortened(object, options.grace_period_seconds) {
            Shortened::Pending => return Plan::Pending,
            Shortened::Force => {}
            Shortened::To(deletion, grace) => {
                marked.set(&["metadata", "deletionTimestamp"], deletion.as_str());
                marked.set(&["metadata", "deletionGracePeriodSeconds"], grace);
                graceful = true;
            }
            Shortened::NotDeleting => {
                mark(&mut marked, now, grace);
                graceful = true;
            }
        }
    }
    let existing: Vec<&str> = object.finalizers();
    let wanted = finalizers::wanted(&existing, options);
    let changes = wanted.is_some();
    if let Some(wanted) = wanted {
        set_finalizers(&mut marked, wanted);
    }
    resource.strategy.prepare_deletion(&mut marked);
    let held = !resource.strategy.is_released(&marked);
    if held && !graceful {
        if marked.deletion_timestamp().is_none() {
            if resource.strategy.marks_time_only() {
                marked.set(&["metadata", "deletionTimestamp"], rfc3339(now).as_str());
            } else {
                mark(&mut marked, now, 0);
            }
        }
        return if marked == *object {
            Plan::Pending
        } else {
            Plan::Mark(Box::new(Marked { object: marked, then_delete: false }))
        };
    }
    if !graceful && !changes {
        return Plan::Now;
    }
    if !graceful {
        return Plan::Now;
    }
    let left = marked.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    Plan::Mark(Box::new(Marked { object: marked, then_delete: !held && left == 0 }))
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        let finalizers: Vec<Value> = finalizers.into_iter().map(Value::from).collect();
        object.set(&["metadata", "finalizers"], finalizers);
    }
}

/// Sets the deletion time, `grace` seconds from now.
fn mark(object: &mut Value, now: Timestamp, grace: i64) {
    let end = now.checked_add(Duration::from_secs(u64::try_from(grace).unwrap_or(0))).unwrap_or(now);
    object.set(&["metadata", "deletionTimestamp"], rfc3339(end).as_str());
    object.set(&["metadata", "deletionGracePeriodSeconds"], grace);
    if let Some(generation) = object.at(&["metadata", "generation"]).and_then(Value::as_i64)
        && generation > 0
    {
        object.set(&["metadata", "generation"], generation + 1);
    }
}

/// What a second deletion of a graceful kind does.
enum Shortened {
    NotDeleting,
    /// Nothing: the grace period was not shortened.
    Pending,
    /// The object was marked without a grace period: it goes now.
    Force,
    To(String, i64),
}

fn shortened(object: &Value, wanted: Option<i64>) -> Shortened {
    let Some(deletion) = object.deletion_timestamp() else { return Shortened::NotDeleting };
    let Some(grace) = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64) else {
        return Shortened::Force;
    };
    let Some(wanted) = wanted.filter(|wanted| *wanted < grace) else { return Shortened::Pending };
    let wanted = wanted.max(0);
    let end = deletion.parse::<Timestamp>().ok().and_then(|end| {
        end.checked_sub(Duration::from_secs(u64::try_from(grace - wanted).unwrap_or(0))).ok()
    });
    match end {
        Some(end) => Shortened::To(rfc3339(end), wanted),
        None => Shortened::Force,
    }
}

/// Code of the status that ends an update which turned out to be none; it never leaves this file.
const INTERRUPTED: u16 = 0;

enum End {
    Marked,
    DeleteNow,
    Pending(Box<Value>),
}

/// Marks the object, deciding anew on each fresh state.
struct Marker<'s, 'a> {
    scope: &'s mut Scope<'a>,
    options: &'s DeleteOptions,
    end: End,
}

#[async_trait]
impl Updater for Marker<'_, '_> {
    async fn update(&mut self, current: Current) -> Result<Value, Status> {
        let Some(object) = current.object else {
            let info = &self.scope.resource.info;
            return Err(Status::not_found(&info.group, &info.plural, &self.scope.name));
        };
        check_preconditions(self.scope, self.options, &object, &current.revision.to_string())?;
        self.scope.admit_deletion(&object).await?;
        let interrupted = || Status::new(INTERRUPTED, "", "");
        match plan(self.scope.resource, self.options, &object, self.scope.server.clock.now()) {
            Plan::Now => {
                self.end = End::DeleteNow;
                Err(interrupted())
            }
            Plan::Pending => {
                self.end = End::Pending(Box::new(object));
                Err(interrupted())
            }
            Plan::Mark(marked) => {
                self.end = if marked.then_delete { End::DeleteNow } else { End::Marked };
                Ok(marked.object)
            }
        }
    }
}

/// Admission's last word, and nothing may hold the object.
struct Check<'s, 'a> {
    scope: &'s mut Scope<'a>,
    options: &'s DeleteOptions,
    uid: String,
}

#[async_trait]
impl DeleteCheck for Check<'_, '_> {
    async fn check(&mut self, object: &Value) -> Result<(), Status> {
        let info = &self.scope.resource.info;
        if let Some(uid) = &self.options.uid
            && uid != object.uid()
        {
            return Err(Status::conflict(
                &info.group,
                &info.plural,
                &self.scope.name,
                format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                    object.uid()
                ),
            ));
        }
        let existing = object.finalizers();
        let held =
            finalizers::wanted(&existing, self.options).map_or(!existing.is_empty(), |left| !left.is_empty());
        if object.uid() == self.uid && held {
            // A finalizer came in between: the client sees a conflict and tries again.
            return Err(Status::conflict(
                &info.group,
                &info.plural,
                &self.scope.name,
                super::update::MODIFIED,
            ));
        }
        self.scope.admit_deletion(object).await
    }
}
