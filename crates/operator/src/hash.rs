//! The hashes and names that External Secrets writes into objects.
//!
//! They are SHA3-224 over what Go's `%+v` prints. The text goes into the hash
//! piece by piece, so that no second copy of a secret is made.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use coffer_providers::contract::SecretMap;
use sha3::{Digest, Sha3_224};

/// The largest field manager.
const MANAGER_LIMIT: usize = 63;
const MANAGER_PREFIX: &str = "externalsecrets.external-secrets.io/";

/// The data-hash annotation's value for the complete data of a Secret.
pub(crate) fn data_hash(data: &SecretMap) -> String {
    let mut hash = Sha3_224::new();
    hash.update(b"map[");
    for (index, (key, value)) in data.iter().enumerate() {
        if 0 < index {
            hash.update(b" ");
        }
        hash.update(key.as_bytes());
        hash.update(b":[");
        for (index, byte) in value.expose().iter().enumerate() {
            if 0 < index {
                hash.update(b" ");
            }
            hash.update(DECIMAL[usize::from(*byte)].as_bytes());
        }
        hash.update(b"]");
    }
    hash.update(b"]");
    hex(&hash.finalize())
}

/// The hash of labels and annotations.
pub(crate) fn metadata_hash(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> String {
    text_hash(&format!("{{annotations:{} labels:{}}}", go_map(annotations), go_map(labels)))
}

/// `status.syncedResourceVersion`.
pub(crate) fn synced_version(
    generation: i64,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> String {
    format!("{generation}-{}", metadata_hash(labels, annotations))
}

/// The owner label's value.
pub(crate) fn owner_label(namespace: &str, name: &str) -> String {
    text_hash(&format!("{namespace}/{name}"))
}

/// The field manager of an ExternalSecret's writes; hashed when it would be too long.
pub(crate) fn field_manager(name: &str) -> String {
    let plain = format!("{MANAGER_PREFIX}{name}");
    if plain.len() <= MANAGER_LIMIT { plain } else { format!("{MANAGER_PREFIX}sha3/{}", text_hash(name)) }
}

fn text_hash(text: &str) -> String {
    hex(&Sha3_224::digest(text.as_bytes()))
}

fn go_map(map: &BTreeMap<String, String>) -> String {
    let entries: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("map[{}]", entries.join(" "))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

static DECIMAL: std::sync::LazyLock<[String; 256]> =
    std::sync::LazyLock::new(|| std::array::from_fn(|byte| byte.to_string()));

#[cfg(test)]
mod tests {
    use coffer_types::SecretBytes;

    use super::*;

    fn data(entries: &[(&str, &[u8])]) -> SecretMap {
        entries.iter().map(|(key, value)| ((*key).to_owned(), SecretBytes::new(value.to_vec()))).collect()
    }

    fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn data_hashes_are_upstreams() {
        let cases: [(SecretMap, &str); 4] = [
            (
                data(&[("foo", b"value1"), ("bar", b"value2")]),
                "1bed8bcbcb4547ffe19a19cd47d9078e84aa6598266d86b99f992d64",
            ),
            (data(&[]), "74a974446e359fb3e6baff9bd0058950e6edd0f040888d9989b0a11b"),
            (data(&[("a", b"")]), "b4267d3031c382774d3148a47147cc308a0e534ac8381b5d58565df8"),
            (data(&[("key", &[0, 255, 10])]), "d2049faa18e7604b3a729fdfefbb296f0680f22f0b3ed942e36e9488"),
        ];
        for (data, expected) in cases {
            assert_eq!(data_hash(&data), expected);
        }
        assert_eq!(text_hash("<nil>"), "c461202a18e99215f121936fb2452e03843828e448a00a53f285a6fc");
        assert_eq!(text_hash("hello there"), "f78681ec611ebaeea0689bff6c7812a83ff98a7faba986d9af76c999");
    }

    #[test]
    fn metadata_hashes_are_upstreams() {
        let cases = [
            (texts(&[]), texts(&[]), "f47fe3c0b255b6dd8047cdffa772587bb829efe7a1cb70febeda2eb2"),
            (
                texts(&[]),
                texts(&[("foo", "bar")]),
                "69a7d6c99695c5308a8074c7eff995659652f98af7b21de0719c1446",
            ),
            (
                texts(&[("app", "x")]),
                texts(&[("a", "1"), ("b", "2")]),
                "7a9d14fc4c98c8b2363ada4bb72d815002f918edc3da4746679c79ee",
            ),
        ];
        for (labels, annotations, expected) in cases {
            assert_eq!(metadata_hash(&labels, &annotations), expected);
        }
        let synced = synced_version(3, &texts(&[]), &texts(&[]));
        assert_eq!(synced, "3-f47fe3c0b255b6dd8047cdffa772587bb829efe7a1cb70febeda2eb2");
    }

    #[test]
    fn names_are_upstreams() {
        assert_eq!(
            owner_label("default", "test-es"),
            "a8e09351ea392b727f69f63683b28619fbed1174f572e728706a9ea8"
        );
        let (fits, long) = ("a".repeat(27), "a".repeat(28));
        assert_eq!(field_manager(&fits), format!("externalsecrets.external-secrets.io/{fits}"));
        assert_eq!(
            field_manager(&long),
            "externalsecrets.external-secrets.io/sha3/52a6f48b37cd3535ef771a530c08d9cc4b78350ccdd33f2405e22ebb"
        );
    }
}
