//! Binds pods that have no node to the node that is there.
//!
//! This is no scheduler: it looks at no resources, taints or affinities. Among several nodes that
//! are ready and schedulable it takes the first by name.

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Event, Mirror, core};
use crate::ports::{GroupResource, ServedResource};

const SCHEDULER: &str = "default-scheduler";

/// Binds pods.
#[derive(Default)]
pub(super) struct PodBinder {
    nodes: Mirror,
    pods: Mirror,
}

impl Controller for PodBinder {
    fn name(&self) -> &'static str {
        "pod-binder"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("nodes"), core("pods")]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        if let Event::Changed(resource, change) = event {
            match resource.resource.as_str() {
                "nodes" => self.nodes.apply(change),
                _ => self.pods.apply(change),
            }
        }
        let Some(node) = self.nodes.iter().find(|node| is_schedulable(node)) else { return Vec::new() };
        let waiting = self.pods.iter().filter(|pod| is_waiting(pod));
        waiting
            .map(|pod| Action::Bind {
                namespace: pod.namespace().to_owned(),
                pod: pod.name().to_owned(),
                uid: pod.uid().to_owned(),
                node: node.name().to_owned(),
            })
            .collect()
    }
}

fn is_schedulable(node: &Value) -> bool {
    let conditions = node.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let ready =
        |condition: &Value| condition.str_at(&["type"]) == "Ready" && condition.str_at(&["status"]) == "True";
    let cordoned = node.at(&["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or(false);
    conditions.iter().any(ready) && !cordoned && node.deletion_timestamp().is_none()
}

fn is_waiting(pod: &Value) -> bool {
    let gates = pod.at(&["spec", "schedulingGates"]).and_then(Value::as_array).unwrap_or_default();
    pod.str_at(&["spec", "nodeName"]).is_empty()
        && pod.deletion_timestamp().is_none()
        && matches!(pod.str_at(&["spec", "schedulerName"]), "" | SCHEDULER)
        && gates.is_empty()
}
