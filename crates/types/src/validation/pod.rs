//! Pods: the defaults that clients expect to see, and the rules that protect what is stored.
//!
//! Thin: what concerns scheduling, probes, resources and security contexts is
//! stored as it comes, since no part of coffer acts on it.

use std::collections::BTreeSet;

use crate::Value;
use crate::defaults;
use crate::names::{
    dns_subdomain, is_config_map_key, is_dns1123_label, is_environment_name, is_port_name, is_port_number,
    range_error,
};
use crate::schema;
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::{self, MetaRules, invalid_each};

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
    if let Some(kind) = schema::lookup("", "v1", "Pod") {
        defaults::apply(kind.message, pod);
    }
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
    if new.str_at(&["status", "qosClass"]).is_empty() {
        let class = old.str_at(&["status", "qosClass"]).to_owned();
        if !class.is_empty() {
            new.set(&["status", "qosClass"], class);
        }
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
    errors.extend(validate_spec(pod, &Path::new("spec")));
    errors
}

/// The check of the spec of a Pod, or of a template of Pods, which stands at `path`.
pub(crate) fn validate_spec(pod: &Value, path: &Path) -> FieldErrors {
    let (volumes, mut errors) = validate_volumes(list(pod, &["spec", "volumes"]), &path.child("volumes"));
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
    errors.extend(one_of(pod, path, "restartPolicy", &["Always", "OnFailure", "Never"]));
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.extend(one_of(pod, path, "dnsPolicy", &policies));
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
    errors.extend(tokens_need_an_account(pod, path));
    errors
}

fn one_of(pod: &Value, path: &Path, field: &str, allowed: &[&str]) -> Option<FieldError> {
    let path = path.child(field);
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

fn is_set(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn list<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    object.at(path).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
