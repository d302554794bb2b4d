//! Hands what decides about requests to the server that asks.

use std::sync::Arc;
use std::time::Duration;

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
        kubelets: None,
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

/// How long the store may take to answer its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckTimeouts {
    health: Duration,
    ready: Duration,
}

impl CheckTimeouts {
    /// Of `etcd` and of `etcd-readiness`; none stands for the default, as upstream.
    pub(crate) fn new(health: Duration, ready: Duration) -> Self {
        let or_default = |given: Duration| if given.is_zero() { DEFAULT_TIMEOUT } else { given };
        Self { health: or_default(health), ready: or_default(ready) }
    }
}

impl Default for CheckTimeouts {
    fn default() -> Self {
        Self { health: DEFAULT_TIMEOUT, ready: DEFAULT_TIMEOUT }
    }
}

/// The checks `etcd` and `etcd-readiness`.
pub(crate) fn store_checks(
    kv: &Arc<dyn Kv>,
    clock: &Arc<dyn Clock>,
    prefix: &str,
    timeouts: CheckTimeouts,
) -> Vec<Arc<dyn HealthCheck>> {
    let check = |name, ready_only, timeout| -> Arc<dyn HealthCheck> {
        let check = StoreCheck::new(kv.clone(), clock.clone(), prefix, timeout);
        Arc::new(StoreHealth { name, ready_only, check })
    };
    vec![check("etcd", false, timeouts.health), check("etcd-readiness", true, timeouts.ready)]
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

#[cfg(test)]
mod tests {
    use coffer_sim::SimClock;

    use super::*;
    use crate::control_plane::slow_store::SlowStore;

    /// TestCreateReadycheck: each check has a time of its own, and none given means the default.
    #[tokio::test]
    async fn each_check_of_the_store_has_its_own_time() {
        let seconds = Duration::from_secs;
        for (given, last) in [
            (CheckTimeouts::default(), [2, 2]),
            (CheckTimeouts::new(Duration::ZERO, Duration::ZERO), [2, 2]),
            (CheckTimeouts::new(seconds(10), Duration::ZERO), [10, 2]),
            (CheckTimeouts::new(seconds(3), seconds(5)), [3, 5]),
        ] {
            let clock = SimClock::default();
            let (kv, time): (Arc<dyn Kv>, Arc<dyn Clock>) =
                (Arc::new(SlowStore::new(1)), Arc::new(clock.clone()));
            let mut waiting = store_checks(&kv, &time, "/registry", given)
                .into_iter()
                .map(|check| tokio::spawn(async move { check.check().await }))
                .collect::<Vec<_>>();
            let mut ended = [0; 2];
            for second in 1..=11 {
                // The checks come to wait, or to their end.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                clock.advance(seconds(1));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                for (check, ended) in waiting.iter().zip(&mut ended) {
                    if *ended == 0 && check.is_finished() {
                        *ended = second;
                    }
                }
            }
            assert_eq!(ended, last, "{given:?}");
            for check in &mut waiting {
                let error = check.await.expect("no panic").expect_err("too slow");
                assert_eq!(error, "error getting data from etcd: context deadline exceeded");
            }
        }
    }
}
