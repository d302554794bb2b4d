//! What is told of one stored value.

use coffer_keys::inspect::{Stored, explain};

/// Values of all providers, made with other implementations: key names, keys and plaintext are the same.
const VECTORS: &[(&str, &str, &str)] = &[
    (
        "aesgcm",
        "6b38733a656e633a61657367636d3a76313a6b6579313a101112131415161718191a1b1e91fe702cbb17c5af167c727d54581052bec02e68f014c4c6a2672e6b147e",
        "prefix 23, nonce 12, ciphertext 15, tag 16",
    ),
    (
        "aescbc",
        "6b38733a656e633a6165736362633a76313a6b6579313a202122232425262728292a2b2c2d2e2fee2fd6280b67b199498dee890336722d",
        "prefix 23, initialization vector 16, ciphertext 16",
    ),
    (
        "secretbox",
        "6b38733a656e633a736563726574626f783a76313a6b6579313a404142434445464748494a4b4c4d4e4f5051525354555657ec020663175fbcf9a0b5f1baa73ba84f2978331f5f23965ca33a050e1aa46b",
        "prefix 26, nonce 24, tag 16, ciphertext 15",
    ),
    (
        "kms v1",
        "6b38733a656e633a6b6d733a76313a70726f763a000a6564656b2d6279746573101112131415161718191a1b026fcfc3573b4e733e67ba2d745882d093170fc17a2dd5f6f459d2f04de25d",
        "prefix 20, length 2, key 10, nonce 12, ciphertext 15, tag 16",
    ),
    (
        "kms v2",
        "6b38733a656e633a6b6d733a76323a70726f763a0a4ba0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf101112131415161718191a1b2d60866e054dd7003d4fae0dc9621a83f85f41f2b198d346cd8a1b6766ab0312086b65792d69642d311a0b6564656b2d736f7572636522120a0d612e6578616d706c652e636f6d1201762801",
        "prefix 20, key 47, info 32, nonce 12, ciphertext 15, tag 16",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).expect("hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

#[test]
fn the_parts_of_every_providers_values_are_told() {
    for (provider, hex, expected) in VECTORS {
        let value = bytes(hex);
        let stored = Stored {
            etcd_key: "/registry/secrets/default/s1",
            value: &value,
            prefix: "/registry",
            transformers: None,
        };
        let (explained, plain) = explain(&stored).expect("a prefix");
        assert_eq!((explained.provider.as_str(), plain), (*provider, None));
        let parts = explained.parts.iter();
        let parts: Vec<String> = parts.map(|part| format!("{} {}", part.name, part.length)).collect();
        assert_eq!(parts.join(", "), *expected, "{provider}");
        assert_eq!(explained.parts.iter().map(|part| part.length).sum::<usize>(), value.len());
        assert_eq!(explained.opened, None);
    }
}

#[test]
fn an_envelope_names_the_plugins_key_and_how_it_holds_the_data_key() {
    let told = |number: usize, cut: usize| {
        let value = bytes(VECTORS[number].1);
        let value = &value[..value.len() - cut];
        let stored = Stored { etcd_key: "", value, prefix: "/registry", transformers: None };
        explain(&stored).expect("a prefix").0
    };
    assert_eq!(told(0, 0).envelope, None);
    let v1 = told(3, 0).envelope.expect("an envelope");
    assert_eq!((v1.key_id.as_str(), &*v1.source, v1.source_length), ("", "data key", 10));
    let v2 = told(4, 0).envelope.expect("an envelope");
    assert_eq!((v2.key_id.as_str(), &*v2.source, v2.source_length), ("key-id-1", "seed", 11));
    assert_eq!(v2.annotations, [("a.example.com".to_owned(), 1)]);
    // One that is cut says nothing, and nothing panics.
    for cut in 1..140 {
        let explained = told(4, cut);
        assert_eq!(explained.parts.iter().map(|part| part.length).sum::<usize>(), explained.bytes, "{cut}");
        // Cut before a field, it is a shorter envelope.
        if cut < 120 && cut != 2 && cut != 22 {
            assert_eq!((explained.envelope, &*explained.parts[1].name), (None, "damaged envelope"), "{cut}");
        }
    }
}
