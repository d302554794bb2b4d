//! Read all, write first; upstream's TestPrefixFrom and TestPrefixTo, and what their comments promise.

use std::sync::Arc;

use coffer_crypto::{Entry, Failure, Identity, Layer, Plain, PrefixList, Provider, Transformer, keyed};
use coffer_types::SecretBytes;

use crate::support::{CONTEXT, Counting, KEYED, NO_MATCH, Seeded, key, list};

/// Answers the same whatever it is asked.
struct Canned {
    from: Result<&'static [u8], &'static str>,
    stale: bool,
}

impl Layer for Canned {
    fn open(&self, _stored: &[u8], _context: &[u8]) -> Result<Plain, Failure> {
        let bytes = self.from.map_err(Failure::new)?;
        Ok(Plain { bytes: SecretBytes::new(bytes.to_vec()), stale: self.stale })
    }

    fn sealed_len(&self, _plain: usize) -> usize {
        self.from.map_or(0, <[u8]>::len)
    }

    fn seal_into(&self, _plain: &[u8], _context: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        out.extend_from_slice(self.from.map_err(Failure::new)?);
        Ok(())
    }
}

fn entry(prefix: &str, from: Result<&'static [u8], &'static str>, stale: bool) -> Entry {
    Entry { prefix: prefix.as_bytes().to_vec(), layer: Arc::new(Canned { from, stale }) }
}

fn outcome(transformer: &dyn Transformer, stored: &[u8]) -> Result<(Vec<u8>, bool), String> {
    transformer
        .from_storage(stored, CONTEXT)
        .map(|plain| (plain.bytes.expose().to_vec(), plain.stale))
        .map_err(|error| error.to_string())
}

fn read(text: &str, stale: bool) -> Result<(Vec<u8>, bool), String> {
    Ok((text.as_bytes().to_vec(), stale))
}

fn failed(text: &str) -> Result<(Vec<u8>, bool), String> {
    Err(text.to_owned())
}

#[test]
fn test_prefix_from() {
    let transformer = PrefixList::new(
        entry("first:", Ok(b"value1"), false),
        vec![
            entry("second:", Ok(b"value2"), false),
            entry("fails:", Err("transform error"), false),
            entry("stale:", Ok(b"value3"), true),
        ],
        "test error",
    );
    assert_eq!(outcome(&transformer, b"first:value"), read("value1", false));
    assert_eq!(outcome(&transformer, b"second:value"), read("value2", true));
    assert_eq!(outcome(&transformer, b"third:value"), failed("test error"));
    assert_eq!(outcome(&transformer, b"fails:value"), failed("transform error"));
    assert_eq!(outcome(&transformer, b"stale:value"), read("value3", true));
}

#[test]
fn test_prefix_to() {
    let check = |first: Entry, expected: Result<&[u8], &str>| {
        let transformer = PrefixList::new(first, vec![entry("other:", Ok(b"other"), false)], NO_MATCH);
        let written = transformer.to_storage(b"value", CONTEXT).map_err(|error| error.to_string());
        assert_eq!(written, expected.map(<[u8]>::to_vec).map_err(str::to_owned));
    };
    check(entry("first:", Ok(b"value1"), false), Ok(b"first:value1"));
    check(entry("", Ok(b"value1"), false), Ok(b"value1"));
    check(entry("fails:", Err("transform error"), false), Err("transform error"));
}

#[test]
fn the_first_entry_may_be_stale_by_itself() {
    let transformer = PrefixList::new(entry("first:", Ok(b"value"), true), Vec::new(), NO_MATCH);
    assert_eq!(outcome(&transformer, b"first:x"), read("value", true));
}

#[test]
fn every_entry_that_fits_is_tried_and_told() {
    let check = |entries: Vec<Entry>, expected| {
        let mut entries = entries.into_iter();
        let first = entries.next().expect("at least one entry");
        let transformer = PrefixList::new(first, entries.collect(), NO_MATCH);
        assert_eq!(outcome(&transformer, b"same:key:x"), expected);
    };
    let fails = |prefix, text| entry(prefix, Err(text), false);
    check(vec![fails("same:", "a"), fails("same:key:", "b")], failed("[a, b]"));
    check(vec![fails("same:", "a"), fails("same:", "a")], failed("a"));
    check(vec![fails("same:", "a"), entry("same:", Ok(b"read"), false)], read("read", true));
    // Identity's refusal is not told, before or after the others.
    check(vec![fails("", "identity"), fails("same:", "a")], failed("a"));
    check(vec![fails("same:", "a"), fails("", "identity")], failed("a"));
    check(vec![fails("", "identity")], failed(NO_MATCH));
}

#[test]
fn identity_first_and_last() {
    let random = Arc::new(Counting(0)) as _;
    let sealed = keyed(Provider::AesGcm, &[key("key1", &[1; 32])], &random).expect("a good key");
    let plain = Entry { prefix: Vec::new(), layer: Arc::new(Identity) };
    let secret_first = PrefixList::new(sealed.clone(), vec![plain.clone()], NO_MATCH);
    let plain_first = PrefixList::new(plain.clone(), vec![sealed], NO_MATCH);
    let plain_only = PrefixList::new(plain, Vec::new(), NO_MATCH);
    let stored = secret_first.to_storage(b"text", CONTEXT).expect("can be written");

    assert_eq!(outcome(&secret_first, &stored), read("text", false));
    assert_eq!(outcome(&secret_first, b"text"), read("text", true));
    assert_eq!(outcome(&plain_first, &stored), read("text", true));
    assert_eq!(outcome(&plain_first, b"text"), read("text", false));
    assert_eq!(outcome(&plain_only, &stored), failed(NO_MATCH));
    assert_eq!(outcome(&Identity, &stored), failed("identity transformer tried to read encrypted data"));
    assert_eq!(plain_first.to_storage(b"text", CONTEXT).expect("can be written"), b"text");
}

#[test]
fn a_value_under_an_unknown_key_or_provider() {
    let writer = |provider, name: &str| {
        list(&[(provider, &[key(name, &[1; 32])])], Arc::new(Counting(0)))
            .to_storage(b"text", CONTEXT)
            .expect("can be written")
    };
    let gcm_keys = [key("key1", &[2; 32])];
    let box_keys = [key("key1", &[2; 32])];
    let reader =
        list(&[(Provider::AesGcm, &gcm_keys), (Provider::Secretbox, &box_keys)], Arc::new(Counting(0)));
    let check =
        |provider, name, expected| assert_eq!(outcome(&reader, &writer(provider, name)), failed(expected));
    check(Provider::AesCbc, "key1", NO_MATCH);
    check(Provider::AesGcm, "key9", "no matching key was found for the provided AES transformer");
    check(Provider::AesGcm, "key1", "cipher: message authentication failed");
    check(Provider::Secretbox, "key9", "no matching key was found for the provided Secretbox transformer");
    check(Provider::Secretbox, "key1", "output array was not large enough for encryption");
    assert_eq!(outcome(&reader, b"k8s:enc:kms:v2:p:x"), failed(NO_MATCH));
}

#[test]
fn field_case_k17_same_key_name_in_two_providers_with_different_bytes() {
    let old = [key("key1", &[1; 32])];
    let new = [key("key1", &[2; 32])];
    let old_writer = list(&[(Provider::AesGcm, &old)], Arc::new(Counting(0)));
    let stored = old_writer.to_storage(b"text", CONTEXT).expect("can be written");
    let both = list(&[(Provider::AesGcm, &new), (Provider::AesGcm, &old)], Arc::new(Counting(0)));
    assert_eq!(outcome(&both, &stored), read("text", true));
    // The same name twice in one list works alike, and a name may be the start of another.
    let twice = [key("key1", &[2; 32]), key("key1", &[1; 32])];
    assert_eq!(
        outcome(&list(&[(Provider::AesGcm, &twice)], Arc::new(Counting(0))), &stored),
        read("text", true)
    );
    let nested = [key("key1:b", &[3; 32]), key("key1", &[1; 32])];
    assert_eq!(
        outcome(&list(&[(Provider::AesGcm, &nested)], Arc::new(Counting(0))), &stored),
        read("text", true)
    );
}

#[test]
fn a_write_reserves_its_buffer_once_and_exactly() {
    let random = Arc::new(Seeded::new(1));
    for provider in KEYED {
        let keys = [key("key1", &[1; 32])];
        let transformer = list(&[(provider, &keys)], random.clone());
        for length in [0, 1, 15, 16, 17, 31, 32, 1_000, 4_096] {
            let stored = transformer.to_storage(&vec![7; length], CONTEXT).expect("can be written");
            assert_eq!(transformer.sealed_len(length), stored.len(), "{provider} {length}");
            assert_eq!(stored.capacity(), stored.len(), "{provider} {length}");
        }
    }
}
