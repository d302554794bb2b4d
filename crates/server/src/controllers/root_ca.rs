//! Every live namespace has a ConfigMap with the CA that pods verify the server with.

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::service_accounts::live;
use super::{Action, Controller, Edit, Event, Mirror, Target, core};
use crate::ports::{Change, GroupResource, Interest, ServedResource};

const NAME: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const DESCRIPTION_KEY: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Publishes the CA.
pub(super) struct RootCa {
    data: Value,
    namespaces: Mirror,
    maps: Mirror,
}

impl RootCa {
    pub(super) fn new(pem: &str) -> Self {
        Self { data: Value::from([(KEY, pem)]), namespaces: Mirror::default(), maps: Mirror::default() }
    }

    fn correct(&self, namespace: &str) -> Option<Action> {
        let Some(held) = self.maps.get(namespace, NAME) else {
            let mut map = Value::object();
            map.set_type("v1", "ConfigMap");
            map.set_meta_str("name", NAME);
            map.set_meta_str("namespace", namespace);
            map.set(&["metadata", "annotations", DESCRIPTION_KEY], DESCRIPTION);
            map.set(&["data"], self.data.clone());
            return Some(Action::Create(core("configmaps"), map));
        };
        let described = held.annotation(DESCRIPTION_KEY).is_some_and(|text| !text.is_empty());
        if held.get("data") == Some(&self.data) && described {
            return None;
        }
        let mut map = held.clone();
        map.set(&["metadata", "annotations", DESCRIPTION_KEY], DESCRIPTION);
        map.set(&["data"], self.data.clone());
        Some(Action::Edit(Target::of(&core("configmaps"), held), Edit::Replace(map)))
    }
}

impl Controller for RootCa {
    fn name(&self) -> &'static str {
        "root-ca-publisher"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("namespaces"), core("configmaps")]
    }

    fn interest(&self, resource: &GroupResource) -> Interest {
        if *resource == core("configmaps") { Interest::Field("metadata.name", NAME) } else { Interest::Whole }
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(resource, change) = event {
            if resource.resource == "namespaces" {
                self.namespaces.apply(change);
            } else {
                let Some(change) = only_ours(change) else { return Vec::new() };
                self.maps.apply(change);
            }
        }
        if !self.namespaces.synced() || !self.maps.synced() {
            return Vec::new();
        }
        live(&self.namespaces).filter_map(|namespace| self.correct(namespace)).collect()
    }
}

/// Other ConfigMaps are nobody's business here and are not kept.
fn only_ours(change: Change) -> Option<Change> {
    match change {
        Change::Reset(objects) => {
            Some(Change::Reset(objects.into_iter().filter(|object| object.name() == NAME).collect()))
        }
        Change::Applied(object) => (object.name() == NAME).then_some(Change::Applied(object)),
        Change::Deleted(object) => (object.name() == NAME).then_some(Change::Deleted(object)),
    }
}
