//! What the server asks kubelets: the logs of containers.

use std::sync::Arc;

use bytes::Bytes;
use coffer_types::Value;
use http::Request;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where a kubelet listens that does not say so.
const DEFAULT_PORT: i64 = 10250;

/// Why kubelets cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// The client certificate or its key.
    #[error("unable to load the kubelet client certificate: {0}")]
    Client(String),
    /// The certificate authority.
    #[error("unable to load the kubelet certificate authority: {0}")]
    Authority(String),
}

/// A client of all kubelets.
pub struct Kubelets {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    /// `--kubelet-preferred-address-types`.
    address_types: Vec<String>,
}

impl Kubelets {
    /// With PEM of a client certificate, its key, and the authority that kubelets are verified with.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn new(
        certificate: &[u8],
        key: &[u8],
        authority: &[u8],
        address_types: Vec<String>,
    ) -> Result<Self, KubeletError> {
        let client = |error: &dyn std::fmt::Display| KubeletError::Client(error.to_string());
        let authority_error = |error: &dyn std::fmt::Display| KubeletError::Authority(error.to_string());
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            let certificate = certificate.map_err(|_| authority_error(&"it is no PEM"))?;
            roots.add(certificate).map_err(|error| authority_error(&error))?;
        }
        if roots.is_empty() {
            return Err(authority_error(&"it holds no certificate"));
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|_| client(&"the certificate is no PEM"))?;
        // What is wrong with a key is not told in detail.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| client(&"the key is no PEM"))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| client(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| client(&error))?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), address_types })
    }

    /// Where a node's kubelet listens.
    pub(crate) fn address(&self, node: &Value) -> Result<String, String> {
        let addresses = node.at(&["status", "addresses"]).and_then(Value::as_array).unwrap_or_default();
        let of_type = |kind: &String| addresses.iter().find(|one| one.str_at(&["type"]) == kind);
        let Some(found) = self.address_types.iter().find_map(of_type) else {
            let known: Vec<String> = addresses
                .iter()
                .map(|one| format!("{{{} {}}}", one.str_at(&["type"]), one.str_at(&["address"])))
                .collect();
            return Err(format!("no preferred addresses found; known addresses: [{}]", known.join(" ")));
        };
        let port = node.at(&["status", "daemonEndpoints", "kubeletEndpoint", "Port"]).and_then(Value::as_i64);
        let port = port.filter(|port| *port > 0).unwrap_or(DEFAULT_PORT);
        let host = found.str_at(&["address"]);
        Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// The kubelet's answer, as it comes.
    pub(crate) async fn get(&self, address: &str, path: &str) -> Result<http::Response<Incoming>, String> {
        let url = format!("https://{address}{path}");
        let failed = |why: &str| format!("Get {}: {why}", crate::quote(&url));
        let request =
            Request::get(&url).body(Empty::new()).map_err(|_| failed("the address is not valid"))?;
        self.client.request(request).await.map_err(|error| {
            let mut cause: &dyn std::error::Error = &error;
            while let Some(deeper) = cause.source() {
                cause = deeper;
            }
            failed(&cause.to_string())
        })
    }
}
