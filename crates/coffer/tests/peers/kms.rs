//! KMS plugins beside the originals: coffer with a plugin that owes it nothing, and a stock
//! kube-apiserver with ours, through rotations of the plugin's key.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use coffer_sim::peers::{
    ApiserverOptions, Coffer, Etcd, KubeApiserver, Kubectl, OpenBao, Pki, Process, program, run, until,
};
use serde_json::json;

use super::{loud, quiet};

fn write_private(path: &Path, text: &str) {
    // In one step: the plugin may read it at any moment.
    let unfinished = path.with_extension("new");
    std::fs::write(&unfinished, text).expect("written");
    std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o600)).expect("own file");
    std::fs::rename(unfinished, path).expect("renamed");
}

/// An EncryptionConfiguration with one KMS v2 provider.
fn configuration(directory: &Path, name: &str, socket: &Path) -> PathBuf {
    let path = directory.join("encryption.json");
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [
            {"kms": {"apiVersion": "v2", "name": name, "endpoint": format!("unix://{}", socket.display())}},
        ]}],
    });
    write_private(&path, &config.to_string());
    path
}

fn create(kubectl: &Kubectl, name: &str) {
    kubectl.ok(&["create", "secret", "generic", name, &format!("--from-literal=value=of-{name}")]);
}

fn value(kubectl: &Kubectl, name: &str) -> String {
    kubectl.run(&["get", "secret", name, "-o", "jsonpath={.data.value}"]).stdout
}

/// What is stored, as text with replacements: the names of keys stand in it in the clear.
fn stored(etcd: &Etcd, name: &str) -> String {
    String::from_utf8_lossy(&etcd.value(&format!("/registry/secrets/default/{name}"))).into_owned()
}

/// Writes until a value is stored under a key that `is_new` recognises: servers notice another key of
/// the plugin when they ask it, which health checks make them do once the last answer is 20 s old.
fn rotated(kubectl: &Kubectl, etcd: &Etcd, is_new: impl Fn(&str) -> bool) -> String {
    let mut number = 0;
    let started = std::time::Instant::now();
    loop {
        kubectl.run(&["get", "--raw", "/readyz"]);
        number += 1;
        let name = format!("rotated-{number}");
        create(kubectl, &name);
        if is_new(&stored(etcd, &name)) {
            return name;
        }
        assert!(started.elapsed().as_secs() < 120, "the rotation was not noticed: {}", stored(etcd, &name));
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}

/// `coffer kms-plugin`, serving.
fn plugin(directory: &Path, arguments: &[&str]) -> Process {
    plugin_with(loud(), directory, arguments)
}

fn plugin_with(mut command: Command, directory: &Path, arguments: &[&str]) -> Process {
    command.arg("kms-plugin").args(arguments);
    let mut process = Process::start("coffer-kms", &mut command, directory);
    let log = directory.join("coffer-kms.log");
    process
        .wait_until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("the KMS plugin serves")));
    process
}

const KEY_A: &str = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=";
const KEY_B: &str = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=";

#[test]
fn a_stock_apiserver_uses_our_plugin_through_a_key_rotation() {
    let directory = tempfile::tempdir().expect("a directory");
    let (keys, socket) = (directory.path().join("keys"), directory.path().join("run/kms.sock"));
    write_private(&keys, &format!("one: {KEY_A}\n"));
    let listen = format!("unix://{}", socket.display());
    let arguments = ["--key-file", keys.to_str().expect("text"), "--listen", &listen];
    let mut running = plugin(directory.path(), &arguments);
    let etcd = Etcd::start();
    let encryption = configuration(directory.path(), "coffer", &socket);
    let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
    let apiserver = KubeApiserver::start(&etcd, &options);
    let kubectl = apiserver.kubectl();
    create(&kubectl, "first");
    let first = stored(&etcd, "first");
    assert!(first.starts_with("k8s:enc:kms:v2:coffer:") && first.contains("one."), "{first}");

    write_private(&keys, &format!("two: {KEY_B}\none: {KEY_A}\n"));
    let name = rotated(&kubectl, &etcd, |stored| stored.contains("two."));
    assert_eq!(value(&kubectl, &name), value(&kubectl, &name));
    // A plugin that is started again serves the same server, and both keys still open.
    running.terminate();
    drop(running);
    assert!(!socket.exists(), "the socket is removed");
    let _running = plugin(directory.path(), &arguments);
    // Coffer reads what the stock server wrote under both keys, through the same plugin.
    let pki = Pki::create(&directory.path().join("pki"));
    let coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    for name in ["first", &name] {
        assert_eq!(value(&coffer.kubectl(), name), value(&kubectl, name), "{name}");
        assert!(!value(&kubectl, name).is_empty());
    }
    // And the other way round.
    create(&coffer.kubectl(), "ours");
    assert!(stored(&etcd, "ours").contains("two."));
    assert_eq!(value(&kubectl, "ours"), value(&coffer.kubectl(), "ours"));
}

#[test]
fn coffer_uses_an_independent_plugin_through_a_key_rotation() {
    let directory = tempfile::tempdir().expect("a directory");
    let (keys, socket) = (directory.path().join("keys"), directory.path().join("kms.sock"));
    write_private(&keys, "key-one");
    let mut command = Command::new(program("kms"));
    let mut process = Process::start("kms", command.arg(&socket).arg(&keys), directory.path());
    process.wait_until(|| socket.exists());
    let etcd = Etcd::start();
    let encryption = configuration(directory.path(), "independent", &socket);
    let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
    let pki = Pki::create(&directory.path().join("pki"));
    let mut coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    create(&coffer.kubectl(), "first");
    let first = stored(&etcd, "first");
    assert!(first.starts_with("k8s:enc:kms:v2:independent:") && first.contains("key-one"), "{first}");
    assert_eq!(coffer.kubectl().ok(&["get", "--raw", "/healthz/kms-providers"]), "ok");
    let metrics = coffer.kubectl().ok(&["get", "--raw", "/metrics"]);
    let counted = "apiserver_storage_transformation_operations_total{resource=\"secrets\",transformation_type=\"to_storage\",\
                   transformer_prefix=\"k8s:enc:kms:v2:independent:\",status=\"OK\"} 1";
    assert!(metrics.lines().any(|line| line == counted), "{metrics}");

    write_private(&keys, "key-two key-one");
    let name = rotated(&coffer.kubectl(), &etcd, |stored| stored.contains("key-two"));
    // Nothing is remembered after a restart: the plugin decrypts both.
    coffer.restart();
    let kubectl = coffer.kubectl();
    for name in ["first", &name] {
        assert!(!value(&kubectl, name).is_empty(), "{name}");
    }
    // A value that is written again moves to the new key, one that is not stays.
    kubectl.ok(&["annotate", "secret", "first", "note=written"]);
    assert!(stored(&etcd, "first").contains("key-two"));

    // The plugin says that it is ill: the readiness check tells why.
    write_private(&keys, "key-two key-one ill");
    let told = until("the check to fail", || {
        let output = kubectl.run(&["get", "--raw", "/healthz/kms-providers"]);
        (output.code != 0).then_some(output.stderr)
    });
    assert!(told.contains("got unexpected healthz status: the key service is away"), "{told}");
    assert!(!value(&kubectl, "first").is_empty());
    assert_eq!(kubectl.run(&["get", "--raw", "/livez"]).stdout, "ok");
    let missing = kubectl.run(&["get", "--raw", "/livez/kms-providers"]);
    assert!(missing.stderr.contains("NotFound") || missing.code != 0, "{missing:?}");
}

/// Version 1, behind its feature gate in both servers: each reads what the other wrote, every value has a
/// data key of its own, and health checks have a name each.
#[test]
fn a_plugin_of_version_1_serves_both_servers() {
    let directory = tempfile::tempdir().expect("a directory");
    let (keys, socket) = (directory.path().join("keys"), directory.path().join("kms.sock"));
    write_private(&keys, "key-one");
    let mut command = Command::new(program("kms"));
    let mut process = Process::start("kms", command.arg(&socket).arg(&keys).arg("v1"), directory.path());
    process.wait_until(|| socket.exists());
    let encryption = configuration(directory.path(), "old", &socket);
    let v2 = std::fs::read_to_string(&encryption).expect("written");
    write_private(&encryption, &v2.replace("\"v2\"", "\"v1\""));
    let etcd = Etcd::start();
    let refused = run(quiet().args(["config", "check"]).arg(&encryption));
    assert!(refused.stderr.contains("KMSv1 is deprecated"), "{}", refused.stderr);
    let options = ApiserverOptions {
        encryption: Some(&encryption),
        feature_gates: Some("KMSv1=true"),
        ..ApiserverOptions::default()
    };
    let apiserver = KubeApiserver::start(&etcd, &options);
    let pki = Pki::create(&directory.path().join("pki"));
    let mut coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let (theirs, ours) = (apiserver.kubectl(), coffer.kubectl());
    create(&theirs, "stock");
    create(&ours, "coffer");
    for name in ["stock", "coffer"] {
        let stored = stored(&etcd, name);
        assert!(stored.starts_with("k8s:enc:kms:v1:old:") && stored.contains("key-one/"), "{stored}");
        assert_eq!(value(&theirs, name), value(&ours, name), "{name}");
        assert!(!value(&ours, name).is_empty(), "{name}");
    }
    write_private(&keys, "key-two key-one");
    ours.ok(&["annotate", "secret", "stock", "note=written"]);
    assert!(stored(&etcd, "stock").contains("key-two/"));
    assert_eq!(value(&theirs, "stock"), value(&ours, "stock"));
    assert_eq!(ours.ok(&["get", "--raw", "/healthz/kms-provider-0"]), "ok");
    assert_eq!(theirs.ok(&["get", "--raw", "/healthz/kms-provider-0"]), "ok");
    // Both say the same when the plugin does not encrypt.
    write_private(&keys, "key-two key-one ill");
    let told = |kubectl: &Kubectl| {
        let known = "for KMS Provider old, error: rpc error: code = Unknown desc = the key service is away";
        let raw = "rpc error: code = Unknown desc = the key service is away";
        let text = until("the check to fail", || {
            let output = kubectl.run(&["get", "--raw", "/healthz/kms-provider-0"]);
            (output.code != 0).then_some(output.stderr)
        });
        assert!(text.contains(known) || text.contains(raw), "{text}");
        kubectl.run(&["create", "secret", "generic", "ill", "--from-literal=a=b"]).stderr
    };
    let (theirs, ours) = (told(&theirs), told(&ours));
    assert_eq!(theirs, ours);
    // Nothing is remembered after a restart.
    write_private(&keys, "key-two key-one");
    coffer.restart();
    for name in ["stock", "coffer"] {
        assert!(!value(&coffer.kubectl(), name).is_empty(), "{name}");
    }
}

/// The key never leaves OpenBao; its rotation there is one here.
#[test]
fn field_case_k43_the_transit_engine_takes_a_new_token_and_names_the_old_ones_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let bao = OpenBao::start();
    let root = |method: &str, path: &str, body| bao.call(method, path, &body);
    root("POST", "/v1/sys/mounts/transit", json!({"type": "transit"}));
    root("POST", "/v1/transit/keys/etcd", json!({}));
    let policy = r#"path "transit/keys/etcd" {capabilities=["read"]}
                    path "transit/+/etcd" {capabilities=["update"]}"#;
    root("PUT", "/v1/sys/policies/acl/kms", json!({"policy": policy}));
    let create_token = |id: &str| {
        let wanted = json!({"id": id, "policies": ["kms"], "display_name": "kms-node-1"});
        assert_eq!(root("POST", "/v1/auth/token/create", wanted).status, 200);
    };
    let (token, socket) = (directory.path().join("token"), directory.path().join("kms.sock"));
    let listen = format!("unix://{}", socket.display());
    let token_file = token.to_str().expect("text").to_owned();
    let arguments = |key: &'static str| {
        let listen = listen.clone();
        let (url, file) = (bao.url().to_owned(), token_file.clone());
        ["--transit-address", &url, "--transit-key", key, "--transit-token-file", &file, "--listen", &listen]
            .map(str::to_owned)
    };
    // Wrong credentials: it does not start, and says whose they are.
    write_private(&token, "wrong\n");
    let refused = run(quiet().arg("kms-plugin").args(arguments("etcd")));
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
    let expected = format!("refused the token of nobody that the server knows ({token_file})");
    assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
    assert!(!refused.stderr.contains("wrong"), "{}", refused.stderr);
    create_token("good-token-one");
    write_private(&token, "good-token-one\n");
    let refused = run(quiet().arg("kms-plugin").args(arguments("other")));
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("refused the token of \"token-kms-node-1\", accessor "),
        "{}",
        refused.stderr
    );

    let owned = arguments("etcd");
    let words: Vec<&str> = owned.iter().map(String::as_str).collect();
    let running = plugin(directory.path(), &words);
    let etcd = Etcd::start();
    let encryption = configuration(directory.path(), "bao", &socket);
    let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
    let pki = Pki::create(&directory.path().join("pki"));
    let coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let kubectl = coffer.kubectl();
    create(&kubectl, "first");
    assert!(stored(&etcd, "first").contains("transit/etcd/v1/"), "{}", stored(&etcd, "first"));

    // The token ends, another one is in the file: the next call is refused once, then well.
    root("POST", "/v1/auth/token/revoke", json!({"token": "good-token-one"}));
    create_token("good-token-two");
    write_private(&token, "good-token-two\n");
    root("POST", "/v1/transit/keys/etcd/rotate", json!({}));
    let name = rotated(&kubectl, &etcd, |stored| stored.contains("transit/etcd/v2/"));
    assert!(!value(&kubectl, "first").is_empty() && !value(&kubectl, &name).is_empty());

    // The token ends and there is no other: the check names whose it was not.
    root("POST", "/v1/auth/token/revoke", json!({"token": "good-token-two"}));
    let told = until("the check to fail", || {
        let output = kubectl.run(&["get", "--raw", "/healthz/kms-providers"]);
        (output.code != 0).then_some(output.stderr)
    });
    assert!(told.contains("refused the token of nobody that the server knows"), "{told}");
    for secret in ["good-token-one", "good-token-two"] {
        assert!(!running.log().contains(secret) && !coffer.log().contains(secret), "{secret} is in a log");
    }
}

/// A software token, in a directory of its own.
#[cfg(feature = "pkcs11")]
struct SoftHsm {
    module: PathBuf,
    config: PathBuf,
}

#[cfg(feature = "pkcs11")]
impl SoftHsm {
    const TOKEN: &str = "coffer";
    const PIN: &str = "a-pin-that-no-port-or-time-is";

    fn new(directory: &Path) -> Self {
        let tokens = directory.join("tokens");
        std::fs::create_dir(&tokens).expect("can be made");
        let config = directory.join("softhsm2.conf");
        let text = format!("directories.tokendir = {}\nobjectstore.backend = file\n", tokens.display());
        std::fs::write(&config, text).expect("written");
        let program = std::fs::canonicalize(program("softhsm2-util")).expect("installed");
        let libraries = program.ancestors().nth(2).expect("below usr").join("lib");
        let module = std::fs::read_dir(&libraries)
            .expect("unpacked")
            .map(|entry| entry.expect("an entry").path().join("softhsm/libsofthsm2.so"))
            .find(|path| path.exists())
            .expect("the library of SoftHSM");
        let hsm = Self { module, config };
        hsm.util(&[
            "--init-token",
            "--free",
            "--label",
            Self::TOKEN,
            "--so-pin",
            "12345",
            "--pin",
            Self::PIN,
        ]);
        hsm
    }

    fn util(&self, arguments: &[&str]) {
        let mut command = Command::new(program("softhsm2-util"));
        let output =
            run(command.env("SOFTHSM2_CONF", &self.config).arg("--module").arg(&self.module).args(arguments));
        assert_eq!(output.code, 0, "{arguments:?}: {}{}", output.stdout, output.stderr);
    }

    /// Puts an AES key with this ID into the token.
    fn import(&self, directory: &Path, id: u8) {
        let file = directory.join("aes.key");
        std::fs::write(&file, [id; 32]).expect("written");
        let (file, id) = (file.display().to_string(), format!("{id:02x}"));
        let token = ["--token", Self::TOKEN, "--pin", Self::PIN];
        self.util(&[&["--import", &file, "--aes", "--id", &id, "--label", "etcd"][..], &token].concat());
    }
}

#[cfg(feature = "pkcs11")]
#[test]
fn a_pkcs11_token_is_a_backend() {
    let directory = tempfile::tempdir().expect("a directory");
    let hsm = SoftHsm::new(directory.path());
    hsm.import(directory.path(), 1);
    let (pin, socket) = (directory.path().join("pin"), directory.path().join("kms.sock"));
    let arguments = |key: &str| {
        let words = [
            ("--listen", format!("unix://{}", socket.display())),
            ("--pkcs11-module", hsm.module.display().to_string()),
            ("--pkcs11-token", SoftHsm::TOKEN.to_owned()),
            ("--pkcs11-key", key.to_owned()),
            ("--pkcs11-pin-file", pin.display().to_string()),
        ];
        words.map(|(flag, value)| format!("{flag}={value}"))
    };
    let command = |mut command: Command| {
        command.env("SOFTHSM2_CONF", &hsm.config);
        command
    };
    let refused = |key: &str, expected: &str| {
        let output = run(command(quiet()).arg("kms-plugin").args(arguments(key)));
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{}", output.stderr);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    };
    write_private(&pin, "another-pin\n");
    refused("etcd", &format!("the token \"coffer\" refused the PIN in {}", pin.display()));
    write_private(&pin, SoftHsm::PIN);
    refused("other", "the token \"coffer\" has no AES key labelled \"other\"");

    let owned = arguments("etcd");
    let words: Vec<&str> = owned.iter().map(String::as_str).collect();
    let running = plugin_with(command(loud()), directory.path(), &words);
    let etcd = Etcd::start();
    let encryption = configuration(directory.path(), "hsm", &socket);
    let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
    let pki = Pki::create(&directory.path().join("pki"));
    let mut coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    create(&coffer.kubectl(), "first");
    assert!(stored(&etcd, "first").contains("pkcs11/coffer/etcd/01"), "{}", stored(&etcd, "first"));
    hsm.import(directory.path(), 2);
    let name = rotated(&coffer.kubectl(), &etcd, |stored| stored.contains("pkcs11/coffer/etcd/02"));
    coffer.restart();
    for name in ["first", &name] {
        assert!(!value(&coffer.kubectl(), name).is_empty(), "{name}");
    }
    assert!(!running.log().contains(SoftHsm::PIN), "the PIN is in the log");
}
