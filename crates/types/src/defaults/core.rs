//! The core group.

use super::{is_empty, is_set, items_mut, object_in, set_absent, set_default, text};
use crate::{Map, Value};

/// Mode of the files of a volume that names none: 0644.
const DEFAULT_MODE: i64 = 420;
/// Seconds that a client keeps its endpoint: three hours.
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) fn rule(kind: &str, members: &mut Map) {
    match kind {
        "Pod" => pod(members),
        "PodSpec" => pod_spec(members),
        "PodStatus" => pod_status(members),
        "Container" => container(members, "image"),
        "EphemeralContainerCommon" => container(members, "image"),
        "Probe" => {
            for (field, number) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                set_default(members, field, number);
            }
        }
        "HTTPGetAction" => {
            set_default(members, "path", "/");
            set_default(members, "scheme", "HTTP");
        }
        "ObjectFieldSelector" => set_default(members, "apiVersion", "v1"),
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => set_absent(members, "defaultMode", DEFAULT_MODE),
        "ServiceAccountTokenProjection" => set_absent(members, "expirationSeconds", 3600),
        "HostPathVolumeSource" => set_absent(members, "type", ""),
        "AzureDiskVolumeSource" => {
            set_absent(members, "cachingMode", "ReadWrite");
            set_absent(members, "kind", "Shared");
        }
        "Volume" => volume(members),
        "Service" => service(members),
        "EndpointSubset" => {
            for port in items_mut(members, "ports") {
                set_default(port, "protocol", "TCP");
            }
        }
        "PersistentVolume" => {
            set_phase(members);
            if let Some(spec) = object_in(members, "spec") {
                set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
                set_absent(spec, "volumeMode", "Filesystem");
            }
        }
        "PersistentVolumeClaim" => set_phase(members),
        "PersistentVolumeClaimSpec" => set_absent(members, "volumeMode", "Filesystem"),
        "LimitRangeItem" => limit_range_item(members),
        "ReplicationController" => replication_controller(members),
        "NodeStatus" => {
            if !is_set(members, "allocatable")
                && let Some(capacity) = members.get("capacity").filter(|one| !one.is_null()).cloned()
            {
                members.insert("allocatable".to_owned(), capacity);
            }
        }
        _ => {}
    }
}

fn set_phase(members: &mut Map) {
    if let Some(status) = object_in(members, "status") {
        set_default(status, "phase", "Pending");
    }
}

fn pod(members: &mut Map) {
    let Some(spec) = object_in(members, "spec") else { return };
    let grace = "terminationGracePeriodSeconds";
    if spec.get(grace).and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert(grace.to_owned(), 1.into());
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            request_limits(container);
            if host_network {
                for port in items_mut(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned() {
                        set_default(port, "hostPort", number);
                    }
                }
            }
        }
    }
    set_absent(spec, "enableServiceLinks", true);
}

/// A container that limits a resource requests as much.
fn request_limits(container: &mut Map) {
    let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let Some(requests) = object_in(resources, "requests") else { return };
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn pod_spec(spec: &mut Map) {
    let mut account = text(spec, "serviceAccountName").to_owned();
    if account.is_empty() {
        text(spec, "serviceAccount").clone_into(&mut account);
    }
    if account.is_empty() {
        spec.remove("serviceAccount");
    } else {
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.to_owned(), account.as_str().into());
        }
    }
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_absent(spec, "securityContext", Value::object());
    set_absent(spec, "terminationGracePeriodSeconds", 30);
    set_default(spec, "schedulerName", "default-scheduler");
}

/// Keeps `podIP` and `podIPs` in step; the single one counts.
fn pod_status(status: &mut Map) {
    let listed = status.get("podIPs").and_then(Value::as_array).and_then(|ips| ips.first());
    let first = listed.map(|ip| ip.str_at(&["ip"]).to_owned());
    let single = text(status, "podIP").to_owned();
    match (single.is_empty(), first) {
        (true, Some(first)) => drop(status.insert("podIP".to_owned(), first.into())),
        (false, first) if first.as_deref() != Some(single.as_str()) => {
            status.insert("podIPs".to_owned(), vec![Value::from([("ip", single)])].into());
        }
        _ => {}
    }
}

fn container(container: &mut Map, image: &str) {
    set_default(container, "imagePullPolicy", pull_policy(text(container, image)));
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    // No pointer in Go, so it is always there.
    set_absent(container, "resources", Value::object());
}

fn volume(volume: &mut Map) {
    if !volume.iter().any(|(field, value)| field != "name" && !value.is_null()) {
        volume.insert("emptyDir".to_owned(), Value::object());
    }
    if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
        set_default(image, "pullPolicy", pull_policy(text(image, "reference")));
    }
}

fn pull_policy(image: &str) -> &'static str {
    if image_tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of an image: `latest` without tag and digest, `None` with a digest alone or a malformed name.
fn image_tag(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    let (last, tag) =
        name[start..].split_once(':').map_or((&name[start..], None), |(last, tag)| (last, Some(tag)));
    if last.is_empty() || last.chars().any(|character| character.is_ascii_uppercase()) {
        return None;
    }
    tag.or(if digest.is_none() { Some("latest") } else { None })
}

fn service(service: &mut Map) {
    let Some(spec) = object_in(service, "spec") else { return };
    set_default(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    }
    if text(spec, "sessionAffinity") == "ClientIP" {
        let seconds = spec
            .get("sessionAffinityConfig")
            .and_then(|config| config.at(&["clientIP", "timeoutSeconds"]))
            .filter(|seconds| !seconds.is_null());
        if seconds.is_none() {
            let client = Value::from([("timeoutSeconds", AFFINITY_SECONDS)]);
            spec.insert("sessionAffinityConfig".to_owned(), Value::from([("clientIP", client)]));
        }
    }
    set_default(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        set_default(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or(Value::Int(0));
        set_default(port, "targetPort", number);
    }
    let kind = text(spec, "type").to_owned();
    let external = matches!(kind.as_str(), "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !is_empty(spec, "externalIPs"));
    if external {
        set_default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        set_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind != "LoadBalancer" {
        return;
    }
    set_absent(spec, "allocateLoadBalancerNodePorts", true);
    let balancer = service.get_mut("status").and_then(|status| status.get_mut("loadBalancer"));
    for ingress in
        balancer.and_then(Value::as_object_mut).into_iter().flat_map(|one| items_mut(one, "ingress"))
    {
        if !text(ingress, "ip").is_empty() {
            set_absent(ingress, "ipMode", "VIP");
        }
    }
}

fn limit_range_item(item: &mut Map) {
    if text(item, "type") != "Container" {
        return;
    }
    let of =
        |item: &Map, field: &str| item.get(field).and_then(Value::as_object).cloned().unwrap_or_default();
    for (target, source) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let from = of(item, source);
        if let Some(target) = object_in(item, target) {
            for (name, quantity) in from {
                target.entry(name).or_insert(quantity);
            }
        }
    }
}

fn replication_controller(controller: &mut Map) {
    let labels =
        controller.get("spec").and_then(|spec| spec.at(&["template", "metadata", "labels"])).cloned();
    let Some(labels) = labels.filter(|labels| !labels.is_null()) else { return };
    if let Some(spec) = object_in(controller, "spec")
        && is_empty(spec, "selector")
    {
        spec.insert("selector".to_owned(), labels.clone());
    }
    super::others::take_labels(controller, labels);
}

#[cfg(test)]
mod tests {
    use super::image_tag;

    #[test]
    fn pull_policy_follows_the_tag() {
        for (image, expected) in [
            ("a", Some("latest")),
            ("a:latest", Some("latest")),
            ("r:5000/a", Some("latest")),
            ("r:5000/a:v1", Some("v1")),
            ("a@sha256:00", None),
            ("a:v1@sha256:00", Some("v1")),
            ("", None),
            ("A", None),
        ] {
            assert_eq!(image_tag(image), expected, "{image}");
        }
    }
}
