//! `fake`: values that stand in the store's own specification.
//!
//! Absent (thin): pushed values.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::SecretBytes;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::contract::{
    Calls, Capabilities, Context, Document, Find, Maintenance, Provider, ProviderError, RemoteKey, RemoteRef,
    Scope, SecretMap, SecretsClient, Validation,
};
use crate::{contract, json, property, strategies};

/// The provider.
#[derive(Debug, Default)]
pub struct Fake;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    data: Vec<Entry>,
    validation_result: i64,
}

/// No `Debug`: the value is a secret.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    key: String,
    value: String,
    version: String,
}

#[async_trait]
impl Provider for Fake {
    fn key(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ReadWrite
    }

    fn maintenance(&self) -> Maintenance {
        Maintenance::NotMaintained
    }

    fn check(&self, spec: &Json, _: &Scope) -> Result<Vec<String>, ProviderError> {
        let spec = parse(spec)?;
        for (index, entry) in spec.data.iter().enumerate() {
            if entry.key.is_empty() {
                return Err(ProviderError::Config(format!("key must be set in data {index}")));
            }
            if entry.value.is_empty() {
                return Err(ProviderError::Config(format!("at least one value must be set in data {index}")));
            }
        }
        Ok(Vec::new())
    }

    async fn connect(
        &self,
        spec: &Json,
        _: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError> {
        let spec = parse(spec)?;
        let entries = spec.data.into_iter().map(|entry| Stored {
            key: entry.key,
            version: entry.version,
            value: SecretBytes::from(entry.value),
        });
        Ok(Arc::new(Client {
            entries: entries.collect(),
            validation: spec.validation_result,
            calls: context.calls.clone(),
        }))
    }
}

fn parse(spec: &Json) -> Result<Spec, ProviderError> {
    contract::parse(spec, "missing store provider fake")
}

struct Stored {
    key: String,
    version: String,
    value: SecretBytes,
}

struct Client {
    entries: Vec<Stored>,
    validation: i64,
    calls: Arc<dyn Calls>,
}

impl Client {
    fn observed<T>(&self, call: &'static str, result: Result<T, ProviderError>) -> Result<T, ProviderError> {
        self.calls.observe("Fake", call, result.is_ok());
        result
    }
}

#[async_trait]
impl SecretsClient for Client {
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError> {
        // Of equal entries the last one counts, as in upstream's map.
        let entry = self
            .entries
            .iter()
            .rev()
            .find(|entry| entry.key == remote.key && entry.version == remote.version);
        let found = entry
            .map(|entry| Document::new(entry.value.clone()).with_version(entry.version.as_str()))
            .ok_or(ProviderError::NotFound);
        self.observed("GetSecret", found)
    }

    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        if remote.property.is_empty() {
            return Ok((*document.content).clone());
        }
        let found = property::get(document.text()?, &remote.property)?;
        found.map(SecretBytes::from).ok_or(ProviderError::NotFound)
    }

    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        let whole = self.value(document, remote)?;
        let text = std::str::from_utf8(whole.expose()).unwrap_or_default();
        let members = json::members(text).ok_or_else(|| {
            ProviderError::Config("unable to unmarshal secret: invalid JSON format".to_owned())
        })?;
        Ok(members.into_iter().map(|(key, value)| (key, json::raw_bytes(value))).collect())
    }

    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        let found = self.find(find);
        self.observed("GetAllSecrets", found)
    }

    async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let versions = self.entries.iter().filter(|entry| entry.key == key).map(|entry| &entry.version);
        let newest = versions.max().ok_or(ProviderError::NotFound);
        let newest = newest.map(|version| (!version.is_empty()).then(|| version.clone()));
        self.observed("GetSecret", newest)
    }

    async fn validate(&self) -> Result<Validation, ProviderError> {
        match self.validation {
            0 => Ok(Validation::Ready),
            1 => Ok(Validation::Undetermined("unable to validate".to_owned())),
            _ => Err(ProviderError::Config("unable to validate".to_owned())),
        }
    }

    async fn close(&self) {}
}

impl Client {
    fn find(&self, find: &Find) -> Result<SecretMap, ProviderError> {
        let Some(pattern) = &find.name else {
            return Err(ProviderError::Config(
                "unsupported find operator: only name is supported".to_owned(),
            ));
        };
        let pattern = strategies::compile_name(pattern)?;
        let mut newest: std::collections::BTreeMap<&str, &Stored> = std::collections::BTreeMap::new();
        for entry in self.entries.iter().filter(|entry| pattern.is_match(&entry.key)) {
            let kept = newest.entry(&entry.key).or_insert(entry);
            if kept.version <= entry.version {
                *kept = entry;
            }
        }
        let map = newest.into_iter().map(|(key, entry)| (key.to_owned(), entry.value.clone())).collect();
        strategies::convert_keys(&find.conversion, map).map_err(ProviderError::Config)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Calls for Count {
        fn observe(&self, _: &'static str, _: &'static str, _: bool) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn client(calls: Arc<Count>) -> Client {
        let stored = |key: &str, version: &str, value: &str| Stored {
            key: key.to_owned(),
            version: version.to_owned(),
            value: SecretBytes::from(value.to_owned()),
        };
        let entries = vec![
            stored("/foo", "", "bar"),
            stored("/foo", "v2", "newer"),
            stored("/json", "", r#"{"a":"x","n": 1.50,"o":{"k": [1]}}"#),
            stored("/json", "", r#"{"a":"y","n": 1.50,"o":{"k": [1]}}"#),
        ];
        Client { entries, validation: 0, calls }
    }

    fn reference(key: &str, version: &str, property: &str) -> RemoteRef {
        let remote = RemoteKey { key: key.to_owned(), version: version.to_owned(), metadata: false };
        RemoteRef { remote, property: property.to_owned() }
    }

    fn shown(bytes: &SecretBytes) -> String {
        String::from_utf8(bytes.expose().to_vec()).unwrap()
    }

    #[test]
    fn a_specification_of_another_form_is_refused() {
        let error = parse(&serde_json::json!({"data": 1})).err();
        assert_eq!(error, Some(ProviderError::Config("missing store provider fake".to_owned())));
    }

    #[tokio::test]
    async fn values() {
        let calls = Arc::new(Count::default());
        let client = client(calls.clone());
        let cases = [
            ("/foo", "", "", Ok("bar")),
            ("/foo", "v2", "", Ok("newer")),
            ("/foo", "v3", "", Err(ProviderError::NotFound)),
            ("/absent", "", "", Err(ProviderError::NotFound)),
            ("/json", "", "a", Ok("y")),
            ("/json", "", "o", Ok(r#"{"k": [1]}"#)),
            ("/json", "", "absent", Err(ProviderError::NotFound)),
        ];
        for (key, version, property, expected) in cases {
            let found = client.get_secret(&reference(key, version, property)).await;
            assert_eq!(
                found.map(|value| shown(&value)),
                expected.map(str::to_owned),
                "{key} {version} {property}"
            );
        }
        assert_eq!(calls.0.load(Ordering::SeqCst), 7, "every read is counted");
    }

    #[tokio::test]
    async fn an_entry_has_the_version_that_it_names() {
        let client = client(Arc::default());
        for (key, version, expected) in [("/foo", "", ""), ("/foo", "v2", "v2"), ("/json", "", "")] {
            let document = client.fetch(&reference(key, version, "").remote).await.unwrap();
            assert_eq!(document.version, expected, "{key} {version}");
        }
    }

    #[tokio::test]
    async fn the_current_version_is_the_newest() {
        let client = client(Arc::default());
        let cases =
            [("/foo", Ok(Some("v2"))), ("/json", Ok(None)), ("/absent", Err(ProviderError::NotFound))];
        for (key, expected) in cases {
            let expected = expected.map(|version| version.map(str::to_owned));
            assert_eq!(client.current_version(key).await, expected, "{key}");
        }
    }

    #[tokio::test]
    async fn maps_keep_raw_json() {
        let client = client(Arc::default());
        let map = client.get_secret_map(&reference("/json", "", "")).await.unwrap();
        let map: Vec<String> = map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect();
        assert_eq!(map, ["a=y", "n=1.50", r#"o={"k": [1]}"#]);
        assert!(matches!(
            client.get_secret_map(&reference("/foo", "", "")).await,
            Err(ProviderError::Config(text)) if text == "unable to unmarshal secret: invalid JSON format"
        ));
    }

    #[tokio::test]
    async fn find_takes_the_newest_version() {
        let client = client(Arc::default());
        let find = Find { name: Some("^/foo".to_owned()), ..Find::default() };
        let found = client.get_all_secrets(&find).await.unwrap();
        assert_eq!(
            found.iter().map(|(key, value)| (key.as_str(), shown(value))).collect::<Vec<_>>(),
            [("_foo", "newer".to_owned())]
        );
        assert!(client.get_all_secrets(&Find::default()).await.is_err());
        let bad = Find { name: Some("(".to_owned()), ..Find::default() };
        assert!(client.get_all_secrets(&bad).await.is_err());
    }
}
