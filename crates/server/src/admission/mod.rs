//! Admission: plugins that change or refuse objects before they are stored, one a file.
//!
//! Absent on purpose: webhooks and policies, which stand at the end of the chain in a room of their own.

mod amounts;
pub mod certificate_signers;
pub mod limit_ranges;
pub mod namespace_lifecycle;
pub mod node_restriction;
pub mod node_taint;
pub mod pod_priority;
pub mod pod_tolerations;
pub mod quota;
pub mod rbac_escalation;
pub mod runtime_class;
pub mod service_account;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use coffer_types::meta::Meta as _;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use coffer_types::{Status, Value};

pub use self::certificate_signers::CertificateSigners;
pub use self::limit_ranges::LimitRanges;
pub use self::namespace_lifecycle::NamespaceLifecycle;
pub use self::node_restriction::NodeRestriction;
pub use self::node_taint::NodeTaint;
pub use self::pod_priority::PodPriority;
pub use self::pod_tolerations::PodTolerations;
pub use self::quota::Quotas;
pub use self::rbac_escalation::RbacEscalation;
pub use self::runtime_class::RuntimeClasses;
pub use self::service_account::ServiceAccounts;
use crate::authz::Rbac;
use crate::ports::{Admission, AdmissionChain, Authorizer, Objects};

/// What the plugins need.
pub struct Dependencies {
    /// Stored objects.
    pub objects: Arc<dyn Objects>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Names of generated volumes.
    pub random: Arc<dyn Random>,
    /// Roles and bindings.
    pub rbac: Arc<Rbac>,
    /// Who may escalate and bind.
    pub authorizer: Arc<dyn Authorizer>,
}

/// The plugins in upstream's order. The check of roles and bindings comes after all changes, because upstream's
/// storage does it after every change and before validation.
pub fn chain(dependencies: Dependencies) -> AdmissionChain {
    let Dependencies { objects, clock, random, rbac, authorizer } = dependencies;
    vec![
        Arc::new(NamespaceLifecycle::new(objects.clone(), clock.clone())),
        Arc::new(LimitRanges::new(objects.clone())),
        Arc::new(ServiceAccounts::new(objects.clone(), clock.clone(), random)),
        Arc::new(NodeRestriction::new(objects.clone())),
        Arc::new(NodeTaint),
        Arc::new(PodPriority::new(objects.clone())),
        Arc::new(PodTolerations),
        Arc::new(RuntimeClasses::new(objects.clone())),
        Arc::new(CertificateSigners::new(authorizer.clone())),
        Arc::new(RbacEscalation::new(rbac, authorizer)),
        Arc::new(Quotas::new(objects, clock)),
    ]
}

/// The 403 of a refused request; an object without a name yet is called by what its name begins with.
fn forbid(request: &Admission<'_>, object: Option<&Value>, why: impl std::fmt::Display) -> Status {
    let attributes = request.attributes;
    let names = [
        attributes.name.as_str(),
        object.map(|object| object.name()).unwrap_or_default(),
        object.map(|object| object.meta_str("generateName")).unwrap_or_default(),
        "Unknown",
    ];
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    Status::forbidden(&attributes.group, &attributes.resource, name, why)
}
