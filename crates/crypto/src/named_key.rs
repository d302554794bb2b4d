//! A provider with its list of named keys.

use std::sync::Arc;

use coffer_types::SecretBytes;
use coffer_types::random::Random;

use crate::{AesCbc, AesGcm, Entry, Layer, PrefixList, Provider, Secretbox};

/// One key under the name that its values carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKey {
    /// The name; may hold `:` and may repeat.
    pub name: String,
    /// The key itself.
    pub secret: SecretBytes,
}

/// Why a provider cannot be built from its keys. Validation of the configuration
/// finds all of these first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The list of keys is empty.
    #[error("{0} provider has no valid keys")]
    NoKeys(&'static str),
    /// An AES key is not of 16, 24 or 32 bytes.
    #[error("crypto/aes: invalid key size {0}")]
    AesKeySize(usize),
    /// A secretbox key is not of 32 bytes.
    #[error("expected key size 32 for secretbox provider, got {0}")]
    SecretboxKeySize(usize),
    /// A key was refused.
    #[error("error while creating cipher for named key {name}: {source}")]
    Key {
        /// Name of the key.
        name: String,
        /// Why.
        source: Box<BuildError>,
    },
    /// The provider is none that has named keys.
    #[error("{0} provider has no named keys")]
    NotKeyed(Provider),
}

/// The provider's layer behind its own prefix: the first key writes, all keys read.
pub fn keyed(provider: Provider, keys: &[NamedKey], random: &Arc<dyn Random>) -> Result<Entry, BuildError> {
    let (family, no_match) = match provider {
        Provider::AesCbc | Provider::AesGcm => {
            ("aes", "no matching key was found for the provided AES transformer")
        }
        Provider::Secretbox => {
            ("secretbox", "no matching key was found for the provided Secretbox transformer")
        }
        Provider::Identity | Provider::KmsV1 | Provider::KmsV2 => return Err(BuildError::NotKeyed(provider)),
    };
    let mut entries = keys.iter().map(|key| {
        let layer =
            cipher(provider, key.secret.expose(), Arc::clone(random)).map_err(|source| match source {
                BuildError::AesKeySize(_) => {
                    BuildError::Key { name: key.name.clone(), source: Box::new(source) }
                }
                other => other,
            })?;
        Ok(Entry { prefix: format!("{}:", key.name).into_bytes(), layer })
    });
    let first = entries.next().ok_or(BuildError::NoKeys(family))??;
    let others = entries.collect::<Result<_, _>>()?;
    Ok(Entry {
        prefix: provider.prefix().as_bytes().to_vec(),
        layer: Arc::new(PrefixList::new(first, others, no_match)),
    })
}

fn cipher(provider: Provider, key: &[u8], random: Arc<dyn Random>) -> Result<Arc<dyn Layer>, BuildError> {
    Ok(match provider {
        Provider::AesCbc => Arc::new(AesCbc::new(key, random)?),
        Provider::AesGcm => Arc::new(AesGcm::new(key, random)?),
        Provider::Secretbox => Arc::new(Secretbox::new(key, random)?),
        Provider::Identity | Provider::KmsV1 | Provider::KmsV2 => return Err(BuildError::NotKeyed(provider)),
    })
}
