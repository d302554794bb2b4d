//! The data of a Secret, put together from what the stores give.

use std::sync::Arc;
use std::time::Duration;

use coffer_providers::contract::{ProviderError, RemoteRef, SecretMap};
use coffer_providers::strategies;
use coffer_runtime::api::ObjectKey;
use coffer_types::SecretBytes;
use parking_lot::Mutex;

use super::rewrite;
use super::spec::{DataEntry, DeletionPolicy, ExternalSecret, FromEntry, Source, Spec, StoreRef};
use super::versions::SourceVersions;
use crate::reads::{Answer, What};
use crate::shared::Shared;
use crate::store::manager::Connection;

/// Why there is no data. Texts hold no secret bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Upstream's text, for the event.
    pub(crate) text: String,
    /// Every entry that the store does not have, not only the first.
    pub(crate) missing: Vec<String>,
}

/// The data, and which entries were left out because the store does not have them.
pub(crate) struct Assembled {
    pub(crate) data: SecretMap,
    pub(crate) skipped: Vec<String>,
    pub(crate) versions: SourceVersions,
}

/// Reads everything that `spec` names; a read that somebody else made at most `max_age` ago is shared.
pub(crate) async fn assemble(
    shared: &Shared,
    owner: &ExternalSecret,
    spec: &Spec,
    max_age: Duration,
) -> Result<Assembled, Failure> {
    let reader = Reader { shared, owner, spec, max_age, versions: Mutex::default() };
    let (mut data, mut skipped, mut missing) = (SecretMap::new(), Vec::new(), Vec::new());
    let mut first_missing = None;
    for (index, entry) in spec.data_from.iter().enumerate() {
        match reader.from(entry).await {
            Ok(map) => data.extend(map),
            Err(Problem::Missing) => {
                let kind = if matches!(entry.source, Source::Find(_)) { "find" } else { "extract" };
                skipped.push(format!("secret does not exist at provider using spec.dataFrom[{index}]"));
                missing.push(format!("spec.dataFrom[{index}]"));
                first_missing.get_or_insert(format!(
                    "error processing spec.dataFrom[{index}].{kind}, err: {}",
                    ProviderError::NotFound
                ));
            }
            Err(Problem::Failed(why)) => {
                let kind = if matches!(entry.source, Source::Find(_)) { "find" } else { "extract" };
                let text = format!("error processing spec.dataFrom[{index}].{kind}, err: {why}");
                return Err(Failure { text, missing });
            }
        }
    }
    for (index, entry) in spec.data.iter().enumerate() {
        let key = &entry.remote.remote.key;
        match reader.value(entry).await {
            Ok(value) => {
                data.insert(entry.secret_key.clone(), value);
            }
            Err(Problem::Missing) => {
                // Upstream's text says dataFrom here too.
                skipped.push(format!(
                    "secret does not exist at provider using spec.dataFrom[{index}] (key={key})"
                ));
                missing.push(format!("spec.data[{index}] (key: {key})"));
                first_missing.get_or_insert(format!(
                    "error processing spec.data[{index}] (key: {key}), err: {}",
                    ProviderError::NotFound
                ));
            }
            Err(Problem::Failed(why)) => {
                let text = format!("error processing spec.data[{index}] (key: {key}), err: {why}");
                return Err(Failure { text, missing });
            }
        }
    }
    match first_missing {
        Some(text) if spec.target.deletion == DeletionPolicy::Retain => Err(Failure { text, missing }),
        _ => Ok(Assembled { data, skipped, versions: reader.versions.into_inner() }),
    }
}

enum Problem {
    Missing,
    Failed(String),
}

impl From<ProviderError> for Problem {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::NotFound => Self::Missing,
            other => Self::Failed(other.to_string()),
        }
    }
}

struct Reader<'a> {
    shared: &'a Shared,
    owner: &'a ExternalSecret,
    spec: &'a Spec,
    max_age: Duration,
    /// Of what was read so far.
    versions: Mutex<SourceVersions>,
}

impl Reader<'_> {
    async fn value(&self, entry: &DataEntry) -> Result<SecretBytes, Problem> {
        let connection = self.connection(entry.store.as_ref()).await?;
        let document = self.document(&connection, &entry.remote).await.map_err(|error| match error {
            ProviderError::NotFound => connection.client.missing_value(&entry.remote),
            other => other,
        })?;
        let value = connection.client.value(&document, &entry.remote)?;
        let value = strategies::decode(&entry.decoding, value).map_err(|why| {
            Problem::Failed(format!("error applying decoding strategy {} to data: {why}", entry.decoding))
        })?;
        if entry.refuse_null_bytes {
            refuse_null_bytes(&entry.secret_key, &value)?;
        }
        Ok(value)
    }

    async fn from(&self, entry: &FromEntry) -> Result<SecretMap, Problem> {
        let map = match &entry.source {
            Source::Nothing => return Ok(SecretMap::new()),
            Source::Extract(remote) => {
                let connection = self.connection(entry.store.as_ref()).await?;
                let document = self.document(&connection, remote).await?;
                connection.client.map(&document, remote)?
            }
            Source::Find(find) => {
                let connection = self.connection(entry.store.as_ref()).await?;
                let (client, search) = (connection.client.clone(), find.clone());
                let read = || async move {
                    client.get_all_secrets(&search).await.map(|map| Answer::Map(Arc::new(map)))
                };
                let what = What::Find(find.clone());
                let answer = self.shared.reads.get(connection.number, what, self.max_age, read).await;
                let answer = answer.map_err(|error| error.context("error getting all secrets"))?;
                let Answer::Map(map) = answer else { return Ok(SecretMap::new()) };
                (*map).clone()
            }
        };
        let failed = |what: &str, why: String| Problem::Failed(format!("error applying {what}: {why}"));
        let map = if entry.rewrites.is_empty() {
            let what = format!("conversion strategy {} to keys", entry.conversion);
            strategies::convert_keys(&entry.conversion, map).map_err(|why| failed(&what, why))?
        } else {
            rewrite::apply(&entry.rewrites, map).map_err(|why| failed("rewrite to keys", why))?
        };
        let map = strategies::validate_keys(map).map_err(|why| {
            Problem::Failed(format!(
                "invalid secret keys (TIP: use rewrite or conversionStrategy to change keys): {why}"
            ))
        })?;
        let what = format!("decoding strategy {} to data", entry.decoding);
        let map = strategies::decode_map(&entry.decoding, map).map_err(|why| failed(&what, why))?;
        if entry.refuse_null_bytes {
            for (key, value) in &map {
                refuse_null_bytes(key, value)?;
            }
        }
        Ok(map)
    }

    async fn document(
        &self,
        connection: &Connection,
        remote: &RemoteRef,
    ) -> Result<coffer_providers::contract::Document, ProviderError> {
        let (client, key) = (connection.client.clone(), remote.remote.clone());
        let read = || async move { client.fetch(&key).await.map(Answer::Document) };
        let what = What::Key(remote.remote.clone());
        match self.shared.reads.get(connection.number, what, self.max_age, read).await? {
            Answer::Document(document) => {
                self.versions.lock().add(connection.number, &remote.remote, &document.version);
                Ok(document)
            }
            Answer::Map(_) => Err(ProviderError::Retryable("the read gave a list".to_owned())),
        }
    }

    /// A connection to the entry's store, or the ExternalSecret's; checked for class, namespace and readiness.
    async fn connection(&self, reference: Option<&StoreRef>) -> Result<Connection, Problem> {
        let nothing = StoreRef::default();
        let reference = reference.or(self.spec.store.as_ref()).unwrap_or(&nothing);
        let namespace = &self.owner.key.namespace;
        let key = reference.key(namespace);
        let (kind, name) = (key.kind(), &key.name);
        let store = self.shared.store(&key).ok_or_else(|| {
            Problem::Failed(format!(
                "could not get {kind} {name:?}, {kind}.external-secrets.io {name:?} not found"
            ))
        })?;
        if !self.shared.is_ours(&store) {
            return Err(Problem::Failed("can not reference unmanaged store".to_owned()));
        }
        if store.key.cluster && !store.admits.is_empty() {
            let labels = self.shared.caches.namespaces.get(&ObjectKey::new("", namespace.clone()));
            let labels = labels.ok_or_else(|| {
                Problem::Failed(format!("failed to get a namespace {namespace:?}: it is not known"))
            })?;
            if !store.admits(&labels, namespace).map_err(Problem::Failed)? {
                return Err(Problem::Failed(format!(
                    "using cluster store {name:?} is not allowed from namespace {namespace:?}: denied by spec.condition"
                )));
            }
        }
        if self.shared.settings.flood_gate && !store.is_ready() {
            return Err(Problem::Failed(format!("{kind} {name:?} is not ready")));
        }
        Ok(self.shared.manager.connect(&store, namespace, self.max_age.is_zero()).await?)
    }
}

fn refuse_null_bytes(key: &str, value: &SecretBytes) -> Result<(), Problem> {
    if value.expose().contains(&0) {
        return Err(Problem::Failed(format!(
            "fetched secret value for key {key:?} contains null bytes; use a text-safe format such as PEM/base64 or leave nullBytePolicy unset for intentional binary data"
        )));
    }
    Ok(())
}
