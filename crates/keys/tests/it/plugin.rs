//! A KMS plugin within the test, of both versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use coffer_config::encryption::{Kms, KmsPlugins};
use coffer_crypto::Layer;
use coffer_crypto::kms::{
    Annotations, CallError, KmsEncrypted, KmsStatus, KmsV1, KmsV1Service, KmsV2, KmsV2Parts, KmsV2Service,
    Unobserved,
};
use coffer_sim::{SeededRandom, SimClock};
use coffer_types::SecretBytes;

/// "Encrypts" by turning the bytes around.
#[derive(Clone, Default)]
pub(crate) struct Plugin(Arc<State>);

#[derive(Default)]
struct State {
    failing: AtomicBool,
    decrypted: AtomicUsize,
}

impl Plugin {
    /// Decrypts nothing any more.
    pub(crate) fn fail(&self) {
        self.0.failing.store(true, Ordering::SeqCst);
    }

    /// How often it was asked to decrypt.
    pub(crate) fn decrypted(&self) -> usize {
        self.0.decrypted.load(Ordering::SeqCst)
    }

    fn turned(bytes: &[u8]) -> Vec<u8> {
        bytes.iter().rev().copied().collect()
    }

    fn open(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.0.decrypted.fetch_add(1, Ordering::SeqCst);
        match self.0.failing.load(Ordering::SeqCst) {
            true => Err(CallError::new("Unavailable", "as the test wants it")),
            false => Ok(SecretBytes::new(Self::turned(ciphertext))),
        }
    }
}

impl KmsV1Service for Plugin {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        Ok(Self::turned(plaintext.expose()))
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.open(ciphertext)
    }
}

impl KmsV2Service for Plugin {
    fn status(&self) -> Result<KmsStatus, CallError> {
        Ok(KmsStatus { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id: "1".to_owned() })
    }

    fn encrypt(&self, _: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        let ciphertext = Self::turned(plaintext.expose());
        Ok(KmsEncrypted { ciphertext, key_id: "1".to_owned(), annotations: Annotations::new() })
    }

    fn decrypt(&self, _: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        self.open(&encrypted.ciphertext)
    }
}

impl KmsPlugins for Plugin {
    fn connect(&mut self, kms: &Kms) -> Result<Arc<dyn Layer>, String> {
        let (service, clock) = (Arc::new(self.clone()), Arc::new(SimClock::default()));
        // Another seed each time, as another server would have.
        let random = Arc::new(SeededRandom::new(Arc::as_ptr(&service) as u64));
        if kms.api_version == "v1" {
            return Ok(Arc::new(KmsV1::new(service, 10, clock, random, Arc::new(Unobserved))));
        }
        let (name, observer) = (kms.name.clone(), Arc::new(Unobserved));
        let provider = KmsV2::new(KmsV2Parts { name, service, clock, random, observer });
        provider.probe().map_err(|error| error.text)?;
        Ok(Arc::new(provider))
    }
}
