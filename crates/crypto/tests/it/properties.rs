//! Random input: what is written can be read, and what was changed cannot.

use std::sync::Arc;

use coffer_crypto::{PrefixList, Provider, Transformer};

use crate::support::{CONTEXT, KEYED, Seeded, key, list};

/// Sizes around every boundary up to 64 KiB, and random ones up to 1 MiB.
fn sizes(random: &Seeded) -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..=130).chain([255, 256, 257, 1023, 1024, 4095, 4096, 4097]).collect();
    sizes.extend([16_384, 65_535, 65_536, 1 << 20]);
    sizes.extend((0..200).map(|_| random.below(65_536)));
    sizes.extend((0..6).map(|_| random.below(1 << 20)));
    sizes
}

fn transformer(provider: Provider, key_size: usize, random: &Arc<Seeded>) -> PrefixList {
    let keys = [key("key1", &random.bytes(key_size))];
    list(&[(provider, &keys)], random.clone())
}

/// Upstream's TestRoundTrip: lengths by key sizes by modes.
#[test]
fn test_round_trip() {
    let seed = 0x0c0f_fe12;
    let random = Arc::new(Seeded::new(seed));
    for provider in KEYED {
        let key_sizes: &[usize] = if provider == Provider::Secretbox { &[32] } else { &[16, 24, 32] };
        for key_size in key_sizes {
            let transformer = transformer(provider, *key_size, &random);
            for size in sizes(&random) {
                let plain = random.bytes(size);
                let stored = transformer.to_storage(&plain, CONTEXT).expect("can be written");
                let read = transformer.from_storage(&stored, CONTEXT).expect("can be read");
                assert!(read.bytes.expose() == plain, "{provider} {key_size} {size} seed {seed:#x}");
                assert!(!read.stale);
            }
        }
    }
}

#[test]
fn a_cut_value_is_an_error_at_every_length() {
    let random = Arc::new(Seeded::new(2));
    for provider in KEYED {
        let transformer = transformer(provider, 32, &random);
        let plain = random.bytes(100);
        let stored = transformer.to_storage(&plain, CONTEXT).expect("can be written");
        for length in 0..stored.len() {
            match transformer.from_storage(&stored[..length], CONTEXT) {
                Err(_) => {}
                // CBC is not authenticated: a cut at a block may end in what looks like padding.
                Ok(read) => {
                    assert_eq!(provider, Provider::AesCbc, "cut at {length}");
                    assert!(read.bytes.expose() != plain, "cut at {length}");
                }
            }
        }
    }
}

#[test]
fn a_changed_bit_is_an_error_for_the_authenticated_providers() {
    let random = Arc::new(Seeded::new(3));
    for provider in KEYED {
        let transformer = transformer(provider, 32, &random);
        let plain = random.bytes(60);
        let stored = transformer.to_storage(&plain, CONTEXT).expect("can be written");
        for bit in 0..stored.len() * 8 {
            let mut changed = stored.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match transformer.from_storage(&changed, CONTEXT) {
                Err(_) => {}
                Ok(read) => {
                    assert_eq!(provider, Provider::AesCbc, "bit {bit}");
                    assert!(read.bytes.expose() != plain, "bit {bit}");
                }
            }
        }
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let random = Arc::new(Seeded::new(4));
    let readers: Vec<_> =
        KEYED.iter().map(|provider| (provider, transformer(*provider, 32, &random))).collect();
    for round in 0..20_000 {
        let size = random.below(200);
        let noise = random.bytes(size);
        for (provider, reader) in &readers {
            let stored = match round % 3 {
                0 => noise.clone(),
                1 => [provider.prefix().as_bytes(), &noise].concat(),
                _ => [provider.prefix().as_bytes(), b"key1:", &noise].concat(),
            };
            if let Err(error) = reader.from_storage(&stored, CONTEXT) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn no_two_writes_use_the_same_nonce() {
    let random = Arc::new(Seeded::new(5));
    for provider in KEYED {
        let transformer = transformer(provider, 32, &random);
        let first = transformer.to_storage(b"same", CONTEXT).expect("can be written");
        let second = transformer.to_storage(b"same", CONTEXT).expect("can be written");
        let prefix = provider.prefix().len() + "key1:".len();
        assert_ne!(first[prefix..prefix + 12], second[prefix..prefix + 12], "{provider}");
        assert_ne!(first[prefix + 24..], second[prefix + 24..], "{provider}");
    }
}
