//! Secrets as the operator reads and writes them: values have their own type from the first byte.

use std::collections::BTreeMap;

use base64::Engine as _;
use coffer_providers::contract::SecretMap;
use coffer_types::SecretBytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A whole Secret. No `Debug`.
#[derive(Clone, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Secret {
    #[serde(default = "api_version")]
    pub(crate) api_version: String,
    #[serde(default = "kind")]
    pub(crate) kind: String,
    pub(crate) metadata: ObjectMeta,
    #[serde(
        default,
        serialize_with = "encode",
        deserialize_with = "decode",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(crate) data: SecretMap,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) secret_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) immutable: Option<bool>,
}

fn api_version() -> String {
    "v1".to_owned()
}

fn kind() -> String {
    "Secret".to_owned()
}

impl Secret {
    /// An empty one.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        Self {
            api_version: api_version(),
            kind: kind(),
            metadata,
            data: SecretMap::new(),
            secret_type: None,
            immutable: None,
        }
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

fn encode<S: Serializer>(data: &SecretMap, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        data.iter()
            .map(|(key, value)| (key, base64::engine::general_purpose::STANDARD.encode(value.expose()))),
    )
}

fn decode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretMap, D::Error> {
    let texts: Option<BTreeMap<String, Option<String>>> = Option::deserialize(deserializer)?;
    let entries = texts.unwrap_or_default().into_iter();
    entries
        .map(|(key, text)| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text.unwrap_or_default());
            // The error of the decoder names a byte of the value.
            let bytes = bytes.map_err(|_| serde::de::Error::custom("a value is not base64"))?;
            Ok((key, SecretBytes::new(bytes)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_the_round_trip() {
        let text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"AP8K"},"type":"Opaque"}"#;
        let secret: Secret = serde_json::from_str(text).unwrap();
        assert_eq!(secret.data["a"].expose(), [0, 255, 10]);
        assert_eq!(serde_json::to_string(&secret).unwrap(), text);
        for text in [r#"{"metadata":{}}"#, r#"{"metadata":{},"data":null}"#] {
            assert!(serde_json::from_str::<Secret>(text).unwrap().data.is_empty());
        }
        let error = serde_json::from_str::<Secret>(r#"{"metadata":{},"data":{"a":"?!"}}"#).err().unwrap();
        assert!(error.to_string().starts_with("a value is not base64"), "{error}");
    }
}
