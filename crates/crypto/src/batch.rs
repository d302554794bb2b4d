//! Randomness bought in bulk.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use coffer_types::random::{Random, RandomError};
use zeroize::{Zeroize, Zeroizing};

/// How much is asked for at once: 340 nonces of AES-GCM, and still one page.
const BATCH: usize = 4096;

/// Hands out bytes of a buffer that is filled from another source, each byte once.
///
/// A call to the operating system costs as much as sealing a small Secret does; this
/// makes one of hundreds. A byte is wiped from the buffer when it is handed out, and a
/// failed refill hands out nothing.
pub struct BatchedRandom {
    source: Arc<dyn Random>,
    /// Guards the buffer and how much of it is used up: together, so that no byte
    /// goes to two callers.
    batch: Mutex<Batch>,
}

struct Batch {
    bytes: Zeroizing<[u8; BATCH]>,
    used: usize,
}

impl BatchedRandom {
    /// Draws from `source`.
    pub fn new(source: Arc<dyn Random>) -> Self {
        Self { source, batch: Mutex::new(Batch { bytes: Zeroizing::new([0; BATCH]), used: BATCH }) }
    }
}

impl Random for BatchedRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        if BATCH < buffer.len() {
            return self.source.fill(buffer);
        }
        // A panic of another caller cannot have left a byte that was handed out marked as free.
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        if BATCH - batch.used < buffer.len() {
            batch.used = BATCH;
            self.source.fill(&mut *batch.bytes)?;
            batch.used = 0;
        }
        let start = batch.used;
        batch.used += buffer.len();
        let end = batch.used;
        buffer.copy_from_slice(&batch.bytes[start..end]);
        batch.bytes[start..end].zeroize();
        Ok(())
    }
}

impl fmt::Debug for BatchedRandom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("BatchedRandom")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    /// Counts up, so that a byte handed out twice shows.
    #[derive(Default)]
    struct Counter {
        next: AtomicU64,
        broken: AtomicBool,
    }

    impl Random for Counter {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
            if self.broken.load(Ordering::SeqCst) {
                return Err(RandomError);
            }
            for chunk in buffer.chunks_mut(8) {
                let number = self.next.fetch_add(1, Ordering::SeqCst).to_le_bytes();
                chunk.copy_from_slice(&number[..chunk.len()]);
            }
            Ok(())
        }
    }

    #[test]
    fn no_bytes_are_handed_out_twice_by_many_threads() {
        let random = BatchedRandom::new(Arc::new(Counter::default()));
        let seen = Mutex::new(HashSet::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut nonce = [0; 8];
                        random.fill(&mut nonce).expect("the source works");
                        assert!(seen.lock().expect("no panic").insert(nonce), "handed out twice");
                    }
                });
            }
        });
        assert_eq!(seen.into_inner().expect("no panic").len(), 8_000);
    }

    #[test]
    fn more_than_a_batch_comes_straight_from_the_source() {
        let random = BatchedRandom::new(Arc::new(Counter::default()));
        let mut large = vec![0; BATCH + 8];
        random.fill(&mut large).expect("the source works");
        assert_eq!(large[BATCH..], 512_u64.to_le_bytes());
    }

    #[test]
    fn a_failed_source_hands_out_nothing_and_may_recover() {
        let source = Arc::new(Counter::default());
        let random = BatchedRandom::new(Arc::clone(&source) as Arc<dyn Random>);
        source.broken.store(true, Ordering::SeqCst);
        let mut nonce = [7; 8];
        assert!(random.fill(&mut nonce).is_err());
        assert_eq!(nonce, [7; 8]);
        source.broken.store(false, Ordering::SeqCst);
        assert!(random.fill(&mut nonce).is_ok());
        assert_eq!(nonce, [0; 8]);
    }
}
