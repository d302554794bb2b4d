//! Configurations with KMS plugins, connected to ones in this process.

use std::sync::Arc;
use std::time::Duration;

use coffer_config::encryption::{Kms, KmsPlugins, Reload, Transformers, parse};
use coffer_crypto::kms::{
    Annotations, CallError, Direction, KmsEncrypted, KmsStatus, KmsV1, KmsV1Service, KmsV2, KmsV2Parts,
    KmsV2Service, Unobserved,
};
use coffer_crypto::{Failure, Layer, Provider, StoredUnder, Successes, TransformObserver};
use coffer_sim::encryption_configs::KEY;
use coffer_types::SecretBytes;
use coffer_types::time::{Clock, Sleep, Timestamp};

use crate::support::{Counting, FILE};

const CONTEXT: &[u8] = b"/registry/secrets/default/s1";

struct Start;

impl Clock for Start {
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

/// Turns bytes around behind its name.
struct Mirror(String);

impl Mirror {
    fn seal(&self, plaintext: &SecretBytes) -> Vec<u8> {
        self.0.bytes().chain(plaintext.expose().iter().rev().copied()).collect()
    }

    fn open(&self, sealed: &[u8]) -> Result<SecretBytes, CallError> {
        let sealed = sealed.strip_prefix(self.0.as_bytes());
        let sealed = sealed.ok_or_else(|| CallError::new("InvalidArgument", "another plugin's"))?;
        Ok(SecretBytes::new(sealed.iter().rev().copied().collect()))
    }
}

impl KmsV1Service for Mirror {
    fn encrypt(&self, plaintext: &SecretBytes) -> Result<Vec<u8>, CallError> {
        Ok(self.seal(plaintext))
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<SecretBytes, CallError> {
        self.open(ciphertext)
    }
}

impl KmsV2Service for Mirror {
    fn status(&self) -> Result<KmsStatus, CallError> {
        Ok(KmsStatus { version: "v2".to_owned(), healthz: "ok".to_owned(), key_id: "1".to_owned() })
    }

    fn encrypt(&self, _: &str, plaintext: &SecretBytes) -> Result<KmsEncrypted, CallError> {
        let ciphertext = self.seal(plaintext);
        Ok(KmsEncrypted { ciphertext, key_id: "1".to_owned(), annotations: Annotations::new() })
    }

    fn decrypt(&self, _: &str, encrypted: &KmsEncrypted) -> Result<SecretBytes, CallError> {
        self.open(&encrypted.ciphertext)
    }
}

/// Connects plugins of this process, and keeps their names in order.
#[derive(Default)]
struct Mirrors(Vec<String>);

impl KmsPlugins for Mirrors {
    fn connect(&mut self, kms: &Kms) -> Result<Arc<dyn Layer>, String> {
        self.0.push(kms.name.clone());
        let service = Arc::new(Mirror(kms.name.clone()));
        let random = Arc::new(Counting(0));
        if kms.api_version == "v1" {
            let size = kms.cache_size.expect("has a default");
            return Ok(Arc::new(KmsV1::new(service, size, Arc::new(Start), random, Arc::new(Unobserved))));
        }
        let provider = KmsV2::new(KmsV2Parts {
            name: kms.name.clone(),
            service,
            clock: Arc::new(Start),
            random,
            observer: Arc::new(Unobserved),
        });
        provider.probe().map_err(|error| error.text)?;
        Ok(Arc::new(provider))
    }
}

fn load(resources: &str) -> (Transformers, Vec<String>) {
    let text = format!(r#"{{"apiVersion":"v1","kind":"EncryptionConfig","resources":[{resources}]}}"#);
    let config = parse(FILE, text.as_bytes(), Reload::Never).expect("keeps the rules");
    let mut mirrors = Mirrors::default();
    let transformers =
        Transformers::build_with(FILE, &config, Arc::new(Counting(0)), &mut mirrors).expect("can be built");
    (transformers, mirrors.0)
}

fn provider(name: &str) -> String {
    match name {
        "identity" => r#"{"identity":{}}"#.to_owned(),
        "kms v1" => r#"{"kms":{"name":"old","endpoint":"unix:///a"}}"#.to_owned(),
        "kms v2" => r#"{"kms":{"apiVersion":"v2","name":"new","endpoint":"unix:///a"}}"#.to_owned(),
        keyed => format!(r#"{{"{keyed}":{{"keys":[{{"name":"key1","secret":"{KEY}"}}]}}}}"#),
    }
}

/// Upstream's test of that name: six orders of six providers, each read by each.
#[test]
fn test_encryption_provider_config_correct_with_kms() {
    let names = ["aesgcm", "aescbc", "secretbox", "identity", "kms v1", "kms v2"];
    let orders: Vec<_> = (0..names.len())
        .map(|first| {
            let order: Vec<_> =
                names.iter().cycle().skip(first).take(names.len()).map(|name| provider(name)).collect();
            load(&format!(r#"{{"resources":["secrets"],"providers":[{}]}}"#, order.join(","))).0
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
    let stored =
        orders[5].transformer_for("", "secrets").to_storage(b"value", CONTEXT).expect("can be written");
    let expected = StoredUnder { provider: Provider::KmsV2, key_name: "new".to_owned() };
    assert_eq!(orders[0].describe(&stored), Some(expected));
}

/// Upstream's TestKMSv2SingleService: one connection for each element, however many resources it serves.
#[test]
fn test_kmsv2_single_service() {
    let kms =
        |name: &str| format!(r#"{{"kms":{{"apiVersion":"v2","name":"{name}","endpoint":"unix:///a"}}}}"#);
    let rule = |resources: &str, providers: &str| {
        format!(r#"{{"resources":[{resources}],"providers":[{providers}]}}"#)
    };
    let (transformers, connected) = load(
        &[
            rule(
                r#""secrets","configmaps","pandas.awesome.bears.com""#,
                &format!("{},{}", kms("a"), kms("b")),
            ),
            rule(r#""*.apps""#, &kms("c")),
        ]
        .join(","),
    );
    assert_eq!(connected, ["a", "b", "c"]);
    for (group, resource, prefix) in
        [("", "secrets", "a"), ("awesome.bears.com", "pandas", "a"), ("apps", "deployments", "c")]
    {
        let stored =
            transformers.transformer_for(group, resource).to_storage(b"x", CONTEXT).expect("can be written");
        assert!(stored.starts_with(format!("k8s:enc:kms:v2:{prefix}:").as_bytes()), "{resource}");
    }
}

/// Upstream's TestPrefixFromMetrics, TestPrefixToMetrics and TestTotals: which prefix, which status.
#[test]
fn test_prefix_from_metrics() {
    type Lines = Arc<std::sync::Mutex<Vec<String>>>;
    fn push(lines: &Lines, resource: &str, direction: Direction, prefix: &str, status: &str) {
        let line = format!("{resource} {} {prefix:?} {status}", direction.name());
        lines.lock().expect("no panic").push(line);
    }
    #[derive(Default)]
    struct Told(Lines);
    struct Success(Lines, String, Direction, String);
    impl Successes for Success {
        fn count(&self, _: Duration) {
            push(&self.0, &self.1, self.2, &self.3, "OK");
        }
    }
    impl TransformObserver for Told {
        fn successes(&self, resource: &str, direction: Direction, prefix: &str) -> Box<dyn Successes> {
            Box::new(Success(self.0.clone(), resource.to_owned(), direction, prefix.to_owned()))
        }

        fn failed(&self, resource: &str, direction: Direction, prefix: &str, failure: &Failure) {
            push(&self.0, resource, direction, prefix, failure.code());
        }
    }
    let told = Arc::new(Told::default());
    let take = || std::mem::take(&mut *told.0.lock().expect("no panic"));
    let order = |names: &[&str]| {
        let providers: Vec<_> = names.iter().map(|name| provider(name)).collect();
        let rule = format!(r#"{{"resources":["*.*"],"providers":[{}]}}"#, providers.join(","));
        load(&rule).0.observed(Arc::new(Start), told.clone())
    };
    let gcm = order(&["aesgcm", "kms v2", "identity"]).transformer_for("apps", "deployments");
    let stored = gcm.to_storage(b"value", CONTEXT).expect("can be written");
    // The list of keys is told of too, as upstream.
    assert_eq!(
        take(),
        ["deployments.apps to_storage \"key1:\" OK", "deployments.apps to_storage \"k8s:enc:aesgcm:v1:\" OK"]
    );
    gcm.from_storage(&stored, CONTEXT).expect("can be read");
    gcm.from_storage(b"plain", CONTEXT).expect("can be read");
    assert!(gcm.from_storage(&stored, b"elsewhere").is_err());
    assert!(gcm.from_storage(b"k8s:enc:aescbc:v1:key1:", CONTEXT).is_err());
    assert_eq!(
        take(),
        [
            "deployments.apps from_storage \"key1:\" OK",
            "deployments.apps from_storage \"k8s:enc:aesgcm:v1:\" OK",
            "deployments.apps from_storage \"identity\" OK",
            "deployments.apps from_storage \"key1:\" unknown-non-grpc",
            "deployments.apps from_storage \"k8s:enc:aesgcm:v1:\" unknown-non-grpc",
            "deployments.apps from_storage \"unknown\" unknown-non-grpc",
        ]
    );
    let plain = order(&["identity", "kms v2"]).transformer_for("", "secrets");
    assert_eq!(plain.to_storage(b"value", CONTEXT).expect("can be written"), b"value");
    assert_eq!(take(), ["secrets to_storage \"\" OK"]);
    // Of a call that failed the code is found.
    let kms = order(&["kms v2"]).transformer_for("", "secrets");
    let mut foreign = kms.to_storage(b"value", CONTEXT).expect("can be written");
    take();
    let at = foreign.windows(3).rposition(|window| window == b"new").expect("the plugin's name");
    foreign[at] = b'N';
    assert!(kms.from_storage(&foreign, CONTEXT).is_err());
    assert_eq!(take(), ["secrets from_storage \"k8s:enc:kms:v2:new:\" InvalidArgument"]);
}
