//! Randomness from a seed, so that a failing run can be replayed.

use coffer_types::random::{Random, RandomError};
use parking_lot::Mutex;

/// A fast generator (SplitMix64). Never for keys outside tests.
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// The next number.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&self, end: u64) -> u64 {
        // The bias is far below what a test could notice.
        self.next_u64() % end
    }

    /// True once in `n` times, on average.
    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }
}

impl Random for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_published_numbers() {
        // From the reference implementation, seed 1234567.
        let random = SeededRandom::new(1_234_567);
        let numbers: Vec<_> = (0..5).map(|_| random.next_u64()).collect();
        let expected: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, expected);
    }
}
