//! The cells of each kind's rows, in the order of the columns.

use crate::Value;
use crate::meta::Meta;
use crate::print::ages::{age, since};
use crate::time::Timestamp;

/// The cells of one object, those shown only with `-o wide` included.
pub fn table_row(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = || Value::from(object.name());
    let age = || Value::from(age(object, now));
    let text = |path: &[&str]| Value::from(object.str_at(path));
    match (group, kind) {
        ("", "Secret") => vec![name(), text(&["type"]), size(object, &["data"]), age()],
        ("", "ConfigMap") => vec![name(), size(object, &["data", "binaryData"]), age()],
        ("", "ServiceAccount") => vec![name(), age()],
        ("", "Namespace") => vec![name(), text(&["status", "phase"]), age()],
        ("", "Pod") => pod(object, now),
        ("", "Node") => node(object, now),
        ("" | "events.k8s.io", "Event") => event(object, now),
        ("coordination.k8s.io", "Lease") => vec![name(), text(&["spec", "holderIdentity"]), age()],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object, now),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        (_, kind) => {
            super::kind_cells::row(kind, object, now).unwrap_or_else(|| vec![name(), created(object)])
        }
    }
}

fn definition(object: &Value) -> Vec<Value> {
    let text = |path: &[&str]| Value::from(object.str_at(path));
    let list = |path: &[&str]| object.at(path).and_then(Value::as_array).unwrap_or_default();
    let is = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool) == Some(true);
    let mut versions: Vec<String> = list(&["spec", "versions"])
        .iter()
        .filter(|version| is(version, "served"))
        .map(|version| {
            let storage = if is(version, "storage") { "(storage)" } else { "" };
            format!("{}{storage}", version.str_at(&["name"]))
        })
        .collect();
    versions.sort();
    let short: Vec<&str> = list(&["spec", "names", "shortNames"]).iter().filter_map(Value::as_str).collect();
    let established = list(&["status", "conditions"]).iter().any(|condition| {
        condition.str_at(&["type"]) == "Established" && condition.str_at(&["status"]) == "True"
    });
    vec![
        Value::from(object.name()),
        text(&["spec", "scope"]),
        Value::from(versions.join(",")),
        created(object),
        text(&["spec", "group"]),
        text(&["spec", "names", "kind"]),
        Value::from(short.join(",")),
        Value::from(established),
    ]
}

fn created(object: &Value) -> Value {
    match object.str_at(&["metadata", "creationTimestamp"]) {
        // Go's zero time.
        "" => Value::from("0001-01-01T00:00:00Z"),
        time => Value::from(time),
    }
}

fn size(object: &Value, fields: &[&str]) -> Value {
    let count = |field: &&str| object.get(field).and_then(Value::as_object).map_or(0, |map| map.len());
    Value::Int(i64::try_from(fields.iter().map(count).sum::<usize>()).unwrap_or(i64::MAX))
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or_default()
}

fn flag(object: &Value, path: &[&str]) -> bool {
    object.at(path).and_then(Value::as_bool).unwrap_or_default()
}

fn is_set(object: &Value, path: &[&str]) -> bool {
    object.at(path).is_some_and(|value| !value.is_null())
}

fn binding(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = format!("{}/{}", object.str_at(&["roleRef", "kind"]), object.str_at(&["roleRef", "name"]));
    let subjects = |kind: &str| {
        let of_kind = list(object, &["subjects"]).iter().filter(|one| one.str_at(&["kind"]) == kind);
        let names = of_kind.map(|one| match (kind, one.str_at(&["namespace"])) {
            ("ServiceAccount", namespace) if !namespace.is_empty() => {
                format!("{namespace}/{}", one.str_at(&["name"]))
            }
            _ => one.str_at(&["name"]).to_owned(),
        });
        Value::from(names.collect::<Vec<_>>().join(", "))
    };
    vec![
        object.name().into(),
        role.into(),
        age(object, now).into(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    // Events of events.k8s.io name some fields otherwise.
    let either = |old: &[&str], new: &[&str]| or(object.str_at(old), object.str_at(new)).to_owned();
    let event_time = object.str_at(&["eventTime"]);
    let first = since(or(&either(&["firstTimestamp"], &["deprecatedFirstTimestamp"]), event_time), now);
    let last = either(&["lastTimestamp"], &["deprecatedLastTimestamp"]);
    let mut last = if last.is_empty() { first.clone() } else { since(&last, now) };
    let mut count = number(object, &["count"]).max(number(object, &["deprecatedCount"]));
    if is_set(object, &["series"]) {
        last = since(object.str_at(&["series", "lastObservedTime"]), now);
        count = number(object, &["series", "count"]);
    } else if count == 0 {
        count = 1;
    }
    let kind = either(&["involvedObject", "kind"], &["regarding", "kind"]).to_lowercase();
    let name = either(&["involvedObject", "name"], &["regarding", "name"]);
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let component = either(&["source", "component"], &["deprecatedSource", "component"]);
    let controller = either(&["reportingComponent"], &["reportingController"]);
    let host = either(&["source", "host"], &["deprecatedSource", "host"]);
    let (component, instance) =
        (or(&component, &controller).to_owned(), or(&host, object.str_at(&["reportingInstance"])).to_owned());
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    vec![
        last.into(),
        object.str_at(&["type"]).into(),
        object.str_at(&["reason"]).into(),
        target.into(),
        either(&["involvedObject", "fieldPath"], &["regarding", "fieldPath"]).into(),
        source.into(),
        either(&["message"], &["note"]).trim().into(),
        first.into(),
        count.into(),
        object.name().into(),
    ]
}

fn node(object: &Value, now: Timestamp) -> Vec<Value> {
    const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
    let ready = list(object, &["status", "conditions"])
        .iter()
        .rfind(|condition| condition.str_at(&["type"]) == "Ready");
    let mut status = match ready.map(|condition| condition.str_at(&["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(object, &["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = object
        .labels()
        .iter()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    let info = |field: &str| object.str_at(&["status", "nodeInfo", field]);
    let address = |kind: &str| {
        let addresses = list(object, &["status", "addresses"]);
        let found = addresses.iter().find(|address| address.str_at(&["type"]) == kind);
        Value::from(found.map_or("<none>", |address| address.str_at(&["address"])))
    };
    let mut kernel = or(info("kernelVersion"), "<unknown>").to_owned();
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        object.name().into(),
        status.into(),
        or(&roles.join(","), "<none>").into(),
        age(object, now).into(),
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), "<unknown>").into(),
        kernel.into(),
        or(info("containerRuntimeVersion"), "<unknown>").into(),
    ]
}

fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let state = PodState::of(object);
    let restarts = match (state.restarts, state.last_restart.as_str()) {
        (0, _) | (_, "") => state.restarts.to_string(),
        (count, last) => format!("{count} ({} ago)", since(last, now)),
    };
    let first_ip = list(object, &["status", "podIPs"]).first().map_or("", |ip| ip.str_at(&["ip"]));
    let text = |path: &[&str]| Value::from(or(object.str_at(path), "<none>"));
    vec![
        object.name().into(),
        format!("{}/{}", state.ready, state.total).into(),
        state.reason.into(),
        restarts.into(),
        age(object, now).into(),
        or(first_ip, "<none>").into(),
        text(&["spec", "nodeName"]),
        text(&["status", "nominatedNodeName"]),
        readiness_gates(object).into(),
    ]
}

fn readiness_gates(object: &Value) -> String {
    let gates = list(object, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = gates.iter().filter(|gate| condition(object, gate.str_at(&["conditionType"])) == "True");
    format!("{}/{}", met.count(), gates.len())
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let conditions = list(object, &["status", "conditions"]);
    conditions.iter().find(|one| one.str_at(&["type"]) == kind).map_or("", |one| one.str_at(&["status"]))
}

/// What the containers of a pod add up to.
struct PodState {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: String,
}

impl PodState {
    fn of(pod: &Value) -> Self {
        let phase = pod.str_at(&["status", "phase"]);
        let mut state = Self {
            reason: or(pod.str_at(&["status", "reason"]), phase).to_owned(),
            ready: 0,
            total: list(pod, &["spec", "containers"]).len(),
            restarts: 0,
            last_restart: String::new(),
        };
        let gated = list(pod, &["status", "conditions"]).iter().any(|one| {
            one.str_at(&["type"]) == "PodScheduled" && one.str_at(&["reason"]) == "SchedulingGated"
        });
        if gated {
            state.reason = "SchedulingGated".to_owned();
        }
        let sidecars: Vec<&str> = list(pod, &["spec", "initContainers"])
            .iter()
            .filter(|container| container.str_at(&["restartPolicy"]) == "Always")
            .map(|container| container.str_at(&["name"]))
            .collect();
        state.total += sidecars.len();
        let initializing = state.initialize(pod, &sidecars);
        if !initializing || condition(pod, "Initialized") == "True" {
            state.run(pod, &sidecars);
        }
        if pod.deletion_timestamp().is_some() {
            if pod.str_at(&["status", "reason"]) == "NodeLost" {
                state.reason = "Unknown".to_owned();
            } else if !matches!(phase, "Succeeded" | "Failed") {
                state.reason = "Terminating".to_owned();
            }
        }
        state
    }

    /// Whether an init container is not done.
    fn initialize(&mut self, pod: &Value, sidecars: &[&str]) -> bool {
        let count = list(pod, &["spec", "initContainers"]).len();
        for (index, status) in list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
            self.count_restarts(status);
            let sidecar = sidecars.contains(&status.str_at(&["name"]));
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            if is_set(status, &["state", "terminated"]) {
                if number(status, &["state", "terminated", "exitCode"]) == 0 {
                    continue;
                }
                self.reason = format!("Init:{}", termination(status));
            } else if sidecar && flag(status, &["started"]) {
                self.ready += usize::from(flag(status, &["ready"]));
                continue;
            } else if !matches!(waiting, "" | "PodInitializing") {
                self.reason = format!("Init:{waiting}");
            } else {
                self.reason = format!("Init:{index}/{count}");
            }
            return true;
        }
        false
    }

    fn run(&mut self, pod: &Value, sidecars: &[&str]) {
        // Of init containers, only those that keep running count from here on.
        (self.restarts, self.last_restart) = (0, String::new());
        for status in list(pod, &["status", "initContainerStatuses"]) {
            if sidecars.contains(&status.str_at(&["name"])) {
                self.count_restarts(status);
            }
        }
        let (mut running, mut error) = (false, String::new());
        for status in list(pod, &["status", "containerStatuses"]).iter().rev() {
            self.count_restarts(status);
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if is_set(status, &["state", "terminated"]) {
                self.reason = termination(status);
                if number(status, &["state", "terminated", "exitCode"]) != 0 {
                    error.clone_from(&self.reason);
                }
            } else if flag(status, &["ready"]) && is_set(status, &["state", "running"]) {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && condition(pod, "Ready") == "True" {
                self.reason = "Running".to_owned();
            } else if !error.is_empty() {
                self.reason = error;
            } else if running {
                self.reason = "NotReady".to_owned();
            }
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += number(status, &["restartCount"]);
        let finished = status.str_at(&["lastState", "terminated", "finishedAt"]);
        // Times of one form compare as texts.
        if finished > self.last_restart.as_str() {
            self.last_restart = finished.to_owned();
        }
    }
}

fn termination(status: &Value) -> String {
    let reason = status.str_at(&["state", "terminated", "reason"]);
    let signal = number(status, &["state", "terminated", "signal"]);
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", number(status, &["state", "terminated", "exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::columns;
    use crate::validation::field::go_json;
    use crate::validation::testing::object;

    const NOW: &str = "2023-11-14T22:13:20Z";

    #[track_caller]
    fn check(group: &str, kind: &str, json: &str, expected: &str) {
        let mut value = object(json);
        value.set(&["metadata", "name"], "x");
        value.set(&["metadata", "creationTimestamp"], "2023-11-14T22:08:20Z");
        let cells = table_row(group, kind, &value, NOW.parse().expect("a time"));
        assert_eq!(cells.len(), columns(group, kind).len(), "{kind}");
        assert_eq!(go_json(&Value::Array(cells)), expected);
    }

    #[test]
    fn rows_of_plain_kinds() {
        check("", "Secret", r#"{"type":"Opaque","data":{"a":"x","b":"y"}}"#, r#"["x","Opaque",2,"5m"]"#);
        check("", "Secret", r#"{"type":"t"}"#, r#"["x","t",0,"5m"]"#);
        check("", "ConfigMap", r#"{"data":{"a":"x"},"binaryData":{"b":"y"}}"#, r#"["x",2,"5m"]"#);
        check("", "ServiceAccount", "{}", r#"["x","5m"]"#);
        check("", "Namespace", r#"{"status":{"phase":"Active"}}"#, r#"["x","Active","5m"]"#);
        check("coordination.k8s.io", "Lease", r#"{"spec":{"holderIdentity":"h"}}"#, r#"["x","h","5m"]"#);
        check("rbac.authorization.k8s.io", "Role", "{}", r#"["x","2023-11-14T22:08:20Z"]"#);
        check(
            "rbac.authorization.k8s.io",
            "RoleBinding",
            r#"{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"},
                {"kind":"ServiceAccount","name":"s","namespace":"n"},{"kind":"User","name":"v"}]}"#,
            r#"["x","Role/r","5m","u, v","g","n/s"]"#,
        );
    }

    #[test]
    fn rows_of_events() {
        check(
            "",
            "Event",
            r#"{"lastTimestamp":"2023-11-14T22:13:15Z","firstTimestamp":"2023-11-14T22:13:00Z","type":"Normal",
                "reason":"R","involvedObject":{"kind":"Pod","name":"p","fieldPath":"f"},"message":" m ",
                "source":{"component":"c","host":"h"},"count":3}"#,
            r#"["5s","Normal","R","pod/p","f","c, h","m","20s",3,"x"]"#,
        );
        check(
            "",
            "Event",
            r#"{"eventTime":"2023-11-14T22:13:19.900000Z","reportingComponent":"c","reportingInstance":"i",
                "involvedObject":{"kind":"Pod"}}"#,
            r#"["0s","","","pod","","c, i","","0s",1,"x"]"#,
        );
        check(
            "",
            "Event",
            r#"{"series":{"count":7,"lastObservedTime":"2023-11-14T22:12:20.000000Z"},"involvedObject":{}}"#,
            r#"["60s","","","","","","","\u003cunknown\u003e",7,"x"]"#,
        );
    }

    #[test]
    fn rows_of_nodes() {
        check(
            "",
            "Node",
            r#"{"metadata":{"labels":{"node-role.kubernetes.io/b":"","node-role.kubernetes.io/a":"",
                "kubernetes.io/role":"a"}},"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready",
                "status":"True"}],"nodeInfo":{"kubeletVersion":"v1","kernelVersion":"6","architecture":"amd64"},
                "addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}"#,
            r#"["x","Ready,SchedulingDisabled","a,b","5m","v1","10.0.0.1","\u003cnone\u003e","\u003cunknown\u003e","6 (amd64)","\u003cunknown\u003e"]"#,
        );
    }

    #[test]
    fn rows_of_pods() {
        let tail = r#","5m","\u003cnone\u003e","\u003cnone\u003e","\u003cnone\u003e","\u003cnone\u003e"]"#;
        let check = |json: &str, ready: &str, status: &str, restarts: &str| {
            check("", "Pod", json, &format!("[\"x\",\"{ready}\",\"{status}\",\"{restarts}\"{tail}"));
        };
        let spec = r#""spec":{"containers":[{"name":"c"}]}"#;
        check(&format!(r#"{{{spec},"status":{{"phase":"Pending"}}}}"#), "0/1", "Pending", "0");
        check(
            &format!(
                r#"{{{spec},"status":{{"phase":"Running","containerStatuses":[{{"ready":true,"restartCount":2,"state":
                   {{"running":{{}}}},"lastState":{{"terminated":{{"finishedAt":"2023-11-14T22:13:10Z"}}}}}}]}}}}"#
            ),
            "1/1",
            "Running",
            "2 (10s ago)",
        );
        check(
            &format!(
                r#"{{{spec},"status":{{"phase":"Running","containerStatuses":[{{"restartCount":1,"state":
                   {{"waiting":{{"reason":"CrashLoopBackOff"}}}}}}]}}}}"#
            ),
            "0/1",
            "CrashLoopBackOff",
            "1",
        );
        check(
            &format!(
                r#"{{{spec},"status":{{"phase":"Failed","containerStatuses":[{{"state":{{"terminated":
                   {{"exitCode":3}}}}}}]}}}}"#
            ),
            "0/1",
            "ExitCode:3",
            "0",
        );
        check(
            r#"{"spec":{"containers":[{"name":"c"}],"initContainers":[{"name":"i"},{"name":"j"}]},"status":
                {"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},
                {"name":"j","state":{"waiting":{"reason":"PodInitializing"}}}]}}"#,
            "0/1",
            "Init:1/2",
            "0",
        );
        check(
            &format!(r#"{{"metadata":{{"deletionTimestamp":"t"}},{spec},"status":{{"phase":"Running"}}}}"#),
            "0/1",
            "Terminating",
            "0",
        );
    }
}
