//! Pod templates and what makes Pods of them.

use super::check::{
    is_set, list, not_negative, number, one_of, required, selector, selects_template, shown_selector,
    unchanged, unchanged_hidden,
};
use super::{Generation, KindRules, PLAIN, SPEC, Status, keep, same};
use crate::meta::Meta as _;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown, go_json, go_quote};
use crate::validation::meta::labels;
use crate::validation::pod;
use crate::{Map, Value};

const MISMATCH: &str = "`selector` does not match template `labels`";
/// Where a DaemonSet's count of templates is kept.
pub(super) const TEMPLATE_GENERATION: [&str; 3] =
    ["metadata", "annotations", "deprecated.daemonset.template.generation"];

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "PodTemplate",
        generation: Generation::Of(&[&["template"]]),
        validate: |object, errors| template(object, &["template"], errors),
        validate_update: |new, _, errors| template(new, &["template"], errors),
        ..PLAIN
    },
    KindRules {
        kind: "ReplicationController",
        status: Status::Own,
        generation: SPEC,
        validate: replication_controller,
        validate_update: |new, _, errors| replication_controller(new, errors),
        validate_status: |new, _, errors| replica_status(new, errors),
        ..PLAIN
    },
    KindRules {
        kind: "Deployment",
        generation: Generation::Of(&[&["spec"], &["metadata", "annotations"]]),
        validate: deployment,
        validate_update: |new, old, errors| {
            deployment(new, errors);
            unchanged_selector(new, old, errors);
        },
        validate_status: |new, _, errors| deployment_status(new, errors),
        ..APPS
    },
    KindRules {
        kind: "ReplicaSet",
        validate: replica_set,
        validate_update: |new, old, errors| {
            replica_set(new, errors);
            unchanged_selector(new, old, errors);
        },
        validate_status: |new, _, errors| replica_status(new, errors),
        ..APPS
    },
    KindRules {
        kind: "StatefulSet",
        name: names::dns_label,
        validate: |object, errors| stateful_set(object, errors),
        validate_update: |new, old, errors| {
            stateful_set(new, errors);
            unchanged_selector(new, old, errors);
            unchanged_hidden(new, old, &["spec", "volumeClaimTemplates"], errors);
            unchanged(new, old, &["spec", "serviceName"], errors);
            unchanged(new, old, &["spec", "podManagementPolicy"], errors);
        },
        validate_status: |new, _, errors| {
            for field in
                ["observedGeneration", "replicas", "readyReplicas", "currentReplicas", "updatedReplicas"]
            {
                not_negative(new, &["status", field], errors);
            }
        },
        ..APPS
    },
    KindRules {
        kind: "DaemonSet",
        prepare_create: |object| {
            if object.str_at(&TEMPLATE_GENERATION).parse::<i64>().unwrap_or(0) < 1 {
                object.set(&TEMPLATE_GENERATION, "1");
            }
        },
        prepare_update: count_templates,
        validate: daemon_set,
        validate_update: |new, old, errors| {
            daemon_set(new, errors);
            unchanged_selector(new, old, errors);
        },
        validate_status: |new, _, errors| {
            for field in
                ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"]
            {
                not_negative(new, &["status", field], errors);
            }
        },
        ..APPS
    },
    KindRules {
        group: "apps",
        kind: "ControllerRevision",
        validate: |object, errors| {
            not_negative(object, &["revision"], errors);
            if !is_set(object, &["data"]) {
                errors.push(FieldError::required(&Path::new("data"), "data is mandatory"));
            }
        },
        validate_update: |new, old, errors| {
            not_negative(new, &["revision"], errors);
            unchanged_hidden(new, old, &["data"], errors);
        },
        ..PLAIN
    },
    KindRules {
        kind: "Job",
        prepare_create: select_own_pods,
        validate: |object, errors| job(object, &["spec"], true, errors),
        validate_update: |new, old, errors| {
            job(new, &["spec"], true, errors);
            unchanged_selector(new, old, errors);
            for field in ["completions", "completionMode"] {
                unchanged(new, old, &["spec", field], errors);
            }
            for field in ["podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
                unchanged_hidden(new, old, &["spec", field], errors);
            }
            let suspended = old.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
            let started = is_set(old, &["status", "startTime"]);
            if !suspended || started || !same_but_placement(new, old) {
                unchanged_hidden(new, old, &["spec", "template", "spec"], errors);
            }
        },
        ..BATCH
    },
    KindRules {
        kind: "CronJob",
        validate: cron_job,
        validate_update: |new, _, errors| cron_job(new, errors),
        ..BATCH
    },
];

const APPS: KindRules = KindRules { group: "apps", status: Status::Own, generation: SPEC, ..PLAIN };
const BATCH: KindRules = KindRules { group: "batch", ..APPS };

/// The Pods of a template that stands at `path`.
fn template(object: &Value, path: &[&str], errors: &mut FieldErrors) {
    let nothing = Value::object();
    let template = object.at(path).unwrap_or(&nothing);
    let path = Path::of(path);
    if let Some(own) = template.at(&["metadata", "labels"]).and_then(Value::as_object) {
        errors.extend(labels(own, &path.child("labels")));
    }
    errors.extend(pod::validate_spec(template, &path.child("spec")));
}

/// The template of a kind that keeps Pods running.
fn lasting_template(object: &Value, matches: bool, errors: &mut FieldErrors) {
    if !matches {
        mismatch(object, errors);
    }
    template(object, &["spec", "template"], errors);
    let policy = object.str_at(&["spec", "template", "spec", "restartPolicy"]);
    let path = Path::of(&["spec", "template", "spec"]);
    if matches!(policy, "OnFailure" | "Never") {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if is_set(object, &["spec", "template", "spec", "activeDeadlineSeconds"]) {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), detail));
    }
}

fn mismatch(object: &Value, errors: &mut FieldErrors) {
    let path = ["spec", "template", "metadata", "labels"];
    let shown = object.at(&path).unwrap_or(&Value::Null);
    errors.push(FieldError::invalid(&Path::of(&path), shown, MISMATCH));
}

fn template_labels(object: &Value) -> Map {
    let found = object.at(&["spec", "template", "metadata", "labels"]).and_then(Value::as_object);
    found.cloned().unwrap_or_default()
}

/// The selector and the template of a kind; `what` names it in the text about an empty selector.
fn selected_template(object: &Value, what: &str, errors: &mut FieldErrors) {
    let path = Path::of(&["spec", "selector"]);
    let found = object.at(&["spec", "selector"]).filter(|selector| !selector.is_null());
    let Some(found) = found else {
        errors.push(FieldError::required(&path, ""));
        return lasting_template(object, false, errors);
    };
    let before = errors.len();
    selector(object, &["spec", "selector"], errors);
    if same(Some(found), None) || is_empty_selector(found) {
        let detail = format!("empty selector is invalid for {what}");
        errors.push(FieldError::invalid(&path, shown_selector(found), detail));
        return lasting_template(object, true, errors);
    }
    let malformed = list(found, &["matchExpressions"])
        .iter()
        .any(|one| !matches!(one.str_at(&["operator"]), "In" | "NotIn" | "Exists" | "DoesNotExist"));
    if before < errors.len() && malformed {
        errors.push(FieldError::invalid(&path, shown_selector(found), "invalid label selector"));
        return;
    }
    lasting_template(object, selects_template(found, &template_labels(object)), errors);
}

fn is_empty_selector(selector: &Value) -> bool {
    same(selector.get("matchLabels"), None) && same(selector.get("matchExpressions"), None)
}

fn unchanged_selector(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let path = ["spec", "selector"];
    if !same(new.at(&path), old.at(&path)) {
        let shown = new.at(&path).map_or(Shown::verbatim("null"), shown_selector);
        errors.push(FieldError::invalid(&Path::of(&path), shown, "field is immutable"));
    }
}

fn replication_controller(object: &Value, errors: &mut FieldErrors) {
    not_negative(object, &["spec", "minReadySeconds"], errors);
    not_negative(object, &["spec", "replicas"], errors);
    let chosen = object.at(&["spec", "selector"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if chosen.is_empty() {
        errors.push(FieldError::required(&Path::of(&["spec", "selector"]), ""));
    }
    if !is_set(object, &["spec", "template"]) {
        return errors.push(FieldError::required(&Path::of(&["spec", "template"]), ""));
    }
    let own = template_labels(object);
    let matches = chosen.iter().all(|(key, value)| own.get(key) == Some(value));
    lasting_template(object, matches, errors);
}

fn deployment(object: &Value, errors: &mut FieldErrors) {
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(object, &["spec", field], errors);
    }
    selected_template(object, "deployment", errors);
    strategy(object, "strategy", &["Recreate", "RollingUpdate"], errors);
    if object.str_at(&["spec", "strategy", "type"]) == "Recreate"
        && is_set(object, &["spec", "strategy", "rollingUpdate"])
    {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden(&Path::of(&["spec", "strategy", "rollingUpdate"]), detail));
    }
    let ready = number(object, &["spec", "minReadySeconds"]).unwrap_or_default();
    if let Some(deadline) = number(object, &["spec", "progressDeadlineSeconds"])
        && deadline <= ready
    {
        let path = Path::of(&["spec", "progressDeadlineSeconds"]);
        errors.push(FieldError::invalid(&path, deadline, "must be greater than minReadySeconds"));
    }
}

fn strategy(object: &Value, field: &str, allowed: &[&str], errors: &mut FieldErrors) {
    let kind = object.str_at(&["spec", field, "type"]);
    if !allowed.contains(&kind) {
        let rolling = object.at(&["spec", field, "rollingUpdate"]).unwrap_or(&Value::Null);
        let shown = format!("{{\"Type\":{},\"RollingUpdate\":{}}}", go_quote(kind), go_json(rolling));
        let path = Path::of(&["spec", field]);
        errors.push(FieldError::not_supported(&path, Shown::verbatim(shown), allowed));
    }
}

fn replica_set(object: &Value, errors: &mut FieldErrors) {
    not_negative(object, &["spec", "replicas"], errors);
    not_negative(object, &["spec", "minReadySeconds"], errors);
    selected_template(object, "deployment", errors);
}

fn stateful_set(object: &Value, errors: &mut FieldErrors) {
    let policy = object.str_at(&["spec", "podManagementPolicy"]);
    let path = Path::of(&["spec", "podManagementPolicy"]);
    match policy {
        "" => errors.push(FieldError::required(&path, "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            errors.push(FieldError::invalid(&path, other, "must be 'OrderedReady' or 'Parallel'"));
        }
    }
    let kind = object.str_at(&["spec", "updateStrategy", "type"]);
    if !matches!(kind, "RollingUpdate" | "OnDelete") {
        let rolling = object.at(&["spec", "updateStrategy", "rollingUpdate"]).unwrap_or(&Value::Null);
        let shown = format!("{{\"Type\":{},\"RollingUpdate\":{}}}", go_quote(kind), go_json(rolling));
        let path = Path::of(&["spec", "updateStrategy"]);
        let detail = "must be 'RollingUpdate' or 'OnDelete'";
        errors.push(FieldError::invalid(&path, Shown::verbatim(shown), detail));
    }
    not_negative(object, &["spec", "replicas"], errors);
    not_negative(object, &["spec", "minReadySeconds"], errors);
    selected_template(object, "statefulset", errors);
}

fn daemon_set(object: &Value, errors: &mut FieldErrors) {
    not_negative(object, &["spec", "minReadySeconds"], errors);
    not_negative(object, &["spec", "revisionHistoryLimit"], errors);
    selected_template(object, "daemonset", errors);
    strategy(object, "updateStrategy", &["RollingUpdate", "OnDelete"], errors);
}

/// A DaemonSet counts its templates in an annotation.
fn count_templates(new: &mut Value, old: &Value) {
    keep(new, old, &TEMPLATE_GENERATION);
    let template = ["spec", "template"];
    if !same(new.at(&template), old.at(&template)) {
        let count = old.str_at(&TEMPLATE_GENERATION).parse::<i64>().unwrap_or_default();
        new.set(&TEMPLATE_GENERATION, (count + 1).to_string());
    }
}

fn replica_status(object: &Value, errors: &mut FieldErrors) {
    let fields =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    for field in fields {
        not_negative(object, &["status", field], errors);
    }
    for field in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        at_most(object, field, "replicas", "cannot be greater than status.replicas", errors);
    }
    at_most(object, "availableReplicas", "readyReplicas", "cannot be greater than readyReplicas", errors);
}

fn deployment_status(object: &Value, errors: &mut FieldErrors) {
    let fields = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ];
    for field in fields {
        not_negative(object, &["status", field], errors);
    }
    for field in ["updatedReplicas", "readyReplicas", "availableReplicas"] {
        at_most(object, field, "replicas", "cannot be greater than status.replicas", errors);
    }
    at_most(object, "availableReplicas", "readyReplicas", "cannot be greater than readyReplicas", errors);
}

fn at_most(object: &Value, field: &str, limit: &str, detail: &str, errors: &mut FieldErrors) {
    let of = |field: &str| number(object, &["status", field]).unwrap_or_default();
    if of(limit) < of(field) {
        errors.push(FieldError::invalid(&Path::of(&["status", field]), of(field), detail));
    }
}

/// A Job selects its Pods by its own UID, unless it says that it selects them by hand.
fn select_own_pods(job: &mut Value) {
    if job.at(&["spec", "manualSelector"]).and_then(Value::as_bool) == Some(true) {
        return;
    }
    let (name, uid) = (job.name().to_owned(), job.uid().to_owned());
    let template = template_labels(job);
    let shared = job.labels() == &template;
    for (key, value) in [
        ("controller-uid", &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
    ] {
        if template.contains_key(key) {
            // A wrong one is for validation to find.
            continue;
        }
        job.set(&["spec", "template", "metadata", "labels", key], value.as_str());
        if shared {
            job.set(&["metadata", "labels", key], value.as_str());
        }
    }
    let own = ["spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"];
    if job.at(&own).is_none() {
        job.set(&own, uid);
    }
}

/// Whether a template changed only in what a Job that is suspended may still change.
fn same_but_placement(new: &Value, old: &Value) -> bool {
    let rest = |job: &Value| {
        let mut spec = job.at(&["spec", "template", "spec"]).cloned().unwrap_or_default();
        for field in ["nodeSelector", "affinity", "tolerations", "schedulingGates"] {
            spec.remove(&[field]);
        }
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container.remove(&["resources"]);
            }
        }
        spec
    };
    rest(new) == rest(old)
}

/// A Job, or the Jobs that a CronJob makes, whose selector comes later.
fn job(object: &Value, path: &[&str], selects: bool, errors: &mut FieldErrors) {
    let at = |field: &'static str| -> Vec<&str> { path.iter().copied().chain([field]).collect() };
    let fields =
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    for field in fields {
        not_negative(object, &at(field), errors);
    }
    if selects {
        if is_set(object, &at("selector")) {
            selector(object, &at("selector"), errors);
            let found = object.at(&at("selector")).unwrap_or(&Value::Null);
            if !selects_template(found, &template_labels(object)) {
                mismatch(object, errors);
            }
        } else {
            errors.push(FieldError::required(&Path::of(&at("selector")), ""));
        }
    }
    one_of(object, &at("completionMode"), &["NonIndexed", "Indexed"], errors);
    if object.str_at(&at("completionMode")) == "Indexed" && !is_set(object, &at("completions")) {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(&Path::of(&at("completions")), detail));
    }
    template(object, &at("template"), errors);
    let mut policy = at("template");
    policy.extend(["spec", "restartPolicy"]);
    match object.str_at(&policy) {
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required(&Path::of(&policy), detail));
        }
        _ => {}
    }
}

fn cron_job(object: &Value, errors: &mut FieldErrors) {
    required(object, &["spec", "schedule"], errors);
    for field in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(object, &["spec", field], errors);
    }
    one_of(object, &["spec", "concurrencyPolicy"], &["Allow", "Forbid", "Replace"], errors);
    job(object, &["spec", "jobTemplate", "spec"], false, errors);
}
