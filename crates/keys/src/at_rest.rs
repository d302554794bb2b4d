//! Under which provider and key the stored copy of an object is.

use coffer_config::encryption::Transformers;
use coffer_store::key::{KeyError, KeySpace, Origin};
use coffer_store::kv::{Kv, KvError, RangeRequest, Revision};
use serde::Serialize;

/// What is known of one stored copy, without any byte of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCopy {
    /// `identity`, `aescbc`, `aesgcm`, `secretbox`, or `unknown` for a prefix that nobody knows.
    pub provider: String,
    /// Name of the key; "" for identity.
    pub key: String,
    /// Whether a key that is held opens it.
    pub readable: bool,
    /// Whether a write would store it in another form now.
    pub stale: bool,
    /// Revision of the last write.
    pub revision: Revision,
}

/// Which object.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// `--etcd-prefix`.
    pub prefix: &'a str,
    /// Plural of a built-in resource of the core group.
    pub resource: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// Why nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AtRestError {
    /// The names cannot be a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] KvError),
}

/// Reads and describes the stored copy; `None` when there is none.
///
/// Whether it is stale is found by decrypting it, since only that tells whether another key of the
/// same name would do; the plaintext is wiped at once.
///
/// # Errors
/// When the names cannot be a key, or the store does not answer.
pub async fn stored_copy(
    kv: &dyn Kv,
    transformers: &Transformers,
    place: Place<'_>,
) -> Result<Option<StoredCopy>, AtRestError> {
    let keys = KeySpace::new(place.prefix, "", place.resource, Origin::BuiltIn, true)?;
    let key = keys.object(place.namespace, place.name)?;
    let request = RangeRequest { start: key.bytes(), limit: 1, ..RangeRequest::default() };
    let found = kv.range(request).await?;
    let Some(stored) = found.items.first() else { return Ok(None) };
    let (provider, key_name) = match transformers.describe(&stored.value) {
        Some(under) => (under.provider.to_string(), under.key_name),
        None => ("unknown".to_owned(), String::new()),
    };
    let transformer = transformers.transformer_for("", place.resource);
    let opened = transformer.from_storage(&stored.value, key.context());
    Ok(Some(StoredCopy {
        provider,
        key: key_name,
        readable: opened.is_ok(),
        stale: opened.map_or(true, |plain| plain.stale),
        revision: stored.mod_revision,
    }))
}

/// How many stored copies are tried before it is said that no key opens them.
const TRIED: i64 = 100;

/// The key of a stored copy, when there are copies of the resource and none of those tried is
/// readable: the keys are not the ones that wrote them. One that opens is enough, since a
/// single damaged copy must not keep all the others from being served.
///
/// # Errors
/// When the names cannot be a key, or the store does not answer.
pub async fn foreign_copy(
    kv: &dyn Kv,
    transformers: &Transformers,
    prefix: &str,
    resource: &str,
) -> Result<Option<String>, AtRestError> {
    let range = KeySpace::new(prefix, "", resource, Origin::BuiltIn, true)?.range("")?;
    let request =
        RangeRequest { start: range.start, end: range.end, limit: TRIED, ..RangeRequest::default() };
    let found = kv.range(request).await?;
    let transformer = transformers.transformer_for("", resource);
    if found.items.iter().any(|item| transformer.from_storage(&item.value, &item.key).is_ok()) {
        return Ok(None);
    }
    Ok(found.items.first().map(|item| String::from_utf8_lossy(&item.key).into_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coffer_config::encryption::{Reload, parse};
    use coffer_sim::{SeededRandom, SimClock};
    use coffer_store::embedded::{Embedded, EmbeddedOptions};
    use coffer_store::kv::{Compare, Op, SharedValue, Txn};

    use super::*;

    const KEY: &str = "/registry/secrets/ns/db";

    fn transformers(providers: &str) -> Transformers {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - resources: [secrets]\n  providers: [{providers}]\n"
        );
        let config = parse("test", text.as_bytes(), Reload::Never).expect("a configuration");
        Transformers::build("test", &config, Arc::new(SeededRandom::new(1))).expect("transformers")
    }

    fn gcm(name: &str, byte: u8) -> String {
        use base64::Engine;
        let secret = base64::engine::general_purpose::STANDARD.encode([byte; 32]);
        format!("aesgcm: {{keys: [{{name: {name}, secret: \"{secret}\"}}]}}")
    }

    /// What is said of a value that `writer` stored, by a server that has `reader`.
    async fn check(writer: &str, reader: &str, expected: (&str, &str, bool, bool)) {
        let store = Embedded::in_memory(EmbeddedOptions::new(Arc::new(SimClock::new(
            coffer_types::time::Timestamp::UNIX_EPOCH,
        ))))
        .await
        .expect("a store");
        let value = transformers(writer)
            .transformer_for("", "secrets")
            .to_storage(b"k8s\0plain", KEY.as_bytes())
            .expect("encrypted");
        let put = Op::Put { key: KEY.into(), value: SharedValue(value.into()), lease: 0 };
        let txn =
            Txn { compare: vec![Compare::ModRevision(KEY.into(), 0)], success: vec![put], failure: vec![] };
        assert!(store.txn(txn).await.expect("written").succeeded);
        let place = Place { prefix: "/registry", resource: "secrets", namespace: "ns", name: "db" };
        let copy = stored_copy(&store, &transformers(reader), place)
            .await
            .expect("an answer")
            .expect("a stored copy");
        let found = (copy.provider.as_str(), copy.key.as_str(), copy.readable, copy.stale);
        assert_eq!(found, expected);
        let absent = Place { name: "other", ..place };
        assert_eq!(stored_copy(&store, &transformers(reader), absent).await, Ok(None));
        let hostile = Place { name: "../x", ..place };
        assert!(matches!(
            stored_copy(&store, &transformers(reader), hostile).await,
            Err(AtRestError::Key(_))
        ));
    }

    #[tokio::test]
    async fn a_stored_copy_names_its_provider_and_key() {
        let (one, two) = (format!("{{{}}}", gcm("one", 1)), format!("{{{}}}", gcm("two", 2)));
        check(&one, &one, ("aesgcm", "one", true, false)).await;
        check(&one, &format!("{two}, {one}"), ("aesgcm", "one", true, true)).await;
        check(&one, &two, ("aesgcm", "one", false, true)).await;
        // Another key of the same name does not open it.
        check(&one, &format!("{{{}}}", gcm("one", 9)), ("aesgcm", "one", false, true)).await;
        check("{identity: {}}", "{identity: {}}", ("identity", "", true, false)).await;
        check("{identity: {}}", &format!("{one}, {{identity: {{}}}}"), ("identity", "", true, true)).await;
    }

    /// Field case K27: other keys than those that wrote the data are noticed before a write.
    #[tokio::test]
    async fn k27_copies_that_no_key_opens_are_foreign() {
        let store = Embedded::in_memory(EmbeddedOptions::new(Arc::new(SimClock::new(
            coffer_types::time::Timestamp::UNIX_EPOCH,
        ))))
        .await
        .expect("a store");
        let (one, two) = (format!("{{{}}}", gcm("one", 1)), format!("{{{}}}", gcm("one", 2)));
        let check = async |reader: &str, expected: Option<&str>| {
            let found = foreign_copy(&store, &transformers(reader), "/registry", "secrets").await;
            assert_eq!(found.expect("an answer").as_deref(), expected);
        };
        let put = async |writer: &str, key: &'static str| {
            let value = transformers(writer)
                .transformer_for("", "secrets")
                .to_storage(b"k8s\0plain", key.as_bytes())
                .expect("encrypted");
            let put = Op::Put { key: key.into(), value: SharedValue(value.into()), lease: 0 };
            let txn = Txn { compare: vec![], success: vec![put], failure: vec![] };
            assert!(store.txn(txn).await.expect("written").succeeded);
        };
        check(&one, None).await;
        put(&one, KEY).await;
        check(&one, None).await;
        check(&format!("{two}, {one}"), None).await;
        check(&two, Some(KEY)).await;
        check("{identity: {}}", Some(KEY)).await;
        // One damaged copy among good ones is no reason to stay away.
        put(&two, "/registry/secrets/ns/another").await;
        check(&one, None).await;
        check(&two, None).await;
    }
}
