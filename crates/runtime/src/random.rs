//! The operating system's randomness.

use coffer_types::random::{Random, RandomError};
use parking_lot::Mutex;

/// How much is fetched at once for small requests: 256 UUIDs, or 341 nonces.
const BATCH: usize = 4096;

/// Requests of more bytes than this go straight to the operating system.
const LARGEST_FROM_BATCH: usize = 64;

/// The operating system's random generator.
///
/// Small requests (nonces, UUIDs) are served from a batch, because one system call for each would
/// cost more than encrypting a small value. Bytes that were handed out are wiped from the batch.
pub struct SystemRandom {
    /// Held only while bytes are copied out, and for one system call per [`BATCH`] bytes.
    batch: Mutex<Batch>,
}

struct Batch {
    bytes: [u8; BATCH],
    /// Where the bytes begin that nobody has got yet.
    next: usize,
    /// The process that fetched the batch: a child made by fork(2) must not hand out the same bytes.
    process: u32,
}

impl SystemRandom {
    /// A source with an empty batch.
    pub const fn new() -> Self {
        Self { batch: Mutex::new(Batch { bytes: [0; BATCH], next: BATCH, process: 0 }) }
    }
}

impl Default for SystemRandom {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SystemRandom {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The batch will become keys and nonces, so it is never printed.
        formatter.write_str("SystemRandom")
    }
}

impl Random for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        if LARGEST_FROM_BATCH < buffer.len() {
            return getrandom::fill(buffer).map_err(|_| RandomError);
        }
        let mut batch = self.batch.lock();
        let process = std::process::id();
        if batch.process != process || BATCH - batch.next < buffer.len() {
            // Nothing of a half filled batch may be handed out.
            batch.next = BATCH;
            getrandom::fill(&mut batch.bytes).map_err(|_| RandomError)?;
            batch.next = 0;
            batch.process = process;
        }
        let (from, to) = (batch.next, batch.next + buffer.len());
        buffer.copy_from_slice(&batch.bytes[from..to]);
        batch.bytes[from..to].fill(0);
        batch.next = to;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_answers_are_equal() {
        let random = SystemRandom::new();
        // 12 does not divide the batch, so refills happen in the middle of answers.
        for size in [12, LARGEST_FROM_BATCH, LARGEST_FROM_BATCH + 1] {
            let mut seen = HashSet::new();
            for _ in 0..1000 {
                let mut bytes = vec![0; size];
                random.fill(&mut bytes).expect("the system has randomness");
                assert!(seen.insert(bytes), "{size} bytes came twice");
            }
        }
    }

    #[test]
    fn an_empty_request_is_answered() {
        SystemRandom::new().fill(&mut []).expect("nothing to do");
    }
}
