//! `coffer up` and an encryption configuration that opens nothing of what is stored.

use std::path::Path;
use std::time::Duration;

use coffer_sim::peers::{Process, run};
use kube::{Client, Config, config::Kubeconfig};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::fixture::coffer;
use super::operator::call;

const UP: [&str; 5] = ["up", "--data-dir", "data", "--listen", "127.0.0.1:0"];
const SECRET: &str = "/api/v1/namespaces/default/secrets/app";
/// A key of somebody else.
const FOREIGN: &str = "\
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: other, secret: QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=}]}
";

fn start(directory: &Path, name: &str) -> Process {
    let mut process = Process::start(name, coffer(directory).args(UP), directory);
    let log = directory.join(format!("{name}.log"));
    process.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("is up")));
    process
}

fn end(mut process: Process) {
    process.signal(Signal::INT);
    assert_eq!(process.wait(), 0, "{}", process.log());
}

async fn client(directory: &Path) -> Client {
    // The one provider of TLS in this process; a second call would only fail.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(directory.join("data/kubeconfig")).expect("valid");
    let config = Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("valid");
    Client::try_from(config).expect("a client")
}

async fn value(directory: &Path) -> Value {
    let secret = call(&client(directory).await, "GET", SECRET, Value::Null).await.expect("readable");
    secret["data"]["k"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k27_up_uses_no_configuration_that_opens_no_stored_secret() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let file = at.join("data/encryption.yaml");
    let up = start(at, "first");
    let secret = json!({"metadata": {"name": "app"}, "data": {"k": "dmFsdWU="}});
    let own = client(at).await;
    call(&own, "POST", "/api/v1/namespaces/default/secrets", secret).await.expect("created");
    let keys = std::fs::read(&file).expect("made");

    // While it runs: refused, told, and the keys in use go on.
    std::fs::write(&file, FOREIGN).expect("written");
    let metrics = || async {
        let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
        own.request_text(request).await.expect("metrics")
    };
    let refused = "automatic_reloads_total";
    let mut text = String::new();
    for _ in 0..600 {
        text = metrics().await;
        if text
            .lines()
            .any(|line| line.contains(refused) && line.contains("failure") && !line.ends_with(" 0"))
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(text.contains("coffer_encryption_config_file_differs 1"), "{text}");
    assert_eq!(value(at).await, "dmFsdWU=");
    let change = json!({"data": {"k": "bmV3"}});
    let request = http::Request::patch(SECRET)
        .header("content-type", "application/merge-patch+json")
        .body(change.to_string().into_bytes())
        .expect("a request");
    own.request::<Value>(request).await.expect("written under the key in use");
    end(up);

    // At the start: nothing is written under a key that opens nothing, be it named or about to be made.
    let path = file.display();
    let ran = run(coffer(at).args(UP));
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let (first, next) = ran.stderr.split_once('\n').expect("two lines");
    let expected = format!("coffer: the store holds Secrets that no key of {path} opens, /registry/secrets/");
    assert!(first.starts_with(&expected) && first.ends_with(" for one"), "{first}");
    let restore = "  restore the keys that they were written under from a backup, or name another store\n";
    assert_eq!(next, restore);
    assert_eq!(std::fs::read_to_string(&file).expect("there"), FOREIGN, "the file stays as it was");
    std::fs::remove_file(&file).expect("removed");
    let ran = run(coffer(at).args(UP));
    let missing =
        format!("coffer: {path} is missing although {} holds data", at.join("data/store").display());
    assert!(ran.stderr.starts_with(&missing), "{}", ran.stderr);
    assert_eq!((ran.code, ran.stdout.as_str(), file.exists()), (1, "", false), "{}", ran.stderr);

    std::fs::write(&file, keys).expect("restored");
    let up = start(at, "restored");
    assert_eq!(value(at).await, "bmV3");
    end(up);
}
