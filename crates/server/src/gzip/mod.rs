//! gzip for large answers, made for what lists are: objects that repeat each other, with values between
//! them that hardly shrink.
//!
//! Levels of speed and size as zlib has them all look at every byte of such values for something that is
//! not there. Here a search that finds nothing goes on in ever longer steps, and what follows the value is
//! found again from behind. What comes out is as large as zlib's at its fastest level.

mod block;
mod huffman;
mod repeats;

use flate2::Crc;

use self::block::Blocks;
use self::repeats::Window;

/// Method deflate, no time, fastest, no system named: as upstream begins.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// Compresses what it is given; what is made of it can be taken at any time.
pub(crate) struct Encoder {
    window: Window,
    blocks: Blocks,
    crc: Crc,
    out: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self { window: Window::new(), blocks: Blocks::default(), crc: Crc::new(), out: HEAD.to_vec() }
    }

    /// Takes in more bytes.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        self.crc.update(bytes);
        while !bytes.is_empty() {
            if self.window.is_full() {
                self.block(false);
            }
            bytes = self.window.take_in(bytes);
        }
    }

    /// Ends the stream: nothing may be written afterwards.
    pub(crate) fn finish(&mut self) {
        self.block(true);
        self.out.extend_from_slice(&self.crc.sum().to_le_bytes());
        self.out.extend_from_slice(&self.crc.amount().to_le_bytes());
    }

    fn block(&mut self, last: bool) {
        let (bytes, sequences) = self.window.sequences();
        self.blocks.write(bytes, sequences, last, &mut self.out);
        self.window.slide();
    }

    /// How many bytes can be taken.
    pub(crate) fn ready(&self) -> usize {
        self.out.len()
    }

    /// What is ready, in exchange for room for more.
    pub(crate) fn take(&mut self, room: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.out, room)
    }
}

/// All of it at once.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.write(bytes);
    encoder.finish();
    encoder.out
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use proptest::prelude::*;

    use super::repeats::BLOCK;
    use super::*;

    fn unzipped(bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(bytes);
        decoder.read_to_end(&mut plain).expect("well-formed");
        plain
    }

    /// Bytes in which nothing repeats.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed | 1;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(length)
        .collect()
    }

    /// Objects of a list: the same words around values that differ.
    fn list(items: u64) -> Vec<u8> {
        let mut list = Vec::new();
        for number in 0..items {
            let value: String = noise(number, 300).iter().map(|byte| char::from(b'A' + byte % 26)).collect();
            list.extend_from_slice(
                format!(
                    r#"{{"metadata":{{"name":"s-{number:06}","namespace":"bench","resourceVersion":"{}","managedFields":[{{"manager":"load","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{".":{{}},"f:key0":{{}}}},"f:type":{{}}}}}}]}},"data":{{"key0":"{value}"}},"type":"Opaque"}},"#,
                    number * 7
                )
                .as_bytes(),
            );
        }
        list
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let around_blocks = [0, 1, 2, 7, 8, 13, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5];
        for length in around_blocks {
            for bytes in [vec![b'x'; length], noise(3, length), list(300)[..length.min(90_000)].to_vec()] {
                assert!(unzipped(&compress(&bytes)) == bytes, "{length}");
            }
        }
        let mixed = [list(200), noise(5, 100_000), vec![0; 70_000], list(200)].concat();
        assert!(unzipped(&compress(&mixed)) == mixed);
    }

    #[test]
    fn pieces_make_one_stream_that_can_be_taken_in_pieces() {
        let bytes = list(2000);
        let (mut encoder, mut out, mut taken) = (Encoder::new(), Vec::new(), 0);
        for piece in bytes.chunks(10_007) {
            encoder.write(piece);
            if 20_000 < encoder.ready() {
                out.extend(encoder.take(Vec::new()));
                taken += 1;
            }
        }
        encoder.finish();
        out.extend(encoder.take(Vec::new()));
        assert!(5 < taken);
        assert!(unzipped(&out) == bytes);
    }

    #[test]
    fn lists_become_as_small_as_with_zlib_at_its_fastest() {
        let bytes = list(3000);
        let mut zlib = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&bytes).expect("memory");
        let theirs = zlib.finish().expect("memory").len();
        let ours = compress(&bytes).len();
        assert!(ours <= theirs + theirs / 20, "{ours} bytes, and {theirs} with zlib");
    }

    #[test]
    fn what_does_not_shrink_hardly_grows() {
        let bytes = noise(9, 1_000_000);
        let compressed = compress(&bytes).len();
        assert!(compressed <= bytes.len() + bytes.len() / 1000 + 64, "{compressed}");
    }

    proptest! {
        #[test]
        fn anything_comes_back(
            parts in prop::collection::vec((0_u8..4, any::<u64>(), 0_usize..9000), 0..24),
            piece in 1_usize..70_000,
        ) {
            let mut bytes: Vec<u8> = Vec::new();
            for (kind, seed, length) in parts {
                match kind {
                    0 => bytes.extend(noise(seed, length)),
                    1 => bytes.extend(std::iter::repeat_n(seed as u8, length)),
                    // Few symbols.
                    2 => bytes.extend(noise(seed, length).iter().map(|byte| byte % 3)),
                    // Something from before.
                    _ if bytes.is_empty() => {}
                    _ => {
                        let from = usize::try_from(seed % bytes.len() as u64).expect("small");
                        let to = bytes.len().min(from + length);
                        bytes.extend_from_within(from..to);
                    }
                }
            }
            let mut encoder = Encoder::new();
            bytes.chunks(piece).for_each(|piece| encoder.write(piece));
            encoder.finish();
            prop_assert!(unzipped(&encoder.out) == bytes);
        }
    }
}
