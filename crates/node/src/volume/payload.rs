//! What files a Secret becomes.

use std::collections::BTreeMap;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{KeyToPath, SecretVolumeSource};

use crate::data_object::DataObject;

/// One file of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileProjection {
    /// Content.
    pub content: SecretBytes,
    /// Permission bits.
    pub mode: u32,
    /// The user it belongs to, when that is not the node's.
    pub owner: Option<u32>,
}

/// The files of a volume by relative path.
pub type Payload = BTreeMap<String, FileProjection>;

/// The mode of a file when neither the volume nor the item names one. The API server
/// defaults `defaultMode`, so this shows only for hand-made pods.
const NO_DEFAULT_MODE: &str = "no defaultMode used, not even the default value for it";

/// Why a Secret cannot become the files that the volume asks for. Texts are the kubelet's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// `defaultMode` is unset.
    #[error("{NO_DEFAULT_MODE}")]
    NoDefaultMode,
    /// An item names a key that the Secret lacks.
    #[error("references non-existent secret key: {0}")]
    MissingKey(String),
    /// An item names a key that the ConfigMap lacks.
    #[error("configmap references non-existent config key: {0}")]
    MissingConfigKey(String),
}

/// The files of a Secret volume; an absent optional Secret is `None` and gives none.
pub fn secret_payload(
    source: &SecretVolumeSource,
    secret: Option<&DataObject>,
) -> Result<Payload, PayloadError> {
    let default_mode = source.default_mode.ok_or(PayloadError::NoDefaultMode)?;
    let items = source.items.as_deref().unwrap_or_default();
    data_payload(secret, items, default_mode, source.optional == Some(true), PayloadError::MissingKey)
}

/// The files of the keys that `items` name, or of all keys.
pub(super) fn data_payload(
    object: Option<&DataObject>,
    items: &[KeyToPath],
    default_mode: i32,
    optional: bool,
    missing: fn(String) -> PayloadError,
) -> Result<Payload, PayloadError> {
    let mut payload = Payload::new();
    let Some(object) = object else { return Ok(payload) };
    if items.is_empty() {
        for (key, value) in object.data.iter().chain(&object.binary_data) {
            payload.insert(key.clone(), file(value, default_mode));
        }
        return Ok(payload);
    }
    for KeyToPath { key, path, mode, .. } in items {
        match object.data.get(key).or_else(|| object.binary_data.get(key)) {
            Some(value) => {
                // Two items of one path: the last wins.
                payload.insert(path.clone(), file(value, mode.unwrap_or(default_mode)));
            }
            None if optional => {}
            None => return Err(missing(key.clone())),
        }
    }
    Ok(payload)
}

pub(super) fn file(content: &SecretBytes, mode: i32) -> FileProjection {
    // The API allows 0 to 0777 only.
    FileProjection { content: content.clone(), mode: u32::try_from(mode).unwrap_or(0) & 0o777, owner: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secret() -> DataObject {
        DataObject {
            namespace: "ns".into(),
            name: "db".into(),
            uid: "u".into(),
            resource_version: "1".into(),
            immutable: false,
            binary_data: BTreeMap::new(),
            seen: std::time::Duration::ZERO,
            data: [("a", "1"), ("b", "2")]
                .into_iter()
                .map(|(key, value)| (key.to_owned(), SecretBytes::from(value.to_owned())))
                .collect(),
        }
    }

    fn check(source: serde_json::Value, expected: Result<&[(&str, &str, u32)], &str>) {
        let source: SecretVolumeSource = serde_json::from_value(source).expect("a volume source");
        let found = secret_payload(&source, Some(&secret()));
        match (found, expected) {
            (Ok(payload), Ok(files)) => {
                let found: Vec<_> = payload
                    .iter()
                    .map(|(path, file)| {
                        (path.as_str(), std::str::from_utf8(file.content.expose()).expect("text"), file.mode)
                    })
                    .collect();
                assert_eq!(found, files);
            }
            (Err(error), Err(text)) => assert_eq!(error.to_string(), text),
            (found, expected) => panic!("found {:?}, expected {expected:?}", found.map(|files| files.len())),
        }
    }

    #[test]
    fn payload_rules_of_the_kubelet() {
        check(json!({"defaultMode": 420}), Ok(&[("a", "1", 0o644), ("b", "2", 0o644)]));
        check(json!({}), Err("no defaultMode used, not even the default value for it"));
        check(
            json!({"defaultMode": 256, "items": [{"key": "b", "path": "x/y"}]}),
            Ok(&[("x/y", "2", 0o400)]),
        );
        check(
            json!({"defaultMode": 420, "items": [{"key": "a", "path": "p", "mode": 384}]}),
            Ok(&[("p", "1", 0o600)]),
        );
        check(
            json!({"defaultMode": 420, "items": [{"key": "nope", "path": "p"}]}),
            Err("references non-existent secret key: nope"),
        );
        check(
            json!({"defaultMode": 420, "optional": true, "items": [{"key": "nope", "path": "p"}, {"key": "a", "path": "q"}]}),
            Ok(&[("q", "1", 0o644)]),
        );
        check(
            json!({"defaultMode": 420, "items": [{"key": "a", "path": "p"}, {"key": "b", "path": "p"}]}),
            Ok(&[("p", "2", 0o644)]),
        );
    }

    #[test]
    fn an_absent_optional_secret_is_an_empty_volume() {
        let source: SecretVolumeSource =
            serde_json::from_value(json!({"defaultMode": 420, "optional": true})).expect("a volume source");
        assert!(secret_payload(&source, None).expect("a payload").is_empty());
    }
}
