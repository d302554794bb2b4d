//! Secrets: conversion, defaulting, validation, immutability and the certificate warning.

use crate::meta::Meta;
use crate::names::is_config_map_key;
use crate::validation::field::{FieldError, FieldErrors, Path, Shown};
use crate::validation::meta::{self, MetaRules, immutable, invalid_each};
use crate::validation::{go_json, pem};
use crate::{Map, SecretBytes, Value};

/// Most bytes of all values of one Secret together, and of one ConfigMap.
pub const DATA_LIMIT: usize = 1024 * 1024;

/// The type of a Secret that names none.
pub const OPAQUE: &str = "Opaque";
const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// What [`Value`]s of a Secret pass before anything else looks at them: an
/// empty type becomes `Opaque`, and `stringData` moves into `data`.
pub fn default(secret: &mut Value) {
    if secret.str_at(&["type"]).is_empty() {
        secret.set(&["type"], OPAQUE);
    }
    convert(secret);
}

/// Moves `stringData` into `data`, over equal keys; a null value becomes an empty one.
pub fn convert(secret: &mut Value) {
    if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
        for value in data.values_mut().filter(|value| value.is_null()) {
            *value = Value::Bytes(SecretBytes::default());
        }
    }
    if let Some(Value::Object(strings)) = secret.remove(&["stringData"]) {
        if strings.is_empty() {
            return;
        }
        let data = secret.object_at_mut(&["data"]);
        for (key, value) in strings {
            let bytes = match value {
                Value::String(text) => SecretBytes::from(text),
                Value::Bytes(bytes) => bytes,
                _ => SecretBytes::default(),
            };
            data.insert(key, Value::Bytes(bytes));
        }
    }
}

/// What an update does first: a missing type is the old one.
pub fn prepare_update(new: &mut Value, old: &Value) {
    if new.str_at(&["type"]).is_empty() {
        new.set_str(&["type"], old.str_at(&["type"]));
    }
}

/// The check at creation, also run at every update.
pub fn validate(secret: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate(secret, rules);
    let data = map(secret, "data");
    let path = Path::new("data");
    let mut size = 0_usize;
    for (key, value) in data {
        errors.extend(invalid_each(is_config_map_key(key), &path.key(key), key));
        size += value.as_bytes().map_or(0, SecretBytes::len);
    }
    if size > DATA_LIMIT {
        errors.push(FieldError::too_long(&path, DATA_LIMIT));
    }
    errors.extend(by_type(secret, data, &path));
    errors
}

/// The check at update: the type stays, and an immutable Secret stays as it is.
pub fn validate_update(new: &Value, old: &Value, rules: MetaRules) -> FieldErrors {
    let mut errors = meta::validate_update(new, old, rules);
    let (new_type, old_type) = (new.str_at(&["type"]), old.str_at(&["type"]));
    errors.extend(immutable(new_type == old_type, &Path::new("type"), new_type));
    errors.extend(immutable_data(new, old, &["data"]));
    errors.extend(validate(new, rules));
    errors
}

/// What a Secret or ConfigMap may not change once `immutable` is set. An absent map equals an empty one.
pub(crate) fn immutable_data(new: &Value, old: &Value, fields: &[&str]) -> FieldErrors {
    let is_set = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    let mut errors = FieldErrors::new();
    if !is_set(old) {
        return errors;
    }
    if !is_set(new) {
        errors.push(FieldError::forbidden(&Path::new("immutable"), IMMUTABLE));
    }
    for field in fields {
        if map(new, field) != map(old, field) {
            errors.push(FieldError::forbidden(&Path::new(field), IMMUTABLE));
        }
    }
    errors
}

static EMPTY: Map = Map::new();

pub(crate) fn map<'a>(object: &'a Value, field: &str) -> &'a Map {
    object.get(field).and_then(Value::as_object).unwrap_or(&EMPTY)
}

fn by_type(secret: &Value, data: &Map, path: &Path) -> FieldErrors {
    let required = |key: &str| FieldError::required(&path.key(key), "");
    match secret.str_at(&["type"]) {
        "kubernetes.io/service-account-token" => {
            let named = secret.annotation(SERVICE_ACCOUNT_NAME).is_some_and(|name| !name.is_empty());
            let path = Path::of(&["metadata", "annotations"]).key(SERVICE_ACCOUNT_NAME);
            if named { Vec::new() } else { vec![FieldError::required(&path, "")] }
        }
        "kubernetes.io/dockercfg" => docker_config(data, ".dockercfg", path),
        "kubernetes.io/dockerconfigjson" => docker_config(data, ".dockerconfigjson", path),
        "kubernetes.io/basic-auth" => match data.contains_key("username") || data.contains_key("password") {
            true => Vec::new(),
            false => vec![required("username"), required("password")],
        },
        "kubernetes.io/ssh-auth" => match data.get("ssh-privatekey").and_then(Value::as_bytes) {
            Some(key) if !key.is_empty() => Vec::new(),
            _ => vec![required("ssh-privatekey")],
        },
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| !data.contains_key(*key)).map(required).collect()
        }
        _ => Vec::new(),
    }
}

fn docker_config(data: &Map, key: &str, path: &Path) -> FieldErrors {
    let path = path.key(key);
    let Some(value) = data.get(key) else {
        return vec![FieldError::required(&path, "")];
    };
    let bytes = value.as_bytes().map_or(&[][..], SecretBytes::expose);
    match go_json::check_object(bytes) {
        Ok(()) => Vec::new(),
        Err(fault) => vec![FieldError::invalid(&path, Shown::redacted(), fault)],
    }
}

/// Tells whether a certificate and a private key belong together. Implemented where cryptography is.
pub trait PairCheck {
    /// `chain` is the certificates in DER, the leaf first; `key` is a private key in DER.
    /// The error is Go's text, such as `tls: private key does not match public key`.
    fn check(&self, chain: &[Vec<u8>], key: &SecretBytes) -> Result<(), String>;
}

/// The warnings that come with a stored Secret: whether a TLS pair is one.
pub fn warnings(secret: &Value, pair: &dyn PairCheck) -> Vec<String> {
    if secret.str_at(&["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = map(secret, "data");
    let bytes = |key: &str| data.get(key).and_then(Value::as_bytes).map_or(&[][..], SecretBytes::expose);
    tls_warning(bytes("tls.crt"), bytes("tls.key"), pair).into_iter().collect()
}

/// What Go's `tls.X509KeyPair` says of a certificate and key in PEM.
pub fn tls_warning(certificate: &[u8], key: &[u8], pair: &dyn PairCheck) -> Option<String> {
    let mut chain = Vec::new();
    let mut skipped = Vec::new();
    for block in pem::blocks(certificate) {
        if block.label == "CERTIFICATE" {
            chain.push(block.der.expose().to_vec());
        } else {
            skipped.push(block.label);
        }
    }
    if chain.is_empty() {
        return Some(match skipped.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [only] if only.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM \
                 inputs may have been switched"
                    .to_owned()
            }
            several => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of \
                 the following types: [{}]",
                several.join(" ")
            ),
        });
    }
    let mut skipped = Vec::new();
    let mut private = None;
    for block in pem::blocks(key) {
        if block.label == "PRIVATE KEY" || block.label.ends_with(" PRIVATE KEY") {
            private = Some(block.der);
            break;
        }
        skipped.push(block.label);
    }
    let Some(private) = private else {
        return Some(match skipped.as_slice() {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            [only] if only == "CERTIFICATE" => {
                "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            several => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM \
                 blocks of the following types: [{}]",
                several.join(" ")
            ),
        });
    };
    pair.check(&chain, &private).err()
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
