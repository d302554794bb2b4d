//! Nodes that are not heard of any more: their condition, their taints, and what their pods say.
//!
//! A node is heard when its lease is renewed or its Ready condition has another heartbeat. The clock of
//! the node does not matter: what counts is how long this server has seen no change.
//!
//! | event | then |
//! |---|---|
//! | heard | silence is counted anew |
//! | silent for 50 s (60 s when it has never posted a status) | its conditions become Unknown, as upstream |
//! | Ready is not True | its pods' Ready becomes False; taints `not-ready` (False) or `unreachable` (Unknown) |
//! | silent that long | what its pods say of their Secrets becomes Unknown |
//! | Ready is True again | the taints go; the node itself says what its pods hold |
//!
//! Absent: eviction. Nothing deletes a pod because of a `NoExecute` taint.

use std::collections::BTreeMap;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Condition, Controller, Edit, Event, Mirror, Target, core};
use crate::ports::{Change, GroupResource, ServedResource};

/// How long a node may be silent: upstream's default since 1.32.
const GRACE: Duration = Duration::from_secs(50);
/// The same for a node that has never posted a status.
const STARTUP_GRACE: Duration = Duration::from_secs(60);
/// Where nodes keep their leases.
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// What a node posts, and becomes Unknown with it.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// The condition by which coffer's node says where a pod's Secrets are; it sets it anew when it is back.
const SECRETS_CONDITION: &str = "coffer.dev/SecretsMaterialized";
const STOPPED: (&str, &str) = ("NodeStatusUnknown", "Kubelet stopped posting node status.");
const NEVER: (&str, &str) = ("NodeStatusNeverUpdated", "Kubelet never posted node status.");
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Watches leases and nodes.
#[derive(Default)]
pub(super) struct NodeLifecycle {
    nodes: Mirror,
    pods: Mirror,
    leases: Mirror,
    /// By name.
    heard: BTreeMap<String, Heard>,
}

/// What was heard of a node.
struct Heard {
    /// Its UID, renewal and heartbeat.
    sign: [String; 3],
    /// Counts the signs.
    count: u64,
    silent: bool,
}

impl Controller for NodeLifecycle {
    fn name(&self) -> &'static str {
        "node-lifecycle"
    }

    fn watches(&self, _served: &[ServedResource]) -> Vec<GroupResource> {
        vec![core("nodes"), core("pods"), leases()]
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(resource, change) if resource == leases() => {
                let Some(change) = of_nodes(change) else { return Vec::new() };
                let touched = touched(&change);
                self.leases.apply(change);
                self.look(touched)
            }
            Event::Changed(resource, change) if resource == core("nodes") => {
                let touched = touched(&change);
                self.nodes.apply(change);
                self.look(touched)
            }
            Event::Changed(_, change) => {
                let touched = match &change {
                    Change::Reset(_) => None,
                    Change::Applied(pod) | Change::Deleted(pod) => {
                        Some(pod.str_at(&["spec", "nodeName"]).to_owned())
                    }
                };
                self.pods.apply(change);
                self.look(touched)
            }
            Event::Silent { node, count } => {
                if let Some(heard) = self.heard.get_mut(&node).filter(|heard| heard.count == count) {
                    heard.silent = true;
                }
                self.look(Some(node))
            }
            Event::Resync => self.look(None),
            Event::Emptied { .. }
            | Event::Watching(_)
            | Event::OwnersChecked { .. }
            | Event::Recount { .. }
            | Event::Read { .. } => Vec::new(),
        }
    }
}

impl NodeLifecycle {
    /// Looks at one node, or at all.
    fn look(&mut self, only: Option<String>) -> Vec<Action> {
        if !self.nodes.synced() || !self.leases.synced() || !self.pods.synced() {
            return Vec::new();
        }
        let nodes = &self.nodes;
        self.heard.retain(|name, _| nodes.get("", name).is_some());
        let mut actions = Vec::new();
        for node in self.nodes.iter().filter(|node| only.as_deref().is_none_or(|name| node.name() == name)) {
            let lease = self.leases.get(LEASE_NAMESPACE, node.name());
            let renewal = lease.map(|lease| lease.str_at(&["spec", "renewTime"])).unwrap_or_default();
            let ready = condition(node, "Ready");
            let heartbeat = ready.map(|ready| ready.str_at(&["lastHeartbeatTime"])).unwrap_or_default();
            let sign = [node.uid(), renewal, heartbeat].map(str::to_owned);
            let heard = self.heard.entry(node.name().to_owned()).or_insert_with(|| Heard {
                sign: Default::default(),
                count: 0,
                silent: false,
            });
            if heard.sign != sign {
                *heard = Heard { sign, count: heard.count + 1, silent: false };
                let grace = if ready.is_some() { GRACE } else { STARTUP_GRACE };
                let silent = Event::Silent { node: node.name().to_owned(), count: heard.count };
                actions.push(Action::Later(grace, Box::new(silent)));
            }
            let target = Target::of(&core("nodes"), node);
            let unknown = if heard.silent { unknown_conditions(node) } else { Vec::new() };
            if !unknown.is_empty() {
                actions.push(Action::Edit(target.clone(), Edit::Conditions(unknown)));
            }
            // A node that has posted nothing yet is in nobody's way.
            let Some(ready) = ready else { continue };
            let ready = if heard.silent { "Unknown" } else { ready.str_at(&["status"]) };
            let key = taint_key(ready);
            if !has_taints(node, key) {
                actions.push(Action::Edit(target, Edit::NodeTaints(key)));
            }
            if ready != "True" {
                let pods = self.pods.iter().filter(|pod| pod.str_at(&["spec", "nodeName"]) == node.name());
                actions.extend(pods.filter_map(|pod| mark_pod(pod, heard.silent)));
            }
        }
        actions
    }
}

fn leases() -> GroupResource {
    GroupResource::new("coordination.k8s.io", "leases")
}

/// Leases of other things are nobody's business here and are not kept.
fn of_nodes(change: Change) -> Option<Change> {
    let ours = |lease: &Value| lease.namespace() == LEASE_NAMESPACE;
    match change {
        Change::Reset(leases) => Some(Change::Reset(leases.into_iter().filter(ours).collect())),
        Change::Applied(lease) => ours(&lease).then_some(Change::Applied(lease)),
        Change::Deleted(lease) => ours(&lease).then_some(Change::Deleted(lease)),
    }
}

/// The name of the only object that changed.
fn touched(change: &Change) -> Option<String> {
    match change {
        Change::Reset(_) => None,
        Change::Applied(object) | Change::Deleted(object) => Some(object.name().to_owned()),
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().find(|condition| condition.str_at(&["type"]) == kind)
}

/// What a silent node's conditions become, as far as they are not that already.
fn unknown_conditions(node: &Value) -> Vec<Condition> {
    let become_unknown = |kind: &'static str| {
        let (reason, message) = match condition(node, kind) {
            None => NEVER,
            Some(held) if held.str_at(&["status"]) == "Unknown" => return None,
            Some(_) => STOPPED,
        };
        Some(Condition { kind, status: "Unknown", reason: reason.to_owned(), message: message.to_owned() })
    };
    CONDITIONS.into_iter().filter_map(become_unknown).collect()
}

fn mark_pod(pod: &Value, silent: bool) -> Option<Action> {
    let mut conditions = Vec::new();
    if let Some(ready) = condition(pod, "Ready").filter(|ready| ready.str_at(&["status"]) == "True") {
        // Reason and message stay, as upstream.
        conditions.push(Condition {
            kind: "Ready",
            status: "False",
            reason: ready.str_at(&["reason"]).to_owned(),
            message: ready.str_at(&["message"]).to_owned(),
        });
    }
    let secrets = condition(pod, SECRETS_CONDITION);
    // A node that is heard says for itself what its pods hold.
    if silent && secrets.is_some_and(|held| held.str_at(&["status"]) != "Unknown") {
        let (reason, message) = (STOPPED.0.to_owned(), STOPPED.1.to_owned());
        conditions.push(Condition { kind: SECRETS_CONDITION, status: "Unknown", reason, message });
    }
    let target = Target::of(&core("pods"), pod);
    (!conditions.is_empty()).then_some(Action::Edit(target, Edit::Conditions(conditions)))
}

/// The key of the taints that belong to a status of Ready; "" for none.
fn taint_key(ready: &str) -> &'static str {
    match ready {
        "True" => "",
        "False" => NOT_READY,
        _ => UNREACHABLE,
    }
}

const EFFECTS: [&str; 2] = ["NoSchedule", "NoExecute"];

fn is_ours(taint: &Value) -> bool {
    let (key, effect) = (taint.str_at(&["key"]), taint.str_at(&["effect"]));
    [UNREACHABLE, NOT_READY].contains(&key) && EFFECTS.contains(&effect)
}

/// Whether a node has exactly the taints of one key.
fn has_taints(node: &Value, key: &str) -> bool {
    let taints = node.at(&["spec", "taints"]).and_then(Value::as_array).unwrap_or_default();
    let mut ours: Vec<(&str, &str)> = taints
        .iter()
        .filter(|taint| is_ours(taint))
        .map(|taint| (taint.str_at(&["key"]), taint.str_at(&["effect"])))
        .collect();
    ours.sort_unstable();
    let mut wanted: Vec<(&str, &str)> = EFFECTS.iter().map(|effect| (key, *effect)).collect();
    wanted.sort_unstable();
    if key.is_empty() { ours.is_empty() } else { ours == wanted }
}

/// Gives a node the taints of one key and takes those of the other away; foreign ones stay.
pub(super) fn set_taints(node: &mut Value, key: &str, now: &str) {
    let held = node.at(&["spec", "taints"]).and_then(Value::as_array).unwrap_or_default();
    let stays = |taint: &&Value| !is_ours(taint) || taint.str_at(&["key"]) == key;
    let mut taints: Vec<Value> = held.iter().filter(stays).cloned().collect();
    for effect in EFFECTS.into_iter().filter(|_| !key.is_empty()) {
        let same = |taint: &Value| taint.str_at(&["key"]) == key && taint.str_at(&["effect"]) == effect;
        if !taints.iter().any(same) {
            let mut taint = Value::from([("key", key), ("effect", effect)]);
            if effect == "NoExecute" {
                taint.set(&["timeAdded"], now);
            }
            taints.push(taint);
        }
    }
    if taints.is_empty() {
        node.remove(&["spec", "taints"]);
    } else {
        node.set(&["spec", "taints"], taints);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, check, deleted, object, reset};
    use super::*;

    fn ready(mut object: Value, status: &str) -> Value {
        object.set(&["status", "conditions"], vec![Value::from([("type", "Ready"), ("status", status)])]);
        object
    }

    fn lease(renewed: &str) -> Event {
        let mut lease = object("kube-node-lease/n1", &[("spec.renewTime", renewed)]);
        lease.set_type("coordination.k8s.io/v1", "Lease");
        Event::Changed(leases(), Change::Applied(Box::new(lease)))
    }

    fn silent(count: u64) -> Event {
        Event::Silent { node: "n1".to_owned(), count }
    }

    fn tainted(mut node: Value, key: &str) -> Value {
        set_taints(&mut node, key, "2026-01-02T03:04:05Z");
        node
    }

    #[test]
    fn a_silent_node_becomes_unknown_and_its_pods_say_so() {
        let node = |status: &str| ready(object("n1", &[]), status);
        let mut pod = ready(object("a/p", &[("spec.nodeName", "n1")]), "True");
        let mut conditions =
            pod.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        conditions.push(Value::from([("type", SECRETS_CONDITION), ("status", "True")]));
        pod.set(&["status", "conditions"], conditions);
        let unknown = "nodes /n1: Ready=Unknown:NodeStatusUnknown MemoryPressure=Unknown:NodeStatusNeverUpdated DiskPressure=Unknown:NodeStatusNeverUpdated PIDPressure=Unknown:NodeStatusNeverUpdated";
        let rest = "nodes /n1: MemoryPressure=Unknown:NodeStatusNeverUpdated DiskPressure=Unknown:NodeStatusNeverUpdated PIDPressure=Unknown:NodeStatusNeverUpdated";
        let unreachable = "nodes /n1: taint node.kubernetes.io/unreachable";
        let marked = "pods a/p: Ready=False: coffer.dev/SecretsMaterialized=Unknown:NodeStatusUnknown";
        let no_leases = Event::Changed(leases(), Change::Reset(Vec::new()));
        check(
            &mut NodeLifecycle::default(),
            vec![
                (reset("nodes", &[node("True")]), vec![]),
                (reset("pods", &[pod.clone(), object("a/other", &[("spec.nodeName", "n2")])]), vec![]),
                (no_leases, vec!["later 50"]),
                // Heard twice: the first two silences are over.
                (lease("2026-01-02T03:04:05.000000Z"), vec!["later 50"]),
                (lease("2026-01-02T03:04:15.000000Z"), vec!["later 50"]),
                (lease("2026-01-02T03:04:15.000000Z"), vec![]),
                (silent(1), vec![]),
                (silent(2), vec![]),
                (silent(3), vec![unknown, unreachable, marked]),
                // What failed is tried again, what is done is not.
                (Event::Resync, vec![unknown, unreachable, marked]),
                (applied("nodes", &tainted(node("Unknown"), UNREACHABLE)), vec![rest, marked]),
                // Heard again: the node says itself that it is ready.
                (lease("2026-01-02T03:09:05.000000Z"), vec!["later 50", "pods a/p: Ready=False:"]),
                (applied("nodes", &tainted(node("True"), UNREACHABLE)), vec!["nodes /n1: taint "]),
                (applied("nodes", &node("True")), vec![]),
                // Not ready by its own word: no word about Secrets.
                (
                    applied("nodes", &node("False")),
                    vec!["nodes /n1: taint node.kubernetes.io/not-ready", "pods a/p: Ready=False:"],
                ),
                (deleted("nodes", &node("False")), vec![]),
                (silent(4), vec![]),
            ],
        );
    }

    #[test]
    fn a_node_that_never_posted_has_more_time() {
        let unknown = "nodes /n1: Ready=Unknown:NodeStatusNeverUpdated MemoryPressure=Unknown:NodeStatusNeverUpdated DiskPressure=Unknown:NodeStatusNeverUpdated PIDPressure=Unknown:NodeStatusNeverUpdated";
        check(
            &mut NodeLifecycle::default(),
            vec![
                (Event::Changed(leases(), Change::Reset(Vec::new())), vec![]),
                (reset("pods", &[]), vec![]),
                (reset("nodes", &[object("n1", &[])]), vec!["later 60"]),
                (silent(1), vec![unknown]),
                // Another node of the same name starts anew.
                (applied("nodes", &object("n1", &[("metadata.uid", "other")])), vec!["later 60"]),
                (silent(1), vec![]),
            ],
        );
    }

    #[test]
    fn foreign_taints_stay() {
        let foreign = Value::from([("key", "dedicated"), ("effect", "NoSchedule")]);
        let old = Value::from([("key", NOT_READY), ("effect", "NoExecute")]);
        let mut node = object("n1", &[]);
        node.set(&["spec", "taints"], vec![foreign.clone(), old]);
        let shown = |node: &Value| -> Vec<String> {
            let taints = node.at(&["spec", "taints"]).and_then(Value::as_array).unwrap_or_default();
            let field = |taint: &Value, name: &str| taint.str_at(&[name]).to_owned();
            let show = |taint: &Value| {
                format!("{} {} {}", field(taint, "key"), field(taint, "effect"), field(taint, "timeAdded"))
            };
            taints.iter().map(show).collect()
        };
        set_taints(&mut node, UNREACHABLE, "now");
        assert_eq!(
            shown(&node),
            [
                "dedicated NoSchedule ",
                "node.kubernetes.io/unreachable NoSchedule ",
                "node.kubernetes.io/unreachable NoExecute now",
            ]
        );
        let before = node.clone();
        set_taints(&mut node, UNREACHABLE, "later");
        assert_eq!(node, before);
        set_taints(&mut node, "", "later");
        assert_eq!(shown(&node), ["dedicated NoSchedule "]);
        assert!(has_taints(&node, ""));
    }
}
