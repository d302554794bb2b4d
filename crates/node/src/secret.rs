//! A Secret as the node holds it.

use std::collections::BTreeMap;
use std::fmt;

use coffer_types::SecretBytes;
use k8s_openapi::api::core::v1::Secret;

/// The parts of a Secret that a node needs; its values are wiped when the last user drops them.
#[derive(Clone)]
pub struct SecretObject {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
    /// `type`.
    pub secret_type: String,
    /// `immutable`.
    pub immutable: bool,
    /// `data`.
    pub data: BTreeMap<String, SecretBytes>,
}

impl From<Secret> for SecretObject {
    fn from(secret: Secret) -> Self {
        Self {
            namespace: secret.metadata.namespace.unwrap_or_default(),
            name: secret.metadata.name.unwrap_or_default(),
            uid: secret.metadata.uid.unwrap_or_default(),
            resource_version: secret.metadata.resource_version.unwrap_or_default(),
            secret_type: secret.type_.unwrap_or_default(),
            immutable: secret.immutable.unwrap_or_default(),
            // Each value moves: no copy stays behind unwiped.
            data: secret
                .data
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key, SecretBytes::new(value.0)))
                .collect(),
        }
    }
}

impl fmt::Debug for SecretObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SecretObject")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}
