//! A Secret or a ConfigMap as the node holds it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The parts that a node needs; values are wiped when the last user drops them.
#[derive(Clone)]
pub struct DataObject {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `immutable`.
    pub immutable: bool,
    /// `data`.
    pub data: BTreeMap<String, SecretBytes>,
    /// `binaryData` of a ConfigMap: files, but no variables.
    pub binary_data: BTreeMap<String, SecretBytes>,
    /// When the node learned of this version, in monotonic time.
    pub seen: Duration,
}

impl DataObject {
    /// From a Secret. Each value moves: no copy stays behind unwiped.
    pub fn from_secret(secret: Secret, seen: Duration) -> Self {
        let data = secret.data.unwrap_or_default();
        let data = data.into_iter().map(|(key, value)| (key, SecretBytes::new(value.0))).collect();
        Self::new(secret.metadata, secret.immutable, data, BTreeMap::new(), seen)
    }

    /// From a ConfigMap.
    pub fn from_config_map(map: ConfigMap, seen: Duration) -> Self {
        let data = map.data.unwrap_or_default();
        let data = data.into_iter().map(|(key, value)| (key, SecretBytes::from(value))).collect();
        let binary = map.binary_data.unwrap_or_default();
        let binary = binary.into_iter().map(|(key, value)| (key, SecretBytes::new(value.0))).collect();
        Self::new(map.metadata, map.immutable, data, binary, seen)
    }

    fn new(
        metadata: ObjectMeta,
        immutable: Option<bool>,
        data: BTreeMap<String, SecretBytes>,
        binary_data: BTreeMap<String, SecretBytes>,
        seen: Duration,
    ) -> Self {
        Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            immutable: immutable.unwrap_or_default(),
            data,
            binary_data,
            seen,
        }
    }
}

impl fmt::Debug for DataObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DataObject")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}
