//! The encryption configuration that is in use: loaded, told about, and replaced while the server runs.
//!
//! When a new file takes its place is decided in [`coffer_config::encryption::reload`]; how a plugin is
//! asked, in [`crate::kms`]. Absent on purpose: the file itself. It is a port, [`ConfigFile`].

mod health;
mod loader;
mod metrics;
mod reloader;
mod transform_metrics;

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use coffer_config::encryption::{Reload, ShownRule, Transformers};
use coffer_types::SecretBytes;
use parking_lot::Mutex;

use crate::health::HealthCheck;
use crate::kms::Plugins;
use metrics::Metrics;

pub use loader::{LoadError, Loader, LoaderParts};
pub use reloader::{Reloader, SETTLE, Vet};

/// The configuration's file.
#[async_trait]
pub trait ConfigFile: Send + Sync + 'static {
    /// Everything in it; an error is text that names no content.
    async fn read(&self) -> Result<SecretBytes, String>;

    /// Completes when the file may have changed since it was last read. It need not notice: the file is
    /// looked at every minute all the same.
    async fn changed(&self);
}

/// A configuration with everything that it needs.
pub struct InUse {
    transformers: Arc<Transformers>,
    plugins: Option<Plugins>,
    /// Its plugins are asked as long as it is open.
    polling: Option<tokio::task::AbortHandle>,
    hash: String,
    rules: Vec<ShownRule>,
}

impl InUse {
    /// No configuration: nothing is encrypted.
    fn none() -> Self {
        Self {
            transformers: Arc::new(Transformers::identity()),
            plugins: None,
            polling: None,
            hash: String::new(),
            rules: Vec::new(),
        }
    }

    /// What encrypts.
    pub fn transformers(&self) -> Arc<Transformers> {
        Arc::clone(&self.transformers)
    }

    /// What identifies the file that it was read from; "" without one.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Its rules, with the check values of its keys.
    pub fn rules(&self) -> &[ShownRule] {
        &self.rules
    }

    /// The check of its plugins.
    fn plugins_check(&self) -> Option<Arc<dyn HealthCheck>> {
        self.plugins.as_ref()?.health_checks(true).into_iter().next()
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(polling) = &self.polling {
            polling.abort();
        }
    }
}

/// How the file and what is in use stand to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnDisk {
    /// The file holds what is in use.
    InUse,
    /// It holds something else, or cannot be read.
    Other {
        /// Why it is not in use; for the log and for administrators.
        why: String,
    },
}

/// What a server uses now. Everything that it tells is told from here.
pub struct Encryption {
    current: ArcSwap<InUse>,
    reload: Reload,
    on_disk: Mutex<OnDisk>,
    /// `None` without a configuration.
    metrics: Option<Metrics>,
}

impl Encryption {
    /// Nothing is encrypted, and there is no file.
    pub fn none() -> Arc<Self> {
        Arc::new(Self {
            current: ArcSwap::from_pointee(InUse::none()),
            reload: Reload::Never,
            on_disk: Mutex::new(OnDisk::InUse),
            metrics: None,
        })
    }

    /// Uses what `loader` loaded at the start.
    pub fn start(loader: &Loader, loaded: InUse) -> Arc<Self> {
        let metrics = Metrics::new(loader);
        metrics.in_use(&loaded);
        metrics.on_disk(&OnDisk::InUse);
        Arc::new(Self {
            current: ArcSwap::from_pointee(loaded),
            reload: loader.reload(),
            on_disk: Mutex::new(OnDisk::InUse),
            metrics: Some(metrics),
        })
    }

    /// What is in use at this moment. Who holds it keeps it usable.
    pub fn current(&self) -> Arc<InUse> {
        self.current.load_full()
    }

    /// How the file stood to it when it was last looked at.
    pub fn on_disk(&self) -> OnDisk {
        self.on_disk.lock().clone()
    }

    /// The health checks that a server with this configuration has.
    pub fn health_checks(self: &Arc<Self>) -> Vec<Arc<dyn HealthCheck>> {
        if self.metrics.is_none() {
            return Vec::new();
        }
        let mut checks = match self.reload {
            Reload::Automatic => health::reloaded(self),
            Reload::Never => self
                .current()
                .plugins
                .as_ref()
                .map(|plugins| plugins.health_checks(false))
                .unwrap_or_default(),
        };
        checks.push(health::on_disk(self));
        checks
    }

    fn replace(&self, new: Arc<InUse>) -> Arc<InUse> {
        if let Some(metrics) = &self.metrics {
            metrics.in_use(&new);
        }
        self.current.swap(new)
    }

    fn count(&self, success: bool) {
        if let Some(metrics) = &self.metrics {
            metrics.reloaded(success);
        }
    }

    /// Whether that is news.
    fn note_on_disk(&self, now: OnDisk) -> bool {
        if let Some(metrics) = &self.metrics {
            metrics.on_disk(&now);
        }
        let mut last = self.on_disk.lock();
        let news = *last != now;
        *last = now;
        news
    }
}
