//! The kinds that are asked about, each with an object of it.

use serde_json::{Value, json};

use super::super::protobuf::{Field, message};

/// One kind, and what an object of it may hold.
pub(super) struct Kind {
    /// Where it is served: `/api/v1` or `/apis/GROUP/VERSION`.
    pub(super) root: &'static str,
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    /// An object without its metadata.
    pub(super) content: fn() -> Value,
    /// A merge patch that changes it.
    pub(super) change: fn() -> Value,
    /// The same content in protobuf, without metadata; nothing for custom resources.
    pub(super) protobuf: fn() -> Vec<u8>,
}

impl Kind {
    /// The collection, in the theme's namespace.
    pub(super) fn collection(&self) -> String {
        if self.namespaced {
            format!("{}/namespaces/$NS/{}", self.root, self.plural)
        } else {
            format!("{}/{}", self.root, self.plural)
        }
    }

    /// One object.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{}", self.collection(), self.name(name))
    }

    /// The name of an object: those without a namespace need one of their own.
    pub(super) fn name(&self, name: &str) -> String {
        match self.plural {
            "customresourcedefinitions" => format!("{name}things.differ.example.com"),
            _ if self.namespaced => name.to_owned(),
            plural => format!("differ-{plural}-{name}"),
        }
    }

    /// An object with metadata besides its name.
    pub(super) fn object_with(&self, name: &str, metadata: Value) -> Value {
        let mut object = (self.content)();
        if self.plural == "customresourcedefinitions" {
            object["spec"]["names"] =
                json!({ "plural": format!("{name}things"), "kind": format!("Thing{name}") });
        }
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = metadata;
        object["metadata"]["name"] = self.name(name).into();
        object
    }

    /// An object.
    pub(super) fn object(&self, name: &str) -> Value {
        self.object_with(name, json!({}))
    }
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

fn rules() -> Value {
    json!({ "rules": [{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"] }] })
}

fn other_rules() -> Value {
    json!({ "rules": [{ "apiGroups": ["example.com"], "resources": ["*"], "verbs": ["*"] }] })
}

fn binding(kind: &str) -> Value {
    json!({
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r" },
        "subjects": [{ "kind": "User", "name": "dora" }],
    })
}

fn other_subjects() -> Value {
    json!({ "subjects": [{ "kind": "Group", "name": "crew" }, { "kind": "ServiceAccount", "name": "x", "namespace": "y" }] })
}

fn rules_bytes() -> Vec<u8> {
    // PolicyRule: verbs 1, apiGroups 2, resources 3.
    let rule = message(&[Field::Text(1, "get"), Field::Text(2, ""), Field::Text(3, "secrets")]);
    message(&[Field::Message(2, rule)])
}

fn binding_bytes(kind: &str) -> Vec<u8> {
    // Subject: kind 1, apiGroup 2, name 3; RoleRef: apiGroup 1, kind 2, name 3.
    let subject = message(&[Field::Text(1, "User"), Field::Text(3, "dora")]);
    let role =
        message(&[Field::Text(1, "rbac.authorization.k8s.io"), Field::Text(2, kind), Field::Text(3, "r")]);
    message(&[Field::Message(2, subject), Field::Message(3, role)])
}

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const RBAC_VERSION: &str = "rbac.authorization.k8s.io/v1";

pub(super) const SECRETS: Kind = Kind {
    root: "/api/v1",
    api_version: "v1",
    kind: "Secret",
    plural: "secrets",
    namespaced: true,
    content: || json!({ "data": { "a": "MQ==", "b": "Mg==" } }),
    change: || json!({ "data": { "a": "Mw==", "c": "NA==" } }),
    protobuf: || {
        // Secret: data 2 (key 1, value 2), type 3.
        let entry = message(&[Field::Text(1, "a"), Field::Text(2, "1")]);
        message(&[Field::Message(2, entry), Field::Text(3, "Opaque")])
    },
};

pub(super) const CONFIG_MAPS: Kind = Kind {
    root: "/api/v1",
    api_version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    namespaced: true,
    content: || json!({ "data": { "a": "1", "b": "<&>" }, "binaryData": { "c": "AAEC" } }),
    change: || json!({ "data": { "a": "3", "d": "ü" } }),
    protobuf: || message(&[Field::Message(2, message(&[Field::Text(1, "a"), Field::Text(2, "1")]))]),
};

pub(super) const NAMESPACES: Kind = Kind {
    root: "/api/v1",
    api_version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    namespaced: false,
    content: || json!({}),
    change: || json!({ "metadata": { "annotations": { "note": "changed" } } }),
    protobuf: nothing,
};

pub(super) const PODS: Kind = Kind {
    root: "/api/v1",
    api_version: "v1",
    kind: "Pod",
    plural: "pods",
    namespaced: true,
    content: || {
        json!({ "spec": {
            "automountServiceAccountToken": false,
            "serviceAccountName": "default",
            "containers": [{ "name": "c", "image": "example.com/c:1", "env": [{ "name": "A", "value": "1" }] }],
        } })
    },
    change: || json!({ "spec": { "containers": [{ "name": "c", "image": "example.com/c:2", "env": [{ "name": "A", "value": "1" }], "imagePullPolicy": "IfNotPresent", "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File" }] } }),
    protobuf: || {
        // PodSpec: containers 2 (name 1, image 2), serviceAccountName 8, automountServiceAccountToken 21.
        let container = message(&[Field::Text(1, "c"), Field::Text(2, "example.com/c:1")]);
        let spec = message(&[Field::Message(2, container), Field::Text(8, "default"), Field::Number(21, 0)]);
        message(&[Field::Message(2, spec)])
    },
};

pub(super) const CUSTOM: Kind = Kind {
    root: "/apis/differ.example.com/v1",
    api_version: "differ.example.com/v1",
    kind: "Widget",
    plural: "widgets",
    namespaced: true,
    content: || json!({ "spec": { "size": 1, "color": "red", "parts": [{ "name": "p", "count": 1 }] } }),
    change: || json!({ "spec": { "size": 2 } }),
    protobuf: nothing,
};

/// Every kind.
pub(super) const KINDS: &[Kind] = &[
    SECRETS,
    CONFIG_MAPS,
    Kind {
        root: "/api/v1",
        api_version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        namespaced: true,
        content: || json!({ "secrets": [{ "name": "s" }], "imagePullSecrets": [{ "name": "p" }] }),
        change: || json!({ "automountServiceAccountToken": false }),
        // ObjectReference.name is 3.
        protobuf: || message(&[Field::Message(2, message(&[Field::Text(3, "s")]))]),
    },
    NAMESPACES,
    Kind {
        root: "/api/v1",
        api_version: "v1",
        kind: "Node",
        plural: "nodes",
        namespaced: false,
        content: || json!({ "spec": { "podCIDR": "10.1.0.0/24", "unschedulable": true } }),
        change: || json!({ "spec": { "unschedulable": null, "taints": [{ "key": "k", "effect": "NoExecute" }] } }),
        protobuf: nothing,
    },
    PODS,
    Kind {
        root: "/api/v1",
        api_version: "v1",
        kind: "Event",
        plural: "events",
        namespaced: true,
        content: || {
            json!({
                "involvedObject": { "kind": "Secret", "namespace": "differ-events", "name": "s", "uid": "u", "resourceVersion": "5" },
                "reason": "Because", "message": "It is so", "type": "Normal", "count": 2,
                "firstTimestamp": "2001-02-03T04:05:06Z", "lastTimestamp": "2001-02-03T04:05:07Z",
                "source": { "component": "c", "host": "h" },
            })
        },
        change: || json!({ "count": 3, "message": "It is still so" }),
        // involvedObject is 2 (its namespace 2), reason 3, message 4.
        protobuf: || {
            let involved = message(&[Field::Text(2, "differ-events")]);
            message(&[Field::Message(2, involved), Field::Text(3, "Because"), Field::Text(4, "It is so")])
        },
    },
    Kind {
        root: "/apis/events.k8s.io/v1",
        api_version: "events.k8s.io/v1",
        kind: "Event",
        plural: "events",
        namespaced: true,
        content: || {
            json!({
                "eventTime": "2001-02-03T04:05:06.000007Z", "reportingController": "example.com/c",
                "reportingInstance": "i", "action": "Acting", "reason": "Because", "type": "Warning",
                "regarding": { "kind": "Secret", "namespace": "differ-newevents", "name": "s" }, "note": "It is so",
            })
        },
        change: || json!({ "series": { "count": 2, "lastObservedTime": "2001-02-03T04:05:07.000007Z" } }),
        protobuf: nothing,
    },
    Kind {
        root: "/apis/coordination.k8s.io/v1",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        plural: "leases",
        namespaced: true,
        content: || {
            json!({ "spec": {
                "holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                "acquireTime": "2001-02-03T04:05:06.000000Z", "renewTime": "2001-02-03T04:05:06.123456Z",
            } })
        },
        change: || json!({ "spec": { "holderIdentity": "you", "leaseTransitions": 2 } }),
        protobuf: || message(&[Field::Message(2, message(&[Field::Text(1, "me"), Field::Number(2, 15)]))]),
    },
    Kind {
        root: RBAC,
        api_version: RBAC_VERSION,
        kind: "Role",
        plural: "roles",
        namespaced: true,
        content: rules,
        change: other_rules,
        protobuf: rules_bytes,
    },
    Kind {
        root: RBAC,
        api_version: RBAC_VERSION,
        kind: "RoleBinding",
        plural: "rolebindings",
        namespaced: true,
        content: || binding("Role"),
        change: other_subjects,
        protobuf: || binding_bytes("Role"),
    },
    Kind {
        root: RBAC,
        api_version: RBAC_VERSION,
        kind: "ClusterRole",
        plural: "clusterroles",
        namespaced: false,
        content: rules,
        change: other_rules,
        protobuf: rules_bytes,
    },
    Kind {
        root: RBAC,
        api_version: RBAC_VERSION,
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        namespaced: false,
        content: || binding("ClusterRole"),
        change: other_subjects,
        protobuf: || binding_bytes("ClusterRole"),
    },
    Kind {
        root: "/apis/apiextensions.k8s.io/v1",
        api_version: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        namespaced: false,
        content: || {
            json!({ "spec": {
                "group": "differ.example.com", "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                }],
            } })
        },
        change: || json!({ "metadata": { "annotations": { "note": "changed" } } }),
        protobuf: nothing,
    },
    CUSTOM,
];
