//! Known answers: recorded from Kubernetes, or made with independent libraries
//! (pyca/cryptography, PyNaCl) from the published layouts.

use std::sync::Arc;

use coffer_crypto::{AesGcm, Provider, Transformer};

use crate::support::{CONTEXT, Counting, counted, key, list, unhex};

/// Reads `stored`, and writes the same bytes again when the nonce is the same.
fn check(provider: Provider, nonce_start: u8, stored: &str) {
    let keys = [key("key1", &counted(0x00, 0x1f))];
    let transformer = list(&[(provider, &keys)], Arc::new(Counting(nonce_start)));
    let stored = unhex(stored);
    let plain = transformer.from_storage(&stored, CONTEXT).expect("a valid value");
    assert_eq!(plain.bytes.expose(), b"coffer-vector-1", "{provider}");
    assert!(!plain.stale, "{provider}");
    let written = transformer.to_storage(b"coffer-vector-1", CONTEXT).expect("can be written");
    assert_eq!(written, stored, "{provider}");
}

#[test]
fn stored_values_of_independent_libraries() {
    check(
        Provider::AesGcm,
        0x10,
        "6b38733a656e633a61657367636d3a76313a6b6579313a101112131415161718191a1b1e91fe702cbb17c5af16
         7c727d54581052bec02e68f014c4c6a2672e6b147e",
    );
    check(
        Provider::AesCbc,
        0x20,
        "6b38733a656e633a6165736362633a76313a6b6579313a202122232425262728292a2b2c2d2e2fee2fd6280b67
         b199498dee890336722d",
    );
    check(
        Provider::Secretbox,
        0x40,
        "6b38733a656e633a736563726574626f783a76313a6b6579313a404142434445464748494a4b4c4d4e4f505152
         5354555657ec020663175fbcf9a0b5f1baa73ba84f2978331f5f23965ca33a050e1aa46b",
    );
}

/// Upstream's TestGCMDataStable guards the nonce's size; its recorded value of AES-128 guards the rest.
#[test]
fn gcm_value_recorded_from_kubernetes() {
    let transformer = AesGcm::new(b"snorlax_awesomes", Arc::new(Counting(0))).expect("16 bytes");
    let stored = unhex(
        "9f27c8fcea8a58c467d8e437dbf2d85955f9b4bd912f4ef967d788a0cb07797dac0a3f0a0845605ca85ac8562b4ae1",
    );
    let plain = transformer.from_storage(&stored, b"bamboo").expect("a valid value");
    assert_eq!(plain.bytes.expose(), b"pandas are the best");
}
