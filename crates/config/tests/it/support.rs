//! Short ways to load.

use std::sync::Arc;

use coffer_config::ConfigError;
use coffer_config::encryption::{EncryptionConfiguration, Reload, Transformers, parse};
use coffer_types::random::{Random, RandomError};

pub(crate) const FILE: &str = "encryption.yaml";

pub(crate) struct Counting(pub(crate) u8);

impl Random for Counting {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        for (byte, value) in buffer.iter_mut().zip((self.0..=u8::MAX).cycle()) {
            *byte = value;
        }
        Ok(())
    }
}

pub(crate) fn load(text: &str) -> Result<EncryptionConfiguration, ConfigError> {
    parse(FILE, text.as_bytes(), Reload::Never)
}

pub(crate) fn build(text: &str) -> Result<Transformers, ConfigError> {
    Transformers::build(FILE, &load(text)?, Arc::new(Counting(0)))
}
