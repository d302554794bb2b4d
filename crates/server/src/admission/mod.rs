//! Admission: plugins that change or refuse objects before they are stored, one a file.
//!
//! Webhooks stand at the end of the chain in a room of their own. Absent yet: policies, of which only the
//! expressions are checked when they are written ([`policy_expressions`]).

mod asker;
pub mod certificate_signers;
mod expressions;
mod followed;
pub mod limit_ranges;
mod matching;
pub mod namespace_lifecycle;
pub mod node_restriction;
pub mod node_taint;
pub mod owner_references;
pub mod pod_priority;
pub mod pod_tolerations;
pub(crate) mod policy_expressions;
pub mod rbac_escalation;
pub mod resource_quota;
mod rule;
pub mod runtime_class;
pub mod service_account;
pub mod webhooks;

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
pub use self::owner_references::OwnerReferences;
pub use self::pod_priority::PodPriority;
pub use self::pod_tolerations::PodTolerations;
pub use self::rbac_escalation::RbacEscalation;
pub use self::resource_quota::Quotas;
pub use self::runtime_class::RuntimeClasses;
pub use self::service_account::ServiceAccounts;
use self::webhooks::Phase;
pub use self::webhooks::Webhooks;
use crate::authz::Rbac;
use crate::ports::{Admission, AdmissionChain, Admit, Authorizer, Objects};

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
    /// What is on beside the plugins that always are.
    pub enabled: Enabled,
}

/// Plugins that are off unless they are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enabled {
    /// `OwnerReferencesPermissionEnforcement`.
    pub owner_references: bool,
}

/// Plugins that are always on, by upstream's names.
const ALWAYS: [&str; 14] = [
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "Priority",
    "DefaultTolerationSeconds",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
];

impl Enabled {
    /// Reads the names of `--enable-admission-plugins`.
    ///
    /// # Errors
    /// The first name that no plugin here has, in upstream's words.
    pub fn parse<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, String> {
        let mut enabled = Self::default();
        for name in names {
            match name {
                "OwnerReferencesPermissionEnforcement" => enabled.owner_references = true,
                name if ALWAYS.contains(&name) => {}
                name => {
                    let name = crate::quote(name);
                    return Err(format!("enable-admission-plugins plugin {name} is unknown"));
                }
            }
        }
        Ok(enabled)
    }
}

/// The plugins in upstream's order. The check of roles and bindings comes after all changes, because upstream's
/// storage does it after every change and before validation.
pub fn chain(dependencies: Dependencies) -> AdmissionChain {
    let Dependencies { objects, clock, random, rbac, authorizer, enabled } = dependencies;
    let webhooks =
        |phase| Webhooks::new(phase, objects.clone(), clock.clone(), random.clone(), authorizer.clone());
    let mut plugins: AdmissionChain = vec![
        Arc::new(NamespaceLifecycle::new(objects.clone(), clock.clone())),
        Arc::new(LimitRanges::new(objects.clone())),
        Arc::new(ServiceAccounts::new(objects.clone(), clock.clone(), random.clone())),
        Arc::new(NodeRestriction::new(objects.clone())),
        Arc::new(NodeTaint),
        Arc::new(PodPriority::new(objects.clone())),
        Arc::new(PodTolerations),
    ];
    if enabled.owner_references {
        plugins.push(Arc::new(OwnerReferences::new(objects.clone(), authorizer.clone())));
    }
    plugins.push(Arc::new(RuntimeClasses::new(objects.clone())));
    plugins.push(Arc::new(CertificateSigners::new(authorizer.clone())));
    plugins.extend(
        [Phase::Mutating, Phase::Validating].map(|phase| Arc::new(webhooks(phase)) as Arc<dyn Admit>),
    );
    plugins.push(Arc::new(RbacEscalation::new(rbac, authorizer)));
    plugins.push(Arc::new(Quotas::new(objects, clock)));
    plugins
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
