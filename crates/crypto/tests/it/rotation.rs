//! Upstream's key rotation tests, and what each reader says to bad values.

use std::sync::Arc;

use coffer_crypto::{AesCbc, AesGcm, NamedKey, Provider, Secretbox, Transformer, keyed};
use coffer_types::random::Random;

use crate::support::{Broken, Counting, Seeded, key, list};

/// Writes under the first of two keys and reads under both orders and another context.
fn rotation(provider: Provider, wrong_context: Result<&[u8], &str>) {
    let random = Arc::new(Seeded::new(7));
    let (first, second) = (key("first", b"abcdefghijklmnop0123456789ABCDEF"), key("second", &[9; 32]));
    let ordered = [first.clone(), second.clone()];
    let reversed = [second, first];
    let transformer = list(&[(provider, &ordered)], random.clone());
    let stored = transformer.to_storage(b"firstvalue", b"authenticated_data").expect("can be written");
    assert!(stored.starts_with(format!("{}first:", provider.prefix()).as_bytes()));

    let plain = transformer.from_storage(&stored, b"authenticated_data").expect("can be read");
    assert_eq!((plain.bytes.expose(), plain.stale), (&b"firstvalue"[..], false));

    let moved = transformer.from_storage(&stored, b"incorrect_context").map_err(|error| error.to_string());
    assert_eq!(
        moved.map(|plain| plain.bytes.expose().to_vec()),
        wrong_context.map(<[u8]>::to_vec).map_err(str::to_owned)
    );

    let plain = list(&[(provider, &reversed)], random)
        .from_storage(&stored, b"authenticated_data")
        .expect("can be read");
    assert_eq!((plain.bytes.expose(), plain.stale), (&b"firstvalue"[..], true));
}

#[test]
fn test_gcm_key_rotation() {
    rotation(Provider::AesGcm, Err("cipher: message authentication failed"));
}

#[test]
fn test_cbc_key_rotation() {
    rotation(Provider::AesCbc, Ok(b"firstvalue"));
}

#[test]
fn test_secretbox_key_rotation() {
    rotation(Provider::Secretbox, Ok(b"firstvalue"));
}

fn random() -> Arc<dyn Random> {
    Arc::new(Counting(0))
}

fn refuses(transformer: &dyn Transformer, stored: &[u8], expected: &str) {
    match transformer.from_storage(stored, b"context") {
        Ok(_) => panic!("read {} bytes that should be refused with {expected:?}", stored.len()),
        Err(error) => assert_eq!(error.to_string(), expected, "{} bytes", stored.len()),
    }
}

#[test]
fn short_and_broken_values() {
    const SHORT: &str = "the stored data was shorter than the required size";
    let gcm = AesGcm::new(&[1; 32], random()).expect("32 bytes");
    refuses(&gcm, &[], SHORT);
    refuses(&gcm, &[0; 11], SHORT);
    refuses(&gcm, &[0; 12], "cipher: message authentication failed");
    refuses(&gcm, &[0; 27], "cipher: message authentication failed");
    refuses(&gcm, &[0; 40], "cipher: message authentication failed");

    let cbc = AesCbc::new(&[1; 32], random()).expect("32 bytes");
    refuses(&cbc, &[], SHORT);
    refuses(&cbc, &[0; 15], SHORT);
    // Upstream panics on an IV without ciphertext.
    refuses(&cbc, &[0; 16], "invalid PKCS7 data (empty or not padded)");
    refuses(&cbc, &[0; 17], "the stored data is not a multiple of the block size");
    refuses(&cbc, &[0; 31], "the stored data is not a multiple of the block size");

    let secretbox = Secretbox::new(&[1; 32], random()).expect("32 bytes");
    refuses(&secretbox, &[], SHORT);
    refuses(&secretbox, &[0; 39], SHORT);
    refuses(&secretbox, &[0; 40], "output array was not large enough for encryption");
}

/// Under CBC, flipping the last byte of the IV changes the padding of a one-block value.
#[test]
fn cbc_padding_errors() {
    let cbc = AesCbc::new(&[1; 32], random()).expect("32 bytes");
    let stored = cbc.to_storage(&[b'x'; 13], b"").expect("can be written");
    let flipped = |mask: u8| {
        let mut stored = stored.clone();
        stored[15] ^= mask;
        stored
    };
    refuses(&cbc, &flipped(3), "invalid PKCS7 data (empty or not padded)");
    refuses(&cbc, &flipped(3 ^ 17), "invalid PKCS7 data (empty or not padded)");
    refuses(&cbc, &flipped(3 ^ 2), "invalid padding on input");
    let one_byte_more = cbc.from_storage(&flipped(3 ^ 1), b"").expect("padding of one byte");
    assert_eq!(one_byte_more.bytes.len(), 15);
}

#[test]
fn no_value_is_written_without_randomness() {
    let broken: Arc<dyn Random> = Arc::new(Broken);
    let check = |transformer: &dyn Transformer, expected: &str| {
        let error = transformer.to_storage(b"text", b"").expect_err("must not be written");
        assert_eq!(error.to_string(), expected);
    };
    check(
        &AesGcm::new(&[1; 32], broken.clone()).expect("32 bytes"),
        "failed to write nonce for AES-GCM: unable to read sufficient random bytes",
    );
    check(
        &AesCbc::new(&[1; 32], broken.clone()).expect("32 bytes"),
        "unable to read sufficient random bytes",
    );
    check(&Secretbox::new(&[1; 32], broken).expect("32 bytes"), "unable to read sufficient random bytes");
}

#[test]
fn keys_of_the_wrong_size() {
    let check = |provider, keys: &[NamedKey], expected: &str| {
        let error = keyed(provider, keys, &random()).expect_err("must be refused");
        assert_eq!(error.to_string(), expected);
    };
    check(Provider::AesGcm, &[], "aes provider has no valid keys");
    check(Provider::Secretbox, &[], "secretbox provider has no valid keys");
    let refused = "error while creating cipher for named key key1: crypto/aes: invalid key size 15";
    check(Provider::AesGcm, &[key("key1", &[1; 15])], refused);
    check(Provider::AesCbc, &[key("key1", &[1; 15])], refused);
    check(
        Provider::Secretbox,
        &[key("key1", &[1; 31])],
        "expected key size 32 for secretbox provider, got 31",
    );
    for length in [16, 24, 32] {
        assert!(keyed(Provider::AesGcm, &[key("k", &vec![1; length])], &random()).is_ok());
        assert!(keyed(Provider::AesCbc, &[key("k", &vec![1; length])], &random()).is_ok());
    }
}

#[test]
fn debug_shows_no_key() {
    let keys = [key("key1", b"abcdefghijklmnop0123456789ABCDEF")];
    let transformer = list(&[(Provider::AesGcm, &keys), (Provider::Secretbox, &keys)], random());
    let text = format!("{transformer:?} {keys:?}");
    assert!(!text.contains("abcd") && !text.contains("97, 98"), "{text}");
}
