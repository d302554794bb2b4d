//! What repeats: sequences of bytes as they are, each followed by a copy of something before.

/// Bytes of a block at most.
pub(super) const BLOCK: usize = 32 * 1024;
/// How far back a copy may reach; deflate allows no more.
const REACH: usize = 32 * 1024;
/// The block and what is before it: a place is a number of 16 bits.
const ROOM: usize = REACH + BLOCK;
/// Reads of several bytes may go beyond the last place.
const SLACK: usize = 8;
/// Bits of a hash: so many places are remembered at most.
const HASH_BITS: u32 = 14;
/// Shortest copy that is looked for.
const SHORTEST: usize = 4;
/// Longest copy that deflate knows.
pub(super) const LONGEST: usize = 258;
/// Shortest copy that deflate knows.
const LEAST: usize = 3;
/// Nothing is looked for in the last bytes of a block.
const END: usize = 12;
/// After so many searches in vain, given as a power of two, the steps become longer by one.
const PATIENCE: u32 = 4;

/// Bytes as they are, and then a copy.
#[derive(Clone, Copy)]
pub(super) struct Sequence {
    /// How many bytes stand as they are.
    pub(super) literals: u16,
    /// How many are copied; 0 in the last sequence of a block.
    pub(super) length: u16,
    /// From how far back.
    pub(super) distance: u16,
}

/// The last bytes, and where what was seen in them.
pub(super) struct Window {
    bytes: Box<[u8; ROOM + SLACK]>,
    /// Where the block begins.
    start: usize,
    end: usize,
    /// The last place of what has this hash. A place that is out of date does no harm: what is there is compared.
    places: Box<[u16; 1 << HASH_BITS]>,
    sequences: Vec<Sequence>,
}

impl Window {
    pub(super) fn new() -> Self {
        let bytes = vec![0; ROOM + SLACK].into_boxed_slice();
        let places = vec![0; 1 << HASH_BITS].into_boxed_slice();
        Self {
            bytes: bytes.try_into().unwrap_or_else(|_| Box::new([0; ROOM + SLACK])),
            start: 0,
            end: 0,
            places: places.try_into().unwrap_or_else(|_| Box::new([0; 1 << HASH_BITS])),
            sequences: Vec::new(),
        }
    }

    /// Whether the block has to be written before more is taken in.
    pub(super) fn is_full(&self) -> bool {
        self.end - self.start == BLOCK
    }

    /// Takes bytes into the block, and gives those for which there is no room.
    pub(super) fn take_in<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let count = bytes.len().min(self.start + BLOCK - self.end);
        let (now, later) = bytes.split_at(count);
        self.bytes[self.end..self.end + count].copy_from_slice(now);
        self.end += count;
        later
    }

    /// The block as sequences: its bytes, and the sequences that make them.
    pub(super) fn sequences(&mut self) -> (&[u8], &[Sequence]) {
        self.sequences.clear();
        let mut written = self.start;
        if END < self.end - self.start {
            self.search(&mut written);
        }
        self.push(self.end - written, 0, 0);
        (&self.bytes[self.start..self.end], &self.sequences)
    }

    fn search(&mut self, written: &mut usize) {
        let limit = self.end - END;
        let mut at = self.start;
        loop {
            let mut searches = 1_usize << PATIENCE;
            let mut from;
            loop {
                if limit <= at {
                    return;
                }
                let word = four(&self.bytes, at);
                let place = &mut self.places[hash(word)];
                from = usize::from(std::mem::replace(place, at as u16));
                if from < at && at - from <= REACH && four(&self.bytes, from) == word {
                    break;
                }
                at += searches >> PATIENCE;
                searches += 1;
            }
            // What was stepped over may belong to it.
            while *written < at && 0 < from && self.bytes[at - 1] == self.bytes[from - 1] {
                at -= 1;
                from -= 1;
            }
            let length = SHORTEST + self.common(at + SHORTEST, from + SHORTEST);
            self.copy(at - *written, length, at - from);
            at += length;
            *written = at;
            if at < limit {
                let before = at - 2;
                self.places[hash(four(&self.bytes, before))] = before as u16;
            }
        }
    }

    /// How many bytes from two places on are the same.
    fn common(&self, at: usize, from: usize) -> usize {
        let mut length = 0;
        while at + length + 8 <= self.end {
            let differ = eight(&self.bytes, at + length) ^ eight(&self.bytes, from + length);
            if differ != 0 {
                return length + (differ.trailing_zeros() / 8) as usize;
            }
            length += 8;
        }
        while at + length < self.end && self.bytes[at + length] == self.bytes[from + length] {
            length += 1;
        }
        length
    }

    /// A copy of any length: long ones are several.
    fn copy(&mut self, literals: usize, mut length: usize, distance: usize) {
        let mut literals = literals;
        while LONGEST < length {
            // What is left must not be too short.
            let part = LONGEST.min(length - LEAST);
            self.push(literals, part, distance);
            literals = 0;
            length -= part;
        }
        self.push(literals, length, distance);
    }

    fn push(&mut self, literals: usize, length: usize, distance: usize) {
        // All of them are at most [`BLOCK`] or [`REACH`].
        let (literals, length, distance) = (literals as u16, length as u16, distance as u16);
        self.sequences.push(Sequence { literals, length, distance });
    }

    /// The block has been written: it is what the next one may copy from.
    pub(super) fn slide(&mut self) {
        self.start = self.end;
        let gone = self.end.saturating_sub(REACH);
        if 0 < gone && ROOM < self.start + BLOCK {
            self.bytes.copy_within(gone..self.end, 0);
            self.start -= gone;
            self.end -= gone;
            for place in self.places.iter_mut() {
                *place = place.saturating_sub(gone as u16);
            }
        }
    }
}

fn hash(word: u32) -> usize {
    (word.wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize
}

fn four(bytes: &[u8; ROOM + SLACK], at: usize) -> u32 {
    // Places fit in 16 bits: with that said, no check is needed.
    let at = at & (ROOM - 1);
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn eight(bytes: &[u8; ROOM + SLACK], at: usize) -> u64 {
    let at = at & (ROOM - 1);
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
