//! Key derivation against `tests/vectors/derivation.json`, whose values two other implementations computed.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_crypto::check_value::{KeyIdentity, key_check_value, root_check_value};
use coffer_crypto::derive::{
    Algorithm, Bundle, DEFAULT_PROFILE, DeriveError, Profile, derive, info, salt_input, to_base64,
};
use coffer_crypto::{Provider, Transformer};
use serde_json::Value;

use crate::support::{Counting, key, list, unhex};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/derivation.json")).expect("JSON")
}

fn rows<'a>(vectors: &'a Value, name: &str) -> &'a Vec<Value> {
    vectors[name].as_array().expect("a list")
}

/// A field of a vector, or `default` where a vector that must fail leaves it out.
fn text<'a>(row: &'a Value, field: &str, default: &'a str) -> &'a str {
    row.get(field).map_or(default, |value| value.as_str().expect("text"))
}

/// The inputs of one row; what it does not name is that of the first vector.
struct Inputs {
    root: Vec<u8>,
    seed: String,
    group: String,
    dimension: String,
    revision: u64,
    algorithm: String,
}

impl Inputs {
    fn of(row: &Value, first: &Value) -> Self {
        let default = |field: &str| text(first, field, "");
        let group = match row.get("replicationGroupIDRepeat") {
            Some(repeat) => {
                let count = repeat["count"].as_u64().expect("a number");
                text(repeat, "char", "").repeat(usize::try_from(count).expect("small"))
            }
            None => text(row, "replicationGroupID", default("replicationGroupID")).to_owned(),
        };
        Self {
            root: unhex(text(row, "rootSecretHex", default("rootSecretHex"))),
            seed: text(row, "seed", default("seed")).to_owned(),
            group,
            dimension: text(row, "dimension", default("dimension")).to_owned(),
            revision: text(row, "revision", default("revision")).parse().expect("a number"),
            algorithm: text(row, "derivationAlgorithm", default("derivationAlgorithm")).to_owned(),
        }
    }

    fn identity(&self) -> KeyIdentity<'_> {
        KeyIdentity { group: &self.group, dimension: &self.dimension, revision: self.revision }
    }

    fn bundle(&self) -> Result<Bundle<'_>, DeriveError> {
        Ok(Bundle { identity: self.identity(), seed: &self.seed, algorithm: self.algorithm.parse()? })
    }

    fn derive(&self, profile: Profile) -> Result<Vec<u8>, DeriveError> {
        derive(&self.root, self.bundle()?, profile).map(|key| key.expose().to_vec())
    }
}

/// Some contexts are too long for a file: their hash stands there.
fn check_context(row: &Value, name: &str, found: &[u8]) {
    match row.get(format!("{name}Hex")) {
        Some(hex) => assert_eq!(found, unhex(hex.as_str().expect("text")), "{row}"),
        None => {
            let hash = text(row, &format!("{name}Sha256Hex"), "missing");
            assert_eq!(digest(&SHA256, found).as_ref(), unhex(hash), "{row}");
        }
    }
}

#[test]
fn every_vector() {
    let vectors = vectors();
    let rows = rows(&vectors, "vectors");
    assert_eq!(rows.len(), 18);
    for row in rows {
        let inputs = Inputs::of(row, &rows[0]);
        let bundle = inputs.bundle().expect("a known algorithm");
        check_context(row, "saltInput", &salt_input(bundle, Profile::default()).expect("short fields"));
        check_context(row, "info", &info(inputs.identity(), Profile::default()).expect("short fields"));

        let key = derive(&inputs.root, bundle, Profile::default()).expect("can be derived");
        assert_eq!(key.expose(), unhex(text(row, "keyHex", "")), "{row}");
        let encoded = to_base64(&key);
        assert_eq!(encoded.expose(), text(row, "keyBase64", "").as_bytes(), "{row}");
        assert_eq!(STANDARD.encode(encoded.expose()), text(row, "secretDataFieldInApiJson", ""), "{row}");

        let checked = key_check_value(key.expose(), inputs.identity());
        assert_eq!(checked.as_deref(), row["keyCheckValue"].as_str(), "{row}");
        let checked = root_check_value(&inputs.root, &inputs.group);
        assert_eq!(checked.as_deref(), row["rootCheckValue"].as_str(), "{row}");
    }
}

/// Any one input that differs gives another key: no two vectors of different inputs share one.
#[test]
fn no_two_vectors_share_a_key() {
    let vectors = vectors();
    let keys: std::collections::BTreeSet<_> =
        rows(&vectors, "vectors").iter().map(|row| text(row, "keyHex", "")).collect();
    assert_eq!(keys.len(), 18);
}

#[test]
fn every_input_that_must_fail() {
    let vectors = vectors();
    let first = &rows(&vectors, "vectors")[0];
    let check = |name: &str| match name {
        "root-31" => Err("root secret must be 32 bytes, got 31"),
        "root-33" | "root-trailing-newline" => {
            Err("root secret must be 32 bytes, got 33 (a newline at its end?)")
        }
        "root-base64-text" => {
            Err("root secret must be 32 bytes, got 44 (its base64 text was stored, not its bytes)")
        }
        "seed-31-bytes" => Err("seed must decode to 32 bytes, got 31"),
        "seed-odd-hex" | "seed-0x-prefix" => Err("seed is not hexadecimal text"),
        // Upper case is no error here: the key is that of the first vector.
        "seed-uppercase" => Ok(text(first, "keyHex", "")),
        "algorithm-unknown" => Err("unsupported derivation algorithm \"hkdf-sha384-v1\""),
        "algorithm-case" => Err("unsupported derivation algorithm \"HKDF-SHA512-V1\""),
        "algorithm-empty" => Err("unsupported derivation algorithm \"\""),
        "group-65536" => Err("replication group ID is 65536 bytes, which exceeds the max size of 65535"),
        other => panic!("no expectation for {other}"),
    };
    let rows = rows(&vectors, "mustFail");
    assert_eq!(rows.len(), 12);
    for row in rows {
        let found = Inputs::of(row, first).derive(Profile::default()).map_err(|error| error.to_string());
        assert_eq!(found, check(text(row, "name", "")).map(unhex).map_err(str::to_owned), "{row}");
    }
}

#[test]
fn a_root_of_the_wrong_length_names_the_usual_mistake() {
    let check = |length: usize, hint: &str| {
        let error = DeriveError::Root(length).to_string();
        assert_eq!(error, format!("root secret must be 32 bytes, got {length}{hint}"));
    };
    check(0, "");
    check(64, " (its hexadecimal text was stored, not its bytes)");
    check(65, " (its hexadecimal text with a newline was stored, not its bytes)");
}

/// One known triple of root, bundle and key tells which profile the other side uses.
#[test]
fn every_encoding_profile() {
    let vectors = vectors();
    let first = &rows(&vectors, "vectors")[0];
    let inputs = rows(&vectors, "vectors").iter().find(|row| row["name"] == "rev-gt-2-32").expect("a vector");
    let inputs = Inputs::of(inputs, first);
    let rows = vectors["alternativeEncodings"]["results"].as_array().expect("a list");
    assert_eq!(rows.len(), Profile::all().count());
    for row in rows {
        let part = |field| text(row, field, "");
        let name = format!("{}-{}-{}", part("lengthPrefix"), part("revision"), part("seed"));
        let profile: Profile = name.parse().expect("a known profile");
        assert_eq!(profile.to_string(), name);
        assert_eq!(inputs.derive(profile).expect("can be derived"), unhex(part("keyHex")), "{name}");
        assert_eq!(row["chosen"], profile == Profile::default(), "{name}");
    }
    assert_eq!(Profile::default().to_string(), DEFAULT_PROFILE);
    let error = "uint16be".parse::<Profile>().expect_err("no profile").to_string();
    assert_eq!(error, "unknown encoding profile \"uint16be\", such as \"uint16be-u64be-raw\"");
}

#[test]
fn algorithms_have_names() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
    }
}

/// Stored values under derived keys; the last one was moved from another etcd key.
#[test]
fn stored_values_under_derived_keys() {
    let vectors = vectors();
    let rows = rows(&vectors, "storedValues");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let nonce = unhex(text(row, "nonceHex", ""));
        let keys = [key(text(row, "keyName", ""), &unhex(text(row, "keyHex", "")))];
        let transformer = list(&[(Provider::AesGcm, &keys)], std::sync::Arc::new(Counting(nonce[0])));
        let (etcd_key, stored) = (text(row, "etcdKey", "").as_bytes(), unhex(text(row, "storedHex", "")));
        let plain = transformer.from_storage(&stored, etcd_key).expect("a valid value");
        assert_eq!(plain.bytes.expose(), unhex(text(row, "plaintextHex", "")), "{row}");
        assert_eq!(transformer.to_storage(plain.bytes.expose(), etcd_key).expect("can be written"), stored);
    }
    let read = |key_of: &Value, value_of: &Value| {
        let keys = [key(text(key_of, "keyName", ""), &unhex(text(key_of, "keyHex", "")))];
        let stored = unhex(text(value_of, "storedHex", ""));
        let read = list(&[(Provider::AesGcm, &keys)], std::sync::Arc::new(Counting(0)))
            .from_storage(&stored, b"/registry/secrets/default/demo");
        read.map(|_| ()).expect_err("must be refused").to_string()
    };
    let [rev1, rev2, wrong_root, moved] = rows.as_slice() else { panic!("four values") };
    assert_eq!(read(rev1, rev2), "no matching key was found for the provided AES transformer");
    assert_eq!(read(rev1, wrong_root), "cipher: message authentication failed");
    assert_eq!(read(rev1, moved), "cipher: message authentication failed");
}
