//! Paths and answers of the two KV engines: pure.

use std::collections::BTreeMap;

use coffer_types::SecretBytes;
use coffer_types::time::Timestamp;
use serde_json::Value as Json;

use crate::contract::{Document, ProviderError, RemoteKey, SecretMap, SecretsClient, config};
use crate::json::{self, Numbers};
use crate::property;

/// The most names that one search may list.
pub(super) const MAX_NAMES: usize = 10_000;
/// What of a secret's metadata counts beside its own.
const SYSTEM_METADATA: [&str; 3] = ["created_time", "current_version", "delete_version_after"];

/// Where the value of `key` is read.
pub(crate) fn data_path(mount: Option<&str>, version_two: bool, key: &str) -> String {
    if let Some(mount) = mount {
        let mut rest = key;
        if let Some(cut) = key.strip_prefix(mount).and_then(|rest| rest.strip_prefix('/')) {
            rest = cut;
            if version_two && let Some(cut) = rest.strip_prefix("data/") {
                rest = cut;
            }
        }
        let middle = if version_two { "/data/" } else { "/" };
        return format!("{mount}{middle}{rest}");
    }
    if version_two && !key.contains("/data/") {
        return match key.split_once('/') {
            Some((first, rest)) => format!("{first}/data/{rest}"),
            None => format!("{key}/data"),
        };
    }
    key.to_owned()
}

/// Where the metadata of `key` is read and listed.
pub(crate) fn metadata_path(
    mount: Option<&str>,
    version_two: bool,
    key: &str,
) -> Result<String, ProviderError> {
    match (mount, version_two) {
        (Some(mount), true) => Ok(format!("{mount}/metadata/{key}")),
        (Some(mount), false) => Ok(format!("{mount}/{key}")),
        (None, true) if key.contains("data") => Ok(key.replacen("/data/", "/metadata/", 1)),
        (None, true) => Err(config("provided Path isn't a valid kv v2 path")),
        // Upstream panics here.
        (None, false) => Err(config("path must be set for this operation with kv version v1")),
    }
}

/// Where the versions of the secret at a data path are told; `None` for a path that has none.
pub(crate) fn versions_path(mount: Option<&str>, key: &str) -> Option<String> {
    let data = data_path(mount, true, key);
    // A mount may hold the word itself.
    let (mount, rest) = data.split_at_checked(mount.map_or(0, str::len))?;
    let (before, after) = rest.split_once("/data/")?;
    Some(format!("{mount}{before}/metadata/{after}"))
}

/// The newest version that a secret's metadata tells, unless that one was deleted or destroyed.
pub(super) fn current_version(answer: &SecretBytes, now: Timestamp) -> Result<Option<String>, ProviderError> {
    let answer: Json = serde_json::from_slice(answer.expose()).map_err(|_| unreadable())?;
    let data = &answer["data"];
    let Some(current) = data["current_version"].as_u64() else { return Ok(None) };
    let own = &data["versions"][current.to_string()];
    let deleted = own["deletion_time"].as_str().filter(|time| !time.is_empty()).is_some_and(|time| {
        // A time to come is an expiry (`delete_version_after`).
        time.parse::<Timestamp>().map_or(true, |time| time <= now)
    });
    if current == 0 || deleted || own["destroyed"] == true {
        return Err(ProviderError::NotFound);
    }
    Ok(Some(current.to_string()))
}

/// What was read as one JSON object.
pub(crate) fn data_document(answer: &SecretBytes, version_two: bool) -> Result<Document, ProviderError> {
    let text = std::str::from_utf8(answer.expose()).map_err(|_| unreadable())?;
    let members = json::members(text).ok_or_else(unreadable)?;
    let mut data = json::member(&members, "data").ok_or(ProviderError::NotFound)?.get();
    let inner;
    let mut version = String::new();
    if version_two {
        if data == "null" {
            return Err(ProviderError::NotFound);
        }
        inner = json::members(data).ok_or_else(|| config("failed to find data field"))?;
        data = json::member(&inner, "data").ok_or_else(|| config("failed to find data field"))?.get();
        version = json::member(&inner, "metadata").and_then(|own| own_version(own.get())).unwrap_or_default();
    }
    if data == "null" {
        return Err(ProviderError::NotFound);
    }
    let canonical = if data.starts_with('{') { json::canonical(data, Numbers::Raw, true) } else { None };
    let canonical = canonical.ok_or_else(|| config("failed to unmarshall JSON"))?;
    Ok(Document::new(SecretBytes::from(canonical)).with_version(version))
}

/// The version in the metadata beside a value; a number, whatever else a server may say.
fn own_version(metadata: &str) -> Option<String> {
    let members = json::members(metadata)?;
    let version: u64 = json::member(&members, "version")?.get().parse().ok()?;
    Some(version.to_string())
}

fn unreadable() -> ProviderError {
    ProviderError::Retryable("the server's answer is not JSON".to_owned())
}

/// A secret's metadata as one JSON object of strings.
pub(super) fn metadata_document(answer: &SecretBytes) -> Result<Document, ProviderError> {
    let answer: Json = serde_json::from_slice(answer.expose()).map_err(|_| unreadable())?;
    let data = &answer["data"];
    let mut out: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |key: &str, value: &Json| match value {
        Json::Null => {}
        Json::String(text) => drop(out.insert(key.to_owned(), text.clone())),
        other => drop(out.insert(key.to_owned(), other.to_string())),
    };
    for key in SYSTEM_METADATA {
        add(key, &data[key]);
    }
    for (key, value) in data["custom_metadata"].as_object().into_iter().flatten() {
        add(key, value);
    }
    let text = serde_json::to_string(&out).map_err(|_| unreadable())?;
    Ok(Document::new(SecretBytes::from(text)))
}

/// The whole object, one key of it, or what a path names in it.
pub(crate) fn value(text: &str, property: &str) -> Result<SecretBytes, ProviderError> {
    if property.is_empty() {
        return Ok(SecretBytes::from(text.to_owned()));
    }
    if let Some(found) = exact(text, property)? {
        return Ok(found);
    }
    property::get(text, property)?.map(SecretBytes::from).ok_or_else(|| missing(property))
}

/// One key of the object.
pub(crate) fn exact(text: &str, key: &str) -> Result<Option<SecretBytes>, ProviderError> {
    let members = json::members(text).ok_or_else(|| config("failed to unmarshall JSON"))?;
    Ok(json::member(&members, key).and_then(|value| json::bytes(value.get(), Numbers::Raw)))
}

pub(crate) fn missing(property: &str) -> ProviderError {
    config(format!("cannot find secret data for key: {property:?}"))
}

/// The members of a JSON object; numbers go through a float, as upstream's do.
pub(crate) fn map(whole: SecretBytes) -> Result<SecretMap, ProviderError> {
    let invalid = || config("failed to unmarshall JSON");
    let text = std::str::from_utf8(whole.expose()).map_err(|_| invalid())?;
    let members = json::members(text).ok_or_else(invalid)?;
    let values = members.into_iter().map(|(key, value)| {
        let value = json::bytes(value.get(), Numbers::Float).ok_or_else(invalid)?;
        Ok((key, value))
    });
    values.collect()
}

/// The whole value of each of `keys`, by name. One that is gone in the meantime is left out: a listing still
/// names what was deleted.
pub(crate) async fn all<C: SecretsClient>(
    client: &C,
    keys: impl IntoIterator<Item = (String, String)>,
) -> Result<SecretMap, ProviderError> {
    let mut found = SecretMap::new();
    for (name, key) in keys {
        match client.fetch(&RemoteKey { key, ..RemoteKey::default() }).await {
            Ok(document) => {
                found.insert(name, value(document.text()?, "")?);
            }
            Err(ProviderError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The names in the answer to a LIST.
pub(crate) fn list_keys(answer: &SecretBytes) -> Vec<String> {
    let answer: Json = serde_json::from_slice(answer.expose()).unwrap_or_default();
    let keys = answer["data"]["keys"].as_array();
    keys.into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

/// Whether a secret's own metadata holds all of `tags`.
pub(super) fn has_tags(answer: &SecretBytes, tags: &BTreeMap<String, String>) -> bool {
    let answer: Json = serde_json::from_slice(answer.expose()).unwrap_or_default();
    let own = &answer["data"]["custom_metadata"];
    tags.iter().all(|(key, value)| own[key] == value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretBytes {
        SecretBytes::from(text.to_owned())
    }

    fn shown(bytes: &SecretBytes) -> String {
        String::from_utf8(bytes.expose().to_vec()).unwrap()
    }

    #[test]
    fn data_paths_are_upstreams() {
        let cases = [
            (Some("secret/path"), true, "foo", "secret/path/data/foo"),
            (Some("secret/path"), true, "secret/path/foo", "secret/path/data/foo"),
            (Some("secret/path"), true, "secret/path/data/foo", "secret/path/data/foo"),
            (Some("secret/path"), false, "foo", "secret/path/foo"),
            (Some("secret/path"), false, "secret/path/foo", "secret/path/foo"),
            (None, true, "secret/path/foo", "secret/data/path/foo"),
            (None, true, "secret/path/data/foo", "secret/path/data/foo"),
            (None, true, "foo", "foo/data"),
            (None, false, "secret/foo", "secret/foo"),
        ];
        for (mount, version_two, key, expected) in cases {
            assert_eq!(data_path(mount, version_two, key), expected, "{mount:?} {version_two} {key}");
        }
    }

    #[test]
    fn metadata_paths_are_upstreams() {
        let cases = [
            (Some("kv"), true, "foo", Some("kv/metadata/foo")),
            (Some("kv"), false, "foo", Some("kv/foo")),
            (None, true, "kv/data/foo", Some("kv/metadata/foo")),
            (None, true, "kv/foo", None),
            (None, false, "kv/foo", None),
        ];
        for (mount, version_two, key, expected) in cases {
            assert_eq!(metadata_path(mount, version_two, key).ok().as_deref(), expected, "{mount:?} {key}");
        }
    }

    #[test]
    fn versions_paths_follow_the_data() {
        let cases = [
            (Some("secret"), "foo", Some("secret/metadata/foo")),
            (Some("secret"), "secret/data/foo", Some("secret/metadata/foo")),
            (Some("a/data/b"), "foo", Some("a/data/b/metadata/foo")),
            (Some("secret"), "my/data/foo", Some("secret/metadata/my/data/foo")),
            (None, "secret/foo", Some("secret/metadata/foo")),
            (None, "secret/data/foo", Some("secret/metadata/foo")),
            (None, "foo", None),
        ];
        for (mount, key, expected) in cases {
            assert_eq!(versions_path(mount, key).as_deref(), expected, "{mount:?} {key}");
        }
    }

    #[test]
    fn metadata_tells_the_current_version() {
        let one = |own: &str| format!(r#"{{"data":{{"current_version":3,"versions":{{"3":{own}}}}}}}"#);
        let cases = [
            (one(r#"{"deletion_time":"","destroyed":false}"#), Ok(Some("3"))),
            (
                one(r#"{"deletion_time":"2026-01-02T03:04:05.6Z","destroyed":false}"#),
                Err(ProviderError::NotFound),
            ),
            (one(r#"{"deletion_time":"2026-01-02T03:04:07Z","destroyed":false}"#), Ok(Some("3"))),
            (one(r#"{"deletion_time":"soon","destroyed":false}"#), Err(ProviderError::NotFound)),
            (one(r#"{"deletion_time":"","destroyed":true}"#), Err(ProviderError::NotFound)),
            (r#"{"data":{"current_version":0,"versions":{}}}"#.to_owned(), Err(ProviderError::NotFound)),
            (r#"{"data":{"current_version":4}}"#.to_owned(), Ok(Some("4"))),
            (r#"{"data":{}}"#.to_owned(), Ok(None)),
            ("<html>".to_owned(), Err(unreadable())),
        ];
        let now: Timestamp = "2026-01-02T03:04:06Z".parse().unwrap();
        for (answer, expected) in cases {
            let expected = expected.map(|version| version.map(str::to_owned));
            assert_eq!(current_version(&secret(&answer), now), expected, "{answer}");
        }
    }

    #[test]
    fn answers_become_documents() {
        let cases = [
            (true, r#"{"data":{"data":{"b":1.10,"a":"<"}}}"#, Ok("{\"a\":\"\\u003c\",\"b\":1.10}")),
            (false, r#"{"data":{"a":"x"}}"#, Ok(r#"{"a":"x"}"#)),
            (
                true,
                r#"{"data":{"data":null,"metadata":{"deletion_time":"x"}}}"#,
                Err(ProviderError::NotFound),
            ),
            (true, r#"{"data":null}"#, Err(ProviderError::NotFound)),
            (true, r#"{"data":{"metadata":{}}}"#, Err(config("failed to find data field"))),
            (true, r#"{"data":{"data":[1]}}"#, Err(config("failed to unmarshall JSON"))),
            (true, "<html>", Err(unreadable())),
        ];
        for (version_two, answer, expected) in cases {
            let document = data_document(&secret(answer), version_two);
            assert_eq!(
                document.map(|document| shown(&document.content)),
                expected.map(str::to_owned),
                "{answer}"
            );
        }
    }

    #[test]
    fn the_version_stands_beside_the_value() {
        let cases = [
            (true, r#"{"data":{"data":{"version":"9"},"metadata":{"created_time":"t","version":12}}}"#, "12"),
            (true, r#"{"data":{"data":{},"metadata":{"version":"text"}}}"#, ""),
            (true, r#"{"data":{"data":{},"metadata":{"version":-1}}}"#, ""),
            (true, r#"{"data":{"data":{},"metadata":[1]}}"#, ""),
            (true, r#"{"data":{"data":{}}}"#, ""),
            (false, r#"{"data":{"metadata":{"version":3},"version":4}}"#, ""),
        ];
        for (version_two, answer, expected) in cases {
            let document = data_document(&secret(answer), version_two).unwrap();
            assert_eq!(document.version, expected, "{answer}");
        }
    }

    #[test]
    fn properties_are_read() {
        let text = r#"{"a.b":"dotted","a":{"b":"nested"},"n":9007199254740993,"s":"x","z":null}"#;
        let cases = [
            ("a.b", Ok("dotted")),
            ("a", Ok(r#"{"b":"nested"}"#)),
            ("n", Ok("9007199254740993")),
            ("s", Ok("x")),
            ("z", Ok("")),
            ("a.c", Err(missing("a.c"))),
        ];
        for (property, expected) in cases {
            assert_eq!(
                value(text, property).map(|value| shown(&value)),
                expected.map(str::to_owned),
                "{property}"
            );
        }
        assert_eq!(missing("x").to_string(), "cannot find secret data for key: \"x\"");
        let map = map(secret(text)).unwrap();
        assert_eq!(shown(&map["n"]), "9007199254740992", "upstream's floats");
    }

    #[test]
    fn metadata_is_text() {
        let answer =
            r#"{"data":{"created_time":"t","current_version":3,"custom_metadata":{"owner":"me"},"x":1}}"#;
        let document = metadata_document(&secret(answer)).unwrap();
        assert_eq!(shown(&document.content), r#"{"created_time":"t","current_version":"3","owner":"me"}"#);
        let tags = BTreeMap::from([("owner".to_owned(), "me".to_owned())]);
        assert!(has_tags(&secret(answer), &tags));
        assert!(!has_tags(&secret("{}"), &tags));
    }
}
