//! Blocks of a deflate stream (RFC 1951): as they are, or with codes of their own.

use super::huffman::{Code, codes, lengths};
use super::repeats::{LONGEST, Sequence};

/// Bytes, the end of the block, and lengths of copies.
const SYMBOLS: usize = 286;
/// How far back copies reach.
const DISTANCES: usize = 30;
/// Lengths of codes, and what repeats them.
const META: usize = 19;
/// Ends a block.
const END: usize = 256;
/// Longest code of a symbol: four of them are written together.
const LONGEST_CODE: usize = 12;
/// Longest code of a code's length.
const LONGEST_META: usize = 7;
/// The order in which the lengths of those codes are written.
const META_ORDER: [usize; META] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// Writes go this far beyond what they count.
const SLACK: usize = 8;

/// Writes blocks one after the other; bits of the last byte are held back.
#[derive(Default)]
pub(super) struct Blocks {
    held: u64,
    count: u32,
}

/// Where bits go: the lowest first.
struct Bits<'o> {
    out: &'o mut [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl Bits<'_> {
    /// At most 56 bits may come between two calls of [`Bits::flush`].
    #[inline]
    fn put(&mut self, bits: u64, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
    }

    #[inline]
    fn code(&mut self, code: Code) {
        self.put(u64::from(code.bits), u32::from(code.length));
    }

    #[inline]
    fn flush(&mut self) {
        self.out[self.at..self.at + SLACK].copy_from_slice(&self.held.to_le_bytes());
        let bytes = self.count / 8;
        self.at += bytes as usize;
        self.held >>= bytes * 8;
        self.count %= 8;
    }
}

/// What a block consists of.
struct Tally {
    symbols: [u32; SYMBOLS],
    distances: [u32; DISTANCES],
    /// Bits beside the codes.
    extra: usize,
}

impl Blocks {
    /// Appends a block. After the last one no bit is held back.
    pub(super) fn write(&mut self, bytes: &[u8], sequences: &[Sequence], last: bool, out: &mut Vec<u8>) {
        let tally = Tally::of(bytes, sequences);
        let header = Header::new(&tally);
        let plain = bytes.len() * 8 + 40;
        if header.bits + tally.bits(&header) < plain {
            let room = plain / 8 + 2 * SLACK;
            self.with_bits(room, out, |bits| {
                bits.put(u64::from(last) | 0b100, 3);
                header.write(bits);
                body(bytes, sequences, &header, bits);
            });
        } else {
            self.with_bits(3 * SLACK, out, |bits| {
                bits.put(u64::from(last), 3);
                bits.count = bits.count.next_multiple_of(8);
                bits.flush();
                // Never more than a block.
                let length = bytes.len() as u16;
                bits.put(u64::from(length) | (u64::from(!length) << 16), 32);
                bits.flush();
            });
            out.extend_from_slice(bytes);
        }
        if last {
            self.with_bits(SLACK, out, |bits| {
                bits.count = bits.count.next_multiple_of(8);
                bits.flush();
            });
        }
    }

    fn with_bits(&mut self, room: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Bits<'_>)) {
        let start = out.len();
        out.resize(start + room, 0);
        let mut bits = Bits { out: &mut out[start..], at: 0, held: self.held, count: self.count };
        write(&mut bits);
        let end = start + bits.at;
        (self.held, self.count) = (bits.held, bits.count);
        out.truncate(end);
    }
}

impl Tally {
    fn of(bytes: &[u8], sequences: &[Sequence]) -> Self {
        // Neighbours are counted apart: the same one twice would have to wait for itself.
        let mut parts = [[0_u32; 256]; 4];
        let mut tally = Self { symbols: [0; SYMBOLS], distances: [0; DISTANCES], extra: 0 };
        let mut rest = bytes;
        for sequence in sequences {
            let (literals, after) = rest.split_at(usize::from(sequence.literals));
            let (fours, few) = literals.as_chunks::<4>();
            for four in fours {
                for (part, byte) in parts.iter_mut().zip(four) {
                    part[usize::from(*byte)] += 1;
                }
            }
            for byte in few {
                parts[0][usize::from(*byte)] += 1;
            }
            rest = &after[usize::from(sequence.length)..];
            if 0 < sequence.length {
                let (symbol, _, extra) = length_symbol(sequence.length);
                tally.symbols[symbol] += 1;
                let (distance, _, more) = distance_symbol(sequence.distance);
                tally.distances[distance] += 1;
                tally.extra += (extra + more) as usize;
            }
        }
        for part in &parts {
            for (sum, count) in tally.symbols.iter_mut().zip(part) {
                *sum += count;
            }
        }
        tally.symbols[END] = 1;
        at_least_two(&mut tally.symbols);
        at_least_two(&mut tally.distances);
        tally
    }

    fn bits(&self, header: &Header) -> usize {
        let sum = |counts: &[u32], lengths: &[u8]| -> usize {
            counts.iter().zip(lengths).map(|(count, length)| *count as usize * usize::from(*length)).sum()
        };
        sum(&self.symbols, &header.symbols) + sum(&self.distances, &header.distances) + self.extra
    }
}

/// A code of one symbol only is not understood everywhere.
fn at_least_two(counts: &mut [u32]) {
    let mut lacking = 2_usize.saturating_sub(counts.iter().filter(|count| 0 < **count).count());
    for count in counts.iter_mut().filter(|count| **count == 0) {
        if lacking == 0 {
            return;
        }
        *count = 1;
        lacking -= 1;
    }
}

/// What a block tells of its codes.
struct Header {
    symbols: [u8; SYMBOLS],
    distances: [u8; DISTANCES],
    /// The lengths of all codes with their repetitions: symbol, and bits beside it.
    told: Vec<(u8, u8)>,
    meta: [u8; META],
    /// How many codes of each kind are told of.
    counts: [usize; 3],
    /// How long all of it is, with what comes before.
    bits: usize,
}

impl Header {
    fn new(tally: &Tally) -> Self {
        let symbols = lengths(&tally.symbols, LONGEST_CODE);
        let distances = lengths(&tally.distances, LONGEST_CODE);
        let used = |lengths: &[u8], least: usize| {
            lengths.iter().rposition(|length| 0 < *length).map_or(least, |last| least.max(last + 1))
        };
        let (symbol_count, distance_count) = (used(&symbols, END + 1), used(&distances, 1));
        let mut told = Vec::with_capacity(SYMBOLS + DISTANCES);
        tell(symbols[..symbol_count].iter().chain(&distances[..distance_count]).copied(), &mut told);
        let mut counts = [0; META];
        for (symbol, _) in &told {
            counts[usize::from(*symbol)] += 1;
        }
        at_least_two(&mut counts);
        let meta = lengths(&counts, LONGEST_META);
        let meta_count =
            META_ORDER.iter().rposition(|symbol| 0 < meta[*symbol]).map_or(4, |last| last + 1).max(4);
        let told_bits: usize = told
            .iter()
            .map(|(symbol, _)| usize::from(meta[usize::from(*symbol)]) + repeat_bits(*symbol) as usize)
            .sum();
        let bits = 3 + 14 + 3 * meta_count + told_bits;
        Self { symbols, distances, told, meta, counts: [symbol_count, distance_count, meta_count], bits }
    }

    fn write(&self, bits: &mut Bits<'_>) {
        let [symbols, distances, meta] = self.counts.map(|count| count as u64);
        bits.put((symbols - 257) | ((distances - 1) << 5) | ((meta - 4) << 10), 14);
        bits.flush();
        for symbol in &META_ORDER[..self.counts[2]] {
            bits.put(u64::from(self.meta[*symbol]), 3);
            bits.flush();
        }
        let codes = codes(&self.meta);
        for (symbol, repeated) in &self.told {
            bits.code(codes[usize::from(*symbol)]);
            bits.put(u64::from(*repeated), repeat_bits(*symbol));
            bits.flush();
        }
    }
}

/// Lengths of codes as they are told: 16 repeats the last one, 17 and 18 are several zeros.
fn tell(lengths: impl Iterator<Item = u8>, told: &mut Vec<(u8, u8)>) {
    let mut lengths = lengths.peekable();
    while let Some(length) = lengths.next() {
        let mut run = 1_u8;
        let most = if length == 0 { 138 } else { 7 };
        while run < most && lengths.next_if_eq(&length).is_some() {
            run += 1;
        }
        match (length, run) {
            (0, 11..) => told.push((18, run - 11)),
            (0, 3..) => told.push((17, run - 3)),
            (_, 4..) if length != 0 => told.extend([(length, 0), (16, run - 4)]),
            _ => told.extend(std::iter::repeat_n((length, 0), usize::from(run))),
        }
    }
}

/// How many bits say how often.
fn repeat_bits(symbol: u8) -> u32 {
    match symbol {
        16 => 2,
        17 => 3,
        18 => 7,
        _ => 0,
    }
}

/// All symbols of a block, and its end.
fn body(bytes: &[u8], sequences: &[Sequence], header: &Header, bits: &mut Bits<'_>) {
    let symbols = codes(&header.symbols);
    let distances = codes(&header.distances);
    let mut rest = bytes;
    for sequence in sequences {
        let (literals, after) = rest.split_at(usize::from(sequence.literals));
        let (fours, few) = literals.as_chunks::<4>();
        for four in fours {
            for byte in four {
                bits.code(symbols[usize::from(*byte)]);
            }
            bits.flush();
        }
        for byte in few {
            bits.code(symbols[usize::from(*byte)]);
        }
        bits.flush();
        rest = &after[usize::from(sequence.length)..];
        if 0 < sequence.length {
            let (symbol, value, extra) = length_symbol(sequence.length);
            bits.code(symbols[symbol]);
            bits.put(value, extra);
            let (distance, value, extra) = distance_symbol(sequence.distance);
            bits.code(distances[distance]);
            bits.put(value, extra);
            bits.flush();
        }
    }
    bits.code(symbols[END]);
    bits.flush();
}

/// The symbol of a copy's length, and what stands beside it in how many bits.
#[inline]
fn length_symbol(length: u16) -> (usize, u64, u32) {
    if usize::from(length) == LONGEST {
        return (SYMBOLS - 1, 0, 0);
    }
    let over = u32::from(length) - 3;
    if over < 8 {
        return (END + 1 + over as usize, 0, 0);
    }
    let extra = over.ilog2() - 2;
    let symbol = END + 1 + (extra * 4 + (over >> extra)) as usize;
    (symbol, u64::from(over & ((1 << extra) - 1)), extra)
}

/// The same of how far back it reaches.
#[inline]
fn distance_symbol(distance: u16) -> (usize, u64, u32) {
    let over = u32::from(distance) - 1;
    if over < 4 {
        return (over as usize, 0, 0);
    }
    let extra = over.ilog2() - 1;
    ((extra * 2 + (over >> extra)) as usize, u64::from(over & ((1 << extra) - 1)), extra)
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 1951, 3.2.5
    #[test]
    fn lengths_and_distances_have_the_symbols_of_the_standard() {
        for (length, expected) in [
            (3, (257, 0, 0)),
            (10, (264, 0, 0)),
            (11, (265, 0, 1)),
            (12, (265, 1, 1)),
            (13, (266, 0, 1)),
            (18, (268, 1, 1)),
            (19, (269, 0, 2)),
            (66, (276, 7, 3)),
            (67, (277, 0, 4)),
            (131, (281, 0, 5)),
            (227, (284, 0, 5)),
            (257, (284, 30, 5)),
            (258, (285, 0, 0)),
        ] {
            assert_eq!(length_symbol(length), expected, "{length}");
        }
        for (distance, expected) in [
            (1, (0, 0, 0)),
            (4, (3, 0, 0)),
            (5, (4, 0, 1)),
            (7, (5, 0, 1)),
            (8, (5, 1, 1)),
            (9, (6, 0, 2)),
            (192, (14, 63, 6)),
            (193, (15, 0, 6)),
            (24_577, (29, 0, 13)),
            (32_768, (29, 8191, 13)),
        ] {
            assert_eq!(distance_symbol(distance), expected, "{distance}");
        }
    }

    #[test]
    fn lengths_are_told_with_their_repetitions() {
        let mut told = Vec::new();
        let lengths = [vec![5; 9], vec![0; 2], vec![0; 1], vec![7; 3], vec![0; 150]].concat();
        tell(lengths.into_iter(), &mut told);
        assert_eq!(
            told,
            [(5, 0), (16, 3), (5, 0), (5, 0), (17, 0), (7, 0), (7, 0), (7, 0), (18, 127), (18, 1)]
        );
    }
}
