//! An encryption configuration that changes below running servers: coffer alone, and beside a stock
//! kube-apiserver on the same etcd.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_sim::marks::Mark;
use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl, Output, Pki, run};
use serde_json::Value;

use super::{loud, quiet};

/// A stock server looks at its file once a minute.
const PATIENCE: Duration = Duration::from_secs(180);

fn key(number: u8) -> String {
    STANDARD.encode([b'A' + number; 32])
}

fn gcm(keys: &[u8]) -> String {
    let keys: Vec<String> =
        keys.iter().map(|number| format!("{{name: key{number}, secret: {}}}", key(*number))).collect();
    format!("aesgcm: {{keys: [{}]}}", keys.join(", "))
}

fn secretbox() -> String {
    format!("secretbox: {{keys: [{{name: box, secret: {}}}]}}", key(20))
}

/// A file in a directory of its own, and what servers say of it.
struct ConfigFile {
    directory: tempfile::TempDir,
    path: PathBuf,
}

impl ConfigFile {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("encryption.yaml");
        let file = Self { directory, path };
        file.move_into_place(text);
        file
    }

    fn move_into_place(&self, text: &str) {
        let new = self.directory.path().join("encryption.new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(new, &self.path).expect("moved");
    }

    fn truncate(&self, text: &str) {
        std::fs::write(&self.path, text).expect("written");
    }

    fn delete_and_create(&self, text: &str) {
        std::fs::remove_file(&self.path).expect("removed");
        std::fs::write(&self.path, text).expect("written");
    }

    /// As others compute it.
    fn hash(&self) -> String {
        let output = run(Command::new("sha256sum").arg(&self.path));
        assert_eq!(output.code, 0, "{}", output.stderr);
        format!("sha256:{}", output.stdout.split_whitespace().next().expect("a hash"))
    }

    /// Waits until the metrics of every server prove that it uses what is in the file.
    fn wait_used(&self, servers: &[&Kubectl]) {
        let proof = format!("hash=\"{}\"}} 1", self.hash());
        let name = "apiserver_encryption_config_controller_last_config_info{";
        for kubectl in servers {
            wait(&format!("{proof} to be used"), || {
                let metrics = kubectl.run(&["get", "--raw", "/metrics"]).stdout;
                metrics.lines().any(|line| line.starts_with(name) && line.ends_with(&proof))
            });
        }
    }
}

/// A way to change a file.
type Change = fn(&ConfigFile, &str);

fn wait(what: &str, mut reached: impl FnMut() -> bool) {
    let started = Instant::now();
    while !reached() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn config(rules: &[(&str, &[String])]) -> String {
    let rules: Vec<String> = rules
        .iter()
        .map(|(resources, providers)| {
            let providers: Vec<String> =
                providers.iter().map(|provider| format!("  - {provider}\n")).collect();
            format!("- resources: [{resources}]\n  providers:\n{}", providers.concat())
        })
        .collect();
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n{}",
        rules.concat()
    )
}

fn create(kubectl: &Kubectl, name: &str) {
    kubectl.ok(&["create", "secret", "generic", name, &format!("--from-literal=value=of-{name}")]);
}

fn values(kubectl: &Kubectl) -> String {
    let path = "jsonpath={range .items[*]}{.metadata.name}={.data.value} {end}";
    kubectl.ok(&["get", "secrets", "-o", path])
}

fn migrate(kubeconfig: &Path, resources: &[&str]) {
    let output = run(quiet()
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["keys", "migrate", "--rate", "500"])
        .args(resources));
    assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
}

fn audit(etcd: &Etcd, config: &Path) -> Output {
    run(quiet().args(["audit", "--etcd-servers", etcd.url(), "--config"]).arg(config))
}

/// Waits until Secrets are stored as `prefix` says, and gives the name of one that is.
fn wait_written(etcd: &Etcd, kubectl: &Kubectl, stem: &str, prefix: &str) {
    let mut number = 0;
    wait(prefix, || {
        number += 1;
        let name = format!("{stem}-{number}");
        create(kubectl, &name);
        etcd.value(&format!("/registry/secrets/default/{name}")).starts_with(prefix.as_bytes())
    });
}

/// Field case K7: a stock kube-apiserver and coffer take turns on one etcd while its keys are rotated three
/// times; none of them is started again, and after each rotation the audit is clean.
#[test]
fn k7_turns_with_a_stock_server_through_three_rotations_without_a_restart() {
    let etcd = Etcd::start();
    let secrets = |keys: &[u8]| config(&[("secrets", &[gcm(keys)])]);
    let file = ConfigFile::new(&secrets(&[0, 1]));
    let options =
        ApiserverOptions { encryption: Some(&file.path), reload: true, ..ApiserverOptions::default() };
    let original = KubeApiserver::start(&etcd, &options);
    let coffer = Coffer::apiserver(loud, &etcd, original.pki(), &options);
    let (theirs, ours) = (original.kubectl(), coffer.kubectl());
    let ids = (original.id(), coffer.id());
    file.wait_used(&[&ours, &theirs]);
    for (kubectl, name) in [(&theirs, "theirs-0"), (&ours, "ours-0")] {
        create(kubectl, name);
        let value = etcd.value(&format!("/registry/secrets/default/{name}"));
        assert!(value.starts_with(b"k8s:enc:aesgcm:v1:key0:"), "{name}");
    }
    for rotation in 1..=3_u8 {
        // The new key, which everybody has as a second one by now, is promoted, and the next one is added.
        file.move_into_place(&secrets(&[rotation, rotation - 1, rotation + 1]));
        // Coffer notices at once; the stock server still writes under the old key, and each reads the other.
        file.wait_used(&[&ours]);
        create(&ours, &format!("ours-{rotation}"));
        create(&theirs, &format!("theirs-{rotation}"));
        wait("each to read the other", || values(&ours) == values(&theirs));
        file.wait_used(&[&theirs]);
        // They take turns at rewriting, too.
        let kubeconfig = if rotation == 2 { original.kubeconfig() } else { coffer.kubeconfig() };
        migrate(kubeconfig, &["secrets"]);
        // What only the new key opens: nothing else is stored.
        let only = ConfigFile::new(&secrets(&[rotation]));
        let report = audit(&etcd, &only.path);
        assert_eq!(report.code, 0, "{rotation}: {}{}", report.stdout, report.stderr);
    }
    file.move_into_place(&secrets(&[3]));
    file.wait_used(&[&ours, &theirs]);
    assert_eq!(audit(&etcd, &file.path).code, 0);
    assert_eq!(values(&ours), values(&theirs));
    assert_eq!(values(&ours).split_whitespace().count(), 8, "{}", values(&ours));
    assert_eq!((original.id(), coffer.id()), ids);
    for number in 0..=4 {
        Mark::new(&key(number)).assert_absent("the log", coffer.log());
    }
}

/// Upstream's TestEncryptionConfigHotReload.
#[test]
fn test_encryption_config_hot_reload() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let file = ConfigFile::new(&config(&[("secrets", &[gcm(&[0])])]));
    let options =
        ApiserverOptions { encryption: Some(&file.path), reload: true, ..ApiserverOptions::default() };
    let mut coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let kubectl = coffer.kubectl();
    kubectl.ok(&["create", "configmap", "plain", "--from-literal=a=b"]);
    create(&kubectl, "first");
    let health = "/healthz/poststarthook/start-encryption-provider-config-automatic-reload";
    assert_eq!(kubectl.ok(&["get", "--raw", health]), "ok");
    assert_eq!(kubectl.ok(&["get", "--raw", "/healthz/kms-providers"]), "ok");

    // Another provider in front, everything rewritten, the old one removed.
    file.move_into_place(&config(&[("secrets", &[secretbox(), gcm(&[0])])]));
    file.wait_used(&[&kubectl]);
    migrate(coffer.kubeconfig(), &["secrets"]);
    let stored = |path: &str| etcd.value(&format!("/registry/{path}"));
    assert!(stored("secrets/default/first").starts_with(b"k8s:enc:secretbox:v1:box:"));
    let all = [
        ("configmaps", &[gcm(&[1]), "identity: {}".to_owned()][..]),
        ("'*.*'", &[secretbox(), "identity: {}".to_owned()]),
    ];
    file.move_into_place(&config(&all));
    file.wait_used(&[&kubectl]);
    migrate(coffer.kubeconfig(), &["secrets", "configmaps", "namespaces"]);
    assert!(stored("secrets/default/first").starts_with(b"k8s:enc:secretbox:v1:box:"));
    assert!(stored("namespaces/default").starts_with(b"k8s:enc:secretbox:v1:box:"));
    assert!(stored("configmaps/default/plain").starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    let metrics = kubectl.ok(&["get", "--raw", "/metrics"]);
    let success = "apiserver_encryption_config_controller_automatic_reloads_total{status=\"success\",apiserver_id_hash=\"\"} 2";
    assert!(metrics.lines().any(|line| line == success), "{metrics}");

    coffer.restart();
    assert_eq!(values(&kubectl), format!("first={} ", STANDARD.encode("of-first")));
}

/// Upstream's TestEncryptionConfigHotReloadFilePolling, and what is no configuration in between.
#[test]
fn test_encryption_config_hot_reload_file_polling() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let secrets = |keys: &[u8]| config(&[("secrets", &[gcm(keys)])]);
    let file = ConfigFile::new(&secrets(&[0]));
    let options =
        ApiserverOptions { encryption: Some(&file.path), reload: true, ..ApiserverOptions::default() };
    let coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let kubectl = coffer.kubectl();
    let ways: [(&str, Change); 3] = [
        ("truncate-file", ConfigFile::truncate),
        ("delete-and-create-file", ConfigFile::delete_and_create),
        ("move-file", ConfigFile::move_into_place),
    ];
    for (number, (name, change)) in (1..).zip(ways) {
        let good = secrets(&[number, 0]);
        // Half of a file changes nothing, and is told.
        change(&file, &good[..good.len() - 60]);
        let detail = || kubectl.run(&["get", "--raw", "/readyz?verbose"]).stdout;
        let told = "[+]encryption-config ok: the file is not the configuration that is in use\n";
        wait("the broken file to be told", || detail().contains(told));
        let before = if number == 1 { 0 } else { number - 1 };
        wait_written(&etcd, &kubectl, &format!("{name}-broken"), &format!("k8s:enc:aesgcm:v1:key{before}:"));
        change(&file, &good);
        file.wait_used(&[&kubectl]);
        wait_written(&etcd, &kubectl, name, &format!("k8s:enc:aesgcm:v1:key{number}:"));
        wait("the good file to be told", || detail().contains("[+]encryption-config ok\n"));
    }
    for number in 0..=3 {
        Mark::new(&key(number)).assert_absent("the log", coffer.log());
    }
}

/// Field case K27: reload is off and the file is changed: everybody who looks can see that the key on disk
/// is not the key in use.
#[test]
fn k27_a_key_on_disk_that_is_not_in_use_is_seen() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let pki = Pki::create(&directory.path().join("pki"));
    let file = ConfigFile::new(&config(&[("secrets", &[gcm(&[0])])]));
    let options = ApiserverOptions { encryption: Some(&file.path), ..ApiserverOptions::default() };
    let coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let kubectl = coffer.kubectl();
    let shown = || -> Value {
        serde_json::from_str(&kubectl.ok(&["get", "--raw", "/coffer/v1/encryption"])).expect("JSON")
    };
    let check = |side: &Value| side["rules"][0]["providers"][0]["keys"][0]["checkValue"].clone();
    let before = shown();
    assert_eq!(before["same"], true, "{before}");
    assert!(check(&before["inUse"]).as_str().is_some_and(|value| value.len() == 16), "{before}");
    // Another key under the same name.
    let other = file.path.with_extension("other");
    let text = std::fs::read_to_string(&file.path).expect("read").replace(&key(0), &key(9));
    std::fs::write(&other, &text).expect("written");
    std::fs::rename(&other, &file.path).expect("moved");
    let line = "the encryption configuration on disk is not the one that is in use";
    wait("the alarm", || coffer.log().contains(line));
    let after = shown();
    assert_eq!(after["same"], false, "{after}");
    assert_eq!(check(&after["inUse"]), check(&before["inUse"]));
    assert_ne!(check(&after["file"]), check(&after["inUse"]));
    assert_eq!(after["file"]["hash"], file.hash());
    create(&kubectl, "first");
    assert_eq!(audit(&etcd, &file.path).code, 1, "the key on disk does not open what is stored");
    for shown in [key(0), key(9)] {
        Mark::new(&shown).assert_absent("the log", coffer.log());
    }
}
