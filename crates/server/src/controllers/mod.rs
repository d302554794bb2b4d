//! The in-process controllers, each a pure table and one thin shell.
//!
//! A controller sees changes of stored objects and says what to do; it performs nothing. The shell
//! in `shell.rs` performs actions and tries again after failures. Actions may be repeated without
//! harm: creating what exists, deleting what is gone, or losing a race is not a failure.
//!
//! Absent on purpose: leader election; these controllers run beside the store of one server.

pub mod bootstrap_policy;
mod cluster_defaults;
pub mod custom_resources;
mod garbage;
mod namespace_deletion;
mod namespaces;
mod node_lifecycle;
mod pod_binder;
mod resource_quota;
mod role_aggregation;
mod root_ca;
mod service_accounts;
mod shell;
mod token_secrets;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::time::Timestamp;

pub use self::shell::{feed_node_graph, feed_policy, run};
pub use self::token_secrets::Filling;
use crate::ports::{Change, Deletion, GroupResource, Interest, Propagation, ServedResource};
use crate::service_addresses::Range;
use crate::tokens::jws::SigningKey;

/// What a controller is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Stored objects of a resource changed.
    Changed(GroupResource, Change),
    /// Look at everything again: now and then, and after a failure.
    Resync,
    /// The answer to [`Action::EmptyNamespace`] and [`Action::EmptyResource`].
    Emptied {
        /// The namespace, or the resource as `plural.group`.
        namespace: String,
        /// What is left.
        report: Report,
    },
    /// What is watched now: said before any change of it, and whenever it changes.
    Watching(Vec<GroupResource>),
    /// The answer to [`Action::CheckOwners`].
    OwnersChecked {
        /// UID of the dependent.
        uid: String,
        /// UIDs of owners that do not exist.
        absent: Vec<String>,
    },
    /// Said by [`Action::Later`]: count what the quotas of a namespace are about.
    Recount {
        /// The namespace.
        namespace: String,
    },
    /// The answer to [`Action::Read`].
    Read {
        /// The namespace.
        namespace: String,
        /// What there is, by resource.
        objects: Vec<(GroupResource, Vec<Value>)>,
        /// When.
        now: Timestamp,
    },
    /// Said by [`Action::Later`]: nothing was heard of a node since, unless it was heard again.
    Silent {
        /// Name of the node.
        node: String,
        /// How often it had been heard.
        count: u64,
    },
}

/// What is left in a namespace after deletion was asked of everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Objects that are left, by `resource.group`.
    pub remaining: Vec<(String, usize)>,
    /// Finalizers that hold objects, and how many.
    pub finalizers: Vec<(String, usize)>,
    /// What went wrong.
    pub errors: Vec<String>,
    /// Seconds after which it makes sense to look again; 0 when nothing is left.
    pub estimate: u64,
}

/// What a controller wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create an object.
    Create(GroupResource, Value),
    /// Read an object, change it, and write it back, again until it wins.
    Edit(Target, Edit),
    /// Delete an object.
    Delete(Target, Option<Propagation>),
    /// Bind a pod to a node.
    Bind {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        pod: String,
        /// Its UID.
        uid: String,
        /// Name of the node.
        node: String,
    },
    /// Ask deletion of everything in a namespace; answered by [`Event::Emptied`].
    EmptyNamespace(String),
    /// Ask deletion of every object of a resource; answered by [`Event::Emptied`].
    EmptyResource(GroupResource),
    /// Ask the store, not a cache, which owners exist; answered by [`Event::OwnersChecked`].
    CheckOwners(Target, Vec<Owner>),
    /// Read all objects of some resources in a namespace; answered by [`Event::Read`].
    Read {
        /// The namespace.
        namespace: String,
        /// The resources.
        resources: Vec<GroupResource>,
    },
    /// Ask [`Controller::watches`] again.
    Rewatch,
    /// Say this after a while.
    Later(Duration, Box<Event>),
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its resource.
    pub resource: GroupResource,
    /// Its namespace, or "".
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID; "" for whatever has the name.
    pub uid: String,
}

impl Target {
    fn of(resource: &GroupResource, object: &Value) -> Self {
        Self {
            resource: resource.clone(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
        }
    }

    fn deletion(&self, propagation: Option<Propagation>) -> Deletion {
        let uid = (!self.uid.is_empty()).then(|| self.uid.clone());
        Deletion { uid, resource_version: None, propagation }
    }
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `name`.
    pub name: String,
    /// `uid`.
    pub uid: String,
    /// `blockOwnerDeletion`.
    pub blocks: bool,
}

/// A change of a stored object.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Replace the whole object, unless it has changed since the replacement was made from it:
    /// then the change itself is looked at again.
    Replace(Value),
    /// The same, of its status (written through `status`).
    ReplaceStatus(Value),
    /// Set one top-level field.
    Set(&'static str, Value),
    /// Remove one of `metadata.finalizers`.
    RemoveFinalizer(String),
    /// Remove owner references by UID.
    RemoveOwners(Vec<String>),
    /// Remove `kubernetes` from `spec.finalizers` (written through `finalize`).
    Finalize,
    /// Merge conditions into `status.conditions` (written through `status`).
    Conditions(Vec<Condition>),
    /// Fill a service account token Secret.
    FillToken(Filling),
    /// Remove a Secret from a service account's `secrets`.
    ForgetSecret(String),
    /// Give a node the taints of this key about readiness, and take those of others away; "" for none.
    NodeTaints(&'static str),
    /// Set `status.acceptedNames` and merge conditions (written through `status`).
    AcceptNames(Value, Vec<Condition>),
}

/// One condition of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `type`.
    pub kind: &'static str,
    /// `status`.
    pub status: &'static str,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

impl Edit {
    /// The subresource that the change is written through.
    fn subresource(&self) -> &'static str {
        match self {
            Self::Finalize => "finalize",
            Self::ReplaceStatus(_) | Self::Conditions(_) | Self::AcceptNames(..) => "status",
            Self::Replace(_)
            | Self::Set(..)
            | Self::RemoveFinalizer(_)
            | Self::RemoveOwners(_)
            | Self::FillToken(_)
            | Self::ForgetSecret(_)
            | Self::NodeTaints(_) => "",
        }
    }

    /// Changes an object.
    fn apply(&self, object: &mut Value, now: Timestamp) {
        match self {
            Self::Replace(new) | Self::ReplaceStatus(new) => {
                if new.resource_version() == object.resource_version() {
                    *object = new.clone();
                }
            }
            Self::Set(field, value) => object.set(&[field], value.clone()),
            Self::RemoveFinalizer(name) => {
                retain(object, &["metadata", "finalizers"], |item| item.as_str() != Some(name));
            }
            Self::RemoveOwners(uids) => {
                retain(object, &["metadata", "ownerReferences"], |reference| {
                    !uids.iter().any(|uid| reference.str_at(&["uid"]) == uid)
                });
            }
            Self::Finalize => {
                retain(object, &["spec", "finalizers"], |item| item.as_str() != Some("kubernetes"));
            }
            Self::FillToken(filling) => filling.apply(object),
            Self::ForgetSecret(name) => {
                retain(object, &["secrets"], |reference| reference.str_at(&["name"]) != name);
            }
            Self::NodeTaints(key) => {
                node_lifecycle::set_taints(object, key, &coffer_types::time::rfc3339(now));
            }
            Self::Conditions(conditions) => merge_conditions(object, conditions, now),
            Self::AcceptNames(names, conditions) => {
                object.set(&["status", "acceptedNames"], names.clone());
                merge_conditions(object, conditions, now);
            }
        }
    }
}

/// Keeps the items of a list that `keep` likes; a list that becomes empty goes away.
fn retain(object: &mut Value, path: &[&str], keep: impl Fn(&Value) -> bool) {
    let Some(items) = object.at(path).and_then(Value::as_array) else { return };
    let kept: Vec<Value> = items.iter().filter(|item| keep(item)).cloned().collect();
    if kept.is_empty() {
        object.remove(path);
    } else {
        object.set(path, kept);
    }
}

/// A condition's time changes only with its status, as upstream counts transitions.
fn merge_conditions(object: &mut Value, conditions: &[Condition], now: Timestamp) {
    let held = object.at(&["status", "conditions"]).and_then(Value::as_array);
    let mut merged = held.unwrap_or_default().to_vec();
    for condition in conditions {
        let found = merged.iter_mut().find(|held| held.str_at(&["type"]) == condition.kind);
        let held = match found {
            Some(held) => held,
            None => {
                merged.push(Value::from([("type", condition.kind)]));
                let last = merged.len() - 1;
                &mut merged[last]
            }
        };
        if held.str_at(&["status"]) != condition.status {
            held.set(&["lastTransitionTime"], coffer_types::time::rfc3339(now));
        }
        held.set(&["status"], condition.status);
        held.set_str(&["reason"], &condition.reason);
        held.set_str(&["message"], &condition.message);
    }
    object.set(&["status", "conditions"], merged);
}

/// A pure state machine.
pub trait Controller: Send + 'static {
    /// For the log.
    fn name(&self) -> &'static str;

    /// The resources whose changes it wants, given what is served.
    fn watches(&self, served: &[ServedResource]) -> Vec<GroupResource>;

    /// What it looks at of the objects of one of them.
    fn interest(&self, _resource: &GroupResource) -> Interest {
        Interest::Whole
    }

    /// What to do about an event.
    fn step(&mut self, event: Event) -> Vec<Action>;
}

/// What the controllers need to know.
pub struct Settings {
    /// PEM of the CA that clients verify the server with.
    pub root_ca: String,
    /// Set once the bootstrap policy is stored.
    pub policy_ready: Arc<AtomicBool>,
    /// Signs the tokens that live in Secrets; without it none are made.
    pub signing_key: Option<SigningKey>,
    /// Whether pods without a node are bound to the only one.
    pub bind_pods: bool,
    /// Addresses of Services.
    pub service_range: Range,
}

/// Every controller of the server. Each is run by [`run`] in a task of its own.
///
/// # Errors
/// When the table of the bootstrap policy is malformed, which a test excludes.
pub fn all(settings: &Settings) -> Result<Vec<Box<dyn Controller>>, String> {
    let mut all: Vec<Box<dyn Controller>> = vec![
        Box::new(namespaces::SystemNamespaces::default()),
        Box::new(cluster_defaults::ClusterDefaults::new(settings.service_range)),
        Box::new(bootstrap_policy::BootstrapPolicy::new(settings.policy_ready.clone())?),
        Box::new(role_aggregation::RoleAggregation::default()),
        Box::new(service_accounts::DefaultServiceAccounts::default()),
        Box::new(root_ca::RootCa::new(&settings.root_ca)),
        Box::new(namespace_deletion::NamespaceDeletion::default()),
        Box::new(garbage::GarbageCollector::default()),
        Box::new(custom_resources::Naming::default()),
        Box::new(node_lifecycle::NodeLifecycle::default()),
        Box::new(resource_quota::ResourceQuotas::default()),
    ];
    if let Some(key) = &settings.signing_key {
        all.push(Box::new(token_secrets::TokenSecrets::new(key.clone(), &settings.root_ca)));
    }
    if settings.bind_pods {
        all.push(Box::new(pod_binder::PodBinder::default()));
    }
    Ok(all)
}

/// The stored objects of one resource, by namespace and name; `None` until the first list.
#[derive(Debug, Default)]
struct Mirror(Option<std::collections::BTreeMap<(String, String), Value>>);

impl Mirror {
    fn apply(&mut self, change: Change) {
        let key = |object: &Value| (object.namespace().to_owned(), object.name().to_owned());
        match change {
            Change::Reset(objects) => {
                self.0 = Some(objects.into_iter().map(|object| (key(&object), object)).collect());
            }
            Change::Applied(object) => {
                self.0.get_or_insert_default().insert(key(&object), *object);
            }
            Change::Deleted(object) => {
                if let Some(objects) = &mut self.0 {
                    objects.remove(&key(&object));
                }
            }
        }
    }

    fn synced(&self) -> bool {
        self.0.is_some()
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(&(namespace.to_owned(), name.to_owned()))
    }

    fn iter(&self) -> impl Iterator<Item = &Value> + Clone {
        self.0.iter().flat_map(|objects| objects.values())
    }
}

fn core(resource: &str) -> GroupResource {
    GroupResource::new("", resource)
}
