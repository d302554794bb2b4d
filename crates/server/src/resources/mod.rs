//! What is served: one entry per resource, with its store and its rules.

mod builtin;
pub(crate) mod custom;
pub(crate) mod objects;
pub(crate) mod printer;
pub(crate) mod strategy;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use coffer_store::registry::Registry;
use parking_lot::Mutex;

pub(crate) use self::builtin::{BUILT_IN, Built, groups_in_order};
use self::printer::Printer;
use self::strategy::Strategy;
use crate::negotiate::Offers;
use crate::ports::{CreateOnly, GroupResource};
use crate::wire::Wire;

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

/// Whether objects are stored below their group: custom resources and their definitions.
pub(crate) fn is_extension(info: &ResourceInfo) -> bool {
    info.behaviour.offers == Offers::Custom || info.group == "apiextensions.k8s.io"
}

/// One served resource.
pub(crate) struct Resource {
    /// Description.
    pub(crate) info: ResourceInfo,
    /// Its store; `None` when nothing is stored.
    pub(crate) registry: Option<Arc<dyn Registry>>,
    /// How its objects are read and written.
    pub(crate) wire: Wire,
    /// Its rules.
    pub(crate) strategy: Arc<dyn Strategy>,
    /// What answers a POST when nothing is stored.
    pub(crate) create_only: Option<Arc<dyn CreateOnly>>,
    /// What answers a POST to a subresource, by its name.
    pub(crate) create_only_subresources: BTreeMap<String, Arc<dyn CreateOnly>>,
    /// How its objects are printed.
    pub(crate) printer: Printer,
    /// `resourceVersion` of the definition of a custom resource.
    pub(crate) definition_version: String,
}

impl Resource {
    /// The store. Asked for only where the verbs say that there is one.
    pub(crate) fn registry(&self) -> Result<&Arc<dyn Registry>, coffer_types::Status> {
        self.registry.as_ref().ok_or_else(crate::respond::no_such_method)
    }
}

/// Everything that is served at one moment.
#[derive(Default)]
pub(crate) struct Served {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// Groups of custom resources.
    custom_groups: Vec<CustomGroup>,
}

/// A group that only custom resources have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CustomGroup {
    /// Name.
    pub(crate) name: String,
    /// Versions, preferred first.
    pub(crate) versions: Vec<String>,
}

/// Group with its versions, preferred first, in the order of discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) versions: Vec<String>,
}

impl Served {
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource in whichever version is preferred.
    pub(crate) fn preferred(&self, name: &GroupResource) -> Option<&Arc<Resource>> {
        let versions = self.groups().into_iter().find(|group| group.name == name.group)?.versions;
        versions.iter().find_map(|version| self.find(&name.group, version, &name.resource))
    }

    pub(crate) fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> + 'a {
        self.resources
            .iter()
            .filter(move |((g, v, _), _)| g == group && v == version)
            .map(|(_, resource)| resource)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Groups in the order of discovery: core first, then upstream's order, then custom ones by name.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = groups_in_order()
            .iter()
            .filter(|(name, _)| self.resources.keys().any(|(group, _, _)| group == name))
            .map(|(name, versions)| Group {
                name: (*name).to_owned(),
                versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            })
            .collect();
        for custom in &self.custom_groups {
            groups.push(Group { name: custom.name.clone(), versions: custom.versions.clone() });
        }
        groups
    }

    pub(crate) fn is_custom_group(&self, group: &str) -> bool {
        self.custom_groups.iter().any(|custom| custom.name == group)
    }
}

/// The resources, swapped as a whole when a custom one comes or goes.
#[derive(Default)]
pub(crate) struct Resources {
    served: ArcSwap<Served>,
    /// One writer at a time.
    writing: Mutex<()>,
}

impl Resources {
    pub(crate) fn new(built_in: Vec<Arc<Resource>>) -> Self {
        let resources = built_in.into_iter().map(|resource| (key(&resource.info), resource)).collect();
        Self {
            served: ArcSwap::from_pointee(Served { resources, custom_groups: Vec::new() }),
            writing: Mutex::new(()),
        }
    }

    pub(crate) fn load(&self) -> Arc<Served> {
        self.served.load_full()
    }

    pub(crate) fn preferred(&self, name: &GroupResource) -> Option<Arc<Resource>> {
        self.served.load().preferred(name).cloned()
    }

    /// Replaces all custom resources. A built-in resource cannot be replaced.
    pub(crate) fn set_custom(&self, custom: Vec<Arc<Resource>>, groups: Vec<CustomGroup>) {
        let _writing = self.writing.lock();
        let current = self.served.load();
        let mut resources: BTreeMap<_, _> = current
            .resources
            .iter()
            .filter(|(_, resource)| resource.info.behaviour.offers != Offers::Custom)
            .map(|(key, resource)| (key.clone(), Arc::clone(resource)))
            .collect();
        for resource in custom {
            resources.entry(key(&resource.info)).or_insert(resource);
        }
        self.served.store(Arc::new(Served { resources, custom_groups: groups }));
    }
}

fn key(info: &ResourceInfo) -> (String, String, String) {
    (info.group.clone(), info.version.clone(), info.plural.clone())
}
