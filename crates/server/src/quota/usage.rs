//! What of an object counts against quotas, for each resource.

use std::collections::{BTreeMap, BTreeSet};

use coffer_types::Value;
use coffer_types::codec::quantity::Fixed as Quantity;
use coffer_types::meta::Meta as _;
use coffer_types::status::qualified;
use coffer_types::time::Timestamp;

use super::amounts::{Amounts, add, amounts, containers, of_pod};
use crate::ports::{Admission, Operation};

/// What containers must ask for when a quota limits it.
const DEMANDED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
const OF_SERVICES: [&str; 4] = ["count/services", "services", "services.loadbalancers", "services.nodeports"];
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
const DEVICE_CLASSES: &str = "requests.deviceclass.resource.kubernetes.io/";
/// Resources that are counted under their bare names, too.
const BARE: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];

/// How a resource is counted.
pub(crate) enum Counted {
    Pods,
    Services,
    Claims,
    /// By the number of objects, under these names.
    Objects(Vec<String>),
}

impl Counted {
    pub(crate) fn of(group: &str, resource: &str) -> Self {
        match (group, resource) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            _ => {
                let mut names = vec![format!("count/{}", qualified(group, resource))];
                if group.is_empty() && BARE.contains(&resource) {
                    names.push(resource.to_owned());
                }
                Self::Objects(names)
            }
        }
    }

    /// Whether the write can change what is used.
    pub(crate) fn handles(&self, request: &Admission<'_>, object: &Value) -> bool {
        let (subresource, operation) = (request.attributes.subresource.as_str(), request.operation);
        let creates = operation == Operation::Create;
        let updates = operation == Operation::Update;
        match (self, subresource) {
            (Self::Pods, "") => {
                creates
                    || updates && request.old.is_some_and(|old| is_terminating(old) != is_terminating(object))
            }
            (Self::Pods, "resize") => updates,
            (Self::Services | Self::Claims, "") => creates || updates,
            (Self::Claims, "status") => {
                let allocated = |claim: &Value| amounts(claim, &["status", "allocatedResources"]);
                updates && request.old.is_some_and(|old| allocated(old) != allocated(object))
            }
            (Self::Objects(_), "") => creates,
            _ => false,
        }
    }

    /// Those of the names that stand for something of this resource.
    pub(crate) fn matching<'n>(&self, names: impl Iterator<Item = &'n String>) -> Vec<String> {
        let matches = |name: &&String| match self {
            Self::Pods => {
                let extended =
                    name.strip_prefix("requests.").is_some_and(|rest| !is_native(name) && !rest.is_empty());
                OF_PODS.contains(&name.as_str())
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || extended
                    || name.starts_with(DEVICE_CLASSES)
            }
            Self::Services => OF_SERVICES.contains(&name.as_str()),
            Self::Claims => {
                let of_class = |one: &&str| name.ends_with(&format!("{CLASS_SUFFIX}{one}"));
                *name == "count/persistentvolumeclaims"
                    || OF_CLAIMS.contains(&name.as_str())
                    || OF_CLAIMS.iter().any(of_class)
            }
            Self::Objects(own) => own.contains(*name),
        };
        names.filter(matches).cloned().collect()
    }

    /// Whether a quota is about the object.
    pub(crate) fn matches(&self, quota: &Value, object: &Value) -> bool {
        let hard = amounts(quota, &["status", "hard"]);
        !self.matching(hard.keys()).is_empty() && self.is_in_scopes(quota, object)
    }

    /// Whether all scopes of a quota are about the object.
    pub(crate) fn is_in_scopes(&self, quota: &Value, object: &Value) -> bool {
        let list = |path: &[&str]| quota.at(path).and_then(Value::as_array).unwrap_or_default();
        let scopes = list(&["spec", "scopes"]).iter().map(|scope| (scope.as_str().unwrap_or_default(), None));
        let selectors = list(&["spec", "scopeSelector", "matchExpressions"]).iter();
        let selectors = selectors.map(|one| (one.str_at(&["scopeName"]), Some(one)));
        scopes.chain(selectors).all(|(scope, selector)| self.is_in_scope(scope, selector, object))
    }

    fn is_in_scope(&self, scope: &str, selector: Option<&Value>, object: &Value) -> bool {
        let exists = selector.is_none_or(|one| one.str_at(&["operator"]) == "Exists");
        match (self, scope) {
            (Self::Pods, "Terminating") => is_terminating(object),
            (Self::Pods, "NotTerminating") => !is_terminating(object),
            (Self::Pods, "BestEffort") => is_best_effort(object),
            (Self::Pods, "NotBestEffort") => !is_best_effort(object),
            (Self::Pods, "PriorityClass") => {
                let class =
                    Some(object.str_at(&["spec", "priorityClassName"])).filter(|name| !name.is_empty());
                if exists { class.is_some() } else { selects(selector, class) }
            }
            (Self::Pods, "CrossNamespacePodAffinity") => crosses_namespaces(object),
            (Self::Claims, "VolumeAttributesClass") => {
                let classes = attributes_classes(object);
                match (exists, classes.is_empty()) {
                    (true, none) => !none,
                    (false, true) => selects(selector, None),
                    (false, false) => classes.into_iter().any(|class| selects(selector, Some(class))),
                }
            }
            _ => false,
        }
    }

    /// What must be said of the object when those names are limited.
    pub(crate) fn constraints(&self, restricted: &[String], object: &Value) -> Result<(), String> {
        if !matches!(self, Self::Pods) {
            return Ok(());
        }
        let of_whole_pod = ["requests", "limits"].into_iter().any(|field| {
            let own = object.at(&["spec", "resources", field]).and_then(Value::as_object);
            own.is_some_and(|own| own.keys().any(|name| is_of_whole_pod(name)))
        });
        if of_whole_pod {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for container in containers(object, "containers").iter().chain(containers(object, "initContainers")) {
            let of = |field: &str| amounts(container, &["resources", field]);
            let own = computed(&of("requests"), &of("limits"));
            for name in restricted {
                if DEMANDED.contains(&name.as_str()) && !own.contains_key(name) {
                    missing.entry(name).or_default().insert(container.str_at(&["name"]));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let texts = missing.into_iter().map(|(name, containers)| {
            format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
        });
        Err(format!("must specify {}", texts.collect::<Vec<_>>().join("; ")))
    }

    /// What the object uses.
    pub(crate) fn usage(&self, object: &Value, now: Timestamp) -> Amounts {
        let one = Quantity::of(1);
        match self {
            Self::Objects(names) => names.iter().map(|name| (name.clone(), one)).collect(),
            Self::Pods => of_one_pod(object, now),
            Self::Services => of_service(object),
            Self::Claims => of_claim(object),
        }
    }
}

fn is_of_whole_pod(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_terminating(pod: &Value) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| 0 <= seconds)
}

fn is_best_effort(pod: &Value) -> bool {
    match pod.str_at(&["status", "qosClass"]) {
        "" => {
            let mut all = containers(pod, "containers").iter().chain(containers(pod, "initContainers"));
            let says = |container: &Value, field: &str| {
                let own = amounts(container, &["resources", field]);
                own.iter().any(|(name, one)| matches!(name.as_str(), "cpu" | "memory") && !one.is_zero())
            };
            !all.any(|container| says(container, "requests") || says(container, "limits"))
        }
        class => class == "BestEffort",
    }
}

fn crosses_namespaces(pod: &Value) -> bool {
    ["podAffinity", "podAntiAffinity"].into_iter().any(|field| {
        let list = |name: &str| {
            pod.at(&["spec", "affinity", field, name]).and_then(Value::as_array).unwrap_or_default()
        };
        let required = list("requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = list("preferredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = preferred.filter_map(|one| one.get("podAffinityTerm"));
        required.chain(preferred).any(|term| {
            let named = term.get("namespaces").and_then(Value::as_array);
            named.is_some_and(|names| !names.is_empty())
                || term.get("namespaceSelector").is_some_and(|selector| !selector.is_null())
        })
    })
}

/// Whether a selector of a scope selects that class.
fn selects(selector: Option<&Value>, class: Option<&str>) -> bool {
    let Some(selector) = selector else { return false };
    let values = selector.get("values").and_then(Value::as_array).unwrap_or_default();
    let listed = class.is_some_and(|class| values.iter().any(|value| value.as_str() == Some(class)));
    match selector.str_at(&["operator"]) {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => class.is_some(),
        "DoesNotExist" => class.is_none(),
        _ => false,
    }
}

fn attributes_classes(claim: &Value) -> BTreeSet<&str> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    paths.into_iter().map(|path| claim.str_at(path)).filter(|name| !name.is_empty()).collect()
}

/// The names under which quotas know what containers ask for.
fn computed(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut all = Amounts::from([("pods".to_owned(), Quantity::of(1))]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            all.insert(name.to_owned(), *request);
            all.insert(format!("requests.{name}"), *request);
        }
        if let Some(limit) = limits.get(name) {
            all.insert(format!("limits.{name}"), *limit);
        }
    }
    for (name, request) in requests {
        if name.starts_with("hugepages-") {
            all.insert(name.clone(), *request);
        }
        if name.starts_with("hugepages-")
            || !is_native(name)
            || name.starts_with("deviceclass.resource.kubernetes.io/")
        {
            all.insert(format!("requests.{name}"), *request);
        }
    }
    all
}

fn of_one_pod(pod: &Value, now: Timestamp) -> Amounts {
    let mut all = Amounts::from([("count/pods".to_owned(), Quantity::of(1))]);
    let ended = matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded");
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    let deleted = pod.deletion_timestamp().and_then(|time| time.parse::<Timestamp>().ok());
    let gone = deleted.zip(grace).is_some_and(|(time, grace)| time.as_second() + grace < now.as_second());
    if ended || gone {
        return all;
    }
    let (mut requests, mut limits) = (of_pod(pod, "requests"), of_pod(pod, "limits"));
    let overhead = amounts(pod, &["spec", "overhead"]);
    add(&mut requests, &overhead);
    for (name, quantity) in &overhead {
        limits.entry(name.clone()).and_modify(|limit| *limit = limit.plus(*quantity));
    }
    add(&mut all, &computed(&requests, &limits));
    all
}

fn of_service(service: &Value) -> Amounts {
    let ports = service.at(&["spec", "ports"]).and_then(Value::as_array).unwrap_or_default();
    let count = |count: usize| Quantity::of(i64::try_from(count).unwrap_or(i64::MAX));
    let kind = service.str_at(&["spec", "type"]);
    let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool);
    let own = ports.iter().filter(|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) != 0);
    let node_ports = match kind {
        "NodePort" => ports.len(),
        "LoadBalancer" if allocates == Some(false) => own.count(),
        "LoadBalancer" => ports.len(),
        _ => 0,
    };
    let balancers = usize::from(kind == "LoadBalancer");
    let counts = [1, 1, balancers, node_ports].map(count);
    OF_SERVICES.into_iter().map(str::to_owned).zip(counts).collect()
}

fn of_claim(claim: &Value) -> Amounts {
    let names = ["persistentvolumeclaims", "count/persistentvolumeclaims"];
    let mut all: Amounts = names.into_iter().map(|name| (name.to_owned(), Quantity::of(1))).collect();
    let annotation = claim.str_at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class = match annotation {
        "" => claim.str_at(&["spec", "storageClassName"]),
        class => class,
    };
    let mut sums = vec![("persistentvolumeclaims", Quantity::of(1))];
    let storage = |path: &[&str]| amounts(claim, path).get("storage").copied();
    if let Some(wanted) = storage(&["spec", "resources", "requests"]) {
        let allocated = storage(&["status", "allocatedResources"]).unwrap_or(wanted);
        let most = wanted.max(allocated).rounded_up();
        all.insert("requests.storage".to_owned(), most);
        sums.push(("requests.storage", most));
    }
    if !class.is_empty() {
        all.extend(sums.into_iter().map(|(name, sum)| (format!("{class}{CLASS_SUFFIX}{name}"), sum)));
    }
    all
}
