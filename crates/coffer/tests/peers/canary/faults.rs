//! Stores that fail while marked values are on their way, stored values that are damaged, and keys that are
//! not the right ones.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_sim::marks::Mark;
use coffer_sim::peers::{ApiserverOptions, Coffer, Etcd, Pki, until};
use http::Request;

use super::super::loud;
use super::{Api, JSON, MARK, SECRETS, YAML, secret};

fn marked(name: &str) -> String {
    secret(name, &format!(r#""data":{{"value":"{}"}}"#, STANDARD.encode(MARK)))
}

/// Marked writes and reads of every kind; answers and errors that are no success must not tell the mark. Gives how
/// many failed.
fn attempts(api: &Api, mark: &Mark, round: usize) -> usize {
    let merge = "application/merge-patch+json";
    let patch = format!(r#"{{"stringData":{{"value":"{MARK}{round}"}}}}"#);
    let new = format!("new-{round}");
    let yaml =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: y{round}}}\nstringData: {{v: '{MARK}'}}\n");
    let at = |name: &str| format!("{SECRETS}/{name}?timeout=3s");
    let all = format!("{SECRETS}?timeout=3s");
    let mut failed = 0;
    for (method, path, content, body) in [
        ("POST", &all, JSON, marked(&new)),
        ("POST", &all, YAML, yaml),
        ("PATCH", &at("kept"), merge, patch),
        ("PUT", &at("kept"), JSON, marked("kept")),
        ("DELETE", &at(&new), JSON, String::new()),
        ("GET", &format!("{all}&resourceVersion="), JSON, String::new()),
    ] {
        let request = Request::builder().method(method).uri(path.as_str()).header("Content-Type", content);
        match api.try_send(&api.admin, request.body(body.into_bytes()).expect("a request")) {
            Ok((status, _)) if status < 300 => {}
            Ok((_, answer)) => {
                mark.assert_absent(&format!("the answer to {method} {path}"), answer);
                failed += 1;
            }
            Err(error) => {
                mark.assert_absent(&format!("the error of {method} {path}"), format!("{error} {error:?}"));
                failed += 1;
            }
        }
    }
    failed
}

/// What is told besides: traces, metrics, events, and the log of a coffer that has ended.
fn told_elsewhere(coffer: &mut Coffer, api: &Api, mark: &Mark) {
    for format in ["table", "json"] {
        let output = coffer.ask(&["trace", "secret/kept", "-o", format]);
        mark.assert_absent("trace", output.stdout + &output.stderr);
    }
    for path in ["/metrics", "/api/v1/events", "/readyz?verbose", "/livez?verbose"] {
        let request = Request::get(path).body(Vec::new()).expect("a request");
        if let Ok((_, answer)) = api.try_send(&api.admin, request) {
            mark.assert_absent(path, answer);
        }
    }
    coffer.end();
    let log = coffer.log();
    assert!(log.contains("TRACE") && log.len() > 10_000, "{} bytes", log.len());
    mark.assert_absent("the log", log);
}

#[test]
fn a_lost_etcd_tells_no_marked_value() {
    let mark = Mark::new(MARK);
    let mut etcd = Etcd::start();
    let servers = format!("--etcd-servers={}", etcd.url());
    let mut coffer = Coffer::up(loud, &[&servers]);
    let api = Api::new(coffer.kubeconfig());
    assert_eq!(api.call("POST", SECRETS, JSON, marked("kept")).0, 201);
    assert_eq!(attempts(&api, &mark, 0), 0);
    // Killed while writes are under way: another thread writes all the time.
    std::thread::scope(|threads| {
        let writer = Api::new(coffer.kubeconfig());
        let writing = threads
            .spawn(move || (1..6).map(|round| attempts(&writer, &Mark::new(MARK), round)).sum::<usize>());
        etcd.kill();
        assert!(writing.join().expect("the writer ends") > 0, "nothing failed");
    });
    assert!(attempts(&api, &mark, 6) > 0, "nothing failed without etcd");
    etcd.restart();
    until("etcd to be used again", || {
        (api.call("POST", SECRETS, JSON, marked("after")).0 == 201).then_some(())
    });
    etcd.kill();
    told_elsewhere(&mut coffer, &api, &mark);
    let refused = coffer.refuses_to_start();
    assert_ne!(refused.code, 0);
    mark.assert_absent("a start without etcd", refused.stdout + &refused.stderr);
}

/// No file of the process grows beyond so many bytes: writing fails as on a full disk.
const LARGEST: usize = 48 * 1024 * 1024;

/// The log is a file too; how much of it there is, is looked at.
fn cramped() -> Command {
    let loud = loud();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", LARGEST / 512))
        .arg(loud.get_program())
        .env_remove("KUBECONFIG")
        .envs(loud.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_disk_that_fails_tells_no_marked_value() {
    let mark = Mark::new(MARK);
    let mut coffer = Coffer::up(cramped, &[]);
    let api = Api::new(coffer.kubeconfig());
    assert_eq!(api.call("POST", SECRETS, JSON, marked("kept")).0, 201);
    let big = STANDARD.encode(MARK.repeat(700_000 / MARK.len()));
    let mut last = 0;
    for round in 0..100 {
        let body = secret(&format!("big-{round}"), &format!(r#""data":{{"value":"{big}"}}"#));
        let (status, answer) = api.call("POST", SECRETS, JSON, body);
        last = status;
        if status >= 300 {
            mark.assert_absent("the answer of a full disk", answer);
            break;
        }
    }
    assert!(last >= 500, "the disk never failed: {last}");
    attempts(&api, &mark, 0);
    assert!(coffer.log().len() < LARGEST - 1024, "the end of the log is missing");
    // What is held is still read.
    let (status, answer) = api.get(&format!("{SECRETS}/kept"), JSON);
    assert!(status == 200 && mark.found_in(&answer).is_some(), "{status}");
    told_elsewhere(&mut coffer, &api, &mark);
}

fn key(byte: u8) -> String {
    let secret = STANDARD.encode([byte; 32]);
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets]\n  providers:\n  - aesgcm: {{keys: [{{name: key1, secret: \"{secret}\"}}]}}\n  \
         - identity: {{}}\n"
    )
}

#[test]
fn damaged_values_and_wrong_keys_tell_no_marked_value() {
    let mark = Mark::new(MARK);
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("encryption.yaml");
    std::fs::write(&config, key(1)).expect("written");
    let etcd = Etcd::start();
    let pki = Pki::create(&directory.path().join("pki"));
    let options = ApiserverOptions { encryption: Some(&config), ..ApiserverOptions::default() };
    let mut coffer = Coffer::apiserver(loud, &etcd, &pki, &options);
    let api = Api::new(coffer.kubeconfig());
    for name in ["kept", "flipped", "cut", "plain"] {
        until("the namespace", || (api.call("POST", SECRETS, JSON, marked(name)).0 != 404).then_some(()));
    }
    let stored = |name: &str| format!("/registry/secrets/default/{name}");
    let mut flipped = etcd.value(&stored("flipped"));
    assert!(flipped.starts_with(b"k8s:enc:aesgcm:v1:key1:"));
    *flipped.last_mut().expect("bytes") ^= 1;
    etcd.put(&stored("flipped"), &flipped);
    let cut = etcd.value(&stored("cut"));
    etcd.put(&stored("cut"), &cut[..40]);
    // Stored in the open, with the value in it, and malformed behind the value.
    let mut plain = super::protobuf("plain", MARK);
    plain.extend_from_slice(b"\x0a\xff\xff\xff\x7f");
    etcd.put(&stored("plain"), &plain);
    etcd.put(&stored("text"), format!("k8s:enc:aesgcm:v1:other:{MARK}").as_bytes());
    etcd.put(&stored("json"), format!("{{\"kind\":\"Secret\",\"data\":\"{MARK}").as_bytes());
    let bad = |names: &[&str]| {
        for name in names {
            let path = format!("{SECRETS}/{name}");
            until("the damage to be noticed", || (api.get(&path, JSON).0 >= 500).then_some(()));
            for (method, body) in [("GET", String::new()), ("PUT", marked(name)), ("DELETE", String::new())] {
                api.refused(&mark, method, &path, JSON, body);
            }
            api.refused(
                &mark,
                "PATCH",
                &path,
                "application/merge-patch+json",
                format!(r#"{{"stringData":{{"v":"{MARK}"}}}}"#),
            );
            for format in ["table", "json"] {
                let output = coffer.ask(&["trace", &format!("secret/{name}"), "-o", format]);
                mark.assert_absent("trace of a damaged value", output.stdout + &output.stderr);
            }
        }
        let (status, answer) = api.get(&format!("{SECRETS}?resourceVersion="), JSON);
        if status >= 300 {
            mark.assert_absent("the list with damaged values", answer);
        }
    };
    bad(&["flipped", "cut", "plain", "text", "json"]);
    // Another key of the same name opens nothing.
    coffer.end();
    std::fs::write(&config, key(2)).expect("written");
    coffer.restart();
    let api = Api::new(coffer.kubeconfig());
    api.refused(&mark, "GET", &format!("{SECRETS}/kept"), JSON, "");
    let told = coffer.ask(&["trace", "secret/kept"]);
    assert_eq!(told.code, 1, "{}{}", told.stdout, told.stderr);
    assert!(told.stdout.contains("no key that the server holds opens it"), "{}", told.stdout);
    told_elsewhere(&mut coffer, &api, &mark);
}

/// The check can fail: what goes where values must not go is found in the log.
#[test]
fn a_planted_mark_is_found() {
    const PLANTED: &str = "planted0canary0name";
    let mut coffer = Coffer::up(loud, &[]);
    let api = Api::new(coffer.kubeconfig());
    // Names are logged, values are not.
    assert_eq!(api.call("POST", SECRETS, JSON, marked("other")).0, 201);
    assert_eq!(api.get(&format!("{SECRETS}/{PLANTED}"), JSON).0, 404);
    let encoded = STANDARD.encode("planted9encoded");
    assert_eq!(api.get(&format!("{SECRETS}/{}", encoded.to_lowercase()), JSON).0, 404);
    coffer.end();
    let log = coffer.log();
    assert!(Mark::new(PLANTED).found_in(log.as_bytes()).is_some(), "the planted mark is not found");
    Mark::new(MARK).assert_absent("the log", &log);
    let caught = std::panic::catch_unwind(|| Mark::new(PLANTED).assert_absent("the log", &log));
    assert!(caught.is_err(), "the check cannot fail");
}
