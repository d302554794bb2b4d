//! Every rule, in upstream's order and words.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown, go_json};
use coffer_types::{SecretBytes, Value};

use super::resource::GroupResource;
use super::{EncryptionConfiguration, Key, Keys, Kms, ProviderRule, Reload};
use crate::{go_duration, go_url};

const AES_KEY_SIZES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_SIZES: &[usize] = &[32];

const REPEATED: &str = "the same resource cannot be specified multiple times";
const OVERLAPPING: &str = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not \
                           allowed as they will be masked";
const CAPITALS: &str = "resource name should not contain capital letters";
const BARE_WILDCARD: &str =
    "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources";
const NO_REST: &str = "resources which do not have REST API/s cannot be encrypted";
const EVENTS: &str = "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' \
                      instead in the config file";
const EXTENSIONS: &str = "'extensions' group has been removed and cannot be used for encryption";
const ACROSS_GROUPS: &str = "encrypting the same resource across groups is not supported";
const NO_PROVIDER: &str =
    "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
const SEVERAL_PROVIDERS: &str =
    "more than one provider specified in a single element, should split into different list elements";

pub(super) fn validate(config: &EncryptionConfiguration, reload: Reload) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let root = Path::new("resources");
    if config.resources.is_empty() {
        errors.push(FieldError::required(&root, "at least one resources is required"));
        return errors;
    }
    let mut kms_names = BTreeSet::new();
    for (index, rule) in config.resources.iter().enumerate() {
        let resources = root.index(index).child("resources");
        let providers = root.index(index).child("providers");
        if rule.resources.is_empty() {
            errors.push(FieldError::required(&resources, format!("at least one {resources} is required")));
        }
        check_overlap(&rule.resources, &resources, &mut errors);
        check_names(&rule.resources, &resources, &mut errors);
        if rule.providers.is_empty() {
            errors.push(FieldError::required(&providers, format!("at least one {providers} is required")));
        }
        for (index, provider) in rule.providers.iter().enumerate() {
            check_provider(provider, &providers.index(index), reload, &mut kms_names, &mut errors);
        }
    }
    errors
}

/// Resources that are there twice, or that a wildcard beside them covers; each told once.
fn check_overlap(names: &[String], path: &Path, errors: &mut FieldErrors) {
    let parsed: Vec<_> = names.iter().map(|name| GroupResource::parse(name)).collect();
    let (mut repeated, mut overlapping) = (false, false);
    for (index, one) in parsed.iter().enumerate() {
        for (_, other) in parsed.iter().enumerate().filter(|(at, _)| *at != index) {
            repeated |= one == other;
            let wildcard = one.resource == "*" || other.resource == "*";
            overlapping |= *one == GroupResource::any() || (one.group == other.group && wildcard);
        }
    }
    let shown = Value::Array(names.iter().map(|name| Value::from(name.as_str())).collect());
    if repeated {
        errors.push(FieldError::invalid(path, &shown, REPEATED));
    }
    if overlapping {
        errors.push(FieldError::invalid(path, &shown, OVERLAPPING));
    }
}

fn check_names(names: &[String], path: &Path, errors: &mut FieldErrors) {
    for (index, name) in names.iter().enumerate() {
        if let Some(detail) = name_problem(name) {
            errors.push(FieldError::invalid(&path.index(index), name, detail));
        }
    }
}

/// The first rule that a name breaks.
fn name_problem(name: &str) -> Option<&'static str> {
    let parsed = GroupResource::parse(name);
    let stored_without_api = ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];
    if name.to_lowercase() != name {
        Some(CAPITALS)
    } else if name == "*" {
        Some(BARE_WILDCARD)
    } else if stored_without_api.contains(&name) {
        Some(NO_REST)
    } else if parsed.group == "events.k8s.io" {
        Some(EVENTS)
    } else if parsed.group == "extensions" {
        Some(EXTENSIONS)
    } else if parsed.group == "*" && parsed.resource != "*" {
        Some(ACROSS_GROUPS)
    } else {
        None
    }
}

fn check_provider(
    provider: &ProviderRule,
    path: &Path,
    reload: Reload,
    kms_names: &mut BTreeSet<String>,
    errors: &mut FieldErrors,
) {
    let members = [
        provider.aes_gcm.is_some(),
        provider.aes_cbc.is_some(),
        provider.secretbox.is_some(),
        provider.identity,
        provider.kms.is_some(),
    ];
    match members.iter().filter(|set| **set).count() {
        0 => errors.push(FieldError::invalid(path, shown(provider), NO_PROVIDER)),
        1 => {}
        _ => errors.push(FieldError::invalid(path, shown(provider), SEVERAL_PROVIDERS)),
    }
    if let Some(kms) = &provider.kms {
        check_kms(kms, &path.child("kms"), reload, kms_names, errors);
        kms_names.insert(kms.name.clone());
    } else if let Some(keys) = &provider.aes_gcm {
        check_keys(keys, &path.child("aesgcm").child("keys"), AES_KEY_SIZES, errors);
    } else if let Some(keys) = &provider.aes_cbc {
        check_keys(keys, &path.child("aescbc").child("keys"), AES_KEY_SIZES, errors);
    } else if let Some(keys) = &provider.secretbox {
        check_keys(keys, &path.child("secretbox").child("keys"), SECRETBOX_KEY_SIZES, errors);
    }
}

/// The provider as upstream prints it, except that upstream prints the keys.
fn shown(provider: &ProviderRule) -> Shown {
    const NULL: &str = "null";
    let text = |text: &str| go_json(&Value::from(text));
    let keys = |keys: &Option<Keys>| match keys {
        None => NULL.to_owned(),
        Some(keys) => {
            let shown = |key: &Key| format!(r#"{{"Name":{},"Secret":"REDACTED"}}"#, text(&key.name));
            format!(r#"{{"Keys":[{}]}}"#, keys.keys.iter().map(shown).collect::<Vec<_>>().join(","))
        }
    };
    let kms = provider.kms.as_ref().map_or(NULL.to_owned(), |kms| {
        format!(
            r#"{{"APIVersion":{},"Name":{},"CacheSize":{},"Endpoint":{},"Timeout":{}}}"#,
            text(&kms.api_version),
            text(&kms.name),
            kms.cache_size.map_or(NULL.to_owned(), |size| size.to_string()),
            text(&kms.endpoint),
            text(&go_duration::format(kms.timeout)),
        )
    });
    Shown::verbatim(format!(
        r#"{{"AESGCM":{},"AESCBC":{},"Secretbox":{},"Identity":{},"KMS":{kms}}}"#,
        keys(&provider.aes_gcm),
        keys(&provider.aes_cbc),
        keys(&provider.secretbox),
        if provider.identity { "{}" } else { NULL },
    ))
}

fn check_keys(keys: &Keys, path: &Path, sizes: &[usize], errors: &mut FieldErrors) {
    if keys.keys.is_empty() {
        errors.push(FieldError::required(path, "at least one keys is required"));
    }
    for (index, key) in keys.keys.iter().enumerate() {
        check_key(key, &path.index(index), sizes, errors);
    }
}

fn check_key(key: &Key, path: &Path, sizes: &[usize], errors: &mut FieldErrors) {
    if key.name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "name is a mandatory field for a key"));
    }
    let path = path.child("secret");
    if key.secret.is_empty() {
        errors.push(FieldError::required(&path, "secret is a mandatory field for a key"));
        return;
    }
    match decoded(&key.secret) {
        None => errors.push(FieldError::invalid(&path, "REDACTED", "secrets must be base64 encoded")),
        Some(secret) if sizes.contains(&secret.len()) => {}
        Some(secret) => {
            let sizes: Vec<_> = sizes.iter().map(usize::to_string).collect();
            let (length, sizes) = (secret.len(), sizes.join(" "));
            let detail =
                format!("secret is not of the expected length, got {length}, expected one of [{sizes}]");
            errors.push(FieldError::invalid(&path, "REDACTED", detail));
        }
    }
}

/// Go's standard base64: line breaks are skipped and trailing bits ignored.
pub(super) fn decoded(secret: &SecretBytes) -> Option<SecretBytes> {
    const GO: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
    );
    // The length is known beforehand, so that no copy of the key is left behind by growth.
    let mut digits = Vec::with_capacity(secret.len());
    digits.extend(secret.expose().iter().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    let digits = SecretBytes::new(digits);
    GO.decode(digits.expose()).ok().map(SecretBytes::new)
}

fn check_kms(kms: &Kms, path: &Path, reload: Reload, names: &BTreeSet<String>, errors: &mut FieldErrors) {
    let Kms { name, api_version, endpoint, .. } = kms;
    let is_v1 = api_version == "v1";
    let at = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&at, "name is a mandatory field for a provider"));
    }
    if !is_v1 && name.contains(':') {
        errors.push(FieldError::invalid(
            &at,
            name,
            format!("invalid KMS provider name {name}, must not contain ':'"),
        ));
    }
    if (reload == Reload::Automatic || !is_v1) && names.contains(name) {
        let detail = format!("duplicate KMS provider name {name}, names must be unique");
        errors.push(FieldError::invalid(&at, name, detail));
    }
    if kms.timeout <= 0 {
        let shown = go_duration::format(kms.timeout);
        errors.push(FieldError::invalid(
            &path.child("timeout"),
            &shown,
            "timeout should be a positive value",
        ));
    }
    if let Some(detail) = endpoint_problem(endpoint) {
        errors.push(FieldError::invalid(&path.child("endpoint"), endpoint, detail));
    }
    let at = path.child("cachesize");
    match kms.cache_size {
        Some(size) if !is_v1 => {
            errors.push(FieldError::invalid(&at, i64::from(size), "cachesize is not supported in v2"));
        }
        Some(0) => {
            let detail = "cachesize should be a positive value, or negative to disable";
            errors.push(FieldError::invalid(&at, 0, detail));
        }
        Some(_) | None => {}
    }
    if !matches!(api_version.as_str(), "v1" | "v2") {
        // The second word is meant to be the version; upstream's slip is part of the text.
        let detail = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported";
        errors.push(FieldError::invalid(&path.child("apiVersion"), api_version, detail));
    }
}

fn endpoint_problem(endpoint: &str) -> Option<String> {
    if endpoint.is_empty() {
        return Some("endpoint is a mandatory field for a kms".to_owned());
    }
    match go_url::scheme(endpoint) {
        Err(error) => Some(format!("invalid endpoint for kms provider, error: {error}")),
        Ok(scheme) if scheme == "unix" => None,
        Ok(scheme) => Some(format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported")),
    }
}
