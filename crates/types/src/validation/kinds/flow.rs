//! Priority and fairness of requests, migrations of stored versions, and taints of devices.

use super::check::{list, number};
use super::{CLUSTER, KindRules, SPEC, Status, same};
use crate::Value;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{FIELD_IMMUTABLE, invalid_each};

const FLOW: KindRules =
    KindRules { group: "flowcontrol.apiserver.k8s.io", status: Status::Apart, generation: SPEC, ..CLUSTER };

/// Name of the schema and of the level that nothing limits.
const EXEMPT: &str = "exempt";
/// The last place in which a schema is looked at.
const LAST_PRECEDENCE: i64 = 10_000;
/// Most queues of a level.
const MOST_QUEUES: i64 = 10_000_000;
/// Bits that the choice of queues may need.
const MOST_ENTROPY: i64 = 60;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECTS: [&str; 3] = ["Group", "ServiceAccount", "User"];
/// Most conditions of a rule about taints of devices.
const MOST_CONDITIONS: usize = 8;
const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32 * 1024;

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "FlowSchema",
        validate: schema,
        validate_update: |new, _, errors| schema(new, errors),
        validate_status: |new, _, errors| flow_conditions(new, errors),
        ..FLOW
    },
    KindRules {
        kind: "PriorityLevelConfiguration",
        validate: level,
        validate_update: |new, _, errors| level(new, errors),
        validate_status: |new, _, errors| flow_conditions(new, errors),
        ..FLOW
    },
    KindRules {
        group: "storagemigration.k8s.io",
        kind: "StorageVersionMigration",
        status: Status::Apart,
        validate: migration,
        validate_update: |new, old, errors| {
            migration(new, errors);
            if !same(new.at(&["spec"]), old.at(&["spec"])) {
                let shown = migrated(new);
                errors.push(FieldError::invalid(&Path::new("spec"), shown, FIELD_IMMUTABLE));
            }
        },
        validate_status: migration_status,
        ..CLUSTER
    },
    KindRules {
        group: "resource.k8s.io",
        kind: "DeviceTaintRule",
        status: Status::Apart,
        generation: SPEC,
        validate: |object, errors| taint(object, None, errors),
        validate_update: |new, old, errors| taint(new, Some(old), errors),
        validate_status: |new, _, errors| {
            conditions(new, errors);
            let count = list(new, &["status", "conditions"]).len();
            if MOST_CONDITIONS < count {
                let path = Path::of(&["status", "conditions"]);
                errors.push(FieldError::too_many(&path, count, MOST_CONDITIONS));
            }
        },
        ..CLUSTER
    },
];

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

fn schema(object: &Value, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let place = number(object, &["spec", "matchingPrecedence"]).unwrap_or_default();
    let path = spec.child("matchingPrecedence");
    if place <= 0 {
        errors.push(FieldError::invalid(&path, place, "must be a positive value"));
    }
    if LAST_PRECEDENCE < place {
        let detail = format!("must not be greater than {LAST_PRECEDENCE}");
        errors.push(FieldError::invalid(&path, place, detail));
    }
    if place == 1 && object.str_at(&["metadata", "name"]) != EXEMPT {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.push(FieldError::invalid(&path, place, detail));
    }
    if let Some(method) = object.at(&["spec", "distinguisherMethod"]).filter(|method| !method.is_null()) {
        let kind = method.str_at(&["type"]);
        if !matches!(kind, "ByNamespace" | "ByUser") {
            // Upstream prints the struct of its own version.
            let shown =
                Shown::verbatim(format!("{{\"Type\":{}}}", crate::validation::field::go_json(&kind.into())));
            let path = spec.child("distinguisherMethod").child("type");
            errors.push(FieldError::not_supported(&path, shown, &["ByNamespace", "ByUser"]));
        }
    }
    let path = spec.child("priorityLevelConfiguration").child("name");
    let name = object.str_at(&["spec", "priorityLevelConfiguration", "name"]);
    if name.is_empty() {
        errors.push(FieldError::required(&path, "must reference a priority level"));
    } else {
        errors.extend(invalid_each(names::dns_subdomain(name, false), &path, name));
    }
    for (index, rule) in list(object, &["spec", "rules"]).iter().enumerate() {
        rule_of_schema(rule, &spec.child("rules").index(index), errors);
    }
    flow_conditions(object, errors);
}

fn rule_of_schema(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    let subjects = list(rule, &["subjects"]);
    if subjects.is_empty() {
        let detail = "subjects must contain at least one value";
        errors.push(FieldError::required(&path.child("subjects"), detail));
    }
    for (index, one) in subjects.iter().enumerate() {
        subject(one, &path.child("subjects").index(index), errors);
    }
    let (resources, others) = (list(rule, &["resourceRules"]), list(rule, &["nonResourceRules"]));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    for (index, one) in resources.iter().enumerate() {
        resource_rule(one, &path.child("resourceRules").index(index), errors);
    }
    for (index, one) in others.iter().enumerate() {
        other_rule(one, &path.child("nonResourceRules").index(index), errors);
    }
}

fn subject(subject: &Value, path: &Path, errors: &mut FieldErrors) {
    let kind = subject.str_at(&["kind"]);
    let field = match kind {
        "ServiceAccount" => "serviceAccount",
        "User" => "user",
        "Group" => "group",
        _ => return errors.push(FieldError::not_supported(&path.child("kind"), kind, &SUBJECTS)),
    };
    let own = path.child(field);
    match subject.get(field).filter(|one| !one.is_null()) {
        None => {
            errors.push(FieldError::required(
                &own,
                format!("{field} is required when subject kind is '{kind}'"),
            ));
        }
        Some(one) => {
            let name = one.str_at(&["name"]);
            if name.is_empty() {
                errors.push(FieldError::required(&own.child("name"), ""));
            } else if field == "serviceAccount" && name != "*" {
                errors.extend(invalid_each(names::dns_subdomain(name, false), &own.child("name"), name));
            }
            if field == "serviceAccount" {
                let (namespace, path) = (one.str_at(&["namespace"]), own.child("namespace"));
                if namespace.is_empty() {
                    let detail = "must specify namespace for service account";
                    errors.push(FieldError::required(&path, detail));
                } else {
                    errors.extend(invalid_each(names::dns_label(namespace, false), &path, namespace));
                }
            }
        }
    }
    let all = [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")];
    for (other, its_kind) in all.into_iter().filter(|(other, _)| *other != field) {
        if is_set(subject.get(other)) {
            let detail = format!("{other} is forbidden when subject kind is not '{its_kind}'");
            errors.push(FieldError::forbidden(&path.child(other), detail));
        }
    }
}

/// Texts of a list, and whether one of them stands for all.
fn texts<'a>(rule: &'a Value, field: &str) -> (Vec<&'a str>, bool) {
    let texts: Vec<&str> = list(rule, &[field]).iter().filter_map(Value::as_str).collect();
    let all = texts.contains(&"*");
    (texts, all)
}

fn alone(rule: &Value, path: &Path, field: &str, what: &str, errors: &mut FieldErrors) {
    let (texts, all) = texts(rule, field);
    if all && 1 < texts.len() {
        let shown = Value::Array(texts.into_iter().map(Value::from).collect());
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.child(field), &shown, detail));
    }
}

fn verbs(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    let (texts, all) = texts(rule, "verbs");
    if texts.is_empty() {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), detail));
    } else if all {
        alone(rule, path, "verbs", "verbs", errors);
    } else if texts.iter().any(|verb| !VERBS.contains(verb)) {
        let shown = Value::Array(texts.into_iter().map(Value::from).collect());
        errors.push(FieldError::not_supported(&path.child("verbs"), &shown, &VERBS));
    }
}

fn resource_rule(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    verbs(rule, path, errors);
    for (field, what, detail) in [
        ("apiGroups", "api groups", "resource rules must supply at least one api group"),
        ("resources", "resources", "resource rules must supply at least one resource"),
    ] {
        if texts(rule, field).0.is_empty() {
            errors.push(FieldError::required(&path.child(field), detail));
        } else {
            alone(rule, path, field, what, errors);
        }
    }
    let (namespaces, all) = texts(rule, "namespaces");
    let cluster = rule.get("clusterScope").and_then(Value::as_bool) == Some(true);
    if namespaces.is_empty() && !cluster {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(&path.child("namespaces"), detail));
    } else if all {
        alone(rule, path, "namespaces", "namespaces", errors);
    } else {
        for (index, namespace) in namespaces.into_iter().enumerate() {
            for fault in names::dns_label(namespace, false) {
                let path = path.child("namespaces").index(index);
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                errors.push(FieldError::invalid(&path, namespace, detail));
            }
        }
    }
}

fn other_rule(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    verbs(rule, path, errors);
    let (urls, all) = texts(rule, "nonResourceURLs");
    let field = path.child("nonResourceURLs");
    if urls.is_empty() {
        errors.push(FieldError::required(&field, "nonResourceURLs must contain at least one value"));
    } else if all {
        alone(rule, path, "nonResourceURLs", "non-resource URLs", errors);
    } else {
        for (index, url) in urls.into_iter().enumerate() {
            let stars = url.matches('*').count();
            let detail = match () {
                () if url.is_empty() => "must not be empty",
                () if url == "/" => continue,
                () if !url.starts_with('/') => "must start with slash",
                () if url.contains(' ') => "must not contain white-space",
                () if url.contains("//") => "must not contain double slash",
                () if 1 < stars || stars == 1 && !url.ends_with("/*") => {
                    "wildcard can only do suffix matching"
                }
                () => continue,
            };
            errors.push(FieldError::invalid(&field.index(index), url, detail));
        }
    }
}

fn level(object: &Value, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let kind = object.str_at(&["spec", "type"]);
    let (limited, exempt) = (object.at(&["spec", "limited"]), object.at(&["spec", "exempt"]));
    if (object.str_at(&["metadata", "name"]) == EXEMPT) != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&spec.child("type"), kind, detail));
    }
    match kind {
        "Exempt" => {
            if let Some(limited) = limited.filter(|one| !one.is_null()) {
                errors.push(FieldError::forbidden(&spec.child("limited"), ""));
                if limited.str_at(&["limitResponse", "type"]).is_empty() {
                    let path = spec.child("limited").child("limitResponse").child("type");
                    errors.push(FieldError::required(&path, ""));
                }
            }
            if let Some(exempt) = exempt.filter(|one| !one.is_null()) {
                shares(exempt, &spec.child("exempt"), errors);
                percent(exempt, &spec.child("exempt"), errors);
            }
        }
        "Limited" => {
            if is_set(exempt) {
                errors.push(FieldError::forbidden(&spec.child("exempt"), ""));
            }
            match limited.filter(|one| !one.is_null()) {
                None => errors.push(FieldError::required(&spec.child("limited"), "")),
                Some(limited) => limits(limited, &spec.child("limited"), errors),
            }
        }
        "" => errors.push(FieldError::required(&spec.child("type"), "")),
        _ => errors.push(FieldError::not_supported(&spec.child("type"), kind, &["Exempt", "Limited"])),
    }
    flow_conditions(object, errors);
}

fn shares(level: &Value, path: &Path, errors: &mut FieldErrors) {
    let shares = number(level, &["nominalConcurrencyShares"]).unwrap_or_default();
    if shares < 0 {
        let path = path.child("nominalConcurrencyShares");
        errors.push(FieldError::invalid(&path, shares, "must be a non-negative integer"));
    }
}

fn percent(level: &Value, path: &Path, errors: &mut FieldErrors) {
    if let Some(percent) = number(level, &["lendablePercent"]).filter(|one| !(0..=100).contains(one)) {
        let path = path.child("lendablePercent");
        errors.push(FieldError::invalid(&path, percent, "must be between 0 and 100, inclusive"));
    }
}

fn limits(limited: &Value, path: &Path, errors: &mut FieldErrors) {
    shares(limited, path, errors);
    let response = path.child("limitResponse");
    let queuing = limited.at(&["limitResponse", "queuing"]).filter(|one| !one.is_null());
    match (limited.str_at(&["limitResponse", "type"]), queuing) {
        ("Reject", Some(_)) => {
            errors.push(FieldError::forbidden(&response.child("queuing"), ""));
        }
        ("Reject", None) => {}
        ("Queue", None) => errors.push(FieldError::required(&response.child("queuing"), "")),
        ("Queue", Some(queuing)) => queues(queuing, &response.child("queuing"), errors),
        ("", _) => errors.push(FieldError::required(&response.child("type"), "")),
        (other, _) => {
            let path = response.child("type");
            errors.push(FieldError::not_supported(&path, other, &["Queue", "Reject"]));
        }
    }
    percent(limited, path, errors);
    if let Some(percent) = number(limited, &["borrowingLimitPercent"]).filter(|one| *one < 0) {
        let path = path.child("borrowingLimitPercent");
        errors.push(FieldError::invalid(&path, percent, "if specified, must be a non-negative integer"));
    }
}

fn queues(queuing: &Value, path: &Path, errors: &mut FieldErrors) {
    let of = |field: &str| number(queuing, &[field]).unwrap_or_default();
    let (length, queues, hand) = (of("queueLengthLimit"), of("queues"), of("handSize"));
    if length <= 0 {
        errors.push(FieldError::invalid(&path.child("queueLengthLimit"), length, "must be positive"));
    }
    if queues <= 0 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, "must be positive"));
    } else if MOST_QUEUES < queues {
        let detail = format!("must not be greater than {MOST_QUEUES}");
        errors.push(FieldError::invalid(&path.child("queues"), queues, detail));
    }
    let entropy = entropy(queues, hand);
    let detail = match () {
        () if hand <= 0 => "must be positive".to_owned(),
        () if queues < hand => format!("should not be greater than queues ({queues})"),
        () if MOST_ENTROPY < entropy => format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MOST_ENTROPY}"
        ),
        () => return,
    };
    errors.push(FieldError::invalid(&path.child("handSize"), hand, detail));
}

/// Bits that the choice of `hand` of `queues` needs.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn entropy(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

/// Conditions of flow control: each has a type of its own.
fn flow_conditions(object: &Value, errors: &mut FieldErrors) {
    let all = list(object, &["status", "conditions"]);
    for (index, condition) in all.iter().enumerate() {
        let path = Path::of(&["status", "conditions"]).index(index).child("type");
        let kind = condition.str_at(&["type"]);
        if all[..index].iter().any(|one| one.str_at(&["type"]) == kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    }
}

fn migration(object: &Value, errors: &mut FieldErrors) {
    let path = Path::of(&["spec", "resource"]);
    let resource = object.str_at(&["spec", "resource", "resource"]);
    if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), "resource is required to be set"));
    } else {
        let faults = names::is_dns1035_label(resource);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child("resource"), resource, faults.join(",")));
        }
    }
    let group = object.str_at(&["spec", "resource", "group"]);
    let faults = if group.is_empty() { Vec::new() } else { names::is_dns1123_subdomain(group) };
    if !faults.is_empty() {
        errors.push(FieldError::invalid(&path.child("group"), group, faults.join(",")));
    }
}

/// What is migrated, as upstream prints the struct of its own version.
fn migrated(object: &Value) -> Shown {
    let text = |field: &str| {
        let text = object.at(&["spec", "resource", field]).cloned().unwrap_or_else(|| "".into());
        crate::validation::field::go_json(&text)
    };
    Shown::verbatim(format!(
        "{{\"Resource\":{{\"group\":{},\"resource\":{}}}}}",
        text("group"),
        text("resource")
    ))
}

fn migration_status(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let path = Path::of(&["status", "resourceVersion"]);
    let of = |object: &Value| object.str_at(&["status", "resourceVersion"]).to_owned();
    let (version, before) = (of(new), of(old));
    let digits = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    if !version.is_empty() && !digits {
        let detail = format!("resource version is not well formed: {version}");
        errors.push(FieldError::invalid(&path, &version, detail));
    }
    conditions(new, errors);
    if !before.is_empty() && before != version {
        errors.push(FieldError::invalid(&path, &version, "field is immutable"));
    }
    let is = |object: &Value, kind: &str| {
        let mut all = list(object, &["status", "conditions"]).iter();
        all.any(|one| one.str_at(&["type"]) == kind && one.str_at(&["status"]) == "True")
    };
    let (succeeded, failed) = (is(new, "Succeeded"), is(new, "Failed"));
    let mut refuse = |detail: &str| {
        let path = Path::of(&["status", "conditions"]);
        let fields = &["type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"];
        let all = list(new, &["status", "conditions"]);
        let shown = if all.is_empty() { Shown::verbatim("null") } else { Shown::structs(all, fields) };
        errors.push(FieldError::invalid(&path, shown, detail));
    };
    if succeeded && failed {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if is(old, "Succeeded") && !succeeded {
        refuse("Success condition cannot be set to false once it is true");
    }
    if is(old, "Failed") && !failed {
        refuse("Failed condition cannot be set to false once it is true");
    }
}

/// `metav1.Condition`s.
fn conditions(object: &Value, errors: &mut FieldErrors) {
    let all = list(object, &["status", "conditions"]);
    for (index, condition) in all.iter().enumerate() {
        let path = Path::of(&["status", "conditions"]).index(index);
        let text = |field: &str| condition.str_at(&[field]);
        if all[..index].iter().any(|one| one.str_at(&["type"]) == text("type")) {
            errors.push(FieldError::duplicate(&path, text("type")));
        }
        if text("type").is_empty() {
            errors.push(FieldError::required(&path.child("type"), "is required"));
        } else {
            let faults = names::is_qualified_name(text("type"));
            errors.extend(invalid_each(faults, &path.child("type"), text("type")));
        }
        if text("status").is_empty() {
            errors.push(FieldError::required(&path.child("status"), ""));
        } else if !matches!(text("status"), "True" | "False" | "Unknown") {
            let allowed = ["False", "True", "Unknown"];
            errors.push(FieldError::not_supported(&path.child("status"), text("status"), &allowed));
        }
        if let Some(seen) = number(condition, &["observedGeneration"]).filter(|one| *one < 0) {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), seen, detail));
        }
        if text("lastTransitionTime").is_empty() {
            errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
        }
        let reason = text("reason");
        if reason.is_empty() {
            errors.push(FieldError::required(&path.child("reason"), ""));
        } else if !is_reason(reason) {
            let detail = names::regex_error(REASON_FAULT, REASON_PATTERN, REASON_EXAMPLES);
            errors.push(FieldError::invalid(&path.child("reason"), reason, detail));
        }
        if LONGEST_REASON < reason.len() {
            errors.push(FieldError::too_long(&path.child("reason"), LONGEST_REASON));
        }
        if LONGEST_MESSAGE < text("message").len() {
            errors.push(FieldError::too_long(&path.child("message"), LONGEST_MESSAGE));
        }
    }
}

const REASON_PATTERN: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
const REASON_FAULT: &str = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
const REASON_EXAMPLES: &[&str] = &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];

fn is_reason(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    text.bytes().all(inner)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && !text.ends_with([',', ':'])
}

fn taint(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let selector = ["spec", "deviceSelector"];
    let field = |name: &str| object.at(&[selector[0], selector[1], name]).and_then(Value::as_str);
    let path = |name: &str| Path::of(&selector).child(name);
    for name in ["driver", "device"] {
        match field(name) {
            None => {}
            Some("") if name == "driver" => errors.push(FieldError::required(&path(name), "")),
            Some(text) if name == "driver" => {
                errors.extend(invalid_each(names::dns_subdomain(text, false), &path(name), text));
            }
            Some(text) => errors.extend(invalid_each(names::is_dns1123_label(text), &path(name), text)),
        }
    }
    match field("pool") {
        Some("") => errors.push(FieldError::required(&path("pool"), "")),
        Some(text) => {
            for part in text.split('/') {
                errors.extend(invalid_each(names::is_dns1123_subdomain(part), &path("pool"), part));
            }
        }
        None => {}
    }
    let path = Path::of(&["spec", "taint"]);
    let key = object.str_at(&["spec", "taint", "key"]);
    errors.extend(invalid_each(names::is_qualified_name(key), &path.child("key"), key));
    let value = object.str_at(&["spec", "taint", "value"]);
    errors.extend(invalid_each(names::is_label_value(value), &path.child("value"), value));
    let effect = object.str_at(&["spec", "taint", "effect"]);
    if old.is_none_or(|old| old.str_at(&["spec", "taint", "effect"]) != effect) {
        match effect {
            "" => errors.push(FieldError::required(&path.child("effect"), "")),
            "NoExecute" | "NoSchedule" | "None" => {}
            other => {
                let allowed = ["NoExecute", "NoSchedule", "None"];
                errors.push(FieldError::not_supported(&path.child("effect"), other, &allowed));
            }
        }
    }
}
