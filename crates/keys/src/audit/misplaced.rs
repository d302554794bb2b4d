//! Ciphertext that was moved: values of aesgcm and of KMS plugins are authenticated with the key they
//! were written as and open under no other, so trying other keys tells where a copy was taken from.
//! Values of aescbc and secretbox open anywhere, and what they hold tells (`place.rs`).

use coffer_crypto::Provider;
use coffer_store::stored_resource::stored_resource;

use super::report::Tally;
use super::verdict::{Auditor, Judged, Verdict};

/// How many copies that no key opens are kept for another try, and how many bytes of them.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 16 << 20;

/// How many pairs of copy and key are tried, so that a store full of damage is still told in time.
const MOST_TRIES: u64 = 5_000_000;

/// How many of them may ask a plugin, which takes some thousand times as long.
const MOST_ASKED: u64 = 10_000;

/// What transformers say of a value whose key or context is another.
const NOT_AUTHENTIC: &str = "message authentication failed";

/// Copies that may have been moved.
#[derive(Default)]
pub(super) struct Suspects {
    copies: Vec<Suspect>,
    bytes: usize,
    tries: u64,
    /// Those of the tries that may have asked a plugin.
    asked: u64,
}

struct Suspect {
    etcd_key: String,
    /// Ciphertext.
    stored: Vec<u8>,
    /// Whether the plugin may have to be asked at each try: data keys of version 1 need not be remembered.
    asks: bool,
    found: bool,
}

impl Suspects {
    /// Keeps a copy if its key could tell.
    pub(super) fn note(&mut self, judged: &Judged<'_>, verdict: &Verdict, etcd_key: &str, stored: &[u8]) {
        let provider = judged.under.as_ref().map(|under| under.provider);
        let bound = matches!(provider, Some(Provider::AesGcm | Provider::KmsV1 | Provider::KmsV2));
        // Any other reason is the same under every key; a plugin that does not answer is not asked again.
        let may_open = matches!(verdict, Verdict::Undecryptable(reason) if reason.contains(NOT_AUTHENTIC));
        let room = self.copies.len() < MOST && self.bytes + stored.len() <= MOST_BYTES;
        if bound && room && may_open {
            self.bytes += stored.len();
            let (etcd_key, stored) = (etcd_key.to_owned(), stored.to_vec());
            let asks = provider == Some(Provider::KmsV1);
            self.copies.push(Suspect { etcd_key, stored, asks, found: false });
        }
    }

    /// Whether there is nothing to try.
    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Tries a key that was or is in use.
    pub(super) fn try_key(&mut self, auditor: &Auditor, candidate: &str, tally: &mut Tally) {
        let Some((resource, _)) = stored_resource(auditor.root(), candidate) else { return };
        for suspect in &mut self.copies {
            let same =
                stored_resource(auditor.root(), &suspect.etcd_key).is_some_and(|own| own.0 == resource);
            if suspect.found || !same || suspect.etcd_key == candidate || self.tries >= MOST_TRIES {
                continue;
            }
            if suspect.asks && self.asked >= MOST_ASKED {
                continue;
            }
            self.tries += 1;
            self.asked += u64::from(suspect.asks);
            if auditor.opens_as(resource, &suspect.stored, candidate.as_bytes()) {
                suspect.found = true;
                tally.moved(&suspect.etcd_key, candidate);
            }
        }
    }
}
