//! The KMS plugins of an encryption configuration: connections, health checks and polling.
//!
//! What is stored and which key writes is decided in `coffer_crypto::kms`; here are the
//! calls, the clock's turns and the counting.

mod calls;
mod client;
mod endpoint;
mod metrics;
mod probe;

use std::sync::Arc;
use std::time::Duration;

use coffer_config::encryption::{KMS_V1_DEPRECATED, Kms, KmsPlugins};
use coffer_crypto::Layer;
use coffer_crypto::kms::{KmsV1, KmsV2, KmsV2Parts};
use coffer_runtime::metrics::Registry;
use coffer_types::random::Random;
use coffer_types::time::Clock;
use futures::future::join_all;

use crate::health::HealthCheck;
use calls::CallThread;
use client::{ClientV1, ClientV2, Connection};
use metrics::Metrics;
use probe::{Probe, Probed};

pub use endpoint::socket_name;

/// What plugins are connected with.
pub struct PluginParts {
    /// Ends calls that take too long, and times everything else.
    pub clock: Arc<dyn Clock>,
    /// Of seeds, nonces and call names.
    pub random: Arc<dyn Random>,
    /// Where is counted.
    pub metrics: PluginMetrics,
    /// The feature gate `KMSv1`.
    pub allow_v1: bool,
}

/// What is counted about plugins: one for all loads of a configuration.
#[derive(Clone)]
pub struct PluginMetrics(Arc<Metrics>);

impl PluginMetrics {
    /// Counts in `registry`.
    pub fn new(registry: &Registry, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Metrics::new(registry, clock)))
    }
}

/// The plugins of one load of a configuration.
pub struct Plugins {
    parts: PluginParts,
    metrics: Arc<Metrics>,
    calls: Arc<CallThread>,
    probes: Vec<Arc<Probe>>,
    /// Twice this is how long an old set may still be in use after a new one took its place.
    timeouts: Duration,
    has_v1: bool,
}

impl Plugins {
    /// No plugin yet; the configuration brings them.
    ///
    /// # Errors
    /// When the thread that makes the calls cannot be started.
    pub fn new(parts: PluginParts) -> std::io::Result<Self> {
        Ok(Self {
            metrics: Arc::clone(&parts.metrics.0),
            calls: Arc::new(CallThread::start()?),
            parts,
            probes: Vec::new(),
            timeouts: Duration::ZERO,
            has_v1: false,
        })
    }

    /// Asks every plugin once. One that is not well is no failure: it is asked again.
    ///
    /// Blocks as long as they take to answer.
    pub fn ask_once(&self) {
        for probe in &self.probes {
            if let Err(error) = probe.check() {
                tracing::info!(provider = probe.name(), error, "kms plugin failed health check probe");
            }
        }
    }

    /// Goes on asking the plugins of version 2: each answer moves their keys. Those of version 1
    /// have no state; only health checks ask them.
    pub fn poll(&self) -> impl Future<Output = ()> + Send + 'static {
        let clock = Arc::clone(&self.parts.clock);
        let polled = self.probes.iter().filter(|probe| probe.has_state());
        let loops: Vec<_> = polled.map(|probe| probe::poll(Arc::clone(probe), Arc::clone(&clock))).collect();
        async move {
            join_all(loops).await;
        }
    }

    /// The checks, as upstream names them: one for each plugin when one of them is of version 1 and
    /// the configuration is not reloaded, else one for all.
    pub fn health_checks(&self, reloaded: bool) -> Vec<Arc<dyn HealthCheck>> {
        if reloaded || !self.has_v1 {
            if self.probes.is_empty() && !reloaded {
                return Vec::new();
            }
            return vec![Arc::new(probe::All::new(self.probes.clone()))];
        }
        let each = self.probes.iter().enumerate();
        each.map(|(index, probe)| Arc::new(probe::One::new(index, probe)) as Arc<dyn HealthCheck>).collect()
    }

    /// How long the old set stays open after a reload.
    pub fn close_grace_period(&self) -> Duration {
        self.timeouts * 2
    }
}

impl KmsPlugins for Plugins {
    fn connect(&mut self, kms: &Kms) -> Result<Arc<dyn Layer>, String> {
        let v1 = kms.api_version == "v1";
        if v1 && !self.parts.allow_v1 {
            return Err(KMS_V1_DEPRECATED.to_owned());
        }
        let timeout = Duration::from_nanos(u64::try_from(kms.timeout).unwrap_or_default());
        let connection = Connection::new(&kms.name, &kms.endpoint, timeout, &self.parts.clock, &self.calls)
            .map_err(|error| {
            let version = if v1 { "KMSv1" } else { "KMSv2" };
            format!("could not configure {version}-Plugin's probe {:?}, error: {error}", kms.name)
        })?;
        let (probed, layer): (Probed, Arc<dyn Layer>) = if v1 {
            let service = Arc::new(ClientV1::new(connection));
            let size = kms.cache_size.unwrap_or_default();
            let (clock, random) = (Arc::clone(&self.parts.clock), Arc::clone(&self.parts.random));
            let layer = KmsV1::new(service.clone(), size, clock, random, self.metrics.clone());
            // Its health check makes two calls.
            self.timeouts += timeout * 2;
            self.has_v1 = true;
            tracing::warn!(
                provider = kms.name,
                "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
            );
            (Probed::V1 { name: kms.name.clone(), service }, Arc::new(layer))
        } else {
            let provider = Arc::new(KmsV2::new(KmsV2Parts {
                name: kms.name.clone(),
                service: Arc::new(ClientV2::new(connection, self.metrics.clone())),
                clock: Arc::clone(&self.parts.clock),
                random: Arc::clone(&self.parts.random),
                observer: self.metrics.clone(),
            }));
            self.timeouts += timeout;
            (Probed::V2(provider.clone()), provider)
        };
        self.probes.push(Arc::new(Probe::new(probed, Arc::clone(&self.parts.clock))));
        Ok(layer)
    }
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.probes.iter().map(|probe| probe.name())).finish()
    }
}
