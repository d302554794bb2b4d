//! Client certificates: a chain to the client CA makes the subject a user.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256, digest};
use coffer_types::time::Clock;
use parking_lot::Mutex;
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

/// How many chains are remembered at most; beyond that all are forgotten.
pub(super) const MAX_CHAINS: usize = 1024;

/// Verifies client certificates against a CA.
///
/// A chain that has been verified is remembered while all of its certificates are valid: a client
/// sends the same one with every request, and nothing else that the outcome depends on changes.
pub struct X509 {
    anchors: Vec<TrustAnchor<'static>>,
    clock: Arc<dyn Clock>,
    verified: Mutex<HashMap<[u8; 32], Verified>>,
}

/// What came of a chain that holds.
#[derive(Clone)]
struct Verified {
    /// Seconds of the epoch within which every certificate of the chain is valid.
    valid: RangeInclusive<i64>,
    user: Option<UserInfo>,
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
        Ok(Self { anchors, clock, verified: Mutex::default() })
    }

    /// The user of a chain (leaf first); `None` when the leaf names nobody.
    ///
    /// # Errors
    /// When the chain cannot be believed.
    pub fn authenticate(&self, chain: &[Vec<u8>]) -> Result<Option<UserInfo>, CertificateError> {
        let Some((leaf, intermediates)) = chain.split_first() else { return Ok(None) };
        let now = self.clock.now().as_second();
        let id = chain_id(chain);
        if let Some(known) = self.verified.lock().get(&id)
            && known.valid.contains(&now)
        {
            return Ok(known.user.clone());
        }
        let (_, certificate) = X509Certificate::from_der(leaf)
            .map_err(|error| CertificateError::Malformed(error.to_string()))?;
        self.verify(leaf, intermediates, now).map_err(|error| CertificateError::Untrusted {
            serial: certificate.tbs_certificate.serial.to_string(),
            why: error.to_string(),
        })?;
        let user = user(&certificate, leaf)?;
        if let Some(valid) = validity(chain).filter(|valid| valid.contains(&now)) {
            let mut verified = self.verified.lock();
            if MAX_CHAINS <= verified.len() {
                verified.clear();
            }
            verified.insert(id, Verified { valid, user: user.clone() });
        }
        Ok(user)
    }

    /// How many chains are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.verified.lock().len()
    }

    fn verify(&self, leaf: &[u8], intermediates: &[Vec<u8>], now: i64) -> Result<(), webpki::Error> {
        let leaf = CertificateDer::from(leaf);
        let intermediates: Vec<CertificateDer<'_>> =
            intermediates.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let seconds = u64::try_from(now).unwrap_or(0);
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

/// A hash of the chain, each certificate with its length, so that no two chains share it.
fn chain_id(chain: &[Vec<u8>]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for der in chain {
        context.update(&der.len().to_be_bytes());
        context.update(der);
    }
    let mut id = [0; 32];
    id.copy_from_slice(context.finish().as_ref());
    id
}

/// When all certificates of a chain are valid; `None` when one of them cannot be read.
fn validity(chain: &[Vec<u8>]) -> Option<RangeInclusive<i64>> {
    let (mut from, mut until) = (i64::MIN, i64::MAX);
    for der in chain {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        from = from.max(certificate.validity().not_before.timestamp());
        until = until.min(certificate.validity().not_after.timestamp());
    }
    Some(from..=until)
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
