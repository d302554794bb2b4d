//! `coffer audit` and `coffer inspect` of an embedded store that a server holds: it is asked.

use coffer_sim::peers::{Output, Process, run};
use coffer_store::embedded::Lock;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::fixture::{Fixture, coffer};

const KEY: &str = "/registry/secrets/default/db";
const VALUE: &str = "correct-horse-battery-staple";

/// A client of the server that the kubeconfig names; with nobody's credentials if so wanted.
async fn client(fixture: &Fixture, anonymous: bool) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(fixture.path().join("data/kubeconfig")).expect("a kubeconfig");
    if anonymous {
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(AuthInfo::default());
        }
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

async fn store_a_secret(fixture: &Fixture) {
    let mut secret = Secret::default();
    secret.metadata.name = Some("db".to_owned());
    secret.data = Some([("password".to_owned(), ByteString(VALUE.into()))].into());
    let secrets: Api<Secret> = Api::namespaced(client(fixture, false).await, "default");
    secrets.create(&PostParams::default(), &secret).await.expect("created");
}

async fn refused(fixture: &Fixture, path: &str) -> u16 {
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    match client(fixture, true).await.request::<Value>(request).await {
        Err(kube::Error::Api(status)) => status.code,
        answer => panic!("{answer:?}"),
    }
}

fn ask(fixture: &Fixture, arguments: &[&str]) -> Output {
    let output = run(coffer(fixture.path()).args(arguments));
    assert!(!format!("{}{}", output.stdout, output.stderr).contains(VALUE), "{arguments:?}");
    output
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.stderr))
}

/// Live copies of Secrets, by provider.
fn secrets(report: &Value) -> Value {
    let all = report["copies"].as_array().expect("copies").iter();
    let secrets = all.filter(|copies| copies["resource"] == "secrets");
    secrets.map(|copies| json!([copies["provider"], copies["live"]])).collect()
}

#[test]
fn a_store_that_coffer_up_holds_is_audited_and_inspected_through_it() {
    let fixture = Fixture::new();
    let arguments = ["up", "--data-dir", "data", "--listen", "127.0.0.1:0"];
    let mut up = Process::start("up", coffer(fixture.path()).args(arguments), fixture.path());
    let log = fixture.path().join("up.log");
    up.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("is up")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(store_a_secret(&fixture));

    let server = ["--api-server", "--kubeconfig", "data/kubeconfig"];
    for place in [&["--data-dir", "data"][..], &["--data-dir", "data/store"], &server] {
        let audit = ask(&fixture, &[&["audit", "-o", "json"], place].concat());
        let report = document(&audit);
        assert_eq!((audit.code, secrets(&report)), (0, json!([["aesgcm", 1]])), "{}", audit.stderr);
        assert_eq!((&report["opened"], &report["clean"]), (&json!(true), &json!(true)));
        let inspect = ask(&fixture, &[&["inspect", KEY, "-o", "json"], place].concat());
        let explained = document(&inspect);
        assert_eq!((inspect.code, &explained["provider"]), (0, &json!("aesgcm")), "{}", inspect.stderr);
        assert_eq!(explained["opened"]["object"]["data"], json!([["password", VALUE.len()]]));
        let table = ask(&fixture, &[&["inspect", KEY], place].concat());
        assert!(table.stdout.contains("opens with the key of new writes"), "{}", table.stdout);
        // What cannot be had from a server is refused, not ignored.
        for (flags, code) in [
            (&["inspect", KEY, "--reveal"][..], 2),
            (&["inspect", KEY, "--config", "data/encryption.yaml"], 2),
            (&["audit", "--config", "data/encryption.yaml"], 2),
            (&["inspect", "/registry/secrets/default/absent"], 3),
            (&["inspect", "/registry/secrets/default/a b&key=%"], 3),
        ] {
            let output = ask(&fixture, &[flags, place].concat());
            assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{flags:?}: {}", output.stderr);
        }
    }
    for path in ["/coffer/v1/audit", "/coffer/v1/inspect?key=/registry/secrets/default/db"] {
        assert_eq!(runtime.block_on(refused(&fixture, path)), 403, "{path}");
    }

    // Once it has ended the store itself is read, and says the same.
    up.signal(Signal::INT);
    assert_eq!(up.wait(), 0, "{}", up.log());
    let audit =
        ask(&fixture, &["audit", "-o", "json", "--data-dir", "data", "--config", "data/encryption.yaml"]);
    assert_eq!((audit.code, secrets(&document(&audit))), (0, json!([["aesgcm", 1]])), "{}", audit.stderr);
    let gone = ask(&fixture, &[&["audit"][..], &server].concat());
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    assert!(gone.stderr.contains("cannot reach https://127.0.0.1:"), "{}", gone.stderr);

    // Held by somebody who has left no kubeconfig: the way is told.
    std::fs::remove_file(fixture.path().join("data/kubeconfig")).expect("removed");
    let _held = Lock::take(&fixture.path().join("data/store")).expect("the lock");
    for command in [&["audit"][..], &["inspect", KEY]] {
        let output = ask(&fixture, &[command, &["--data-dir", "data"]].concat());
        assert_eq!(output.code, 3);
        let told = output.stderr.replace(&std::process::id().to_string(), "PID");
        assert_eq!(
            told,
            "coffer: the data directory data/store is in use by process PID; stop that process or choose another \
             directory\n  or ask that process: add --api-server --kubeconfig FILE in the place of --data-dir\n"
        );
    }
    let idle = ask(&fixture, &["audit", "--data-dir", "data", "--kubeconfig", "data/kubeconfig"]);
    assert_eq!(
        (idle.code, idle.stderr.as_str()),
        (2, "coffer: --kubeconfig has no effect without --api-server\n")
    );
}
