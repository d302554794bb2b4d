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

use coffer_types::Value;
use coffer_types::meta::Meta as _;

use super::{Action, Controller, Edit, Event, Owner, Target};
use crate::ports::{Change, GroupResource, Interest, Propagation, ServedResource};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The graph.
#[derive(Default)]
pub(super) struct GarbageCollector {
    /// By UID.
    nodes: HashMap<String, Node>,
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
    target: Target,
    owners: Vec<Owner>,
    deleted: bool,
    foreground: bool,
    orphan: bool,
}

impl Node {
    fn new(resource: &GroupResource, object: &Value) -> Self {
        let finalizers = object.finalizers();
        let owners = object.owner_references().iter().map(|reference| Owner {
            api_version: reference.str_at(&["apiVersion"]).to_owned(),
            kind: reference.str_at(&["kind"]).to_owned(),
            name: reference.str_at(&["name"]).to_owned(),
            uid: reference.str_at(&["uid"]).to_owned(),
            blocks: reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
        });
        Self {
            target: Target::of(resource, object),
            owners: owners.collect(),
            deleted: object.deletion_timestamp().is_some(),
            foreground: finalizers.contains(&FOREGROUND),
            orphan: finalizers.contains(&ORPHAN),
        }
    }

    fn waits_for_dependents(&self) -> bool {
        self.deleted && self.foreground
    }
}

impl GarbageCollector {
    /// The owner, when the graph knows it and it can be the dependent's: in its namespace or in none.
    fn owner(&self, dependent: &Node, uid: &str) -> Option<&Node> {
        let owner = self.nodes.get(uid)?;
        let reachable =
            owner.target.namespace.is_empty() || owner.target.namespace == dependent.target.namespace;
        reachable.then_some(owner)
    }

    fn put(&mut self, resource: &GroupResource, object: &Value) -> Vec<Action> {
        let node = Node::new(resource, object);
        let uid = node.target.uid.clone();
        let mut before = self.unlink(&uid);
        before.retain(|owner| !node.owners.iter().any(|own| own.uid == *owner));
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        self.nodes.insert(uid.clone(), node);
        let mut actions = self.look_at(&uid);
        // Owners that this object let go may be done waiting.
        actions.extend(before.iter().flat_map(|owner| self.look_at(owner)));
        actions
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
            .values()
            .filter(|node| node.target.resource == *resource && !present.contains(node.target.uid.as_str()))
            .map(|node| node.target.uid.clone())
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
        let mut uids: Vec<&String> = self.nodes.keys().collect();
        uids.sort();
        uids.into_iter().flat_map(|uid| self.look_at(uid)).collect()
    }

    /// What there is to do about one object.
    fn look_at(&self, uid: &str) -> Vec<Action> {
        let Some(node) = self.nodes.get(uid).filter(|_| self.complete) else { return Vec::new() };
        if node.waits_for_dependents() {
            return self.foreground(node);
        }
        if node.deleted && node.orphan {
            return self.orphan(node);
        }
        if node.deleted || node.owners.is_empty() {
            return Vec::new();
        }
        let unknown: Vec<Owner> =
            node.owners.iter().filter(|owner| self.owner(node, &owner.uid).is_none()).cloned().collect();
        if unknown.is_empty() {
            return self.decide(node, &[]).into_iter().collect();
        }
        vec![Action::CheckOwners(node.target.clone(), unknown)]
    }

    fn foreground(&self, owner: &Node) -> Vec<Action> {
        let dependents = self.dependents_of(&owner.target.uid);
        let blocks = |dependent: &String| {
            let node = self.nodes.get(dependent);
            node.is_some_and(|node| node.owners.iter().any(|own| own.uid == owner.target.uid && own.blocks))
        };
        if !dependents.iter().any(blocks) {
            return vec![Action::Edit(owner.target.clone(), Edit::RemoveFinalizer(FOREGROUND.to_owned()))];
        }
        let waiting = dependents.iter().filter(|uid| self.nodes.get(*uid).is_some_and(|node| !node.deleted));
        waiting.flat_map(|uid| self.look_at(uid)).collect()
    }

    fn orphan(&self, owner: &Node) -> Vec<Action> {
        let dependents = self.dependents_of(&owner.target.uid);
        if dependents.is_empty() {
            return vec![Action::Edit(owner.target.clone(), Edit::RemoveFinalizer(ORPHAN.to_owned()))];
        }
        let let_go = |uid: &String| {
            let target = self.nodes.get(uid)?.target.clone();
            Some(Action::Edit(target, Edit::RemoveOwners(vec![owner.target.uid.clone()])))
        };
        dependents.iter().filter_map(let_go).collect()
    }

    /// Keep, free or delete a dependent, given which owners the store said are absent.
    fn decide(&self, node: &Node, absent: &[String]) -> Option<Action> {
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
            return Some(Action::Edit(node.target.clone(), Edit::RemoveOwners(leaving)));
        }
        let has_dependents = self.dependents.contains_key(&node.target.uid);
        let propagation = if 0 < waiting && has_dependents {
            Propagation::Foreground
        } else if node.orphan {
            Propagation::Orphan
        } else if node.foreground {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        Some(Action::Delete(node.target.clone(), Some(propagation)))
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
                let node = self.nodes.get(&uid).filter(|node| !node.deleted);
                node.and_then(|node| self.decide(node, &absent)).into_iter().collect()
            }
            Event::Watching(resources) => {
                self.watched = resources;
                Vec::new()
            }
            Event::Emptied { .. } | Event::Silent { .. } => Vec::new(),
        }
    }
}
