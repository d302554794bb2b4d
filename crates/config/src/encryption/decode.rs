//! From a tree to the configuration, strictly, with upstream's defaults.

use coffer_types::{SecretBytes, Value};

use super::{EncryptionConfiguration, Key, Keys, Kms, ProviderRule, ResourceRule};
use crate::Problem;
use crate::go_duration;
use crate::strict::{At, Strict};

const GROUP_VERSION: &str = "apiserver.config.k8s.io/v1";

/// The other kinds of the group, which upstream reads before it refuses them.
const OTHER_KINDS: [&str; 4] = [
    "AdmissionConfiguration",
    "AuthenticationConfiguration",
    "AuthorizationConfiguration",
    "TracingConfiguration",
];

const DEFAULT_TIMEOUT: i64 = 3_000_000_000;
const DEFAULT_CACHE_SIZE: i32 = 1_000;

pub(super) fn decode(tree: &Value, duplicates: Vec<String>) -> Result<EncryptionConfiguration, Problem> {
    let (version, kind) = version_and_kind(tree)?;
    match (version, kind) {
        (GROUP_VERSION, "EncryptionConfiguration") | ("v1", "EncryptionConfig") => {}
        (GROUP_VERSION, other) if OTHER_KINDS.contains(&other) => {
            return Err(Problem::Kind(format!("{version}, Kind={other}")));
        }
        // Upstream names the place in its source where the scheme was made.
        _ => {
            return Err(Problem::Decode(format!(
                "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
    }
    let mut strict = Strict::default();
    let config = configuration(&mut strict, tree);
    strict.finish(duplicates).map_err(Problem::Decode)?;
    Ok(config)
}

fn version_and_kind(tree: &Value) -> Result<(&str, &str), Problem> {
    let refused =
        |text: String| Problem::Decode(format!("couldn't get version/kind; json parse error: {text}"));
    let text = |name: &str| match tree.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(refused(format!(
            "json: cannot unmarshal {} into Go struct field .{name} of type string",
            other.json_kind()
        ))),
    };
    if !matches!(tree, Value::Object(_) | Value::Null) {
        return Err(refused(format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            tree.json_kind()
        )));
    }
    let (version, kind) = (text("apiVersion")?, text("kind")?);
    if version.matches('/').count() > 1 {
        return Err(Problem::Decode(format!("unexpected GroupVersion string: {version}")));
    }
    // Upstream prints the whole file here, keys included.
    match (kind, version) {
        ("", _) => Err(Problem::Decode("Object 'Kind' is missing in 'REDACTED'".to_owned())),
        (_, "") => Err(Problem::Decode("Object 'apiVersion' is missing in 'REDACTED'".to_owned())),
        _ => Ok((version, kind)),
    }
}

fn configuration(strict: &mut Strict, value: &Value) -> EncryptionConfiguration {
    let root = At::root();
    let mut config = EncryptionConfiguration::default();
    for (name, value) in strict.object(value, &root, "v1.EncryptionConfiguration") {
        match name {
            "apiVersion" | "kind" => {}
            "resources" => {
                let at = root.field("EncryptionConfiguration", name);
                let items = strict.list(value, &at, "[]v1.ResourceConfiguration").iter().enumerate();
                config.resources = items.map(|(index, item)| rule(strict, item, &at.item(index))).collect();
            }
            other => strict.unknown(&root, other),
        }
    }
    config
}

fn rule(strict: &mut Strict, value: &Value, at: &At) -> ResourceRule {
    const STRUCT: &str = "ResourceConfiguration";
    let mut rule = ResourceRule::default();
    for (name, value) in strict.object(value, at, "v1.ResourceConfiguration") {
        let here = at.field(STRUCT, name);
        match name {
            "resources" => {
                let items = strict.list(value, &here, "[]string").iter().enumerate();
                rule.resources = items.map(|(index, item)| strict.text(item, &here.item(index))).collect();
            }
            "providers" => {
                let items = strict.list(value, &here, "[]v1.ProviderConfiguration").iter().enumerate();
                rule.providers =
                    items.map(|(index, item)| provider(strict, item, &here.item(index))).collect();
            }
            other => strict.unknown(at, other),
        }
    }
    rule
}

fn provider(strict: &mut Strict, value: &Value, at: &At) -> ProviderRule {
    let mut rule = ProviderRule::default();
    for (name, value) in strict.object(value, at, "v1.ProviderConfiguration") {
        let here = at.field("ProviderConfiguration", name);
        match name {
            "aesgcm" => rule.aes_gcm = keys(strict, value, &here, "AESConfiguration"),
            "aescbc" => rule.aes_cbc = keys(strict, value, &here, "AESConfiguration"),
            "secretbox" => rule.secretbox = keys(strict, value, &here, "SecretboxConfiguration"),
            "identity" => {
                rule.identity = !value.is_null();
                for (name, _) in strict.object(value, &here, "v1.IdentityConfiguration") {
                    strict.unknown(&here, name);
                }
            }
            "kms" if value.is_null() => rule.kms = None,
            "kms" => rule.kms = Some(kms(strict, value, &here)),
            other => strict.unknown(at, other),
        }
    }
    rule
}

fn keys(strict: &mut Strict, value: &Value, at: &At, structure: &'static str) -> Option<Keys> {
    if value.is_null() {
        return None;
    }
    let mut keys = Keys::default();
    for (name, value) in strict.object(value, at, &format!("v1.{structure}")) {
        match name {
            "keys" => {
                let here = at.field(structure, name);
                let items = strict.list(value, &here, "[]v1.Key").iter().enumerate();
                keys.keys = items.map(|(index, item)| key(strict, item, &here.item(index))).collect();
            }
            other => strict.unknown(at, other),
        }
    }
    Some(keys)
}

fn key(strict: &mut Strict, value: &Value, at: &At) -> Key {
    let mut key = Key::default();
    for (name, value) in strict.object(value, at, "v1.Key") {
        let here = at.field("Key", name);
        match name {
            "name" => key.name = strict.text(value, &here),
            "secret" => key.secret = SecretBytes::from(strict.text(value, &here)),
            other => strict.unknown(at, other),
        }
    }
    key
}

fn kms(strict: &mut Strict, value: &Value, at: &At) -> Kms {
    let mut kms = Kms {
        api_version: String::new(),
        name: String::new(),
        cache_size: None,
        endpoint: String::new(),
        timeout: 0,
    };
    let mut timeout = None;
    for (name, value) in strict.object(value, at, "v1.KMSConfiguration") {
        let here = at.field("KMSConfiguration", name);
        match name {
            "apiVersion" => kms.api_version = strict.text(value, &here),
            "name" => kms.name = strict.text(value, &here),
            "cachesize" => kms.cache_size = strict.int32(value, &here),
            "endpoint" => kms.endpoint = strict.text(value, &here),
            "timeout" => match value {
                Value::Null => {}
                Value::String(text) => match go_duration::parse(text) {
                    Ok(nanoseconds) => timeout = Some(nanoseconds),
                    Err(text) => strict.fail(text),
                },
                other => drop(strict.text(other, &here)),
            },
            other => strict.unknown(at, other),
        }
    }
    if kms.api_version.is_empty() {
        "v1".clone_into(&mut kms.api_version);
    }
    if kms.api_version == "v1" {
        kms.cache_size.get_or_insert(DEFAULT_CACHE_SIZE);
    }
    kms.timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    kms
}
