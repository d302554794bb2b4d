//! From the bytes of a file to a configuration that can be used.

use std::sync::Arc;

use coffer_config::ConfigError;
use coffer_config::encryption::reload::content_hash;
use coffer_config::encryption::{self, Reload, Transformers};
use coffer_runtime::metrics::Registry;
use coffer_types::random::Random;
use coffer_types::time::Clock;

use super::InUse;
use super::transform_metrics::TransformMetrics;
use crate::kms::{PluginMetrics, PluginParts, Plugins};

/// What configurations are loaded with.
pub struct LoaderParts {
    /// What the file is called in errors.
    pub file: String,
    /// Whether the file takes effect whenever it changes.
    pub reload: Reload,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Of nonces and seeds.
    pub random: Arc<dyn Random>,
    /// Where is counted.
    pub metrics: Arc<Registry>,
    /// The feature gate `KMSv1`.
    pub allow_kms_v1: bool,
}

/// Loads a configuration as often as its file changes.
pub struct Loader {
    parts: LoaderParts,
    /// One for all loads: series of a plugin are dropped when they are too many.
    plugin_metrics: PluginMetrics,
    transform_metrics: Arc<TransformMetrics>,
}

/// Why a file cannot be used. No text holds bytes of a key.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file breaks rules.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The thread that calls plugins.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The plugins could not be asked.
    #[error("a KMS plugin could not be asked")]
    Asking,
}

impl Loader {
    /// Loads nothing yet.
    pub fn new(parts: LoaderParts) -> Self {
        Self {
            plugin_metrics: PluginMetrics::new(&parts.metrics, Arc::clone(&parts.clock)),
            transform_metrics: Arc::new(TransformMetrics::new(&parts.metrics)),
            parts,
        }
    }

    /// What the file is called.
    pub fn file(&self) -> &str {
        &self.parts.file
    }

    /// Where is counted.
    pub fn metrics(&self) -> &Arc<Registry> {
        &self.parts.metrics
    }

    pub(super) fn reload(&self) -> Reload {
        self.parts.reload
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// Parses and builds. Each plugin has been asked once and is asked on: one that does not answer is
    /// no failure, since it may come up later.
    ///
    /// # Errors
    /// When the file breaks a rule.
    pub async fn load(&self, bytes: &[u8]) -> Result<InUse, LoadError> {
        let LoaderParts { file, reload, clock, random, allow_kms_v1, .. } = &self.parts;
        let config = encryption::parse(file, bytes, *reload)?;
        let mut plugins = Plugins::new(PluginParts {
            clock: Arc::clone(clock),
            random: Arc::clone(random),
            metrics: self.plugin_metrics.clone(),
            allow_v1: *allow_kms_v1,
        })
        .map_err(LoadError::Thread)?;
        let transformers = Transformers::build_with(file, &config, Arc::clone(random), &mut plugins)?
            .observed(Arc::clone(clock), self.transform_metrics.clone());
        let plugins = tokio::task::spawn_blocking(move || {
            plugins.ask_once();
            plugins
        })
        .await
        .map_err(|_| LoadError::Asking)?;
        Ok(InUse {
            transformers: Arc::new(transformers),
            polling: Some(tokio::spawn(plugins.poll()).abort_handle()),
            plugins: Some(plugins),
            hash: content_hash(bytes),
            rules: config.shown(),
        })
    }
}
