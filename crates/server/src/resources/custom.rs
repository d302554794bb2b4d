//! Custom resources: what is established is served without a restart.
//!
//! Whether a definition is established is decided by a controller, not here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coffer_store::Storage;
use coffer_store::key::Origin;
use coffer_store::registry::{Registry, ResourceConfig};
use coffer_types::Value;
use coffer_types::fields::scale::ReplicasPaths;
use coffer_types::meta::Meta as _;
use coffer_types::names;
use coffer_types::validation::field::{FieldError, FieldErrors};
use coffer_types::validation::meta::{self, MetaRules};
use futures::StreamExt as _;

use super::info::{Behaviour, ResourceInfo, SubresourceInfo};
use super::objects::StoredObjects;
use super::printer::Printer;
use super::scale::Scale;
use super::strategy::Strategy;
use super::{CustomGroup, Resource};
use crate::controllers::custom_resources::FINALIZER;
use crate::conversion::Converter;
use crate::conversion::registry::Converted;
use crate::crd::columns::Columns;
use crate::crd::names::is_established;
use crate::crd::scale::ScalePaths;
use crate::crd::selectable::SelectableField;
use crate::crd::{definition, resource};
use crate::negotiate::Offers;
use crate::ports::{Change, GroupResource, Interest, Objects};
use crate::state::Server;
use crate::webhook::Services;
use crate::wire::schemas::Schemas;
use crate::wire::{CustomCodec, CustomState, CustomWire, StorageCodec, Wire};

/// Verbs of a custom resource, in upstream's order.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Verbs of a subresource.
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];

fn definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Follows the definitions.
pub(crate) struct CustomResources {
    server: Arc<Server>,
    storage: Arc<Storage>,
    objects: Arc<StoredObjects>,
    definitions: BTreeMap<String, Value>,
    served: BTreeMap<String, Vec<Arc<Resource>>>,
    opened: BTreeMap<String, Opened>,
}

/// An open store of custom resources.
struct Opened {
    group: String,
    plural: String,
    /// The definition that it was opened for.
    uid: String,
    /// What its cache knows of the objects.
    selection: Vec<Value>,
    codec: Arc<CustomCodec>,
}

impl CustomResources {
    /// Starts to follow the definitions, until the server stops.
    pub(crate) fn start(server: Arc<Server>, storage: Arc<Storage>, objects: Arc<StoredObjects>) {
        let mut follower = Self {
            server,
            storage,
            objects,
            definitions: BTreeMap::new(),
            served: BTreeMap::new(),
            opened: BTreeMap::new(),
        };
        tokio::spawn(async move { follower.run().await });
    }

    async fn run(&mut self) {
        let mut changes = self.objects.watch(&definitions(), Interest::Whole);
        loop {
            let change = tokio::select! {
                () = self.server.stop.cancelled() => return,
                change = changes.next() => change,
            };
            let Some(change) = change else { return };
            match change {
                Change::Reset(objects) => {
                    self.definitions =
                        objects.into_iter().map(|object| (object.name().to_owned(), object)).collect();
                }
                Change::Applied(object) => {
                    self.definitions.insert(object.name().to_owned(), *object);
                }
                Change::Deleted(object) => {
                    self.definitions.remove(object.name());
                }
            }
            self.publish();
        }
    }

    /// Serves what is established, and nothing else.
    fn publish(&mut self) {
        let mut served = BTreeMap::new();
        let definitions = std::mem::take(&mut self.definitions);
        for (name, definition) in &definitions {
            if !is_established(definition) {
                continue;
            }
            let unchanged = self
                .served
                .get(name)
                .filter(|resources| {
                    resources
                        .first()
                        .is_some_and(|one| one.definition_version == definition.resource_version())
                })
                .cloned();
            match unchanged {
                Some(resources) => {
                    served.insert(name.clone(), resources);
                }
                None => match self.resources(definition) {
                    Ok(resources) => {
                        served.insert(name.clone(), resources);
                    }
                    Err(error) => tracing::warn!(name, %error, "custom resource cannot be served"),
                },
            }
        }
        self.definitions = definitions;
        self.opened.retain(|name, opened| {
            let stays = served.contains_key(name);
            if !stays {
                self.storage.close(&opened.group, &opened.plural);
            }
            stays
        });
        self.served = served;
        let all = self.served.values().flatten().cloned().collect();
        self.server.resources.set_custom(all, self.groups());
    }

    fn groups(&self) -> Vec<CustomGroup> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for resource in self.served.values().flatten() {
            groups.entry(resource.info.group.clone()).or_default().insert(resource.info.version.clone());
        }
        groups
            .into_iter()
            .map(|(name, versions)| {
                let mut versions: Vec<String> = versions.into_iter().collect();
                versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
                CustomGroup { name, versions }
            })
            .collect()
    }

    /// The codec of a definition's store. A store whose cache no longer fits is closed.
    fn codec(&mut self, definition: &Value, state: CustomState) -> Arc<CustomCodec> {
        let (name, selection) = (definition.name(), selection(definition));
        if let Some(opened) = self.opened.get(name) {
            if opened.uid == definition.uid() && opened.selection == selection {
                opened.codec.set(state);
                return Arc::clone(&opened.codec);
            }
            self.storage.close(&opened.group, &opened.plural);
        }
        let codec = Arc::new(CustomCodec::new(state));
        let opened = Opened {
            group: definition.str_at(&["spec", "group"]).to_owned(),
            plural: definition.str_at(&["spec", "names", "plural"]).to_owned(),
            uid: definition.uid().to_owned(),
            selection,
            codec: Arc::clone(&codec),
        };
        self.opened.insert(name.to_owned(), opened);
        codec
    }

    /// One resource for each served version.
    fn resources(&mut self, definition: &Value) -> Result<Vec<Arc<Resource>>, String> {
        let group = definition.str_at(&["spec", "group"]).to_owned();
        let plural = definition.str_at(&["spec", "names", "plural"]).to_owned();
        let kind = definition.str_at(&["spec", "names", "kind"]).to_owned();
        let namespaced = definition.str_at(&["spec", "scope"]) == "Namespaced";
        let versions = definition::versions(definition);
        let storage_version = versions
            .iter()
            .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
            .map(|version| version.str_at(&["name"]).to_owned())
            .ok_or("no version is stored")?;
        let schemas: BTreeMap<String, Option<Value>> = versions
            .iter()
            .map(|version| {
                let api_version = coffer_types::meta::api_version(&group, version.str_at(&["name"]));
                (api_version, version.at(&["schema", "openAPIV3Schema"]).cloned())
            })
            .collect();
        let schemas = Arc::new(Schemas::new(schemas));
        let services = Arc::new(Services(Arc::clone(&self.objects) as Arc<dyn Objects>));
        let (clock, random) = (Arc::clone(&self.server.clock), Arc::clone(&self.server.random));
        let converter =
            Converter::of(definition, Arc::clone(&schemas), services, clock, random).map(Arc::new);
        let wires: BTreeMap<&str, Arc<CustomWire>> = versions
            .iter()
            .map(|version| {
                let names = [group.as_str(), &kind, &storage_version];
                let wire =
                    CustomWire::new(names, namespaced, version, Arc::clone(&schemas), converter.clone());
                (version.str_at(&["name"]), Arc::new(wire))
            })
            .collect();
        let stored = wires.get(storage_version.as_str()).cloned().ok_or("no version is stored")?;
        // What is converted is selected by what comes of it.
        let selecting = match &converter {
            Some(_) => Vec::new(),
            None => wires.values().filter(|wire| wire.selects()).cloned().collect(),
        };
        let codec = self.codec(definition, CustomState { stored, selecting });
        let store = self
            .storage
            .open(ResourceConfig {
                group: group.clone(),
                resource: plural.clone(),
                origin: Origin::Extension,
                namespaced,
                codec: Arc::new(StorageCodec::Custom(codec)),
                ttl_seconds: 0,
            })
            .map_err(|error| error.to_string())?;
        let terminating = definition.deletion_timestamp().is_some();
        let mut managed = ReplicasPaths::default();
        for version in versions {
            let names = ScalePaths::of_version(version).map(|paths| paths.names());
            let api_version = coffer_types::meta::api_version(&group, version.str_at(&["name"]));
            managed.insert(api_version, names.as_deref());
        }
        let managed = Arc::new(managed);
        let texts = |path: &[&str]| -> Vec<String> {
            let items = definition.at(path).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut resources = Vec::new();
        for version in versions {
            if version.get("served").and_then(Value::as_bool) != Some(true) {
                continue;
            }
            let name = version.str_at(&["name"]).to_owned();
            let scale = ScalePaths::of_version(version);
            let has_status = version.at(&["subresources", "status"]).is_some_and(|status| !status.is_null());
            let mut list_kind = definition.str_at(&["spec", "names", "listKind"]).to_owned();
            if list_kind.is_empty() {
                list_kind = format!("{kind}List");
            }
            let info = ResourceInfo {
                group: group.clone(),
                version: name.clone(),
                kind: kind.clone(),
                list_kind,
                plural: plural.clone(),
                singular: definition.str_at(&["spec", "names", "singular"]).to_owned(),
                short_names: texts(&["spec", "names", "shortNames"]),
                categories: texts(&["spec", "names", "categories"]),
                namespaced,
                verbs: VERBS.to_vec(),
                subresources: subresources(&kind, has_status, scale.is_some()),
                storage_version: format!("{group}/{storage_version}/{kind}"),
                behaviour: Behaviour {
                    create_on_update: false,
                    unconditional_update: false,
                    returns_deleted: false,
                    go_type: "",
                    offers: Offers::Custom,
                    ttl_seconds: 0,
                },
            };
            let wire = wires.get(info.version.as_str()).cloned().ok_or("no such version")?;
            let registry: Arc<dyn Registry> = match &converter {
                None => Arc::clone(&store) as _,
                Some(converter) => {
                    let storage = coffer_types::meta::api_version(&group, &storage_version);
                    let stored = Arc::clone(&store) as _;
                    let root = format!("/{group}/{plural}/");
                    Arc::new(Converted::new(stored, Arc::clone(converter), Arc::clone(&wire), storage, root))
                }
            };
            let strategy =
                CustomStrategy { namespaced, has_status, scale: scale.clone(), wire: Arc::clone(&wire) };
            let scale = scale.and_then(|paths| Scale::new(paths, Arc::clone(&managed), &info)).map(Box::new);
            resources.push(Arc::new(Resource {
                info,
                registry: Some(registry),
                wire: Wire::Custom(wire),
                strategy: Arc::new(strategy),
                create_only: None,
                create_only_subresources: BTreeMap::new(),
                printer: Printer::Custom(Arc::new(Columns::of_version(version))),
                scale,
                terminating,
                deprecation: deprecation(version, versions, &group, &kind),
                definition_version: definition.resource_version().to_owned(),
            }));
        }
        Ok(resources)
    }
}

/// What a client of a deprecated version is told.
fn deprecation(version: &Value, versions: &[Value], group: &str, kind: &str) -> Option<String> {
    let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool) == Some(true);
    if !flag(version, "deprecated") {
        return None;
    }
    if let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) {
        return Some(warning.to_owned());
    }
    let name = |version: &Value| version.str_at(&["name"]).to_owned();
    let own = name(version);
    let better = versions
        .iter()
        .filter(|other| flag(other, "served") && !flag(other, "deprecated"))
        .map(name)
        .filter(|other| version_rank(&own) < version_rank(other))
        .max_by_key(|other| version_rank(other));
    let advice = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(format!("{group}/{own} {kind} is deprecated{advice}"))
}

fn subresources(kind: &str, has_status: bool, has_scale: bool) -> Vec<SubresourceInfo> {
    let mut subresources = Vec::new();
    if has_status {
        subresources.push(SubresourceInfo {
            name: "status".to_owned(),
            group: String::new(),
            version: String::new(),
            kind: kind.to_owned(),
            verbs: STATUS_VERBS.to_vec(),
        });
    }
    if has_scale {
        subresources.push(SubresourceInfo {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: STATUS_VERBS.to_vec(),
        });
    }
    subresources
}

/// What decides how stored objects are selected by fields of their own: the watch cache holds the fields
/// of each object, and is filled anew when this changes. So it is when conversion begins or ends.
fn selection(definition: &Value) -> Vec<Value> {
    if definition.str_at(&["spec", "conversion", "strategy"]) == "Webhook" {
        return vec![Value::from("Webhook")];
    }
    let versions = definition::versions(definition);
    if versions.iter().all(|version| SelectableField::of_version(version).is_empty()) {
        return Vec::new();
    }
    let parts = |version: &Value| -> Vec<Value> {
        let part = |name: &str| version.get(name).cloned().unwrap_or_default();
        ["name", "schema", "selectableFields"].map(part).into()
    };
    versions.iter().map(|version| parts(version).into()).collect()
}

/// How a version is preferred: general availability, then beta, then alpha, each by number; others last, by name.
fn version_rank(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let parse = || -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let tail = &rest[digits..];
        if tail.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, number) = match (tail.strip_prefix("beta"), tail.strip_prefix("alpha")) {
            (Some(number), _) => (2, number),
            (_, Some(number)) => (1, number),
            _ => return None,
        };
        Some((rank, major, number.parse().ok()?))
    };
    let (rank, major, minor) = parse().unwrap_or_default();
    let name = if rank == 0 { version.to_owned() } else { String::new() };
    (rank, major, minor, std::cmp::Reverse(name))
}

/// Rules of CustomResourceDefinitions.
pub(crate) struct DefinitionStrategy;

const DEFINITION_RULES: MetaRules =
    MetaRules { namespaced: false, name: names::dns_subdomain, qualified_finalizers: false };

impl Strategy for DefinitionStrategy {
    fn default(&self, object: &mut Value) {
        definition::apply_defaults(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        definition::prepare_create(object);
    }

    fn validate_create(&self, object: &Value) -> FieldErrors {
        let mut errors = meta::validate(object, DEFINITION_RULES);
        let is_name =
            |error: &FieldError| matches!(error.field.as_str(), "metadata.name" | "metadata.generateName");
        let names = errors.iter().take_while(|error| is_name(error)).count();
        errors.splice(names..names, definition::validate_name(object));
        errors.extend(definition::validate(object));
        errors
    }

    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        if subresource.is_empty() {
            return definition::prepare_update(new, old);
        }
        let finalizers = new.at(&["metadata", "finalizers"]).cloned();
        resource::prepare_status_update(new, old);
        // The controller that empties a definition lets go of it through its status.
        match finalizers {
            Some(finalizers) => new.set(&["metadata", "finalizers"], finalizers),
            None => {
                new.remove(&["metadata", "finalizers"]);
            }
        }
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        let mut errors = meta::validate(new, DEFINITION_RULES);
        // Once as every kind, once as this one.
        errors.extend(meta::validate_update(new, old, DEFINITION_RULES));
        errors.extend(meta::validate_update(new, old, DEFINITION_RULES));
        if subresource.is_empty() {
            errors.extend(definition::validate_update(new, old));
        }
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        definition::warnings(new, old)
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        if subresource.is_empty() { &[&["status"]] } else { &[&["spec"]] }
    }

    fn marks_time_only(&self) -> bool {
        true
    }

    fn prepare_deletion(&self, object: &mut Value) {
        let held = object.finalizers().contains(&FINALIZER);
        if is_established(object) && object.deletion_timestamp().is_none() && !held {
            let mut finalizers: Vec<Value> = object.finalizers().into_iter().map(Value::from).collect();
            finalizers.push(FINALIZER.into());
            object.set(&["metadata", "finalizers"], finalizers);
        }
    }
}

/// Rules of one version of a custom resource.
struct CustomStrategy {
    namespaced: bool,
    has_status: bool,
    scale: Option<ScalePaths>,
    wire: Arc<CustomWire>,
}

impl CustomStrategy {
    fn rules(&self) -> MetaRules {
        MetaRules { namespaced: self.namespaced, name: names::dns_subdomain, qualified_finalizers: false }
    }

    fn validate_scale(&self, object: &Value, status_only: bool) -> FieldErrors {
        self.scale.as_ref().map(|scale| scale.validate(object, status_only)).unwrap_or_default()
    }
}

impl Strategy for CustomStrategy {
    fn default(&self, _object: &mut Value) {}

    fn prepare_create(&self, object: &mut Value) {
        resource::prepare_create(object, self.has_status);
    }

    fn validate_create(&self, object: &Value) -> FieldErrors {
        let mut errors = meta::validate(object, self.rules());
        errors.extend(self.wire.validate(object, None, false));
        errors.extend(self.validate_scale(object, false));
        let said = self.wire.validate_rules(object, None, &errors);
        errors.extend(said.errors);
        errors
    }

    fn prepare_update(&self, subresource: &str, new: &mut Value, old: &Value) {
        if subresource.is_empty() {
            resource::prepare_update(new, old, self.has_status);
        } else {
            resource::prepare_status_update(new, old);
        }
    }

    fn validate_update(&self, subresource: &str, new: &Value, old: &Value) -> FieldErrors {
        self.validate_update_warning(subresource, new, old, &mut Vec::new())
    }

    fn validate_update_warning(
        &self,
        subresource: &str,
        new: &Value,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> FieldErrors {
        let mut errors = meta::validate(new, self.rules());
        // Once as every kind, once as this one.
        errors.extend(meta::validate_update(new, old, self.rules()));
        errors.extend(meta::validate_update(new, old, self.rules()));
        errors.extend(self.wire.validate(new, Some(old), !subresource.is_empty()));
        errors.extend(self.validate_scale(new, !subresource.is_empty()));
        let said = self.wire.validate_rules(new, Some(old), &errors);
        errors.extend(said.errors);
        warnings.extend(said.warnings);
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        meta::finalizer_warnings(new, old)
    }

    fn reset_fields(&self, subresource: &str) -> &'static [&'static [&'static str]] {
        match (self.has_status, subresource) {
            (true, "") => &[&["status"]],
            (true, _) => &[&["metadata"], &["spec"]],
            (false, _) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_preferred_as_upstream() {
        let mut versions =
            ["foo10", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v2", "foo1", "v11alpha2", "v10"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
        // The example in upstream's documentation of version priority.
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
        );
    }
}
