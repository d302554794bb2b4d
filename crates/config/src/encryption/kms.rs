//! Where the KMS plugins of a configuration come in.

use std::sync::Arc;

use coffer_crypto::{Failure, Layer, Plain};

use super::Kms;

/// Why a plugin of version 1 is refused unless its feature gate is on; upstream's words.
pub const KMS_V1_DEPRECATED: &str = "KMSv1 is deprecated and will only receive security updates going forward. \
                                     Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 \
                                     feature.";

/// Connects plugins.
pub trait KmsPlugins {
    /// The layer behind the prefix of `kms`. Called once for each `kms` element of a file, in order.
    fn connect(&mut self, kms: &Kms) -> Result<Arc<dyn Layer>, String>;
}

/// Connects none: enough to check a configuration, and to read what other providers wrote.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconnected {
    /// Whether plugins of version 1 are taken.
    pub allow_v1: bool,
}

impl KmsPlugins for Unconnected {
    fn connect(&mut self, kms: &Kms) -> Result<Arc<dyn Layer>, String> {
        if kms.api_version == "v1" && !self.allow_v1 {
            return Err(KMS_V1_DEPRECATED.to_owned());
        }
        Ok(Arc::new(NotConnected { name: kms.name.clone() }))
    }
}

struct NotConnected {
    name: String,
}

impl NotConnected {
    fn refused(&self) -> Failure {
        Failure::new(format!("the KMS plugin {:?} is not connected", self.name))
    }
}

impl Layer for NotConnected {
    fn open(&self, _stored: &[u8], _context: &[u8]) -> Result<Plain, Failure> {
        Err(self.refused())
    }

    fn sealed_len(&self, _plain: usize) -> usize {
        0
    }

    fn seal_into(&self, _plain: &[u8], _context: &[u8], _out: &mut Vec<u8>) -> Result<(), Failure> {
        Err(self.refused())
    }
}
