//! Hands what decides about requests to the server that asks.

use std::sync::Arc;

use coffer_server::api::{Policy, Route};
use coffer_server::health::HealthCheck;
use coffer_server::security::Security;
use coffer_server::tokens::discovery::{self, Documents};
use coffer_store::health::{DEFAULT_TIMEOUT, HealthCheck as StoreCheck};
use coffer_store::kv::Kv;
use coffer_types::time::Clock;

/// The server's side of `security`.
pub(crate) fn policy(security: &Security) -> Policy {
    Policy {
        authenticator: security.authn.clone(),
        authorizer: security.authorizer.clone(),
        admission: security.admission.clone(),
        create_only: security.create_only.clone(),
        // An issuer that is no URL has no documents, as upstream.
        routes: security.discovery.as_ref().map(token_documents).unwrap_or_default(),
        health_checks: Vec::new(),
    }
}

fn token_documents(documents: &Documents) -> Vec<Route> {
    let route = |path, content_type, body: &str| {
        Route::fixed(path, content_type, discovery::CACHE_CONTROL, body.as_bytes().to_vec())
    };
    vec![
        route(discovery::CONFIGURATION_PATH, discovery::CONFIGURATION_CONTENT_TYPE, &documents.configuration),
        route(discovery::JWKS_PATH, discovery::JWKS_CONTENT_TYPE, &documents.jwks),
    ]
}

/// The checks `etcd` and `etcd-readiness`.
pub(crate) fn store_checks(
    kv: &Arc<dyn Kv>,
    clock: &Arc<dyn Clock>,
    prefix: &str,
) -> Vec<Arc<dyn HealthCheck>> {
    let check = |name, ready_only| -> Arc<dyn HealthCheck> {
        let check = StoreCheck::new(kv.clone(), clock.clone(), prefix, DEFAULT_TIMEOUT);
        Arc::new(StoreHealth { name, ready_only, check })
    };
    vec![check("etcd", false), check("etcd-readiness", true)]
}

struct StoreHealth {
    name: &'static str,
    ready_only: bool,
    check: StoreCheck,
}

#[async_trait::async_trait]
impl HealthCheck for StoreHealth {
    fn name(&self) -> &str {
        self.name
    }

    fn ready_only(&self) -> bool {
        self.ready_only
    }

    async fn check(&self) -> Result<(), String> {
        self.check.check().await
    }
}
