//! Pods: the defaults that clients expect to see, and the rules that protect what is stored.
//!
//! Thin: what concerns scheduling, probes, resources and security contexts is
//! stored as it comes, since no part of coffer acts on it.

use std::collections::BTreeSet;

use crate::Value;
use crate::names::{
    dns_subdomain, is_config_map_key, is_dns1123_label, is_environment_name, is_port_name, is_port_number,
    range_error,
};
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::{self, MetaRules, invalid_each};

/// Mode of the files of a volume that names none: 0644.
const DEFAULT_MODE: i64 = 420;
const FILE_MODE_TEXT: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// The kinds of volume, in the order in which upstream looks for them.
const VOLUME_KINDS: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                         `spec.tolerations` (only additions to existing tolerations),\
                         `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Sets what is left out.
pub fn default(pod: &mut Value) {
    let spec = pod.object_at_mut(&["spec"]);
    let text = |spec: &crate::Map, field: &str| {
        spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut account = text(spec, "serviceAccountName");
    if account.is_empty() {
        account = text(spec, "serviceAccount");
    }
    for field in ["serviceAccountName", "serviceAccount"] {
        if !account.is_empty() {
            spec.insert(field.to_owned(), account.as_str().into());
        }
    }
    let grace = "terminationGracePeriodSeconds";
    if spec.get(grace).and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert(grace.to_owned(), 1.into());
    }
    for (field, value) in [
        ("dnsPolicy", Value::from("ClusterFirst")),
        ("restartPolicy", "Always".into()),
        ("schedulerName", "default-scheduler".into()),
        ("securityContext", Value::object()),
        ("enableServiceLinks", true.into()),
    ] {
        set_default(spec, field, value);
    }
    // A pointer upstream: zero is a choice, not an absence.
    if spec.get(grace).is_none_or(Value::is_null) {
        spec.insert(grace.to_owned(), 30.into());
    }
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    for list in CONTAINER_LISTS {
        for container in items_mut(spec, list) {
            default_container(container, host_network && list != "ephemeralContainers");
        }
    }
    for volume in items_mut(spec, "volumes") {
        default_volume(volume);
    }
    default_status(pod);
}

/// What a new Pod gets: its phase, and the class of quality by its resources.
pub fn prepare_create(pod: &mut Value) {
    let class = quality_of_service(pod);
    pod.set(&["status"], Value::from([("phase", "Pending"), ("qosClass", class)]));
    pod.set(&["metadata", "generation"], 1);
}

/// An update of a Pod keeps its status; the generation counts changes of the spec.
pub fn prepare_update(new: &mut Value, old: &Value) {
    match old.get("status") {
        Some(status) => new.set(&["status"], status.clone()),
        None => {
            new.remove(&["status"]);
        }
    }
    count_generation(new, old);
}

/// An update of a Pod's status keeps everything else.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    if let Some(spec) = old.get("spec") {
        new.set(&["spec"], spec.clone());
    }
    new.remove(&["metadata", "deletionTimestamp"]);
    for field in ["ownerReferences", "deletionTimestamp"] {
        match old.at(&["metadata", field]) {
            Some(value) => new.set(&["metadata", field], value.clone()),
            None => {
                new.remove(&["metadata", field]);
            }
        }
    }
}

/// `generation` grows by one when `spec` changes.
pub(crate) fn count_generation(new: &mut Value, old: &Value) {
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    let changed = new.get("spec") != old.get("spec");
    if changed {
        new.set(&["metadata", "generation"], generation + 1);
    }
}

/// The check at creation.
pub fn validate(pod: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = validate_any(pod, rules);
    let spec = Path::new("spec");
    if !list(pod, &["spec", "ephemeralContainers"]).is_empty() {
        errors.push(FieldError::forbidden(&spec.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !pod.str_at(&["spec", "nodeName"]).is_empty() && !list(pod, &["spec", "schedulingGates"]).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&spec.child("nodeName"), detail));
    }
    errors
}

/// The check at update: of the spec, little may change.
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    errors.extend(validate_any(new, rules));
    let path = Path::new("spec");
    for field in ["containers", "initContainers"] {
        let path = path.child(field);
        let (new_list, old_list) = (list(new, &["spec", field]), list(old, &["spec", field]));
        if new_list.len() != old_list.len() {
            errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
            return errors;
        }
        for (index, container) in new_list.iter().enumerate() {
            let (image, path) = (container.str_at(&["image"]), path.index(index).child("image"));
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(&path, image, detail));
            }
        }
    }
    match active_deadline(new, old) {
        Ok(()) => {}
        Err((error, last)) => {
            errors.push(error);
            if last {
                return errors;
            }
        }
    }
    let old_tolerations = list(old, &["spec", "tolerations"]);
    let kept = list(new, &["spec", "tolerations"]);
    if old_tolerations.iter().any(|toleration| !kept.contains(toleration)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.child("tolerations"), detail));
    }
    if comparable(new, old) != comparable(old, old) {
        // The original appends a diff, which prints values of environment variables; ours leaves it out.
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n");
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The check at an update of `/status`.
pub fn validate_status_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    let (new_node, old_node) = (new.str_at(&["spec", "nodeName"]), old.str_at(&["spec", "nodeName"]));
    if new_node != old_node {
        let detail = "may not be changed directly";
        errors.push(FieldError::forbidden(&Path::of(&["status", "nodeName"]), detail));
    }
    errors
}

/// The spec without what an update may change.
fn comparable(pod: &Value, old: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.remove(&["image"]);
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        spec.remove(&[field]);
    }
    let grace = ["spec", "terminationGracePeriodSeconds"];
    if old.at(&grace).and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.remove(&["terminationGracePeriodSeconds"]);
    }
    spec
}

/// The flag says that the remaining checks are left out.
fn active_deadline(new: &Value, old: &Value) -> Result<(), (FieldError, bool)> {
    let of = |pod: &Value| pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    let path = Path::of(&["spec", "activeDeadlineSeconds"]);
    match (of(new), of(old)) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            let detail = range_error(0, i64::from(i32::MAX));
            Err((FieldError::invalid(&path, seconds, detail), true))
        }
        (Some(seconds), Some(before)) if before < seconds => {
            let detail = "must be less than or equal to previous value";
            Err((FieldError::invalid(&path, seconds, detail), true))
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            Err((FieldError::invalid(&path, &Value::Null, detail), false))
        }
        _ => Ok(()),
    }
}

fn validate_any(pod: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(pod, rules);
    let path = Path::new("spec");
    let (volumes, volume_errors) = validate_volumes(list(pod, &["spec", "volumes"]), &path.child("volumes"));
    errors.extend(volume_errors);
    let containers = list(pod, &["spec", "containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut names = BTreeSet::new();
    for field in CONTAINER_LISTS {
        for (index, container) in list(pod, &["spec", field]).iter().enumerate() {
            let path = path.child(field).index(index);
            errors.extend(validate_container(container, &volumes, &path));
            let name = container.str_at(&["name"]);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
        }
    }
    errors.extend(one_of(pod, "restartPolicy", &["Always", "OnFailure", "Never"]));
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.extend(one_of(pod, "dnsPolicy", &policies));
    if let Some(selector) = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object) {
        errors.extend(meta::labels(selector, &path.child("nodeSelector")));
    }
    for field in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = pod.str_at(&["spec", field]);
        if !name.is_empty() {
            errors.extend(invalid_each(dns_subdomain(name, false), &path.child(field), name));
        }
    }
    let deadline = pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        let detail = range_error(1, i64::from(i32::MAX));
        errors.push(FieldError::invalid(&path.child("activeDeadlineSeconds"), seconds, detail));
    }
    for field in ["hostname", "subdomain"] {
        let name = pod.str_at(&["spec", field]);
        if !name.is_empty() {
            errors.extend(invalid_each(is_dns1123_label(name), &path.child(field), name));
        }
    }
    errors.extend(tokens_need_an_account(pod, &path));
    errors
}

fn one_of(pod: &Value, field: &str, allowed: &[&str]) -> Option<FieldError> {
    let path = Path::of(&["spec", field]);
    match pod.str_at(&["spec", field]) {
        "" => Some(FieldError::required(&path, "")),
        value if allowed.contains(&value) => None,
        value => Some(FieldError::not_supported(&path, value, allowed)),
    }
}

fn tokens_need_an_account(pod: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return errors;
    }
    for (index, volume) in list(pod, &["spec", "volumes"]).iter().enumerate() {
        let path = path.child("volumes").index(index).child("projected").child("sources");
        for (index, source) in list(volume, &["projected", "sources"]).iter().enumerate() {
            if is_set(source, "serviceAccountToken") {
                let detail = "must not be specified when serviceAccountName is not set";
                let path = path.index(index).child("serviceAccountToken");
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
    errors
}

fn validate_volumes<'a>(volumes: &'a [Value], path: &Path) -> (BTreeSet<&'a str>, FieldErrors) {
    let (mut names, mut all) = (BTreeSet::new(), FieldErrors::new());
    for (index, volume) in volumes.iter().enumerate() {
        let path = path.index(index);
        let mut errors = validate_volume(volume, &path);
        let (name, name_path) = (volume.str_at(&["name"]), path.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else {
            errors.extend(invalid_each(is_dns1123_label(name), &name_path, name));
        }
        if names.contains(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
        if errors.is_empty() {
            names.insert(name);
        }
        all.extend(errors);
    }
    (names, all)
}

fn validate_volume(volume: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut found = VOLUME_KINDS.iter().filter(|kind| is_set(volume, kind));
    let Some(kind) = found.next() else {
        return vec![FieldError::required(path, "must specify a volume type")];
    };
    if let Some(source) = volume.get(kind) {
        let path = path.child(kind);
        match *kind {
            "secret" => {
                errors.extend(required(source, "secretName", &path));
                errors.extend(validate_files(source, &path));
            }
            "configMap" => {
                errors.extend(required(source, "name", &path));
                errors.extend(validate_files(source, &path));
            }
            "projected" => {
                errors.extend(file_mode(source, "defaultMode", &path));
                errors.extend(validate_projection(source, &path));
            }
            "downwardAPI" => errors.extend(file_mode(source, "defaultMode", &path)),
            _ => {}
        }
    }
    for kind in found {
        errors.push(FieldError::forbidden(&path.child(kind), "may not specify more than 1 volume type"));
    }
    errors
}

fn validate_files(source: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    errors.extend(file_mode(source, "defaultMode", path));
    for (index, item) in list(source, &["items"]).iter().enumerate() {
        errors.extend(key_to_path(item, &path.child("items").index(index)));
    }
    errors
}

fn validate_projection(projected: &Value, path: &Path) -> FieldErrors {
    const SOURCES: [&str; 6] =
        ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    let mut errors = FieldErrors::new();
    let mut paths = BTreeSet::new();
    for (index, source) in list(projected, &["sources"]).iter().enumerate() {
        let source_path = path.child("sources").index(index);
        for kind in ["secret", "configMap"] {
            let Some(part) = source.get(kind).filter(|part| !part.is_null()) else { continue };
            let part_path = source_path.child(kind);
            errors.extend(required(part, "name", &part_path));
            for (index, item) in list(part, &["items"]).iter().enumerate() {
                errors.extend(key_to_path(item, &part_path.child("items").index(index)));
                let file = item.str_at(&["path"]);
                if !file.is_empty() && !paths.insert(file) {
                    let detail = "conflicting duplicate paths";
                    errors.push(FieldError::invalid(path, part.str_at(&["name"]), detail));
                }
            }
        }
        if let Some(token) = source.get("serviceAccountToken").filter(|token| !token.is_null()) {
            errors.extend(token_projection(token, &source_path.child("serviceAccountToken"), path));
        }
        if SOURCES.iter().filter(|kind| is_set(source, kind)).count() > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&source_path, detail));
        }
    }
    errors
}

fn token_projection(token: &Value, path: &Path, projected: &Path) -> FieldErrors {
    const SHORTEST: i64 = 600;
    const LONGEST: i64 = 1 << 32;
    let mut errors = FieldErrors::new();
    let expiration = path.child("expirationSeconds");
    match token.get("expirationSeconds").and_then(Value::as_i64) {
        None => errors.push(FieldError::required(&expiration, "")),
        Some(seconds) if seconds < SHORTEST => errors.push(FieldError::invalid(
            &expiration,
            seconds,
            "may not specify a duration less than 10 minutes",
        )),
        Some(seconds) if seconds > LONGEST => errors.push(FieldError::invalid(
            &expiration,
            seconds,
            "may not specify a duration larger than 2^32 seconds",
        )),
        Some(_) => {}
    }
    let (file, file_path) = (token.str_at(&["path"]), projected.child("path"));
    if file.is_empty() {
        errors.push(FieldError::required(&file_path, ""));
    } else {
        errors.extend(local_path(file, &file_path, true));
    }
    errors
}

fn key_to_path(item: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    errors.extend(required(item, "key", path));
    errors.extend(required(item, "path", path));
    errors.extend(local_path(item.str_at(&["path"]), &path.child("path"), true));
    errors.extend(file_mode(item, "mode", path));
    errors
}

/// A path inside a volume: relative and without steps back; perhaps also not one of the volume's own names.
fn local_path(file: &str, path: &Path, reserved: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if file.starts_with('/') {
        errors.push(FieldError::invalid(path, file, "must be a relative path"));
    }
    if file.split('/').any(|element| element == "..") {
        errors.push(FieldError::invalid(path, file, "must not contain '..'"));
    }
    if reserved && file.starts_with("..") && !file.starts_with("../") {
        errors.push(FieldError::invalid(path, file, "must not start with '..'"));
    }
    errors
}

fn file_mode(object: &Value, field: &str, path: &Path) -> Option<FieldError> {
    let mode = object.get(field).and_then(Value::as_i64)?;
    (!(0..=0o777).contains(&mode)).then(|| FieldError::invalid(&path.child(field), mode, FILE_MODE_TEXT))
}

fn required(object: &Value, field: &str, path: &Path) -> Option<FieldError> {
    object.str_at(&[field]).is_empty().then(|| FieldError::required(&path.child(field), ""))
}

fn validate_container(container: &Value, volumes: &BTreeSet<&str>, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (name, name_path) = (container.str_at(&["name"]), path.child("name"));
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        errors.extend(invalid_each(is_dns1123_label(name), &name_path, name));
    }
    errors.extend(required(container, "image", path));
    for (field, allowed) in [
        ("terminationMessagePolicy", &["File", "FallbackToLogsOnError"][..]),
        ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ] {
        let value = container.str_at(&[field]);
        if value.is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        } else if !allowed.contains(&value) {
            errors.push(FieldError::not_supported(&path.child(field), value, allowed));
        }
    }
    errors.extend(validate_ports(list(container, &["ports"]), &path.child("ports")));
    for (index, variable) in list(container, &["env"]).iter().enumerate() {
        errors.extend(validate_variable(variable, &path.child("env").index(index)));
    }
    let from = path.child("envFrom");
    for (index, source) in list(container, &["envFrom"]).iter().enumerate() {
        errors.extend(validate_source(source, &from.index(index), &from));
    }
    let mounts = path.child("volumeMounts");
    let mut mounted = BTreeSet::new();
    for (index, mount) in list(container, &["volumeMounts"]).iter().enumerate() {
        let path = mounts.index(index);
        errors.extend(required(mount, "name", &path));
        let (volume, point) = (mount.str_at(&["name"]), mount.str_at(&["mountPath"]));
        if !volumes.contains(volume) {
            errors.push(FieldError::not_found(&path.child("name"), volume));
        }
        errors.extend(required(mount, "mountPath", &path));
        if !mounted.insert(point) {
            errors.push(FieldError::invalid(&path.child("mountPath"), point, "must be unique"));
        }
        errors.extend(sub_paths(mount, &path, &mounts));
    }
    errors
}

fn sub_paths(mount: &Value, path: &Path, mounts: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (sub_path, expression) = (mount.str_at(&["subPath"]), mount.str_at(&["subPathExpr"]));
    // Upstream leaves the index out of these two paths.
    errors.extend(local_path(sub_path, &mounts.child("subPath"), false));
    if !expression.is_empty() && !sub_path.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(&path.child("subPathExpr"), expression, detail));
    }
    errors.extend(local_path(expression, &mounts.child("subPathExpr"), false));
    errors
}

fn validate_ports(ports: &[Value], path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.str_at(&["name"]);
        if !name.is_empty() {
            let faults = is_port_name(name);
            if faults.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), name));
            }
            errors.extend(invalid_each(faults, &path.child("name"), name));
        }
        let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
        if number("containerPort") == 0 {
            errors.push(FieldError::required(&path.child("containerPort"), ""));
        }
        for field in ["containerPort", "hostPort"] {
            let number = number(field);
            if number != 0 {
                let faults = is_port_number(number).into_iter();
                errors.extend(faults.map(|fault| FieldError::invalid(&path.child(field), number, fault)));
            }
        }
        match port.str_at(&["protocol"]) {
            "" => errors.push(FieldError::required(&path.child("protocol"), "")),
            "TCP" | "UDP" | "SCTP" => {}
            other => {
                let supported = ["SCTP", "TCP", "UDP"];
                errors.push(FieldError::not_supported(&path.child("protocol"), other, &supported));
            }
        }
    }
    errors
}

fn validate_variable(variable: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (name, name_path) = (variable.str_at(&["name"]), path.child("name"));
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        errors.extend(invalid_each(is_environment_name(name), &name_path, name));
    }
    let Some(from) = variable.get("valueFrom").filter(|from| !from.is_null()) else {
        return errors;
    };
    let path = path.child("valueFrom");
    for field in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = from.get(field).filter(|reference| !reference.is_null()) {
            errors.extend(key_reference(reference, &path.child(field)));
        }
    }
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = sources.iter().filter(|source| is_set(from, source)).count();
    let detail = match (count, variable.str_at(&["value"]).is_empty()) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (_, false) => "may not be specified when `value` is not empty",
        (1, true) => return errors,
        (_, true) => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(&path, "", detail));
    errors
}

fn key_reference(reference: &Value, path: &Path) -> FieldErrors {
    let (name, key) = (reference.str_at(&["name"]), reference.str_at(&["key"]));
    let mut errors = invalid_each(dns_subdomain(name, false), &path.child("name"), name);
    if key.is_empty() {
        errors.push(FieldError::required(&path.child("key"), ""));
    } else {
        errors.extend(invalid_each(is_config_map_key(key), &path.child("key"), key));
    }
    errors
}

fn validate_source(source: &Value, path: &Path, list: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let prefix = source.str_at(&["prefix"]);
    if !prefix.is_empty() {
        errors.extend(invalid_each(is_environment_name(prefix), &path.child("prefix"), prefix));
    }
    let kinds = ["configMapRef", "secretRef"];
    for kind in kinds {
        if let Some(reference) = source.get(kind).filter(|reference| !reference.is_null()) {
            let (name, path) = (reference.str_at(&["name"]), path.child(kind).child("name"));
            if name.is_empty() {
                errors.push(FieldError::required(&path, ""));
            } else {
                errors.extend(invalid_each(dns_subdomain(name, true), &path, name));
            }
        }
    }
    match kinds.iter().filter(|kind| is_set(source, kind)).count() {
        0 => errors.push(FieldError::invalid(list, "", "must specify one of: `configMapRef` or `secretRef`")),
        1 => {}
        _ => {
            let detail = "may not have more than one field specified at a time";
            errors.push(FieldError::invalid(list, "", detail));
        }
    }
    errors
}

fn default_container(container: &mut Value, host_network: bool) {
    let policy =
        if image_tag(container.str_at(&["image"])) == Some("latest") { "Always" } else { "IfNotPresent" };
    let resources = container.get_mut("resources");
    if let Some((limits, resources)) =
        resources.and_then(|resources| Some((resources.get("limits")?.as_object()?.clone(), resources)))
    {
        let requests = resources.object_at_mut(&["requests"]);
        for (name, quantity) in limits {
            requests.entry(name).or_insert(quantity);
        }
    }
    let Some(members) = container.as_object_mut() else { return };
    for (field, value) in [
        ("imagePullPolicy", policy),
        ("terminationMessagePath", "/dev/termination-log"),
        ("terminationMessagePolicy", "File"),
    ] {
        set_default(members, field, value.into());
    }
    members.entry("resources".to_owned()).or_insert_with(Value::object);
    for port in items_mut(members, "ports") {
        let Some(port) = port.as_object_mut() else { continue };
        set_default(port, "protocol", "TCP".into());
        if let (true, Some(number)) = (host_network, port.get("containerPort").cloned()) {
            set_default(port, "hostPort", number);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = members.get_mut(probe).and_then(Value::as_object_mut) else { continue };
        for (field, number) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            set_default(probe, field, number.into());
        }
        if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
            set_default(get, "path", "/".into());
            set_default(get, "scheme", "HTTP".into());
        }
    }
    for variable in items_mut(members, "env") {
        let Some(from) = variable.get_mut("valueFrom") else { continue };
        if let Some(reference) = from.get_mut("fieldRef").and_then(Value::as_object_mut) {
            set_default(reference, "apiVersion", "v1".into());
        }
    }
}

fn default_volume(volume: &mut Value) {
    if !VOLUME_KINDS.iter().any(|kind| is_set(volume, kind)) {
        volume.set(&["emptyDir"], Value::object());
    }
    let default_items = |source: &mut crate::Map| {
        for item in items_mut(source, "items") {
            if let Some(reference) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
                set_default(reference, "apiVersion", "v1".into());
            }
        }
    };
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        let Some(source) = volume.get_mut(kind).and_then(Value::as_object_mut) else { continue };
        source.entry("defaultMode".to_owned()).or_insert(Value::Int(DEFAULT_MODE));
        default_items(source);
        for part in items_mut(source, "sources") {
            if let Some(token) = part.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                token.entry("expirationSeconds".to_owned()).or_insert(Value::Int(3600));
            }
            if let Some(downward) = part.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                default_items(downward);
            }
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        path.entry("type".to_owned()).or_insert_with(|| "".into());
    }
}

/// Keeps `podIP` and `podIPs` in step; the single one counts.
fn default_status(pod: &mut Value) {
    let first = list(pod, &["status", "podIPs"]).first().map(|ip| ip.str_at(&["ip"]).to_owned());
    let single = pod.str_at(&["status", "podIP"]).to_owned();
    match (single.is_empty(), first) {
        (true, Some(first)) => pod.set(&["status", "podIP"], first),
        (false, first) if first.as_deref() != Some(single.as_str()) => {
            pod.set(&["status", "podIPs"], vec![Value::from([("ip", single)])]);
        }
        _ => {}
    }
}

/// `Guaranteed` when every container limits CPU and memory and requests as much, `BestEffort` when none says anything.
fn quality_of_service(pod: &Value) -> &'static str {
    let (mut any, mut guaranteed) = (false, true);
    for container in ["containers", "initContainers"].iter().flat_map(|field| list(pod, &["spec", field])) {
        for resource in ["cpu", "memory"] {
            let limit = container.at(&["resources", "limits", resource]);
            let request = container.at(&["resources", "requests", resource]);
            any |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
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

/// Sets `field` where it is absent or has Go's zero value.
pub(crate) fn set_default(object: &mut crate::Map, field: &str, value: Value) {
    let absent = match object.get(field) {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if absent {
        object.insert(field.to_owned(), value);
    }
}

fn items_mut<'a>(object: &'a mut crate::Map, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn is_set(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
