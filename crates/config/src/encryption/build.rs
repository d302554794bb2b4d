//! From a configuration to the transformers of each resource.

use std::collections::HashMap;
use std::sync::Arc;

use coffer_crypto::{
    BatchedRandom, Entry, Identity, NamedKey, PrefixList, Provider, StoredUnder, Transformer, describe, keyed,
};
use coffer_types::random::Random;

use super::resource::GroupResource;
use super::validate::decoded;
use super::{EncryptionConfiguration, Keys, ProviderRule};
use crate::{ConfigError, Problem};

const NO_MATCH: &str = "no matching prefix found";

/// The transformer of every resource.
///
/// Looked up from the narrow to the wide: the resource itself, `*.<group>`, `*.*`. What
/// no rule names is stored as plaintext, and refuses to be read when it is not.
#[derive(Clone)]
pub struct Transformers {
    by_resource: HashMap<GroupResource, Arc<dyn Transformer>>,
    unnamed: Arc<dyn Transformer>,
    key_names: Arc<[String]>,
}

impl Transformers {
    /// No encryption at all: what a server without a configuration does.
    pub fn identity() -> Self {
        Self { by_resource: HashMap::new(), unnamed: Arc::new(Identity), key_names: Arc::new([]) }
    }

    /// Builds the transformers of a configuration that keeps the rules; `file` is named in errors.
    pub fn build(
        file: &str,
        config: &EncryptionConfiguration,
        random: Arc<dyn Random>,
    ) -> Result<Self, ConfigError> {
        let refused = |text| ConfigError { file: file.to_owned(), problem: Problem::Build(text) };
        let random: Arc<dyn Random> = Arc::new(BatchedRandom::new(random));
        let mut entries: HashMap<GroupResource, Vec<Entry>> = HashMap::new();
        for rule in &config.resources {
            let providers = rule.providers.iter().map(|provider| entry(provider, &random));
            let providers: Vec<Entry> = providers.collect::<Result<_, _>>().map_err(refused)?;
            for name in &rule.resources {
                let resource = GroupResource::parse(name);
                for earlier in [resource.any_in_group(), GroupResource::any()] {
                    if entries.contains_key(&earlier) {
                        let (resource, earlier) = (resource.to_string(), earlier.to_string());
                        return Err(refused(format!(
                            "resource {resource:?} is masked by earlier rule {earlier:?}"
                        )));
                    }
                }
                entries.entry(resource).or_default().extend(providers.iter().cloned());
            }
        }
        let by_resource = entries.into_iter().filter_map(|(resource, entries)| {
            let mut entries = entries.into_iter();
            let list = PrefixList::new(entries.next()?, entries.collect(), NO_MATCH);
            Some((resource, Arc::new(list) as Arc<dyn Transformer>))
        });
        Ok(Self { by_resource: by_resource.collect(), key_names: key_names(config), ..Self::identity() })
    }

    /// The transformer of one resource; subresources and custom resources included.
    pub fn transformer_for(&self, group: &str, resource: &str) -> Arc<dyn Transformer> {
        let exact = GroupResource::new(group, resource);
        let found = self
            .by_resource
            .get(&exact)
            .or_else(|| self.by_resource.get(&exact.any_in_group()))
            .or_else(|| self.by_resource.get(&GroupResource::any()));
        Arc::clone(found.unwrap_or(&self.unnamed))
    }

    /// The provider and key that a stored value names, key names with `:` in them included.
    pub fn describe(&self, stored: &[u8]) -> Option<StoredUnder> {
        let names: Vec<&str> = self.key_names.iter().map(String::as_str).collect();
        describe(stored, &names)
    }
}

impl std::fmt::Debug for Transformers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.by_resource.keys()).finish()
    }
}

fn entry(provider: &ProviderRule, random: &Arc<dyn Random>) -> Result<Entry, String> {
    if provider.kms.is_some() {
        return Err("kms providers are not supported by this version".to_owned());
    }
    let keys = [
        (Provider::AesGcm, &provider.aes_gcm),
        (Provider::AesCbc, &provider.aes_cbc),
        (Provider::Secretbox, &provider.secretbox),
    ];
    match keys.into_iter().find_map(|(kind, keys)| Some((kind, keys.as_ref()?))) {
        Some((kind, keys)) => keyed(kind, &named(keys)?, random).map_err(|error| error.to_string()),
        None if provider.identity => Ok(Entry { prefix: Vec::new(), layer: Arc::new(Identity) }),
        None => Err("provider does not contain any of the expected providers".to_owned()),
    }
}

fn named(keys: &Keys) -> Result<Vec<NamedKey>, String> {
    keys.keys
        .iter()
        .map(|key| {
            let secret = decoded(&key.secret).ok_or_else(|| {
                format!("could not obtain secret for named key {}: secrets must be base64 encoded", key.name)
            })?;
            Ok(NamedKey { name: key.name.clone(), secret })
        })
        .collect()
}

fn key_names(config: &EncryptionConfiguration) -> Arc<[String]> {
    let providers = config.resources.iter().flat_map(|rule| &rule.providers);
    let lists = providers.flat_map(|provider| [&provider.aes_gcm, &provider.aes_cbc, &provider.secretbox]);
    lists.flatten().flat_map(|keys| &keys.keys).map(|key| key.name.clone()).collect()
}
