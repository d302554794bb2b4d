//! Nodes.

use std::collections::BTreeSet;

use crate::Value;
use crate::names::is_label_value;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{self, MetaRules};

/// What a Node has when it is left out: its one pod network in the list of them, and everything allocatable.
pub fn default(node: &mut Value) {
    let network = node.str_at(&["spec", "podCIDR"]).to_owned();
    let networks = list(node, &["spec", "podCIDRs"]);
    let first = networks.first().and_then(Value::as_str).unwrap_or_default().to_owned();
    if !network.is_empty() && network != first {
        // The older field counts.
        node.set(&["spec", "podCIDRs"], vec![Value::from(network)]);
    } else if network.is_empty() && !first.is_empty() {
        node.set(&["spec", "podCIDR"], first);
    }
    let status = |field: &str| node.at(&["status", field]).filter(|value| !value.is_null()).cloned();
    if status("allocatable").is_none()
        && let Some(capacity) = status("capacity")
    {
        node.set(&["status", "allocatable"], capacity);
    }
}

/// The check of a Node at creation.
pub fn validate(node: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(node, rules);
    errors.extend(taints(node));
    errors
}

/// The check of a Node at update.
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    let spec = Path::new("spec");
    let old_cidrs = list(old, &["spec", "podCIDRs"]);
    if !old_cidrs.is_empty() && old_cidrs != list(new, &["spec", "podCIDRs"]) {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&spec.child("podCIDRs"), detail));
    }
    let (new_id, old_id) = (new.str_at(&["spec", "providerID"]), old.str_at(&["spec", "providerID"]));
    if !old_id.is_empty() && old_id != new_id {
        let verb = if new_id.is_empty() { "cleared" } else { "modified" };
        let detail = format!("field cannot be {verb} once set");
        errors.push(FieldError::invalid(&spec.child("providerID"), &Value::Null, detail));
    }
    let addresses = list(new, &["status", "addresses"]);
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            let path = Path::of(&["status", "addresses"]).index(index);
            errors.push(FieldError::duplicate(&path, Shown::one_struct(address, &["Type", "Address"])));
        }
    }
    errors.extend(taints(new));
    errors
}

fn taints(node: &Value) -> FieldErrors {
    // Upstream names the wrong parent.
    let path = Path::of(&["metadata", "taints"]);
    let mut errors = FieldErrors::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in list(node, &["spec", "taints"]).iter().enumerate() {
        let path = path.index(index);
        let (key, effect) = (taint.str_at(&["key"]), taint.str_at(&["effect"]));
        errors.extend(meta::label_name(key, &path.child("key")));
        let value = taint.str_at(&["value"]);
        let faults = is_label_value(value);
        if !faults.is_empty() {
            errors.push(FieldError::invalid(&path.child("value"), value, faults.join(";")));
        }
        errors.extend(taint_effect(effect, &path.child("effect")));
        if !seen.insert((key, effect)) {
            let shown = Value::from([("Key", key), ("Value", value), ("Effect", effect)]);
            let mut error = FieldError::duplicate(
                &path,
                Shown::one_struct(&shown, &["Key", "Value", "Effect", "TimeAdded"]),
            );
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
    errors
}

/// An update of a Node keeps its status.
pub fn prepare_update(new: &mut Value, old: &Value) {
    match old.get("status") {
        Some(status) => new.set(&["status"], status.clone()),
        None => {
            new.remove(&["status"]);
        }
    }
}

/// An update of a Node's status keeps its spec.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    match old.get("spec") {
        Some(spec) => new.set(&["spec"], spec.clone()),
        None => {
            new.remove(&["spec"]);
        }
    }
}

fn taint_effect(effect: &str, path: &Path) -> Option<FieldError> {
    match effect {
        "" => Some(FieldError::required(path, "")),
        "NoSchedule" | "PreferNoSchedule" | "NoExecute" => None,
        other => {
            let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            Some(FieldError::not_supported(path, other, &supported))
        }
    }
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::validation::testing::{object, texts};

    const RULES: MetaRules =
        MetaRules { namespaced: false, name: names::dns_subdomain, qualified_finalizers: true };

    fn node(rest: &str) -> Value {
        object(&format!(r#"{{"metadata":{{"name":"n","resourceVersion":"1"}},{rest}}}"#))
    }

    #[test]
    fn taints_are_well_formed_and_unique() {
        let check = |rest: &str, expected: &[&str]| {
            assert_eq!(texts(&validate(&node(rest), RULES)), expected);
        };
        check(
            r#""spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}"#,
            &[],
        );
        check(
            r#""spec":{"taints":[{"key":"a"},{"key":"b","effect":"X"}]}"#,
            &[
                "metadata.taints[0].effect: Required value",
                "metadata.taints[1].effect: Unsupported value: \"X\": supported values: \"NoSchedule\", \
                 \"PreferNoSchedule\", \"NoExecute\"",
            ],
        );
        check(
            r#""spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"v","effect":"NoSchedule"}]}"#,
            &[
                "metadata.taints[1]: Duplicate value: {\"Key\":\"a\",\"Value\":\"v\",\"Effect\":\"NoSchedule\"}: \
               taints must be unique by key and effect pair",
            ],
        );
    }

    #[test]
    fn updates_keep_what_was_given_once() {
        let check = |old: &str, new: &str, expected: &[&str]| {
            assert_eq!(texts(&validate_update(&node(new), &node(old), RULES)), expected);
        };
        let old = r#""spec":{"podCIDRs":["10.0.0.0/24"],"providerID":"a"}"#;
        check(r#""spec":{}"#, old, &[]);
        check(old, old, &[]);
        check(
            old,
            r#""spec":{"podCIDRs":["10.0.1.0/24"],"providerID":"b"}"#,
            &[
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid",
                "spec.providerID: Invalid value: null: field cannot be modified once set",
            ],
        );
        check(
            old,
            r#""spec":{"podCIDRs":["10.0.0.0/24"]}"#,
            &["spec.providerID: Invalid value: null: field cannot be cleared once set"],
        );
    }

    #[test]
    fn status_and_spec_are_updated_apart() {
        let old = node(r#""spec":{"a":1},"status":{"b":1}"#);
        let mut new = node(r#""spec":{"a":2},"status":{"b":2}"#);
        prepare_update(&mut new, &old);
        assert!(new == node(r#""spec":{"a":2},"status":{"b":1}"#));
        prepare_status_update(&mut new, &old);
        assert!(new == old);
    }
}
