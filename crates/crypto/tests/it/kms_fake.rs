//! A plugin and a clock that tests set.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coffer_crypto::kms::{
    Annotations, CallError, Direction, KmsEncrypted, KmsObserver, KmsStatus, KmsV1Service, KmsV2, KmsV2Parts,
    KmsV2Service,
};
use coffer_crypto::{Entry, PrefixList, Provider};
use coffer_types::SecretBytes;
use coffer_types::time::{Clock, Sleep, Timestamp};

use crate::support::{NO_MATCH, Seeded};

/// Stands still until it is told otherwise. Wall time zero is 2026-01-01T00:00:00Z.
#[derive(Default)]
pub(crate) struct Still(AtomicU64);

impl Still {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn now(&self) -> Timestamp {
        let start: i64 = 1_767_225_600;
        Timestamp::from_second(start + self.0.load(Ordering::SeqCst) as i64).expect("in range")
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn sleep(&self, _duration: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// What the plugin says and does; any field may be changed at any time.
pub(crate) struct Settings {
    pub(crate) status: Result<KmsStatus, CallError>,
    /// The key that encrypts, which a rotation changes before or after the status.
    pub(crate) encrypts_under: String,
    pub(crate) annotations: Annotations,
    /// What fails: calls of these kinds.
    pub(crate) fail_encrypt: Option<CallError>,
    pub(crate) fail_decrypt: Option<CallError>,
}

/// "Encrypts" by turning bytes around behind the name of the key.
pub(crate) struct Plugin {
    pub(crate) settings: Mutex<Settings>,
    pub(crate) encrypted: AtomicUsize,
    pub(crate) decrypted: AtomicUsize,
    pub(crate) uids: Mutex<Vec<String>>,
}

pub(crate) fn disabled() -> CallError {
    CallError::new("FailedPrecondition", "failed precondition - key disabled")
}

fn well(key_id: &str) -> KmsStatus {
    KmsStatus { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id: key_id.to_owned() }
}

impl Plugin {
    pub(crate) fn new(key_id: &str) -> Arc<Self> {
        Arc::new(Self {
            settings: Mutex::new(Settings {
                status: Ok(well(key_id)),
                encrypts_under: key_id.to_owned(),
                annotations: Annotations::new(),
                fail_encrypt: None,
                fail_decrypt: None,
            }),
            encrypted: AtomicUsize::new(0),
            decrypted: AtomicUsize::new(0),
            uids: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.lock().expect("no panic"));
    }

    pub(crate) fn rotate(&self, key_id: &str) {
        self.set(|settings| {
            settings.status = Ok(well(key_id));
            key_id.clone_into(&mut settings.encrypts_under);
        });
    }

    /// Calls so far: encrypt, decrypt.
    pub(crate) fn calls(&self) -> (usize, usize) {
        (self.encrypted.load(Ordering::SeqCst), self.decrypted.load(Ordering::SeqCst))
    }

    fn sealed(&self, plaintext: &SecretBytes) -> Vec<u8> {
        let under = self.settings.lock().expect("no panic").encrypts_under.clone();
        let mut ciphertext = format!("{under}/").into_bytes();
        ciphertext.extend(plaintext.expose().iter().rev());
        ciphertext
    }

    fn opened(ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        let end = ciphertext.iter().position(|byte| *byte == b'/');
        let end = end.ok_or_else(|| CallError::new("InvalidArgument", "no key"))?;
        Ok(SecretBytes::new(ciphertext[end + 1..].iter().rev().copied().collect()))
    }
}

impl KmsV2Service for Plugin {
    fn status(&self) -> Result<KmsStatus, CallError> {
        self.settings.lock().expect("no panic").status.clone()
    }

    fn encrypt(&self, uid: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        self.encrypted.fetch_add(1, Ordering::SeqCst);
        self.uids.lock().expect("no panic").push(uid.to_owned());
        let ciphertext = self.sealed(plaintext);
        let settings = self.settings.lock().expect("no panic");
        match &settings.fail_encrypt {
            Some(error) => Err(error.clone()),
            None => Ok(KmsEncrypted {
                ciphertext,
                key_id: settings.encrypts_under.clone(),
                annotations: settings.annotations.clone(),
            }),
        }
    }

    fn decrypt(&self, uid: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        self.decrypted.fetch_add(1, Ordering::SeqCst);
        self.uids.lock().expect("no panic").push(uid.to_owned());
        if let Some(error) = &self.settings.lock().expect("no panic").fail_decrypt {
            return Err(error.clone());
        }
        Self::opened(&encrypted.ciphertext)
    }
}

impl KmsV1Service for Plugin {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        self.encrypted.fetch_add(1, Ordering::SeqCst);
        if let Some(error) = &self.settings.lock().expect("no panic").fail_encrypt {
            return Err(error.clone());
        }
        Ok(self.sealed(plaintext))
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.decrypted.fetch_add(1, Ordering::SeqCst);
        match &self.settings.lock().expect("no panic").fail_decrypt {
            Some(error) => Err(error.clone()),
            None => Self::opened(ciphertext),
        }
    }
}

/// Writes down what it is told.
#[derive(Default)]
pub(crate) struct Told(pub(crate) Mutex<Vec<String>>);

impl Told {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }

    fn push(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }
}

/// Enough of a hash to tell two apart.
fn short(hash: &str) -> &str {
    hash.get(..11).unwrap_or(hash)
}

impl KmsObserver for Told {
    fn cache_missed(&self) {
        self.push("missed".to_owned());
    }

    fn key_generated(&self, _took: Duration, success: bool) {
        self.push(format!("generated {success}"));
    }

    fn key_used(&self, direction: Direction, provider: &str, key_id_hash: &str) {
        self.push(format!("{} {provider} {}", direction.name(), short(key_id_hash)));
    }

    fn key_in_status(&self, provider: &str, key_id_hash: &str) {
        self.push(format!("status {provider} {}", short(key_id_hash)));
    }

    fn key_id_refused(&self, provider: &str, why: &str) {
        self.push(format!("refused {provider} {why}"));
    }

    fn sources_held(&self, provider: &str, count: usize) {
        self.push(format!("held {provider} {count}"));
    }

    fn keys_held(&self, fraction: f64) {
        self.push(format!("fill {fraction}"));
    }
}

/// One server's provider for a plugin.
pub(crate) struct Server {
    pub(crate) provider: Arc<KmsV2>,
    pub(crate) list: PrefixList,
    pub(crate) clock: Arc<Still>,
    pub(crate) told: Arc<Told>,
}

impl Server {
    pub(crate) fn new(plugin: &Arc<Plugin>, clock: &Arc<Still>, seed: u64) -> Self {
        let told = Arc::new(Told::default());
        let provider = Arc::new(KmsV2::new(KmsV2Parts {
            name: "prov".to_owned(),
            service: plugin.clone(),
            clock: clock.clone(),
            random: Arc::new(Seeded::new(seed)),
            observer: told.clone(),
        }));
        let prefix = format!("{}prov:", Provider::KmsV2.prefix()).into_bytes();
        let list = PrefixList::new(Entry { prefix, layer: provider.clone() }, Vec::new(), NO_MATCH);
        Self { provider, list, clock: clock.clone(), told }
    }

    /// A provider whose plugin has been asked once, and was well.
    pub(crate) fn started(plugin: &Arc<Plugin>) -> Self {
        let server = Self::new(plugin, &Arc::new(Still::default()), 1);
        server.provider.probe().expect("the plugin is well");
        server.told.take();
        server
    }

    pub(crate) fn probe(&self) -> Result<(), String> {
        self.provider.probe().map_err(|error| error.text)
    }
}
