//! Version 2: a seed that the plugin encrypted writes until the plugin names another key.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use coffer_types::SecretBytes;
use coffer_types::random::{Random, uuid};
use coffer_types::time::{Clock, Timestamp, rfc3339};

use super::cache::{Bounded, Key};
use super::invalid::validate_key_id;
use super::object::{self, EncryptedObject, Source, SourceType};
use super::seed::{DataKey, SEED};
use super::state::{self, Action, Health, Held, Named, WRITE_WINDOW};
use super::{Direction, KmsEncrypted, KmsObserver, KmsStatus, KmsV2Service, key_id_hash};
use crate::{Failure, Layer, Plain};

/// How long a decrypted seed is kept since it last wrote or was decrypted.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How many decrypted seeds are kept: upstream has no bound. A cluster has a few for each key of
/// the plugin and each restart of a server.
const MOST_KEPT: usize = 4096;
/// How often a seed that goes on writing is kept anew: at every write would cost, and gain nothing.
const KEEP_ANEW: Duration = Duration::from_secs(60);

/// What a provider is made from.
pub struct KmsV2Parts {
    /// Name of the provider, in the configuration and in stored values.
    pub name: String,
    /// The plugin.
    pub service: Arc<dyn KmsV2Service>,
    /// Tells when a key may write no longer.
    pub clock: Arc<dyn Clock>,
    /// Of seeds, nonces and call names.
    pub random: Arc<dyn Random>,
    /// Who counts.
    pub observer: Arc<dyn KmsObserver>,
}

/// Why a plugin is not well, as health checks tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeError {
    /// What the check that found it says.
    pub text: String,
    /// What checks say that are answered from memory: upstream keeps the bare error of a failed call.
    pub remembered: String,
}

/// A provider: reads at any time once it was well, writes while its plugin is.
///
/// Nothing is written until [`KmsV2::probe`] has found the plugin well.
pub struct KmsV2 {
    parts: KmsV2Parts,
    /// The key that writes. Read by every value, replaced by probes.
    writer: RwLock<Option<Arc<Writer>>>,
    /// Decrypted sources, those of the writer among them.
    kept: Mutex<Bounded<Arc<Kept>>>,
    /// The version in the first answer. Also lets one probe at a time change the writer.
    version: Mutex<Option<String>>,
}

struct Writer {
    kept: Arc<Kept>,
    source: Source,
    cache_key: Key,
    /// What stands behind each value in its stored object.
    tail: Vec<u8>,
    uid: String,
    expires: Duration,
    expires_at: Timestamp,
}

/// A decrypted source.
struct Kept {
    key: DataKey,
    key_id_hash: String,
}

impl KmsV2 {
    /// A provider whose plugin has not been asked yet.
    pub fn new(parts: KmsV2Parts) -> Self {
        Self {
            parts,
            writer: RwLock::new(None),
            kept: Mutex::new(Bounded::new(MOST_KEPT)),
            version: Mutex::new(None),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Asks the plugin how it is, and does what its answer wants.
    pub fn probe(&self) -> Result<(), ProbeError> {
        match self.parts.service.status() {
            Ok(status) => {
                self.evaluate(&status).map_err(|text| ProbeError { remembered: text.clone(), text })
            }
            Err(error) => Err(ProbeError {
                text: format!(
                    "failed to perform status section of the healthz check for KMS Provider {}, error: {error}",
                    self.parts.name
                ),
                remembered: error.to_string(),
            }),
        }
    }

    /// All that is wrong with one answer, after doing what it wants.
    fn evaluate(&self, status: &KmsStatus) -> Result<(), String> {
        let now = self.parts.clock.monotonic();
        let mut version = lock(&self.version);
        let mut problems = health_problems(status, &mut version);
        let health = if problems.is_empty() { Health::Well } else { Health::Unwell };
        let named = validate_key_id(&status.key_id);
        let named = match named {
            Ok(()) => {
                self.parts.observer.key_in_status(&self.parts.name, &key_id_hash(&status.key_id));
                Named::Usable
            }
            Err(error) => {
                self.parts.observer.key_id_refused(&self.parts.name, error.code());
                let hash = key_id_hash(&status.key_id);
                problems.push(format!("got invalid KMSv2 KeyID hash {hash:?}: {error}"));
                Named::Unusable
            }
        };
        let present = self.writer();
        let held = match &present {
            None => Held::Nothing,
            Some(writer) if writer.source.key_id == status.key_id => Held::Same,
            Some(_) => Held::Other,
        };
        match (state::action(health, named, held), &present) {
            (Action::Keep, _) | (Action::Extend, None) => {}
            (Action::Extend, Some(writer)) => self.install(writer.renewed(now, self.parts.clock.now())),
            (Action::Generate, _) => {
                problems.extend(self.rotate(&status.key_id, present.as_deref(), now).err());
            }
        }
        match problems.as_slice() {
            [] => Ok(()),
            _ => Err(format!(
                "kmsv2 Provider {} is not healthy, error: {}",
                self.parts.name,
                aggregate(&problems)
            )),
        }
    }

    /// Makes a seed, has it encrypted, and lets it write if that was under the key of the status.
    fn rotate(&self, key_id: &str, present: Option<&Writer>, now: Duration) -> Result<(), String> {
        let uid = uuid(&*self.parts.random).map_err(|error| error.to_string())?;
        let wall = self.parts.clock.now();
        let made = self.generate(&uid, now, wall);
        let (encrypted_under, failed) = match made {
            Ok(writer) if state::installs(key_id, &writer.source.key_id) => {
                self.install(writer);
                return Ok(());
            }
            Ok(writer) => (writer.source.key_id, "<nil>".to_owned()),
            Err(error) => (String::new(), error),
        };
        let state_error = if present.is_some() { "<nil>" } else { NO_WRITER };
        let expires =
            present.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |writer| rfc3339(writer.expires_at));
        Err(format!(
            "failed to rotate DEK uid={uid:?}, useSeed=true, errState={state_error}, errGen={failed}, \
             statusKeyIDHash={:?}, encryptKeyIDHash={:?}, stateKeyIDHash={:?}, expirationTimestamp={expires}",
            key_id_hash(key_id),
            key_id_hash(&encrypted_under),
            key_id_hash(present.map_or("", |writer| &writer.source.key_id)),
        ))
    }

    fn generate(&self, uid: &str, now: Duration, wall: Timestamp) -> Result<Writer, String> {
        let started = self.parts.clock.monotonic();
        let mut seed = vec![0; SEED];
        let filled = self.parts.random.fill(&mut seed);
        let seed = SecretBytes::new(seed);
        self.parts
            .observer
            .key_generated(self.parts.clock.monotonic().saturating_sub(started), filled.is_ok());
        filled.map_err(|error| error.to_string())?;
        let key = DataKey::new(SourceType::Seed, &seed, &self.parts.random)?;
        let encrypted = self
            .parts
            .service
            .encrypt(uid, &seed)
            .map_err(|error| format!("failed to encrypt DEK, error: {error}"))?;
        let source = Source {
            source_type: key.source_type(),
            encrypted: encrypted.ciphertext,
            key_id: encrypted.key_id,
            annotations: encrypted.annotations,
        };
        // Upstream validates an object with a value that stands for all.
        object::validate(&[0], &source).map_err(|error| error.to_string())?;
        let kept = Arc::new(Kept { key, key_id_hash: key_id_hash(&source.key_id) });
        Ok(Writer {
            kept,
            cache_key: source.cache_key(),
            tail: source.tail(),
            source,
            uid: uid.to_owned(),
            expires: now + WRITE_WINDOW,
            expires_at: plus_window(wall),
        })
    }

    fn writer(&self) -> Option<Arc<Writer>> {
        self.writer.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn install(&self, writer: Writer) {
        *self.writer.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(writer));
    }

    /// The key of a source: remembered, or decrypted by the plugin.
    fn key_of(&self, source: &Source) -> Result<Arc<Kept>, Failure> {
        let cache_key = source.cache_key();
        if let Some(kept) = lock(&self.kept).get(&cache_key) {
            return Ok(kept);
        }
        self.parts.observer.cache_missed();
        let uid = uuid(&*self.parts.random).map_err(|error| Failure::new(error.to_string()))?;
        let encrypted = KmsEncrypted {
            ciphertext: source.encrypted.clone(),
            key_id: source.key_id.clone(),
            annotations: source.annotations.clone(),
        };
        let refused =
            |error: &dyn fmt::Display| Failure::new(format!("failed to decrypt DEK, error: {error}"));
        let plaintext = self.parts.service.decrypt(&uid, &encrypted).map_err(|error| refused(&error))?;
        let key = DataKey::new(source.source_type, &plaintext, &self.parts.random).map_err(Failure::new)?;
        let kept = Arc::new(Kept { key, key_id_hash: key_id_hash(&source.key_id) });
        self.keep(cache_key, &kept);
        Ok(kept)
    }

    fn keep(&self, cache_key: Key, key: &Arc<Kept>) {
        let now = self.parts.clock.monotonic();
        let mut kept = lock(&self.kept);
        if kept.since(&cache_key).is_some_and(|since| now < since + KEEP_ANEW) {
            return;
        }
        kept.drop_older_than(KEPT, now);
        kept.set(cache_key, Arc::clone(key), now);
        let count = kept.len();
        drop(kept);
        self.parts.observer.sources_held(&self.parts.name, count);
    }

    fn may_write(&self) -> Result<Arc<Writer>, Failure> {
        let writer = self.writer().ok_or_else(|| Failure::new(NO_WRITER))?;
        if state::may_write(self.parts.clock.monotonic(), writer.expires) {
            return Ok(writer);
        }
        Err(Failure::new(format!(
            "encryptedDEKSource with keyID hash {:?} expired at {} (current time is {})",
            writer.kept.key_id_hash,
            rfc3339(writer.expires_at),
            rfc3339(self.parts.clock.now()),
        )))
    }
}

/// What a provider says whose plugin was never well.
const NO_WRITER: &str = "got unexpected nil transformer";

impl Layer for KmsV2 {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        let object = EncryptedObject::decode(stored).map_err(|error| Failure::new(error.to_string()))?;
        // Even what is remembered is not read before the plugin was well once, as upstream.
        let writer = self.writer().ok_or_else(|| Failure::new(NO_WRITER))?;
        let kept = self.key_of(&object.source)?;
        let plain = kept.key.open(object.data, context)?;
        self.parts.observer.key_used(Direction::FromStorage, &self.parts.name, &kept.key_id_hash);
        let stale = object.source.key_id != writer.source.key_id
            || object.source.source_type != writer.source.source_type;
        Ok(Plain { stale, ..plain })
    }

    fn sealed_len(&self, plain: usize) -> usize {
        self.writer().map_or(0, |writer| {
            let data = writer.kept.key.sealed_len(plain);
            object::head_len(data) + data + writer.tail.len()
        })
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let writer = self.may_write()?;
        self.keep(writer.cache_key, &writer.kept);
        object::write_head(writer.kept.key.sealed_len(plain.len()), out);
        writer.kept.key.seal_into(plain, context, out)?;
        out.extend_from_slice(&writer.tail);
        self.parts.observer.key_used(Direction::ToStorage, &self.parts.name, &writer.kept.key_id_hash);
        Ok(())
    }
}

impl Writer {
    fn renewed(&self, now: Duration, wall: Timestamp) -> Self {
        Self {
            kept: Arc::clone(&self.kept),
            source: self.source.clone(),
            cache_key: self.cache_key,
            tail: self.tail.clone(),
            uid: self.uid.clone(),
            expires: now + WRITE_WINDOW,
            expires_at: plus_window(wall),
        }
    }
}

impl fmt::Debug for KmsV2 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uid = self.writer().map(|writer| writer.uid.clone());
        formatter.debug_struct("KmsV2").field("name", &self.parts.name).field("writer", &uid).finish()
    }
}

/// What is wrong with health and version. The first version that is known is pinned.
fn health_problems(status: &KmsStatus, pinned: &mut Option<String>) -> Vec<String> {
    let mut problems = Vec::new();
    if status.healthz != "ok" {
        problems.push(format!("got unexpected healthz status: {}", status.healthz));
    }
    if !matches!(status.version.as_str(), "v2" | "v2beta1") {
        problems.push(format!("expected KMSv2 API version v2, got {}", status.version));
    } else if let Some(first) = pinned.as_ref().filter(|first| **first != status.version) {
        problems.push(format!(
            "KMSv2 API version should not change after the initial status response version {first}, got {}",
            status.version
        ));
    } else if pinned.is_none() {
        *pinned = Some(status.version.clone());
    }
    problems
}

/// One text as it is, several as upstream prints a list of errors.
fn aggregate(problems: &[String]) -> String {
    match problems {
        [single] => single.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn plus_window(wall: Timestamp) -> Timestamp {
    wall.checked_add(coffer_types::time::SignedDuration::from_secs(WRITE_WINDOW.as_secs().cast_signed()))
        .unwrap_or(Timestamp::MAX)
}

/// A panic elsewhere cannot have left these half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
