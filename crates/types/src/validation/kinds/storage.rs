//! Volumes, claims, and what serves them.

use std::collections::BTreeSet;

use super::check::{is_set, list, number, one_of, required, subdomain, unchanged, unchanged_null};
use super::{CLUSTER, Generation, KindRules, PLAIN, Status, same};
use crate::names;
use crate::validation::field::{FieldError, FieldErrors, Path};
use crate::validation::meta::invalid_each;
use crate::{Map, Value};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// Kinds of volume that a PersistentVolume can be.
const SOURCES: [&str; 22] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "hostPath",
    "glusterfs",
    "nfs",
    "rbd",
    "iscsi",
    "cinder",
    "cephfs",
    "fc",
    "flocker",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
const STORAGE: KindRules = KindRules { group: "storage.k8s.io", ..CLUSTER };

pub(super) const KINDS: &[KindRules] = &[
    KindRules {
        kind: "PersistentVolume",
        status: Status::Own,
        prepare_create: |object| object.set(&["status", "phase"], "Pending"),
        validate: volume,
        validate_update: |new, old, errors| {
            volume(new, errors);
            if SOURCES.iter().any(|source| !same(new.at(&["spec", source]), old.at(&["spec", source]))) {
                // Upstream adds a difference, which can hold what a driver was told.
                let detail = "spec.persistentvolumesource is immutable after creation";
                errors.push(FieldError::forbidden(&Path::of(&["spec", "persistentvolumesource"]), detail));
            }
            unchanged(new, old, &["spec", "volumeMode"], errors);
        },
        ..CLUSTER
    },
    KindRules {
        kind: "PersistentVolumeClaim",
        status: Status::Own,
        prepare_create: |object| {
            copy_data_source(object);
            // Upstream sets it when it reads the object again.
            object.set(&["status", "phase"], "Pending");
        },
        prepare_update: |new, _| copy_data_source(new),
        validate: claim,
        validate_update: |new, old, errors| {
            claim(new, errors);
            claim_update(new, old, errors);
        },
        ..PLAIN
    },
    KindRules {
        kind: "StorageClass",
        validate: storage_class,
        validate_update: |new, old, errors| {
            storage_class(new, errors);
            for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                unchanged_null(new, old, &[field], errors);
            }
        },
        ..STORAGE
    },
    KindRules {
        kind: "CSIDriver",
        generation: Generation::Later(&[&["spec"]]),
        validate: driver,
        validate_update: |new, old, errors| {
            driver(new, errors);
            // Upstream misspells the first.
            if !same(new.at(&["spec", "attachRequired"]), old.at(&["spec", "attachRequired"])) {
                let shown = new.at(&["spec", "attachRequired"]).unwrap_or(&Value::Null);
                let path = Path::of(&["spec", "attachedRequired"]);
                errors.push(FieldError::invalid(&path, shown, "field is immutable"));
            }
            for field in ["fsGroupPolicy", "volumeLifecycleModes"] {
                unchanged(new, old, &["spec", field], errors);
            }
        },
        ..STORAGE
    },
    KindRules {
        kind: "CSINode",
        status: Status::Apart,
        validate: |object, errors| node_drivers(object, errors),
        validate_update: |new, _, errors| node_drivers(new, errors),
        ..STORAGE
    },
    KindRules {
        kind: "VolumeAttachment",
        status: Status::Apart,
        validate: attachment,
        validate_update: |new, old, errors| {
            attachment(new, errors);
            unchanged_null(new, old, &["spec"], errors);
        },
        ..STORAGE
    },
    KindRules {
        kind: "CSIStorageCapacity",
        namespaced: true,
        validate: |object, errors| subdomain(object, &["storageClassName"], errors),
        validate_update: |new, old, errors| {
            unchanged_null(new, old, &["nodeTopology"], errors);
            unchanged(new, old, &["storageClassName"], errors);
        },
        ..STORAGE
    },
    KindRules {
        kind: "VolumeAttributesClass",
        validate: attributes_class,
        validate_update: |new, old, errors| {
            attributes_class(new, errors);
            for field in ["driverName", "parameters"] {
                if !same(new.get(field), old.get(field)) {
                    let detail = format!("updates to {field} are forbidden.");
                    errors.push(FieldError::forbidden(&Path::new(field), detail));
                }
            }
        },
        ..STORAGE
    },
];

fn access_modes(object: &Value, missing: &str, errors: &mut FieldErrors) {
    let path = Path::of(&["spec", "accessModes"]);
    let modes = list(object, &["spec", "accessModes"]);
    if modes.is_empty() {
        errors.push(FieldError::required(&path, missing));
    }
    let text = |mode: &Value| mode.as_str().unwrap_or_default().to_owned();
    for mode in modes.iter().map(text).filter(|mode| !ACCESS_MODES.contains(&mode.as_str())) {
        errors.push(FieldError::not_supported(&path, mode.as_str(), &ACCESS_MODES));
    }
    let alone = modes.iter().any(|mode| mode.as_str() == Some("ReadWriteOncePod"));
    if alone && modes.len() > 1 {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// A quantity that is above zero.
fn positive(quantity: &Value, path: &Path, errors: &mut FieldErrors) {
    let text = quantity.as_str().unwrap_or_default();
    let digits = text.trim_start_matches('-');
    let zero =
        digits.chars().take_while(|one| one.is_ascii_digit() || *one == '.').all(|one| "0.".contains(one));
    if text.starts_with('-') || zero {
        errors.push(FieldError::invalid(path, text, "must be greater than zero"));
    }
}

fn volume(object: &Value, errors: &mut FieldErrors) {
    access_modes(object, "", errors);
    let path = Path::of(&["spec", "capacity"]);
    let capacity = object.at(&["spec", "capacity"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if capacity.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    if capacity.len() != 1 || !capacity.contains_key("storage") {
        let shown = object.at(&["spec", "capacity"]).unwrap_or(&Value::Null);
        errors.push(FieldError::not_supported(&path, shown, &["storage"]));
    }
    for (name, quantity) in &capacity {
        positive(quantity, &path.key(name), errors);
    }
    let policies = ["Delete", "Recycle", "Retain"];
    one_of(object, &["spec", "persistentVolumeReclaimPolicy"], &policies, errors);
    one_of(object, &["spec", "volumeMode"], &["Block", "Filesystem"], errors);
    let mut sources = SOURCES.iter().filter(|source| is_set(object, &["spec", source]));
    if sources.next().is_none() {
        errors.push(FieldError::required(&Path::new("spec"), "must specify a volume type"));
    }
    for other in sources {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(&Path::of(&["spec", other]), detail));
    }
}

fn claim(object: &Value, errors: &mut FieldErrors) {
    access_modes(object, "at least 1 access mode is required", errors);
    let path = Path::of(&["spec", "resources"]).key("storage");
    match object.at(&["spec", "resources", "requests", "storage"]) {
        None => errors.push(FieldError::required(&path, "")),
        Some(quantity) => positive(quantity, &path, errors),
    }
    let class = object.str_at(&["spec", "storageClassName"]);
    if !class.is_empty() {
        subdomain(object, &["spec", "storageClassName"], errors);
    }
    one_of(object, &["spec", "volumeMode"], &["Block", "Filesystem"], errors);
}

/// Of a claim's spec, its size and class of attributes may change once it is bound.
fn claim_update(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let rest = |claim: &Value| {
        let mut spec = claim.get("spec").cloned().unwrap_or_default();
        if old.str_at(&["status", "phase"]) == "Bound" {
            spec.remove(&["resources", "requests"]);
            spec.remove(&["volumeAttributesClassName"]);
        }
        // A claim gets its volume once, and its class where it had none.
        for field in ["volumeName", "storageClassName"] {
            if old.str_at(&["spec", field]).is_empty() {
                spec.remove(&[field]);
            }
        }
        spec
    };
    if !same(Some(&rest(new)), Some(&rest(old))) {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(&Path::new("spec"), detail));
    }
    unchanged(new, old, &["spec", "volumeMode"], errors);
    let at = |claim: &Value, path: &[&str]| claim.at(path).and_then(Value::as_str).and_then(magnitude);
    let requested = ["spec", "resources", "requests", "storage"];
    let (now, before) = (at(new, &requested), at(old, &requested));
    let given = at(old, &["status", "capacity", "storage"]);
    if let (Some(now), Some(before), Some(given)) = (now, before, given)
        && now < before
        && now <= given
    {
        let path = Path::of(&["spec", "resources", "requests", "storage"]);
        errors.push(FieldError::forbidden(&path, "field can not be less than status.capacity"));
    }
}

/// What a quantity amounts to, near enough to compare sizes.
pub(super) fn magnitude(text: &str) -> Option<f64> {
    let end = text.find(|one: char| !(one.is_ascii_digit() || "+-.".contains(one))).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let power = |base: f64, suffixes: &str, suffix: char| {
        suffixes
            .find(suffix)
            .and_then(|index| i32::try_from(index + 1).ok())
            .map(|exponent| base.powi(exponent))
    };
    let unit = match &text[end..] {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        unit if unit.ends_with('i') => power(1024.0, "KMGTPE", unit.chars().next()?)?,
        "k" => 1e3,
        unit if unit.len() == 1 && unit != "e" => power(1000.0, "KMGTPE", unit.chars().next()?)?,
        exponent => 10_f64.powi(exponent[1..].parse().ok()?),
    };
    Some(number * unit)
}

/// `dataSource` and `dataSourceRef` say the same, unless the latter names a namespace.
fn copy_data_source(object: &mut Value) {
    let (source, reference) = (["spec", "dataSource"], ["spec", "dataSourceRef"]);
    match (object.at(&source).cloned(), object.at(&reference).cloned()) {
        (Some(from), None) if !from.is_null() => object.set(&reference, from),
        (None, Some(mut from)) if !from.is_null() && from.str_at(&["namespace"]).is_empty() => {
            from.remove(&["namespace"]);
            object.set(&source, from);
        }
        _ => {}
    }
}

fn storage_class(object: &Value, errors: &mut FieldErrors) {
    required(object, &["provisioner"], errors);
    one_of(object, &["reclaimPolicy"], &["Delete", "Retain"], errors);
    one_of(object, &["volumeBindingMode"], &["Immediate", "WaitForFirstConsumer"], errors);
    if let Some(parameters) = object.get("parameters").and_then(Value::as_object)
        && parameters.contains_key("")
    {
        errors.push(FieldError::invalid(&Path::new("parameters"), "", "field can not be empty."));
    }
}

fn driver(object: &Value, errors: &mut FieldErrors) {
    one_of(object, &["spec", "fsGroupPolicy"], &["File", "None", "ReadWriteOnceWithFSType"], errors);
    for mode in list(object, &["spec", "volumeLifecycleModes"]) {
        let mode = mode.as_str().unwrap_or_default();
        let modes = ["Persistent", "Ephemeral"];
        if !modes.contains(&mode) {
            let path = Path::of(&["spec", "volumeLifecycleModes"]);
            errors.push(FieldError::not_supported(&path, mode, &modes));
        }
    }
}

fn node_drivers(object: &Value, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, driver) in list(object, &["spec", "drivers"]).iter().enumerate() {
        let path = Path::of(&["spec", "drivers"]).index(index);
        let name = driver.str_at(&["name"]);
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if driver.str_at(&["nodeID"]).is_empty() {
            errors.push(FieldError::required(&path.child("nodeID"), ""));
        }
        if let Some(count) = number(driver, &["allocatable", "count"]).filter(|count| *count < 0) {
            let path = path.child("allocatable").child("count");
            errors.push(FieldError::invalid(&path, count, super::check::NOT_NEGATIVE));
        }
        for (index, key) in list(driver, &["topologyKeys"]).iter().enumerate() {
            let key = key.as_str().unwrap_or_default();
            let path = path.child("topologyKeys").index(index);
            errors.extend(invalid_each(names::is_qualified_name(key), &path, key));
        }
    }
}

fn attachment(object: &Value, errors: &mut FieldErrors) {
    required(object, &["spec", "attacher"], errors);
    let source = ["inlineVolumeSpec", "persistentVolumeName"];
    let count = source.iter().filter(|field| is_set(object, &["spec", "source", field])).count();
    if count != 1 {
        let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required(&Path::of(&["spec", "source"]), detail));
    }
    subdomain(object, &["spec", "nodeName"], errors);
}

fn attributes_class(object: &Value, errors: &mut FieldErrors) {
    required(object, &["driverName"], errors);
    if object.get("parameters").and_then(Value::as_object).is_none_or(Map::is_empty) {
        let detail = "must contain at least one key/value pair";
        errors.push(FieldError::required(&Path::new("parameters"), detail));
    }
}
