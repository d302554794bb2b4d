//! What comes from the store and from files.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use coffer_config::encryption::{self, Reload, Transformers, Unconnected};
use coffer_crypto::kms::{
    Annotations, CallError, EncryptedObject, KmsEncrypted, KmsStatus, KmsV1, KmsV1Service, KmsV2, KmsV2Parts,
    KmsV2Service, Unobserved,
};
use coffer_crypto::{Entry, Identity, NamedKey, PrefixList, Provider, Transformer, describe, keyed};
use coffer_store::key::{KeySpace, Origin, Segment, clean_prefix, resource_path};
use coffer_store::snapshot::Snapshot;
use coffer_types::SecretBytes;
use coffer_types::random::{Random, RandomError};
use coffer_types::time::{Clock, Sleep, Timestamp};

const CONTEXT: &[u8] = b"/registry/secrets/default/s1";

/// The same bytes each time, so that an input does the same in each run.
struct Fixed;

impl Random for Fixed {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), RandomError> {
        for (byte, value) in buffer.iter_mut().zip((1..=u8::MAX).cycle()) {
            *byte = value;
        }
        Ok(())
    }
}

/// Time stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// A plugin whose ciphertext is the plaintext, so that the fuzzer chooses data keys.
struct Plugin;

impl KmsV1Service for Plugin {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        Ok(plaintext.expose().to_vec())
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        Ok(SecretBytes::new(ciphertext.to_vec()))
    }
}

impl KmsV2Service for Plugin {
    fn status(&self) -> Result<KmsStatus, CallError> {
        Ok(KmsStatus { version: "v2".into(), healthz: "ok".into(), key_id: "1".into() })
    }

    fn encrypt(&self, _: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        let ciphertext = plaintext.expose().to_vec();
        Ok(KmsEncrypted { ciphertext, key_id: "1".into(), annotations: Annotations::new() })
    }

    fn decrypt(&self, _: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        Ok(SecretBytes::new(encrypted.ciphertext.clone()))
    }
}

/// All providers, each as the one that writes.
fn all_providers() -> Vec<Arc<dyn Transformer>> {
    let random: Arc<dyn Random> = Arc::new(Fixed);
    let keys = ["key1", "key:2"].map(|name| NamedKey {
        name: name.into(),
        secret: SecretBytes::new(b"0123456789abcdef0123456789abcdef".to_vec()),
    });
    let mut entries = vec![Entry { prefix: Vec::new(), layer: Arc::new(Identity) }];
    for provider in [Provider::AesCbc, Provider::AesGcm, Provider::Secretbox] {
        entries.push(keyed(provider, &keys, &random).expect("the keys fit"));
    }
    let v1 = KmsV1::new(Arc::new(Plugin), 4, Arc::new(Still), Arc::clone(&random), Arc::new(Unobserved));
    entries.push(Entry { prefix: b"k8s:enc:kms:v1:one:".to_vec(), layer: Arc::new(v1) });
    let v2 = KmsV2::new(KmsV2Parts {
        name: "two".into(),
        service: Arc::new(Plugin),
        clock: Arc::new(Still),
        random,
        observer: Arc::new(Unobserved),
    });
    v2.probe().expect("the plugin is well");
    entries.push(Entry { prefix: b"k8s:enc:kms:v2:two:".to_vec(), layer: Arc::new(v2) });
    (0..entries.len())
        .map(|first| {
            let mut others = entries.clone();
            let writes = others.remove(first);
            Arc::new(PrefixList::new(writes, others, "no matching prefix found")) as Arc<dyn Transformer>
        })
        .collect()
}

/// Stored values, read by a list of all providers; and each provider's writing read again.
pub(crate) fn envelopes(data: &[u8]) {
    static LISTS: LazyLock<Vec<Arc<dyn Transformer>>> = LazyLock::new(all_providers);
    drop(describe(data, &["key1", "key:2"]));
    let first = LISTS.first().expect("there are providers");
    if let Ok(plain) = first.from_storage(data, CONTEXT) {
        assert!(plain.bytes.len() <= data.len(), "nothing grows by being decrypted");
    }
    for list in LISTS.iter() {
        let Ok(stored) = list.to_storage(data, CONTEXT) else { continue };
        if list.writes_under().is_empty() && data.starts_with(coffer_crypto::ENCRYPTED_PREFIX) {
            // Plaintext that looks encrypted is not read as plaintext.
            continue;
        }
        let plain = list.from_storage(&stored, CONTEXT).expect("what was written is read");
        assert!(plain.bytes.expose() == data && !plain.stale, "what was written is what is read");
        // One changed bit at a place that the input chooses.
        let place = data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % stored.len().max(1);
        let mut changed = stored;
        if let Some(byte) = changed.get_mut(place) {
            *byte ^= 1 << (data.len() % 8);
            drop(list.from_storage(&changed, CONTEXT));
        }
    }
}

/// The stored object of KMS v2.
pub(crate) fn kms_object(data: &[u8]) {
    if let Ok(object) = EncryptedObject::decode(data) {
        assert!(object.data.len() < data.len(), "the value is a part of the object");
    }
}

/// Bytes of a page in the kept snapshots, of the head of a page, and of what the checksum of a meta page is made of.
const PAGE: usize = 4096;
const PAGE_HEAD: usize = 16;
const SUMMED: usize = 56;

/// A snapshot file: as it is, and of whole pages with right checksums, or no change would get beyond these.
pub(crate) fn snapshot(data: &[u8]) {
    read_snapshot(data);
    let mut sealed = data[..data.len() - data.len() % PAGE].to_vec();
    for meta in sealed.chunks_exact_mut(PAGE).take(2) {
        let (summed, rest) = meta[PAGE_HEAD..].split_at_mut(SUMMED);
        // FNV-1a, as bbolt writes it.
        let sum = summed.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        rest[..8].copy_from_slice(&sum.to_le_bytes());
    }
    read_snapshot(&sealed);
}

fn read_snapshot(data: &[u8]) {
    let Ok(snapshot) = Snapshot::open(data) else { return };
    let mut bytes = 0;
    let done = snapshot.records(&mut |record| bytes += record.key.len() + record.value.len(), &mut |_| {});
    // Elements of a page may overlap in a damaged file, but not without end.
    let most = data.len().saturating_mul(data.len());
    assert!(done.is_err() || bytes <= most, "{bytes} bytes of records in {} bytes", data.len());
}

/// Keys in etcd, and the names that they are made of.
pub(crate) fn etcd_keys(data: &[u8]) {
    for namespaced in [true, false] {
        let keys =
            KeySpace::new("/registry", "", "secrets", Origin::BuiltIn, namespaced).expect("a key space");
        let found = keys.split(data).map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        if let Some((namespace, name)) = found
            && let Ok(key) = keys.object(&namespace, &name)
            && (!namespaced || !namespace.is_empty())
        {
            assert_eq!(key.bytes(), data, "the parts of a key make the key");
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(segment) = Segment::new(text) {
        assert!(!segment.as_str().contains('/'));
    }
    if let Ok(prefix) = clean_prefix(text) {
        assert_eq!(clean_prefix(&prefix).as_deref(), Ok(&*prefix), "a clean prefix stays as it is");
    }
    let (group, resource) = text.split_once('/').unwrap_or(("", text));
    for origin in [Origin::BuiltIn, Origin::Extension] {
        drop(resource_path(group, resource, origin));
        drop(KeySpace::new(group, resource, text, origin, true));
    }
}

/// An EncryptionConfiguration in JSON or YAML.
pub(crate) fn encryption_configuration(data: &[u8]) {
    for reload in [Reload::Never, Reload::Automatic] {
        if let Ok(config) = encryption::parse("config.yaml", data, reload) {
            let mut plugins = Unconnected { allow_v1: true };
            drop(Transformers::build_with("config.yaml", &config, Arc::new(Fixed), &mut plugins));
        }
    }
}
