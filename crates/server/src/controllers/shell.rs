//! The thin shell: watches, performs actions, and tries again after failures.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coffer_types::meta::{Meta as _, split_api_version};
use coffer_types::time::Clock;
use coffer_types::{Status, Value};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures::{FutureExt as _, StreamExt as _};

use super::{Action, Controller, Edit, Event, Owner, Report, Target, core};
use crate::authz::rbac::PolicyKind;
use crate::authz::{NodeAuthorizer, Rbac};
use crate::ports::{Change, GroupResource, Interest, Objects, ServedResource};

/// How often everything is looked at again, newly served resources included, as upstream's collector does.
const RESYNC: Duration = Duration::from_secs(30);
/// How long after a failure everything is looked at again; doubled with each failure in a row.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// How often an edit is tried on a fresh object before the failure counts.
const EDIT_ATTEMPTS: usize = 8;
/// How many objects are created at a time.
const MAX_BATCH: usize = 32;
/// How long content that has finalizers, or whose owner must let it go, is waited for.
const FINALIZER_ESTIMATE: u64 = 15;

/// What one watch said.
enum Input {
    Changed(GroupResource, Change),
    Ended(GroupResource),
}

/// Runs a controller until the future is dropped.
pub async fn run(controller: Box<dyn Controller>, objects: Arc<dyn Objects>, clock: Arc<dyn Clock>) {
    let mut shell =
        Shell { controller, objects, clock, timers: FuturesUnordered::new(), failures: 0, rewatch: false };
    let mut watched: HashSet<GroupResource> = HashSet::new();
    let mut inputs: SelectAll<BoxStream<'static, Input>> = SelectAll::new();
    let mut resync = shell.clock.sleep(RESYNC);
    // What the watches were chosen from; `None` when one of them is gone.
    let mut chosen_from: Option<Arc<[ServedResource]>> = None;
    loop {
        let served = shell.objects.served();
        if !chosen_from.as_ref().is_some_and(|chosen_from| Arc::ptr_eq(chosen_from, &served)) {
            let wanted = shell.controller.watches(&served);
            let added: Vec<GroupResource> =
                wanted.into_iter().filter(|resource| watched.insert(resource.clone())).collect();
            if !added.is_empty() {
                inputs.extend(added.into_iter().map(|resource| {
                    let interest = shell.controller.interest(&resource);
                    watch(&*shell.objects, resource, interest)
                }));
                shell.survive(Event::Watching(watched.iter().cloned().collect())).await;
            }
            chosen_from = Some(served);
        }
        let event = tokio::select! {
            Some(input) = inputs.next() => match input {
                Input::Changed(resource, change) => Event::Changed(resource, change),
                Input::Ended(resource) => {
                    watched.remove(&resource);
                    chosen_from = None;
                    // All watches end when the server does: whoever ends this task must get a turn.
                    tokio::task::yield_now().await;
                    continue;
                }
            },
            Some(event) = shell.timers.next() => event,
            () = &mut resync => {
                resync = shell.clock.sleep(RESYNC);
                Event::Resync
            }
        };
        shell.survive(event).await;
        if std::mem::take(&mut shell.rewatch) {
            chosen_from = None;
        }
    }
}

struct Shell {
    controller: Box<dyn Controller>,
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    /// Events that were put off.
    timers: FuturesUnordered<BoxFuture<'static, Event>>,
    /// Events in a row after which an action failed.
    failures: u32,
    /// Whether the controller wants to watch something else from now on.
    rewatch: bool,
}

impl Shell {
    /// Handles an event; a panic on the way costs that event, and everything is looked at again.
    async fn survive(&mut self, event: Event) {
        let name = self.controller.name();
        if AssertUnwindSafe(self.handle(event)).catch_unwind().await.is_err() {
            tracing::error!(controller = name, "a controller panicked; it will look at everything again");
            self.try_again();
        }
    }

    /// Performs what the controller makes of an event, answers included.
    async fn handle(&mut self, event: Event) {
        let name = self.controller.name();
        let mut failed = false;
        let mut actions: VecDeque<Action> = self.controller.step(event).into();
        if actions.is_empty() {
            return;
        }
        while let Some(first) = actions.pop_front() {
            let mut batch = vec![first];
            // Creations do not depend on each other, and the store syncs many at once for the price of one.
            while matches!(batch[0], Action::Create(..))
                && batch.len() < MAX_BATCH
                && let Some(next) = actions.pop_front_if(|next| matches!(next, Action::Create(..)))
            {
                batch.push(next);
            }
            let performed = batch.into_iter().map(|action| perform(&*self.objects, &*self.clock, action));
            for outcome in futures::future::join_all(performed).await {
                match outcome {
                    Ok(Outcome::Done) => {}
                    Ok(Outcome::Answer(event)) => actions.extend(self.controller.step(event)),
                    Ok(Outcome::Rewatch) => self.rewatch = true,
                    Ok(Outcome::Later(after, event)) => self.put_off(after, event),
                    Err(status) => {
                        tracing::warn!(controller = name, error = %status, "an action failed and will be tried again");
                        failed = true;
                    }
                }
            }
        }
        if failed {
            self.try_again();
        } else {
            self.failures = 0;
        }
    }

    /// Looks at everything again, later with each failure in a row.
    fn try_again(&mut self) {
        let after = FIRST_RETRY.saturating_mul(1 << self.failures.min(7)).min(LONGEST_RETRY);
        self.failures = self.failures.saturating_add(1);
        self.put_off(after, Event::Resync);
    }

    fn put_off(&self, after: Duration, event: Event) {
        let sleep = self.clock.sleep(after);
        self.timers.push(Box::pin(async move {
            sleep.await;
            event
        }));
    }
}

/// Keeps the authorizer's policy up to date until the future is dropped; sets `ready` once all four kinds are there.
pub async fn feed_policy(rbac: Arc<Rbac>, objects: Arc<dyn Objects>, ready: Arc<AtomicBool>) {
    let streams = PolicyKind::ALL.map(|kind| {
        let resource = GroupResource::new(crate::authz::bootstrap::GROUP, kind.resource());
        objects.watch(&resource, Interest::Whole).map(move |change| (kind, change)).boxed()
    });
    let mut changes = futures::stream::select_all(streams);
    let mut seen: Vec<PolicyKind> = Vec::new();
    while let Some((kind, change)) = changes.next().await {
        rbac.apply(kind, &change);
        if !seen.contains(&kind) {
            seen.push(kind);
        }
        if seen.len() == PolicyKind::ALL.len() {
            ready.store(true, Ordering::Release);
        }
    }
}

/// Keeps what nodes may read up to date until the future is dropped.
pub async fn feed_node_graph(node: Arc<NodeAuthorizer>, objects: Arc<dyn Objects>) {
    let mut pods = objects.watch(&core("pods"), Interest::Whole);
    while let Some(change) = pods.next().await {
        node.apply(&change);
    }
}

fn watch(objects: &dyn Objects, resource: GroupResource, interest: Interest) -> BoxStream<'static, Input> {
    let ended = resource.clone();
    let changes =
        objects.watch(&resource, interest).map(move |change| Input::Changed(resource.clone(), change));
    changes.chain(futures::stream::once(async move { Input::Ended(ended) })).boxed()
}

enum Outcome {
    Done,
    Answer(Event),
    Rewatch,
    Later(Duration, Event),
}

async fn perform(objects: &dyn Objects, clock: &dyn Clock, action: Action) -> Result<Outcome, Status> {
    match action {
        Action::Create(resource, object) => match objects.create(&resource, object).await {
            Ok(_) => {}
            Err(status) if status.reason == "AlreadyExists" => {}
            Err(status) => return Err(status),
        },
        Action::Edit(target, edit) => apply_edit(objects, clock, &target, &edit).await?,
        Action::Delete(target, propagation) => {
            let deletion = target.deletion(propagation);
            ignore_gone(objects.delete(&target.resource, &target.namespace, &target.name, &deletion).await)?;
        }
        Action::Bind { namespace, pod, uid, node } => {
            ignore_gone(
                objects.update(&core("pods"), "binding", binding(&namespace, &pod, &uid, &node)).await,
            )?;
        }
        Action::EmptyNamespace(namespace) => {
            let report = empty(objects, &namespace).await;
            return Ok(Outcome::Answer(Event::Emptied { namespace, report }));
        }
        Action::EmptyResource(resource) => {
            let mut report = Report::default();
            empty_resource(objects, &resource, "", &mut report).await;
            let namespace = format!("{}.{}", resource.resource, resource.group);
            return Ok(Outcome::Answer(Event::Emptied { namespace, report }));
        }
        Action::CheckOwners(target, owners) => {
            let absent = absent_owners(objects, &target.namespace, &owners).await?;
            return Ok(Outcome::Answer(Event::OwnersChecked { uid: target.uid, absent }));
        }
        Action::Read { namespace, resources } => {
            let mut read = Vec::new();
            for resource in resources {
                let found = objects.cached(&resource, &namespace).await?;
                read.push((resource, found));
            }
            return Ok(Outcome::Answer(Event::Read { namespace, objects: read, now: clock.now() }));
        }
        Action::Rewatch => return Ok(Outcome::Rewatch),
        Action::Later(after, event) => return Ok(Outcome::Later(after, *event)),
    }
    Ok(Outcome::Done)
}

/// What is gone, or changed since it was looked at, comes back as a change if anything is left to do.
fn ignore_gone<T>(result: Result<T, Status>) -> Result<(), Status> {
    match result {
        Ok(_) => Ok(()),
        Err(status) if matches!(status.code, 404 | 409) => Ok(()),
        Err(status) => Err(status),
    }
}

fn binding(namespace: &str, pod: &str, uid: &str, node: &str) -> Value {
    let mut binding = Value::object();
    binding.set_type("v1", "Binding");
    binding.set_meta_str("namespace", namespace);
    binding.set_meta_str("name", pod);
    binding.set_meta_str("uid", uid);
    binding.set(&["target"], Value::from([("kind", "Node"), ("name", node)]));
    binding
}

async fn apply_edit(
    objects: &dyn Objects,
    clock: &dyn Clock,
    target: &Target,
    edit: &Edit,
) -> Result<(), Status> {
    let mut conflict = None;
    for _ in 0..EDIT_ATTEMPTS {
        let found = objects.get(&target.resource, &target.namespace, &target.name, true).await?;
        let Some(object) = found.filter(|object| target.uid.is_empty() || object.uid() == target.uid) else {
            return Ok(());
        };
        let mut changed = object.clone();
        edit.apply(&mut changed, clock.now());
        if changed == object {
            return Ok(());
        }
        match objects.update(&target.resource, edit.subresource(), changed).await {
            Ok(_) => return Ok(()),
            Err(status) if status.code == 404 => return Ok(()),
            Err(status) if status.code == 409 => conflict = Some(status),
            Err(status) => return Err(status),
        }
    }
    conflict.map_or(Ok(()), Err)
}

/// Asks deletion of everything in a namespace: pods first, the rest when no pod is left.
async fn empty(objects: &dyn Objects, namespace: &str) -> Report {
    let mut report = Report::default();
    let mut served: Vec<ServedResource> =
        objects.served().iter().filter(|resource| resource.namespaced).cloned().collect();
    served.sort_by_key(|resource| resource.name != core("pods"));
    for resource in served {
        empty_resource(objects, &resource.name, namespace, &mut report).await;
        if resource.name == core("pods") && !report.remaining.is_empty() {
            break;
        }
    }
    report.remaining.sort();
    report.finalizers.sort();
    report
}

async fn empty_resource(
    objects: &dyn Objects,
    resource: &GroupResource,
    namespace: &str,
    report: &mut Report,
) {
    let what = format!("{}.{}", resource.resource, resource.group);
    let found = match objects.list(resource, namespace).await {
        Ok(found) => found,
        Err(status) => return report.errors.push(status.message),
    };
    for object in found.iter().filter(|object| object.deletion_timestamp().is_none()) {
        let deletion = Target::of(resource, object).deletion(Some(crate::ports::Propagation::Background));
        let deleted = objects.delete(resource, object.namespace(), object.name(), &deletion).await;
        if let Err(status) = ignore_gone(deleted) {
            report.errors.push(status.message);
        }
    }
    let left = if found.is_empty() { Ok(found) } else { objects.list(resource, namespace).await };
    let left = match left {
        Ok(left) => left,
        Err(status) => return report.errors.push(status.message),
    };
    if left.is_empty() {
        return;
    }
    report.estimate = report.estimate.max(1);
    for object in &left {
        let grace = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
        report.estimate = report.estimate.max(grace.and_then(|grace| u64::try_from(grace).ok()).unwrap_or(0));
        for finalizer in object.finalizers() {
            report.estimate = report.estimate.max(FINALIZER_ESTIMATE);
            match report.finalizers.iter_mut().find(|(name, _)| name == finalizer) {
                Some((_, count)) => *count += 1,
                None => report.finalizers.push((finalizer.to_owned(), 1)),
            }
        }
    }
    report.remaining.push((what, left.len()));
}

/// The UIDs of owners that are not there. An owner of a kind that is not served counts as there:
/// its definition may come back, and nothing may be deleted on a guess.
async fn absent_owners(
    objects: &dyn Objects,
    namespace: &str,
    owners: &[Owner],
) -> Result<Vec<String>, Status> {
    let served = objects.served();
    let mut absent = Vec::new();
    for owner in owners {
        let (group, _) = split_api_version(&owner.api_version);
        let resource =
            served.iter().find(|resource| resource.name.group == group && resource.kind == owner.kind);
        let Some(resource) = resource else { continue };
        // A dependent outside all namespaces cannot name the namespace of its owner.
        if resource.namespaced && namespace.is_empty() {
            continue;
        }
        let owner_namespace = if resource.namespaced { namespace } else { "" };
        let found = objects.get(&resource.name, owner_namespace, &owner.name, true).await?;
        // A reference without a UID means whoever has the name.
        if found.is_none_or(|found| !owner.uid.is_empty() && found.uid() != owner.uid) {
            absent.push(owner.uid.clone());
        }
    }
    Ok(absent)
}
