//! The encryption configuration replaced while the server runs: noticed, checked, swapped, told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use coffer_config::encryption::reload::content_hash;
use coffer_config::encryption::{Reload, Transformers};
use coffer_keys::kms_plugin::BackendError;
use coffer_runtime::clock::SystemClock;
use coffer_runtime::metrics::Registry;
use coffer_runtime::random::SystemRandom;
use coffer_server::encryption::{ConfigFile, Encryption, Loader, LoaderParts, OnDisk, Reloader, SETTLE, Vet};
use coffer_sim::SimClock;
use coffer_store::Storage;
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, RangeRequest};
use coffer_types::SecretBytes;
use coffer_types::time::{Clock, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::kms::{Fixture, Running};
use crate::support::{Client, Log, secured_over};

const CONTEXT: &[u8] = b"/registry/secrets/default/s1";
const RELOADS: &str = "apiserver_encryption_config_controller_automatic_reloads_total";

/// A key in base64 that no other text holds.
fn key(byte: u8) -> String {
    STANDARD.encode([byte; 32])
}

/// A configuration for Secrets with these providers.
fn config(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers: [{providers}]\n"
    )
}

/// An aesgcm provider with these keys.
fn gcm(keys: &[(&str, u8)]) -> String {
    let keys: Vec<String> =
        keys.iter().map(|(name, byte)| format!("{{name: {name}, secret: {}}}", key(*byte))).collect();
    format!("{{aesgcm: {{keys: [{}]}}}}", keys.join(","))
}

/// A plugin of version 2 that nobody serves.
fn nobody(name: &str, timeout: &str) -> String {
    format!("{{kms: {{apiVersion: v2, name: {name}, endpoint: 'unix:///nobody.sock', timeout: {timeout}}}}}")
}

/// A file in memory.
struct MemoryFile {
    content: Mutex<Result<String, String>>,
    changed: Notify,
    reads: AtomicUsize,
}

#[async_trait]
impl ConfigFile for MemoryFile {
    async fn read(&self) -> Result<SecretBytes, String> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.content.lock().clone().map(|text| SecretBytes::new(text.into_bytes()))
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

struct World {
    clock: SimClock,
    file: Arc<MemoryFile>,
    encryption: Arc<Encryption>,
    metrics: Arc<Registry>,
    /// What was swapped in, in order.
    swapped: Arc<Mutex<Vec<Arc<Transformers>>>>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    async fn start(reload: Reload, text: &str) -> Self {
        Self::start_with(reload, text, None, |_| {}).await
    }

    async fn start_with(
        reload: Reload,
        text: &str,
        vet: Option<Vet>,
        swap: impl Fn(Arc<Transformers>) + Send + Sync + 'static,
    ) -> Self {
        let clock = SimClock::new(Timestamp::from_second(1_700_000_000).expect("in range"));
        let metrics = Arc::<Registry>::default();
        let loader = Loader::new(LoaderParts {
            file: "encryption.yaml".to_owned(),
            reload,
            clock: Arc::new(clock.clone()),
            random: Arc::new(SystemRandom::new()),
            metrics: metrics.clone(),
            allow_kms_v1: true,
        });
        // Plugins that do not answer take their time, which must pass meanwhile.
        let loaded = {
            let loading = loader.load(text.as_bytes());
            tokio::pin!(loading);
            loop {
                tokio::select! {
                    biased;
                    loaded = &mut loading => break loaded.expect("a configuration"),
                    () = tokio::time::sleep(Duration::from_millis(1)) => clock.advance(Duration::from_millis(100)),
                }
            }
        };
        let encryption = Encryption::start(&loader, loaded);
        let file = Arc::new(MemoryFile {
            content: Mutex::new(Ok(text.to_owned())),
            changed: Notify::new(),
            reads: AtomicUsize::new(0),
        });
        let swapped = Arc::<Mutex<Vec<Arc<Transformers>>>>::default();
        let seen = swapped.clone();
        let reloader = Reloader {
            loader,
            file: file.clone(),
            encryption: encryption.clone(),
            swap: Box::new(move |transformers| {
                swap(transformers.clone());
                seen.lock().push(transformers);
            }),
            vet,
        };
        let running = tokio::spawn(reloader.run());
        let world = Self { clock, file, encryption, metrics, swapped, running };
        // The first look comes at once, and then it waits for a change or for the poll.
        world.settled(1).await;
        world
    }

    /// Waits, without any time passing, until so many reads have been made and the next is waited for.
    async fn settled(&self, reads: usize) {
        for _ in 0..10_000 {
            if self.file.reads.load(Ordering::SeqCst) == reads && self.clock.next_wake().is_some() {
                // Between the read and the wait nothing sleeps for long.
                tokio::time::sleep(Duration::from_millis(2)).await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{} reads", self.file.reads.load(Ordering::SeqCst));
    }

    /// Lets time pass in small steps until `reached`.
    async fn until(&self, what: &str, reached: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if reached(self) {
                return;
            }
            self.clock.advance(Duration::from_millis(50));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("never {what}: {:?}", self.encryption.on_disk());
    }

    /// Another content, of which the file system tells.
    fn write(&self, content: Result<&str, &str>) {
        *self.file.content.lock() = content.map(str::to_owned).map_err(str::to_owned);
        self.file.changed.notify_one();
    }

    fn reloads(&self, status: &str) -> u32 {
        let line = format!("{RELOADS}{{status=\"{status}\",apiserver_id_hash=\"\"}} ");
        let text = self.metrics.render();
        text.lines()
            .find_map(|found| found.strip_prefix(&line))
            .map_or(0, |count| count.parse().expect("a number"))
    }

    fn has(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|found| found == line)
    }

    fn in_use(&self, text: &str) -> bool {
        let hash = content_hash(text.as_bytes());
        let told = format!(
            "apiserver_encryption_config_controller_last_config_info{{apiserver_id_hash=\"\",hash=\"{hash}\"}} 1"
        );
        let used = self.encryption.current().hash() == hash;
        assert_eq!(used, self.has(&told), "what is told is what is used");
        used
    }

    /// The text of `encryption-config` at `/readyz?verbose`, after "ok".
    fn detail(&self) -> Option<String> {
        let checks = self.encryption.health_checks();
        let check = checks.iter().find(|check| check.name() == "encryption-config").expect("is there");
        check.detail()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// The log of what comes. Every place that logs has been passed before, as [`Log::start`] asks.
async fn log() -> Log {
    for reload in [Reload::Automatic, Reload::Never] {
        let world = World::start(reload, &config(&gcm(&[("one", 1)]))).await;
        world.write(Ok(""));
        world.until("told", |world| world.detail().is_some()).await;
    }
    Log::start()
}

/// Upstream's TestController: a file that cannot be used changes nothing but counts, and is told.
#[tokio::test]
async fn test_controller() {
    let log = log().await;
    let good = config(&gcm(&[("one", 1)]));
    let next = config(&gcm(&[("two", 2), ("one", 1)]));
    let masked = good.replace("[secrets]", "['*.*']") + &good[good.find("- resources").expect("a rule")..];
    let cases: [(&str, Result<&str, &str>, &str); 9] = [
        ("empty", Ok(""), "is empty"),
        ("half-written", Ok(&next[..next.len() / 2]), "error decoding"),
        ("half of a key", Ok(&next.replace(&key(2), &key(2)[..20])), "secret is not of the expected length"),
        ("no text", Ok("\u{0}\u{1}\u{2}"), "error decoding"),
        ("another kind", Ok("apiVersion: v1\nkind: Secret\n"), "no kind \"Secret\" is registered"),
        ("no provider", Ok(&config("{}")), "provider does not contain any of the expected providers"),
        (
            "two in one",
            Ok(&config(&format!("{{identity: {{}}, {}", &gcm(&[("x", 3)])[1..]))),
            "more than one provider",
        ),
        ("masked", Ok(&masked), "is masked by earlier rule"),
        (
            "gone",
            Err("No such file or directory (os error 2)"),
            "error reading encryption provider configuration file",
        ),
    ];
    for (name, content, why) in cases {
        let world = World::start(Reload::Automatic, &good).await;
        world.write(content);
        world.until(name, |world| 2 <= world.reloads("failure")).await;
        assert!(world.in_use(&good) && world.swapped.lock().is_empty(), "{name}");
        let OnDisk::Other { why: told } = world.encryption.on_disk() else { panic!("{name} is not told") };
        assert!(told.contains(why), "{name}: {told}");
        assert!(world.has("coffer_encryption_config_file_differs 1"), "{name}");
        let detail = Some("the file is not the configuration that is in use".to_owned());
        assert_eq!(world.detail(), detail, "{name}");

        // What comes after a failure is used as if there had been none.
        world.write(Ok(&next));
        world.until("used", |world| world.reloads("success") == 1).await;
        assert!(world.in_use(&next) && world.swapped.lock().len() == 1, "{name}");
        world.until("told", |world| world.encryption.on_disk() == OnDisk::InUse).await;
        assert!(world.has("coffer_encryption_config_file_differs 0") && world.detail().is_none(), "{name}");
    }
    let text = log.text();
    assert!(text.contains("error processing encryption config file"), "{text}");
    for byte in 1..=3 {
        for secret in [&key(byte)[..], &key(byte)[..20]] {
            assert!(!text.contains(secret), "a key is logged");
        }
    }
}

#[tokio::test]
async fn the_same_failure_is_told_once_and_counted_each_time() {
    let log = log().await;
    let world = World::start(Reload::Automatic, &config(&gcm(&[("one", 1)]))).await;
    world.write(Ok(""));
    world.until("failed often", |world| 12 <= world.reloads("failure")).await;
    let told = log.lines().iter().filter(|line| line["level"] == "ERROR").count();
    assert_eq!(told, 1, "{}", log.text());
}

/// "when same valid config is provided previous config shouldn't be changed": nothing is built nor counted.
#[tokio::test]
async fn the_same_content_changes_nothing() {
    let text = config(&gcm(&[("one", 1)]));
    let world = World::start(Reload::Automatic, &text).await;
    let before = world.encryption.current();
    world.write(Ok(&text));
    world.until("read", |world| world.file.reads.load(Ordering::SeqCst) == 2).await;
    // A look at something else shows that the one before is over.
    world.write(Err("gone"));
    world.until("failed", |world| 1 <= world.reloads("failure")).await;
    assert_eq!(world.reloads("success"), 0);
    assert!(Arc::ptr_eq(&before, &world.encryption.current()) && world.swapped.lock().is_empty());
}

/// A change of which the file system tells is read after it has settled; one of which it does not, within
/// the minute. Field case K13: a file below a mount of its own changes without a word.
#[tokio::test]
async fn k13_changes_are_seen_at_once_or_within_the_minute() {
    let world = World::start(Reload::Automatic, &config(&gcm(&[("one", 1)]))).await;
    let start = world.clock.monotonic();
    assert_eq!(world.clock.next_wake(), Some(start + Duration::from_secs(60)));
    let silent = config(&gcm(&[("two", 2)]));
    *world.file.content.lock() = Ok(silent.clone());
    world.clock.advance(Duration::from_millis(59_999));
    world.settled(1).await;
    assert!(!world.in_use(&silent));
    world.clock.advance(Duration::from_millis(1));
    world.settled(2).await;
    for _ in 0..1_000 {
        if world.in_use(&silent) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(world.in_use(&silent));
    world.settled(2).await;

    let told = config(&gcm(&[("three", 3)]));
    let before = world.clock.monotonic();
    world.write(Ok(&told));
    world.until("used", |world| world.reloads("success") == 2).await;
    assert!(world.in_use(&told));
    // Far from the minute, whatever the machine does.
    assert!(world.clock.monotonic() - before < SETTLE + Duration::from_secs(30));
}

/// "when transformer's health check fails previous config shouldn't be changed".
#[tokio::test]
async fn plugins_that_are_not_well_in_time_keep_the_old_configuration() {
    let good = config(&gcm(&[("one", 1)]));
    let world = World::start(Reload::Automatic, &good).await;
    let before = world.clock.monotonic();
    world.write(Ok(&config(&format!("{}, {}", nobody("p", "1s"), gcm(&[("one", 1)])))));
    world.until("failed", |world| 1 <= world.reloads("failure")).await;
    assert!(Duration::from_secs(10) <= world.clock.monotonic() - before, "asked until the limit");
    assert!(world.in_use(&good) && world.swapped.lock().is_empty());
    let OnDisk::Other { why } = world.encryption.on_disk() else { panic!("is told") };
    let expected = "health check for new transformers failed, polling error context deadline exceeded: \
                    kms-provider-0: ";
    assert!(why.starts_with(expected), "{why}");
    // The check of the plugins is that of the configuration in use, which has none.
    let checks = world.encryption.health_checks();
    let names: Vec<&str> = checks.iter().map(|check| check.name()).collect();
    assert_eq!(
        names,
        [
            "kms-providers",
            "poststarthook/start-encryption-provider-config-automatic-reload",
            "encryption-config"
        ]
    );
    assert_eq!(checks[0].check().await, Ok(()));
}

/// Upstream's TestKMSHealthzWithReload: the check is that of the plugins in use. A plugin that comes up
/// while its configuration waits lets it in without another change of the file.
#[tokio::test(flavor = "multi_thread")]
async fn test_kms_healthz_with_reload() {
    let plugin = Fixture::new();
    let local = config(&gcm(&[("one", 1)]));
    let world = World::start(Reload::Automatic, &local).await;
    let socket = plugin.socket().display().to_string();
    let next =
        config(&format!("{}, {}", nobody("prov", "2s").replace("/nobody.sock", &socket), gcm(&[("one", 1)])));
    world.write(Ok(&next));
    world.until("failed", |world| 1 <= world.reloads("failure")).await;
    assert!(world.in_use(&local));
    let running = Running::start(&plugin.socket(), &plugin.backend);
    world.until("used", |world| world.reloads("success") == 1).await;
    assert!(world.in_use(&next));
    let stored = world.encryption.current().transformers().transformer_for("", "secrets");
    let stored = stored.to_storage(b"value", CONTEXT).expect("written");
    assert!(stored.starts_with(b"k8s:enc:kms:v2:prov:"));

    let checks = world.encryption.health_checks();
    assert_eq!((checks[0].name(), checks[0].check().await), ("kms-providers", Ok(())));
    *plugin.backend.ill.lock() = Some(BackendError::Unavailable("no".to_owned()));
    // The last answer counts for 20 s.
    world.clock.advance(Duration::from_secs(21));
    let error = checks[0].check().await.expect_err("is unwell");
    assert!(error.starts_with("kms-provider-0: "), "{error}");
    running.end().await;
}

/// Reads that began before a swap end with the keys that they began with; the old plugins are closed
/// after twice the sum of their timeouts.
#[tokio::test]
async fn the_old_configuration_is_closed_after_its_grace() {
    let old = config(&format!("{}, {}", gcm(&[("one", 1)]), nobody("p", "13s")));
    let world = World::start(Reload::Automatic, &old).await;
    let kept = Arc::downgrade(&world.encryption.current());
    let in_flight = world.encryption.current().transformers().transformer_for("", "secrets");
    let stored = in_flight.to_storage(b"value", CONTEXT).expect("written");
    world.write(Ok(&config(&gcm(&[("two", 2)]))));
    world.until("used", |world| world.reloads("success") == 1).await;
    let swapped = world.clock.monotonic();
    let new = world.encryption.current().transformers().transformer_for("", "secrets");
    assert!(new.from_storage(&stored, CONTEXT).is_err());
    assert_eq!(in_flight.from_storage(&stored, CONTEXT).expect("read").bytes.expose(), b"value");
    assert!(kept.upgrade().is_some());
    world.until("closed", |_| kept.upgrade().is_none()).await;
    let grace = world.clock.monotonic() - swapped;
    // Seen a step or two late.
    assert!(Duration::from_secs(25) < grace && grace < Duration::from_secs(40), "{grace:?}");
    // Whoever still reads then can.
    assert_eq!(in_flight.from_storage(&stored, CONTEXT).expect("read").bytes.expose(), b"value");
}

/// Upstream's TestKMSMaxTimeout, and the periods of TestEncryptionProviderConfigCorrect.
#[tokio::test]
async fn test_kms_max_timeout() {
    use coffer_config::encryption::KmsPlugins as _;
    use coffer_server::kms::{PluginMetrics, PluginParts, Plugins};
    for (v1, v2, seconds) in [
        (&["10s"][..], &["3s"][..], 46),
        (&["3s"], &["10s"], 32),
        (&["5s"], &["3s"], 26),
        (&["2s"], &["3s"], 14),
        (&["7s"], &["3s"], 34),
        (&["3s", "6s"], &["3s"], 42),
        (&[], &["3s"], 6),
        (&["3s"], &[], 12),
        (&[], &[], 0),
    ] {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let mut plugins = Plugins::new(PluginParts {
            metrics: PluginMetrics::new(&Registry::default(), clock.clone()),
            clock,
            random: Arc::new(SystemRandom::new()),
            allow_v1: true,
        })
        .expect("a thread");
        for (version, timeouts) in [("v1", v1), ("v2", v2)] {
            for timeout in timeouts {
                let nanoseconds =
                    timeout.trim_end_matches('s').parse::<i64>().expect("seconds") * 1_000_000_000;
                let kms = coffer_config::encryption::Kms {
                    api_version: version.to_owned(),
                    name: "p".to_owned(),
                    cache_size: Some(10),
                    endpoint: "unix:///nobody.sock".to_owned(),
                    timeout: nanoseconds,
                };
                plugins.connect(&kms).expect("connected when it is needed");
            }
        }
        assert_eq!(plugins.close_grace_period(), Duration::from_secs(seconds), "{v1:?} {v2:?}");
    }
}

/// Field case K27: reload is off and the file is changed, so that the key on disk is not the key in use.
#[tokio::test]
async fn k27_a_changed_file_alarms_when_it_is_not_reloaded() {
    let log = log().await;
    let text = config(&gcm(&[("key1", 1)]));
    let world = World::start(Reload::Never, &text).await;
    assert_eq!((world.detail(), world.encryption.on_disk()), (None, OnDisk::InUse));
    let in_use = |world: &World, byte: u8| {
        let check = coffer_crypto::check_value::key_check_value(
            &[byte; 32],
            coffer_crypto::check_value::KeyIdentity { group: "", dimension: "", revision: 0 },
        );
        let check = check.expect("short names");
        world.has(&format!(
            "coffer_encryption_key_info{{provider=\"aesgcm\",key=\"key1\",check_value=\"{check}\"}} 1"
        ))
    };
    assert!(in_use(&world, 1));
    world.write(Ok(&config(&gcm(&[("key1", 2)]))));
    world.until("told", |world| world.detail().is_some()).await;
    assert!(world.in_use(&text) && in_use(&world, 1) && !in_use(&world, 2));
    assert!(world.has("coffer_encryption_config_file_differs 1"));
    let warnings = |log: &Log| log.lines().iter().filter(|line| line["level"] == "WARN").count();
    assert_eq!(warnings(&log), 1, "{}", log.text());
    // A file that is gone is no better, and is another reason to say so.
    world.write(Err("No such file or directory (os error 2)"));
    world.until("told", |_| warnings(&log) == 2).await;
    world.write(Ok(&text));
    world.until("well", |world| world.detail().is_none()).await;
    assert!(world.has("coffer_encryption_config_file_differs 0"));
    assert_eq!((world.reloads("success"), world.reloads("failure")), (0, 0));
    assert!(world.swapped.lock().is_empty() && !log.text().contains(&key(2)));
}

/// Who holds the store may refuse keys that do not open what it holds.
#[tokio::test]
async fn a_configuration_that_is_vetoed_is_not_used() {
    let vet: Vet = Box::new(|transformers| {
        let stored = transformers.transformer_for("", "secrets").to_storage(b"x", CONTEXT).expect("written");
        let ours = stored.starts_with(b"k8s:enc:aesgcm:v1:one:");
        Box::pin(async move { if ours { Ok(()) } else { Err("no key opens what is stored".to_owned()) } })
    });
    let text = config(&gcm(&[("one", 1)]));
    let world = World::start_with(Reload::Automatic, &text, Some(vet), |_| {}).await;
    world.write(Ok(&config(&gcm(&[("two", 2)]))));
    world.until("failed", |world| 1 <= world.reloads("failure")).await;
    assert!(world.in_use(&text) && world.swapped.lock().is_empty());
    let next = config(&gcm(&[("one", 1), ("two", 2)]));
    world.write(Ok(&next));
    world.until("used", |world| world.in_use(&next)).await;
}

async fn raw(kv: &Arc<dyn Kv>, name: &str) -> String {
    let start = Bytes::from(format!("/registry/secrets/default/{name}"));
    let range = kv.range(RangeRequest { start, limit: 1, ..RangeRequest::default() }).await.expect("read");
    String::from_utf8_lossy(&range.items.first().expect("stored").value).into_owned()
}

/// Field case K7: three rotations, and the server runs on: writes go under the new key, a write that
/// changes nothing rewrites what is under an old one, watches do not notice.
#[tokio::test]
async fn k7_keys_are_rotated_without_a_restart() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let embedded = Embedded::in_memory(EmbeddedOptions::new(clock.clone())).await.expect("a store");
    let kv: Arc<dyn Kv> = Arc::new(embedded);
    let text = config(&gcm(&[("key0", 10)]));
    let storage_of: Arc<Mutex<Option<Arc<Storage>>>> = Arc::default();
    let (swapping, by_resource) = (storage_of.clone(), |transformers: Arc<Transformers>| {
        Box::new(move |group: &str, resource: &str| transformers.transformer_for(group, resource))
    });
    let world = World::start_with(Reload::Automatic, &text, None, move |transformers| {
        swapping.lock().as_ref().expect("a store").set_transformers(by_resource(transformers));
    })
    .await;
    let first = by_resource(world.encryption.current().transformers());
    let storage = Storage::new(kv.clone(), clock.clone(), "/registry", first);
    *storage_of.lock() = Some(storage.clone());
    let api = secured_over(storage, clock, Vec::new()).await;
    let admin = Client::in_groups(&api, "admin", &["system:masters"]);
    let create = async |name: &str| {
        let answer = admin.post(SECRETS, &json!({"metadata": {"name": name}}).to_string()).await;
        assert_eq!(answer.code, 201, "{}", answer.text);
    };
    create("lasting").await;
    assert!(raw(&kv, "lasting").await.starts_with("k8s:enc:aesgcm:v1:key0:"));
    for rotation in 1..=3_u8 {
        let (old, new) = (format!("key{}", rotation - 1), format!("key{rotation}"));
        let (old_key, new_key) = ((&old[..], 9 + rotation), (&new[..], 10 + rotation));
        let steps = [gcm(&[old_key, new_key]), gcm(&[new_key, old_key]), gcm(&[new_key])];
        for (step, providers) in steps.iter().enumerate() {
            let text = config(providers);
            world.write(Ok(&text));
            world.until("used", |world| world.in_use(&text)).await;
            let name = format!("s{rotation}-{step}");
            create(&name).await;
            let writes = if step == 0 { &old } else { &new };
            assert!(raw(&kv, &name).await.starts_with(&format!("k8s:enc:aesgcm:v1:{writes}:")), "{name}");
            if step == 1 {
                // The API server rewrites what a client puts back unchanged.
                let list = admin.get(SECRETS).await.json();
                for secret in list["items"].as_array().expect("items") {
                    let name = secret["metadata"]["name"].as_str().expect("a name");
                    let answer = admin.put(&format!("{SECRETS}/{name}"), &secret.to_string()).await;
                    assert_eq!(answer.code, 200, "{}", answer.text);
                    let under = raw(&kv, name).await;
                    assert!(under.starts_with(&format!("k8s:enc:aesgcm:v1:{new}:")), "{name}");
                }
            }
            assert_eq!(admin.get(&format!("{SECRETS}/lasting")).await.code, 200);
        }
    }
    assert_eq!((world.reloads("success"), world.reloads("failure")), (9, 0));
}
