//! Who is asked about a write: webhooks, policies and their bindings, as they are stored.

use super::check::{is_set, list, number, required};
use super::{CLUSTER, Generation, KindRules, SPEC, Status};
use crate::Value;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path, go_quote};
use crate::validation::meta::{invalid_each, label_selector};

const ADMISSION: KindRules = KindRules { group: "admissionregistration.k8s.io", ..CLUSTER };
const WEBHOOKS: Generation = Generation::Of(&[&["webhooks"]]);
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "ValidatingWebhookConfiguration",
        generation: WEBHOOKS,
        validate: webhooks,
        validate_update: |new, _, errors| webhooks(new, errors),
        ..ADMISSION
    },
    KindRules {
        kind: "MutatingWebhookConfiguration",
        generation: WEBHOOKS,
        validate: webhooks,
        validate_update: |new, _, errors| webhooks(new, errors),
        ..ADMISSION
    },
    KindRules {
        kind: "ValidatingAdmissionPolicy",
        status: Status::Apart,
        generation: SPEC,
        validate: policy,
        validate_update: |new, _, errors| policy(new, errors),
        ..ADMISSION
    },
    KindRules {
        kind: "ValidatingAdmissionPolicyBinding",
        generation: SPEC,
        validate: |object, errors| {
            required(object, &["spec", "policyName"], errors);
            if list(object, &["spec", "validationActions"]).is_empty() {
                errors.push(FieldError::required(&Path::of(&["spec", "validationActions"]), ""));
            }
        },
        validate_update: |new, _, errors| required(new, &["spec", "policyName"], errors),
        ..ADMISSION
    },
    KindRules {
        kind: "MutatingAdmissionPolicy",
        generation: SPEC,
        validate: policy,
        validate_update: |new, _, errors| policy(new, errors),
        ..ADMISSION
    },
    KindRules {
        kind: "MutatingAdmissionPolicyBinding",
        generation: SPEC,
        validate: |object, errors| required(object, &["spec", "policyName"], errors),
        validate_update: |new, _, errors| required(new, &["spec", "policyName"], errors),
        ..ADMISSION
    },
];

fn webhooks(object: &Value, errors: &mut FieldErrors) {
    let mut seen = Vec::new();
    for (index, hook) in list(object, &["webhooks"]).iter().enumerate() {
        let path = Path::new("webhooks").index(index);
        let name = hook.str_at(&["name"]);
        webhook_name(name, &path.child("name"), errors);
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        seen.push(name);
        for (field, allowed) in [
            ("failurePolicy", ["Fail", "Ignore"]),
            ("matchPolicy", ["Equivalent", "Exact"]),
            ("reinvocationPolicy", ["IfNeeded", "Never"]),
        ] {
            if let Some(value) = hook.get(field).and_then(Value::as_str)
                && !allowed.contains(&value)
            {
                errors.push(FieldError::not_supported(&path.child(field), value, &allowed));
            }
        }
        let effects = ["None", "NoneOnDryRun"];
        match hook.get("sideEffects").and_then(Value::as_str) {
            None => {
                let detail = format!("must specify one of {}", effects.join(", "));
                errors.push(FieldError::required(&path.child("sideEffects"), detail));
            }
            Some(value) if !effects.contains(&value) => {
                errors.push(FieldError::not_supported(&path.child("sideEffects"), value, &effects));
            }
            Some(_) => {}
        }
        if let Some(seconds) = number(hook, &["timeoutSeconds"])
            && !(1..=30).contains(&seconds)
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
        }
        for field in ["namespaceSelector", "objectSelector"] {
            if let Some(selector) = hook.get(field) {
                errors.extend(label_selector(selector, &path.child(field)));
            }
        }
        client(hook, &path.child("clientConfig"), errors);
        review_versions(hook, &path.child("admissionReviewVersions"), errors);
    }
}

fn webhook_name(name: &str, path: &Path, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.push(FieldError::required(path, ""));
    }
    let faults = names::is_dns1123_subdomain(name);
    if !faults.is_empty() {
        return errors.extend(invalid_each(faults, path, name));
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

fn client(hook: &Value, path: &Path, errors: &mut FieldErrors) {
    let (url, service) = (["clientConfig", "url"], ["clientConfig", "service"]);
    match (is_set(hook, &url), is_set(hook, &service)) {
        (true, false) => {
            let text = hook.str_at(&url);
            let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
            let form = "desired format: https://host[/path]";
            if scheme != "https" {
                let detail = format!("'https' is the only allowed URL scheme; {form}");
                errors.push(FieldError::invalid(&path.child("url"), scheme, detail));
            }
            let host =
                text.split_once("://").map_or("", |(_, rest)| rest).split('/').next().unwrap_or_default();
            if host.is_empty() {
                let detail = format!("host must be specified; {form}");
                errors.push(FieldError::invalid(&path.child("url"), host, detail));
            }
        }
        (false, true) => {
            for field in ["name", "namespace"] {
                if hook.str_at(&["clientConfig", "service", field]).is_empty() {
                    errors.push(FieldError::required(&path.child("service").child(field), ""));
                }
            }
            if let Some(port) = number(hook, &["clientConfig", "service", "port"]) {
                for fault in names::is_port_number(port) {
                    let path = path.child("service").child("port");
                    errors.push(FieldError::invalid(&path, port, format!("port is not valid: {fault}")));
                }
            }
        }
        _ => {
            let detail = "exactly one of url or service is required";
            errors.push(FieldError::required(path, detail));
        }
    }
}

fn review_versions(hook: &Value, path: &Path, errors: &mut FieldErrors) {
    let versions = list(hook, &["admissionReviewVersions"]);
    if versions.is_empty() {
        let detail = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        return errors.push(FieldError::required(path, detail));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (index, version) in versions.iter().enumerate() {
        let version = text(version);
        let path = path.index(index);
        errors.extend(invalid_each(names::is_dns1035_label(&version), &path, &version));
        if versions[..index].iter().any(|other| text(other) == version) {
            let detail = format!("duplicate version {}", go_quote(&version));
            errors.push(FieldError::invalid(&path, &version, detail));
        }
    }
    if !versions.iter().any(|version| REVIEW_VERSIONS.contains(&text(version).as_str())) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, &Value::Array(versions.to_vec()), detail));
    }
}

fn policy(object: &Value, errors: &mut FieldErrors) {
    if let Some(policy) = object.at(&["spec", "failurePolicy"]).and_then(Value::as_str)
        && !["Fail", "Ignore"].contains(&policy)
    {
        let path = Path::of(&["spec", "failurePolicy"]);
        errors.push(FieldError::not_supported(&path, policy, &["Fail", "Ignore"]));
    }
    if !is_set(object, &["spec", "matchConstraints"]) {
        errors.push(FieldError::required(&Path::of(&["spec", "matchConstraints"]), ""));
    } else if list(object, &["spec", "matchConstraints", "resourceRules"]).is_empty() {
        let path = Path::of(&["spec", "matchConstraints", "resourceRules"]);
        errors.push(FieldError::required(&path, ""));
    }
}
