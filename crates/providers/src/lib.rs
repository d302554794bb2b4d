//! One module and one feature per external store.
//!
//! [`contract`] is what the operator knows; a provider knows nothing of the
//! operator. What a provider needs from the cluster it asks through
//! [`contract::Access`], so that credentials are read, cached and counted in one
//! place. Absent on purpose: redirects, unbounded bodies, and error texts that
//! quote a value.

pub mod contract;
pub mod duration;
#[cfg(feature = "fake")]
pub mod fake;
pub mod https;
mod json;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "openbao")]
pub mod open_bao;
mod property;
pub mod references;
pub mod strategies;
#[cfg(any(feature = "vault", feature = "openbao", feature = "kubernetes"))]
mod trust;
#[cfg(any(feature = "vault", feature = "openbao"))]
pub mod vault;

use contract::Provider;

/// Every provider that is built in.
pub fn all() -> Vec<std::sync::Arc<dyn Provider>> {
    vec![
        #[cfg(feature = "fake")]
        std::sync::Arc::new(fake::Fake),
        #[cfg(feature = "kubernetes")]
        std::sync::Arc::new(kubernetes::Kubernetes),
        #[cfg(feature = "openbao")]
        std::sync::Arc::new(open_bao::OpenBao),
        #[cfg(feature = "vault")]
        std::sync::Arc::new(vault::Vault),
    ]
}
