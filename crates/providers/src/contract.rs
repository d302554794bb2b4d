//! What a provider is to the operator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// Values by key.
pub type SecretMap = BTreeMap<String, SecretBytes>;

/// Why a provider gave no value. No variant's text ever holds secret bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// There is no such secret (upstream's `NoSecretError`): the deletion policy applies.
    #[error("Secret does not exist")]
    NotFound,
    /// The store refuses the credentials, or there are none.
    #[error("{0}")]
    Auth(String),
    /// The store could not be asked or could not answer; the next try may succeed.
    #[error("{0}")]
    Retryable(String),
    /// The specification is wrong; only an edit helps.
    #[error("{0}")]
    Config(String),
}

impl ProviderError {
    /// The same error with `prefix` before its text; a missing secret stays one.
    pub fn context(self, prefix: &str) -> Self {
        match self {
            Self::NotFound => Self::NotFound,
            Self::Auth(text) => Self::Auth(format!("{prefix}: {text}")),
            Self::Retryable(text) => Self::Retryable(format!("{prefix}: {text}")),
            Self::Config(text) => Self::Config(format!("{prefix}: {text}")),
        }
    }
}

/// Only an edit of the specification helps.
pub(crate) fn config(text: impl Into<String>) -> ProviderError {
    ProviderError::Config(text.into())
}

/// A provider's part of a store; `wrong` when it has another form.
pub(crate) fn parse<T: DeserializeOwned>(spec: &Json, wrong: &str) -> Result<T, ProviderError> {
    T::deserialize(spec).map_err(|_| config(wrong))
}

/// What can be done with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capabilities {
    /// Values are read only.
    ReadOnly,
    /// Values are written only.
    WriteOnly,
    /// Both.
    ReadWrite,
}

impl Capabilities {
    /// As `status.capabilities` says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::WriteOnly => "WriteOnly",
            Self::ReadWrite => "ReadWrite",
        }
    }
}

/// Whether upstream maintains a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// It is.
    Maintained,
    /// Nobody does.
    NotMaintained,
    /// It will go away.
    Deprecated,
}

/// The result of asking a store whether it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validation {
    /// It works.
    Ready,
    /// It cannot be known (credentials that differ by namespace), and that is no failure.
    Unknown,
    /// It could not be found out.
    Undetermined(String),
}

/// What of the remote secret is read: the unit that several entries share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RemoteKey {
    /// The key.
    pub key: String,
    /// The version, or "".
    pub version: String,
    /// Whether the secret's metadata is wanted instead of its value.
    pub metadata: bool,
}

/// One reference to a remote value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RemoteRef {
    /// What is read.
    pub remote: RemoteKey,
    /// Which part of it, or "".
    pub property: String,
}

/// A search for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Find {
    /// Where to look.
    pub path: Option<String>,
    /// A regular expression on the name.
    pub name: Option<String>,
    /// Tags that must be equal.
    pub tags: BTreeMap<String, String>,
    /// How keys are converted by providers that do so themselves.
    pub conversion: String,
}

/// The answer to one remote read; only its provider understands it.
#[derive(Debug, Clone)]
pub struct Document {
    /// The answer itself.
    pub content: Arc<SecretBytes>,
    /// The version that the store reported of what was read, or "". Never a part of the value.
    pub version: String,
}

impl Document {
    /// Wraps an answer.
    pub fn new(content: SecretBytes) -> Self {
        Self { content: Arc::new(content), version: String::new() }
    }

    /// The same answer as of `version`.
    #[must_use]
    pub fn with_version(self, version: impl Into<String>) -> Self {
        Self { version: version.into(), ..self }
    }

    /// The answer as text.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&str, ProviderError> {
        std::str::from_utf8(self.content.expose())
            .map_err(|_| ProviderError::Config("the secret is not valid UTF-8".to_owned()))
    }
}

/// A connection to one store with one set of credentials.
#[async_trait]
pub trait SecretsClient: Send + Sync {
    /// One remote read. What is made of it ([`SecretsClient::value`], [`SecretsClient::map`]) costs no other.
    async fn fetch(&self, remote: &RemoteKey) -> Result<Document, ProviderError>;

    /// One value of what was read.
    fn value(&self, document: &Document, remote: &RemoteRef) -> Result<SecretBytes, ProviderError>;

    /// All values of what was read.
    fn map(&self, document: &Document, remote: &RemoteRef) -> Result<SecretMap, ProviderError>;

    /// What [`SecretsClient::get_secret`] answers when `fetch` found nothing.
    fn missing_value(&self, _remote: &RemoteRef) -> ProviderError {
        ProviderError::NotFound
    }

    /// All secrets that `find` describes.
    async fn get_all_secrets(&self, find: &Find) -> Result<SecretMap, ProviderError>;

    /// Whether the store works with these credentials.
    async fn validate(&self) -> Result<Validation, ProviderError>;

    /// Which version of `key` the store holds now; `None` when it tells none. Never the value: a provider that
    /// can ask for the version alone does so, another one reads and drops the rest at once.
    async fn current_version(&self, key: &str) -> Result<Option<String>, ProviderError> {
        fetched_version(self, key).await
    }

    /// Gives back what the connection holds at the store.
    async fn close(&self);

    /// Reads one value.
    async fn get_secret(&self, remote: &RemoteRef) -> Result<SecretBytes, ProviderError> {
        match self.fetch(&remote.remote).await {
            Ok(document) => self.value(&document, remote),
            Err(ProviderError::NotFound) => Err(self.missing_value(remote)),
            Err(error) => Err(error),
        }
    }

    /// Reads all values of one secret.
    async fn get_secret_map(&self, remote: &RemoteRef) -> Result<SecretMap, ProviderError> {
        let document = self.fetch(&remote.remote).await?;
        self.map(&document, remote)
    }
}

/// The version that a read of `key` tells; what was read is dropped.
///
/// # Errors
/// The read's.
pub async fn fetched_version<C: SecretsClient + ?Sized>(
    client: &C,
    key: &str,
) -> Result<Option<String>, ProviderError> {
    let remote = RemoteKey { key: key.to_owned(), ..RemoteKey::default() };
    let version = client.fetch(&remote).await?.version;
    Ok((!version.is_empty()).then_some(version))
}

/// Which store, for whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Whether the store is a ClusterSecretStore.
    pub cluster: bool,
    /// Name of the store.
    pub store: String,
    /// The namespace of who asks; for a cluster store that is validated, "".
    pub namespace: String,
}

/// `spec.retrySettings` of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetrySettings {
    /// Further tries after a failed one.
    pub max_retries: Option<u32>,
    /// The time between tries.
    pub interval: Option<Duration>,
}

/// What a provider gets from outside.
#[derive(Clone)]
pub struct Context {
    /// Secrets, ConfigMaps and tokens of the cluster.
    pub access: Arc<dyn Access>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// Counts remote calls.
    pub calls: Arc<dyn Calls>,
    /// The store's retry settings; `None` when it has none.
    pub retry: Option<RetrySettings>,
}

/// Counts remote calls: `externalsecret_provider_api_calls_count`.
pub trait Calls: Send + Sync {
    /// One call ended.
    fn observe(&self, provider: &'static str, call: &'static str, success: bool);
}

/// The Kubernetes objects that hold credentials.
#[async_trait]
pub trait Access: Send + Sync {
    /// The data of a Secret. The error is the API server's text.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Arc<SecretMap>, String>;

    /// The data of a ConfigMap.
    async fn config_map(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, String>, String>;

    /// A token of a service account for `audiences`, valid for `seconds`.
    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
        seconds: i64,
    ) -> Result<SecretBytes, String>;

    /// The token of the pod that we run in.
    async fn pod_token(&self) -> Result<SecretBytes, String>;
}

/// One kind of external store.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Its key in `spec.provider`.
    fn key(&self) -> &'static str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether upstream maintains it.
    fn maintenance(&self) -> Maintenance {
        Maintenance::Maintained
    }

    /// Checks a specification without a network; returns warnings.
    fn check(&self, spec: &Json, scope: &Scope) -> Result<Vec<String>, ProviderError>;

    /// Whether a cluster store's credentials lie in the namespace of who asks, so that each has its own.
    fn is_referent(&self, _spec: &Json, _scope: &Scope) -> bool {
        false
    }

    /// Connects.
    async fn connect(
        &self,
        spec: &Json,
        scope: &Scope,
        context: &Context,
    ) -> Result<Arc<dyn SecretsClient>, ProviderError>;
}
