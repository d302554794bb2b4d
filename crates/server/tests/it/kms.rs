//! Plugins over real sockets: the client of both versions, its waiting, its health checks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use coffer_config::encryption::{Reload, Transformers, parse};
use coffer_crypto::kms::{Annotations, EncryptedObject, KmsEncrypted};
use coffer_keys::kms_plugin::{Backend, BackendError, Socket, serve};
use coffer_runtime::clock::SystemClock;
use coffer_runtime::metrics::Registry;
use coffer_runtime::random::SystemRandom;
use coffer_server::kms::{PluginMetrics, PluginParts, Plugins};
use coffer_sim::SimClock;
use coffer_sim::peers::until;
use coffer_types::SecretBytes;
use coffer_types::time::{Clock, Timestamp};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const KEY: &[u8] = b"/registry/secrets/default/s1";

/// Turns bytes around, and does what a test wants.
#[derive(Default)]
pub(crate) struct Mirror {
    key_id: Mutex<String>,
    pub(crate) ill: Mutex<Option<BackendError>>,
    calls: AtomicUsize,
}

impl Mirror {
    fn well(&self) -> Result<(), BackendError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.ill.lock().clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl Backend for Mirror {
    async fn current_key_id(&self) -> Result<String, BackendError> {
        self.well()?;
        Ok(self.key_id.lock().clone())
    }

    async fn encrypt(&self, plaintext: &SecretBytes) -> Result<KmsEncrypted, BackendError> {
        self.well()?;
        let ciphertext = plaintext.expose().iter().rev().copied().collect();
        let annotations = Annotations::from([("a.example.com".to_owned(), b"1".to_vec())]);
        Ok(KmsEncrypted { ciphertext, key_id: self.key_id.lock().clone(), annotations })
    }

    async fn decrypt(&self, encrypted: &KmsEncrypted) -> Result<SecretBytes, BackendError> {
        self.well()?;
        assert_eq!(encrypted.annotations["a.example.com"], b"1");
        Ok(SecretBytes::new(encrypted.ciphertext.iter().rev().copied().collect()))
    }
}

pub(crate) struct Running {
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _socket: Socket,
}

impl Running {
    pub(crate) fn start(path: &Path, backend: &Arc<Mirror>) -> Self {
        let (listener, socket) = Socket::bind(path).expect("can be bound");
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, backend.clone(), stop.clone()));
        Self { stop, serving, _socket: socket }
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.serving.await.expect("ends");
    }
}

pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    pub(crate) backend: Arc<Mirror>,
    metrics: Arc<Registry>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let backend = Mirror { key_id: Mutex::new("1".to_owned()), ..Mirror::default() };
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            backend: Arc::new(backend),
            metrics: Arc::default(),
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("kms.sock")
    }

    /// The transformers of a configuration whose providers are `kms`, `SOCKET` standing for the socket.
    fn load(&self, kms: &[&str]) -> Result<(Transformers, Arc<Plugins>), String> {
        self.load_at(Arc::new(SystemClock::new()), kms)
    }

    fn load_at(&self, clock: Arc<dyn Clock>, kms: &[&str]) -> Result<(Transformers, Arc<Plugins>), String> {
        let elements: Vec<String> = kms.iter().map(|kms| format!(r#"{{"kms":{{{kms}}}}}"#)).collect();
        let text = format!(
            r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{{"resources":["secrets"],"providers":[{}]}}]}}"#,
            elements.join(",")
        )
        .replace("SOCKET", &format!("unix://{}", self.socket().display()));
        let config = parse("test", text.as_bytes(), Reload::Never).map_err(|error| error.to_string())?;
        let mut plugins = Plugins::new(PluginParts {
            metrics: PluginMetrics::new(&self.metrics, clock.clone()),
            clock,
            random: Arc::new(SystemRandom::new()),
            allow_v1: true,
        })
        .expect("a thread can be started");
        let random = Arc::new(SystemRandom::new());
        let transformers = Transformers::build_with("test", &config, random, &mut plugins)
            .map_err(|error| error.to_string())?;
        Ok((transformers, Arc::new(plugins)))
    }
}

const V2: &str = r#""apiVersion":"v2","name":"prov","endpoint":"SOCKET","timeout":"60s""#;

async fn ask_once(plugins: &Arc<Plugins>) {
    let plugins = plugins.clone();
    tokio::task::spawn_blocking(move || plugins.ask_once()).await.expect("does not panic");
}

async fn check(plugins: &Plugins) -> Result<(), String> {
    let checks = plugins.health_checks(false);
    assert_eq!(checks.len(), 1);
    assert_eq!((checks[0].name(), checks[0].live(), checks[0].ready_only()), ("kms-providers", false, false));
    checks[0].check().await
}

/// Upstream's TestGRPCService and TestKMSOperationsMetric; the calls are made from async code.
#[tokio::test(flavor = "multi_thread")]
async fn test_grpc_service() {
    let fixture = Fixture::new();
    let running = Running::start(&fixture.socket(), &fixture.backend);
    let (transformers, plugins) = fixture.load(&[V2]).expect("keeps the rules");
    ask_once(&plugins).await;
    check(&plugins).await.expect("is well");
    let secrets = transformers.transformer_for("", "secrets");
    let stored = secrets.to_storage(b"value", KEY).expect("can be written");
    assert!(stored.starts_with(b"k8s:enc:kms:v2:prov:"));
    assert_eq!(secrets.from_storage(&stored, KEY).expect("can be read").bytes.expose(), b"value");

    // Another server, with nothing remembered, in a current-thread runtime's place: no runtime at all.
    let (others, plugins) = fixture.load(&[V2]).expect("keeps the rules");
    ask_once(&plugins).await;
    let read = std::thread::spawn(move || {
        let plain = others.transformer_for("", "secrets").from_storage(&stored, KEY).expect("can be read");
        plain.bytes.expose().to_vec()
    });
    assert_eq!(read.join().expect("does not panic"), b"value");
    let text = fixture.metrics.render();
    for line in [
        "apiserver_envelope_encryption_kms_operations_latency_seconds_count{provider_name=\"prov\",\
         method_name=\"/v2.KeyManagementService/Encrypt\",grpc_status_code=\"OK\"} 2",
        "apiserver_envelope_encryption_kms_operations_latency_seconds_count{provider_name=\"prov\",\
         method_name=\"/v2.KeyManagementService/Decrypt\",grpc_status_code=\"OK\"} 1",
        "apiserver_storage_envelope_transformation_cache_misses_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    running.end().await;
}

/// Upstream's TestKMSPluginLateStart: a call waits for a plugin that comes up later.
#[tokio::test(flavor = "multi_thread")]
async fn test_kms_plugin_late_start() {
    let fixture = Fixture::new();
    let (transformers, plugins) = fixture.load(&[V2]).expect("keeps the rules");
    let asked = tokio::spawn({
        let plugins = plugins.clone();
        async move { ask_once(&plugins).await }
    });
    // Whether the call is on its way by now or not, it must succeed.
    tokio::task::yield_now().await;
    let running = Running::start(&fixture.socket(), &fixture.backend);
    asked.await.expect("does not panic");
    let secrets = transformers.transformer_for("", "secrets");
    assert!(secrets.to_storage(b"value", KEY).is_ok());
    running.end().await;
}

/// Upstream's TestIntermittentConnectionLoss: a plugin that is started again is reached again.
#[tokio::test(flavor = "multi_thread")]
async fn test_intermittent_connection_loss() {
    let fixture = Fixture::new();
    let running = Running::start(&fixture.socket(), &fixture.backend);
    let (first, plugins) = fixture.load(&[V2]).expect("keeps the rules");
    ask_once(&plugins).await;
    let stored = first.transformer_for("", "secrets").to_storage(b"value", KEY).expect("can be written");
    running.end().await;
    let (second, others) = fixture.load(&[V2]).expect("keeps the rules");
    let asked = tokio::spawn(async move { ask_once(&others).await });
    let running = Running::start(&fixture.socket(), &fixture.backend);
    asked.await.expect("does not panic");
    let read = tokio::task::spawn_blocking(move || {
        second.transformer_for("", "secrets").from_storage(&stored, KEY).map(|plain| plain.bytes)
    });
    assert_eq!(read.await.expect("does not panic").expect("can be read").expose(), b"value");
    running.end().await;
}

/// Upstream's TestTimeouts: nobody listens, and the call ends at its time with Go's text.
#[tokio::test(flavor = "multi_thread")]
async fn test_timeouts() {
    let fixture = Fixture::new();
    let short = V2.replace("60s", "50ms");
    let (transformers, plugins) = fixture.load(&[&short]).expect("keeps the rules");
    ask_once(&plugins).await;
    let raw = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    let error = check(&plugins).await.expect_err("nobody answers");
    // Remembered or asked anew, depending on how busy the machine is.
    let fresh =
        format!("failed to perform status section of the healthz check for KMS Provider prov, error: {raw}");
    assert!([raw, &fresh].iter().any(|text| error == format!("kms-provider-0: {text}")), "{error}");
    let error =
        transformers.transformer_for("", "secrets").to_storage(b"x", KEY).expect_err("was never well");
    assert_eq!(error.to_string(), "got unexpected nil transformer");
}

/// What the plugin says comes through, with the code that it chose.
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_plugin() {
    let fixture = Fixture::new();
    let running = Running::start(&fixture.socket(), &fixture.backend);
    let (transformers, plugins) = fixture.load(&[V2]).expect("keeps the rules");
    ask_once(&plugins).await;
    let secrets = transformers.transformer_for("", "secrets");
    let stored = secrets.to_storage(b"value", KEY).expect("can be written");
    for (error, code) in [
        (BackendError::Denied("no".to_owned()), "PermissionDenied"),
        (BackendError::Unavailable("no".to_owned()), "Unavailable"),
        (BackendError::NoSuchKey("no".to_owned()), "FailedPrecondition"),
        (BackendError::Invalid("no".to_owned()), "InvalidArgument"),
    ] {
        let (others, plugins) = fixture.load(&[V2]).expect("keeps the rules");
        ask_once(&plugins).await;
        *fixture.backend.ill.lock() = Some(error);
        let failed = others.transformer_for("", "secrets").from_storage(&stored, KEY).map(|_| ());
        let expected = format!("failed to decrypt DEK, error: rpc error: code = {code} desc = no");
        assert_eq!(failed.expect_err("is ill").to_string(), expected);
        // The status tells it, and goes on naming the key.
        let error = fixture.load(&[V2]).expect("keeps the rules").1;
        ask_once(&error).await;
        *fixture.backend.ill.lock() = None;
    }
    running.end().await;
}

/// Every minute, and every ten seconds while it is not well, on the injected clock: the key follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_noticed_by_polling() {
    let fixture = Fixture::new();
    let running = Running::start(&fixture.socket(), &fixture.backend);
    let clock = SimClock::new(Timestamp::UNIX_EPOCH);
    // A call waits on the clock too, never for as long as the poll.
    let kms = V2.replace("60s", "45s");
    let (transformers, plugins) = fixture.load_at(Arc::new(clock.clone()), &[&kms]).expect("keeps the rules");
    ask_once(&plugins).await;
    let polling = tokio::spawn(plugins.poll());
    let secrets = transformers.transformer_for("", "secrets");
    let writes_under = || {
        let stored = secrets.to_storage(b"value", KEY).expect("can be written");
        let object =
            EncryptedObject::decode(&stored["k8s:enc:kms:v2:prov:".len()..]).expect("keeps the rules");
        object.source.key_id
    };
    // Until the poll waits again: calls, which also wait on the clock, are over by then.
    let idle_until = |due: Duration| {
        until("the poll to wait", || (clock.next_wake() == Some(due)).then_some(()));
    };
    let seconds = Duration::from_secs;
    assert_eq!(writes_under(), "1");
    idle_until(seconds(60));
    "2".clone_into(&mut fixture.backend.key_id.lock());
    clock.advance(seconds(59));
    assert_eq!(writes_under(), "1");
    clock.advance(seconds(1));
    idle_until(seconds(120));
    assert_eq!(writes_under(), "2");

    *fixture.backend.ill.lock() = Some(BackendError::Unavailable("away".to_owned()));
    clock.advance(seconds(60));
    idle_until(seconds(130));
    "3".clone_into(&mut fixture.backend.key_id.lock());
    *fixture.backend.ill.lock() = None;
    clock.advance(seconds(10));
    idle_until(seconds(190));
    assert_eq!(writes_under(), "3");
    polling.abort();
    running.end().await;
}

/// Upstream's TestInvalidConfiguration, and the plugins of version 1: their version is asked for first.
#[tokio::test(flavor = "multi_thread")]
async fn names_and_versions() {
    let fixture = Fixture::new();
    let running = Running::start(&fixture.socket(), &fixture.backend);
    let v1 = r#""apiVersion":"v1","name":"old","endpoint":"SOCKET","timeout":"60s""#;
    let (transformers, plugins) = fixture.load(&[v1, V2]).expect("keeps the rules");
    ask_once(&plugins).await;
    let checks = plugins.health_checks(false);
    let names: Vec<&str> = checks.iter().map(|check| check.name()).collect();
    assert_eq!(names, ["kms-provider-0", "kms-provider-1"]);
    assert_eq!(plugins.health_checks(true).len(), 1);
    // 2 × (2 × 60 s + 60 s).
    assert_eq!(plugins.close_grace_period(), Duration::from_secs(360));
    let error =
        transformers.transformer_for("", "secrets").to_storage(b"x", KEY).expect_err("speaks v2 only");
    assert_eq!(
        error.to_string(),
        "failed get version from remote KMS provider: rpc error: code = Unimplemented desc = \
         unknown method /v1beta1.KeyManagementService/Version"
    );
    assert!(checks[0].check().await.expect_err("speaks v2 only").contains("Unimplemented"));
    checks[1].check().await.expect("is well");
    // Upstream's TestEncryptionProviderConfigCorrect: 2 × (2 × 5 s + 3 s).
    let grace = fixture.load(&[&v1.replace("60s", "5s"), &V2.replace("60s", "3s")]).expect("keeps the rules");
    assert_eq!(grace.1.close_grace_period(), Duration::from_secs(26));
    let refused = fixture.load(&[r#""apiVersion":"v2","name":"p","endpoint":"tcp://localhost:1""#]);
    assert!(
        refused
            .map(|_| ())
            .expect_err("is no socket")
            .contains("unsupported scheme \"tcp\" for KMS provider")
    );
    running.end().await;
}
