//! Which keys a configuration holds, in a form that can be shown to everyone.

use coffer_crypto::Provider;
use coffer_crypto::check_value::{KeyIdentity, key_check_value};

use super::validate::decoded;
use super::{EncryptionConfiguration, Keys, ProviderRule};

/// One rule: its resources, and its providers in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownRule {
    /// As they stand in the file.
    pub resources: Vec<String>,
    /// The first one writes.
    pub providers: Vec<ShownProvider>,
}

/// One provider and its keys in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownProvider {
    /// As a person reads it.
    pub provider: Provider,
    /// The first one writes. A plugin stands here under its name; identity has none.
    pub keys: Vec<ShownKey>,
}

/// A key without itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownKey {
    /// What values that are stored under it name it.
    pub name: String,
    /// Equal for equal keys, whatever their names; "" for a plugin, which keeps its key to itself.
    pub check_value: String,
}

/// A key of a file has no lineage: files of other servers and clusters compare by the key alone.
const NO_IDENTITY: KeyIdentity<'_> = KeyIdentity { group: "", dimension: "", revision: 0 };

impl EncryptionConfiguration {
    /// Its rules with the check values of its keys.
    pub fn shown(&self) -> Vec<ShownRule> {
        let rules = self.resources.iter();
        rules
            .map(|rule| ShownRule {
                resources: rule.resources.clone(),
                providers: rule.providers.iter().map(provider).collect(),
            })
            .collect()
    }
}

fn provider(rule: &ProviderRule) -> ShownProvider {
    if let Some(kms) = &rule.kms {
        let provider = if kms.api_version == "v1" { Provider::KmsV1 } else { Provider::KmsV2 };
        let plugin = ShownKey { name: kms.name.clone(), check_value: String::new() };
        return ShownProvider { provider, keys: vec![plugin] };
    }
    let lists = [
        (Provider::AesGcm, &rule.aes_gcm),
        (Provider::AesCbc, &rule.aes_cbc),
        (Provider::Secretbox, &rule.secretbox),
    ];
    match lists.into_iter().find_map(|(provider, list)| Some((provider, list.as_ref()?))) {
        Some((provider, list)) => ShownProvider { provider, keys: keys(list) },
        None => ShownProvider { provider: Provider::Identity, keys: Vec::new() },
    }
}

fn keys(list: &Keys) -> Vec<ShownKey> {
    let shown = list.keys.iter().map(|key| ShownKey {
        name: key.name.clone(),
        check_value: decoded(&key.secret)
            .and_then(|secret| key_check_value(secret.expose(), NO_IDENTITY))
            .unwrap_or_default(),
    });
    shown.collect()
}
