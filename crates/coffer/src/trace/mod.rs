//! `coffer trace`: the whole life of one Secret.
//!
//! [`gather`] reads over the Kubernetes API; [`judge`] is pure and finds what is broken;
//! [`table`] prints for people.

pub(crate) mod gather;
pub(crate) mod judge;
pub(crate) mod table;

use serde::Serialize;

/// Everything that is known of one Secret. No value, and no digest of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Life {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `None` when it does not exist.
    pub(crate) secret: Option<SecretFacts>,
    /// `None` when nothing outside owns the value.
    pub(crate) source: Option<Source>,
    pub(crate) at_rest: AtRest,
    pub(crate) consumers: Vec<Consumer>,
    /// What is broken, first link first.
    pub(crate) broken: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretFacts {
    pub(crate) secret_type: String,
    pub(crate) resource_version: String,
    pub(crate) keys: Vec<String>,
    pub(crate) immutable: bool,
    pub(crate) deleting: bool,
}

/// Where the value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    pub(crate) external_secret: String,
    /// `SecretStore/NAME` or `ClusterSecretStore/NAME`.
    pub(crate) store: String,
    /// Provider and address.
    pub(crate) provider: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) ready: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// RFC 3339, or "" when never.
    pub(crate) last_sync: String,
    /// Whether the ExternalSecret was changed after its last sync.
    pub(crate) outdated: bool,
}

/// One remote value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// Key of the Secret, or "*" when the remote side decides.
    pub(crate) key: String,
    /// `path` or `path#property`.
    pub(crate) remote: String,
    /// Version at the last sync, or "".
    pub(crate) version: String,
}

/// How the stored copy is encrypted.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub(crate) enum AtRest {
    /// By a provider with a key.
    Encrypted {
        provider: String,
        key: String,
        /// Whether a write would use another one now.
        stale: bool,
        /// Whether the server holds a key that opens it.
        readable: bool,
    },
    /// Not at all.
    Plaintext,
    /// The server does not say; why.
    Unknown { why: String },
}

/// Who uses it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Consumer {
    pub(crate) pod: String,
    pub(crate) node: String,
    /// `file`, `environment`, `pull credential`.
    pub(crate) kind: String,
    pub(crate) place: String,
    /// Where the files are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) path: String,
    pub(crate) resource_version: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// What a consumer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    Current,
    Stale,
    Missing,
    /// The pod's node does not report.
    Unknown,
}
