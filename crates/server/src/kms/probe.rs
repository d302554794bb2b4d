//! Asking plugins how they are, for health checks and because the answer moves their keys.

use std::sync::Arc;

use async_trait::async_trait;
use coffer_crypto::kms::poll::{self, LastAnswer};
use coffer_crypto::kms::{KmsV1Service, KmsV2};
use coffer_types::SecretBytes;
use coffer_types::time::Clock;
use parking_lot::Mutex;

use super::client::ClientV1;
use crate::health::HealthCheck;

/// What a plugin of version 1 is asked to encrypt; the answer is not compared.
const PING: &[u8] = b"ping";

/// Who is asked.
pub(super) enum Probed {
    V1 { name: String, service: Arc<ClientV1> },
    V2(Arc<KmsV2>),
}

/// A plugin with its last answer.
pub(super) struct Probe {
    probed: Probed,
    clock: Arc<dyn Clock>,
    /// Held while the plugin is asked: who comes meanwhile gets the answer of the one before.
    last: Mutex<LastAnswer>,
}

impl Probe {
    pub(super) fn new(probed: Probed, clock: Arc<dyn Clock>) -> Self {
        Self { probed, clock, last: Mutex::new(LastAnswer::default()) }
    }

    pub(super) fn name(&self) -> &str {
        match &self.probed {
            Probed::V1 { name, .. } => name,
            Probed::V2(provider) => provider.name(),
        }
    }

    /// Whether answers change what is written.
    pub(super) fn has_state(&self) -> bool {
        matches!(self.probed, Probed::V2(_))
    }

    /// Asks, unless the last answer still counts. Blocks as long as the plugin takes.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut last = self.last.lock();
        if let Some(answer) = last.fresh(self.clock.monotonic()) {
            return answer;
        }
        // Two texts, as upstream: the bare error is what is remembered.
        let (told, remembered) = match self.ask() {
            Ok(()) => (Ok(()), Ok(())),
            Err((told, remembered)) => (Err(told), Err(remembered)),
        };
        last.keep(remembered, self.clock.monotonic());
        told
    }

    fn ask(&self) -> Result<(), (String, String)> {
        match &self.probed {
            Probed::V2(provider) => provider.probe().map_err(|error| (error.text, error.remembered)),
            Probed::V1 { name, service } => {
                let failed = |section: &str, error: &dyn std::fmt::Display| {
                    let text = format!(
                        "failed to perform {section} section of the healthz check for KMS Provider {name}, error: \
                         {error}"
                    );
                    (text, error.to_string())
                };
                let encrypted = service
                    .encrypt(&SecretBytes::new(PING.to_vec()))
                    .map_err(|error| failed("encrypt", &error))?;
                service.decrypt(&encrypted).map(drop).map_err(|error| failed("decrypt", &error))
            }
        }
    }
}

/// As [`Probe::check`], in a thread of its own: the process need not wait for it to end.
async fn check(probe: &Arc<Probe>) -> Result<(), String> {
    let probe = Arc::clone(probe);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let started = std::thread::Builder::new().name("kms-plugin-check".to_owned()).spawn(move || {
        // Who asked may have gone.
        let _ = sender.send(probe.check());
    });
    started.map_err(|error| format!("cannot start a thread: {error}"))?;
    receiver.await.unwrap_or_else(|_| Err("the check ended early".to_owned()))
}

/// Asks at the pace of the last answer, for ever.
pub(super) async fn poll(probe: Arc<Probe>, clock: Arc<dyn Clock>) {
    // The plugin was asked at the start.
    let mut well = probe.last.lock().fresh(clock.monotonic()).is_some_and(|answer| answer.is_ok());
    loop {
        clock.sleep(poll::next(well)).await;
        let checked = check(&probe).await;
        match &checked {
            Err(error) => tracing::warn!(provider = probe.name(), error, "the KMS plugin is not well"),
            Ok(()) if !well => tracing::info!(provider = probe.name(), "the KMS plugin is well again"),
            Ok(()) => {}
        }
        well = checked.is_ok();
    }
}

/// The check of one plugin, by its place in the file.
pub(super) struct One {
    name: String,
    probe: Arc<Probe>,
}

impl One {
    pub(super) fn new(index: usize, probe: &Arc<Probe>) -> Self {
        Self { name: format!("kms-provider-{index}"), probe: Arc::clone(probe) }
    }
}

#[async_trait]
impl HealthCheck for One {
    fn name(&self) -> &str {
        &self.name
    }

    async fn check(&self) -> Result<(), String> {
        check(&self.probe).await
    }

    fn live(&self) -> bool {
        false
    }
}

/// The check of all plugins.
pub(super) struct All(Vec<Arc<Probe>>);

impl All {
    pub(super) fn new(probes: Vec<Arc<Probe>>) -> Self {
        Self(probes)
    }
}

#[async_trait]
impl HealthCheck for All {
    fn name(&self) -> &str {
        "kms-providers"
    }

    /// One after the other, as upstream.
    async fn check(&self) -> Result<(), String> {
        let mut errors = Vec::new();
        for (index, probe) in self.0.iter().enumerate() {
            if let Err(error) = check(probe).await {
                errors.push(format!("kms-provider-{index}: {error}"));
            }
        }
        match errors.as_slice() {
            [] => Ok(()),
            [single] => Err(single.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn live(&self) -> bool {
        false
    }
}
