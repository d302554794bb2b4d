//! Which transformer a resource gets, and that it reads what it should.

use std::sync::Arc;

use coffer_config::encryption::{GroupResource, Transformers, generate};
use coffer_crypto::{Provider, StoredUnder};
use coffer_sim::encryption_configs::{KEY, routes};
use coffer_types::random::{Random, RandomError};

use crate::support::{Counting, build, load};

const CONTEXT: &[u8] = b"/registry/secrets/default/s1";

#[test]
fn test_wildcard_structure() {
    for route in routes() {
        let transformers = build(&route.config).expect("keeps the rules");
        for (resource, prefix) in route.expected {
            let GroupResource { group, resource } = GroupResource::parse(resource);
            let transformer = transformers.transformer_for(&group, &resource);
            let stored = transformer.to_storage(b"value", CONTEXT).expect("can be written");
            let plain =
                if prefix.is_empty() { stored == b"value" } else { stored.starts_with(prefix.as_bytes()) };
            assert!(plain, "{resource}.{group}: {}", String::from_utf8_lossy(&stored));
            let read = transformer.from_storage(&stored, CONTEXT).expect("can be read");
            assert!(read.bytes.expose() == b"value" && !read.stale, "{resource}.{group}");
        }
    }
}

/// One rule for Secrets with these providers.
fn secrets(providers: &str) -> Transformers {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"EncryptionConfig","resources":[{{"resources":["secrets"],"providers":[{providers}]}}]}}"#
    );
    build(&text).expect("keeps the rules")
}

fn provider(name: &str) -> String {
    if name == "identity" {
        return r#"{"identity":{}}"#.to_owned();
    }
    format!(r#"{{"{name}":{{"keys":[{{"name":"key1","secret":"{KEY}"}}]}}}}"#)
}

/// Every order of the providers reads what every other wrote; stale exactly when the writer is another.
#[test]
fn test_encryption_provider_config_correct() {
    let names = ["aesgcm", "aescbc", "secretbox", "identity"];
    let orders: Vec<_> = (0..names.len())
        .map(|first| {
            let order: Vec<_> =
                names.iter().cycle().skip(first).take(names.len()).map(|name| provider(name)).collect();
            secrets(&order.join(","))
        })
        .collect();
    for (writer, write) in orders.iter().enumerate() {
        let stored =
            write.transformer_for("", "secrets").to_storage(b"value", CONTEXT).expect("can be written");
        for (reader, read) in orders.iter().enumerate() {
            let plain =
                read.transformer_for("", "secrets").from_storage(&stored, CONTEXT).expect("can be read");
            assert_eq!(plain.bytes.expose(), b"value");
            assert_eq!(plain.stale, reader != writer, "{} read by {}", names[writer], names[reader]);
        }
    }
}

/// What is shown of a configuration: everything but the keys. The check value is HMAC-SHA-256 over the
/// context of an empty identity, made with another library.
#[test]
fn keys_are_shown_by_check_values() {
    let text = format!(
        r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{{"resources":["secrets","*.apps"],"providers":[{},{},{},{}]}}]}}"#,
        provider("aesgcm"),
        provider("secretbox"),
        r#"{"kms":{"name":"old","endpoint":"unix:///tmp/old.sock"}}"#,
        provider("identity"),
    );
    let shown = load(&text).expect("keeps the rules").shown();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].resources, ["secrets", "*.apps"]);
    let keys: Vec<(Provider, Vec<(&str, &str)>)> = shown[0]
        .providers
        .iter()
        .map(|shown| {
            let keys = shown.keys.iter().map(|key| (key.name.as_str(), key.check_value.as_str()));
            (shown.provider, keys.collect())
        })
        .collect();
    let check = "b31c3a98d8691332";
    assert_eq!(
        keys,
        [
            (Provider::AesGcm, vec![("key1", check)]),
            (Provider::Secretbox, vec![("key1", check)]),
            (Provider::KmsV1, vec![("old", "")]),
            (Provider::Identity, vec![]),
        ]
    );
}

/// Upstream's TestCBCKeyRotationWith(out)OverlappingProviders.
#[test]
fn test_cbc_key_rotation_with_overlapping_providers() {
    const OLD: &str = r#"{"name":"1","secret":"ZmlyZmlyc3RrZXlmaXJzdGtleWZpcnN0a2V5MTIzNDU="}"#;
    const NEW: &str = r#"{"name":"2","secret":"c2Vjb25ka2V5c2Vjb25ka2V5c2Vjb25ka2V5MTIzNDU="}"#;
    let list = |keys: &str| format!(r#"{{"aescbc":{{"keys":[{keys}]}}}}"#);
    let before = secrets(&list(OLD)).transformer_for("", "secrets");
    let stored = before.to_storage(b"value", CONTEXT).expect("can be written");
    let check = |providers: String| {
        let after = secrets(&providers).transformer_for("", "secrets");
        let plain = after.from_storage(&stored, CONTEXT).expect("can be read");
        assert!(plain.bytes.expose() == b"value" && plain.stale, "{providers}");
        let rewritten = after.to_storage(plain.bytes.expose(), CONTEXT).expect("can be written");
        assert!(rewritten.starts_with(b"k8s:enc:aescbc:v1:2:"));
    };
    check(format!("{},{}", list(NEW), list(OLD)));
    check(list(&format!("{NEW},{OLD}")));
}

/// What no rule names is plaintext, and refuses what another configuration encrypted.
#[test]
fn resources_that_no_rule_names() {
    let named = secrets(&provider("aesgcm")).transformer_for("", "secrets");
    let stored = named.to_storage(b"value", CONTEXT).expect("can be written");
    for transformers in [secrets(&provider("aesgcm")), Transformers::identity()] {
        let unnamed = transformers.transformer_for("", "configmaps");
        assert_eq!(unnamed.to_storage(b"value", CONTEXT).expect("can be written"), b"value");
        let error = unnamed.from_storage(&stored, CONTEXT).map(|_| ()).expect_err("is encrypted");
        assert_eq!(error.to_string(), "identity transformer tried to read encrypted data");
    }
}

#[test]
fn a_stored_value_is_described_by_the_names_that_are_configured() {
    let keys = format!(r#"{{"aesgcm":{{"keys":[{{"name":"a:b","secret":"{KEY}"}}]}}}}"#);
    let transformers = secrets(&keys);
    let stored =
        transformers.transformer_for("", "secrets").to_storage(b"value", CONTEXT).expect("can be written");
    let expected = StoredUnder { provider: Provider::AesGcm, key_name: "a:b".to_owned() };
    assert_eq!(transformers.describe(&stored), Some(expected));
}

#[test]
fn a_generated_configuration() {
    let text = generate(&["secrets", "*.example.com"], &Counting(0)).expect("the source works");
    let text = std::str::from_utf8(text.expose()).expect("is text");
    assert_eq!(
        text,
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources:\n  - \
         'secrets'\n  - '*.example.com'\n  providers:\n  - aesgcm:\n      keys:\n      - name: key1\n        \
         secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"
    );
}

/// The text is YAML that our own loader takes; tests/peers gives it to the original.
#[test]
fn a_generated_configuration_loads() {
    let text = generate(&["secrets", "*.example.com"], &Counting(0)).expect("the source works");
    let transformers = build(std::str::from_utf8(text.expose()).expect("is text")).expect("keeps the rules");
    let write = |group: &str, resource: &str| {
        transformers.transformer_for(group, resource).to_storage(b"value", CONTEXT).expect("can be written")
    };
    assert!(write("", "secrets").starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    assert!(write("example.com", "things").starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    assert_eq!(write("", "configmaps"), b"value");
}

#[test]
fn nothing_is_generated_without_randomness() {
    struct Broken;
    impl Random for Broken {
        fn fill(&self, _buffer: &mut [u8]) -> Result<(), RandomError> {
            Err(RandomError)
        }
    }
    let broken: Arc<dyn Random> = Arc::new(Broken);
    assert!(generate(&["secrets"], &*broken).is_err());
}
