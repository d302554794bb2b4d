//! What the node says about who holds which Secret: for `coffer trace`, in the pod's annotations.
//!
//! No value and no digest of one leaves the node: only names, resource versions and states.

use serde::{Deserialize, Serialize};

/// The annotation on a pod, set by its node, that holds a [`Report`] as JSON.
pub const ANNOTATION: &str = "node.coffer.dev/secrets";

/// The type of the pod condition that says where the volumes are.
pub const CONDITION: &str = "coffer.dev/SecretsMaterialized";

/// What one pod holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// One entry for each use of a Secret, ordered.
    pub consumers: Vec<Consumer>,
}

/// One use of a Secret by a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// The Secret's name.
    pub secret: String,
    /// How it is used.
    pub kind: ConsumerKind,
    /// The volume, the container (environment and subPath), or "" (pull credential).
    pub place: String,
    /// For a subPath mount: the volume that it is of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub volume: String,
    /// For a subPath mount: the `subPath`, or the `subPathExpr` as it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sub_path: String,
    /// Where the files are on the node, for a volume.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The `resourceVersion` of the Secret whose content is held; "" when none is.
    pub resource_version: String,
    /// Whether what is held equals the newest that the node knows.
    pub state: ConsumerState,
    /// Why it is not current, without any value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Consumer {
    /// What reports are ordered by.
    pub(crate) fn order(&self) -> (&str, &str, &str, &str) {
        (&self.secret, &self.place, &self.volume, &self.sub_path)
    }
}

/// How a Secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConsumerKind {
    /// Files of a volume, which follow every change.
    Volume,
    /// A part of a volume that a container mounts by `subPath`: fixed when the container started.
    SubPath,
    /// Environment variables of a container, fixed when it started.
    Environment,
    /// A pull credential, read at each pull.
    PullCredential,
}

impl ConsumerKind {
    /// Whether a change of the Secret reaches it without a restart.
    pub fn follows_changes(self) -> bool {
        match self {
            Self::Volume | Self::PullCredential => true,
            Self::SubPath | Self::Environment => false,
        }
    }
}

/// Whether it is the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConsumerState {
    /// The newest content is held.
    Current,
    /// Older content is held.
    Stale,
    /// Nothing is held, because it failed.
    Missing,
}
