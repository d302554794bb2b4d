//! The other groups.

use super::{is_empty, is_set, object_in, set_absent, set_default, text};
use crate::{Map, Value};

/// Retries of a Job that counts them for each index.
const UNLIMITED: i64 = i32::MAX as i64;

pub(super) fn rule(name: &str, members: &mut Map) {
    match name {
        "apps/v1.Deployment" => within(members, deployment),
        "apps/v1.DaemonSet" => within(members, daemon_set),
        "apps/v1.StatefulSet" => within(members, stateful_set),
        "apps/v1.ReplicaSet" => within(members, |spec| set_absent(spec, "replicas", 1)),
        "batch/v1.Job" => job(members),
        "batch/v1.CronJob" => within(members, |spec| {
            set_default(spec, "concurrencyPolicy", "Allow");
            set_absent(spec, "suspend", false);
            set_absent(spec, "successfulJobsHistoryLimit", 3);
            set_absent(spec, "failedJobsHistoryLimit", 1);
        }),
        "batch/v1.PodFailurePolicyOnPodConditionsPattern" => set_default(members, "status", "True"),
        "autoscaling/v2.HorizontalPodAutoscaler" => within(members, autoscaler),
        "autoscaling/v1.HorizontalPodAutoscaler" => {
            within(members, |spec| set_absent(spec, "minReplicas", 1))
        }
        "networking/v1.NetworkPolicyPort" => set_absent(members, "protocol", "TCP"),
        "networking/v1.NetworkPolicy" => within(members, network_policy),
        "networking/v1.IngressClassParametersReference" => set_absent(members, "scope", "Cluster"),
        "discovery/v1.EndpointPort" => {
            set_absent(members, "name", "");
            set_absent(members, "protocol", "TCP");
        }
        "storage/v1.StorageClass" => {
            set_absent(members, "reclaimPolicy", "Delete");
            set_absent(members, "volumeBindingMode", "Immediate");
        }
        "storage/v1.CSIDriver" => within(members, csi_driver),
        "scheduling/v1.PriorityClass" => set_absent(members, "preemptionPolicy", "PreemptLowerPriority"),
        "admissionregistration/v1.ValidatingWebhook" => webhook(members),
        "admissionregistration/v1.MutatingWebhook" => {
            webhook(members);
            set_absent(members, "reinvocationPolicy", "Never");
        }
        "admissionregistration/v1.Rule" => set_absent(members, "scope", "*"),
        "admissionregistration/v1.ServiceReference" => set_absent(members, "port", 443),
        "admissionregistration/v1.ValidatingAdmissionPolicySpec"
        | "admissionregistration/v1.MutatingAdmissionPolicySpec" => {
            set_absent(members, "failurePolicy", "Fail");
        }
        "admissionregistration/v1.MatchResources" => matches(members),
        "flowcontrol/v1.FlowSchemaSpec" => set_default(members, "matchingPrecedence", 1000),
        "flowcontrol/v1.ExemptPriorityLevelConfiguration" => {
            set_absent(members, "nominalConcurrencyShares", 0);
            set_absent(members, "lendablePercent", 0);
        }
        "flowcontrol/v1.LimitedPriorityLevelConfiguration" => {
            set_absent(members, "nominalConcurrencyShares", 30);
            set_absent(members, "lendablePercent", 0);
        }
        "flowcontrol/v1.QueuingConfiguration" => {
            set_default(members, "queues", 64);
            set_default(members, "handSize", 8);
            set_default(members, "queueLengthLimit", 50);
        }
        "resource/v1.ExactDeviceRequest" | "resource/v1.DeviceSubRequest" => {
            set_default(members, "allocationMode", "ExactCount");
            if text(members, "allocationMode") == "ExactCount" {
                set_default(members, "count", 1);
            }
        }
        _ => {}
    }
}

fn within(members: &mut Map, rule: impl FnOnce(&mut Map)) {
    if let Some(spec) = object_in(members, "spec") {
        rule(spec);
    }
}

/// An object without labels takes those of its template.
pub(super) fn take_labels(members: &mut Map, labels: Value) {
    if let Some(metadata) = object_in(members, "metadata")
        && is_empty(metadata, "labels")
        && labels.as_object().is_some_and(|labels| !labels.is_empty())
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn deployment(spec: &mut Map) {
    set_absent(spec, "replicas", 1);
    if let Some(strategy) = object_in(spec, "strategy") {
        set_default(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_in(strategy, "rollingUpdate")
        {
            set_absent(rolling, "maxUnavailable", "25%");
            set_absent(rolling, "maxSurge", "25%");
        }
    }
    set_absent(spec, "revisionHistoryLimit", 10);
    set_absent(spec, "progressDeadlineSeconds", 600);
}

fn daemon_set(spec: &mut Map) {
    if let Some(strategy) = object_in(spec, "updateStrategy") {
        set_default(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = object_in(strategy, "rollingUpdate")
        {
            set_absent(rolling, "maxUnavailable", 1);
            set_absent(rolling, "maxSurge", 0);
        }
    }
    set_absent(spec, "revisionHistoryLimit", 10);
}

fn stateful_set(spec: &mut Map) {
    set_default(spec, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = object_in(spec, "updateStrategy") {
        if text(strategy, "type").is_empty() {
            set_default(strategy, "type", "RollingUpdate");
            set_absent(strategy, "rollingUpdate", Value::object());
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
        {
            set_absent(rolling, "partition", 0);
            set_absent(rolling, "maxUnavailable", 1);
        }
    }
    if let Some(retention) = object_in(spec, "persistentVolumeClaimRetentionPolicy") {
        set_default(retention, "whenDeleted", "Retain");
        set_default(retention, "whenScaled", "Retain");
    }
    set_absent(spec, "replicas", 1);
    set_absent(spec, "revisionHistoryLimit", 10);
    for claim in super::items_mut(spec, "volumeClaimTemplates") {
        set_default(claim, "kind", "PersistentVolumeClaim");
        set_default(claim, "apiVersion", "v1");
    }
}

fn job(members: &mut Map) {
    let Some(spec) = object_in(members, "spec") else { return };
    if !is_set(spec, "completions") && !is_set(spec, "parallelism") {
        set_absent(spec, "completions", 1);
    }
    set_absent(spec, "parallelism", 1);
    let retries = if is_set(spec, "backoffLimitPerIndex") { UNLIMITED } else { 6 };
    set_absent(spec, "backoffLimit", retries);
    set_absent(spec, "completionMode", "NonIndexed");
    set_absent(spec, "suspend", false);
    let replacement = if is_set(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_absent(spec, "podReplacementPolicy", replacement);
    set_absent(spec, "manualSelector", false);
    let labels = members.get("spec").and_then(|spec| spec.at(&["template", "metadata", "labels"])).cloned();
    if let Some(labels) = labels {
        take_labels(members, labels);
    }
}

fn autoscaler(spec: &mut Map) {
    set_absent(spec, "minReplicas", 1);
    if is_empty(spec, "metrics") {
        let target = Value::from([("type", Value::from("Utilization")), ("averageUtilization", 80.into())]);
        let resource = Value::from([("name", Value::from("cpu")), ("target", target)]);
        let metric = Value::from([("type", Value::from("Resource")), ("resource", resource)]);
        spec.insert("metrics".to_owned(), vec![metric].into());
    }
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let policy = |kind: &str, value: i64| {
        Value::from([("type", Value::from(kind)), ("value", value.into()), ("periodSeconds", 15.into())])
    };
    for direction in ["scaleUp", "scaleDown"] {
        let Some(rules) = object_in(behavior, direction) else { continue };
        set_absent(rules, "selectPolicy", "Max");
        let policies = if direction == "scaleUp" {
            set_absent(rules, "stabilizationWindowSeconds", 0);
            vec![policy("Pods", 4), policy("Percent", 100)]
        } else {
            vec![policy("Percent", 100)]
        };
        set_absent(rules, "policies", policies);
    }
}

fn network_policy(spec: &mut Map) {
    if is_empty(spec, "policyTypes") {
        let mut types = vec![Value::from("Ingress")];
        if !is_empty(spec, "egress") {
            types.push("Egress".into());
        }
        spec.insert("policyTypes".to_owned(), types.into());
    }
}

fn csi_driver(spec: &mut Map) {
    set_absent(spec, "attachRequired", true);
    for field in [
        "podInfoOnMount",
        "storageCapacity",
        "requiresRepublish",
        "seLinuxMount",
        "preventPodSchedulingIfMissing",
    ] {
        set_absent(spec, field, false);
    }
    set_absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if is_empty(spec, "volumeLifecycleModes") {
        spec.insert("volumeLifecycleModes".to_owned(), vec![Value::from("Persistent")].into());
    }
}

fn webhook(members: &mut Map) {
    set_absent(members, "failurePolicy", "Fail");
    set_absent(members, "timeoutSeconds", 10);
    matches(members);
}

fn matches(members: &mut Map) {
    set_absent(members, "matchPolicy", "Equivalent");
    set_absent(members, "namespaceSelector", Value::object());
    set_absent(members, "objectSelector", Value::object());
}
