//! The provider of version 2: upstream's cases of its envelope and of its key rotation.

use std::sync::Arc;
use std::time::Duration;

use coffer_crypto::kms::{Annotations, CallError, EncryptedObject, KmsStatus, SourceType, key_id_hash, wire};
use coffer_crypto::{AesGcm, Layer, Provider, Transformer};
use prost::Message;

use crate::kms_fake::{Plugin, Server, Still, disabled};
use crate::support::{CONTEXT, Counting, Seeded, counted, unhex};

const MINUTE: Duration = Duration::from_secs(60);
const NOT_YET: &str = "got unexpected nil transformer";
const HEAD: usize = "k8s:enc:kms:v2:prov:".len();

fn write(server: &Server, plain: &[u8]) -> Result<Vec<u8>, String> {
    server.list.to_storage(plain, CONTEXT).map_err(|error| error.to_string())
}

/// The value and whether it is stale.
fn read(server: &Server, stored: &[u8]) -> Result<(Vec<u8>, bool), String> {
    let plain = server.list.from_storage(stored, CONTEXT).map_err(|error| error.to_string())?;
    Ok((plain.bytes.expose().to_vec(), plain.stale))
}

fn fresh(plain: &[u8]) -> Result<(Vec<u8>, bool), String> {
    Ok((plain.to_vec(), false))
}

fn object(stored: &[u8]) -> wire::EncryptedObject {
    assert!(stored.starts_with(b"k8s:enc:kms:v2:prov:"));
    wire::EncryptedObject::decode(&stored[HEAD..]).expect("a message")
}

/// A stored value made of `object`.
fn stored(object: &wire::EncryptedObject) -> Vec<u8> {
    [b"k8s:enc:kms:v2:prov:".as_slice(), &object.encode_to_vec()].concat()
}

/// The value that two independent libraries made; the plugin gives the seed.
#[test]
fn stored_value_of_independent_libraries() {
    struct Vector;
    impl coffer_crypto::kms::KmsV2Service for Vector {
        fn status(&self) -> Result<KmsStatus, CallError> {
            Ok(KmsStatus { version: "v2".into(), healthz: "ok".into(), key_id: "key-id-1".into() })
        }
        fn encrypt(
            &self,
            _: &str,
            plaintext: &coffer_types::SecretBytes,
        ) -> Result<coffer_crypto::kms::KmsEncrypted, CallError> {
            assert_eq!(plaintext.expose(), counted(0x80, 0x9f));
            Ok(coffer_crypto::kms::KmsEncrypted {
                ciphertext: b"edek-source".to_vec(),
                key_id: "key-id-1".into(),
                annotations: Annotations::from([("a.example.com".to_owned(), b"v".to_vec())]),
            })
        }
        fn decrypt(
            &self,
            _: &str,
            encrypted: &coffer_crypto::kms::KmsEncrypted,
        ) -> Result<coffer_types::SecretBytes, CallError> {
            assert_eq!(encrypted.ciphertext, b"edek-source");
            assert_eq!(encrypted.key_id, "key-id-1");
            assert_eq!(encrypted.annotations["a.example.com"], b"v");
            Ok(counted(0x80, 0x9f).into())
        }
    }
    /// Seeds, infos and nonces are told apart by their length.
    struct Recorded;
    impl coffer_types::random::Random for Recorded {
        fn fill(&self, buffer: &mut [u8]) -> Result<(), coffer_types::random::RandomError> {
            use std::sync::atomic::{AtomicBool, Ordering};
            static SEED_DRAWN: AtomicBool = AtomicBool::new(false);
            let first = match buffer.len() {
                32 if !SEED_DRAWN.swap(true, Ordering::SeqCst) => 0x80,
                32 => 0xa0,
                _ => 0x10,
            };
            Counting(first).fill(buffer)
        }
    }
    let expected = unhex(
        "6b38733a656e633a6b6d733a76323a70726f763a0a4ba0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbe\
         bf101112131415161718191a1b2d60866e054dd7003d4fae0dc9621a83f85f41f2b198d346cd8a1b6766ab0312086b65792d69642d\
         311a0b6564656b2d736f7572636522120a0d612e6578616d706c652e636f6d1201762801",
    );
    let provider = |random| {
        let provider = coffer_crypto::kms::KmsV2::new(coffer_crypto::kms::KmsV2Parts {
            name: "prov".into(),
            service: Arc::new(Vector),
            clock: Arc::new(Still::default()),
            random,
            observer: Arc::new(coffer_crypto::kms::Unobserved),
        });
        provider.probe().expect("is well");
        provider
    };
    let writer = provider(Arc::new(Recorded));
    let mut written = b"k8s:enc:kms:v2:prov:".to_vec();
    writer.seal_into(b"coffer-vector-1", CONTEXT, &mut written).expect("can be written");
    assert_eq!(written, expected);
    let plain = writer.open(&expected[HEAD..], CONTEXT).expect("can be read");
    assert_eq!((plain.bytes.expose(), plain.stale), (&b"coffer-vector-1"[..], false));
}

/// Upstream keeps any number of decrypted seeds; here the 4,097th takes the place of the oldest, which costs one
/// call when it is wanted again.
#[test]
fn at_most_4096_decrypted_seeds_are_kept() {
    const BOUND: usize = 4096;
    let plugin = Plugin::new("key-0");
    let server = Server::started(&plugin);
    let mut written = Vec::new();
    for number in 0..=BOUND {
        plugin.rotate(&format!("key-{number}"));
        server.probe().expect("the plugin is well");
        written.push(write(&server, b"x").expect("can be written"));
    }
    let held: Vec<String> = server.told.take().into_iter().filter(|line| line.starts_with("held ")).collect();
    assert_eq!(held[BOUND - 1..], ["held prov 4096", "held prov 4096"]);
    let decrypted = || plugin.calls().1;
    for stored in written[1..].iter().rev() {
        assert_eq!(read(&server, stored).expect("readable").0, b"x");
    }
    assert_eq!(decrypted(), 0, "each of the newest is held");
    assert_eq!(read(&server, &written[0]).expect("readable").0, b"x");
    assert_eq!(decrypted(), 1, "the oldest had gone");
    assert_eq!(read(&server, &written[1]).expect("readable").0, b"x");
    assert_eq!(decrypted(), 2, "and the next one went for it");
}

/// Upstream remembers a derived key for each value that it reads; here a thousand values of one seed leave that
/// seed alone behind, and what is read again is derived again: under another etcd key it does not open.
#[test]
fn keys_of_values_are_derived_each_time_and_not_kept() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let stored: Vec<Vec<u8>> = (0..1000).map(|_| write(&server, b"x").expect("can be written")).collect();
    let reader = Server::new(&plugin, &server.clock, 2);
    reader.probe().expect("the plugin is well");
    reader.told.take();
    for stored in stored.iter().chain(&stored) {
        assert_eq!(read(&reader, stored), fresh(b"x"));
        assert!(reader.list.from_storage(stored, b"/registry/secrets/another").is_err());
    }
    let told = reader.told.take();
    let count = |word: &str| told.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!((plugin.calls().1, count("missed"), count("held")), (1, 1, 1), "one seed, decrypted once");
    let infos: std::collections::BTreeSet<Vec<u8>> =
        stored.iter().map(|stored| object(stored).encrypted_data[..32].to_vec()).collect();
    assert_eq!(infos.len(), 1000, "each value has a key of its own");
}

/// Upstream's TestExtendedNonceGCMLegacyDataCompatibility: a value that Kubernetes recorded.
#[test]
fn test_extended_nonce_gcm_legacy_data_compatibility() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let mut seed = unhex("5d40323a820ff95561675e3b95e81867c5fdd561d35a88a2d08b08aa9d4fcf5c");
    seed.reverse();
    let object = wire::EncryptedObject {
        encrypted_data: unhex(
            "2442759e33945fbad709db577a0f037fd8a709fc76979b8942209debcecb9d57efe3d6ff6a1ef6ee9a5003b9833b3043cec1e47b\
             35175b151107a8d2416b0e296bbf66b5d102fcefdf9a78f293d271",
        ),
        key_id: "1".to_owned(),
        encrypted_dek_source: [b"1/".as_slice(), &seed].concat(),
        annotations: Annotations::new(),
        encrypted_dek_source_type: SourceType::Seed.number(),
    };
    let plain = server.list.from_storage(&stored(&object), b"bamboo").expect("can be read");
    assert_eq!(plain.bytes.expose(), b"pandas are the best");
}

/// A value under a data key that the plugin holds itself, as Kubernetes wrote them before 1.29.
fn legacy(key_id: &str) -> Vec<u8> {
    let key = counted(0x20, 0x3f);
    let mut data = Vec::new();
    let cipher = AesGcm::new(&key, Arc::new(Counting(1))).expect("32 bytes");
    cipher.seal_into(b"old", CONTEXT, &mut data).expect("can be written");
    let reversed: Vec<u8> = key.into_iter().rev().collect();
    stored(&wire::EncryptedObject {
        encrypted_data: data,
        key_id: key_id.to_owned(),
        encrypted_dek_source: [b"1/".as_slice(), &reversed].concat(),
        annotations: Annotations::new(),
        encrypted_dek_source_type: SourceType::AesGcmKey.number(),
    })
}

/// Upstream's TestEnvelopeTransformerStaleness: same key, other key, other form of the source.
#[test]
fn test_envelope_transformer_staleness() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let value = write(&server, b"value").expect("can be written");
    assert_eq!(read(&server, &value), fresh(b"value"));
    assert_eq!(read(&server, &legacy("1")), Ok((b"old".to_vec(), true)));
    plugin.rotate("2");
    assert_eq!(read(&server, &value), fresh(b"value"));
    server.probe().expect("is well");
    assert_eq!(read(&server, &value), Ok((b"value".to_vec(), true)));
    plugin.rotate("1");
    server.probe().expect("is well");
    // Another seed under the key of before: not stale.
    assert_eq!(read(&server, &value), fresh(b"value"));
}

/// Upstream's TestEnvelopeTransformerStateFunc.
#[test]
fn test_envelope_transformer_state_func() {
    let plugin = Plugin::new("1");
    let elsewhere = Server::started(&plugin);
    let foreign = write(&elsewhere, b"foreign").expect("can be written");
    let another = Server::new(&plugin, &Arc::new(Still::default()), 2);
    another.probe().expect("is well");
    let unknown = write(&another, b"unknown").expect("can be written");

    // Never well: nothing works, not even what a plugin that answers could read.
    let server = Server::new(&plugin, &Arc::new(Still::default()), 3);
    assert_eq!(write(&server, b"x"), Err(NOT_YET.to_owned()));
    assert_eq!(read(&server, &foreign), Err(NOT_YET.to_owned()));
    server.probe().expect("is well");
    let own = write(&server, b"own").expect("can be written");
    assert_eq!(read(&server, &foreign), fresh(b"foreign"));

    // The plugin is down, the key valid: all works that needs no call.
    plugin.set(|settings| {
        settings.status = Err(disabled());
        settings.fail_encrypt = Some(disabled());
        settings.fail_decrypt = Some(disabled());
    });
    assert!(server.probe().is_err());
    assert!(write(&server, b"more").is_ok());
    assert_eq!(read(&server, &own), fresh(b"own"));
    let refused = format!("failed to decrypt DEK, error: {}", disabled());
    assert_eq!(read(&server, &unknown), Err(refused.clone()));

    // Expired: no writes, the same reads.
    server.clock.advance(4 * MINUTE);
    assert_eq!(
        write(&server, b"late"),
        Err(format!(
            "encryptedDEKSource with keyID hash \"{}\" expired at 2026-01-01T00:03:00Z (current time is 2026-01-01T00:04:00Z)",
            key_id_hash("1")
        ))
    );
    assert_eq!(read(&server, &own), fresh(b"own"));
    assert_eq!(read(&server, &foreign), fresh(b"foreign"));
    assert_eq!(read(&server, &unknown), Err(refused));
}

/// Upstream's TestEnvelopeCaching: ten reads cost one call, none while the seed is known.
#[test]
fn test_envelope_caching() {
    let plugin = Plugin::new("1");
    let writer = Server::started(&plugin);
    let values: Vec<_> =
        (0..10_u8).map(|number| write(&writer, &[number]).expect("can be written")).collect();
    let read_all = |server: &Server| {
        for (number, value) in values.iter().enumerate() {
            assert_eq!(read(server, value), fresh(&[number as u8]));
        }
    };
    read_all(&writer);
    assert_eq!(plugin.calls(), (1, 0), "the writer knows its seed");
    let reader = Server::new(&plugin, &Arc::new(Still::default()), 2);
    reader.probe().expect("is well");
    read_all(&reader);
    assert_eq!(plugin.calls(), (2, 1));

    // After a day it is still served, until something else comes in.
    reader.clock.advance(25 * 60 * MINUTE);
    read_all(&reader);
    assert_eq!(plugin.calls(), (2, 1));
    reader.probe().expect("is well");
    write(&reader, b"x").expect("can be written");
    read_all(&reader);
    assert_eq!(plugin.calls(), (2, 2));
}

/// Upstream's TestCacheNotCorrupted: the same ciphertext with other annotations is another seed.
#[test]
fn test_cache_not_corrupted() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let value = write(&server, b"value").expect("can be written");
    let mut other = object(&value);
    other.annotations = Annotations::from([("a.example.com".to_owned(), b"1".to_vec())]);
    let before = plugin.calls().1;
    assert_eq!(read(&server, &value), fresh(b"value"));
    assert_eq!(read(&server, &stored(&other)), fresh(b"value"));
    other.annotations.insert("a.example.com".to_owned(), b"2".to_vec());
    assert_eq!(read(&server, &stored(&other)), fresh(b"value"));
    assert_eq!(plugin.calls().1, before + 2);
}

/// Upstream's TestKMSv2ProviderDEKSourceReuse: one seed for all values, one info for each.
#[test]
fn test_kmsv2_provider_dek_source_reuse() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let objects: Vec<_> =
        (0..1_000).map(|_| object(&write(&server, b"value").expect("can be written"))).collect();
    let sources: std::collections::BTreeSet<_> =
        objects.iter().map(|object| (object.encrypted_dek_source.clone(), object.key_id.clone())).collect();
    let infos: std::collections::BTreeSet<_> =
        objects.iter().map(|object| object.encrypted_data[..32].to_vec()).collect();
    assert_eq!((sources.len(), infos.len(), plugin.calls()), (1, 1_000, (1, 0)));
    assert!(objects.iter().all(|object| object.encrypted_dek_source_type == 1));
}

/// Upstream's Test_kmsv2PluginProbe_rotateDEKOnKeyIDChange.
#[test]
fn test_kmsv2_plugin_probe_rotate_dek_on_key_id_change() {
    let plugin = Plugin::new("1");
    let server = Server::new(&plugin, &Arc::new(Still::default()), 1);
    // (what happens, the key that writes after it or why none does, encrypt calls so far, error)
    let step = |what: &str, writes: Result<&str, ()>, calls: usize, error: Option<&str>| {
        let probed = server.probe();
        match (&probed, error) {
            (Ok(()), None) => {}
            (Err(text), Some(part)) => assert!(text.contains(part), "{what}: {text}"),
            _ => panic!("{what}: {probed:?}"),
        }
        let written = write(&server, b"x").map(|value| object(&value).key_id);
        assert_eq!(written.map_err(|_| ()), writes.map(str::to_owned), "{what}");
        assert_eq!(plugin.calls().0, calls, "{what}");
    };
    plugin.set(|settings| settings.fail_encrypt = Some(disabled()));
    step(
        "no key yet, encrypt fails",
        Err(()),
        1,
        Some(
            "errState=got unexpected nil transformer, errGen=failed to encrypt DEK, error: rpc error: code = FailedPrecondition",
        ),
    );
    plugin.set(|settings| settings.fail_encrypt = None);
    step("first key", Ok("1"), 2, None);
    step("nothing changed", Ok("1"), 2, None);
    server.clock.advance(4 * MINUTE);
    step("expired, but the key is the same", Ok("1"), 2, None);
    plugin.set(|settings| settings.status.as_mut().expect("is well").key_id = "2".to_owned());
    step(
        "encrypts under another key than its status names",
        Ok("1"),
        3,
        Some("errState=<nil>, errGen=<nil>, "),
    );
    plugin.rotate("2");
    step("another key", Ok("2"), 4, None);
    plugin.rotate("3");
    plugin.set(|settings| settings.fail_encrypt = Some(disabled()));
    step("another key, encrypt fails", Ok("2"), 5, Some("errGen=failed to encrypt DEK"));
    server.clock.advance(4 * MINUTE);
    step("and goes on failing", Err(()), 6, Some("expirationTimestamp=2026-01-01T00:07:00Z"));
    plugin.set(|settings| {
        settings.fail_encrypt = None;
        settings.annotations = Annotations::from([("com".to_owned(), Vec::new())]);
    });
    step(
        "an answer that is refused",
        Err(()),
        7,
        Some("failed to validate annotations: annotations: Invalid value: \"com\""),
    );
    plugin.set(|settings| settings.annotations.clear());
    step("well again", Ok("3"), 8, None);
}

/// The whole text, with every hash, as runbooks search for it.
#[test]
fn a_failed_rotation_names_all_keys() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    plugin.set(|settings| settings.status.as_mut().expect("is well").key_id = "2".to_owned());
    let error = server.probe().expect_err("must fail");
    let uid = plugin.uids.lock().expect("no panic").last().cloned().expect("a call");
    assert_eq!(
        error,
        format!(
            "kmsv2 Provider prov is not healthy, error: failed to rotate DEK uid=\"{uid}\", useSeed=true, errState=<nil>, \
             errGen=<nil>, statusKeyIDHash=\"{}\", encryptKeyIDHash=\"{}\", stateKeyIDHash=\"{}\", \
             expirationTimestamp=2026-01-01T00:03:00Z",
            key_id_hash("2"),
            key_id_hash("1"),
            key_id_hash("1"),
        )
    );
}

/// Upstream's TestIsKMSv2ProviderHealthyError.
#[test]
fn test_is_kmsv2_provider_healthy_error() {
    let check = |status: KmsStatus, expected: &str| {
        let plugin = Plugin::new("1");
        plugin.set(|settings| settings.status = Ok(status));
        let server = Server::new(&plugin, &Arc::new(Still::default()), 1);
        let expected = format!("kmsv2 Provider prov is not healthy, error: {expected}");
        assert_eq!(server.probe(), Err(expected));
    };
    let status = |version: &str, healthz: &str, key_id: &str| KmsStatus {
        version: version.to_owned(),
        healthz: healthz.to_owned(),
        key_id: key_id.to_owned(),
    };
    check(status("v2", "unhealthy", "1"), "got unexpected healthz status: unhealthy");
    check(status("v1", "ok", "1"), "expected KMSv2 API version v2, got v1");
    check(status("v2", "ok", ""), "got invalid KMSv2 KeyID hash \"\": keyID is empty");
    check(
        status("", "unhealthy", ""),
        "[got unexpected healthz status: unhealthy, expected KMSv2 API version v2, got , \
         got invalid KMSv2 KeyID hash \"\": keyID is empty]",
    );
    let long = "k".repeat(1025);
    check(
        status("v2", "ok", &long),
        &format!(
            "got invalid KMSv2 KeyID hash \"{}\": keyID is 1025 bytes, which exceeds the max size of 1024",
            key_id_hash(&long)
        ),
    );
}

/// Upstream's TestKMSv2SameVersionFromStatus.
#[test]
fn test_kmsv2_same_version_from_status() {
    let plugin = Plugin::new("1");
    let server = Server::new(&plugin, &Arc::new(Still::default()), 1);
    let say = |version: &str| {
        plugin.set(|settings| version.clone_into(&mut settings.status.as_mut().expect("is well").version));
        server.probe()
    };
    assert_eq!(say("v2beta1"), Ok(()));
    assert_eq!(say("v2beta1"), Ok(()));
    assert_eq!(
        say("v2"),
        Err("kmsv2 Provider prov is not healthy, error: KMSv2 API version should not change after the initial status \
             response version v2beta1, got v2"
            .to_owned())
    );
}

/// The status call itself fails: the first check says more than those that remember it.
#[test]
fn a_status_that_fails_has_two_texts() {
    let plugin = Plugin::new("1");
    plugin.set(|settings| settings.status = Err(disabled()));
    let server = Server::new(&plugin, &Arc::new(Still::default()), 1);
    let error = server.provider.probe().expect_err("must fail");
    let raw = "rpc error: code = FailedPrecondition desc = failed precondition - key disabled";
    assert_eq!(error.remembered, raw);
    assert_eq!(
        error.text,
        format!("failed to perform status section of the healthz check for KMS Provider prov, error: {raw}")
    );
}

/// Two servers share a store. The plugin falls ill: after the window neither writes what the
/// other could not read, and each says why.
#[test]
fn field_case_k25_no_server_writes_long_under_a_plugin_that_is_unwell() {
    let plugin = Plugin::new("1");
    let clock = Arc::new(Still::default());
    let (one, two) = (Server::new(&plugin, &clock, 1), Server::new(&plugin, &clock, 2));
    for server in [&one, &two] {
        server.probe().expect("is well");
    }
    let early = write(&one, b"early").expect("can be written");
    assert_eq!(read(&two, &early), fresh(b"early"));

    // It answers, names its key, and says that it is unwell; it decrypts nothing.
    plugin.set(|settings| {
        settings.status.as_mut().expect("is well").healthz = "backend unreachable".to_owned();
        settings.fail_encrypt = Some(disabled());
        settings.fail_decrypt = Some(disabled());
    });
    for _ in 0..4 {
        clock.advance(MINUTE);
        for server in [&one, &two] {
            let error = server.probe().expect_err("is unwell");
            assert!(error.contains("got unexpected healthz status: backend unreachable"), "{error}");
        }
    }
    for (server, other) in [(&one, &two), (&two, &one)] {
        // Nothing new comes into the store that the other cannot read,
        let error = write(server, b"late").expect_err("the window has passed");
        assert!(error.contains("expired at 2026-01-01T00:03:00Z"), "{error}");
        // and what was shared before stays readable.
        assert_eq!(read(other, &early), fresh(b"early"));
    }
    plugin.rotate("1");
    plugin.set(|settings| (settings.fail_encrypt, settings.fail_decrypt) = (None, None));
    for server in [&one, &two] {
        server.probe().expect("is well again");
    }
    let late = write(&two, b"late").expect("can be written");
    assert_eq!(read(&one, &late), fresh(b"late"));
}

/// A plugin that is unwell from the start: what is stored can be read, as upstream.
#[test]
fn a_plugin_that_is_unwell_at_the_start_can_still_read() {
    let plugin = Plugin::new("1");
    let value = write(&Server::started(&plugin), b"value").expect("can be written");
    plugin.set(|settings| settings.status.as_mut().expect("is well").healthz = "no quorum".to_owned());
    let server = Server::new(&plugin, &Arc::new(Still::default()), 2);
    assert!(server.probe().is_err());
    assert_eq!(read(&server, &value), fresh(b"value"));
}

/// Upstream's TestEnvelopeMetrics and TestEnvelopeMetricsCache: who is told what.
#[test]
fn test_envelope_metrics() {
    let plugin = Plugin::new("1");
    let server = Server::new(&plugin, &Arc::new(Still::default()), 1);
    let hash = &key_id_hash("1")[..11];
    server.probe().expect("is well");
    assert_eq!(server.told.take(), [format!("status prov {hash}"), "generated true".to_owned()]);
    let value = write(&server, b"x").expect("can be written");
    assert_eq!(server.told.take(), ["held prov 1".to_owned(), format!("to_storage prov {hash}")]);
    read(&server, &value).expect("can be read");
    assert_eq!(server.told.take(), [format!("from_storage prov {hash}")]);
    read(&server, &legacy("2")).expect("can be read");
    let other = &key_id_hash("2")[..11];
    let expected = ["missed".to_owned(), "held prov 2".to_owned(), format!("from_storage prov {other}")];
    assert_eq!(server.told.take(), expected);
    plugin.set(|settings| settings.status.as_mut().expect("is well").key_id.clear());
    assert!(server.probe().is_err());
    assert_eq!(server.told.take(), ["refused prov empty"]);
}

#[test]
fn every_call_has_a_name_of_its_own() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    read(&server, &legacy("1")).expect("can be read");
    read(&server, &legacy("2")).expect("can be read");
    let uids = plugin.uids.lock().expect("no panic").clone();
    assert_eq!(uids.len(), 3);
    assert_eq!(uids.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
    assert!(uids.iter().all(|uid| uid.len() == 36));
}

/// The value is bound to its etcd key, and no change of it goes unseen.
#[test]
fn a_moved_cut_or_changed_value_is_an_error() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let value = write(&server, b"a value of some length").expect("can be written");
    let moved = server.list.from_storage(&value, b"/registry/secrets/default/s2").map(|_| ());
    assert_eq!(moved.expect_err("is moved").to_string(), "cipher: message authentication failed");
    for length in 0..value.len() {
        assert!(read(&server, &value[..length]).is_err(), "cut at {length}");
    }
    // What the plugin's key and annotations are called is the plugin's to check, and ours does not.
    let data_end = HEAD + 2 + object(&value).encrypted_data.len();
    for bit in HEAD * 8 + 16..data_end * 8 {
        let mut changed = value.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            read(&server, &changed),
            Err("cipher: message authentication failed".to_owned()),
            "bit {bit}"
        );
    }
    for bit in 0..value.len() * 8 {
        let mut changed = value.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // Never a panic, and never another text.
        if let Ok((plain, _)) = read(&server, &changed) {
            assert_eq!(plain, b"a value of some length", "bit {bit}");
        }
    }
}

#[test]
fn values_of_all_sizes() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let random = Seeded::new(9);
    let sizes = (0..200).chain([1_023, 1_024, 16_384, 65_535, 65_536, 1 << 20]);
    for size in sizes {
        let plain = random.bytes(size);
        let value = write(&server, &plain).expect("can be written");
        assert_eq!(value.len(), server.list.sealed_len(size), "{size}");
        assert_eq!(read(&server, &value), fresh(&plain), "{size}");
        EncryptedObject::decode(&value[HEAD..]).expect("keeps the rules");
    }
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let plugin = Plugin::new("1");
    let server = Server::started(&plugin);
    let random = Seeded::new(10);
    let value = write(&server, b"value").expect("can be written");
    for round in 0..20_000 {
        let mut noise = random.bytes(random.below(120));
        if round % 2 == 0 {
            noise = value[HEAD..].to_vec();
            for _ in 0..=random.below(4) {
                let place = random.below(noise.len());
                noise[place] = random.number() as u8;
            }
        }
        let noise = [b"k8s:enc:kms:v2:prov:".as_slice(), &noise].concat();
        if let Err(error) = read(&server, &noise) {
            assert!(!error.is_empty());
        }
    }
    assert_eq!(Provider::KmsV2.prefix().len() + "prov:".len(), HEAD);
}
