//! Which version of each remote value a refresh used, as an annotation of the ExternalSecret: pure.
//!
//! A stock operator does not write it. So that it changes nothing else, it is no
//! part of the annotations that are hashed, compared or copied into the Secret.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use coffer_providers::contract::RemoteKey;
use serde_json::{Value as Json, json};

/// A JSON object of remote keys and their versions.
pub(crate) const ANNOTATION: &str = "coffer.dev/source-versions";
/// The longest value; of the 256 KiB that an object's annotations may hold the rest is left to others.
const MAX_BYTES: usize = 64 * 1024;

/// What one refresh read.
#[derive(Debug, Default)]
pub(crate) struct SourceVersions(BTreeMap<String, Seen>);

#[derive(Debug)]
struct Seen {
    /// Number of the connection that it came over.
    connection: u64,
    /// Whether the specification names the version.
    pinned: bool,
    /// `None` when two stores have different versions under this key.
    version: Option<String>,
}

impl SourceVersions {
    /// One read. What is not pinned counts before what is, since the specification tells the pins; of several
    /// reads the last one counts.
    pub(crate) fn add(&mut self, connection: u64, remote: &RemoteKey, version: &str) {
        let pinned = !remote.version.is_empty();
        let new = Seen { connection, pinned, version: Some(version.to_owned()) };
        let mut entry = match self.0.entry(remote.key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(new);
                return;
            }
            Entry::Occupied(entry) => entry,
        };
        let old = entry.get_mut();
        if old.pinned != pinned {
            if old.pinned {
                *old = new;
            }
        } else if old.connection != connection && old.version != new.version {
            old.version = None;
        } else if old.version.is_some() && !version.is_empty() {
            *old = new;
        }
    }

    /// The annotation's value; `None` when no store told a version, or more than fits.
    pub(crate) fn annotation(&self) -> Option<String> {
        let known: BTreeMap<&str, &str> = self
            .0
            .iter()
            .filter_map(|(key, seen)| Some((key.as_str(), seen.version.as_deref()?)))
            .filter(|(_, version)| !version.is_empty())
            .collect();
        if known.is_empty() {
            return None;
        }
        serde_json::to_string(&known).ok().filter(|text| text.len() <= MAX_BYTES)
    }
}

/// The merge patch that makes the annotation `wanted`, or `None` when it is that already.
pub(crate) fn patch(uid: &str, current: Option<&str>, wanted: Option<&str>) -> Option<Json> {
    // The UID makes sure that an object of the same name that was made since is not touched.
    (current != wanted).then(|| json!({"metadata": {"uid": uid, "annotations": {ANNOTATION: wanted}}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded() {
        // Connection, key, pinned version, version that the store reported.
        type Read = (u64, &'static str, &'static str, &'static str);
        let cases: [(&str, &[Read], Option<&str>); 12] = [
            ("nothing", &[], None),
            ("a store without versions", &[(1, "a", "", "")], None),
            ("sorted", &[(1, "b", "", "2"), (1, "a", "", "1")], Some(r#"{"a":"1","b":"2"}"#)),
            ("some without", &[(1, "b", "", ""), (1, "a", "", "1")], Some(r#"{"a":"1"}"#)),
            ("the last one", &[(1, "a", "", "1"), (1, "a", "", "2")], Some(r#"{"a":"2"}"#)),
            ("then without", &[(1, "a", "", "1"), (1, "a", "", "")], Some(r#"{"a":"1"}"#)),
            ("pinned alone", &[(1, "a", "v1", "v1")], Some(r#"{"a":"v1"}"#)),
            ("pinned after", &[(1, "a", "", "2"), (1, "a", "1", "1")], Some(r#"{"a":"2"}"#)),
            ("pinned before", &[(1, "a", "1", "1"), (1, "a", "", "2")], Some(r#"{"a":"2"}"#)),
            ("two stores agree", &[(1, "a", "", "2"), (2, "a", "", "2")], Some(r#"{"a":"2"}"#)),
            ("two stores differ", &[(1, "a", "", "1"), (2, "a", "", "2"), (1, "a", "", "1")], None),
            ("one store has none", &[(1, "a", "", "1"), (2, "a", "", "")], None),
        ];
        for (name, reads, expected) in cases {
            let mut versions = SourceVersions::default();
            for (connection, key, pin, version) in reads {
                let remote =
                    RemoteKey { key: (*key).to_owned(), version: (*pin).to_owned(), metadata: false };
                versions.add(*connection, &remote, version);
            }
            assert_eq!(versions.annotation().as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn more_than_fits_is_left_out() {
        let mut versions = SourceVersions::default();
        let remote = RemoteKey { key: "k".repeat(MAX_BYTES), ..RemoteKey::default() };
        versions.add(1, &remote, "1");
        assert_eq!(versions.annotation(), None);
    }

    #[test]
    fn o5_it_is_written_only_when_it_differs() {
        let set = |value: Json| Some(json!({"metadata": {"uid": "u", "annotations": {ANNOTATION: value}}}));
        let cases = [
            (None, None, None),
            (Some("x"), Some("x"), None),
            (None, Some("x"), set("x".into())),
            (Some("x"), Some("y"), set("y".into())),
            (Some("x"), None, set(Json::Null)),
        ];
        for (current, wanted, expected) in cases {
            assert_eq!(patch("u", current, wanted), expected, "{current:?} {wanted:?}");
        }
    }
}
