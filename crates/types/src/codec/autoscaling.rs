//! HorizontalPodAutoscalers between the stored `autoscaling/v2` and `v1`.
//!
//! The older version has one metric, the use of CPU; everything else that the newer one says stands in annotations.

use super::{json, normalize};
use crate::meta::Meta;
use crate::schema;
use crate::validation::field::go_json;
use crate::{Map, Value};

const GROUP: &str = "autoscaling";
const KIND: &str = "HorizontalPodAutoscaler";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const OURS: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
/// What the CPU is used when nothing else is said.
const DEFAULT_PERCENT: i64 = 80;
/// Kinds of metrics and the fields that they stand in.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
    ("External", "external"),
];

/// The `v1` form of a `v2` object.
pub fn to_v1(stored: &Value) -> Value {
    let mut served = stored.clone();
    drop_annotations(&mut served);
    let metrics = take_list(&mut served, "spec", "metrics");
    let current = take_list(&mut served, "status", "currentMetrics");
    let conditions = take_list(&mut served, "status", "conditions");
    let behavior = served.remove(&["spec", "behavior"]).filter(|behavior| !behavior.is_null());
    if let Some(percent) = metrics.iter().find_map(cpu_percent) {
        served.set(&["spec", "targetCPUUtilizationPercentage"], percent);
    }
    let used = current.iter().rev().filter(|one| is_cpu(one));
    let used = used.filter_map(|one| one.at(&["resource", "current", "averageUtilization"]).cloned()).next();
    if let Some(percent) = used {
        served.set(&["status", "currentCPUUtilizationPercentage"], percent);
    }
    let others: Vec<String> =
        metrics.iter().filter(|one| cpu_percent(one).is_none()).map(|one| metric(one, false)).collect();
    let mut annotate = |name: &str, text: String| served.set(&["metadata", "annotations", name], text);
    if !others.is_empty() {
        annotate(METRICS, array(&others));
    }
    if !current.is_empty() {
        annotate(CURRENT, array(&current.iter().map(|one| metric(one, true)).collect::<Vec<_>>()));
    }
    if let Some(behavior) = behavior {
        annotate(BEHAVIOR, behavior_text(&behavior));
    }
    if !conditions.is_empty() {
        annotate(CONDITIONS, array(&conditions.iter().map(condition).collect::<Vec<_>>()));
    }
    in_version("v1", served)
}

/// The `v2` form of a `v1` object.
pub fn to_v2(served: &Value) -> Value {
    let mut stored = served.clone();
    let said = |name: &str| {
        let text = served.at(&["metadata", "annotations", name])?.as_str()?;
        json::decode_untyped(text.as_bytes()).ok().map(|decoded| decoded.object)
    };
    let listed = |name: &str| {
        said(name).and_then(|value| match value {
            Value::Array(items) if items.iter().all(|item| matches!(item, Value::Object(_))) => Some(items),
            _ => None,
        })
    };
    drop_annotations(&mut stored);
    let mut metrics: Vec<Value> =
        listed(METRICS).unwrap_or_default().iter().map(|one| newer_metric(one, false)).collect();
    let percent = stored.remove(&["spec", "targetCPUUtilizationPercentage"]).filter(|one| !one.is_null());
    let percent = percent.or_else(|| metrics.is_empty().then(|| DEFAULT_PERCENT.into()));
    if let Some(percent) = percent {
        let target = Value::from([("type", Value::from("Utilization")), ("averageUtilization", percent)]);
        metrics.push(cpu("target", target));
    }
    stored.set(&["spec", "metrics"], metrics);
    let used = stored.remove(&["status", "currentCPUUtilizationPercentage"]).filter(|one| !one.is_null());
    let current = match (listed(CURRENT), used) {
        (Some(current), _) => current.iter().map(|one| newer_metric(one, true)).collect(),
        (None, Some(percent)) => vec![cpu("current", Value::from([("averageUtilization", percent)]))],
        (None, None) => Vec::new(),
    };
    if !current.is_empty() {
        stored.set(&["status", "currentMetrics"], current);
    }
    if let Some(conditions) = listed(CONDITIONS) {
        stored.set(&["status", "conditions"], conditions);
    }
    if let Some(behavior) = said(BEHAVIOR).map(|behavior| renamed(&behavior))
        && behavior.as_object().is_some_and(|members| !members.is_empty())
    {
        stored.set(&["spec", "behavior"], behavior);
    }
    in_version("v2", stored)
}

fn in_version(version: &str, mut object: Value) -> Value {
    object.set_type(&crate::meta::api_version(GROUP, version), KIND);
    if let (Some(kind), Value::Object(members)) = (schema::lookup(GROUP, version, KIND), &mut object) {
        normalize(kind.message, members);
    }
    object
}

fn drop_annotations(object: &mut Value) {
    for name in OURS {
        object.remove(&["metadata", "annotations", name]);
    }
    if object.at(&["metadata", "annotations"]).and_then(Value::as_object).is_some_and(Map::is_empty) {
        object.remove(&["metadata", "annotations"]);
    }
}

fn take_list(object: &mut Value, part: &str, field: &str) -> Vec<Value> {
    match object.remove(&[part, field]) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu"
}

fn cpu_percent(metric: &Value) -> Option<Value> {
    let percent = metric.at(&["resource", "target", "averageUtilization"]).filter(|one| !one.is_null());
    percent.filter(|_| is_cpu(metric)).cloned()
}

fn cpu(field: &'static str, value: Value) -> Value {
    let resource = Value::from([("name", Value::from("cpu")), (field, value)]);
    Value::from([("type", Value::from("Resource")), ("resource", resource)])
}

fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// An object of JSON in the order of Go's struct, without what is not there.
fn object(fields: &[(&str, Option<String>)]) -> String {
    let there = fields.iter().filter_map(|(name, text)| Some(format!("{:?}:{}", name, text.as_ref()?)));
    format!("{{{}}}", there.collect::<Vec<_>>().join(","))
}

fn text(object: &Value, path: &[&str]) -> Option<String> {
    object.at(path).filter(|value| !value.is_null()).map(go_json)
}

/// The text of a field that Go always writes.
fn always(object: &Value, path: &[&str], absent: &str) -> Option<String> {
    Some(text(object, path).unwrap_or_else(|| absent.to_owned()))
}

fn metric(metric: &Value, status: bool) -> String {
    let mut fields = vec![("type", always(metric, &["type"], "\"\""))];
    for (_, field) in SOURCES {
        let source = metric.get(field).filter(|source| !source.is_null());
        fields.push((field, source.map(|source| older_source(field, source, status))));
    }
    object(&fields)
}

fn older_source(field: &str, source: &Value, status: bool) -> String {
    let (part, value, average, percent) = if status {
        ("current", "currentValue", "currentAverageValue", "currentAverageUtilization")
    } else {
        ("target", "targetValue", "targetAverageValue", "targetAverageUtilization")
    };
    const NONE: &str = "\"0\"";
    let of = |name: &str| text(source, &[part, name]);
    let with_none = |name: &str| always(source, &[part, name], NONE);
    let name = always(source, &["metric", "name"], "\"\"");
    let selector = text(source, &["metric", "selector"]);
    match field {
        "object" => {
            let described = |name: &str| text(source, &["describedObject", name]);
            let target = object(&[
                ("kind", always(source, &["describedObject", "kind"], "\"\"")),
                ("name", always(source, &["describedObject", "name"], "\"\"")),
                ("apiVersion", described("apiVersion").filter(|version| version != "\"\"")),
            ]);
            object(&[
                ("target", Some(target)),
                ("metricName", name),
                (value, with_none("value")),
                ("selector", selector),
                ("averageValue", of("averageValue")),
            ])
        }
        "pods" => {
            object(&[("metricName", name), (average, with_none("averageValue")), ("selector", selector)])
        }
        "external" => {
            let own = if status { with_none("value") } else { of("value") };
            object(&[
                ("metricName", name),
                ("metricSelector", selector),
                (value, own),
                (average, of("averageValue")),
            ])
        }
        _ => {
            let amount = if status { with_none("averageValue") } else { of("averageValue") };
            object(&[
                ("name", always(source, &["name"], "\"\"")),
                (percent, of("averageUtilization")),
                (average, amount),
                ("container", text(source, &["container"]).filter(|_| field == "containerResource")),
            ])
        }
    }
}

fn condition(condition: &Value) -> String {
    let or_none = |name: &str| text(condition, &[name]).filter(|text| text != "\"\"");
    object(&[
        ("type", always(condition, &["type"], "\"\"")),
        ("status", always(condition, &["status"], "\"\"")),
        ("lastTransitionTime", always(condition, &["lastTransitionTime"], "null")),
        ("reason", or_none("reason")),
        ("message", or_none("message")),
    ])
}

/// Upstream writes the struct of its own version, which has no names of JSON.
fn behavior_text(behavior: &Value) -> String {
    let direction = |field: &str| {
        let rules = behavior.get(field).filter(|rules| !rules.is_null());
        let Some(rules) = rules else { return "null".to_owned() };
        let policies = rules.get("policies").and_then(Value::as_array).map(|policies| {
            let policy = |policy: &Value| {
                object(&[
                    ("Type", always(policy, &["type"], "\"\"")),
                    ("Value", always(policy, &["value"], "0")),
                    ("PeriodSeconds", always(policy, &["periodSeconds"], "0")),
                ])
            };
            array(&policies.iter().map(policy).collect::<Vec<_>>())
        });
        object(&[
            ("StabilizationWindowSeconds", always(rules, &["stabilizationWindowSeconds"], "null")),
            ("SelectPolicy", always(rules, &["selectPolicy"], "null")),
            ("Policies", Some(policies.unwrap_or_else(|| "null".to_owned()))),
            ("Tolerance", always(rules, &["tolerance"], "null")),
        ])
    };
    object(&[("ScaleUp", Some(direction("scaleUp"))), ("ScaleDown", Some(direction("scaleDown")))])
}

/// With the first letter of each field small, without what is null.
fn renamed(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let there = members.iter().filter(|(_, value)| !value.is_null());
            let small = there.map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect(), renamed(value))
            });
            Value::Object(small.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(renamed).collect()),
        other => other.clone(),
    }
}

fn newer_metric(metric: &Value, status: bool) -> Value {
    let mut newer = Value::object();
    newer.set_str(&["type"], metric.str_at(&["type"]));
    for (_, field) in SOURCES {
        if let Some(source) = metric.get(field).filter(|source| !source.is_null()) {
            newer.set(&[field], newer_source(field, source, status));
        }
    }
    newer
}

fn newer_source(field: &str, source: &Value, status: bool) -> Value {
    let prefix = if status { "current" } else { "target" };
    let get = |name: &str| source.get(name).filter(|value| !value.is_null()).cloned();
    let of = |name: &str| get(&format!("{prefix}{name}"));
    let (mut value, mut average) = (of("Value"), of("AverageValue"));
    let percent = of("AverageUtilization");
    if field == "object" {
        average = get("averageValue");
        if !status && average.is_some() && value.as_ref().and_then(Value::as_str) == Some("0") {
            value = None;
        }
    }
    let mut newer = Value::object();
    if matches!(field, "resource" | "containerResource") {
        newer.set_str(&["name"], source.str_at(&["name"]));
        if let Some(container) = get("container") {
            newer.set(&["container"], container);
        }
    } else {
        newer.set_str(&["metric", "name"], source.str_at(&["metricName"]));
        let selector = get(if field == "external" { "metricSelector" } else { "selector" });
        if let Some(selector) = selector {
            newer.set(&["metric", "selector"], selector);
        }
    }
    if let Some(target) = get("target").filter(|_| field == "object") {
        newer.set(&["describedObject"], target);
    }
    if !status {
        let kind = match field {
            "pods" => "AverageValue",
            "object" if average.is_some() => "AverageValue",
            "object" => "Value",
            "external" if value.is_none() => "AverageValue",
            "external" => "Value",
            _ if percent.is_some() => "Utilization",
            _ => "AverageValue",
        };
        newer.set(&[prefix, "type"], kind);
    }
    for (name, amount) in [("value", value), ("averageValue", average), ("averageUtilization", percent)] {
        if let Some(amount) = amount {
            newer.set(&[prefix, name], amount);
        }
    }
    newer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version, an object of it, and what upstream makes of it in the other version (`peers/go/kinds`).
    const CONVERSIONS: &str = include_str!("../../tests/golden/kinds/autoscaling.txt");

    #[test]
    fn autoscalers_convert_as_upstream_converts_them() {
        let mut seen = 0;
        for line in CONVERSIONS.lines().filter(|line| !line.starts_with('#')) {
            let [from, given, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let to = if from == "v1" { "v2" } else { "v1" };
            let decode = |version: &str, text: &str| {
                let kind = schema::lookup(GROUP, version, KIND).expect("built in");
                let mut object = json::decode(kind.message, text.as_bytes()).expect("an object").object;
                object.set_type(&kind.api_version(), KIND);
                crate::defaults::apply(kind.message, &mut object);
                object
            };
            let given = decode(from, given);
            let found = if from == "v1" { to_v2(&given) } else { to_v1(&given) };
            let encode = |object: &Value| {
                let kind = schema::lookup(GROUP, to, KIND).expect("built in");
                let mut out = Vec::new();
                json::encode(kind.message, object, &mut out);
                String::from_utf8(out).expect("text")
            };
            assert_eq!(encode(&found), encode(&decode(to, expected)), "{from}");
            seen += 1;
        }
        assert_eq!(seen, 9);
    }
}
