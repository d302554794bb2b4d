//! The kinds whose rules are few: ConfigMap, ServiceAccount, Namespace, Lease, Event.

use std::collections::BTreeSet;

use crate::meta::Meta;
use crate::names::{is_config_map_key, is_qualified_name};
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::{self, MetaRules, invalid_each};
use crate::validation::secret::{DATA_LIMIT, immutable_data, map};
use crate::{SecretBytes, Value};

/// Longest `reportingInstance`, `action` and `reason` of an Event, in bytes.
pub const EVENT_WORD_LIMIT: usize = 128;
/// Longest `message` of an Event, in bytes.
pub const EVENT_MESSAGE_LIMIT: usize = 1024;

/// What a ConfigMap has when it is left out: a null binary value becomes an empty one.
pub fn default_config_map(object: &mut Value) {
    if let Some(data) = object.get_mut("binaryData").and_then(Value::as_object_mut) {
        for value in data.values_mut().filter(|value| value.is_null()) {
            *value = Value::Bytes(SecretBytes::default());
        }
    }
}

/// ConfigMap.
pub fn validate_config_map(object: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(object, rules);
    let (data, binary) = (map(object, "data"), map(object, "binaryData"));
    let mut size = 0_usize;
    for (key, value) in data {
        let path = Path::new("data").key(key);
        errors.extend(invalid_each(is_config_map_key(key), &path, key));
        if binary.contains_key(key) {
            errors.push(FieldError::invalid(&path, key, "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in binary {
        errors.extend(invalid_each(is_config_map_key(key), &Path::new("binaryData").key(key), key));
        size += value.as_bytes().map_or(0, SecretBytes::len);
    }
    if size > DATA_LIMIT {
        errors.push(FieldError::too_long(&Path::new(""), DATA_LIMIT));
    }
    errors
}

/// ConfigMap, at update.
pub fn validate_config_map_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    errors.extend(immutable_data(new, old, &["data", "binaryData"]));
    errors.extend(validate_config_map(new, rules));
    errors
}

/// Namespace, also its finalizers in `spec`.
pub fn validate_namespace(object: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(object, rules);
    for finalizer in namespace_finalizers(object) {
        errors.extend(meta::finalizer_name(finalizer, &Path::of(&["spec", "finalizers"])));
    }
    errors
}

/// Namespace, at update.
pub fn validate_namespace_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    meta::validate_update(new, old, rules)
}

/// Namespace, at an update of `/status`.
pub fn validate_namespace_status(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    let phase = new.str_at(&["status", "phase"]);
    let (wanted, when) = match new.deletion_timestamp() {
        None => ("Active", "empty"),
        Some(_) => ("Terminating", "not empty"),
    };
    if phase != wanted {
        let detail = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
        errors.push(FieldError::invalid(&Path::of(&["status", "Phase"]), phase, detail));
    }
    errors
}

/// Namespace, at an update of `/finalize`.
pub fn validate_namespace_finalize(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    for (index, finalizer) in namespace_finalizers(new).into_iter().enumerate() {
        let path = Path::of(&["spec", "finalizers"]).index(index);
        errors.extend(meta::finalizer_name(finalizer, &path));
    }
    errors
}

/// What a new Namespace gets: its phase and the finalizer of the namespace controller.
pub fn prepare_namespace_create(object: &mut Value) {
    // Its name may have been generated just now.
    default_namespace(object);
    object.set(&["status"], Value::from([("phase", "Active")]));
    let has = namespace_finalizers(object).contains(&"kubernetes");
    if !has {
        let spec = object.object_at_mut(&["spec"]);
        let finalizers = spec.entry("finalizers".to_owned()).or_insert_with(|| Value::Array(Vec::new()));
        if let Some(finalizers) = finalizers.as_array_mut() {
            finalizers.push("kubernetes".into());
        } else {
            *finalizers = Value::Array(vec!["kubernetes".into()]);
        }
    }
}

/// What a Namespace always carries: the label with its name.
pub fn default_namespace(object: &mut Value) {
    let name = object.name().to_owned();
    if !name.is_empty() {
        object.set(&["metadata", "labels", "kubernetes.io/metadata.name"], name);
    }
    if object.str_at(&["status", "phase"]).is_empty() {
        object.set(&["status", "phase"], "Active");
    }
}

/// An update of a Namespace changes neither `spec.finalizers` nor `status`.
pub fn prepare_namespace_update(new: &mut Value, old: &Value) {
    for path in [&["spec", "finalizers"][..], &["status"]] {
        match old.at(path) {
            Some(value) => new.set(path, value.clone()),
            None => {
                new.remove(path);
            }
        }
    }
}

fn namespace_finalizers(object: &Value) -> BTreeSet<&str> {
    let finalizers = object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    finalizers.iter().filter_map(Value::as_str).collect()
}

/// What is behind a gate that upstream leaves closed: dropped, unless the stored Lease has it already.
pub fn drop_lease_election(new: &mut Value, old: Option<&Value>) {
    let has =
        |field: &str| old.and_then(|old| old.at(&["spec", field])).is_some_and(|value| !value.is_null());
    if has("strategy") || has("preferredHolder") {
        return;
    }
    for field in ["strategy", "preferredHolder"] {
        new.remove(&["spec", field]);
    }
}

/// Lease.
pub fn validate_lease(object: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(object, rules);
    errors.extend(lease_spec(object));
    errors
}

/// Lease, at update.
pub fn validate_lease_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    errors.extend(lease_spec(new));
    errors
}

fn lease_spec(object: &Value) -> FieldErrors {
    let path = Path::new("spec");
    let mut errors = FieldErrors::new();
    let number = |field: &str| object.at(&["spec", field]).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let path = path.child("leaseDurationSeconds");
        errors.push(FieldError::invalid(&path, seconds, "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let path = path.child("leaseTransitions");
        errors.push(FieldError::invalid(&path, count, "must be greater than or equal to 0"));
    }
    let strategy = object.at(&["spec", "strategy"]).and_then(Value::as_str);
    if let Some(strategy) = strategy {
        // Upstream names the field twice.
        let path = path.child("strategy").child("strategy");
        if strategy.contains('/') {
            errors.extend(invalid_each(is_qualified_name(strategy), &path, strategy));
        } else if strategy != "OldestEmulationVersion" {
            errors.push(FieldError::not_supported(&path, strategy, &["OldestEmulationVersion"]));
        }
    }
    if !object.str_at(&["spec", "preferredHolder"]).is_empty() && strategy.unwrap_or_default().is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&path.child("preferredHolder"), detail));
    }
    errors
}

/// Event as the core group has it. What came by the core group is checked as ever, what came by
/// `events.k8s.io` strictly.
pub fn validate_event(event: &Value, core: bool, rules: MetaRules) -> FieldErrors {
    let mut errors = old_event_rules(event, core);
    if core {
        return errors;
    }
    errors.extend(meta::validate(event, rules));
    errors.extend(event_series(event));
    if event.str_at(&["eventTime"]).is_empty() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = event.str_at(&["type"]);
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    let text = |field: &[&str]| !event.str_at(field).is_empty();
    for (field, set) in [
        ("firstTimestamp", text(&["firstTimestamp"])),
        ("lastTimestamp", text(&["lastTimestamp"])),
        ("count", event.at(&["count"]).and_then(Value::as_i64).is_some_and(|count| count != 0)),
        ("source", text(&["source", "component"]) || text(&["source", "host"])),
    ] {
        if set {
            errors.push(FieldError::invalid(&Path::new(field), "", "needs to be unset"));
        }
    }
    errors
}

/// Event as the core group has it, at update.
pub fn validate_event_update(new: &Value, old: &Value, core: bool, rules: MetaRules) -> FieldErrors {
    let mut errors = old_event_rules(new, core);
    if core {
        return errors;
    }
    errors.extend(meta::validate_update(new, old, rules));
    if new.get("series") != old.get("series") {
        errors.extend(event_series(new));
    }
    for (field, shown) in [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let of = |object: &Value| object.get(field).cloned().unwrap_or_default();
        let (new, old) = (of(new), of(old));
        errors.extend(meta::immutable(new == old, &Path::new(shown), &new));
    }
    errors
}

fn event_series(event: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let Some(series) = event.get("series").filter(|series| !series.is_null()) else { return errors };
    if series.at(&["count"]).and_then(Value::as_i64).unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if series.str_at(&["lastObservedTime"]).is_empty() {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

fn old_event_rules(event: &Value, core: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let namespace = event.namespace();
    let involved = event.str_at(&["involvedObject", "namespace"]);
    let mismatch = || {
        let path = Path::of(&["involvedObject", "namespace"]);
        FieldError::invalid(&path, involved, "does not match event.namespace")
    };
    if event.str_at(&["eventTime"]).is_empty() {
        let agrees =
            if involved.is_empty() { matches!(namespace, "" | "default") } else { namespace == involved };
        if !agrees {
            errors.push(mismatch());
        }
        return errors;
    }
    if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
        errors.push(mismatch());
    }
    let controller_path = Path::new(if core { "reportingComponent" } else { "reportingController" });
    let controller = event.str_at(&["reportingComponent"]);
    if controller.is_empty() {
        errors.push(FieldError::required(&controller_path, ""));
    }
    errors.extend(invalid_each(is_qualified_name(controller), &controller_path, controller));
    for field in ["reportingInstance", "action", "reason"] {
        let text = event.str_at(&[field]);
        if text.is_empty() {
            errors.push(FieldError::required(&Path::new(field), ""));
        }
        errors.extend(at_most(field, text, EVENT_WORD_LIMIT));
    }
    errors.extend(at_most("message", event.str_at(&["message"]), EVENT_MESSAGE_LIMIT));
    errors
}

fn at_most(field: &str, text: &str, limit: usize) -> Option<FieldError> {
    (text.len() > limit)
        .then(|| FieldError::invalid(&Path::new(field), "", format!("can have at most {limit} characters")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::validation::testing::{object, texts};

    const RULES: MetaRules =
        MetaRules { namespaced: true, name: names::dns_subdomain, qualified_finalizers: true };
    const CLUSTER: MetaRules = MetaRules { namespaced: false, ..RULES };

    #[track_caller]
    fn check(errors: &[FieldError], expected: &[&str]) {
        assert_eq!(texts(errors), expected);
    }

    fn config_map(data: &str, binary: &[(&str, usize)]) -> Value {
        let mut value = object(&format!(
            r#"{{"metadata":{{"name":"c","namespace":"n","resourceVersion":"1"}},"data":{data}}}"#
        ));
        let binary =
            binary.iter().map(|(key, size)| ((*key).to_owned(), Value::Bytes(vec![0; *size].into())));
        value.set(&["binaryData"], Value::Object(binary.collect()));
        value
    }

    #[test]
    fn null_binary_data_is_empty() {
        let mut value = object(r#"{"metadata":{"name":"c"}}"#);
        value.set(&["binaryData"], Value::from([("a", Value::Null)]));
        default_config_map(&mut value);
        assert!(value.at(&["binaryData", "a"]) == Some(&Value::Bytes(SecretBytes::default())));
    }

    #[test]
    fn config_maps() {
        check(&validate_config_map(&config_map(r#"{"a":"v"}"#, &[("b", 1)]), RULES), &[]);
        check(
            &validate_config_map(&config_map(r#"{"a":"v"}"#, &[("a", 1), ("..x", 0)]), RULES),
            &[
                "data[a]: Invalid value: \"a\": duplicate of key present in binaryData",
                "binaryData[..x]: Invalid value: \"..x\": must not start with '..'",
            ],
        );
        check(&validate_config_map(&config_map(r#"{"a":"v"}"#, &[("b", DATA_LIMIT - 1)]), RULES), &[]);
        check(
            &validate_config_map(&config_map(r#"{"a":"v"}"#, &[("b", DATA_LIMIT)]), RULES),
            &["[]: Too long: may not be more than 1048576 bytes"],
        );
        let mut old = config_map(r#"{"a":"v"}"#, &[("b", 1)]);
        old.set(&["immutable"], true);
        check(
            &validate_config_map_update(&config_map("{}", &[]), &old, RULES),
            &[
                "immutable: Forbidden: field is immutable when `immutable` is set",
                "data: Forbidden: field is immutable when `immutable` is set",
                "binaryData: Forbidden: field is immutable when `immutable` is set",
            ],
        );
    }

    #[test]
    fn namespaces() {
        let mut value = object(r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#);
        default_namespace(&mut value);
        prepare_namespace_create(&mut value);
        assert!(
            value
                == object(
                    r#"{"metadata":{"name":"n","resourceVersion":"1","labels":{"kubernetes.io/metadata.name":"n"}},
                        "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#
                )
        );
        check(&validate_namespace(&value, CLUSTER), &[]);
        let mut other = value.clone();
        other.set(&["spec", "finalizers"], vec![Value::from("foo")]);
        check(
            &validate_namespace(&other, CLUSTER),
            &[
                "spec.finalizers: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully \
               qualified",
            ],
        );
        check(
            &validate_namespace_finalize(&other, &value, CLUSTER),
            &[
                "spec.finalizers[0]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it fully \
               qualified",
            ],
        );
        other.set(&["status", "phase"], "Terminating");
        check(
            &validate_namespace_status(&other, &value, CLUSTER),
            &[
                "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty",
            ],
        );
        prepare_namespace_update(&mut other, &value);
        assert!(other == value);
    }

    #[test]
    fn leases_lose_what_is_behind_a_gate() {
        let lease = |spec: &str| object(&format!(r#"{{"spec":{spec}}}"#));
        let given = r#"{"holderIdentity":"h","strategy":"OldestEmulationVersion","preferredHolder":"p"}"#;
        let mut new = lease(given);
        drop_lease_election(&mut new, None);
        assert!(new == lease(r#"{"holderIdentity":"h"}"#));
        let mut kept = lease(given);
        drop_lease_election(&mut kept, Some(&lease(r#"{"preferredHolder":"p"}"#)));
        assert!(kept == lease(given));
    }

    #[test]
    fn leases() {
        let lease =
            |spec: &str| object(&format!(r#"{{"metadata":{{"name":"l","namespace":"n"}},"spec":{spec}}}"#));
        let check = |spec: &str, expected: &[&str]| check(&validate_lease(&lease(spec), RULES), expected);
        check(r#"{"leaseDurationSeconds":1,"leaseTransitions":0}"#, &[]);
        check(
            r#"{"leaseDurationSeconds":0,"leaseTransitions":-1}"#,
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
        check(
            r#"{"preferredHolder":"x"}"#,
            &["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
        );
        check(
            r#"{"strategy":"x"}"#,
            &[
                "spec.strategy.strategy: Unsupported value: \"x\": supported values: \"OldestEmulationVersion\"",
            ],
        );
        check(r#"{"strategy":"x.io/y","preferredHolder":"x"}"#, &[]);
    }

    #[test]
    fn events() {
        let check =
            |event: &str, expected: &[&str]| check(&validate_event(&object(event), true, RULES), expected);
        check(r#"{"metadata":{"namespace":"n"},"involvedObject":{"namespace":"n"}}"#, &[]);
        check(r#"{"metadata":{"namespace":"default"},"involvedObject":{}}"#, &[]);
        let mismatch = "involvedObject.namespace: Invalid value: \"m\": does not match event.namespace";
        check(r#"{"metadata":{"namespace":"n"},"involvedObject":{"namespace":"m"}}"#, &[mismatch]);
        check(
            r#"{"metadata":{"namespace":"n"},"involvedObject":{"namespace":"n"},
                "eventTime":"2023-11-14T22:13:20.000000Z","reportingComponent":"a.b/c","reportingInstance":"i",
                "action":"a","reason":"r"}"#,
            &[],
        );
        let at = |count: usize| "x".repeat(count);
        let event = |word: usize, message: usize| {
            format!(
                r#"{{"metadata":{{"namespace":"n"}},"involvedObject":{{"namespace":"n"}},"eventTime":"t",
                    "reportingComponent":"c","reportingInstance":"{w}","action":"{w}","reason":"{w}",
                    "message":"{m}"}}"#,
                w = at(word),
                m = at(message)
            )
        };
        check(&event(128, 1024), &[]);
        check(
            &event(129, 1025),
            &[
                "reportingInstance: Invalid value: \"\": can have at most 128 characters",
                "action: Invalid value: \"\": can have at most 128 characters",
                "reason: Invalid value: \"\": can have at most 128 characters",
                "message: Invalid value: \"\": can have at most 1024 characters",
            ],
        );
    }

    #[test]
    fn events_of_the_new_group_are_checked_strictly() {
        let good = r#"{"metadata":{"name":"e","namespace":"n","resourceVersion":"1"},
            "involvedObject":{"namespace":"n"},"eventTime":"2023-11-14T22:13:20.000000Z","type":"Normal",
            "reportingComponent":"a.b/c","reportingInstance":"i","action":"a","reason":"r"}"#;
        let event = |path: &[&str], value: Value| {
            let mut event = object(good);
            event.set(path, value);
            event
        };
        let of = |path: &[&str], value: Value, expected: &[&str]| {
            check(&validate_event(&event(path, value), false, RULES), expected);
        };
        check(&validate_event(&object(good), false, RULES), &[]);
        of(&["type"], "Odd".into(), &["type: Invalid value: \"\": has invalid value: Odd"]);
        of(&["count"], 1.into(), &["count: Invalid value: \"\": needs to be unset"]);
        of(&["source", "host"], "h".into(), &["source: Invalid value: \"\": needs to be unset"]);
        of(
            &["series"],
            Value::from([("count", 1)]),
            &[
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
            ],
        );
        of(
            &["reportingComponent"],
            "".into(),
            &[
                "reportingController: Required value",
                "reportingController: Invalid value: \"\": name part must be non-empty",
                "reportingController: Invalid value: \"\": name part must consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
             '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        );
        of(&["eventTime"], Value::Null, &["eventTime: Required value"]);
        let update = |path: &[&str], value: Value| {
            validate_event_update(&event(path, value), &object(good), false, RULES)
        };
        check(&update(&["reason"], "r".into()), &[]);
        check(
            &update(&["reason"], "other".into()),
            &["reason: Invalid value: \"other\": field is immutable"],
        );
        check(&validate_event_update(&event(&["reason"], "other".into()), &object(good), true, RULES), &[]);
    }
}
