//! `coffer operator` on a server that is there, not there, without definitions, or of somebody else.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use coffer_sim::peers::{Pki, Process, free_port, run};
use kube::{Client, Config, config::Kubeconfig};
use serde_json::{Value, json};

use super::fixture::coffer;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// An API server of ours with the embedded store and no definitions.
struct Server {
    _process: Process,
    directory: tempfile::TempDir,
    url: String,
    kubeconfig: PathBuf,
}

impl Server {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let at = directory.path();
        let pki = Pki::create(&at.join("pki"));
        let port = free_port();
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = pki.kubeconfig("admin", &url);
        let file = |name: &str| pki.path(name).display().to_string();
        let mut command = coffer(at);
        command.args([
            "apiserver".to_owned(),
            "--data-dir=store".to_owned(),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            "--service-account-issuer=https://issuer".to_owned(),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            format!("--service-account-key-file={}", file("sa.pub")),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
        ]);
        let mut process = Process::start("apiserver", &mut command, at);
        process.wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _process: process, directory, url, kubeconfig }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A kubeconfig with `user` instead of the administrator.
    fn kubeconfig_of(&self, name: &str, user: Value) -> PathBuf {
        let text = std::fs::read_to_string(&self.kubeconfig).expect("written");
        let mut kubeconfig = Kubeconfig::from_yaml(&text).expect("valid");
        kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(user).expect("a user"));
        let path = self.path().join(name);
        std::fs::write(&path, serde_json::to_string(&kubeconfig).expect("JSON")).expect("written");
        path
    }

    async fn client(&self) -> Client {
        // The one provider of TLS in this process; a second call would only fail.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).expect("valid");
        let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("valid");
        Client::try_from(config).expect("a client")
    }
}

fn operator(server: &Server, name: &str, flags: &[&str]) -> Process {
    let mut command = coffer(server.path());
    command.args(["operator", "--kubeconfig", &server.kubeconfig.display().to_string()]);
    command.args(flags);
    Process::start(name, &mut command, server.path())
}

fn log(server: &Server, name: &str) -> String {
    std::fs::read_to_string(server.path().join(format!("{name}.log"))).unwrap_or_default()
}

pub(super) async fn call(
    client: &Client,
    method: &str,
    path: &str,
    body: Value,
) -> Result<Value, kube::Error> {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(bytes)
        .expect("a request");
    client.request(request).await
}

/// The status line of a plain GET.
fn status(port: u16, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn wrong_credentials_end_with_what_to_do() {
    let server = Server::start();
    let stranger = Pki::create(&server.path().join("strangers"));
    let file = |name: &str| stranger.path(name).display().to_string();
    let users = [
        ("token", json!({"token": "not-a-token"})),
        ("certificate", json!({"client-certificate": file("admin.crt"), "client-key": file("admin.key")})),
    ];
    for (name, user) in users {
        let path = server.kubeconfig_of(name, user).display().to_string();
        let arguments = ["operator", "--metrics-addr", "0", "--live-addr", "0", "--kubeconfig", &path];
        let ran = run(coffer(server.path()).args(arguments));
        assert_eq!(ran.code, 3, "{name}: {}", ran.stderr);
        let expected = format!(
            "coffer: {} refused: Unauthorized\n  it is Kubernetes {}; the kubeconfig's credentials are not valid there: name another with --kubeconfig or --context\n",
            server.url,
            concat!("v1.37.2+coffer-", env!("CARGO_PKG_VERSION")),
        );
        assert_eq!(ran.stderr, expected, "{name}");
        assert!(!ran.stderr.contains("not-a-token"), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o35_definitions_that_are_absent_are_waited_for_and_v1beta1_objects_are_read() {
    let server = Server::start();
    let (metrics, live) = (free_port(), free_port());
    let (metrics_flag, live_flag) = (format!("127.0.0.1:{metrics}"), format!("127.0.0.1:{live}"));
    let mut waiting =
        operator(&server, "waiting", &["--metrics-addr", &metrics_flag, "--live-addr", &live_flag]);
    waiting.wait_until(|| log(&server, "waiting").contains("kubectl apply"));
    let expected = "coffer: the operator waits for definitions that are not installed: externalsecrets.external-secrets.io, secretstores.external-secrets.io, clustersecretstores.external-secrets.io\n  install them with: coffer operator --install-crds, or kubectl apply -f deploy/crds\n";
    assert_eq!(log(&server, "waiting"), expected);
    assert_eq!(status(live, "/healthz"), "HTTP/1.1 200 OK");
    assert_eq!(status(live, "/readyz"), "HTTP/1.1 500 Internal Server Error");

    // The definitions of an older operator: v1beta1 alone, with an object that is stored so.
    let client = server.client().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for mut definition in coffer_operator::crd::all() {
        let versions = definition["spec"]["versions"].as_array_mut().expect("versions");
        versions.retain(|version| version["name"] == "v1beta1");
        (versions[0]["served"], versions[0]["storage"]) = (true.into(), true.into());
        call(&client, "POST", definitions, definition).await.expect("created");
    }
    let old = json!({
        "apiVersion": "external-secrets.io/v1beta1", "kind": "ExternalSecret", "metadata": {"name": "old"},
        "spec": {
            "refreshInterval": "1h", "secretStoreRef": {"name": "s", "kind": "SecretStore"},
            "data": [{"secretKey": "k", "remoteRef": {"key": "k", "conversionStrategy": "Default"}}],
        },
    });
    let store = json!({
        "apiVersion": "external-secrets.io/v1beta1", "kind": "SecretStore", "metadata": {"name": "s"},
        "spec": {"refreshInterval": 30, "provider": {"fake": {"data": [{"key": "k", "value": "from v1beta1"}]}}},
    });
    let group = "/apis/external-secrets.io";
    for (plural, object) in [("externalsecrets", &old), ("secretstores", &store)] {
        let path = format!("{group}/v1beta1/namespaces/default/{plural}");
        let started = Instant::now();
        // A definition that is new is not served at once.
        while let Err(error) = call(&client, "POST", &path, object.clone()).await {
            assert!(started.elapsed() < PATIENCE, "{plural}: {error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    // Ours are applied: the object is readable as v1 with every field, and the one that waited acts.
    let mut installer = operator(
        &server,
        "installer",
        &["--install-crds", "--metrics-addr=0", "--live-addr=0", "--namespace=elsewhere"],
    );
    installer.wait_until(|| log(&server, "installer").contains(" serves "));
    let path = format!("{group}/v1/namespaces/default/externalsecrets/old");
    let object = call(&client, "GET", &path, Value::Null).await.expect("readable as v1");
    assert_eq!(object["apiVersion"], "external-secrets.io/v1");
    assert_eq!(object["spec"]["data"], old["spec"]["data"]);
    waiting.wait_until(|| log(&server, "waiting").contains(" serves "));
    let expected = format!(
        "coffer: the operator serves ExternalSecret, SecretStore and ClusterSecretStore in all namespaces of {} until Ctrl-C; metrics http://{metrics_flag}/metrics, health http://{live_flag}/readyz",
        server.url
    );
    assert_eq!(log(&server, "waiting").lines().last(), Some(expected.as_str()));
    assert_eq!(status(live, "/readyz"), "HTTP/1.1 200 OK");
    assert_eq!(status(metrics, "/metrics"), "HTTP/1.1 200 OK");
    let started = Instant::now();
    loop {
        let secret = call(&client, "GET", "/api/v1/namespaces/default/secrets/old", Value::Null).await;
        if secret.is_ok_and(|secret| secret["data"]["k"] == "ZnJvbSB2MWJldGEx") {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "the object of before is not synced");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Not served any more, as upstream.
    let path = format!("{group}/v1beta1/namespaces/default/externalsecrets/old");
    assert!(call(&client, "GET", &path, Value::Null).await.is_err());

    // And served again by a switch.
    let mut serving = operator(
        &server,
        "serving",
        &[
            "--install-crds",
            "--unsafe-serve-v1beta1",
            "--metrics-addr=0",
            "--live-addr=0",
            "--namespace=elsewhere",
        ],
    );
    serving.wait_until(|| log(&server, "serving").contains(" serves "));
    let started = Instant::now();
    let object = loop {
        match call(&client, "GET", &path, Value::Null).await {
            Ok(object) => break object,
            Err(error) => assert!(started.elapsed() < PATIENCE, "v1beta1: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&object["apiVersion"], &object["spec"]["data"]), (&old["apiVersion"], &old["spec"]["data"]));
}
