use super::*;
use crate::names;
use crate::validation::testing::{object, texts};

const RULES: MetaRules =
    MetaRules { namespaced: true, name: names::dns_subdomain, qualified_finalizers: true };

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn secret(kind: &str, data: &[(&str, &[u8])]) -> Value {
    let mut secret = object(r#"{"metadata":{"name":"s","namespace":"n","resourceVersion":"1"}}"#);
    secret.set_str(&["type"], kind);
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), Value::Bytes(value.to_vec().into())));
    secret.set(&["data"], Value::Object(data.collect()));
    secret
}

#[track_caller]
fn check(kind: &str, data: &[(&str, &[u8])], expected: &[&str]) {
    assert_eq!(texts(&validate(&secret(kind, data), RULES)), expected, "{kind}");
}

#[test]
fn string_data_moves_over_data() {
    let mut value = object(r#"{"stringData":{"a":"x","b":"","c":null},"data":{"d":null}}"#);
    value.object_at_mut(&["data"]).insert("a".into(), Value::Bytes(b"old".to_vec().into()));
    default(&mut value);
    assert_eq!(value.str_at(&["type"]), "Opaque");
    assert!(value.get("stringData").is_none());
    let data = map(&value, "data");
    for (key, expected) in [("a", &b"x"[..]), ("b", b""), ("c", b""), ("d", b"")] {
        assert_eq!(data[key].as_bytes().map(SecretBytes::expose), Some(expected), "{key}");
    }
    let mut value = object(r#"{"stringData":{},"type":"x"}"#);
    default(&mut value);
    assert!(value == object(r#"{"type":"x"}"#));
}

#[test]
fn keys_and_size() {
    check("Opaque", &[("a", b""), (".foo", b"v")], &[]);
    check("Opaque", &[("", b"v")], &[&format!("data[]: Invalid value: \"\": {KEY}")]);
    check(
        "Opaque",
        &[("..data", b"v"), ("a/b", b"v")],
        &[
            "data[..data]: Invalid value: \"..data\": must not start with '..'",
            &format!("data[a/b]: Invalid value: \"a/b\": {KEY}"),
        ],
    );
    let half = vec![b'x'; DATA_LIMIT / 2];
    check("Opaque", &[("a", &half), ("b", &half)], &[]);
    check(
        "Opaque",
        &[("a", &half), ("b", &half), ("c", b"x")],
        &["data: Too long: may not be more than 1048576 bytes"],
    );
}

#[test]
fn every_type_has_its_keys() {
    let redacted = "Invalid value: \"<secret contents redacted>\"";
    for kind in ["Opaque", "", "bootstrap.kubernetes.io/token", "anything at all"] {
        check(kind, &[], &[]);
    }
    check(
        "kubernetes.io/service-account-token",
        &[],
        &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    );
    let mut token = secret("kubernetes.io/service-account-token", &[]);
    token.set(&["metadata", "annotations", SERVICE_ACCOUNT_NAME], "default");
    assert!(validate(&token, RULES).is_empty());
    for (kind, key) in
        [("kubernetes.io/dockercfg", ".dockercfg"), ("kubernetes.io/dockerconfigjson", ".dockerconfigjson")]
    {
        check(kind, &[(key, b"{}")], &[]);
        check(kind, &[(key, b"null")], &[]);
        check(kind, &[("other", b"{}")], &[&format!("data[{key}]: Required value")]);
        check(kind, &[(key, b"")], &[&format!("data[{key}]: {redacted}: unexpected end of JSON input")]);
        check(
            kind,
            &[(key, b"[]")],
            &[&format!(
                "data[{key}]: {redacted}: json: cannot unmarshal array into Go value of type map[string]interface {{}}"
            )],
        );
    }
    let basic = "kubernetes.io/basic-auth";
    check(basic, &[("username", b"")], &[]);
    check(basic, &[("password", b"")], &[]);
    check(basic, &[], &["data[username]: Required value", "data[password]: Required value"]);
    check("kubernetes.io/ssh-auth", &[("ssh-privatekey", b"k")], &[]);
    check("kubernetes.io/ssh-auth", &[("ssh-privatekey", b"")], &["data[ssh-privatekey]: Required value"]);
    check("kubernetes.io/ssh-auth", &[], &["data[ssh-privatekey]: Required value"]);
    let tls = "kubernetes.io/tls";
    check(tls, &[("tls.crt", b""), ("tls.key", b"")], &[]);
    check(tls, &[("tls.crt", b"")], &["data[tls.key]: Required value"]);
    check(tls, &[], &["data[tls.crt]: Required value", "data[tls.key]: Required value"]);
}

#[test]
fn updates() {
    let check = |old: &Value, new: &Value, expected: &[&str]| {
        assert_eq!(texts(&validate_update(new, old, RULES)), expected);
    };
    let plain = secret("Opaque", &[("a", b"1")]);
    let changed = secret("Opaque", &[("a", b"2")]);
    check(&plain, &changed, &[]);
    let tls = secret("kubernetes.io/tls", &[("tls.crt", b""), ("tls.key", b"")]);
    let mut opaque = tls.clone();
    opaque.set(&["type"], "Opaque");
    check(&tls, &opaque, &["type: Invalid value: \"Opaque\": field is immutable"]);

    let with = |secret: &Value, flag: bool| {
        let mut secret = secret.clone();
        secret.set(&["immutable"], flag);
        secret
    };
    let locked = with(&plain, true);
    check(&plain, &with(&changed, true), &[]);
    check(&locked, &locked, &[]);
    check(
        &locked,
        &with(&plain, false),
        &["immutable: Forbidden: field is immutable when `immutable` is set"],
    );
    check(
        &locked,
        &changed,
        &[
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ],
    );
    let mut labelled = locked.clone();
    labelled.set(&["metadata", "labels", "a"], "b");
    check(&locked, &labelled, &[]);
    let empty = with(&secret("Opaque", &[]), true);
    let mut absent = empty.clone();
    absent.remove(&["data"]);
    check(&empty, &absent, &[]);
}

#[test]
fn a_missing_type_is_the_old_one() {
    let mut new = object("{}");
    prepare_update(&mut new, &object(r#"{"type":"kubernetes.io/tls"}"#));
    assert_eq!(new.str_at(&["type"]), "kubernetes.io/tls");
    prepare_update(&mut new, &object(r#"{"type":"Opaque"}"#));
    assert_eq!(new.str_at(&["type"]), "kubernetes.io/tls");
}

/// CVE-2020-8564: what stands in a malformed pull credential is never shown.
#[test]
fn s11_a_hundred_malformed_pull_credentials_stay_hidden() {
    let mark = "hunter2-s3cr3t";
    let whole = format!(r#"{{"auths":{{"r":{{"auth":"{mark}","password":"{mark}"}}}}}}"#);
    let mut malformed: Vec<String> =
        (0..whole.len()).map(|cut| whole[..cut].to_owned()).chain([format!("{whole}{mark}")]).collect();
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes.insert_str(position, &format!("\u{1}{mark}"));
        malformed.push(bytes);
    }
    malformed.extend([
        format!("\"{mark}\""),
        format!("[\"{mark}\"]"),
        mark.to_owned(),
        format!("{{\"a\":\"{mark}\n\"}}"),
        format!("{{\"{mark}\"}}"),
        "{\"a\":123456789e999}".to_owned(),
    ]);
    let mut refused = 0;
    for text in &malformed {
        let value = secret("kubernetes.io/dockerconfigjson", &[(".dockerconfigjson", text.as_bytes())]);
        let errors = validate(&value, RULES);
        for error in &errors {
            let shown = error.to_string();
            assert!(
                shown.starts_with("data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": ")
            );
            for part in ["hunter2", "s3cr3t", "auths", "123456789"] {
                assert!(!shown.contains(part), "{shown}");
            }
        }
        refused += usize::from(!errors.is_empty());
    }
    assert!(refused >= 100, "{refused}");
}

struct Always(Result<(), &'static str>);

impl PairCheck for Always {
    fn check(&self, chain: &[Vec<u8>], key: &SecretBytes) -> Result<(), String> {
        assert_eq!((chain.len(), key.expose()), (1, &b"abc"[..]));
        self.0.map_err(str::to_owned)
    }
}

#[test]
fn tls_warnings_are_go_s() {
    let block = |label: &str| format!("-----BEGIN {label}-----\nYWJj\n-----END {label}-----\n");
    let check = |certificate: &str, key: &str, expected: Option<&str>| {
        let actual = tls_warning(certificate.as_bytes(), key.as_bytes(), &Always(Ok(())));
        assert_eq!(actual.as_deref(), expected);
    };
    let (certificate, key) = (block("CERTIFICATE"), block("RSA PRIVATE KEY"));
    check(&certificate, &key, None);
    check("", &key, Some("tls: failed to find any PEM data in certificate input"));
    check(
        &key,
        &certificate,
        Some(
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
             have been switched",
        ),
    );
    check(
        &(block("A") + &block("B")),
        &key,
        Some(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
             following types: [A B]",
        ),
    );
    check(&certificate, "x", Some("tls: failed to find any PEM data in key input"));
    check(
        &certificate,
        &certificate,
        Some("tls: found a certificate rather than a key in the PEM for the private key"),
    );
    check(
        &certificate,
        &block("XPRIVATE KEY"),
        Some(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [XPRIVATE KEY]",
        ),
    );
    let mismatch = "tls: private key does not match public key";
    let actual = tls_warning(certificate.as_bytes(), key.as_bytes(), &Always(Err(mismatch)));
    assert_eq!(actual.as_deref(), Some(mismatch));
    let opaque = secret("Opaque", &[]);
    assert!(warnings(&opaque, &Always(Ok(()))).is_empty());
    let tls = secret("kubernetes.io/tls", &[]);
    assert_eq!(warnings(&tls, &Always(Ok(()))), ["tls: failed to find any PEM data in certificate input"]);
}
