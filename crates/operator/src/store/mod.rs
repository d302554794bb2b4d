//! SecretStore and ClusterSecretStore.

pub(crate) mod controller;
pub(crate) mod manager;
pub(crate) mod spec;

use std::fmt;

/// Which store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct StoreKey {
    /// Whether it is a ClusterSecretStore.
    pub(crate) cluster: bool,
    /// Its namespace; "" for a cluster store.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl StoreKey {
    /// Its kind.
    pub(crate) fn kind(&self) -> &'static str {
        if self.cluster { "ClusterSecretStore" } else { "SecretStore" }
    }
}

impl fmt::Display for StoreKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cluster {
            write!(formatter, "{}/{}", self.kind(), self.name)
        } else {
            write!(formatter, "{}/{}/{}", self.kind(), self.namespace, self.name)
        }
    }
}
