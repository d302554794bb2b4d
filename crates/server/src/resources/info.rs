//! What is known of a resource without its store and its codec.

use crate::negotiate::Offers;
use crate::ports::GroupResource;

/// Verbs of a stored built-in resource, alphabetical as upstream lists them.
pub(crate) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// What discovery says of a resource, and how it behaves.
#[derive(Debug, Clone)]
pub(crate) struct ResourceInfo {
    /// API group; "" is core.
    pub(crate) group: String,
    /// Version that is served.
    pub(crate) version: String,
    /// Kind of one object.
    pub(crate) kind: String,
    /// Kind of a list.
    pub(crate) list_kind: String,
    /// Plural, the name in paths.
    pub(crate) plural: String,
    /// Singular.
    pub(crate) singular: String,
    /// Short names.
    pub(crate) short_names: Vec<String>,
    /// Categories.
    pub(crate) categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Verbs.
    pub(crate) verbs: Vec<&'static str>,
    /// Subresources.
    pub(crate) subresources: Vec<SubresourceInfo>,
    /// `group/version/kind` that is stored, for `storageVersionHash`; "" when nothing is.
    pub(crate) storage_version: String,
    /// Details of behaviour.
    pub(crate) behaviour: Behaviour,
}

/// How a resource differs from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behaviour {
    /// PUT creates a missing object.
    pub(crate) create_on_update: bool,
    /// PUT without a `resourceVersion` overwrites.
    pub(crate) unconditional_update: bool,
    /// DELETE answers with the object instead of a Status.
    pub(crate) returns_deleted: bool,
    /// Go's type, as upstream prints it in negotiation errors.
    pub(crate) go_type: &'static str,
    /// What can be answered.
    pub(crate) offers: Offers,
    /// Seconds after which stored objects end; 0 for never.
    pub(crate) ttl_seconds: u64,
}

/// A subresource as discovery lists it.
#[derive(Debug, Clone)]
pub(crate) struct SubresourceInfo {
    /// Name, such as `status`.
    pub(crate) name: String,
    /// Group of the body, when it is not the resource's.
    pub(crate) group: String,
    /// Version of the body, when it is not the resource's.
    pub(crate) version: String,
    /// Kind of the body.
    pub(crate) kind: String,
    /// Verbs.
    pub(crate) verbs: Vec<&'static str>,
}

impl ResourceInfo {
    /// Group and plural.
    pub(crate) fn name(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.plural)
    }

    /// `v1` or `group/version`.
    pub(crate) fn api_version(&self) -> String {
        coffer_types::meta::api_version(&self.group, &self.version)
    }

    /// The subresource of that name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

/// Whether objects are stored below their group: custom resources, their definitions and APIServices.
pub(crate) fn is_extension(info: &ResourceInfo) -> bool {
    info.behaviour.offers == Offers::Custom
        || matches!(info.group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io")
}
