//! Fills the rules of ClusterRoles that are made of others.

use coffer_types::Value;

use super::{Action, Controller, Edit, Event, Mirror, Target};
use crate::authz::bootstrap::{GROUP, aggregate};
use crate::ports::{GroupResource, ServedResource};

/// Keeps aggregated ClusterRoles complete.
#[derive(Default)]
pub(super) struct RoleAggregation {
    roles: Mirror,
}

fn cluster_roles() -> GroupResource {
    GroupResource::new(GROUP, "clusterroles")
}

impl Controller for RoleAggregation {
    fn name(&self) -> &'static str {
        "cluster-role-aggregation"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![cluster_roles()]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(_, change) = event {
            self.roles.apply(change);
        }
        let complete = |role: &Value| {
            let rules = aggregate(role, self.roles.iter())?;
            Some(Action::Edit(Target::of(&cluster_roles(), role), Edit::Set("rules", Value::from(rules))))
        };
        self.roles.iter().filter_map(complete).collect()
    }
}
