//! From a configuration to the transformers of each resource.

use std::collections::HashMap;
use std::sync::Arc;

use coffer_crypto::{
    BatchedRandom, Entry, Identity, NamedKey, PrefixList, Provider, StoredUnder, TransformObserver,
    Transformer, Watched, WatchedList, describe, keyed,
};
use coffer_types::random::Random;
use coffer_types::time::Clock;

use super::resource::GroupResource;
use super::validate::decoded;
use super::{EncryptionConfiguration, Keys, Kms, KmsPlugins, ProviderRule, Unconnected};
use crate::{ConfigError, Problem};

const NO_MATCH: &str = "no matching prefix found";

/// The transformer of every resource.
///
/// Looked up from the narrow to the wide: the resource itself, `*.<group>`, `*.*`. What
/// no rule names is stored as plaintext, and refuses to be read when it is not.
#[derive(Clone)]
pub struct Transformers {
    by_resource: HashMap<GroupResource, Arc<PrefixList>>,
    unnamed: Arc<dyn Transformer>,
    key_names: Arc<[String]>,
    observed: Option<(Arc<dyn Clock>, Arc<dyn TransformObserver>)>,
}

impl Transformers {
    /// No encryption at all: what a server without a configuration does.
    pub fn identity() -> Self {
        Self {
            by_resource: HashMap::new(),
            unnamed: Arc::new(Identity),
            key_names: Arc::new([]),
            observed: None,
        }
    }

    /// Builds the transformers of a configuration that keeps the rules; `file` is named in errors.
    ///
    /// No KMS plugin is connected: what one of them wrote is not read.
    pub fn build(
        file: &str,
        config: &EncryptionConfiguration,
        random: Arc<dyn Random>,
    ) -> Result<Self, ConfigError> {
        Self::build_with(file, config, random, &mut Unconnected::default())
    }

    /// As [`Transformers::build`], with what connects KMS plugins.
    pub fn build_with(
        file: &str,
        config: &EncryptionConfiguration,
        random: Arc<dyn Random>,
        plugins: &mut dyn KmsPlugins,
    ) -> Result<Self, ConfigError> {
        let refused = |text| ConfigError { file: file.to_owned(), problem: Problem::Build(text) };
        let random: Arc<dyn Random> = Arc::new(BatchedRandom::new(random));
        let mut entries: HashMap<GroupResource, Vec<Entry>> = HashMap::new();
        for rule in &config.resources {
            let providers = rule.providers.iter().map(|provider| entry(provider, &random, plugins));
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
            Some((resource, Arc::new(list)))
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
        match (found, &self.observed) {
            (None, _) => Arc::clone(&self.unnamed),
            (Some(list), None) => list.clone(),
            (Some(list), Some((clock, observer))) => {
                let resource = exact.to_string();
                let watched = Watched { resource, clock: Arc::clone(clock), observer: Arc::clone(observer) };
                Arc::new(WatchedList::new(list, watched))
            }
        }
    }

    /// Tells `observer` of what the transformers do that are asked for from now on.
    #[must_use]
    pub fn observed(self, clock: Arc<dyn Clock>, observer: Arc<dyn TransformObserver>) -> Self {
        Self { observed: Some((clock, observer)), ..self }
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

fn entry(
    provider: &ProviderRule,
    random: &Arc<dyn Random>,
    plugins: &mut dyn KmsPlugins,
) -> Result<Entry, String> {
    if let Some(kms) = &provider.kms {
        return Ok(Entry { prefix: kms_prefix(kms).into_bytes(), layer: plugins.connect(kms)? });
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

/// The name of the plugin is part of the prefix.
fn kms_prefix(kms: &Kms) -> String {
    let kind = if kms.api_version == "v1" { Provider::KmsV1 } else { Provider::KmsV2 };
    format!("{}{}:", kind.prefix(), kms.name)
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
    let keys = lists.flatten().flat_map(|keys| &keys.keys).map(|key| key.name.clone());
    let plugins = config.resources.iter().flat_map(|rule| &rule.providers);
    keys.chain(plugins.filter_map(|provider| Some(provider.kms.as_ref()?.name.clone()))).collect()
}
