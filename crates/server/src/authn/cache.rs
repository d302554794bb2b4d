//! Remembers for a moment whose a token is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use coffer_types::random::{Random, RandomError};
use coffer_types::time::Clock;
use parking_lot::Mutex;

use super::{TokenAuthenticator, TokenUser};

/// How long a success is remembered. A failure never is.
pub(super) const SUCCESS_TTL: Duration = Duration::from_secs(10);
/// How many successes are remembered at most; beyond that all are forgotten.
pub(super) const MAX_ENTRIES: usize = 4096;

/// A cache over other authenticators. It holds no tokens, only keyed hashes of them.
pub struct TokenCache {
    inner: Arc<dyn TokenAuthenticator>,
    clock: Arc<dyn Clock>,
    key: hmac::Key,
    entries: Mutex<HashMap<[u8; 32], (Duration, TokenUser)>>,
}

impl TokenCache {
    /// Over `inner`.
    ///
    /// # Errors
    /// When there is no randomness for the key.
    pub fn new(
        inner: Arc<dyn TokenAuthenticator>,
        clock: Arc<dyn Clock>,
        random: &dyn Random,
    ) -> Result<Self, RandomError> {
        let mut key = zeroize::Zeroizing::new([0_u8; 32]);
        random.fill(&mut *key)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &*key);
        Ok(Self { inner, clock, key, entries: Mutex::new(HashMap::new()) })
    }

    /// Each part is hashed with its length, so that no two requests share a key.
    fn key(&self, token: &str, audiences: Option<&[String]>) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.key);
        let mut part = |text: &str| {
            context.update(&text.len().to_be_bytes());
            context.update(text.as_bytes());
        };
        part(token);
        audiences.unwrap_or_default().iter().for_each(|audience| part(audience));
        let mut key = [0; 32];
        key.copy_from_slice(context.sign().as_ref());
        key
    }
}

#[async_trait]
impl TokenAuthenticator for TokenCache {
    async fn authenticate(
        &self,
        token: &str,
        audiences: Option<&[String]>,
    ) -> Result<Option<TokenUser>, String> {
        let key = self.key(token, audiences);
        let now = self.clock.monotonic();
        if let Some((expires, user)) = self.entries.lock().get(&key)
            && now < *expires
        {
            return Ok(Some(user.clone()));
        }
        let found = self.inner.authenticate(token, audiences).await?;
        if let Some(user) = &found {
            let mut entries = self.entries.lock();
            if MAX_ENTRIES <= entries.len() {
                entries.retain(|_, (expires, _)| now < *expires);
                if MAX_ENTRIES <= entries.len() {
                    entries.clear();
                }
            }
            entries.insert(key, (now + SUCCESS_TTL, user.clone()));
        }
        Ok(found)
    }
}
