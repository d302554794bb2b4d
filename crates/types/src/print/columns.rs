//! The columns of each kind's table.

use super::column::{AGE, Column, NAME, Text};

const SECRET: &[Text] =
    &[NAME, ("Type", "string", "What the Secret is for", 0), ("Data", "string", "Number of keys", 0), AGE];
const CONFIG_MAP: &[Text] = &[NAME, ("Data", "string", "Number of keys, binary ones included", 0), AGE];
const SERVICE_ACCOUNT: &[Text] = &[NAME, AGE];
const NAMESPACE: &[Text] =
    &[NAME, ("Status", "string", "Active, or Terminating while it is being deleted", 0), AGE];
const LEASE: &[Text] = &[NAME, ("Holder", "string", "Who holds the lease", 0), AGE];
const POD: &[Text] = &[
    NAME,
    ("Ready", "string", "How many containers accept traffic, of how many", 0),
    ("Status", "string", "The state of the containers taken together", 0),
    ("Restarts", "string", "How often containers were restarted, and when the last was", 0),
    AGE,
    ("IP", "string", "Address of the pod", 1),
    ("Node", "string", "Node that the pod is bound to", 1),
    ("Nominated Node", "string", "Node on which room is being made for the pod", 1),
    ("Readiness Gates", "string", "How many readiness gates are met, of how many", 1),
];
const NODE: &[Text] = &[
    NAME,
    ("Status", "string", "Whether the kubelet reports in, and pods may come", 0),
    ("Roles", "string", "What the node is for, by its labels", 0),
    AGE,
    ("Version", "string", "Version of the kubelet", 0),
    ("Internal-IP", "string", "Address inside the cluster", 1),
    ("External-IP", "string", "Address outside the cluster", 1),
    ("OS-Image", "string", "Operating system", 1),
    ("Kernel-Version", "string", "Kernel and architecture", 1),
    ("Container-Runtime", "string", "Container runtime and its version", 1),
];
const EVENT: &[Text] = &[
    ("Last Seen", "string", "When this last happened", 0),
    ("Type", "string", "Normal or Warning", 0),
    ("Reason", "string", "What happened, in one word", 0),
    ("Object", "string", "What it happened to", 0),
    ("Subobject", "string", "Part of the object", 1),
    ("Source", "string", "Who says so", 1),
    ("Message", "string", "What happened, in a sentence", 0),
    ("First Seen", "string", "When this first happened", 1),
    ("Count", "string", "How often this happened", 1),
    ("Name", "string", "Name of the event", 1),
];
const BINDING: &[Text] = &[
    NAME,
    ("Role", "string", "Role that is granted", 0),
    AGE,
    ("Users", "string", "Users that have the role", 1),
    ("Groups", "string", "Groups that have the role", 1),
    ("ServiceAccounts", "string", "Service accounts that have the role", 1),
];
const DEFINITION: &[Text] = &[
    NAME,
    ("Scope", "string", "Namespaced or Cluster", 0),
    ("Versions", "string", "Versions that are served, by name", 0),
    ("Created At", "date", "When the object was created", 0),
    ("Group", "string", "Group of the resource", 1),
    ("Kind", "string", "Kind of the objects", 1),
    ("ShortNames", "string", "Short names of the resource", 1),
    ("Established", "boolean", "Whether the resource is served", 1),
];
/// Kinds without columns of their own: roles and all others.
const OTHER: &[Text] = &[NAME, ("Created At", "date", "When the object was created", 0)];

fn texts(group: &str, kind: &str) -> &'static [Text] {
    match (group, kind) {
        ("", "Secret") => SECRET,
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "ServiceAccount") => SERVICE_ACCOUNT,
        ("", "Namespace") => NAMESPACE,
        ("", "Pod") => POD,
        ("", "Node") => NODE,
        ("" | "events.k8s.io", "Event") => EVENT,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => DEFINITION,
        ("", "LimitRange") => OTHER,
        (_, kind) => super::kind_columns::texts(kind).unwrap_or(OTHER),
    }
}

/// The columns of a built-in kind.
pub fn columns(group: &str, kind: &str) -> Vec<Column> {
    // Upstream marks no column of this one.
    let marks = kind != "StorageVersionMigration";
    texts(group, kind)
        .iter()
        .map(|(name, kind, description, priority)| Column {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            format: if marks && matches!(*name, "Name" | "Attacher") {
                "name".to_owned()
            } else {
                String::new()
            },
            description: (*description).to_owned(),
            priority: *priority,
        })
        .collect()
}
