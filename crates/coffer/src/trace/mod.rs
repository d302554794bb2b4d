//! `coffer trace`: the whole life of one Secret.
//!
//! [`gather`] reads over the Kubernetes API, and [`source`] asks the external store; [`judge`] is pure and finds what is broken;
//! [`table`] prints for people.

pub(crate) mod gather;
pub(crate) mod judge;
pub(crate) mod source;
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
    /// How often it is refreshed, as the ExternalSecret says it.
    pub(crate) refresh_interval: String,
    /// Why the external store was not asked which versions it holds now, or "" when it was.
    pub(crate) not_asked: String,
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
    /// Version that the store holds now, or "" when it was not asked or tells none.
    pub(crate) current: String,
    /// Whether the store holds nothing there any more.
    pub(crate) gone: bool,
    /// `KIND/NAME` of the store that it comes from.
    pub(crate) store: String,
    /// What the store is asked for, or "" when the version is pinned or found.
    #[serde(skip)]
    pub(crate) asked_for: String,
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
    /// `file`, `subPath`, `environment`, `pull credential`, or `pod` when its node does not report.
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
    /// The pod's node reports no more: the message says why.
    Silent,
    /// The pod's node does not report.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(value: &serde_json::Value, into: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Object(object) => {
                for (key, below) in object {
                    into.insert(key.clone());
                    keys(below, into);
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }

    /// What programs read is an interface: each field is documented, and nothing is documented that is not there.
    #[test]
    fn every_field_of_the_json_output_is_documented() {
        let text = || "text".to_owned();
        let life = |at_rest| Life {
            namespace: text(),
            name: text(),
            secret: Some(SecretFacts {
                secret_type: text(),
                resource_version: text(),
                keys: vec![text()],
                immutable: false,
                deleting: false,
            }),
            source: Some(Source {
                external_secret: text(),
                store: text(),
                provider: text(),
                entries: vec![Entry {
                    key: text(),
                    remote: text(),
                    version: text(),
                    current: text(),
                    gone: false,
                    store: text(),
                    asked_for: text(),
                }],
                ready: true,
                reason: text(),
                message: text(),
                last_sync: text(),
                outdated: false,
                refresh_interval: text(),
                not_asked: text(),
            }),
            at_rest,
            consumers: vec![Consumer {
                pod: text(),
                node: text(),
                kind: text(),
                place: text(),
                path: text(),
                resource_version: text(),
                state: State::Current,
                message: text(),
            }],
            broken: vec![text()],
        };
        let mut found = std::collections::BTreeSet::new();
        for at_rest in [
            AtRest::Encrypted { provider: text(), key: text(), stale: false, readable: true },
            AtRest::Unknown { why: text() },
        ] {
            keys(&serde_json::to_value(life(at_rest)).expect("JSON"), &mut found);
        }
        let document = include_str!("../../../../docs/reference/trace.md");
        let documented = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split('`').next())
            .map(|path| path.rsplit(['.', ']']).next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(found, documented);
    }
}
