//! Codes that are the shorter the more often a symbol comes.

/// A symbol's code as it is written: its bits, the first one lowest, and how many they are.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    pub(super) bits: u16,
    pub(super) length: u8,
}

/// The lengths of the codes of symbols that come as often as `counts` says, at most `longest` bits each.
/// A symbol that does not come has none. At least two symbols must come.
pub(super) fn lengths<const N: usize>(counts: &[u32; N], longest: usize) -> [u8; N] {
    let mut lengths = [0; N];
    let mut symbols: Vec<(u32, u16)> = (0_u16..)
        .zip(counts)
        .filter(|(_, count)| 0 < **count)
        .map(|(symbol, count)| (*count, symbol))
        .collect();
    symbols.sort_unstable();
    let mut left = shape(&symbols, longest);
    let mut length = longest;
    // The rarest get the longest.
    for (_, symbol) in symbols {
        while left[length] == 0 {
            length -= 1;
        }
        left[length] -= 1;
        lengths[usize::from(symbol)] = length as u8;
    }
    lengths
}

/// How many codes there are of each length.
fn shape(symbols: &[(u32, u16)], longest: usize) -> [u32; 16] {
    let count = symbols.len();
    // The leaves, and after them the nodes that join two, in the order in which they come to be: by weight.
    let mut weights: Vec<u64> = symbols.iter().map(|(count, _)| u64::from(*count)).collect();
    let mut parents = vec![0_usize; (2 * count).saturating_sub(1)];
    let (mut leaf, mut node) = (0, count);
    while weights.len() + 1 < 2 * count {
        let new = weights.len();
        let mut weight = 0;
        for _ in 0..2 {
            let lightest = if leaf < count && (node == new || weights[leaf] <= weights[node]) {
                leaf += 1;
                leaf - 1
            } else {
                node += 1;
                node - 1
            };
            parents[lightest] = new;
            weight += weights[lightest];
        }
        weights.push(weight);
    }
    let mut depths = vec![0_usize; parents.len()];
    let mut shape = [0_u32; 16];
    for index in (0..parents.len().saturating_sub(1)).rev() {
        depths[index] = depths[parents[index]] + 1;
        if index < count {
            shape[depths[index].min(longest)] += 1;
        }
    }
    // Codes that were cut are too many: others give way, the longest first.
    let mut total: u32 = (1..=longest).map(|length| shape[length] << (longest - length)).sum();
    while 1 << longest < total {
        shape[longest] -= 1;
        let Some(shorter) = (1..longest).rev().find(|length| 0 < shape[*length]) else { break };
        shape[shorter] -= 1;
        shape[shorter + 1] += 2;
        total -= 1;
    }
    shape
}

/// The codes that deflate gives symbols with codes of these lengths.
pub(super) fn codes<const N: usize>(lengths: &[u8; N]) -> [Code; N] {
    let mut next = [0_u16; 17];
    for length in lengths.iter().filter(|length| 0 < **length) {
        next[usize::from(*length) + 1] += 1;
    }
    for length in 1..16 {
        next[length] = (next[length] + next[length - 1]) << 1;
    }
    let mut codes = [Code::default(); N];
    for (code, length) in codes.iter_mut().zip(lengths) {
        if 0 < *length {
            let own = &mut next[usize::from(*length)];
            *code = Code { bits: own.reverse_bits() >> (16 - length), length: *length };
            *own += 1;
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What all codes take of the room that there is, of 1.
    fn taken(lengths: &[u8]) -> f64 {
        lengths.iter().filter(|length| 0 < **length).map(|length| 0.5_f64.powi(i32::from(*length))).sum()
    }

    // RFC 1951, 3.2.2
    #[test]
    fn codes_follow_from_their_lengths() {
        let codes = codes(&[3, 3, 3, 3, 3, 2, 4, 4]);
        let text: Vec<String> = codes
            .iter()
            .map(|code| {
                (0..code.length).map(|bit| if (code.bits >> bit) & 1 == 1 { '1' } else { '0' }).collect()
            })
            .collect();
        assert_eq!(text, ["010", "011", "100", "101", "110", "00", "1110", "1111"]);
    }

    #[test]
    fn frequent_symbols_get_short_codes() {
        assert_eq!(lengths(&[45, 13, 12, 16, 9, 5, 0], 15), [1, 3, 3, 3, 4, 4, 0]);
        assert_eq!(lengths(&[0, 7, 0, 1], 15), [0, 1, 0, 1]);
        // Fibonacci's numbers make the deepest tree.
        let deep = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987];
        assert_eq!(lengths(&deep, 15).iter().max(), Some(&15));
        assert_eq!(lengths(&deep, 7).iter().max(), Some(&7));
    }

    proptest! {
        #[test]
        fn every_symbol_gets_a_code_and_no_room_is_left(
            counts in prop::array::uniform32(prop_oneof![Just(0_u32), 1_u32..40, 1_u32..40_000]),
            longest in 7_usize..=15,
        ) {
            prop_assume!(1 < counts.iter().filter(|count| 0 < **count).count());
            let lengths = lengths(&counts, longest);
            for (length, count) in lengths.iter().zip(counts) {
                prop_assert_eq!(0 < *length, 0 < count);
                prop_assert!(usize::from(*length) <= longest);
            }
            prop_assert!((taken(&lengths) - 1.0).abs() < 1e-9);
        }
    }
}
