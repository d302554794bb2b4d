//! What every cluster has from its start: the system's classes of priority, the range of addresses
//! of Services, and the Service `kubernetes`.

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::validation::kinds::system_priority_classes;

use super::{Action, Controller, Event, Mirror, core};
use crate::ports::{GroupResource, ServedResource};
use crate::service_addresses::Range;

/// Creates them, and makes anew what is gone.
pub(super) struct ClusterDefaults {
    range: Range,
    classes: Mirror,
    ranges: Mirror,
    services: Mirror,
}

impl ClusterDefaults {
    pub(super) fn new(range: Range) -> Self {
        Self { range, classes: Mirror::default(), ranges: Mirror::default(), services: Mirror::default() }
    }
}

fn classes() -> GroupResource {
    GroupResource::new("scheduling.k8s.io", "priorityclasses")
}

fn ranges() -> GroupResource {
    GroupResource::new("networking.k8s.io", "servicecidrs")
}

impl Controller for ClusterDefaults {
    fn name(&self) -> &'static str {
        "cluster-defaults"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![classes(), ranges(), core("services")]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(resource, change) = event {
            match resource.resource.as_str() {
                "priorityclasses" => self.classes.apply(change),
                "servicecidrs" => self.ranges.apply(change),
                _ => self.services.apply(change),
            }
        }
        let mut actions = Vec::new();
        if self.classes.synced() {
            let missing = system_priority_classes();
            let missing = missing.into_iter().filter(|class| self.classes.get("", class.name()).is_none());
            actions.extend(missing.map(|class| Action::Create(classes(), class)));
        }
        if self.ranges.synced() && self.ranges.get("", "kubernetes").is_none() {
            let mut range = Value::object();
            range.set_type("networking.k8s.io/v1", "ServiceCIDR");
            range.set_meta_str("name", "kubernetes");
            range.set(&["spec", "cidrs"], vec![Value::from(self.range.to_string())]);
            actions.push(Action::Create(ranges(), range));
        }
        if self.services.synced() && self.services.get("default", "kubernetes").is_none() {
            actions.push(Action::Create(core("services"), self.service()));
        }
        actions
    }
}

impl ClusterDefaults {
    /// The Service under which clients inside the cluster know this server.
    fn service(&self) -> Value {
        let mut service = Value::object();
        service.set_type("v1", "Service");
        service.set_meta_str("name", "kubernetes");
        service.set_meta_str("namespace", "default");
        service.set(&["metadata", "labels", "component"], "apiserver");
        service.set(&["metadata", "labels", "provider"], "kubernetes");
        let port = Value::from([
            ("name", Value::from("https")),
            ("protocol", "TCP".into()),
            ("port", 443.into()),
            ("targetPort", 6443.into()),
        ]);
        service.set(&["spec", "ports"], vec![port]);
        service.set(&["spec", "clusterIP"], self.range.first().to_string());
        service.set(&["spec", "type"], "ClusterIP");
        service.set(&["spec", "sessionAffinity"], "None");
        service
    }
}
