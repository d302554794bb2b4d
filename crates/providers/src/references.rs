//! References from a store to Secrets, ConfigMaps and service accounts, and who may follow them.

use coffer_types::SecretBytes;
use serde::Deserialize;

use crate::contract::{Access, ProviderError, Scope};

const CROSS_NAMESPACE: &str =
    "namespace should either be empty or match the namespace of the SecretStore for a namespaced SecretStore";

/// A key of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct SecretKeySelector {
    /// Name of the Secret.
    pub name: String,
    /// Its namespace; only a cluster store may name one.
    pub namespace: Option<String>,
    /// The key in it.
    pub key: String,
}

/// A service account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct ServiceAccountSelector {
    /// Its name.
    pub name: String,
    /// Its namespace; only a cluster store may name one.
    pub namespace: Option<String>,
    /// Audiences of its token.
    pub audiences: Vec<String>,
}

impl Scope {
    /// The namespace that a reference leads to. A namespaced store never leaves its own.
    pub fn resolve<'a>(&'a self, namespace: Option<&'a str>) -> &'a str {
        match namespace {
            Some(other) if self.cluster && !other.is_empty() => other,
            _ => &self.namespace,
        }
    }

    /// Refuses a reference of a namespaced store into another namespace.
    pub fn check_namespace(&self, namespace: Option<&str>) -> Result<(), ProviderError> {
        match namespace {
            Some(other) if !self.cluster && other != self.namespace => {
                Err(ProviderError::Config(CROSS_NAMESPACE.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether a reference depends on who asks.
    pub fn is_referent(&self, namespace: Option<&str>) -> bool {
        self.cluster && namespace.is_none_or(str::is_empty)
    }
}

impl SecretKeySelector {
    /// The value, at `default_key` when the selector names none.
    pub async fn read(
        &self,
        scope: &Scope,
        access: &dyn Access,
        default_key: &str,
    ) -> Result<SecretBytes, ProviderError> {
        let namespace = scope.resolve(self.namespace.as_deref());
        let data = access.secret(namespace, &self.name).await.map_err(|why| {
            let name = &self.name;
            ProviderError::Auth(format!(
                "cannot get Kubernetes secret {name:?} from namespace {namespace:?}: {why}"
            ))
        })?;
        let key = if self.key.is_empty() { default_key } else { &self.key };
        data.get(key)
            .cloned()
            .ok_or_else(|| ProviderError::Auth(format!("cannot find secret data for key: {key:?}")))
    }

    /// The value as text without surrounding white space, as most stores want it.
    pub async fn read_text(
        &self,
        scope: &Scope,
        access: &dyn Access,
        default_key: &str,
    ) -> Result<SecretBytes, ProviderError> {
        let value = self.read(scope, access, default_key).await?;
        match std::str::from_utf8(value.expose()) {
            Ok(text) => Ok(SecretBytes::from(text.trim().to_owned())),
            Err(_) => Err(ProviderError::Auth(format!("the secret {:?} is not valid UTF-8", self.name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(cluster: bool) -> Scope {
        Scope { cluster, store: "s".to_owned(), namespace: "own".to_owned() }
    }

    #[test]
    fn s19_a_namespaced_store_never_leaves_its_namespace() {
        let cases = [
            (false, None, "own", true),
            (false, Some("own"), "own", true),
            (false, Some("other"), "own", false),
            (true, None, "own", true),
            (true, Some("other"), "other", true),
        ];
        for (cluster, namespace, resolved, allowed) in cases {
            assert_eq!(scope(cluster).resolve(namespace), resolved, "{cluster} {namespace:?}");
            assert_eq!(scope(cluster).check_namespace(namespace).is_ok(), allowed, "{cluster} {namespace:?}");
        }
    }
}
