//! One credential from OpenBao to a file on the node's tmpfs, and its rotation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use coffer_runtime::clock::SystemClock;
use coffer_sim::peers::{Coffer, Etcd, Kubectl, OpenBao, Process, run, until};
use coffer_store::embedded::{Embedded, EmbeddedOptions};
use coffer_store::kv::{Kv, RangeRequest};
use serde_json::json;

use super::{loud, quiet};
use coffer_sim::marks::{Mark, on_tmpfs};

const TOKEN: &str = "trip-token/7Zr5kQ+w";
const MARK: &str = "Tr1p/M4rk+Of=V4lu3s";
/// Versions that the source writes one after the other.
const VERSIONS: usize = 4;

/// The content of a key in a version: long, so that half of it would be noticed.
fn content(key: &str, version: usize) -> String {
    format!("{key} {version} {MARK};").repeat(500)
}

/// The version of the two files, read from one state of the volume; `None` when that state went away.
fn read_pair(volume: &Path) -> Option<usize> {
    let state = volume.join(std::fs::read_link(volume.join("..data")).ok()?);
    let user = std::fs::read_to_string(state.join("user")).ok()?;
    let password = std::fs::read_to_string(state.join("password")).ok()?;
    let version = (1..=VERSIONS).find(|version| user == content("user", *version));
    let version = version.unwrap_or_else(|| panic!("no version is {} bytes: a torn file", user.len()));
    assert!(password == content("password", version), "user is of version {version}, password is not");
    Some(version)
}

/// Each file alone is always there and always whole.
fn read_one(volume: &Path, key: &str) -> usize {
    let text = std::fs::read_to_string(volume.join(key)).expect("the file is always there");
    (1..=VERSIONS).find(|version| text == content(key, *version)).expect("a whole version")
}

fn write(bao: &OpenBao, version: usize) {
    bao.write("db", json!({"user": content("user", version), "password": content("password", version)}));
}

fn manifest(provider: &str, server: &str) -> String {
    let entry = |key: &str| json!({"secretKey": key, "remoteRef": {"key": "db", "property": key}});
    let store = json!({
        "server": server, "path": "secret", "version": "v2",
        "auth": {"tokenSecretRef": {"name": "store-token", "key": "token"}},
    });
    [
        json!({"apiVersion": "external-secrets.io/v1", "kind": "SecretStore",
         "metadata": {"name": "bao", "namespace": "default"}, "spec": {"provider": {provider: store}}}),
        json!({"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
         "metadata": {"name": "db", "namespace": "default"},
         "spec": {"refreshInterval": "1s", "secretStoreRef": {"name": "bao"}, "data": [entry("user"), entry("password")]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
         "spec": {
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "app", "image": "registry.example/app",
                "env": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
                "volumeMounts": [{"name": "credentials", "mountPath": "/credentials"}],
            }],
            "volumes": [{"name": "credentials", "secret": {"secretName": "db"}}],
         }}),
    ]
    .iter()
    .map(|item| format!("---\n{item}\n"))
    .collect()
}

/// The directory of the pod's volume, as the node tells.
fn volume(coffer: &Coffer) -> PathBuf {
    until("the node to write the files", || {
        let life = coffer.trace("db");
        let file = life["consumers"].as_array()?.iter().find(|consumer| consumer["kind"] == "file")?;
        let path = PathBuf::from(file["path"].as_str()?);
        path.join("..data").exists().then_some(path)
    })
}

fn the_whole_trip(provider: &str, etcd: Option<&Etcd>) {
    let bao = OpenBao::start();
    bao.token(TOKEN);
    write(&bao, 1);
    let flags: Vec<String> = etcd.map(|etcd| format!("--etcd-servers={}", etcd.url())).into_iter().collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut coffer = Coffer::up(loud, &flags);
    let kubectl = coffer.kubectl();
    kubectl.ok(&["create", "secret", "generic", "store-token", &format!("--from-literal=token={TOKEN}")]);
    kubectl.apply(&manifest(provider, bao.url()));

    let volume = volume(&coffer);
    assert!(on_tmpfs(&volume), "{} is on a disk", volume.display());
    assert_eq!(read_pair(&volume), Some(1));
    until("everything to be current", || (coffer.ask(&["trace", "secret/db"]).code == 0).then_some(()));
    let life = coffer.trace("db");
    assert_eq!(life["atRest"]["state"], "encrypted", "{life}");
    assert_eq!(life["atRest"]["provider"], "aesgcm", "{life}");
    assert_eq!(life["broken"], json!([]), "{life}");

    let stop = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicUsize::new(0));
    let reader = {
        let (stop, reads, volume) = (stop.clone(), reads.clone(), volume.clone());
        std::thread::spawn(move || {
            let mut seen = std::collections::BTreeSet::new();
            let mut newest = 0;
            while !stop.load(Ordering::Relaxed) {
                if let Some(version) = read_pair(&volume) {
                    assert!(version >= newest, "version {version} after {newest}");
                    newest = version;
                    seen.insert(version);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
                let user = read_one(&volume, "user");
                assert!(read_one(&volume, "password") >= user, "a file went back");
            }
            seen
        })
    };
    for version in 2..=VERSIONS {
        write(&bao, version);
        until("the file to flip", || {
            assert!(!reader.is_finished(), "the reader saw a mix");
            (read_pair(&volume) == Some(version)).then_some(())
        });
    }
    stop.store(true, Ordering::Relaxed);
    let seen = reader.join().expect("old or new, never a mix");
    assert!(seen.contains(&VERSIONS) || seen.contains(&(VERSIONS - 1)), "{seen:?}");
    assert!(seen.len() >= 2 && reads.load(Ordering::Relaxed) > 100, "the reader saw too little: {seen:?}");

    stale_environment_is_told(&coffer);
    let mark = Mark::new(MARK);
    let token = Mark::new(TOKEN);
    for directory in [Some(coffer.directory()), etcd.map(Etcd::directory)].into_iter().flatten() {
        let files = mark.assert_in_no_file(directory);
        assert!(files >= 3, "{} holds only {files} files", directory.display());
        token.assert_in_no_file(directory);
    }

    coffer.end();
    let gone = coffer.ask(&["trace", "secret/db"]);
    assert_eq!(gone.code, 3, "{}{}", gone.stdout, gone.stderr);
    // What is left on the disk after the end is encrypted too.
    mark.assert_in_no_file(coffer.directory());
    match etcd {
        Some(etcd) => values_in_etcd_are_encrypted(etcd),
        None => values_in_the_store_are_encrypted(&coffer),
    }
}

fn stale_environment_is_told(coffer: &Coffer) {
    let told = until("the files to be reported as current", || {
        let told = coffer.ask(&["trace", "secret/db"]);
        let life = coffer.trace("db");
        let broken = life["broken"].as_array()?.len();
        (told.code == 1 && broken == 1).then_some(told)
    });
    assert!(told.stdout.contains("environment"), "{}", told.stdout);
    assert!(told.stdout.contains("restart it"), "{}", told.stdout);
    let life = coffer.trace("db");
    let state = |kind: &str| {
        let consumers = life["consumers"].as_array().expect("consumers");
        consumers.iter().find(|consumer| consumer["kind"] == kind).expect(kind)["state"].clone()
    };
    assert_eq!(state("environment"), "stale", "{life}");
    assert_eq!(state("file"), "current", "{life}");
    assert_eq!(coffer.ask(&["trace", "pod/web"]).code, 2);
    assert_eq!(coffer.ask(&["trace"]).code, 2);
    // Another output format is the same story with the same exit code.
    for format in ["json", "yaml", "name"] {
        let told = coffer.ask(&["trace", "secret/db", "-o", format]);
        assert_eq!(told.code, 1, "{format}: {}", told.stderr);
        Mark::new(MARK).assert_absent(format, told.stdout);
    }
}

const PREFIX: &[u8] = b"k8s:enc:aesgcm:v1:";

fn stored_under(name: &str) -> String {
    format!("/registry/secrets/default/{name}")
}

fn is_encrypted(name: &str, value: &[u8]) {
    assert!(
        value.starts_with(PREFIX),
        "{name}: {:?}",
        String::from_utf8_lossy(&value[..20.min(value.len())])
    );
    Mark::new(MARK).assert_absent(name, value);
    Mark::new(TOKEN).assert_absent(name, value);
}

fn values_in_etcd_are_encrypted(etcd: &Etcd) {
    for name in ["db", "store-token"] {
        is_encrypted(name, &etcd.value(&stored_under(name)));
    }
}

/// Opens the store of a server that has ended, and looks at the bytes of each Secret's own key.
fn values_in_the_store_are_encrypted(coffer: &Coffer) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let options = EmbeddedOptions::new(Arc::new(SystemClock::new()));
        let directory = coffer.directory().join("data/store");
        let store = Embedded::open(&directory, options).await.expect("nobody else has it open");
        for name in ["db", "store-token"] {
            let start = stored_under(name).into();
            let found = store.range(RangeRequest { start, ..RangeRequest::default() }).await.expect("read");
            let [item] = found.items.as_slice() else { panic!("{name} is stored {} times", found.count) };
            is_encrypted(name, &item.value);
        }
        // And no Secret at all is stored in another way.
        let all = RangeRequest {
            start: "/registry/secrets/".into(),
            end: "/registry/secrets0".into(),
            ..RangeRequest::default()
        };
        let all = store.range(all).await.expect("read");
        assert!(all.items.len() >= 2, "{} Secrets", all.items.len());
        for item in all.items {
            is_encrypted(&String::from_utf8_lossy(&item.key), &item.value);
        }
    });
}

#[test]
fn the_whole_trip_on_the_embedded_store() {
    the_whole_trip("vault", None);
}

#[test]
fn the_whole_trip_on_etcd() {
    let etcd = Etcd::start();
    the_whole_trip("openBao", Some(&etcd));
}

#[test]
fn the_demo_holds_every_step() {
    let bao = OpenBao::start();
    let directory = tempfile::tempdir().expect("a directory");
    let token = directory.path().join("token");
    std::fs::write(&token, format!("{}\n", OpenBao::TOKEN)).expect("written");
    let mark = Mark::new("correct-horse-");
    let vault = ["--vault-addr", bao.url(), "--vault-token-file", token.to_str().expect("text")];
    for flags in [[].as_slice(), &vault] {
        let data = directory.path().join(format!("data-{}", flags.len()));
        let output = run(loud().args(["demo", "--once", "--data-dir"]).arg(&data).args(flags));
        assert_eq!(output.code, 0, "{flags:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("Every step held."), "{}", output.stdout);
        mark.assert_absent("the demo's output", &output.stdout);
        mark.assert_absent("the demo's log", &output.stderr);
        mark.assert_in_no_file(&data);
    }
}

/// What the demo says to do when it stays up is done with kubectl.
#[test]
fn a_demo_that_stays_up_is_there_for_kubectl() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    let mut demo = Process::start("demo", quiet().args(["demo", "--data-dir"]).arg(&data), directory.path());
    let log = directory.path().join("demo.log");
    demo.wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("coffer trace secret/db")));
    let kubeconfig = data.join("kubeconfig");
    assert!(demo.log().contains(&format!("export KUBECONFIG={}\n", kubeconfig.display())), "{}", demo.log());
    let kubectl = Kubectl::new(&kubeconfig);
    let listed = kubectl.ok(&["get", "secret,externalsecret,pod", "-o", "name"]);
    assert_eq!(listed, "secret/db\nexternalsecret.external-secrets.io/db\npod/web\n");
    let password =
        kubectl.ok(&["get", "secret", "db", "-o", "go-template={{.data.password | base64decode}}"]);
    assert_eq!(password, "correct-horse-2");
    // Its own advice is told by its own command: the environment is stale, the file is not.
    let trace = run(quiet().args(["trace", "secret/db", "--kubeconfig"]).arg(&kubeconfig));
    assert_eq!(trace.code, 1, "{}{}", trace.stdout, trace.stderr);
    assert!(trace.stdout.contains("holds an older value: restart it"), "{}", trace.stdout);
    demo.signal(rustix::process::Signal::INT);
    assert_eq!(demo.wait(), 0, "{}", demo.log());
    let gone = kubectl.run(&["get", "secret", "db"]);
    assert_ne!(gone.code, 0, "{}", gone.stdout);
}
