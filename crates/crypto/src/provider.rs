//! The names of the stored forms, and what a stored value says about itself.

use std::fmt;

/// What every encrypted value starts with, whatever the provider.
pub const ENCRYPTED_PREFIX: &[u8] = b"k8s:enc:";

/// A way of storing values at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Provider {
    /// Plaintext.
    Identity,
    /// AES-CBC, not authenticated.
    AesCbc,
    /// AES-GCM, bound to the etcd key.
    AesGcm,
    /// XSalsa20-Poly1305.
    Secretbox,
    /// Envelope encryption by a KMS plugin, version 1.
    KmsV1,
    /// Envelope encryption by a KMS plugin, version 2.
    KmsV2,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 6] =
        [Self::Identity, Self::AesCbc, Self::AesGcm, Self::Secretbox, Self::KmsV1, Self::KmsV2];

    /// What a stored value starts with, up to the name of the key or plugin; empty for identity.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::AesCbc => "k8s:enc:aescbc:v1:",
            Self::AesGcm => "k8s:enc:aesgcm:v1:",
            Self::Secretbox => "k8s:enc:secretbox:v1:",
            Self::KmsV1 => "k8s:enc:kms:v1:",
            Self::KmsV2 => "k8s:enc:kms:v2:",
        }
    }

    /// The name that a person reads: as in an EncryptionConfiguration, KMS with its version.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::AesCbc => "aescbc",
            Self::AesGcm => "aesgcm",
            Self::Secretbox => "secretbox",
            Self::KmsV1 => "kms v1",
            Self::KmsV2 => "kms v2",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Under what a value is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoredUnder {
    /// The provider.
    pub provider: Provider,
    /// The name of the key, or of the KMS plugin; "" for identity.
    pub key_name: String,
}

/// Reads provider and key from the prefix of a stored value; no key is needed.
///
/// A value without `k8s:enc:` is plaintext (identity). `None` means that the value
/// claims to be encrypted, but in no form that is known. A key name ends at the first
/// `:`; a configuration that has names with `:` in them knows better and can say so
/// (`known_names` are tried first, the longest fitting one wins).
pub fn describe(stored: &[u8], known_names: &[&str]) -> Option<StoredUnder> {
    if !stored.starts_with(ENCRYPTED_PREFIX) {
        return Some(StoredUnder { provider: Provider::Identity, key_name: String::new() });
    }
    Provider::ALL.into_iter().filter(|provider| *provider != Provider::Identity).find_map(|provider| {
        let rest = stored.strip_prefix(provider.prefix().as_bytes())?;
        let fits =
            |name: &&&str| rest.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b":"));
        let key_name = match known_names.iter().filter(fits).max_by_key(|name| name.len()) {
            Some(name) => (*name).to_owned(),
            None => first_part(rest)?,
        };
        Some(StoredUnder { provider, key_name })
    })
}

/// The text before the first `:`.
fn first_part(rest: &[u8]) -> Option<String> {
    let end = rest.iter().position(|byte| *byte == b':')?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stored: &[u8], known: &[&str], expected: Option<(Provider, &str)>) {
        let expected = expected.map(|(provider, name)| StoredUnder { provider, key_name: name.to_owned() });
        assert_eq!(describe(stored, known), expected, "{}", String::from_utf8_lossy(stored));
    }

    #[test]
    fn a_stored_value_names_its_provider_and_key() {
        check(b"k8s\0\x0a", &[], Some((Provider::Identity, "")));
        check(b"", &[], Some((Provider::Identity, "")));
        check(b"k8s:enc:aesgcm:v1:key1:\x01\x02:x", &[], Some((Provider::AesGcm, "key1")));
        check(b"k8s:enc:aescbc:v1:key1:", &[], Some((Provider::AesCbc, "key1")));
        check(b"k8s:enc:secretbox:v1:k\xc3\xa9y:", &[], Some((Provider::Secretbox, "k\u{e9}y")));
        check(b"k8s:enc:kms:v1:plugin:\0\x01", &[], Some((Provider::KmsV1, "plugin")));
        check(b"k8s:enc:kms:v2:plugin:\x0a", &[], Some((Provider::KmsV2, "plugin")));
    }

    #[test]
    fn a_form_that_is_not_known_is_not_guessed() {
        check(b"k8s:enc:", &[], None);
        check(b"k8s:enc:aesgcm:v2:key1:", &[], None);
        check(b"k8s:enc:aesgcm:v1:no-end", &[], None);
        check(b"k8s:enc:aesgcm:v1:\xff:", &[], None);
    }

    #[test]
    fn a_known_name_may_hold_a_colon() {
        let stored = b"k8s:enc:aesgcm:v1:a:b:\x01";
        check(stored, &[], Some((Provider::AesGcm, "a")));
        check(stored, &["a", "a:b", "a:b:c"], Some((Provider::AesGcm, "a:b")));
    }
}
