//! How often each AES-GCM key has encrypted.
//!
//! Every write takes a random nonce of 96 bits, and two equal nonces under one key would give both
//! values away. Kubernetes' documentation asks for a new key after 200,000 writes; nobody can follow
//! that without a count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// After so many writes a key should be replaced.
pub const WRITES_PER_KEY: u64 = 200_000;

/// What values under an AES-GCM key begin with, before the key's name.
const AES_GCM: &str = "k8s:enc:aesgcm:v1:";

/// The writes of one key since the start of the process.
#[derive(Debug)]
pub(crate) struct Writes {
    key: String,
    count: AtomicU64,
}

impl Writes {
    /// Counts one. When the key has been used up, says so and gives true.
    pub(crate) fn count(&self) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let used_up = count.is_multiple_of(WRITES_PER_KEY);
        if used_up {
            tracing::warn!(
                key = self.key,
                writes = count,
                "an aesgcm key has encrypted more often than is safe for ever: put a new key first in the \
                 encryption configuration and rewrite what is stored"
            );
        }
        used_up
    }
}

/// The counts of all keys. One key may encrypt many resources.
#[derive(Debug, Default)]
pub(crate) struct KeyWrites(Mutex<BTreeMap<String, Arc<Writes>>>);

impl KeyWrites {
    /// The count for values that begin with `prefix`; `None` when they are not under an AES-GCM key.
    pub(crate) fn of(&self, prefix: &str) -> Option<Arc<Writes>> {
        let key = prefix.strip_prefix(AES_GCM)?.strip_suffix(':')?;
        let new = || Arc::new(Writes { key: key.to_owned(), count: AtomicU64::new(0) });
        Some(Arc::clone(self.0.lock().entry(key.to_owned()).or_insert_with(new)))
    }

    /// Each key's name and count.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        let keys = self.0.lock();
        keys.iter().map(|(key, writes)| (key.clone(), writes.count.load(Ordering::Relaxed))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s45_the_writes_of_aesgcm_keys_are_counted_and_the_limit_is_told() {
        let writes = KeyWrites::default();
        for prefix in ["", "k8s:enc:aescbc:v1:key1:", "k8s:enc:secretbox:v1:key1:", "k8s:enc:kms:v2:p:"] {
            assert!(writes.of(prefix).is_none(), "{prefix}");
        }
        // A key's name may hold a colon. One key of two resources is one key.
        let key = writes.of("k8s:enc:aesgcm:v1:key:1:").expect("an aesgcm key");
        let same = writes.of("k8s:enc:aesgcm:v1:key:1:").expect("an aesgcm key");
        assert!(!key.count() && !same.count());
        assert_eq!(writes.all(), [("key:1".to_owned(), 2)]);
        for limit in [WRITES_PER_KEY, 2 * WRITES_PER_KEY] {
            key.count.store(limit - 2, Ordering::Relaxed);
            assert_eq!([key.count(), key.count(), key.count()], [false, true, false]);
        }
    }
}
