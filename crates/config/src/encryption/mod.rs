//! `EncryptionConfiguration`: which resources are encrypted at rest, by what.
//!
//! [`parse`] turns bytes into a configuration that keeps every rule;
//! [`Transformers::build`] turns that into what a store asks for; [`generate`] makes
//! the first configuration of a new installation.

mod build;
mod decode;
mod generate;
mod in_use;
mod kms;
pub mod reload;
mod resource;
mod validate;

pub use build::Transformers;
pub use generate::generate;
pub use in_use::{ShownKey, ShownProvider, ShownRule};
pub use kms::{KMS_V1_DEPRECATED, KmsPlugins, Unconnected};
pub use resource::GroupResource;

use coffer_types::SecretBytes;
use coffer_types::codec::{json, yaml};

use crate::{ConfigError, Problem};

/// Which resources are encrypted by which providers; in order, the first rule counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncryptionConfiguration {
    /// The rules.
    pub resources: Vec<ResourceRule>,
}

/// Some resources and their providers: the first one writes, all of them read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceRule {
    /// `secrets`, `deployments.apps`, `*.apps`, `*.` or `*.*`.
    pub resources: Vec<String>,
    /// The providers.
    pub providers: Vec<ProviderRule>,
}

/// One provider. Exactly one member is set in a configuration that keeps the rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderRule {
    /// AES-GCM.
    pub aes_gcm: Option<Keys>,
    /// AES-CBC.
    pub aes_cbc: Option<Keys>,
    /// XSalsa20-Poly1305.
    pub secretbox: Option<Keys>,
    /// Plaintext.
    pub identity: bool,
    /// A KMS plugin.
    pub kms: Option<Kms>,
}

/// The keys of a provider: the first one writes, all of them read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys {
    /// The keys.
    pub keys: Vec<Key>,
}

/// A named key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Key {
    /// What values that are stored under it name it.
    pub name: String,
    /// The key in base64.
    pub secret: SecretBytes,
}

/// A KMS plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kms {
    /// `v1` or `v2`.
    pub api_version: String,
    /// What values that are stored under it name it.
    pub name: String,
    /// How many keys `v1` remembers; negative for none at all.
    pub cache_size: Option<i32>,
    /// `unix:///…`.
    pub endpoint: String,
    /// How long a call may take, in nanoseconds.
    pub timeout: i64,
}

/// When the rules are checked: some are for configurations that are reloaded while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// Read once, at start.
    Never,
    /// Read again whenever the file changes.
    Automatic,
}

/// A configuration from the bytes of a file, which holds JSON or YAML. `file` is what errors call it.
///
/// Of several YAML documents only the first counts, as upstream reads it.
pub fn parse(file: &str, bytes: &[u8], reload: Reload) -> Result<EncryptionConfiguration, ConfigError> {
    let refused = |problem| ConfigError { file: file.to_owned(), problem };
    if bytes.is_empty() {
        return Err(refused(Problem::Empty));
    }
    let decoded = if bytes.trim_ascii_start().starts_with(b"{") {
        json::decode_untyped(bytes)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
    } else {
        yaml::decode_untyped(bytes).map_err(|error| error.to_string())
    };
    let decoded = decoded.map_err(|text| refused(Problem::Decode(text)))?;
    let config = decode::decode(&decoded.object, decoded.strict_errors).map_err(refused)?;
    let errors = validate::validate(&config, reload);
    if errors.is_empty() { Ok(config) } else { Err(refused(Problem::Invalid(errors))) }
}
