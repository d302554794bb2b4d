//! The namespaces that every cluster has.

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Event, Mirror, core};
use crate::ports::{GroupResource, ServedResource};

/// What there must be, at any time.
pub(super) const SYSTEM_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];

/// Creates the system's namespaces and makes them anew when they are gone.
#[derive(Default)]
pub(super) struct SystemNamespaces {
    namespaces: Mirror,
}

impl Controller for SystemNamespaces {
    fn name(&self) -> &'static str {
        "system-namespaces"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("namespaces")]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(_, change) = event {
            self.namespaces.apply(change);
        }
        if !self.namespaces.synced() {
            return Vec::new();
        }
        let missing = SYSTEM_NAMESPACES.iter().filter(|name| self.namespaces.get("", name).is_none());
        missing
            .map(|name| {
                let mut namespace = Value::object();
                namespace.set_type("v1", "Namespace");
                namespace.set_meta_str("name", name);
                Action::Create(core("namespaces"), namespace)
            })
            .collect()
    }
}
