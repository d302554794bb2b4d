//! Whether an object lies where its own names say.

use coffer_store::stored_resource::StoredResource;
use coffer_types::codec::identity::Identity;

/// What lies at a key although it is the object of another one: `<namespace>/<name>` of it, behind its kind
/// where only that tells. `None` when it is in its place, or has no name to tell.
///
/// Upstream's keys end with the object's own names, whatever stands before them. Of the kinds it is Secrets
/// that must be nowhere else, and nothing else in their place: under another resource their values are read by
/// whoever may read that one.
pub(crate) fn foreign(
    etcd_key: &str,
    resource: Option<StoredResource<'_>>,
    object: &Identity,
) -> Option<String> {
    // Kinds that are no objects of a namespace (ranges of addresses, leases of servers) have no name.
    if object.name.is_empty() {
        return None;
    }
    let own = match object.namespace.as_str() {
        "" => object.name.clone(),
        namespace => format!("{namespace}/{}", object.name),
    };
    if !etcd_key.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('/')) {
        return Some(own);
    }
    let is_secret = object.kind == "Secret" && object.api_version == "v1";
    let among_secrets = resource? == SECRETS;
    (is_secret != among_secrets).then(|| format!("{} {own}", object.kind))
}

const SECRETS: StoredResource<'static> = StoredResource { group: "", resource: "secrets" };

#[cfg(test)]
mod tests {
    use coffer_store::stored_resource::stored_resource;

    use super::*;

    #[test]
    fn an_object_is_in_its_place_when_its_names_and_kind_fit_the_key() {
        for (etcd_key, (version, kind, namespace, name), expected) in [
            ("/registry/secrets/ns/db", ("v1", "Secret", "ns", "db"), None),
            ("/registry/namespaces/ns", ("v1", "Namespace", "", "ns"), None),
            ("/registry/services/specs/ns/db", ("v1", "Service", "ns", "db"), None),
            ("/registry/example.com/secrets/ns/db", ("example.com/v1", "Secret", "ns", "db"), None),
            ("/registry/ranges/serviceips", ("v1", "RangeAllocation", "", ""), None),
            ("/registry/secrets/ns/copy", ("v1", "Secret", "ns", "db"), Some("ns/db")),
            ("/registry/secrets/other/db", ("v1", "Secret", "ns", "db"), Some("ns/db")),
            ("/registry/secrets/ns/xdb", ("v1", "Secret", "", "db"), Some("db")),
            ("/registry/configmaps/ns/db", ("v1", "Secret", "ns", "db"), Some("Secret ns/db")),
            ("/registry/secrets/ns/db", ("v1", "ConfigMap", "ns", "db"), Some("ConfigMap ns/db")),
        ] {
            let object = Identity {
                api_version: version.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            };
            let resource = stored_resource("/registry/", etcd_key).map(|(resource, _)| resource);
            assert_eq!(foreign(etcd_key, resource, &object).as_deref(), expected, "{etcd_key}");
        }
    }
}
