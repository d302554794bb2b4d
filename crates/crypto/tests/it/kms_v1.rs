//! The provider of version 1: upstream's cases of its envelope.

use std::sync::Arc;

use coffer_crypto::kms::{CallError, KmsV1, KmsV1Service, Unobserved};
use coffer_crypto::{AesCbc, Layer};
use coffer_types::SecretBytes;

use crate::kms_fake::{Plugin, Still, Told, disabled};
use crate::support::{CONTEXT, Counting, Seeded, counted, unhex};

fn provider(plugin: &Arc<Plugin>, cache_size: i32, told: &Arc<Told>) -> KmsV1 {
    let clock = Arc::new(Still::default());
    KmsV1::new(plugin.clone(), cache_size, clock, Arc::new(Seeded::new(3)), told.clone())
}

fn write(provider: &KmsV1, plain: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    provider.seal_into(plain, CONTEXT, &mut stored).expect("can be written");
    stored
}

fn read(provider: &KmsV1, stored: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let plain = provider
        .open(stored, CONTEXT)
        .map_err(|error| coffer_crypto::TransformError::from(error).to_string())?;
    Ok((plain.bytes.expose().to_vec(), plain.stale))
}

/// The value that two independent libraries made.
#[test]
fn stored_value_of_independent_libraries() {
    struct Vector;
    impl KmsV1Service for Vector {
        fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
            assert_eq!(plaintext.expose(), counted(0x60, 0x7f));
            Ok(b"edek-bytes".to_vec())
        }
        fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
            assert_eq!(ciphertext, b"edek-bytes");
            Ok(counted(0x60, 0x7f).into())
        }
    }
    struct Recorded;
    impl coffer_types::random::Random for Recorded {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), coffer_types::random::RandomError> {
            Counting(if buffer.len() == 32 { 0x60 } else { 0x10 }).fill(buffer)
        }
    }
    let expected = unhex(
        "6b38733a656e633a6b6d733a76313a70726f763a000a6564656b2d6279746573101112131415161718191a1b026fcfc3573b4e733e\
         67ba2d745882d093170fc17a2dd5f6f459d2f04de25d",
    );
    let clock = Arc::new(Still::default());
    let provider = KmsV1::new(Arc::new(Vector), -1, clock, Arc::new(Recorded), Arc::new(Unobserved));
    let stored = [b"k8s:enc:kms:v1:prov:".as_slice(), &write(&provider, b"coffer-vector-1")].concat();
    assert_eq!(stored, expected);
    let head = "k8s:enc:kms:v1:prov:".len();
    assert_eq!(read(&provider, &expected[head..]), Ok((b"coffer-vector-1".to_vec(), false)));
}

/// Upstream's TestEnvelopeCaching: with a cache reads survive an outage, without they do not.
#[test]
fn test_envelope_caching() {
    for (cache_size, survives) in [(1_000, true), (-1, false)] {
        let plugin = Plugin::new("1");
        let told = Arc::new(Told::default());
        let provider = provider(&plugin, cache_size, &told);
        let stored = write(&provider, b"value");
        assert_eq!(read(&provider, &stored), Ok((b"value".to_vec(), false)));
        plugin.set(|settings| settings.fail_decrypt = Some(disabled()));
        let found = read(&provider, &stored);
        if survives {
            assert_eq!(found, Ok((b"value".to_vec(), false)));
            assert_eq!(plugin.calls(), (1, 0));
            assert_eq!(told.take(), ["generated true", "fill 0.001"]);
        } else {
            assert_eq!(found, Err(disabled().to_string()));
            assert_eq!(told.take(), ["generated true"]);
        }
    }
}

/// Upstream's TestEnvelopeCacheLimit: twice as many values as the cache holds stay readable.
#[test]
fn test_envelope_cache_limit() {
    let plugin = Plugin::new("1");
    let told = Arc::new(Told::default());
    let provider = provider(&plugin, 10, &told);
    let stored: Vec<_> = (0..20_u8).map(|number| write(&provider, &[number])).collect();
    for (number, value) in stored.iter().enumerate() {
        assert_eq!(read(&provider, value), Ok((vec![number as u8], false)));
    }
    assert_eq!(plugin.calls(), (20, 20), "in this order the cache is of no use");
    let last = stored.last().expect("twenty");
    assert_eq!(read(&provider, last), Ok((vec![19], false)));
    assert_eq!(plugin.calls(), (20, 20));
    assert!(told.take().contains(&"fill 1".to_owned()));
}

/// Upstream's TestKMSProvider: AES-CBC behind the encrypted key, as before 1.25, is read and stale.
#[test]
fn a_value_of_before_1_25_is_stale() {
    let plugin = Plugin::new("1");
    let provider = provider(&plugin, 10, &Arc::new(Told::default()));
    let key = counted(0x20, 0x3f);
    let encrypted = KmsV1Service::encrypt(&*plugin, &key.clone().into()).expect("is well");
    let mut stored = (encrypted.len() as u16).to_be_bytes().to_vec();
    stored.extend(&encrypted);
    let cbc = AesCbc::new(&key, Arc::new(Counting(1))).expect("32 bytes");
    cbc.seal_into(b"old value", CONTEXT, &mut stored).expect("can be written");
    assert_eq!(read(&provider, &stored), Ok((b"old value".to_vec(), true)));
}

#[test]
fn values_of_all_sizes() {
    let plugin = Plugin::new("1");
    let provider = provider(&plugin, 10, &Arc::new(Told::default()));
    let random = Seeded::new(8);
    for size in (0..100).chain([1_023, 1_024, 16_384, 65_535, 65_536, 1 << 20]) {
        let plain = random.bytes(size);
        let stored = write(&provider, &plain);
        assert!(read(&provider, &stored) == Ok((plain, false)), "{size}");
    }
}

#[test]
fn broken_values() {
    let plugin = Plugin::new("1");
    let provider = provider(&plugin, 10, &Arc::new(Told::default()));
    let check = |stored: &[u8], expected: &str| {
        assert_eq!(read(&provider, stored), Err(expected.to_owned()), "{stored:?}");
    };
    let prefixed =
        "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data";
    check(b"", prefixed);
    check(b"\0", prefixed);
    check(b"\0\x05abcd", prefixed);
    check(b"\0\x05abcde", "rpc error: code = InvalidArgument desc = no key");
    check(b"\0\x05a/cde", "crypto/aes: invalid key size 3");
    let stored = write(&provider, b"value");
    for length in 0..stored.len() {
        assert!(read(&provider, &stored[..length]).is_err(), "cut at {length}");
    }
    let start = 2 + usize::from(u16::from_be_bytes([stored[0], stored[1]]));
    for bit in start * 8..stored.len() * 8 {
        let mut changed = stored.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            read(&provider, &changed),
            Err("[cipher: message authentication failed, the stored data is not a multiple of the block size]".to_owned()),
            "bit {bit}"
        );
    }
}

#[test]
fn a_plugin_that_fails_or_answers_too_much() {
    struct Large;
    impl KmsV1Service for Large {
        fn encrypt(&self, _: &SecretBytes) -> Result<Vec<u8>, CallError> {
            Ok(vec![0; 65_536])
        }
        fn decrypt(&self, _: &[u8]) -> Result<SecretBytes, CallError> {
            Err(disabled())
        }
    }
    let failure = |provider: &KmsV1| {
        let error = provider.seal_into(b"x", CONTEXT, &mut Vec::new()).expect_err("must fail");
        coffer_crypto::TransformError::from(error).to_string()
    };
    let clock = Arc::new(Still::default());
    let large = KmsV1::new(Arc::new(Large), 1, clock, Arc::new(Seeded::new(1)), Arc::new(Unobserved));
    assert_eq!(failure(&large), "cryptobyte: pending child length 65536 exceeds 2-byte length prefix");
    let plugin = Plugin::new("1");
    plugin.set(|settings| settings.fail_encrypt = Some(disabled()));
    let told = Arc::new(Told::default());
    assert_eq!(failure(&provider(&plugin, 1, &told)), disabled().to_string());
}
