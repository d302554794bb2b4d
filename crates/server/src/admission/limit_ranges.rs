//! LimitRanger: containers get the namespace's defaults, and nothing is below or above its limits.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::codec::quantity::Fixed as Quantity;
use coffer_types::meta::Meta as _;
use coffer_types::{Status, Value};

use super::forbid;
use crate::ports::{Admission, Admit, GroupResource, Objects, Operation};
use crate::quota::amounts::{Amounts, amounts, containers, of_pod};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Upstream compares thousandths up to here, and whole ones beyond.
const MOST_IN_THOUSANDTHS: i128 = (i64::MAX / 1000) as i128;

/// The plugin.
pub struct LimitRanges {
    objects: Arc<dyn Objects>,
}

impl LimitRanges {
    /// Over the stored ranges.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }

    /// The ranges that count, if the request is about what they limit.
    async fn ranges(&self, request: &Admission<'_>) -> Result<Vec<Value>, Status> {
        let attributes = request.attributes;
        let counts = match (attributes.resource.as_str(), attributes.subresource.as_str(), request.operation)
        {
            _ if !attributes.group.is_empty() => false,
            ("pods", "resize", Operation::Update) | ("pods", "", Operation::Create) => true,
            ("persistentvolumeclaims", "", Operation::Create | Operation::Update) => true,
            _ => false,
        };
        if !counts || request.old.is_some_and(|old| old.deletion_timestamp().is_some()) {
            return Ok(Vec::new());
        }
        self.objects.list(&GroupResource::new("", "limitranges"), &attributes.namespace).await
    }
}

fn items(range: &Value) -> &[Value] {
    range.at(&["spec", "limits"]).and_then(Value::as_array).unwrap_or_default()
}

#[async_trait]
impl Admit for LimitRanges {
    async fn mutate(
        &self,
        request: &Admission<'_>,
        object: Option<&mut Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| request.attributes.resource == "pods") else { return Ok(()) };
        for range in self.ranges(request).await? {
            set_defaults(pod, &range);
        }
        Ok(())
    }

    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let Some(object) = object else { return Ok(()) };
        for range in self.ranges(request).await? {
            let faults = match request.attributes.resource.as_str() {
                "pods" => faults_of_pod(object, &range),
                _ => faults_of_claim(object, &range),
            };
            match &faults[..] {
                [] => {}
                [one] => return Err(forbid(request, Some(object), one)),
                all => return Err(forbid(request, Some(object), format!("[{}]", all.join(", ")))),
            }
        }
        Ok(())
    }
}

/// What containers leave out they get, and the pod says so.
fn set_defaults(pod: &mut Value, range: &Value) {
    let mut defaults: BTreeMap<&str, BTreeMap<&String, &Value>> = BTreeMap::new();
    for limit in items(range).iter().filter(|limit| limit.str_at(&["type"]) == "Container") {
        for (field, from) in [("requests", "defaultRequest"), ("limits", "default")] {
            let given = limit.get(from).and_then(Value::as_object).into_iter().flatten();
            defaults.entry(field).or_default().extend(given);
        }
    }
    let mut told = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers =
            pod.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = container.str_at(&["name"]).to_owned();
            for (field, word) in [("requests", "request"), ("limits", "limit")] {
                let mut set = Vec::new();
                for (resource, quantity) in defaults.get(field).into_iter().flatten() {
                    let path = ["resources", field, resource.as_str()];
                    if container.at(&path).is_none() {
                        container.set(&path, (*quantity).clone());
                        set.push(resource.as_str());
                    }
                }
                if !set.is_empty() {
                    told.push(format!("{} {word} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !told.is_empty() {
        let text = format!("LimitRanger plugin set: {}", told.join("; "));
        pod.set(&["metadata", "annotations", ANNOTATION], text);
    }
}

fn faults_of_pod(pod: &Value, range: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for limit in items(range) {
        match limit.str_at(&["type"]) {
            "Container" => {
                let all = containers(pod, "containers").iter().chain(containers(pod, "initContainers"));
                for container in all {
                    let requests = amounts(container, &["resources", "requests"]);
                    let limits = amounts(container, &["resources", "limits"]);
                    all_faults(limit, &requests, &limits, &mut faults);
                }
            }
            "Pod" => all_faults(limit, &of_pod(pod, "requests"), &of_pod(pod, "limits"), &mut faults),
            _ => {}
        }
    }
    faults
}

fn all_faults(limit: &Value, requests: &Amounts, limits: &Amounts, faults: &mut Vec<String>) {
    let kind = limit.str_at(&["type"]);
    for (name, least) in amounts(limit, &["min"]) {
        faults.extend(below(kind, &name, least, requests, limits));
    }
    for (name, most) in amounts(limit, &["max"]) {
        faults.extend(above(kind, &name, most, requests, limits));
    }
    for (name, ratio) in amounts(limit, &["maxLimitRequestRatio"]) {
        faults.extend(beyond_ratio(kind, &name, ratio, requests, limits));
    }
}

fn faults_of_claim(claim: &Value, range: &Value) -> Vec<String> {
    let requests = amounts(claim, &["spec", "resources", "requests"]);
    let mut faults = Vec::new();
    for limit in items(range).iter().filter(|limit| limit.str_at(&["type"]) == "PersistentVolumeClaim") {
        let kind = "PersistentVolumeClaim";
        for (name, least) in amounts(limit, &["min"]) {
            faults.extend(below(kind, &name, least, &requests, &Amounts::new()));
        }
        for (name, most) in amounts(limit, &["max"]) {
            faults.extend(match requests.get(&name) {
                None => Some(told("maximum", &name, kind, most, "No request is specified")),
                Some(own) if is_less(most, *own) => Some(but("maximum", &name, kind, most, "request", *own)),
                Some(_) => None,
            });
        }
    }
    faults
}

fn told(end: &str, name: &str, kind: &str, bound: Quantity, why: impl Display) -> String {
    format!("{end} {name} usage per {kind} is {bound}.  {why}")
}

fn but(end: &str, name: &str, kind: &str, bound: Quantity, what: &str, own: Quantity) -> String {
    format!("{end} {name} usage per {kind} is {bound}, but {what} is {own}")
}

/// Compares as exactly as upstream does.
fn is_less(one: Quantity, other: Quantity) -> bool {
    if one.whole().max(other.whole()) <= MOST_IN_THOUSANDTHS {
        one.thousandths() < other.thousandths()
    } else {
        one.whole() < other.whole()
    }
}

fn below(kind: &str, name: &str, least: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let Some(request) = requests.get(name) else {
        return Some(told("minimum", name, kind, least, "No request is specified"));
    };
    if is_less(*request, least) {
        return Some(but("minimum", name, kind, least, "request", *request));
    }
    let limit = limits.get(name).filter(|limit| is_less(**limit, least))?;
    Some(but("minimum", name, kind, least, "limit", *limit))
}

fn above(kind: &str, name: &str, most: Quantity, requests: &Amounts, limits: &Amounts) -> Option<String> {
    let Some(limit) = limits.get(name) else {
        return Some(told("maximum", name, kind, most, "No limit is specified"));
    };
    if is_less(most, *limit) {
        return Some(but("maximum", name, kind, most, "limit", *limit));
    }
    let request = requests.get(name).filter(|request| is_less(most, **request))?;
    Some(but("maximum", name, kind, most, "request", *request))
}

#[allow(clippy::cast_precision_loss)]
fn beyond_ratio(
    kind: &str,
    name: &str,
    most: Quantity,
    requests: &Amounts,
    limits: &Amounts,
) -> Option<String> {
    let head = format!("{name} max limit to request ratio per {kind} is {most}, but");
    let own = |amounts: &Amounts| amounts.get(name).copied().filter(|quantity| !quantity.is_zero());
    let Some(request) = own(requests) else {
        return Some(format!("{head} no request is specified or request is 0"));
    };
    let Some(limit) = own(limits) else {
        return Some(format!("{head} no limit is specified or limit is 0"));
    };
    let ratio = limit.thousandths() as f64 / request.thousandths() as f64;
    (most.thousandths() as f64 / 1000.0 < ratio).then(|| format!("{head} provided ratio is {ratio:.6}"))
}
