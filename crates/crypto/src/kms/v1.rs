//! Version 1: every value has its own data key, which the plugin encrypts.
//!
//! `length(2) encrypted-key nonce(12) ciphertext tag(16)`. Kubernetes before 1.25 wrote
//! AES-CBC behind the encrypted key; such a value is still read, and is stale.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use coffer_types::SecretBytes;
use coffer_types::random::Random;
use coffer_types::time::Clock;

use super::cache::{Bounded, Key};
use super::{Direction, KmsObserver, KmsV1Service};
use crate::{AesCbc, AesGcm, BuildError, Failure, Layer, Plain};

const DATA_KEY: usize = 32;

/// A provider of version 1.
pub struct KmsV1 {
    service: Arc<dyn KmsV1Service>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    observer: Arc<dyn KmsObserver>,
    /// Data keys by their encrypted form; `None` when the configuration switches it off.
    cache: Option<Mutex<Cache>>,
}

struct Cache {
    keys: Bounded<Arc<DataKey>>,
    bound: usize,
    /// When it was last asked, in either direction.
    asked: [Option<Duration>; 2],
}

/// What a data key opens: the form of today, and the one before.
struct DataKey {
    gcm: AesGcm,
    cbc: AesCbc,
}

impl DataKey {
    fn new(key: &SecretBytes, random: &Arc<dyn Random>) -> Result<Self, BuildError> {
        Ok(Self {
            gcm: AesGcm::new(key.expose(), Arc::clone(random))?,
            cbc: AesCbc::new(key.expose(), Arc::clone(random))?,
        })
    }

    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        let first = match self.gcm.open(stored, context) {
            Ok(plain) => return Ok(plain),
            Err(failure) => failure,
        };
        match self.cbc.open(stored, context) {
            Ok(plain) => Ok(Plain { stale: true, ..plain }),
            Err(second) => Err(Failure::join(vec![first.clone(), second]).unwrap_or(first)),
        }
    }
}

impl KmsV1 {
    /// A provider that remembers `cache_size` data keys; none when that is not positive.
    pub fn new(
        service: Arc<dyn KmsV1Service>,
        cache_size: i32,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        observer: Arc<dyn KmsObserver>,
    ) -> Self {
        let bound = usize::try_from(cache_size).unwrap_or(0);
        let cache =
            (bound > 0).then(|| Mutex::new(Cache { keys: Bounded::new(bound), bound, asked: [None, None] }));
        Self { service, clock, random, observer, cache }
    }

    fn key_of(&self, encrypted: &[u8]) -> Result<Arc<DataKey>, Failure> {
        let cache_key = cache_key(encrypted);
        if let Some(cache) = &self.cache {
            self.note_asked(cache, Direction::FromStorage);
            let found = cache.lock().unwrap_or_else(PoisonError::into_inner).keys.get_and_renew(&cache_key);
            match found {
                Some(key) => return Ok(key),
                None => self.observer.cache_missed(),
            }
        }
        let key = self.service.decrypt(encrypted).map_err(|error| Failure::new(error.text))?;
        let key = DataKey::new(&key, &self.random).map_err(|error| Failure::new(error.to_string()))?;
        Ok(self.keep(cache_key, key))
    }

    fn keep(&self, cache_key: Key, key: DataKey) -> Arc<DataKey> {
        let key = Arc::new(key);
        if let Some(cache) = &self.cache {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.keys.set(cache_key, Arc::clone(&key), self.clock.monotonic());
            let fraction = cache.keys.len() as f64 / cache.bound as f64;
            drop(cache);
            self.observer.keys_held(fraction);
        }
        key
    }

    fn note_asked(&self, cache: &Mutex<Cache>, direction: Direction) {
        let now = self.clock.monotonic();
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        let last = cache.asked[usize::from(direction == Direction::ToStorage)].replace(now);
        drop(cache);
        if let Some(last) = last {
            self.observer.key_asked(direction, now.saturating_sub(last));
        }
    }

    fn generate(&self) -> Result<SecretBytes, Failure> {
        let started = self.clock.monotonic();
        let mut key = vec![0; DATA_KEY];
        let filled = self.random.fill(&mut key);
        let key = SecretBytes::new(key);
        self.observer.key_generated(self.clock.monotonic().saturating_sub(started), filled.is_ok());
        filled.map(|()| key).map_err(|error| Failure::new(error.to_string()))
    }
}

fn cache_key(encrypted: &[u8]) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, encrypted).as_ref());
    key
}

/// The encrypted data key of a stored value, and the value under it; `None` when it is cut.
pub fn split_v1(stored: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = stored.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

impl Layer for KmsV1 {
    fn open(&self, stored: &[u8], context: &[u8]) -> Result<Plain, Failure> {
        let (encrypted, value) = split_v1(stored).ok_or_else(|| {
            Failure::new(
                "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data",
            )
        })?;
        self.key_of(encrypted)?.open(value, context)
    }

    /// The encrypted key's length is the plugin's; this is the least.
    fn sealed_len(&self, plain: usize) -> usize {
        2 + DATA_KEY + AesGcm::sealed_len_of(plain)
    }

    fn seal_into(&self, plain: &[u8], context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let key = self.generate()?;
        let encrypted = self.service.encrypt(&key).map_err(|error| Failure::new(error.text))?;
        let length = u16::try_from(encrypted.len()).map_err(|_| {
            Failure::new(format!(
                "cryptobyte: pending child length {} exceeds 2-byte length prefix",
                encrypted.len()
            ))
        })?;
        if let Some(cache) = &self.cache {
            self.note_asked(cache, Direction::ToStorage);
        }
        let key = DataKey::new(&key, &self.random).map_err(|error| Failure::new(error.to_string()))?;
        let key = self.keep(cache_key(&encrypted), key);
        out.reserve(2 + encrypted.len() + key.gcm.sealed_len(plain.len()));
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&encrypted);
        key.gcm.seal_into(plain, context, out)
    }
}

impl fmt::Debug for KmsV1 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KmsV1")
    }
}
