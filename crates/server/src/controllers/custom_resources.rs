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
use crate::authz::quote::{aggregate, quote};
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
            Event::OwnersChecked { .. } | Event::Watching(_) => Vec::new(),
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
    let (names, accepted) = accept_names(definition, all);
    let mut conditions = vec![accepted];
    let held = definition.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let established = held.iter().find(|condition| condition.str_at(&["type"]) == "Established");
    if established.is_none_or(|condition| condition.str_at(&["status"]) != "True") {
        let (status, reason, message) = if conditions[0].status == "True" {
            ("True", "InitialNamesAccepted", "the initial names have been accepted")
        } else {
            ("False", "NotAccepted", "not all names are accepted")
        };
        conditions.push(Condition {
            kind: "Established",
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
    }
    let edit = Edit::AcceptNames(names, conditions);
    let mut changed = definition.clone();
    // The time stands only in conditions that change anyway.
    edit.apply(&mut changed, Timestamp::UNIX_EPOCH);
    (changed != *definition).then(|| Action::Edit(Target::of(&definitions(), definition), edit))
}

/// The names that the definition has now, and whether all that it asks for are among them.
fn accept_names<'a>(definition: &Value, all: impl Iterator<Item = &'a Value>) -> (Value, Condition) {
    let mut resources: BTreeSet<&str> = BTreeSet::new();
    let mut kinds: BTreeSet<&str> = BTreeSet::new();
    for other in all.filter(|other| other.str_at(&["spec", "group"]) == definition.str_at(&["spec", "group"]))
    {
        let names = |field: &str| other.str_at(&["status", "acceptedNames", field]);
        resources.extend([names("plural"), names("singular")]);
        resources.extend(texts(other, "status", "shortNames"));
        kinds.extend([names("kind"), names("listKind")]);
    }
    let asked = |field: &str| definition.str_at(&["spec", "names", field]);
    let held = |field: &str| definition.str_at(&["status", "acceptedNames", field]);
    let check = |asked: &str, held: &str, used: &BTreeSet<&str>| {
        if asked == held || !used.contains(asked) {
            Ok(())
        } else {
            Err(format!("{} is already in use", quote(asked)))
        }
    };
    let mut names = definition.at(&["status", "acceptedNames"]).cloned().unwrap_or_else(Value::object);
    let mut problem: Option<(&str, String)> = None;
    for (field, used, reason) in
        [("plural", &resources, "PluralConflict"), ("singular", &resources, "SingularConflict")]
    {
        match check(asked(field), held(field), used) {
            Ok(()) => names.set_str(&[field], asked(field)),
            Err(message) => problem = Some((reason, message)),
        }
    }
    let short = texts(definition, "spec", "shortNames");
    let own = texts(definition, "status", "shortNames");
    if short != own {
        let fresh = short.iter().filter(|name| !own.contains(name));
        let errors: Vec<String> = fresh.filter_map(|name| check(name, "", &resources).err()).collect();
        if errors.is_empty() {
            set_list(&mut names, "shortNames", &short);
        } else {
            problem = Some(("ShortNamesConflict", aggregate(&errors)));
        }
    }
    for (field, used, reason) in [("kind", &kinds, "KindConflict"), ("listKind", &kinds, "ListKindConflict")]
    {
        match check(asked(field), held(field), used) {
            Ok(()) => names.set_str(&[field], asked(field)),
            Err(message) => problem = Some((reason, message)),
        }
    }
    set_list(&mut names, "categories", &texts(definition, "spec", "categories"));
    let (status, reason, message) = match problem {
        Some((reason, message)) => ("False", reason, message),
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
    };
    (names, Condition { kind: "NamesAccepted", status, reason: reason.to_owned(), message })
}

/// A list of names of the spec, or of the accepted ones.
fn texts<'a>(definition: &'a Value, part: &str, field: &str) -> Vec<&'a str> {
    let names = if part == "spec" { "names" } else { "acceptedNames" };
    let items = definition.at(&[part, names, field]).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).collect()
}

fn set_list(names: &mut Value, field: &str, items: &[&str]) {
    if items.is_empty() {
        names.remove(&[field]);
    } else {
        names.set(&[field], items.iter().map(|item| Value::from(*item)).collect::<Vec<_>>());
    }
}
