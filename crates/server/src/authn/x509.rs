//! Client certificates: a chain to the client CA makes the subject a user.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use coffer_types::time::Clock;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::CREDENTIAL_ID;
use crate::ports::UserInfo;

/// Attribute of the subject that holds the user's UID.
const UID_OID: &str = "1.3.6.1.4.1.57683.2";
const COMMON_NAME_OID: &str = "2.5.4.3";
const ORGANIZATION_OID: &str = "2.5.4.10";

/// Why a certificate was not believed. For the log; the client reads "Unauthorized".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// The bytes are no certificate: the client's fault, or the CA file's.
    #[error("malformed certificate: {0}")]
    Malformed(String),
    /// No chain to the client CA that holds now and may be used by clients.
    #[error("verifying certificate SN={serial} failed: {why}")]
    Untrusted {
        /// Serial number.
        serial: String,
        /// What is wrong with the chain.
        why: String,
    },
    /// The subject names no UID, an empty one, or several.
    #[error("{0}")]
    Uid(String),
}

/// Verifies client certificates against a CA.
pub struct X509 {
    anchors: Vec<TrustAnchor<'static>>,
    clock: Arc<dyn Clock>,
}

impl X509 {
    /// From the PEM of one or more CA certificates.
    ///
    /// # Errors
    /// When there is none, or one is malformed.
    pub fn new(ca_pem: &[u8], clock: Arc<dyn Clock>) -> Result<Self, CertificateError> {
        let malformed = |why: &dyn std::fmt::Display| CertificateError::Malformed(why.to_string());
        let mut anchors = Vec::new();
        for der in CertificateDer::pem_slice_iter(ca_pem) {
            let der = der.map_err(|error| malformed(&error))?;
            anchors.push(anchor_from_trusted_cert(&der).map_err(|error| malformed(&error))?.to_owned());
        }
        if anchors.is_empty() {
            return Err(malformed(&"data does not contain any valid certificates"));
        }
        Ok(Self { anchors, clock })
    }

    /// The user of a chain (leaf first); `None` when the leaf names nobody.
    ///
    /// # Errors
    /// When the chain cannot be believed.
    pub fn authenticate(&self, chain: &[Vec<u8>]) -> Result<Option<UserInfo>, CertificateError> {
        let Some((leaf, intermediates)) = chain.split_first() else { return Ok(None) };
        let (_, certificate) = X509Certificate::from_der(leaf)
            .map_err(|error| CertificateError::Malformed(error.to_string()))?;
        self.verify(leaf, intermediates).map_err(|error| CertificateError::Untrusted {
            serial: certificate.tbs_certificate.serial.to_string(),
            why: error.to_string(),
        })?;
        user(&certificate, leaf)
    }

    fn verify(&self, leaf: &[u8], intermediates: &[Vec<u8>]) -> Result<(), webpki::Error> {
        let leaf = CertificateDer::from(leaf);
        let intermediates: Vec<CertificateDer<'_>> =
            intermediates.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let seconds = u64::try_from(self.clock.now().as_second()).unwrap_or(0);
        EndEntityCert::try_from(&leaf)?.verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            &self.anchors,
            &intermediates,
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            KeyUsage::client_auth(),
            None,
            None,
        )?;
        Ok(())
    }
}

fn user(certificate: &X509Certificate<'_>, der: &[u8]) -> Result<Option<UserInfo>, CertificateError> {
    let mut user = UserInfo::default();
    let mut uids = Vec::new();
    for attribute in certificate.subject().iter_attributes() {
        let text = attribute.as_str().ok().map(str::to_owned);
        match (attribute.attr_type().to_id_string().as_str(), text) {
            // The last one counts, as Go fills a name.
            (COMMON_NAME_OID, Some(text)) => user.name = text,
            (ORGANIZATION_OID, Some(text)) => user.groups.push(text),
            (UID_OID, Some(text)) => uids.push(text),
            (UID_OID, None) => {
                return Err(CertificateError::Uid("unable to parse UID into a string".to_owned()));
            }
            _ => {}
        }
    }
    if user.name.is_empty() {
        return Ok(None);
    }
    match uids.as_slice() {
        [] => {}
        [uid] if uid.is_empty() => {
            return Err(CertificateError::Uid("UID cannot be an empty string".to_owned()));
        }
        [uid] => user.uid = uid.clone(),
        many => {
            let shown = many.join(" ");
            return Err(CertificateError::Uid(format!("expected 1 UID, but found multiple: [{shown}]")));
        }
    }
    let mut id = "X509SHA256=".to_owned();
    for byte in digest(&SHA256, der).as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Ok(Some(user))
}
