//! The table of built-in resources.
//!
//! Names, short names, categories and verbs are upstream's; what coffer does not
//! serve (`pods/exec`, `nodes/proxy`, …) is not listed.

use super::info::Behaviour;
use super::row::{Built, PLAIN, Sub, core, status};

/// An hour, upstream's default for events.
const EVENT_TTL_SECONDS: u64 = 3600;

const REVIEW: &[&str] = &["create"];

const fn rbac(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    namespaced: bool,
    go_type: &'static str,
) -> Built {
    Built {
        group: "rbac.authorization.k8s.io",
        namespaced,
        stored: Some(("rbac.authorization.k8s.io", "v1", kind)),
        behaviour: Behaviour { create_on_update: true, go_type, ..PLAIN },
        ..core(kind, plural, singular, &[], go_type)
    }
}

const fn review(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    namespaced: bool,
) -> Built {
    Built { group, namespaced, verbs: REVIEW, stored: None, ..core(kind, plural, singular, &[], "") }
}

/// Every built-in resource.
pub(crate) fn all() -> impl Iterator<Item = &'static Built> {
    BUILT_IN.iter().chain(super::stored::STORED)
}

const BUILT_IN: &[Built] = &[
    core("ConfigMap", "configmaps", "configmap", &["cm"], "core.ConfigMap"),
    Built {
        behaviour: Behaviour { create_on_update: true, go_type: "core.Endpoints", ..PLAIN },
        ..core("Endpoints", "endpoints", "endpoints", &["ep"], "core.Endpoints")
    },
    Built {
        behaviour: Behaviour {
            create_on_update: true,
            go_type: "core.Event",
            ttl_seconds: EVENT_TTL_SECONDS,
            ..PLAIN
        },
        ..core("Event", "events", "event", &["ev"], "core.Event")
    },
    Built {
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[
            Sub { name: "finalize", body: None, kind: "Namespace", verbs: &["update"] },
            status("Namespace"),
        ],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.Namespace", ..PLAIN },
        ..core("Namespace", "namespaces", "namespace", &["ns"], "core.Namespace")
    },
    Built {
        namespaced: false,
        subresources: &[status("Node")],
        ..core("Node", "nodes", "node", &["no"], "core.Node")
    },
    Built {
        categories: &["all"],
        subresources: &[
            Sub { name: "binding", body: None, kind: "Binding", verbs: REVIEW },
            Sub { name: "log", body: None, kind: "Pod", verbs: &["get"] },
            status("Pod"),
        ],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.Pod", ..PLAIN },
        ..core("Pod", "pods", "pod", &["po"], "core.Pod")
    },
    core("Secret", "secrets", "secret", &[], "core.Secret"),
    Built {
        subresources: &[Sub {
            name: "token",
            body: Some(("authentication.k8s.io", "v1")),
            kind: "TokenRequest",
            verbs: REVIEW,
        }],
        behaviour: Behaviour { returns_deleted: true, go_type: "core.ServiceAccount", ..PLAIN },
        ..core("ServiceAccount", "serviceaccounts", "serviceaccount", &["sa"], "core.ServiceAccount")
    },
    Built {
        categories: &["all"],
        subresources: &[status("Service")],
        behaviour: Behaviour {
            create_on_update: true,
            returns_deleted: true,
            go_type: "core.Service",
            ..PLAIN
        },
        ..core("Service", "services", "service", &["svc"], "core.Service")
    },
    Built {
        group: "events.k8s.io",
        behaviour: Behaviour {
            create_on_update: true,
            go_type: "core.Event",
            ttl_seconds: EVENT_TTL_SECONDS,
            ..PLAIN
        },
        ..core("Event", "events", "event", &["ev"], "core.Event")
    },
    review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview", false),
    review("authentication.k8s.io", "TokenReview", "tokenreviews", "tokenreview", false),
    review(
        "authorization.k8s.io",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        true,
    ),
    review(
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        false,
    ),
    review(
        "authorization.k8s.io",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        false,
    ),
    review(
        "authorization.k8s.io",
        "SubjectAccessReview",
        "subjectaccessreviews",
        "subjectaccessreview",
        false,
    ),
    Built {
        group: "coordination.k8s.io",
        stored: Some(("coordination.k8s.io", "v1", "Lease")),
        behaviour: Behaviour {
            create_on_update: true,
            unconditional_update: false,
            go_type: "coordination.Lease",
            ..PLAIN
        },
        ..core("Lease", "leases", "lease", &[], "coordination.Lease")
    },
    rbac("ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding", false, "rbac.ClusterRoleBinding"),
    rbac("ClusterRole", "clusterroles", "clusterrole", false, "rbac.ClusterRole"),
    rbac("RoleBinding", "rolebindings", "rolebinding", true, "rbac.RoleBinding"),
    rbac("Role", "roles", "role", true, "rbac.Role"),
    Built {
        group: "apiextensions.k8s.io",
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[status("CustomResourceDefinition")],
        // Upstream hashes (and stores) the oldest version.
        stored: Some(("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition")),
        behaviour: Behaviour {
            unconditional_update: false,
            go_type: "apiextensions.CustomResourceDefinition",
            ..PLAIN
        },
        ..core(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "customresourcedefinition",
            &["crd", "crds"],
            "",
        )
    },
];

/// Groups and their versions in the order of discovery.
pub(crate) fn groups_in_order() -> &'static [(&'static str, &'static [&'static str])] {
    &[
        ("", &["v1"]),
        ("apiregistration.k8s.io", &["v1"]),
        ("apps", &["v1"]),
        ("events.k8s.io", &["v1"]),
        ("authentication.k8s.io", &["v1"]),
        ("authorization.k8s.io", &["v1"]),
        ("autoscaling", &["v2", "v1"]),
        ("batch", &["v1"]),
        ("certificates.k8s.io", &["v1"]),
        ("networking.k8s.io", &["v1"]),
        ("policy", &["v1"]),
        ("rbac.authorization.k8s.io", &["v1"]),
        ("storage.k8s.io", &["v1"]),
        ("admissionregistration.k8s.io", &["v1"]),
        ("apiextensions.k8s.io", &["v1"]),
        ("scheduling.k8s.io", &["v1"]),
        ("coordination.k8s.io", &["v1"]),
        ("node.k8s.io", &["v1"]),
        ("discovery.k8s.io", &["v1"]),
        ("resource.k8s.io", &["v1"]),
        ("flowcontrol.apiserver.k8s.io", &["v1"]),
        ("storagemigration.k8s.io", &["v1"]),
    ]
}
