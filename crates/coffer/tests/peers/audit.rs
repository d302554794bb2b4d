//! `coffer audit` of what a stock kube-apiserver stored: on its etcd, and in a snapshot of it.

use coffer_sim::peers::{ApiserverOptions, Etcd, KubeApiserver};
use serde_json::{Value, json};

use super::quiet;

const ONE: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const TWO: &str = "MTEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// A configuration for Secrets with these providers as YAML.
fn config(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers:\n{providers}"
    )
}

fn gcm(name: &str, secret: &str) -> String {
    format!("  - aesgcm: {{keys: [{{name: {name}, secret: {secret}}}]}}\n")
}

/// The exit code and the report.
fn audit(arguments: &[&str]) -> (i32, Value) {
    let output = quiet().args(["audit", "-o", "json"]).args(arguments).output().expect("coffer runs");
    let text = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().expect("a code"), report)
}

/// Live copies of Secrets by provider and key.
fn secrets(report: &Value) -> Vec<(String, u64, u64)> {
    let copies = report["copies"].as_array().expect("copies");
    let secrets = copies.iter().filter(|copies| copies["resource"] == "secrets");
    secrets
        .map(|copies| {
            let under = format!(
                "{} {}",
                copies["provider"].as_str().expect("text"),
                copies["key"].as_str().expect("text")
            );
            (under, copies["live"].as_u64().expect("a number"), copies["oldKey"].as_u64().expect("a number"))
        })
        .collect()
}

fn findings(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().expect("findings");
    findings
        .iter()
        .map(|found| {
            format!(
                "{} {}",
                found["problem"].as_str().expect("text"),
                found["etcdKey"].as_str().expect("text")
            )
        })
        .collect()
}

#[test]
fn a_stock_servers_copies_are_told_live_and_from_a_snapshot() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).expect("written");
        path
    };
    // Three lives of the same server: before encryption, with a first key, with a second one.
    let identity = "  - identity: {}\n";
    let first = config(&format!("{}{identity}", gcm("one", ONE)));
    let second = config(&format!("{}{}{identity}", gcm("two", TWO), gcm("one", ONE)));
    for (number, encryption) in [None, Some(&first), Some(&second)].into_iter().enumerate() {
        let encryption = encryption.map(|text| file("encryption.yaml", text));
        let options = ApiserverOptions { encryption: encryption.as_deref(), ..ApiserverOptions::default() };
        let server = KubeApiserver::start(&etcd, &options);
        for name in ["a", "b", "c"] {
            let name = format!("life-{number}-{name}");
            let created = server.kubectl().run(&["create", "secret", "generic", &name, "--from-literal=k=v"]);
            assert_eq!(created.code, 0, "{}", created.stderr);
        }
        // One that was plaintext is rewritten, which leaves the plaintext in the history.
        let labelled =
            server.kubectl().run(&["label", "--overwrite", "secret", "life-0-a", &format!("life=n{number}")]);
        assert_eq!(labelled.code, 0, "{}", labelled.stderr);
    }
    let second = file("second.yaml", &second);
    let second = second.to_str().expect("text");
    let (expected_live, expected_findings) = (
        vec![
            ("aesgcm one".to_owned(), 3, 3),
            ("aesgcm two".to_owned(), 4, 0),
            ("identity ".to_owned(), 2, 0),
        ],
        vec![
            "plaintext /registry/secrets/default/life-0-b".to_owned(),
            "plaintext /registry/secrets/default/life-0-c".to_owned(),
        ],
    );
    let snapshot = directory.path().join("snapshot.db");
    let snapshot = snapshot.to_str().expect("text");
    etcd.ctl(&["snapshot", "save", snapshot]);
    for store in [["--etcd-servers", etcd.url()], ["--snapshot", snapshot]] {
        let (code, report) = audit(&[&store[..], &["--config", second]].concat());
        assert_eq!(code, 1);
        assert_eq!(secrets(&report), expected_live, "{store:?}");
        assert_eq!(findings(&report), expected_findings, "{store:?}");
        // Whatever else the server stores is told too, and none of it is wrong.
        assert!(report["copies"].as_array().expect("copies").len() > 10, "{report:#}");
    }
    let (_, report) = audit(&["--snapshot", snapshot]);
    let plain = report["copies"]
        .as_array()
        .expect("copies")
        .iter()
        .find(|copies| copies["resource"] == "secrets" && copies["provider"] == "identity");
    // Created, and labelled once, before it was encrypted.
    assert_eq!(plain.expect("plaintext")["oldRevisions"], json!(2));

    inspected(&etcd, snapshot, second);

    // Ciphertext that somebody copied to another name.
    let value = etcd.value("/registry/secrets/default/life-2-a");
    etcd.put("/registry/secrets/default/copy", &value);
    let (_, report) = audit(&["--etcd-servers", etcd.url(), "--config", second]);
    let moved = findings(&report);
    assert!(moved.contains(&"misplaced /registry/secrets/default/copy".to_owned()), "{moved:?}");
}

/// The same value from etcd, from the snapshot and from a pipe.
fn inspected(etcd: &Etcd, snapshot: &str, config: &str) {
    let key = "/registry/secrets/default/life-2-a";
    let run = |arguments: &[&str]| {
        let output = quiet().arg("inspect").args(arguments).output().expect("coffer runs");
        let (text, errors) =
            (String::from_utf8(output.stdout).expect("text"), String::from_utf8_lossy(&output.stderr));
        assert!(errors.is_empty(), "{errors}");
        (output.status.code().expect("a code"), text)
    };
    let raw = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(raw.path(), etcd.value(key)).expect("written");
    let raw = raw.path().to_str().expect("text");
    for store in [["--etcd-servers", etcd.url()], ["--snapshot", snapshot], ["--file", raw]] {
        let given = [&[key, "--config", config], &store[..]].concat();
        let (code, text) = run(&given);
        assert_eq!(code, 0, "{text}");
        for part in
            ["aesgcm", "two", "nonce 12, ciphertext", "v1 Secret default/life-2-a (protobuf)", "1 bytes"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // What it holds is shown to nobody who did not ask for it: "v" in base64.
        assert!(!text.contains("dg=="), "{text}");
        let (code, text) = run(&[&given[..], &["--reveal"]].concat());
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("  k: dg==\n") && text.contains("kind: Secret\n"), "{text}");
    }
    let (code, text) = run(&[key, "--file", raw, "-o", "json"]);
    let explained: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &explained["opened"], &explained["key"]), (0, &Value::Null, &json!("two")));
    // Bound to its key: under another name no key opens it.
    let other = "/registry/secrets/default/other";
    let (code, text) = run(&[other, "--file", raw, "--config", config]);
    assert_eq!(code, 1);
    assert!(text.contains("no key opens it"), "{text}");
}

/// Field case K41: a snapshot with Secrets under a key that is not held says which key is missing.
#[test]
fn k41_a_snapshot_names_the_key_that_is_missing() {
    let etcd = Etcd::start();
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    for (provider, name) in [("aesgcm", "g"), ("aescbc", "c"), ("secretbox", "s")] {
        let text = config(&format!(
            "  - {provider}: {{keys: [{{name: {name}, secret: {ONE}}}]}}\n  - aesgcm: {{keys: [{{name: g, secret: {ONE}}}]}}\n  \
             - aescbc: {{keys: [{{name: c, secret: {ONE}}}]}}\n"
        ));
        std::fs::write(path("encryption.yaml"), text).expect("written");
        let encryption = path("encryption.yaml");
        let options = ApiserverOptions { encryption: Some(&encryption), ..ApiserverOptions::default() };
        let server = KubeApiserver::start(&etcd, &options);
        let created = server.kubectl().run(&["create", "secret", "generic", name, "--from-literal=k=v"]);
        assert_eq!(created.code, 0, "{}", created.stderr);
    }
    let snapshot = path("snapshot.db");
    etcd.ctl(&["snapshot", "save", snapshot.to_str().expect("text")]);
    std::fs::write(path("held.yaml"), config(&gcm("g", ONE))).expect("written");
    let (snapshot, held) = (snapshot.display().to_string(), path("held.yaml").display().to_string());
    let output =
        quiet().args(["audit", "--snapshot", &snapshot, "--config", &held]).output().expect("coffer runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for (provider, key, reason) in
        [("aescbc", "c", "no matching prefix found"), ("secretbox", "s", "no matching prefix found")]
    {
        let row = |line: &&str| line.contains(&format!("{provider} ")) && line.contains("1 undecryptable");
        assert!(text.lines().any(|line| row(&line)), "{text}");
        let finding = |line: &&str| line.contains(&format!("default/{key}")) && line.contains(reason);
        assert!(text.lines().any(|line| finding(&line)), "{text}");
    }
    assert!(text.lines().any(|line| line.contains("aesgcm") && line.contains("good")), "{text}");
}
