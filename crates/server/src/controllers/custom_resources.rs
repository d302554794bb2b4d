//! Gives CustomResourceDefinitions their names, establishes them, and empties them before they go.
//!
//! | Definition | Actions |
//! |---|---|
//! | lives | accept the names that no other definition of its group has; establish once all are accepted |
//! | is deleted, holds the cleanup finalizer | condition Terminating; ask deletion of every object |
//! | the same, report: something left | ask again after a while |
//! | the same, report: nothing left | condition; remove the finalizer |

use std::collections::BTreeSet;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::time::Timestamp;

use super::{Action, Condition, Controller, Edit, Event, Mirror, Report, Target};
use crate::authz::quote::aggregate;
use crate::crd::names::{self, Verdict};
use crate::ports::{GroupResource, ServedResource};

/// The finalizer that keeps a definition until its objects are gone.
pub const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
/// How long objects with finalizers are waited for.
const RETRY: Duration = Duration::from_secs(5);

/// Names, establishes and empties definitions.
#[derive(Default)]
pub(super) struct Naming {
    definitions: Mirror,
    /// Definitions whose objects are being deleted.
    busy: BTreeSet<String>,
}

fn definitions() -> GroupResource {
    GroupResource::new(GROUP, "customresourcedefinitions")
}

impl Naming {
    fn look_at_all(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut starting = Vec::new();
        for definition in self.definitions.iter() {
            if definition.deletion_timestamp().is_none() {
                actions.extend(name(definition, self.definitions.iter()));
            } else if definition.finalizers().contains(&FINALIZER) && !self.busy.contains(definition.name()) {
                let in_progress = terminating(
                    "True",
                    "InstanceDeletionInProgress",
                    "CustomResource deletion is in progress",
                );
                actions.push(Action::Edit(
                    Target::of(&definitions(), definition),
                    Edit::Conditions(vec![in_progress]),
                ));
                actions.push(Action::EmptyResource(resource_of(definition)));
                starting.push(definition.name().to_owned());
            }
        }
        self.busy.extend(starting);
        actions
    }

    fn emptied(&mut self, name: &str, report: &Report) -> Vec<Action> {
        let Some(definition) =
            self.definitions.get("", name).filter(|found| found.deletion_timestamp().is_some())
        else {
            self.busy.remove(name);
            return Vec::new();
        };
        let target = Target::of(&definitions(), definition);
        if report.remaining.is_empty() && report.errors.is_empty() {
            self.busy.remove(name);
            let completed = terminating("False", "InstanceDeletionCompleted", "removed all instances");
            return vec![
                Action::Edit(target.clone(), Edit::Conditions(vec![completed])),
                Action::Edit(target, Edit::RemoveFinalizer(FINALIZER.to_owned())),
            ];
        }
        let mut actions = Vec::new();
        if !report.errors.is_empty() {
            let message = format!("could not list instances: {}", aggregate(&report.errors));
            let failed = terminating("True", "InstanceDeletionFailed", &message);
            actions.push(Action::Edit(target, Edit::Conditions(vec![failed])));
        }
        let again = Event::Emptied { namespace: name.to_owned(), report: Report::pending() };
        actions.push(Action::Later(RETRY, Box::new(again)));
        actions
    }
}

impl Controller for Naming {
    fn name(&self) -> &'static str {
        "custom-resource-naming"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![definitions()]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(_, change) => {
                self.definitions.apply(change);
                self.look_at_all()
            }
            Event::Emptied { namespace, report } if report == Report::pending() => {
                self.busy.remove(&namespace);
                self.look_at_all()
            }
            Event::Emptied { namespace, report } => self.emptied(&namespace, &report),
            Event::Resync => self.look_at_all(),
            Event::OwnersChecked { .. }
            | Event::Watching(_)
            | Event::Silent { .. }
            | Event::Recount { .. }
            | Event::Read { .. } => Vec::new(),
        }
    }
}

fn resource_of(definition: &Value) -> GroupResource {
    GroupResource::new(definition.str_at(&["spec", "group"]), definition.str_at(&["spec", "names", "plural"]))
}

fn terminating(status: &'static str, reason: &str, message: &str) -> Condition {
    Condition { kind: "Terminating", status, reason: reason.to_owned(), message: message.to_owned() }
}

/// The change of a definition's status that its names ask for, if any.
fn name<'a>(definition: &Value, all: impl Iterator<Item = &'a Value>) -> Option<Action> {
    let (names, accepted) = names::accept(definition, all);
    let mut conditions = vec![condition(names::ACCEPTED, &accepted)];
    conditions.extend(
        names::establish(definition, accepted.holds).map(|verdict| condition(names::ESTABLISHED, &verdict)),
    );
    let edit = Edit::AcceptNames(names, conditions);
    let mut changed = definition.clone();
    // The time stands only in conditions that change anyway.
    edit.apply(&mut changed, Timestamp::UNIX_EPOCH);
    (changed != *definition).then(|| Action::Edit(Target::of(&definitions(), definition), edit))
}

fn condition(kind: &'static str, verdict: &Verdict) -> Condition {
    Condition {
        kind,
        status: if verdict.holds { "True" } else { "False" },
        reason: verdict.reason.to_owned(),
        message: verdict.message.clone(),
    }
}
