//! The server's certificate from PEM.

use std::sync::Arc;

use coffer_server::serve::tls::ServerCertificate;
use coffer_types::SecretBytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::exit::Failure;

/// Chain (leaf first) and key.
pub(crate) fn from_pem(
    name: &str,
    chain: &[u8],
    key: &SecretBytes,
) -> Result<Arc<ServerCertificate>, Failure> {
    let refused = |why: String| {
        Failure::problem(format!("{name}: {why}"))
            .next("it must be PEM: the chain, leaf first, and its private key")
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|error| refused(error.to_string()))?;
    if chain.is_empty() {
        return Err(refused("there is no certificate in it".to_owned()));
    }
    // The parser's errors could quote the key.
    let key = PrivateKeyDer::from_pem_slice(key.expose())
        .map_err(|_| refused("the private key cannot be read".to_owned()))?;
    ServerCertificate::new(chain, key).map_err(|error| refused(error.to_string()))
}
