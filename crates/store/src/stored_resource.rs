//! Which resource a stored key belongs to: the way back from [`crate::key`].
//!
//! The path of a built-in resource does not tell its group, so the groups of upstream's
//! storage paths (Kubernetes 1.37) stand here. Paths that are not in the table belong to the core group.

use std::fmt;

/// The resource of a key, and what of the key names the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredResource<'k> {
    /// API group; "" for core.
    pub group: &'k str,
    /// Plural.
    pub resource: &'k str,
}

impl StoredResource<'_> {
    /// Whether this is how `text` is written.
    pub fn is(&self, text: &str) -> bool {
        match text.split_once('.') {
            Some((resource, group)) => !group.is_empty() && resource == self.resource && group == self.group,
            None => text == self.resource && self.group.is_empty(),
        }
    }
}

impl fmt::Display for StoredResource<'_> {
    /// `secrets` or `deployments.apps`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => formatter.write_str(self.resource),
            group => write!(formatter, "{}.{group}", self.resource),
        }
    }
}

/// Paths that are not the plural, or take two segments.
const IRREGULAR: [(&str, &str, &str); 5] = [
    ("controllers/", "", "replicationcontrollers"),
    ("services/endpoints/", "", "endpoints"),
    ("minions/", "", "nodes"),
    ("services/specs/", "", "services"),
    ("ingress/", "networking.k8s.io", "ingresses"),
];

/// The groups of built-in resources outside of core.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("certificates.k8s.io", &["certificatesigningrequests", "clustertrustbundles", "podcertificaterequests"]),
    ("coordination.k8s.io", &["leasecandidates", "leases"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("internal.apiserver.k8s.io", &["storageversions"]),
    ("networking.k8s.io", &["ingressclasses", "ipaddresses", "networkpolicies", "servicecidrs"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("policy", &["poddisruptionbudgets"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    (
        "resource.k8s.io",
        &["deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
    ),
    ("scheduling.k8s.io", &["priorityclasses"]),
    (
        "storage.k8s.io",
        &[
            "csidrivers",
            "csinodes",
            "csistoragecapacities",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

/// The resource of a key, and the rest: `<namespace>/<name>` or `<name>`. `None` for a key
/// outside of `root` (`/registry/`), or one that is no object's.
pub fn stored_resource<'k>(root: &str, key: &'k str) -> Option<(StoredResource<'k>, &'k str)> {
    let path = key.strip_prefix(root)?;
    for (prefix, group, resource) in IRREGULAR {
        if let Some(rest) = path.strip_prefix(prefix) {
            return named(StoredResource { group, resource }, rest);
        }
    }
    let (first, rest) = path.split_once('/')?;
    if first.contains('.') {
        let (resource, rest) = rest.split_once('/')?;
        return named(StoredResource { group: first, resource }, rest);
    }
    let group =
        GROUPS.iter().find(|(_, resources)| resources.contains(&first)).map_or("", |(group, _)| group);
    named(StoredResource { group, resource: first }, rest)
}

fn named<'k>(resource: StoredResource<'k>, rest: &'k str) -> Option<(StoredResource<'k>, &'k str)> {
    (!rest.is_empty()).then_some((resource, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Origin, resource_path};

    fn check(key: &str, expected: Option<(&str, &str)>) {
        let found = stored_resource("/registry/", key).map(|(resource, rest)| (resource.to_string(), rest));
        assert_eq!(found.as_ref().map(|(resource, rest)| (resource.as_str(), *rest)), expected, "{key}");
    }

    #[test]
    fn a_key_tells_its_resource() {
        check("/registry/secrets/ns/db", Some(("secrets", "ns/db")));
        check("/registry/minions/one", Some(("nodes", "one")));
        check("/registry/services/specs/ns/db", Some(("services", "ns/db")));
        check("/registry/services/endpoints/ns/db", Some(("endpoints", "ns/db")));
        check("/registry/ingress/ns/db", Some(("ingresses.networking.k8s.io", "ns/db")));
        check("/registry/deployments/ns/db", Some(("deployments.apps", "ns/db")));
        let custom = "/registry/external-secrets.io/externalsecrets/ns/db";
        check(custom, Some(("externalsecrets.external-secrets.io", "ns/db")));
        let definition = "/registry/apiextensions.k8s.io/customresourcedefinitions/a.b";
        check(definition, Some(("customresourcedefinitions.apiextensions.k8s.io", "a.b")));
        for other in
            ["compact_rev_key", "/registry/", "/registry/secrets/", "/registry/health", "/other/secrets/a/b"]
        {
            check(other, None);
        }
    }

    /// The way there and the way back agree.
    #[test]
    fn every_built_in_path_is_found_again() {
        let regular =
            GROUPS.iter().flat_map(|(group, resources)| resources.iter().map(move |one| (*group, *one)));
        let irregular = IRREGULAR.iter().map(|(_, group, resource)| (*group, *resource));
        for (group, resource) in regular.chain(irregular) {
            let path = resource_path(group, resource, Origin::BuiltIn).expect("a path");
            let key = format!("/registry/{path}/a/b");
            let expected = StoredResource { group, resource };
            assert_eq!(stored_resource("/registry/", &key), Some((expected, "a/b")));
            assert!(expected.is(&expected.to_string()));
            for other in
                [String::new(), format!("{expected}.x"), format!("x{expected}"), format!("{expected}.")]
            {
                assert!(!expected.is(&other), "{other}");
            }
        }
    }
}
