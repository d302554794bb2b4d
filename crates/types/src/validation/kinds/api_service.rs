//! Who serves a version of a group: stored, and never asked.

use super::check::{list, number, required};
use super::{CLUSTER, KindRules, Status};
use crate::Value;
use crate::meta::Meta as _;
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::invalid_each;

pub(super) const KINDS: &[KindRules] = &[KindRules {
    group: "apiregistration.k8s.io",
    kind: "APIService",
    name: names::path_segment,
    status: Status::Apart,
    prepare_create: |service| {
        // Whatever the server serves itself is there at once; the time is set with the object's.
        if !is_set(service.at(&["spec", "service"])) {
            let condition = Value::from([
                ("type", "Available"),
                ("status", "True"),
                ("reason", "Local"),
                ("message", "Local APIServices are always available"),
            ]);
            service.set(&["status", "conditions"], vec![condition]);
        }
    },
    validate: api_service,
    validate_update: |new, _, errors| api_service(new, errors),
    validate_status: |new, _, errors| {
        for (index, condition) in list(new, &["status", "conditions"]).iter().enumerate() {
            let status = condition.str_at(&["status"]);
            if !matches!(status, "True" | "False" | "Unknown") {
                let path = Path::of(&["status", "conditions"]).index(index).child("status");
                errors.push(FieldError::not_supported(&path, status, &["True", "False", "Unknown"]));
            }
        }
    },
    ..CLUSTER
}];

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

fn api_service(object: &Value, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let (group, version) = (object.str_at(&["spec", "group"]), object.str_at(&["spec", "version"]));
    let name = format!("{version}.{group}");
    if object.name() != name && names::path_segment(object.name(), false).is_empty() {
        let detail =
            format!("must be `spec.version+\".\"+spec.group`: {}", crate::validation::field::go_quote(&name));
        errors.push(FieldError::invalid(&Path::of(&["metadata", "name"]), object.name(), detail));
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&spec.child("group"), detail));
    }
    if !group.is_empty() {
        errors.extend(invalid_each(names::is_dns1123_subdomain(group), &spec.child("group"), group));
    }
    errors.extend(invalid_each(names::is_dns1035_label(version), &spec.child("version"), version));
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = number(object, &["spec", field]).unwrap_or_default();
        if !(1..=most).contains(&priority) {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&spec.child(field), priority, detail));
        }
    }
    let bundle =
        object.at(&["spec", "caBundle"]).and_then(Value::as_bytes).map_or(0, |bytes| bytes.expose().len());
    let skips = object.at(&["spec", "insecureSkipTLSVerify"]).and_then(Value::as_bool) == Some(true);
    let skip_path = spec.child("insecureSkipTLSVerify");
    if !is_set(object.at(&["spec", "service"])) {
        if 0 < bundle {
            let shown = format!("{bundle} bytes");
            let detail = "local APIServices may not have a caBundle";
            errors.push(FieldError::invalid(&spec.child("caBundle"), &shown, detail));
        }
        if skips {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(FieldError::invalid(&skip_path, true, detail));
        }
        return;
    }
    required(object, &["spec", "service", "namespace"], errors);
    required(object, &["spec", "service", "name"], errors);
    let port = number(object, &["spec", "service", "port"]).unwrap_or_default();
    let faults = names::is_port_number(port);
    if !faults.is_empty() {
        let detail = format!("port is not valid: {}", faults.join(", "));
        errors.push(FieldError::invalid(&spec.child("service").child("port"), port, detail));
    }
    if skips && 0 < bundle {
        errors.push(FieldError::invalid(&skip_path, true, "may not be true if caBundle is present"));
    }
}
