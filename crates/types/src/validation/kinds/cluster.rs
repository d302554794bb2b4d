//! Quotas, budgets, classes of priority and runtime, certificates, and the rest of a cluster.

use super::check::{
    is_set, list, not_negative, number, one_of, required, selector, unchanged, unchanged_null,
};
use super::{CLUSTER, Generation, KindRules, PLAIN, SPEC, Status, keep, same};
use crate::Value;
use crate::meta::Meta as _;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::invalid_each;
use crate::validation::pem;

/// Highest priority that a user may define.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;
/// Shortest time that a certificate may be asked for, in seconds.
const SHORTEST_CERTIFICATE: i64 = 600;
const SYSTEM_PREFIX: &str = "system-";
/// Classes of priority that every cluster has: name, value.
const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const DEVICES: KindRules = KindRules { group: "resource.k8s.io", ..PLAIN };

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "ResourceQuota",
        status: Status::Own,
        validate: quota,
        validate_update: |new, old, errors| {
            quota(new, errors);
            unchanged(new, old, &["spec", "scopes"], errors);
        },
        validate_status: |new, _, errors| {
            quantities(new, &["status", "hard"], errors);
            quantities(new, &["status", "used"], errors);
        },
        ..PLAIN
    },
    KindRules {
        kind: "LimitRange",
        validate: limits,
        validate_update: |new, _, errors| limits(new, errors),
        ..PLAIN
    },
    KindRules {
        group: "policy",
        kind: "PodDisruptionBudget",
        status: Status::Own,
        generation: SPEC,
        validate: budget,
        validate_update: |new, _, errors| budget(new, errors),
        validate_status: |new, _, errors| {
            for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                not_negative(new, &["status", field], errors);
            }
        },
        ..PLAIN
    },
    KindRules {
        group: "autoscaling",
        version: "v2",
        kind: "HorizontalPodAutoscaler",
        status: Status::Own,
        generation: SPEC,
        validate: autoscaler,
        validate_update: |new, _, errors| autoscaler(new, errors),
        validate_status: |new, _, errors| {
            not_negative(new, &["status", "currentReplicas"], errors);
            not_negative(new, &["status", "desiredReplicas"], errors);
        },
        ..PLAIN
    },
    KindRules {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        validate: |object, errors| {
            let handler = object.str_at(&["handler"]);
            errors.extend(invalid_each(names::is_dns1123_label(handler), &Path::new("handler"), handler));
        },
        validate_update: |new, old, errors| unchanged_null(new, old, &["handler"], errors),
        ..CLUSTER
    },
    KindRules {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        prepare_create: |object| object.set(&["metadata", "generation"], 1),
        validate: priority_class,
        validate_update: |new, old, errors| {
            if number(new, &["value"]) != number(old, &["value"]) {
                errors.push(FieldError::forbidden(&Path::new("value"), "may not be changed in an update."));
            }
            unchanged(new, old, &["preemptionPolicy"], errors);
        },
        ..CLUSTER
    },
    KindRules {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        prepare_create: |object| drop(object.remove(&["status"])),
        validate: signing_request,
        ..CLUSTER
    },
    KindRules { kind: "DeviceClass", namespaced: false, generation: SPEC, ..DEVICES },
    KindRules {
        kind: "ResourceSlice",
        namespaced: false,
        generation: SPEC,
        validate: |object, errors| {
            required(object, &["spec", "driver"], errors);
            required(object, &["spec", "pool", "name"], errors);
        },
        validate_update: |new, old, errors| {
            unchanged(new, old, &["spec", "driver"], errors);
            unchanged(new, old, &["spec", "pool", "name"], errors);
            unchanged(new, old, &["spec", "nodeName"], errors);
        },
        ..DEVICES
    },
    KindRules {
        kind: "ResourceClaim",
        status: Status::Apart,
        validate_update: |new, old, errors| unchanged_null(new, old, &["spec"], errors),
        ..DEVICES
    },
    KindRules {
        kind: "ResourceClaimTemplate",
        generation: Generation::Never,
        validate_update: |new, old, errors| unchanged_null(new, old, &["spec"], errors),
        ..DEVICES
    },
];

fn members<'a>(object: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.at(path).and_then(Value::as_object).into_iter().flatten()
}

fn quantities(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    for (name, quantity) in members(object, path) {
        let text = quantity.as_str().unwrap_or_default();
        if text.starts_with('-') {
            let path = Path::of(path).key(name);
            errors.push(FieldError::invalid(&path, text, super::check::NOT_NEGATIVE));
        }
    }
}

fn quota(object: &Value, errors: &mut FieldErrors) {
    quantities(object, &["spec", "hard"], errors);
    const SCOPES: [&str; 7] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    let scopes = list(object, &["spec", "scopes"]);
    if scopes.iter().any(|scope| !SCOPES.contains(&scope.as_str().unwrap_or_default())) {
        let shown = Value::Array(scopes.to_vec());
        errors.push(FieldError::invalid(&Path::of(&["spec", "scopes"]), &shown, "unsupported scope"));
    }
}

fn limits(object: &Value, errors: &mut FieldErrors) {
    let mut seen = Vec::new();
    for (index, limit) in list(object, &["spec", "limits"]).iter().enumerate() {
        let path = Path::of(&["spec", "limits"]).index(index);
        let kind = limit.str_at(&["type"]);
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), ""));
        } else if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        seen.push(kind);
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !same(limit.get(field), None) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
        }
        for (name, low) in members(limit, &["min"]) {
            let Some(high) = limit.at(&["max", name]).and_then(Value::as_str) else { continue };
            let low = low.as_str().unwrap_or_default();
            if let (Some(least), Some(most)) =
                (super::storage::magnitude(low), super::storage::magnitude(high))
                && most < least
            {
                let detail = format!("min value {low} is greater than max value {high}");
                errors.push(FieldError::invalid(&path.child("min").key(name), low, detail));
            }
        }
    }
}

fn budget(object: &Value, errors: &mut FieldErrors) {
    let (least, most) = (["spec", "minAvailable"], ["spec", "maxUnavailable"]);
    if is_set(object, &least) && is_set(object, &most) {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let value =
            |path: &[&str]| crate::validation::field::go_json(object.at(path).unwrap_or(&Value::Null));
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            value(&least),
            value(&["spec", "selector"]),
            value(&most),
            value(&["spec", "unhealthyPodEvictionPolicy"])
        );
        errors.push(FieldError::invalid(&Path::new("spec"), Shown::verbatim(shown), detail));
    }
    not_negative(object, &least, errors);
    not_negative(object, &most, errors);
    selector(object, &["spec", "selector"], errors);
    let policies = ["AlwaysAllow", "IfHealthyBudget"];
    one_of(object, &["spec", "unhealthyPodEvictionPolicy"], &policies, errors);
}

fn autoscaler(object: &Value, errors: &mut FieldErrors) {
    let least = number(object, &["spec", "minReplicas"]).unwrap_or(1);
    let most = number(object, &["spec", "maxReplicas"]).unwrap_or_default();
    if least < 1 {
        let path = Path::of(&["spec", "minReplicas"]);
        errors.push(FieldError::invalid(&path, least, "must be greater than or equal to 1"));
    }
    let path = Path::of(&["spec", "maxReplicas"]);
    if most < 1 {
        errors.push(FieldError::required(&path, ""));
    }
    if most < least {
        errors.push(FieldError::invalid(&path, most, "must be greater than or equal to `minReplicas`"));
    }
    required(object, &["spec", "scaleTargetRef", "kind"], errors);
    required(object, &["spec", "scaleTargetRef", "name"], errors);
    let version = object.str_at(&["spec", "scaleTargetRef", "apiVersion"]);
    if !version.contains('/') {
        let path = Path::of(&["spec", "scaleTargetRef", "apiVersion"]);
        errors.push(FieldError::invalid(&path, version, "apiVersion must specify API group"));
    }
}

fn priority_class(object: &Value, errors: &mut FieldErrors) {
    let (name, value) = (object.name(), number(object, &["value"]).unwrap_or_default());
    if name.starts_with(SYSTEM_PREFIX) {
        let global = object.get("globalDefault").and_then(Value::as_bool) == Some(true);
        let fault = match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, expected)) if *expected != value => {
                Some(format!("value of {name} PriorityClass must be {expected}"))
            }
            Some(_) if global => Some(format!("globalDefault of {name} PriorityClass must be false")),
            Some(_) => None,
        };
        if let Some(fault) = fault {
            let detail = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}"
            );
            errors.push(FieldError::forbidden(&Path::of(&["metadata", "name"]), detail));
        }
    } else if value > HIGHEST_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}");
        errors.push(FieldError::forbidden(&Path::new("value"), detail));
    }
    one_of(object, &["preemptionPolicy"], &["PreemptLowerPriority", "Never"], errors);
}

fn signing_request(object: &Value, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let request = object.at(&["spec", "request"]).and_then(Value::as_bytes);
    let blocks = pem::blocks(request.map_or(&[], |bytes| bytes.expose()));
    if blocks.first().is_none_or(|block| block.label != "CERTIFICATE REQUEST") {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(FieldError::invalid(&spec.child("request"), Shown::redacted(), detail));
    }
    let usages = list(object, &["spec", "usages"]);
    if usages.is_empty() {
        errors.push(FieldError::required(&spec.child("usages"), ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        let path = spec.child("usages").index(index);
        let text = usage.as_str().unwrap_or_default();
        if !USAGES.contains(&text) {
            errors.push(FieldError::not_supported(&path, text, &USAGES));
        }
        if usages[..index].contains(usage) {
            errors.push(FieldError::duplicate(&path, text));
        }
    }
    signer_name(object.str_at(&["spec", "signerName"]), &spec.child("signerName"), errors);
    if let Some(seconds) = number(object, &["spec", "expirationSeconds"])
        && seconds < SHORTEST_CERTIFICATE
    {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&spec.child("expirationSeconds"), seconds, detail));
    }
    conditions(object, errors);
}

fn signer_name(name: &str, path: &Path, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        return errors.push(FieldError::invalid(path, name, detail));
    }
    match name.split_once('/') {
        Some((domain, rest)) if !rest.is_empty() && !rest.contains('/') => {
            errors.extend(invalid_each(names::is_dns1123_subdomain(domain), path, domain));
        }
        _ => {
            let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            errors.push(FieldError::invalid(path, name, detail));
        }
    }
}

fn conditions(object: &Value, errors: &mut FieldErrors) {
    let base = Path::of(&["status", "conditions"]);
    let all = list(object, &["status", "conditions"]);
    for (index, condition) in all.iter().enumerate() {
        let path = base.index(index);
        let (kind, status) = (condition.str_at(&["type"]), condition.str_at(&["status"]));
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), ""));
        }
        let only_true = matches!(kind, "Approved" | "Denied" | "Failed");
        let allowed: &[&str] = if only_true { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            errors.push(FieldError::required(&path.child("status"), ""));
        } else if !allowed.contains(&status) {
            errors.push(FieldError::not_supported(&path.child("status"), status, allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && all[..index].iter().any(|one| one.str_at(&["type"]) == other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&base, kind, detail));
        }
        if all[..index].iter().any(|one| one.str_at(&["type"]) == kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
    }
}

/// What each kind of update keeps: nobody but an approver writes the approval, and nobody the request.
pub(super) fn prepare_signing_request(subresource: &str, new: &mut Value, old: &Value) {
    keep(new, old, &["spec"]);
    match subresource {
        "approval" => {
            let conditions = new.at(&["status", "conditions"]).cloned();
            keep(new, old, &["status"]);
            match conditions {
                Some(conditions) => new.set(&["status", "conditions"], conditions),
                None => drop(new.remove(&["status", "conditions"])),
            }
        }
        "status" => {
            let of = |request: &Value, kind: &str| -> Vec<Value> {
                let all = list(request, &["status", "conditions"]).iter();
                all.filter(|one| one.str_at(&["type"]) == kind).cloned().collect()
            };
            for kind in ["Approved", "Denied"] {
                let before = of(old, kind);
                if before.len() != of(new, kind).len() {
                    continue;
                }
                let all = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
                let all = all.and_then(Value::as_array_mut).into_iter().flatten();
                for (now, before) in all.filter(|one| one.str_at(&["type"]) == kind).zip(before) {
                    *now = before;
                }
            }
        }
        _ => keep(new, old, &["status"]),
    }
}

/// An update of a CertificateSigningRequest: who approves writes `approval`, who signs writes `status`.
pub(super) fn signing_request_update(subresource: &str, new: &Value, old: &Value, errors: &mut FieldErrors) {
    signing_request(new, errors);
    let path = Path::of(&["status", "conditions"]);
    let of = |request: &Value, kind: &str| -> Vec<Value> {
        let all = list(request, &["status", "conditions"]).iter();
        all.filter(|condition| condition.str_at(&["type"]) == kind).cloned().collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        let (now, before) = (of(new, kind), of(old, kind));
        let why = match now.len().cmp(&before.len()) {
            std::cmp::Ordering::Less => "remove",
            _ if subresource == "approval" || kind == "Failed" => continue,
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if now != before => "modify",
            std::cmp::Ordering::Equal => continue,
        };
        let detail = format!("updates may not {why} a condition of type {kind:?}");
        errors.push(FieldError::forbidden(&path, detail));
    }
    let certificate = ["status", "certificate"];
    if !same(new.at(&certificate), old.at(&certificate)) {
        let detail = match (subresource, old.at(&certificate)) {
            ("status", None | Some(Value::Null)) => return,
            ("status", _) => "updates may not modify existing certificate content",
            _ => "updates may not set certificate content",
        };
        errors.push(FieldError::forbidden(&Path::of(&certificate), detail));
    }
}

/// Classes of priority that every cluster has.
pub fn system_priority_classes() -> Vec<Value> {
    let class = |(name, value): (&str, i64)| {
        let mut class = Value::object();
        class.set_type("scheduling.k8s.io/v1", "PriorityClass");
        class.set_meta_str("name", name);
        class.set(&["value"], value);
        let description = match name {
            "system-node-critical" => {
                "Used for system critical pods that must not be moved from their current node."
            }
            _ => {
                "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
            }
        };
        class.set(&["description"], description);
        class
    };
    SYSTEM_CLASSES.into_iter().map(class).collect()
}
