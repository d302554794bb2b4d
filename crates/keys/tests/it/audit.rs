//! What is told of stored copies, live and in a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use coffer_config::encryption::{Reload, Transformers, parse};
use coffer_keys::audit::{Auditor, Report, live};
use coffer_sim::{SeededRandom, SimClock};
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, Op, SharedValue, Txn};
use coffer_types::time::Timestamp;

use crate::plugin::Plugin;

/// A rule of a configuration: resources, and providers as YAML flow.
fn transformers(rules: &[(&str, &str)]) -> Transformers {
    with_plugin(rules, &Plugin::default())
}

fn with_plugin(rules: &[(&str, &str)], plugin: &Plugin) -> Transformers {
    let mut text =
        String::from("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n");
    for (resources, providers) in rules {
        text.push_str(&format!("- resources: [{resources}]\n  providers: [{providers}]\n"));
    }
    let config = parse("test", text.as_bytes(), Reload::Never).expect("a configuration");
    let mut plugins = plugin.clone();
    Transformers::build_with("test", &config, Arc::new(SeededRandom::new(1)), &mut plugins)
        .expect("transformers")
}

fn provider(kind: &str, name: &str, byte: u8) -> String {
    use base64::Engine;
    let secret = base64::engine::general_purpose::STANDARD.encode([byte; 32]);
    format!("{{{kind}: {{keys: [{{name: {name}, secret: \"{secret}\"}}]}}}}")
}

const IDENTITY: &str = "{identity: {}}";

/// A Secret as the API server stores it.
fn secret(namespace: &str, name: &str) -> Vec<u8> {
    object("Secret", namespace, name)
}

/// An object of the core group as the API server stores it.
fn object(kind: &str, namespace: &str, name: &str) -> Vec<u8> {
    let mut metadata = Vec::new();
    for (field, text) in [(0x0a, name), (0x1a, namespace)] {
        metadata.extend([field, text.len() as u8]);
        metadata.extend(text.as_bytes());
    }
    let mut object = vec![0x0a, metadata.len() as u8];
    object.extend(metadata);
    let mut stored = b"k8s\0\x0a".to_vec();
    stored.extend([6 + kind.len() as u8, 0x0a, 2, b'v', b'1', 0x12, kind.len() as u8]);
    stored.extend(kind.as_bytes());
    stored.extend([0x12, object.len() as u8]);
    stored.extend(object);
    stored
}

struct World {
    store: Embedded,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(SimClock::new(Timestamp::UNIX_EPOCH));
        Self { store: Embedded::in_memory(EmbeddedOptions::new(clock)).await.expect("a store") }
    }

    async fn put(&self, key: &str, value: Vec<u8>) {
        let key = bytes::Bytes::copy_from_slice(key.as_bytes());
        let put = Op::Put { key, value: SharedValue(value.into()), lease: 0 };
        self.store.txn(Txn { success: vec![put], ..Txn::default() }).await.expect("written");
    }

    /// Stores an object under `key` as a server with these providers for Secrets would.
    async fn write(&self, providers: &str, key: &str, object: Vec<u8>) {
        self.write_as(providers, key, key, object).await;
    }

    /// The same, encrypted for another key.
    async fn write_as(&self, providers: &str, bound_to: &str, key: &str, object: Vec<u8>) {
        let transformer = transformers(&[("secrets", providers)]).transformer_for("", "secrets");
        self.put(key, transformer.to_storage(&object, bound_to.as_bytes()).expect("encrypted")).await;
    }

    async fn audit(&self, transformers: Option<Transformers>) -> Report {
        let auditor = Auditor::new("/registry", transformers).expect("a prefix");
        live::audit(&self.store, &auditor, &mut |_, _| {}).await.expect("a report")
    }
}

/// `resource provider key live old-key` of every group.
fn groups(report: &Report) -> Vec<String> {
    let line = |of: &coffer_keys::audit::Copies| {
        format!("{} {} {} {} {}", of.resource, of.provider, of.key, of.live, of.old_key)
    };
    report.copies.iter().map(line).collect()
}

/// `problem name reason` of every finding.
fn findings(report: &Report) -> Vec<String> {
    let line = |of: &coffer_keys::audit::Finding| format!("{} {} {}", of.problem.name(), of.name, of.reason);
    report.findings.iter().map(line).collect()
}

#[tokio::test]
async fn without_keys_copies_tell_what_they_are() {
    let world = World::new().await;
    let gcm = provider("aesgcm", "one", 1);
    world.write(&gcm, "/registry/secrets/ns/a", secret("ns", "a")).await;
    world.write(IDENTITY, "/registry/secrets/ns/b", secret("ns", "b")).await;
    world.write(IDENTITY, "/registry/configmaps/ns/c", object("ConfigMap", "ns", "c")).await;
    world.put("/registry/secrets/ns/d", b"k8s:enc:new:v9:?".to_vec()).await;
    world.put("/registry/ranges/serviceips", b"k8s\0".to_vec()).await;
    world.put("compact_rev_key", b"7".to_vec()).await;
    let report = world.audit(None).await;
    assert_eq!(
        groups(&report),
        [
            "configmaps identity  1 0",
            "ranges identity  1 0",
            "secrets aesgcm one 1 0",
            "secrets identity  1 0",
            "secrets unknown  1 0",
        ]
    );
    assert_eq!(findings(&report), ["plaintext ns/b "]);
    assert!(!report.clean && !report.opened);
}

#[tokio::test]
async fn with_keys_every_copy_is_opened() {
    let world = World::new().await;
    let (one, two) = (provider("aesgcm", "one", 1), provider("aesgcm", "two", 2));
    let wrong = provider("aesgcm", "one", 9);
    for (name, providers) in [("old", &one), ("new", &two), ("lost", &wrong), ("plain", &IDENTITY.to_owned())]
    {
        world.write(providers, &format!("/registry/secrets/ns/{name}"), secret("ns", name)).await;
    }
    let held = transformers(&[("secrets", &format!("{two}, {one}, {IDENTITY}"))]);
    let report = world.audit(Some(held)).await;
    assert_eq!(
        groups(&report),
        ["secrets aesgcm one 2 1", "secrets aesgcm two 1 0", "secrets identity  1 0"]
    );
    assert_eq!(
        findings(&report),
        [
            "undecryptable ns/lost [no matching key was found for the provided AES transformer, \
             cipher: message authentication failed]",
            "plaintext ns/plain ",
        ]
    );
    let remaining: Vec<_> = report.copies[0].remaining.iter().collect();
    assert_eq!(remaining, [(&"ns".to_owned(), &1)]);
    assert!(report.opened && !report.clean);
}

#[tokio::test]
async fn what_a_configuration_leaves_in_plaintext_is_no_finding() {
    let world = World::new().await;
    world.write(IDENTITY, "/registry/configmaps/ns/c", object("ConfigMap", "ns", "c")).await;
    world.write(IDENTITY, "/registry/secrets/ns/s", secret("ns", "s")).await;
    let report = world.audit(Some(transformers(&[("secrets", IDENTITY)]))).await;
    assert!(report.clean, "{:?}", report.findings);
    let gcm = provider("aesgcm", "one", 1);
    let report = world.audit(Some(transformers(&[("configmaps", &format!("{gcm}, {IDENTITY}"))]))).await;
    assert_eq!(findings(&report), ["plaintext ns/c "]);
}

/// Ciphertext under another key than the one that it was written for.
#[tokio::test]
async fn a_moved_value_is_found_whatever_the_provider() {
    let kms = |version| format!("{{kms: {{apiVersion: {version}, name: one, endpoint: 'unix:///one'}}}}");
    for (kind, providers, expected) in [
        (
            "aesgcm",
            provider("aesgcm", "one", 1),
            "misplaced ns/copy it was stored as /registry/secrets/ns/db",
        ),
        ("aescbc", provider("aescbc", "one", 1), "misplaced ns/copy it is the object ns/db"),
        ("secretbox", provider("secretbox", "one", 1), "misplaced ns/copy it is the object ns/db"),
        ("kms v1", kms("v1"), "misplaced ns/copy it was stored as /registry/secrets/ns/db"),
        ("kms v2", kms("v2"), "misplaced ns/copy it was stored as /registry/secrets/ns/db"),
    ] {
        let world = World::new().await;
        world.write(&providers, "/registry/secrets/ns/db", secret("ns", "db")).await;
        world
            .write_as(&providers, "/registry/secrets/ns/db", "/registry/secrets/ns/copy", secret("ns", "db"))
            .await;
        let report = world.audit(Some(transformers(&[("secrets", &providers)]))).await;
        assert_eq!(findings(&report), [expected], "{kind}");
        // Without the keys only its name is known.
        assert_eq!(findings(&world.audit(None).await), [""; 0], "{kind}");
    }
}

/// A Secret whose ciphertext was moved to a ConfigMap of the same name, where more may read it.
#[tokio::test]
async fn a_secret_among_other_objects_is_found_although_its_names_fit() {
    let world = World::new().await;
    let providers = provider("secretbox", "one", 1);
    world.write(&providers, "/registry/configmaps/ns/db", secret("ns", "db")).await;
    world.write(&providers, "/registry/secrets/ns/map", object("ConfigMap", "ns", "map")).await;
    let report = world.audit(Some(transformers(&[("secrets, configmaps", &providers)]))).await;
    assert_eq!(
        findings(&report),
        [
            "misplaced ns/db it is the object Secret ns/db",
            "misplaced ns/map it is the object ConfigMap ns/map"
        ]
    );
}

/// A plugin that does not answer is not asked again for each key that there is.
#[tokio::test]
async fn a_plugin_that_fails_is_not_asked_for_every_pair() {
    let world = World::new().await;
    let providers = "{kms: {apiVersion: v2, name: one, endpoint: 'unix:///one'}}";
    for number in 0..10 {
        let name = format!("s{number}");
        world.write(providers, &format!("/registry/secrets/ns/{name}"), secret("ns", &name)).await;
    }
    let plugin = Plugin::default();
    let held = with_plugin(&[("secrets", providers)], &plugin);
    plugin.fail();
    let report = world.audit(Some(held)).await;
    assert_eq!(report.findings.len(), 10);
    assert!(report.findings[0].reason.contains("failed to decrypt DEK"), "{}", report.findings[0].reason);
    assert_eq!(plugin.decrypted(), 10);
}

#[tokio::test]
async fn plaintext_that_is_misplaced_or_no_object_is_found_without_keys() {
    let world = World::new().await;
    world.write(IDENTITY, "/registry/configmaps/ns/copy", secret("ns", "db")).await;
    world.write(IDENTITY, "/registry/configmaps/ns/noise", vec![7; 40]).await;
    world.write(IDENTITY, "/registry/configmaps/ns/empty", Vec::new()).await;
    let report = world.audit(None).await;
    assert_eq!(
        findings(&report),
        [
            "misplaced ns/copy it is the object ns/db",
            "undecodable ns/empty it is no object in any known encoding",
            "undecodable ns/noise it is no object in any known encoding",
        ]
    );
}

/// Field case K19: a rewrite that reached one namespace only leaves the others listed.
#[tokio::test]
async fn k19_what_remains_under_an_old_key_is_told_by_namespace() {
    let world = World::new().await;
    let (old, new) = (provider("aescbc", "old", 1), provider("aescbc", "new", 2));
    for (namespace, providers) in [("done", &new), ("forgotten", &old)] {
        for name in ["a", "b"] {
            let key = format!("/registry/secrets/{namespace}/{name}");
            world.write(providers, &key, secret(namespace, name)).await;
        }
    }
    let report = world.audit(Some(transformers(&[("secrets", &format!("{new}, {old}"))]))).await;
    let remaining: Vec<_> = report.copies.iter().flat_map(|copies| copies.remaining.clone()).collect();
    assert_eq!(remaining, [("forgotten".to_owned(), 2)]);
    assert!(!report.clean);
}

/// More copies than one page, at one revision.
#[tokio::test]
async fn a_large_store_is_read_page_by_page() {
    let world = World::new().await;
    let gcm = provider("aesgcm", "one", 1);
    for number in 0..1_234 {
        let name = format!("s{number}");
        world.put(&format!("/registry/secrets/ns/{name}"), secret("ns", &name)).await;
    }
    let auditor =
        Auditor::new("/registry", Some(transformers(&[("secrets", &format!("{gcm}, {IDENTITY}"))])))
            .expect("a prefix");
    let mut seen = Vec::new();
    let report = live::audit(&world.store, &auditor, &mut |done, total| seen.push((done, total)))
        .await
        .expect("a report");
    assert_eq!(report.findings.len(), 1_234);
    assert_eq!(seen, [(500, 1_234), (1_000, 1_234), (1_234, 1_234)]);
    assert_eq!(report.revision, 1_235);
}

/// An audit may take longer than the store remembers the revision that it began with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_audit_outlives_the_revision_it_began_with() {
    let world = World::new().await;
    for number in 0..600 {
        let name = format!("s{number:03}");
        world.put(&format!("/registry/secrets/ns/{name}"), secret("ns", &name)).await;
    }
    let change = async || {
        let delete = Op::Delete { key: "/registry/secrets/ns/s599".into() };
        world.store.txn(Txn { success: vec![delete], ..Txn::default() }).await.expect("deleted");
        world.put("/registry/secrets/ns/s000", b"changed".to_vec()).await;
        world.store.compact(603).await.expect("compacted");
    };
    let auditor = Auditor::new("/registry", None).expect("a prefix");
    let mut seen = Vec::new();
    let report = live::audit(&world.store, &auditor, &mut |done, total| {
        if seen.is_empty() {
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(change()));
        }
        seen.push((done, total));
    })
    .await
    .expect("a report");
    // Each copy once: s000 has changed behind the reader, s599 has gone before it.
    assert_eq!((report.findings.len(), report.revision), (599, 603));
    let names: BTreeSet<&str> = report.findings.iter().map(|found| found.name.as_str()).collect();
    assert_eq!((names.len(), names.contains("ns/s000"), names.contains("ns/s599")), (599, true, false));
    assert_eq!(seen, [(500, 600), (599, 599)]);
}

/// Whatever is stored, nothing of it is in the report.
#[tokio::test]
async fn no_report_holds_a_value_or_key() {
    let world = World::new().await;
    let gcm = provider("aesgcm", "one", 1);
    world.put("/registry/secrets/ns/a", b"password-in-the-clear".to_vec()).await;
    world.put("/registry/secrets/ns/b", b"{\"password-in-the-clear\"".to_vec()).await;
    world.put("/registry/secrets/ns/c", b"k8s\0password-in-the-clear".to_vec()).await;
    for transformers in [None, Some(transformers(&[("secrets", &format!("{gcm}, {IDENTITY}"))]))] {
        let report = world.audit(transformers).await;
        let told = format!("{report:?}{}", serde_json::to_string(&report).expect("JSON"));
        assert!(!told.contains("password"), "{told}");
    }
}
