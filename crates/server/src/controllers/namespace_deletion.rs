//! Empties namespaces that are going away, says how far it is, and lets them go.
//!
//! | State of the namespace | Event | Actions |
//! |---|---|---|
//! | not deleted, or finalized | any | none |
//! | deleted, not being emptied | change, resync | empty it |
//! | being emptied | report: something left or failed | conditions; empty it again after a while |
//! | being emptied | report: nothing left | conditions; finalize |

use std::collections::BTreeSet;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Condition, Controller, Edit, Event, Mirror, Report, Target, core};
use crate::ports::{GroupResource, ServedResource};

/// Type, reason and message of each condition when all is well, in upstream's order.
const GOOD: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

/// Empties and finalizes.
#[derive(Default)]
pub(super) struct NamespaceDeletion {
    namespaces: Mirror,
    /// Namespaces whose next look is already under way.
    busy: BTreeSet<String>,
}

impl NamespaceDeletion {
    fn start(&mut self) -> Vec<Action> {
        let due: Vec<String> = self
            .namespaces
            .iter()
            .filter(|namespace| is_due(namespace) && !self.busy.contains(namespace.name()))
            .map(|namespace| namespace.name().to_owned())
            .collect();
        self.busy.extend(due.iter().cloned());
        due.into_iter().map(Action::EmptyNamespace).collect()
    }

    fn emptied(&mut self, name: &str, report: &Report) -> Vec<Action> {
        let Some(namespace) = self.namespaces.get("", name).filter(|namespace| is_due(namespace)) else {
            self.busy.remove(name);
            return Vec::new();
        };
        let target = Target::of(&core("namespaces"), namespace);
        let mut actions = vec![Action::Edit(target.clone(), Edit::Conditions(conditions(report)))];
        if report.remaining.is_empty() && report.errors.is_empty() {
            self.busy.remove(name);
            actions.push(Action::Edit(target, Edit::Finalize));
        } else {
            // Half the estimate, as upstream: what is left is usually gone sooner.
            let again = Event::Emptied { namespace: name.to_owned(), report: Report::pending() };
            actions.push(Action::Later(Duration::from_secs(report.estimate / 2 + 1), Box::new(again)));
        }
        actions
    }
}

impl Report {
    /// Stands for "look again": nothing was reported yet.
    pub(super) fn pending() -> Self {
        Self { estimate: u64::MAX, ..Self::default() }
    }
}

impl Controller for NamespaceDeletion {
    fn name(&self) -> &'static str {
        "namespace-deletion"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("namespaces")]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(_, change) => {
                self.namespaces.apply(change);
                self.start()
            }
            Event::Emptied { namespace, report } if report == Report::pending() => {
                self.busy.remove(&namespace);
                self.start()
            }
            Event::Emptied { namespace, report } => self.emptied(&namespace, &report),
            Event::Resync
            | Event::Watching(_)
            | Event::OwnersChecked { .. }
            | Event::Silent { .. }
            | Event::Recount { .. }
            | Event::Read { .. } => self.start(),
        }
    }
}

fn is_due(namespace: &Value) -> bool {
    let finalizers = namespace.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    namespace.deletion_timestamp().is_some()
        && finalizers.iter().any(|finalizer| finalizer.as_str() == Some("kubernetes"))
}

fn conditions(report: &Report) -> Vec<Condition> {
    let counted = |items: &[(String, usize)], verb: &str| -> String {
        let texts: Vec<String> =
            items.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances")).collect();
        texts.join(", ")
    };
    let mut errors = report.errors.clone();
    errors.sort();
    let bad = |kind: &str| match kind {
        "NamespaceDeletionContentFailure" if !errors.is_empty() => Some((
            "ContentDeletionFailed",
            format!("Failed to delete all resource types, {} remaining: {}", errors.len(), errors.join(", ")),
        )),
        "NamespaceContentRemaining" if !report.remaining.is_empty() => Some((
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", counted(&report.remaining, "has")),
        )),
        "NamespaceFinalizersRemaining" if !report.finalizers.is_empty() => Some((
            "SomeFinalizersRemain",
            format!(
                "Some content in the namespace has finalizers remaining: {}",
                counted(&report.finalizers, "in")
            ),
        )),
        _ => None,
    };
    GOOD.into_iter()
        .map(|(kind, reason, message)| match bad(kind) {
            Some((reason, message)) => Condition { kind, status: "True", reason: reason.to_owned(), message },
            None => {
                Condition { kind, status: "False", reason: reason.to_owned(), message: message.to_owned() }
            }
        })
        .collect()
}
