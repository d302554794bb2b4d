//! References from a store to Secrets, ConfigMaps and service accounts, and who may follow them.

use base64::Engine as _;
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

/// Where a CA bundle is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub struct CaProvider {
    /// `Secret` or `ConfigMap`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The key in it.
    pub key: String,
    /// Its namespace; only a cluster store may name one.
    pub namespace: Option<String>,
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

/// The PEM text of a CA, inline or from the cluster; `None` for the system's roots.
pub async fn certificate_authority(
    bundle: &str,
    provider: Option<&CaProvider>,
    scope: &Scope,
    access: &dyn Access,
) -> Result<Option<Vec<u8>>, ProviderError> {
    if !bundle.is_empty() {
        return decode_bundle(bundle.as_bytes()).map(Some);
    }
    let Some(provider) = provider else { return Ok(None) };
    if scope.cluster && provider.namespace.is_none() {
        return Err(ProviderError::Config("missing namespace on caProvider secret".to_owned()));
    }
    let namespace = scope.resolve(provider.namespace.as_deref());
    let pem = match provider.kind.as_str() {
        "Secret" => {
            let selector = SecretKeySelector {
                name: provider.name.clone(),
                namespace: provider.namespace.clone(),
                key: provider.key.clone(),
            };
            let value = selector.read(scope, access, "").await;
            value.map_err(|error| {
                error.context("failed to get cert from secret: failed to resolve secret key ref")
            })?
        }
        "ConfigMap" => {
            let (name, key) = (&provider.name, &provider.key);
            let failed = |why: String| {
                ProviderError::Config(format!("failed to get caProvider configMap {name} -> {key}: {why}"))
            };
            let data = access.config_map(namespace, name).await.map_err(failed)?;
            let value = data.get(key).ok_or_else(|| failed("there is no such key".to_owned()))?;
            SecretBytes::from(value.clone())
        }
        other => return Err(ProviderError::Config(format!("unsupported CA provider type: {other}"))),
    };
    decode_bundle(pem.expose()).map(Some)
}

/// PEM, or base64 of PEM once more.
fn decode_bundle(bundle: &[u8]) -> Result<Vec<u8>, ProviderError> {
    const MARK: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let is_pem = |text: &[u8]| text.windows(MARK.len()).any(|window| window == MARK);
    let mut text = bundle.to_vec();
    // `caBundle` is base64 in the object, and users encode once more by accident.
    for _ in 0..2 {
        if is_pem(&text) {
            return Ok(text);
        }
        let kept: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let engines =
            [&base64::engine::general_purpose::STANDARD, &base64::engine::general_purpose::URL_SAFE];
        let Some(decoded) = engines.into_iter().find_map(|engine| engine.decode(&kept).ok()) else {
            return Err(ProviderError::Config(
                "failed to decode ca bundle: failed to decode base64".to_owned(),
            ));
        };
        text = decoded;
    }
    if is_pem(&text) {
        return Ok(text);
    }
    Err(ProviderError::Config("failed to parse the new certificate, not valid pem data".to_owned()))
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

    #[test]
    fn bundles_are_decoded_twice_at_most() {
        let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        let once = base64::engine::general_purpose::STANDARD.encode(pem);
        let twice = base64::engine::general_purpose::STANDARD.encode(&once);
        for good in [pem, &once, &twice] {
            assert_eq!(decode_bundle(good.as_bytes()).unwrap(), pem.as_bytes());
        }
        for bad in ["%%%", "aGVsbG8=", ""] {
            assert!(matches!(decode_bundle(bad.as_bytes()), Err(ProviderError::Config(_))), "{bad}");
        }
    }
}
