//! What is served: one entry per resource, with its store and its rules.

pub(crate) mod builtin;
pub(crate) mod custom;
pub(crate) mod info;
pub(crate) mod objects;
pub(crate) mod printer;
pub(crate) mod row;
pub(crate) mod scale;
mod stored;
pub(crate) mod strategy;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use coffer_store::registry::Registry;
use parking_lot::Mutex;

use self::builtin::groups_in_order;
use self::info::ResourceInfo;
use self::printer::Printer;
use self::strategy::Strategy;
use crate::negotiate::Offers;
use crate::ports::{CreateOnly, GroupResource, ServedResource};
use crate::wire::Wire;

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
    /// The subresource `scale`.
    pub(crate) scale: Option<Box<scale::Scale>>,
    /// Nothing new may be created: the definition of the custom resource is being deleted.
    pub(crate) terminating: bool,
    /// What a client is told of a deprecated version.
    pub(crate) deprecation: Option<String>,
    /// `resourceVersion` of the definition of a custom resource.
    pub(crate) definition_version: String,
}

impl Resource {
    /// The store. Asked for only where the verbs say that there is one.
    pub(crate) fn registry(&self) -> Result<&Arc<dyn Registry>, coffer_types::Status> {
        self.registry.as_ref().ok_or_else(crate::respond::no_such_method)
    }

    /// The verbs as discovery tells them.
    pub(crate) fn told_verbs(&self) -> Vec<&'static str> {
        let ends = |verb: &&&str| !self.terminating || !matches!(**verb, "create" | "patch" | "update");
        self.info.verbs.iter().filter(ends).copied().collect()
    }
}

/// Everything that is served at one moment.
#[derive(Default)]
pub(crate) struct Served {
    /// What can be listed and deleted, each in its preferred version.
    collected: Arc<[ServedResource]>,
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// Groups of custom resources.
    custom_groups: Vec<CustomGroup>,
    /// What tells a version of an OpenAPI document from the one before, by its path; found out when
    /// somebody asks.
    pub(crate) openapi: OnceLock<BTreeMap<String, String>>,
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
    fn new(
        resources: BTreeMap<(String, String, String), Arc<Resource>>,
        custom_groups: Vec<CustomGroup>,
    ) -> Self {
        let mut served =
            Self { collected: Arc::default(), resources, custom_groups, openapi: OnceLock::new() };
        served.collected = served.all().filter_map(|resource| served.as_collected(resource)).collect();
        served
    }

    fn as_collected(&self, resource: &Arc<Resource>) -> Option<ServedResource> {
        let info = &resource.info;
        let name = info.name();
        let preferred = self.preferred(&name).is_some_and(|other| Arc::ptr_eq(other, resource));
        // The two kinds of Event are one and the same store.
        let alias = info.group == "events.k8s.io";
        let collected = preferred && !alias && info.verbs.contains(&"list") && info.verbs.contains(&"delete");
        collected.then(|| ServedResource {
            name,
            version: info.version.clone(),
            kind: info.kind.clone(),
            namespaced: info.namespaced,
        })
    }

    /// Every resource that can be listed and deleted; the same allocation until that changes.
    pub(crate) fn collected(&self) -> Arc<[ServedResource]> {
        Arc::clone(&self.collected)
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource in whichever version is preferred.
    pub(crate) fn preferred(&self, name: &GroupResource) -> Option<&Arc<Resource>> {
        let find = |version: &str| self.find(&name.group, version, &name.resource);
        let built_in = groups_in_order().iter().filter(|(group, _)| *group == name.group);
        built_in.flat_map(|(_, versions)| *versions).find_map(|version| find(version)).or_else(|| {
            let custom = self.custom_groups.iter().filter(|custom| custom.name == name.group);
            custom.flat_map(|custom| &custom.versions).find_map(|version| find(version))
        })
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
        Self { served: ArcSwap::from_pointee(Served::new(resources, Vec::new())), writing: Mutex::new(()) }
    }

    pub(crate) fn load(&self) -> Arc<Served> {
        self.served.load_full()
    }

    /// Whether only custom resources are in the group.
    pub(crate) fn is_custom_group(&self, group: &str) -> bool {
        self.served.load().is_custom_group(group)
    }

    /// Whether nothing has changed since that was loaded.
    pub(crate) fn is_current(&self, served: &Arc<Served>) -> bool {
        Arc::ptr_eq(&self.served.load(), served)
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
        self.served.store(Arc::new(Served::new(resources, groups)));
    }
}

fn key(info: &ResourceInfo) -> (String, String, String) {
    (info.group.clone(), info.version.clone(), info.plural.clone())
}
