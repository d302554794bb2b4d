//! What the node writes about a pod: its condition, its report, events.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Resource};
use serde_json::json;

use super::NodeConfig;
use super::registration::MANAGER;
use crate::report::{ANNOTATION, CONDITION, ConsumerState, Report};
use crate::volume::tmpfs::Place;

/// The condition of type [`CONDITION`], without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodCondition {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// What the condition says: where the volumes are, what is missing, and that nothing runs.
pub(super) fn condition(
    pod: &Pod,
    report: &Report,
    failures: &[String],
    waiting: &BTreeMap<String, String>,
    place: &Place,
) -> PodCondition {
    let behind: Vec<String> = report
        .consumers
        .iter()
        .filter(|consumer| consumer.state == ConsumerState::Missing && !consumer.message.is_empty())
        .map(|consumer| consumer.message.clone())
        .chain(failures.iter().cloned())
        .chain(waiting.values().cloned())
        .collect();
    let others: Vec<&str> = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten())
        .filter(|volume| volume.secret.is_none() && volume.projected.is_none())
        .map(|volume| volume.name.as_str())
        .collect();
    let mut message = format!("this node runs no containers; secret volumes are {}", place.describe());
    if !others.is_empty() {
        message.push_str(&format!("; not materialised: {}", others.join(", ")));
    }
    let mut behind = behind;
    behind.sort();
    behind.dedup();
    match behind.is_empty() {
        true => PodCondition { status: "True", reason: "NoContainerRuntime", message },
        false => PodCondition {
            status: "False",
            reason: "SecretsMissing",
            message: format!("{}; {message}", behind.join("; ")),
        },
    }
}

/// Whether the server has marked what the node said of a pod as out of date.
pub(super) fn is_unknown(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|held| held.type_ == CONDITION && held.status == "Unknown")
}

/// Writes the pod's status; false when it must be tried again.
pub(super) async fn write(
    config: &NodeConfig,
    pod: &Pod,
    report: &Report,
    condition: &PodCondition,
    waiting: &BTreeMap<String, String>,
) -> bool {
    let api: Api<Pod> =
        Api::namespaced(config.client.clone(), pod.metadata.namespace.as_deref().unwrap_or_default());
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let Ok(text) = serde_json::to_string(report) else { return false };
    let statuses: Vec<serde_json::Value> = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .map(|container| {
            let (reason, message) = match waiting.get(&container.name) {
                Some(message) => ("CreateContainerConfigError", message.as_str()),
                None => ("NoContainerRuntime", "this node materialises Secrets and runs no containers"),
            };
            json!({
                "name": container.name,
                "image": container.image.clone().unwrap_or_default(),
                "imageID": "",
                "ready": false,
                "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": message}},
            })
        })
        .collect();
    let now = coffer_types::time::rfc3339(config.clock.now());
    let patch = json!({
        "metadata": {"uid": pod.metadata.uid, "annotations": {ANNOTATION: text}},
        "status": {
            "phase": "Pending",
            "conditions": [{
                "type": CONDITION,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": now,
            }],
            "containerStatuses": statuses,
        },
    });
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch_status(name, &parameters, &Patch::Strategic(patch)).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => false,
        Err(error) => {
            let code = if let kube::Error::Api(status) = &error { status.code } else { 0 };
            tracing::warn!(pod = name, code, "the status of a pod was not written");
            false
        }
    }
}

/// Emits a Warning about a pod. A failure is only logged.
pub(super) async fn event(config: &NodeConfig, pod: &Pod, reason: &str, note: String) {
    let reporter = Reporter { controller: MANAGER.to_owned(), instance: Some(config.node_name.clone()) };
    let recorder = Recorder::new(config.client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: reason.to_owned(),
        note: Some(note),
        action: "Materialise".to_owned(),
        secondary: None,
    };
    if recorder.publish(&event, &pod.object_ref(&())).await.is_err() {
        tracing::warn!(reason, "an event was not written");
    }
}
