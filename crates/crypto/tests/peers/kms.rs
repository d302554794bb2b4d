//! The plugin that the other side has too: AES-GCM under the sample's key.

use std::sync::Arc;
use std::time::Duration;

use coffer_crypto::kms::{
    Annotations, CallError, KmsEncrypted, KmsStatus, KmsV1, KmsV1Service, KmsV2, KmsV2Parts, KmsV2Service,
    Unobserved,
};
use coffer_crypto::{AesGcm, Entry, Layer, NamedKey, Provider, TransformError};
use coffer_types::SecretBytes;
use coffer_types::time::{Clock, Sleep, Timestamp};

use crate::support::Seeded;

const ANNOTATION: &str = "key.example.com";

struct Plugin {
    name: String,
    cipher: AesGcm,
}

fn text(error: coffer_crypto::Failure) -> CallError {
    CallError { text: TransformError::from(error).to_string() }
}

impl Plugin {
    fn seal(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        let mut sealed = Vec::new();
        self.cipher.seal_into(plaintext.expose(), self.name.as_bytes(), &mut sealed).map_err(text)?;
        Ok(sealed)
    }

    fn open(&self, sealed: &[u8]) -> Result<SecretBytes, CallError> {
        Ok(self.cipher.open(sealed, self.name.as_bytes()).map_err(text)?.bytes)
    }
}

impl KmsV1Service for Plugin {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        self.seal(plaintext)
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.open(ciphertext)
    }
}

impl KmsV2Service for Plugin {
    fn status(&self) -> Result<KmsStatus, CallError> {
        Ok(KmsStatus { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id: self.name.clone() })
    }

    fn encrypt(&self, _: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        let annotations = Annotations::from([(ANNOTATION.to_owned(), self.name.clone().into_bytes())]);
        Ok(KmsEncrypted { ciphertext: self.seal(plaintext)?, key_id: self.name.clone(), annotations })
    }

    fn decrypt(&self, _: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        let annotation = encrypted.annotations.get(ANNOTATION).map(Vec::as_slice);
        if encrypted.key_id != self.name || annotation != Some(self.name.as_bytes()) {
            return Err(CallError { text: "another key's".to_owned() });
        }
        self.open(&encrypted.ciphertext)
    }
}

struct Start;

impl Clock for Start {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// The provider behind its prefix; `None` when it is none of a plugin.
pub(crate) fn entry(provider: Provider, key: &NamedKey, random: &Arc<Seeded>) -> Option<Entry> {
    let plugin = || {
        let cipher = AesGcm::new(key.secret.expose(), random.clone()).expect("a key of the right size");
        Arc::new(Plugin { name: key.name.clone(), cipher })
    };
    let layer: Arc<dyn Layer> = match provider {
        Provider::KmsV1 => {
            Arc::new(KmsV1::new(plugin(), -1, Arc::new(Start), random.clone(), Arc::new(Unobserved)))
        }
        Provider::KmsV2 => {
            let provider = KmsV2::new(KmsV2Parts {
                name: key.name.clone(),
                service: plugin(),
                clock: Arc::new(Start),
                random: random.clone(),
                observer: Arc::new(Unobserved),
            });
            provider.probe().expect("the plugin is well");
            Arc::new(provider)
        }
        _ => return None,
    };
    Some(Entry { prefix: format!("{}{}:", provider.prefix(), key.name).into_bytes(), layer })
}
