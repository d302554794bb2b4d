//! Every live namespace has a service account `default`.

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Event, Mirror, core};
use crate::ports::{GroupResource, ServedResource};

const NAME: &str = "default";

/// Creates the default service accounts.
#[derive(Default)]
pub(super) struct DefaultServiceAccounts {
    namespaces: Mirror,
    accounts: Mirror,
}

impl Controller for DefaultServiceAccounts {
    fn name(&self) -> &'static str {
        "default-service-accounts"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("namespaces"), core("serviceaccounts")]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(resource, change) = event {
            match resource.resource.as_str() {
                "namespaces" => self.namespaces.apply(change),
                _ => self.accounts.apply(change),
            }
        }
        if !self.namespaces.synced() || !self.accounts.synced() {
            return Vec::new();
        }
        let missing = live(&self.namespaces).filter(|namespace| self.accounts.get(namespace, NAME).is_none());
        missing
            .map(|namespace| {
                let mut account = Value::object();
                account.set_type("v1", "ServiceAccount");
                account.set_meta_str("name", NAME);
                account.set_meta_str("namespace", namespace);
                Action::Create(core("serviceaccounts"), account)
            })
            .collect()
    }
}

/// The names of the namespaces that are not going away.
pub(super) fn live(namespaces: &Mirror) -> impl Iterator<Item = &str> {
    let live = |namespace: &&Value| {
        namespace.deletion_timestamp().is_none() && namespace.str_at(&["status", "phase"]) == "Active"
    };
    namespaces.iter().filter(live).map(|namespace| namespace.name())
}
