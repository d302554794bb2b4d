//! Deletes objects whose owners are gone.
//!
//! The state is a graph of all objects, each with its owners and what its deletion waits for.
//!
//! | Object | Owners | Actions |
//! |---|---|---|
//! | lives | some are not in the graph | ask the store which of them exist |
//! | lives | none is left, none waits | delete, with the propagation that its finalizers ask for |
//! | lives | none is left, some wait for it | delete, in the foreground if it has dependents |
//! | lives | some live, others are gone or wait | remove the references to the others |
//! | is deleted, waits for dependents | – | look at each dependent; without blocking ones remove `foregroundDeletion` |
//! | is deleted, lets dependents go | – | remove the reference from each dependent; without any remove `orphan` |
//!
//! An owner waits when it is being deleted in the foreground.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Edit, Event, Owner, Target};
use crate::ports::{Change, GroupResource, Interest, Propagation, ServedResource};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The graph. It has a node for every object of the cluster, so nodes are small.
#[derive(Default)]
pub(super) struct GarbageCollector {
    /// By UID.
    nodes: HashMap<Box<str>, Node>,
    /// Shared by the nodes of each resource.
    resources: HashSet<Arc<GroupResource>>,
    /// Shared by the nodes of each namespace, for those after the first.
    namespace: Arc<str>,
    /// UIDs of dependents by the UID of their owner, whether or not the owner is in the graph.
    dependents: HashMap<String, BTreeSet<String>>,
    /// Resources whose first list has arrived.
    seen: HashSet<GroupResource>,
    /// What is watched.
    watched: Vec<GroupResource>,
    /// Whether every resource that was watched at start has been seen; before that nothing is decided.
    complete: bool,
}

struct Node {
    resource: Arc<GroupResource>,
    namespace: Arc<str>,
    name: Box<str>,
    owners: Box<[Owner]>,
    deleted: bool,
    foreground: bool,
    orphan: bool,
}

impl Node {
    fn new(resource: Arc<GroupResource>, namespace: Arc<str>, object: &Value) -> Self {
        let finalizers = object.finalizers();
        let owners = object.owner_references().iter().map(|reference| Owner {
            api_version: reference.str_at(&["apiVersion"]).to_owned(),
            kind: reference.str_at(&["kind"]).to_owned(),
            name: reference.str_at(&["name"]).to_owned(),
            uid: reference.str_at(&["uid"]).to_owned(),
            blocks: reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
        });
        Self {
            resource,
            namespace,
            name: object.name().into(),
            owners: owners.collect(),
            deleted: object.deletion_timestamp().is_some(),
            foreground: finalizers.contains(&FOREGROUND),
            orphan: finalizers.contains(&ORPHAN),
        }
    }

    fn waits_for_dependents(&self) -> bool {
        self.deleted && self.foreground
    }

    /// The object that this is, whose UID is `uid`.
    fn target(&self, uid: &str) -> Target {
        Target {
            resource: (*self.resource).clone(),
            namespace: (*self.namespace).to_owned(),
            name: (*self.name).to_owned(),
            uid: uid.to_owned(),
        }
    }
}

impl GarbageCollector {
    /// The owner, when the graph knows it and it can be the dependent's: in its namespace or in none.
    fn owner(&self, dependent: &Node, uid: &str) -> Option<&Node> {
        let owner = self.nodes.get(uid)?;
        let reachable = owner.namespace.is_empty() || owner.namespace == dependent.namespace;
        reachable.then_some(owner)
    }

    fn put(&mut self, resource: &GroupResource, object: &Value) -> Vec<Action> {
        let node = Node::new(self.shared_resource(resource), self.shared_namespace(object), object);
        let uid = object.uid().to_owned();
        let mut before = self.unlink(&uid);
        before.retain(|owner| !node.owners.iter().any(|own| own.uid == *owner));
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        self.nodes.insert(uid.as_str().into(), node);
        let mut actions = self.look_at(&uid);
        // Owners that this object let go may be done waiting.
        actions.extend(before.iter().flat_map(|owner| self.look_at(owner)));
        actions
    }

    fn shared_resource(&mut self, resource: &GroupResource) -> Arc<GroupResource> {
        if let Some(known) = self.resources.get(resource) {
            return Arc::clone(known);
        }
        let shared = Arc::new(resource.clone());
        self.resources.insert(Arc::clone(&shared));
        shared
    }

    /// Objects mostly come namespace by namespace.
    fn shared_namespace(&mut self, object: &Value) -> Arc<str> {
        if *self.namespace != *object.namespace() {
            self.namespace = object.namespace().into();
        }
        Arc::clone(&self.namespace)
    }

    /// Takes an object out of its owners' lists and gives the owners' UIDs.
    fn unlink(&mut self, uid: &str) -> Vec<String> {
        let owners: Vec<String> = self
            .nodes
            .get(uid)
            .map(|node| node.owners.iter().map(|owner| owner.uid.clone()).collect())
            .unwrap_or_default();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }

    fn remove(&mut self, uid: &str) -> Vec<Action> {
        let owners = self.unlink(uid);
        self.nodes.remove(uid);
        let affected = self.dependents_of(uid).into_iter().chain(owners);
        affected.collect::<Vec<_>>().iter().flat_map(|uid| self.look_at(uid)).collect()
    }

    fn reset(&mut self, resource: &GroupResource, objects: &[Value]) -> Vec<Action> {
        let present: HashSet<&str> = objects.iter().map(|object| object.uid()).collect();
        let gone: Vec<String> = self
            .nodes
            .iter()
            .filter(|(uid, node)| *node.resource == *resource && !present.contains(&***uid))
            .map(|(uid, _)| uid.to_string())
            .collect();
        let mut actions: Vec<Action> = objects.iter().flat_map(|object| self.put(resource, object)).collect();
        actions.extend(gone.iter().flat_map(|uid| self.remove(uid)));
        self.seen.insert(resource.clone());
        if !self.complete && self.watched.iter().all(|resource| self.seen.contains(resource)) {
            self.complete = true;
            return self.look_at_all();
        }
        actions
    }

    fn dependents_of(&self, uid: &str) -> Vec<String> {
        self.dependents.get(uid).map(|dependents| dependents.iter().cloned().collect()).unwrap_or_default()
    }

    fn look_at_all(&self) -> Vec<Action> {
        let mut uids: Vec<&str> = self.nodes.keys().map(|uid| &**uid).collect();
        uids.sort_unstable();
        uids.into_iter().flat_map(|uid| self.look_at(uid)).collect()
    }

    /// What there is to do about one object.
    fn look_at(&self, uid: &str) -> Vec<Action> {
        let Some(node) = self.nodes.get(uid).filter(|_| self.complete) else { return Vec::new() };
        if node.waits_for_dependents() {
            return self.foreground(uid, node);
        }
        if node.deleted && node.orphan {
            return self.orphan(uid, node);
        }
        if node.deleted || node.owners.is_empty() {
            return Vec::new();
        }
        let unknown: Vec<Owner> =
            node.owners.iter().filter(|owner| self.owner(node, &owner.uid).is_none()).cloned().collect();
        if unknown.is_empty() {
            return self.decide(uid, node, &[]).into_iter().collect();
        }
        vec![Action::CheckOwners(node.target(uid), unknown)]
    }

    fn foreground(&self, uid: &str, owner: &Node) -> Vec<Action> {
        let dependents = self.dependents_of(uid);
        let blocks = |dependent: &String| {
            let node = self.nodes.get(dependent.as_str());
            node.is_some_and(|node| node.owners.iter().any(|own| own.uid == uid && own.blocks))
        };
        if !dependents.iter().any(blocks) {
            return vec![Action::Edit(owner.target(uid), Edit::RemoveFinalizer(FOREGROUND.to_owned()))];
        }
        let lives = |uid: &&String| self.nodes.get(uid.as_str()).is_some_and(|node| !node.deleted);
        let waiting = dependents.iter().filter(lives);
        waiting.flat_map(|uid| self.look_at(uid)).collect()
    }

    fn orphan(&self, uid: &str, owner: &Node) -> Vec<Action> {
        let dependents = self.dependents_of(uid);
        if dependents.is_empty() {
            return vec![Action::Edit(owner.target(uid), Edit::RemoveFinalizer(ORPHAN.to_owned()))];
        }
        let let_go = |dependent: &String| {
            let target = self.nodes.get(dependent.as_str())?.target(dependent);
            Some(Action::Edit(target, Edit::RemoveOwners(vec![uid.to_owned()])))
        };
        dependents.iter().filter_map(let_go).collect()
    }

    /// Keep, free or delete a dependent, given which owners the store said are absent.
    fn decide(&self, uid: &str, node: &Node, absent: &[String]) -> Option<Action> {
        let waits = |owner: &&Owner| self.owner(node, &owner.uid).is_some_and(Node::waits_for_dependents);
        let is_absent =
            |owner: &&Owner| absent.contains(&owner.uid) && self.owner(node, &owner.uid).is_none();
        let waiting = node.owners.iter().filter(waits).count();
        let leaving: Vec<String> = node
            .owners
            .iter()
            .filter(|owner| is_absent(owner) || waits(owner))
            .map(|owner| owner.uid.clone())
            .collect();
        if leaving.is_empty() {
            return None;
        }
        if leaving.len() < node.owners.len() {
            return Some(Action::Edit(node.target(uid), Edit::RemoveOwners(leaving)));
        }
        let has_dependents = self.dependents.contains_key(uid);
        let propagation = if 0 < waiting && has_dependents {
            Propagation::Foreground
        } else if node.orphan {
            Propagation::Orphan
        } else if node.foreground {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        Some(Action::Delete(node.target(uid), Some(propagation)))
    }
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    /// Everything but events, which are many and nobody's dependents.
    fn watches(&self, served: &[ServedResource]) -> Vec<GroupResource> {
        served.iter().map(|resource| resource.name.clone()).filter(|name| name.resource != "events").collect()
    }

    fn interest(&self, _resource: &GroupResource) -> Interest {
        Interest::Metadata
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        match event {
            Event::Changed(resource, Change::Reset(objects)) => self.reset(&resource, &objects),
            Event::Changed(resource, Change::Applied(object)) => self.put(&resource, &object),
            Event::Changed(_, Change::Deleted(object)) => self.remove(object.uid()),
            Event::Resync => self.look_at_all(),
            Event::OwnersChecked { uid, absent } => {
                let node = self.nodes.get(uid.as_str()).filter(|node| !node.deleted);
                node.and_then(|node| self.decide(&uid, node, &absent)).into_iter().collect()
            }
            Event::Watching(resources) => {
                self.watched = resources;
                Vec::new()
            }
            Event::Emptied { .. } | Event::Silent { .. } | Event::Recount { .. } | Event::Read { .. } => {
                Vec::new()
            }
        }
    }
}
