//! Brings the stored roles and bindings up to the bootstrap policy, once, at start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Edit, Event, Mirror, Target};
use crate::authz::bootstrap::{GROUP, Reconciliation, objects, reconcile};
use crate::authz::rbac::PolicyKind;
use crate::ports::{GroupResource, ServedResource};

/// Reconciles until nothing is left to do; what an administrator changes later stays changed.
pub(super) struct BootstrapPolicy {
    expected: Vec<Value>,
    stored: [Mirror; 4],
    done: Arc<AtomicBool>,
}

impl BootstrapPolicy {
    pub(super) fn new(done: Arc<AtomicBool>) -> Result<Self, String> {
        Ok(Self { expected: objects()?, stored: Default::default(), done })
    }

    /// Which kind an expected object is of, and what is stored of it.
    fn stored(&self, expected: &Value) -> Option<(PolicyKind, Option<&Value>)> {
        let index = PolicyKind::ALL.iter().position(|kind| kind.kind() == expected.kind())?;
        Some((PolicyKind::ALL[index], self.stored[index].get(expected.namespace(), expected.name())))
    }

    /// Whether nothing is left to do. What was asked for last is looked at first: it is what is missing longest.
    fn is_done(&self) -> bool {
        self.expected
            .iter()
            .rev()
            .filter_map(|expected| Some((expected, self.stored(expected)?.1)))
            .all(|(expected, stored)| matches!(reconcile(expected, stored), Reconciliation::Keep))
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for expected in &self.expected {
            let Some((kind, stored)) = self.stored(expected) else { continue };
            let resource = GroupResource::new(GROUP, kind.resource());
            match reconcile(expected, stored) {
                Reconciliation::Keep => {}
                Reconciliation::Create(object) => actions.push(Action::Create(resource, object)),
                Reconciliation::Update(object) => {
                    actions.push(Action::Edit(Target::of(&resource, &object), Edit::Replace(object)));
                }
                Reconciliation::Recreate(object) => {
                    let old = stored.map(|stored| Target::of(&resource, stored));
                    actions.extend(old.map(|old| Action::Delete(old, None)));
                    actions.push(Action::Create(resource, object));
                }
            }
        }
        actions
    }
}

impl Controller for BootstrapPolicy {
    fn name(&self) -> &'static str {
        "bootstrap-policy"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        PolicyKind::ALL.iter().map(|kind| GroupResource::new(GROUP, kind.resource())).collect()
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if self.done.load(Ordering::Acquire) {
            return Vec::new();
        }
        let asks_for_all = match event {
            Event::Changed(resource, change) => {
                let was_synced = self.stored.iter().all(Mirror::synced);
                let index = PolicyKind::ALL.iter().position(|kind| kind.resource() == resource.resource);
                if let Some(index) = index {
                    self.stored[index].apply(change);
                }
                !was_synced
            }
            _ => true,
        };
        if !self.stored.iter().all(Mirror::synced) {
            return Vec::new();
        }
        // Everything is asked for once and after failures, not again with every object that arrives.
        let actions = if asks_for_all { self.actions() } else { Vec::new() };
        if actions.is_empty() && (asks_for_all || self.is_done()) {
            self.done.store(true, Ordering::Release);
            self.stored = Default::default();
        }
        actions
    }
}
