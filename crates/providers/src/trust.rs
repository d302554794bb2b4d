//! Whom a store's server must be: its certificate authority, inline or kept in the cluster.

use base64::Engine as _;
use coffer_types::SecretBytes;
use serde::Deserialize;

use crate::contract::{Access, ProviderError, Scope};
use crate::references::SecretKeySelector;

/// Where a CA bundle is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(default)]
pub(crate) struct CaProvider {
    /// `Secret` or `ConfigMap`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// The key in it.
    pub(crate) key: String,
    /// Its namespace; only a cluster store may name one.
    pub(crate) namespace: Option<String>,
}

/// The CA that a store's server is verified with. It stands beside the server's address in each specification.
#[derive(Deserialize, Default, Clone)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Trust {
    pub(crate) ca_bundle: String,
    pub(crate) ca_provider: Option<CaProvider>,
}

impl Trust {
    /// Its PEM text, inline or from the cluster; `None` for the system's roots.
    pub(crate) async fn authority(
        &self,
        scope: &Scope,
        access: &dyn Access,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        if !self.ca_bundle.is_empty() {
            return decode_bundle(self.ca_bundle.as_bytes()).map(Some);
        }
        match &self.ca_provider {
            Some(provider) => provider.read(scope, access).await,
            None => Ok(None),
        }
    }

    /// Whether the CA lies with who asks.
    pub(crate) fn is_referent(&self, scope: &Scope) -> bool {
        self.ca_provider.as_ref().is_some_and(|provider| scope.is_referent(provider.namespace.as_deref()))
    }
}

impl CaProvider {
    async fn read(&self, scope: &Scope, access: &dyn Access) -> Result<Option<Vec<u8>>, ProviderError> {
        let provider = self;
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
                    ProviderError::Config(format!(
                        "failed to get caProvider configMap {name} -> {key}: {why}"
                    ))
                };
                let data = access.config_map(namespace, name).await.map_err(failed)?;
                let value = data.get(key).ok_or_else(|| failed("there is no such key".to_owned()))?;
                SecretBytes::from(value.clone())
            }
            other => return Err(ProviderError::Config(format!("unsupported CA provider type: {other}"))),
        };
        decode_bundle(pem.expose()).map(Some)
    }
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
