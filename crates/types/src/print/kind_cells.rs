//! Cells of the kinds that are stored for others.

use super::{ages, human_duration};
use crate::Value;
use crate::meta::Meta as _;
use crate::time::Timestamp;
use crate::validation::kinds::selector_text;

/// How many items of a list are shown.
const SHOWN: usize = 3;

/// The cells of an object, if its kind is one of these.
pub(super) fn row(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let view = View { object, now };
    Some(match kind {
        "PodTemplate" => {
            let labels = object.at(&["template", "metadata", "labels"]);
            vec![view.name(), view.containers(&["template"]), view.images(&["template"]), labels_text(labels)]
        }
        "ReplicationController"
        | "ReplicaSet"
        | "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "Job"
        | "CronJob" => view.workload(kind),
        "Service" | "Endpoints" | "EndpointSlice" | "Ingress" | "IngressClass" | "NetworkPolicy"
        | "IPAddress" | "ServiceCIDR" => view.network(kind),
        "PersistentVolume"
        | "PersistentVolumeClaim"
        | "StorageClass"
        | "CSIDriver"
        | "CSINode"
        | "VolumeAttachment"
        | "CSIStorageCapacity"
        | "VolumeAttributesClass" => view.storage(kind),
        _ => view.other(kind)?,
    })
}

struct View<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl View<'_> {
    fn name(&self) -> Value {
        self.object.name().into()
    }

    fn age(&self) -> Value {
        ages::age(self.object, self.now).into()
    }

    fn text(&self, path: &[&str]) -> Value {
        self.object.str_at(path).into()
    }

    fn or(&self, path: &[&str], other: &str) -> Value {
        or(self.object.str_at(path), other).into()
    }

    fn number(&self, path: &[&str]) -> i64 {
        self.object.at(path).and_then(Value::as_i64).unwrap_or_default()
    }

    fn flag(&self, path: &[&str], absent: bool) -> Value {
        self.object.at(path).and_then(Value::as_bool).unwrap_or(absent).into()
    }

    fn list(&self, path: &[&str]) -> &[Value] {
        self.object.at(path).and_then(Value::as_array).unwrap_or_default()
    }

    fn count(&self, path: &[&str]) -> Value {
        count(self.list(path))
    }

    fn of_containers(&self, template: &[&str], field: &str) -> Value {
        let mut path = template.to_vec();
        path.extend(["spec", "containers"]);
        joined(self.list(&path).iter().map(|container| container.str_at(&[field]))).into()
    }

    fn containers(&self, template: &[&str]) -> Value {
        self.of_containers(template, "name")
    }

    fn images(&self, template: &[&str]) -> Value {
        self.of_containers(template, "image")
    }

    fn workload(&self, kind: &str) -> Vec<Value> {
        let template: &[&str] = if kind == "CronJob" {
            &["spec", "jobTemplate", "spec", "template"]
        } else {
            &["spec", "template"]
        };
        let (names, images) = (self.containers(template), self.images(template));
        let status = |field: &str| self.number(&["status", field]);
        let of_desired =
            || Value::from(format!("{}/{}", status("readyReplicas"), self.number(&["spec", "replicas"])));
        let nothing = Value::Null;
        let selector = selector_text(self.object.at(&["spec", "selector"]).unwrap_or(&nothing));
        let or_none = Value::from(or(&selector, "<none>"));
        match kind {
            "Deployment" => vec![
                self.name(),
                of_desired(),
                status("updatedReplicas").into(),
                status("availableReplicas").into(),
                self.age(),
                names,
                images,
                selector.into(),
            ],
            "StatefulSet" => vec![self.name(), of_desired(), self.age(), names, images],
            "DaemonSet" => vec![
                self.name(),
                status("desiredNumberScheduled").into(),
                status("currentNumberScheduled").into(),
                status("numberReady").into(),
                status("updatedNumberScheduled").into(),
                status("numberAvailable").into(),
                labels_text(self.object.at(&["spec", "template", "spec", "nodeSelector"])),
                self.age(),
                names,
                images,
                or_none,
            ],
            "Job" => vec![
                self.name(),
                self.job_status().into(),
                self.completions().into(),
                self.job_duration().into(),
                self.age(),
                names,
                images,
                or_none,
            ],
            "CronJob" => {
                let nothing = Value::Null;
                let selector =
                    self.object.at(&["spec", "jobTemplate", "spec", "selector"]).unwrap_or(&nothing);
                let selector = selector_text(selector);
                let last = self.object.str_at(&["status", "lastScheduleTime"]);
                let last =
                    if last.is_empty() { "<none>".to_owned() } else { ages::event_time(last, self.now) };
                vec![
                    self.name(),
                    self.text(&["spec", "schedule"]),
                    self.or(&["spec", "timeZone"], "<none>"),
                    match self.object.at(&["spec", "suspend"]).and_then(Value::as_bool) {
                        None => "<unset>",
                        Some(true) => "True",
                        Some(false) => "False",
                    }
                    .into(),
                    self.count(&["status", "active"]),
                    last.into(),
                    self.age(),
                    names,
                    images,
                    or(&selector, "<none>").into(),
                ]
            }
            _ => vec![
                self.name(),
                self.number(&["spec", "replicas"]).into(),
                status("replicas").into(),
                status("readyReplicas").into(),
                self.age(),
                names,
                images,
                or_none,
            ],
        }
    }

    fn job_status(&self) -> &'static str {
        let has = |kind: &str| {
            self.list(&["status", "conditions"]).iter().any(|condition| {
                condition.str_at(&["type"]) == kind && condition.str_at(&["status"]) == "True"
            })
        };
        match () {
            () if has("Complete") => "Complete",
            () if has("Failed") => "Failed",
            () if self.object.deletion_timestamp().is_some() => "Terminating",
            () if has("Suspended") => "Suspended",
            () if has("FailureTarget") => "FailureTarget",
            () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
            () => "Running",
        }
    }

    fn completions(&self) -> String {
        let done = self.number(&["status", "succeeded"]);
        match self.object.at(&["spec", "completions"]).and_then(Value::as_i64) {
            Some(wanted) => format!("{done}/{wanted}"),
            None => match self.number(&["spec", "parallelism"]) {
                many if many > 1 => format!("{done}/1 of {many}"),
                _ => format!("{done}/1"),
            },
        }
    }

    fn job_duration(&self) -> String {
        let (start, end) =
            (self.object.str_at(&["status", "startTime"]), self.object.str_at(&["status", "completionTime"]));
        match (start.parse::<Timestamp>(), end.parse::<Timestamp>()) {
            (Ok(start), Ok(end)) => human_duration(end.duration_since(start).as_secs()),
            (Ok(_), Err(_)) => ages::event_time(start, self.now),
            _ => String::new(),
        }
    }

    fn network(&self, kind: &str) -> Vec<Value> {
        match kind {
            "Service" => vec![
                self.name(),
                self.text(&["spec", "type"]),
                self.list(&["spec", "clusterIPs"])
                    .first()
                    .and_then(Value::as_str)
                    .map_or("<none>", |address| address)
                    .into(),
                self.external_address().into(),
                self.service_ports().into(),
                self.age(),
                labels_text(self.object.at(&["spec", "selector"])),
            ],
            "Endpoints" => vec![self.name(), self.endpoints().into(), self.age()],
            "EndpointSlice" => {
                let ports = self.list(&["ports"]).iter().map(|port| match port.get("port") {
                    Some(Value::Int(number)) => number.to_string(),
                    _ => "*".to_owned(),
                });
                let endpoints = self
                    .list(&["endpoints"])
                    .iter()
                    .flat_map(|one| one.get("addresses").and_then(Value::as_array).unwrap_or_default());
                let endpoints = endpoints.map(|address| address.as_str().unwrap_or_default().to_owned());
                vec![
                    self.name(),
                    self.text(&["addressType"]),
                    first_few(ports, "<unset>").into(),
                    first_few(endpoints, "<unset>").into(),
                    self.age(),
                ]
            }
            "Ingress" => {
                let rules = self.list(&["spec", "rules"]);
                let hosts: Vec<&str> =
                    rules.iter().map(|rule| rule.str_at(&["host"])).filter(|host| !host.is_empty()).collect();
                let mut shown = joined(hosts.iter().take(SHOWN).copied());
                if shown.is_empty() {
                    "*".clone_into(&mut shown);
                } else if hosts.len() > SHOWN {
                    shown = format!("{shown} + {} more...", rules.len() - SHOWN);
                }
                let ports = if self.list(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" };
                vec![
                    self.name(),
                    self.or(&["spec", "ingressClassName"], "<none>"),
                    shown.into(),
                    self.balancer().into(),
                    ports.into(),
                    self.age(),
                ]
            }
            "IngressClass" => {
                let parameters = self.object.at(&["spec", "parameters"]).filter(|one| !one.is_null());
                let shown = parameters.map_or("<none>".to_owned(), |parameters| {
                    let group = match parameters.str_at(&["apiGroup"]) {
                        "" => String::new(),
                        group => format!(".{group}"),
                    };
                    format!("{}{group}/{}", parameters.str_at(&["kind"]), parameters.str_at(&["name"]))
                });
                vec![self.name(), self.text(&["spec", "controller"]), shown.into(), self.age()]
            }
            "NetworkPolicy" => {
                let nothing = Value::Null;
                let selector = selector_text(self.object.at(&["spec", "podSelector"]).unwrap_or(&nothing));
                vec![self.name(), or(&selector, "<none>").into(), self.age()]
            }
            "IPAddress" => {
                let parent = self.object.at(&["spec", "parentRef"]).filter(|one| !one.is_null());
                let shown = parent.map_or("<none>".to_owned(), |parent| {
                    let resource =
                        crate::status::qualified(parent.str_at(&["group"]), parent.str_at(&["resource"]));
                    let namespace = match parent.str_at(&["namespace"]) {
                        "" => String::new(),
                        namespace => format!("/{namespace}"),
                    };
                    format!("{}{namespace}/{}", resource.to_lowercase(), parent.str_at(&["name"]))
                });
                // Upstream has a cell more than columns.
                vec![self.name(), shown.into(), self.age()]
            }
            _ => {
                let ranges = joined(self.list(&["spec", "cidrs"]).iter().filter_map(Value::as_str));
                vec![self.name(), ranges.into(), self.age()]
            }
        }
    }

    fn external_address(&self) -> String {
        let own = joined(self.list(&["spec", "externalIPs"]).iter().filter_map(Value::as_str));
        match self.object.str_at(&["spec", "type"]) {
            "ClusterIP" | "NodePort" => or(&own, "<none>").to_owned(),
            "LoadBalancer" => {
                let given = self.balancer();
                match (given.is_empty(), own.is_empty()) {
                    (false, false) => format!("{given},{own}"),
                    (true, false) => own,
                    (false, true) => given,
                    (true, true) => "<pending>".to_owned(),
                }
            }
            "ExternalName" => self.object.str_at(&["spec", "externalName"]).to_owned(),
            _ => "<unknown>".to_owned(),
        }
    }

    fn balancer(&self) -> String {
        let ingress = self.list(&["status", "loadBalancer", "ingress"]).iter();
        let mut addresses: Vec<&str> =
            ingress.map(|one| or(one.str_at(&["ip"]), one.str_at(&["hostname"]))).collect();
        addresses.retain(|address| !address.is_empty());
        addresses.sort_unstable();
        addresses.dedup();
        joined(addresses)
    }

    fn service_ports(&self) -> String {
        let ports = self.list(&["spec", "ports"]).iter().map(|port| {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
            let protocol = port.str_at(&["protocol"]);
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node => format!("{}:{node}/{protocol}", number("port")),
            }
        });
        let ports = ports.collect::<Vec<_>>().join(",");
        or(&ports, "<none>").to_owned()
    }

    fn endpoints(&self) -> String {
        let mut all = Vec::new();
        for subset in self.list(&["subsets"]) {
            let of = |field: &str| subset.get(field).and_then(Value::as_array).unwrap_or_default();
            let address = |address: &Value| address.str_at(&["ip"]).to_owned();
            if of("ports").is_empty() {
                all.extend(of("addresses").iter().map(address));
            }
            for port in of("ports") {
                let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
                all.extend(of("addresses").iter().map(address).map(|ip| match ip.contains(':') {
                    true => format!("[{ip}]:{port}"),
                    false => format!("{ip}:{port}"),
                }));
            }
        }
        if self.list(&["subsets"]).is_empty() { "<none>".to_owned() } else { first_few(all.into_iter(), "") }
    }

    fn storage(&self, kind: &str) -> Vec<Value> {
        match kind {
            "PersistentVolume" => {
                let claim = self.object.at(&["spec", "claimRef"]).filter(|one| !one.is_null());
                let claim = claim.map_or(String::new(), |claim| {
                    format!("{}/{}", claim.str_at(&["namespace"]), claim.str_at(&["name"]))
                });
                vec![
                    self.name(),
                    self.or(&["spec", "capacity", "storage"], "0"),
                    access_modes(self.list(&["spec", "accessModes"])).into(),
                    self.text(&["spec", "persistentVolumeReclaimPolicy"]),
                    self.phase(),
                    claim.into(),
                    self.storage_class(),
                    self.or(&["spec", "volumeAttributesClassName"], "<unset>"),
                    self.text(&["status", "reason"]),
                    self.age(),
                    self.or(&["spec", "volumeMode"], "<unset>"),
                ]
            }
            "PersistentVolumeClaim" => {
                let bound = !self.object.str_at(&["spec", "volumeName"]).is_empty();
                let (capacity, modes) = if bound {
                    let size = or(self.object.str_at(&["status", "capacity", "storage"]), "0").to_owned();
                    (size, access_modes(self.list(&["status", "accessModes"])))
                } else {
                    (String::new(), String::new())
                };
                vec![
                    self.name(),
                    self.phase(),
                    self.text(&["spec", "volumeName"]),
                    capacity.into(),
                    modes.into(),
                    self.storage_class(),
                    self.or(&["spec", "volumeAttributesClassName"], "<unset>"),
                    self.age(),
                    self.or(&["spec", "volumeMode"], "<unset>"),
                ]
            }
            "StorageClass" => vec![
                self.name(),
                self.text(&["provisioner"]),
                self.or(&["reclaimPolicy"], "Delete"),
                self.or(&["volumeBindingMode"], "Immediate"),
                self.flag(&["allowVolumeExpansion"], false),
                self.age(),
            ],
            "CSIDriver" => {
                let modes =
                    joined(self.list(&["spec", "volumeLifecycleModes"]).iter().filter_map(Value::as_str));
                let tokens = self.list(&["spec", "tokenRequests"]);
                let audiences = joined(tokens.iter().map(|token| token.str_at(&["audience"])));
                let audiences = if tokens.is_empty() { "<unset>".to_owned() } else { audiences };
                vec![
                    self.name(),
                    self.flag(&["spec", "attachRequired"], true),
                    self.flag(&["spec", "podInfoOnMount"], false),
                    self.flag(&["spec", "storageCapacity"], false),
                    audiences.into(),
                    self.flag(&["spec", "requiresRepublish"], false),
                    or(&modes, "<none>").into(),
                    self.age(),
                ]
            }
            "CSINode" => vec![self.name(), self.count(&["spec", "drivers"]), self.age()],
            "VolumeAttachment" => vec![
                self.name(),
                self.text(&["spec", "attacher"]),
                self.text(&["spec", "source", "persistentVolumeName"]),
                self.text(&["spec", "nodeName"]),
                self.flag(&["status", "attached"], false),
                self.age(),
            ],
            "CSIStorageCapacity" => {
                vec![self.name(), self.text(&["storageClassName"]), self.or(&["capacity"], "<unset>")]
            }
            _ => vec![self.name(), self.text(&["driverName"]), self.age()],
        }
    }

    fn phase(&self) -> Value {
        match self.object.deletion_timestamp() {
            Some(_) => "Terminating".into(),
            None => self.text(&["status", "phase"]),
        }
    }

    fn storage_class(&self) -> Value {
        match self.object.annotation("volume.beta.kubernetes.io/storage-class") {
            Some(class) => class.into(),
            None => self.text(&["spec", "storageClassName"]),
        }
    }

    fn other(&self, kind: &str) -> Option<Vec<Value>> {
        let text_of = |path: &[&str], absent: &str| match self.object.at(path) {
            None | Some(Value::Null) => Value::from(absent),
            Some(Value::Int(number)) => number.to_string().into(),
            Some(value) => value.clone(),
        };
        Some(match kind {
            "PodDisruptionBudget" => vec![
                self.name(),
                text_of(&["spec", "minAvailable"], "N/A"),
                text_of(&["spec", "maxUnavailable"], "N/A"),
                self.number(&["status", "disruptionsAllowed"]).into(),
                self.age(),
            ],
            "HorizontalPodAutoscaler" => {
                let target =
                    ["kind", "name"].map(|field| self.object.str_at(&["spec", "scaleTargetRef", field]));
                vec![
                    self.name(),
                    target.join("/").into(),
                    self.targets().into(),
                    text_of(&["spec", "minReplicas"], "<unset>"),
                    self.number(&["spec", "maxReplicas"]).into(),
                    self.number(&["status", "currentReplicas"]).into(),
                    self.age(),
                ]
            }
            "ControllerRevision" => {
                vec![self.name(), self.controller().into(), self.number(&["revision"]).into(), self.age()]
            }
            "ResourceQuota" => {
                let (requests, limits) = self.quota();
                vec![self.name(), requests.into(), limits.into(), self.age()]
            }
            "PriorityClass" => vec![
                self.name(),
                self.number(&["value"]).into(),
                self.flag(&["globalDefault"], false),
                self.age(),
                self.text(&["preemptionPolicy"]),
            ],
            "RuntimeClass" => vec![self.name(), self.text(&["handler"]), self.age()],
            "CertificateSigningRequest" => {
                let seconds = self.object.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
                vec![
                    self.name(),
                    self.age(),
                    self.or(&["spec", "signerName"], "<none>"),
                    self.text(&["spec", "username"]),
                    seconds.map_or("<none>".to_owned(), human_duration).into(),
                    self.request_status().into(),
                ]
            }
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                vec![self.name(), self.count(&["webhooks"]), self.age()]
            }
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
                let rules = if kind.starts_with('V') { "validations" } else { "mutations" };
                let parameters = self.object.at(&["spec", "paramKind"]).filter(|one| !one.is_null());
                let parameters = parameters.map_or("<unset>".to_owned(), |one| {
                    format!("{}/{}", one.str_at(&["apiVersion"]), one.str_at(&["kind"]))
                });
                vec![self.name(), self.count(&["spec", rules]), parameters.into(), self.age()]
            }
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
                let reference =
                    ["name", "namespace"].map(|field| self.object.str_at(&["spec", "paramRef", field]));
                let shown = match reference {
                    ["", _] => "<unset>".to_owned(),
                    [name, namespace] => format!("{}/{name}", or(namespace, "*")),
                };
                vec![self.name(), self.text(&["spec", "policyName"]), shown.into(), self.age()]
            }
            "DeviceClass" | "ResourceClaimTemplate" => vec![self.name(), self.age()],
            "ResourceClaim" => vec![self.name(), self.claim_state().into(), self.age()],
            "ResourceSlice" => vec![
                self.name(),
                self.text(&["spec", "nodeName"]),
                self.text(&["spec", "driver"]),
                self.text(&["spec", "pool", "name"]),
                self.age(),
            ],
            "APIService" => {
                let own = ["namespace", "name"].map(|field| self.object.str_at(&["spec", "service", field]));
                let service = match self.object.at(&["spec", "service"]).filter(|service| !service.is_null())
                {
                    Some(_) => own.join("/"),
                    None => "Local".to_owned(),
                };
                let mut conditions = self.list(&["status", "conditions"]).iter();
                let available = conditions.find(|one| one.str_at(&["type"]) == "Available");
                let available = match available.map(|one| (one.str_at(&["status"]), one.str_at(&["reason"])))
                {
                    None => "Unknown".to_owned(),
                    Some(("True", _)) => "True".to_owned(),
                    Some((status, "")) => status.to_owned(),
                    Some((status, reason)) => format!("{status} ({reason})"),
                };
                vec![self.name(), service.into(), available.into(), self.age()]
            }
            "FlowSchema" | "PriorityLevelConfiguration" | "StorageVersionMigration" | "DeviceTaintRule" => {
                self.flow(kind)
            }
            _ => return None,
        })
    }

    fn flow(&self, kind: &str) -> Vec<Value> {
        match kind {
            "FlowSchema" => {
                let dangling = self.list(&["status", "conditions"]).iter();
                let dangling = dangling.filter(|one| one.str_at(&["type"]) == "Dangling");
                let dangling = dangling.map(|one| one.str_at(&["status"])).next().unwrap_or("?");
                vec![
                    self.name(),
                    self.text(&["spec", "priorityLevelConfiguration", "name"]),
                    self.number(&["spec", "matchingPrecedence"]).into(),
                    self.or(&["spec", "distinguisherMethod", "type"], "<none>"),
                    self.age(),
                    dangling.into(),
                ]
            }
            "PriorityLevelConfiguration" => {
                let limited = |path: &[&str]| match self.object.at(path).and_then(Value::as_i64) {
                    Some(number) => number.into(),
                    None => Value::from("<none>"),
                };
                let queuing = |field: &str| limited(&["spec", "limited", "limitResponse", "queuing", field]);
                vec![
                    self.name(),
                    self.text(&["spec", "type"]),
                    limited(&["spec", "limited", "nominalConcurrencyShares"]),
                    queuing("queues"),
                    queuing("handSize"),
                    queuing("queueLengthLimit"),
                    self.age(),
                ]
            }
            "StorageVersionMigration" => {
                let resource =
                    ["resource", "group"].map(|one| self.object.str_at(&["spec", "resource", one]));
                let state = self.list(&["status", "conditions"]).iter().rev();
                let state = state.filter(|one| one.str_at(&["status"]) == "True");
                let state = state.map(|one| one.str_at(&["type"]));
                let state = state.filter(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
                vec![
                    self.name(),
                    crate::status::qualified(resource[1], resource[0]).into(),
                    state.into_iter().next().unwrap_or("Unknown").into(),
                ]
            }
            _ => {
                let added = self.object.str_at(&["spec", "taint", "timeAdded"]);
                let added = match added {
                    "" => Value::from(""),
                    time => ages::event_time(time, self.now).into(),
                };
                let taint = |field: &str| self.text(&["spec", "taint", field]);
                vec![self.name(), taint("key"), taint("value"), taint("effect"), added, self.age()]
            }
        }
    }

    /// Of each metric what it is and what it should be; those of pods' resources in full.
    fn targets(&self) -> String {
        let current = self.list(&["status", "currentMetrics"]);
        let metrics = self.list(&["spec", "metrics"]);
        let shown = metrics.iter().enumerate().map(|(index, metric)| {
            let now = |field: &str| -> String {
                let found = current.get(index).and_then(|one| one.at(&["resource", "current", field]));
                match found {
                    Some(Value::Int(percent)) => format!("{percent}%"),
                    Some(Value::String(value)) => value.clone(),
                    _ => "<unknown>".to_owned(),
                }
            };
            let name = metric.str_at(&["resource", "name"]);
            match metric.at(&["resource", "target", "averageValue"]).and_then(Value::as_str) {
                Some(target) => format!("{name}: {}/{target}", now("averageValue")),
                None => {
                    let target =
                        metric.at(&["resource", "target", "averageUtilization"]).and_then(Value::as_i64);
                    let target = target.map_or("<auto>".to_owned(), |percent| format!("{percent}%"));
                    match name {
                        "" => "<unknown type>".to_owned(),
                        name => format!("{name}: {}/{target}", now("averageUtilization")),
                    }
                }
            }
        });
        let all: Vec<String> = shown.take(2).collect();
        match (all.is_empty(), metrics.len()) {
            (true, _) => "<none>".to_owned(),
            (false, count) if count > 2 => format!("{} + {} more...", all.join(", "), count - 2),
            (false, _) => all.join(", "),
        }
    }

    fn controller(&self) -> String {
        let owner = self
            .object
            .owner_references()
            .iter()
            .find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
        owner.map_or("<none>".to_owned(), |owner| {
            let (group, _) = crate::meta::split_api_version(owner.str_at(&["apiVersion"]));
            let kind = crate::status::qualified(group, &owner.str_at(&["kind"]).to_lowercase());
            format!("{kind}/{}", owner.str_at(&["name"]))
        })
    }

    fn quota(&self) -> (String, String) {
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for (name, hard) in
            self.object.at(&["status", "hard"]).and_then(Value::as_object).into_iter().flatten()
        {
            let used = or(self.object.str_at(&["status", "used", name]), "0");
            let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
            if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
        }
        (requests.join(", "), limits.join(", "))
    }

    fn request_status(&self) -> String {
        let has =
            |kind: &str| self.list(&["status", "conditions"]).iter().any(|one| one.str_at(&["type"]) == kind);
        let mut status = match () {
            () if has("Denied") => "Denied",
            () if has("Approved") => "Approved",
            () => "Pending",
        }
        .to_owned();
        if has("Failed") {
            status.push_str(",Failed");
        }
        let issued = self.object.at(&["status", "certificate"]).and_then(Value::as_bytes);
        if issued.is_some_and(|bytes| !bytes.is_empty()) {
            status.push_str(",Issued");
        }
        status
    }

    fn claim_state(&self) -> String {
        let mut states = Vec::new();
        if self.object.deletion_timestamp().is_some() {
            states.push("deleted");
        }
        if self.object.at(&["status", "allocation"]).is_none_or(Value::is_null) {
            if states.is_empty() {
                states.push("pending");
            }
        } else {
            states.push("allocated");
            if !self.list(&["status", "reservedFor"]).is_empty() {
                states.push("reserved");
            }
        }
        states.join(",")
    }
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(",")
}

fn count(items: &[Value]) -> Value {
    i64::try_from(items.len()).unwrap_or(i64::MAX).into()
}

fn labels_text(labels: Option<&Value>) -> Value {
    let text = selector_text(&Value::from([("matchLabels", labels.cloned().unwrap_or_default())]));
    or(&text, "<none>").into()
}

fn first_few(items: impl Iterator<Item = String>, none: &str) -> String {
    let all: Vec<String> = items.collect();
    let shown = all[..all.len().min(SHOWN)].join(",");
    match all.len() {
        0 => none.to_owned(),
        count if count > SHOWN => format!("{shown} + {} more...", count - SHOWN),
        _ => shown,
    }
}

fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|one| one.as_str() == Some(mode));
    joined(known.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short))
}
