//! The `scale` subresource: one number of an object, and how many there are.

use crate::Value;
use crate::meta::Meta as _;
use crate::validation::kinds::check::{list, number};

/// The Scale of an object: `autoscaling/v1`.
pub fn of(object: &Value) -> Value {
    let mut scale = Value::object();
    scale.set_type("autoscaling/v1", "Scale");
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.at(&["metadata", field]) {
            scale.set(&["metadata", field], value.clone());
        }
    }
    let count = |path: &[&str]| number(object, path).unwrap_or_default();
    scale.set(&["spec", "replicas"], count(&["spec", "replicas"]));
    scale.set(&["status", "replicas"], count(&["status", "replicas"]));
    let selector = selector_text(object.at(&["spec", "selector"]).unwrap_or(&Value::Null));
    scale.set_str(&["status", "selector"], &selector);
    scale
}

/// Takes over the number of a Scale that somebody wrote.
pub fn take(object: &mut Value, scale: &Value) {
    object.set(&["spec", "replicas"], number(scale, &["spec", "replicas"]).unwrap_or_default());
    match scale.at(&["metadata", "resourceVersion"]) {
        Some(version) => object.set(&["metadata", "resourceVersion"], version.clone()),
        None => drop(object.remove(&["metadata", "resourceVersion"])),
    }
    if !scale.uid().is_empty() {
        object.set_meta_str("uid", scale.uid());
    }
}

/// A selector as text, its parts ordered by key.
pub(crate) fn selector_text(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    let is_label_selector =
        selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    let equal = if is_label_selector { selector.get("matchLabels") } else { Some(selector) };
    for (key, value) in equal.and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in list(selector, &["matchExpressions"]) {
        let key = expression.str_at(&["key"]);
        let mut values: Vec<&str> = list(expression, &["values"]).iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression.str_at(&["operator"]) {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}
