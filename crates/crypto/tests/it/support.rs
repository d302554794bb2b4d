//! Randomness that is no randomness, and short ways to build what is tested.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coffer_crypto::{NamedKey, PrefixList, Provider, keyed};
use coffer_types::random::{Random, RandomError};

pub(crate) const CONTEXT: &[u8] = b"/registry/secrets/default/s1";
pub(crate) const NO_MATCH: &str = "no matching prefix found";

/// The providers that need a key and are built here.
pub(crate) const KEYED: [Provider; 3] = [Provider::AesCbc, Provider::AesGcm, Provider::Secretbox];

/// Always the same bytes, counted up from the first.
pub(crate) struct Counting(pub(crate) u8);

impl Random for Counting {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        for (byte, value) in buffer.iter_mut().zip(self.0..) {
            *byte = value;
        }
        Ok(())
    }
}

pub(crate) struct Broken;

impl Random for Broken {
    fn fill(&self, _buffer: &mut [u8]) -> Result<(), RandomError> {
        Err(RandomError)
    }
}

/// SplitMix64: the same numbers for the same seed on every machine.
pub(crate) struct Seeded(AtomicU64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub(crate) fn number(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    pub(crate) fn bytes(&self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes).expect("never fails");
        bytes
    }
}

impl Random for Seeded {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

pub(crate) fn key(name: &str, secret: &[u8]) -> NamedKey {
    NamedKey { name: name.to_owned(), secret: secret.to_vec().into() }
}

/// What a configuration with these providers and keys builds.
pub(crate) fn list(providers: &[(Provider, &[NamedKey])], random: Arc<dyn Random>) -> PrefixList {
    let mut entries = providers
        .iter()
        .map(|(provider, keys)| keyed(*provider, keys, &random).expect("keys of the right size"));
    let first = entries.next().expect("at least one provider");
    PrefixList::new(first, entries.collect(), NO_MATCH)
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|digit| !digit.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex digits"))
        .collect()
}

pub(crate) fn counted(first: u8, last: u8) -> Vec<u8> {
    (first..=last).collect()
}
