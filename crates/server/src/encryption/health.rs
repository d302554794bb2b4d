//! The health checks of a configuration.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::{Encryption, OnDisk};
use crate::health::{HealthCheck, Simple};

/// Those of a configuration that is reloaded: the plugins are those of the moment.
pub(super) fn reloaded(encryption: &Arc<Encryption>) -> Vec<Arc<dyn HealthCheck>> {
    vec![
        Arc::new(Providers(Arc::downgrade(encryption))),
        // The server serves nobody before the hook has run.
        Arc::new(Simple {
            name: "poststarthook/start-encryption-provider-config-automatic-reload",
            ready_only: false,
            check: Box::new(|| Ok(())),
        }),
    ]
}

/// The check that says when the file is another.
pub(super) fn on_disk(encryption: &Arc<Encryption>) -> Arc<dyn HealthCheck> {
    Arc::new(File(Arc::downgrade(encryption)))
}

/// `kms-providers`, of whatever is in use.
struct Providers(Weak<Encryption>);

#[async_trait]
impl HealthCheck for Providers {
    fn name(&self) -> &str {
        "kms-providers"
    }

    async fn check(&self) -> Result<(), String> {
        let check = self.0.upgrade().and_then(|encryption| encryption.current().plugins_check());
        match check {
            Some(check) => check.check().await,
            None => Ok(()),
        }
    }

    fn live(&self) -> bool {
        false
    }
}

/// Whether the file is what is in use. It never fails: what is in use goes on to work. Why it differs is
/// in the log: everyone may read this.
struct File(Weak<Encryption>);

#[async_trait]
impl HealthCheck for File {
    fn name(&self) -> &str {
        "encryption-config"
    }

    async fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn detail(&self) -> Option<String> {
        match self.0.upgrade()?.on_disk() {
            OnDisk::InUse => None,
            OnDisk::Other { .. } => Some("the file is not the configuration that is in use".to_owned()),
        }
    }

    fn ready_only(&self) -> bool {
        true
    }
}
