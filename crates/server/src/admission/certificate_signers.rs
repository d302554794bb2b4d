//! Who may approve and sign certificates, and for whom none are asked: the plugins
//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_types::validation::pem;
use coffer_types::{Status, Value};
use x509_parser::prelude::FromDer as _;

use super::forbid;
use crate::ports::{Admission, Admit, Attributes, Authorizer, Decision, Operation};

const GROUP: &str = "certificates.k8s.io";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

/// The plugins.
pub struct CertificateSigners {
    authorizer: Arc<dyn Authorizer>,
}

impl CertificateSigners {
    /// `authorizer` decides on `approve` and `sign` of signers.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer }
    }

    /// Whether the user may do that for a signer, by its name or for its whole domain.
    async fn may(&self, request: &Admission<'_>, verb: &str, signer: &str) -> bool {
        let domain = signer.split('/').next().unwrap_or_default();
        for name in [signer.to_owned(), format!("{domain}/*")] {
            let attributes = Attributes {
                user: request.attributes.user.clone(),
                verb: verb.to_owned(),
                group: GROUP.to_owned(),
                version: "*".to_owned(),
                resource: "signers".to_owned(),
                subresource: String::new(),
                namespace: String::new(),
                name,
                selected_node: String::new(),
                resource_request: true,
                path: String::new(),
            };
            if matches!(self.authorizer.authorize(&attributes).await.0, Decision::Allow(_)) {
                return true;
            }
        }
        false
    }
}

#[async_trait]
impl Admit for CertificateSigners {
    async fn validate(
        &self,
        request: &Admission<'_>,
        object: Option<&Value>,
        _warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let attributes = request.attributes;
        let Some(object) = object
            .filter(|_| attributes.group == GROUP && attributes.resource == "certificatesigningrequests")
        else {
            return Ok(());
        };
        let signer = request.old.unwrap_or(object).str_at(&["spec", "signerName"]).to_owned();
        let verb = match (request.operation, attributes.subresource.as_str()) {
            (Operation::Create, "") => {
                return match asks_for_masters(object) {
                    true => {
                        let why =
                            format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
                        Err(forbid(request, Some(object), why))
                    }
                    false => Ok(()),
                };
            }
            (Operation::Update, "approval") => "approve",
            (Operation::Update, "status") if issues(object, request.old) => "sign",
            _ => return Ok(()),
        };
        if self.may(request, verb, &signer).await {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {}", crate::quote(&signer));
        Err(forbid(request, Some(object), why))
    }
}

/// Whether a write of the status issues a certificate or says that it failed.
fn issues(new: &Value, old: Option<&Value>) -> bool {
    let certificate = ["status", "certificate"];
    let failed = |request: &Value| {
        let conditions = request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        conditions.iter().filter(|one| one.str_at(&["type"]) == "Failed").cloned().collect::<Vec<_>>()
    };
    let before = old.map(failed).unwrap_or_default();
    new.at(&certificate) != old.and_then(|old| old.at(&certificate)) || failed(new) != before
}

/// Whether a client certificate is asked for whose bearer would be above all rules.
fn asks_for_masters(request: &Value) -> bool {
    if request.str_at(&["spec", "signerName"]) != CLIENT_SIGNER {
        return false;
    }
    let Some(bytes) = request.at(&["spec", "request"]).and_then(Value::as_bytes) else { return false };
    pem::blocks(bytes.expose()).iter().any(|block| {
        let Ok((_, parsed)) =
            x509_parser::certification_request::X509CertificationRequest::from_der(block.der.expose())
        else {
            return false;
        };
        let mut groups = parsed.certification_request_info.subject.iter_organization();
        groups.any(|group| group.as_str().is_ok_and(|group| group == MASTERS))
    })
}
