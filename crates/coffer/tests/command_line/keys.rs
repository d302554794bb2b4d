//! `coffer keys derive`, held to the vectors of the derivation.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_sim::peers::{Output, run};

use super::fixture::{Fixture, coffer};

const VECTORS: &str = include_str!("../../../crypto/tests/vectors/derivation.json");

/// `text` as bytes.
fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn write(path: &Path, content: &[u8], mode: u32) {
    std::fs::write(path, content).expect("written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own file");
}

/// Runs `coffer keys derive` with the inputs of a vector.
fn derive(fixture: &Fixture, vector: &serde_json::Value, more: &[&str]) -> Output {
    let text = |name: &str| vector[name].as_str().expect("text");
    write(&fixture.path().join("root"), &unhex(text("rootSecretHex")), 0o600);
    let mut command = coffer(fixture.path());
    command.args(["keys", "derive", "--root-file=root"]);
    for (flag, field) in [
        ("--seed", "seed"),
        ("--group", "replicationGroupID"),
        ("--dimension", "dimension"),
        ("--revision", "revision"),
        ("--algorithm", "derivationAlgorithm"),
    ] {
        command.arg(format!("{flag}={}", text(field)));
    }
    run(command.args(more))
}

#[test]
fn every_vector_that_fits_a_command_line() {
    let fixture = Fixture::new();
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).expect("JSON");
    let mut seen = 0;
    for vector in vectors["vectors"].as_array().expect("a list") {
        if vector.get("replicationGroupID").is_none() {
            continue;
        }
        let expected = |name: &str| format!("{}\n", vector[name].as_str().expect("text"));
        let ran = derive(&fixture, vector, &[]);
        assert_eq!((ran.code, ran.stdout, ran.stderr), (0, expected("keyBase64"), String::new()));
        let ran = derive(&fixture, vector, &["--check-only"]);
        assert_eq!((ran.code, ran.stdout, ran.stderr), (0, expected("keyCheckValue"), String::new()));
        let ran = derive(&fixture, vector, &["-o", "json"]);
        let shown: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        for (field, of) in [
            ("key", "keyBase64"),
            ("keyCheckValue", "keyCheckValue"),
            ("rootCheckValue", "rootCheckValue"),
            ("revision", "revision"),
            ("algorithm", "derivationAlgorithm"),
            ("group", "replicationGroupID"),
        ] {
            assert_eq!(shown[field], vector[of], "{field}");
        }
        seen += 1;
    }
    assert!(seen >= 17, "only {seen} vectors");
}

#[test]
fn the_key_is_not_shown_where_only_its_check_value_is_asked_for() {
    let fixture = Fixture::new();
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).expect("JSON");
    let ran = derive(&fixture, &vectors["vectors"][0], &["--check-only", "-o", "yaml"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stdout.contains("keyCheckValue: e10aac0eb64cc7b2\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("key:") && !ran.stdout.contains("hlxKaAR6"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_derived() {
    let fixture = Fixture::new();
    let vectors: serde_json::Value = serde_json::from_str(VECTORS).expect("JSON");
    let seed = vectors["vectors"][0]["seed"].as_str().expect("text");
    let check = |more: &[&str], code: i32, expected: &str| {
        let mut command = coffer(fixture.path());
        command.args(["keys", "derive", "--group=g", "--revision=1"]);
        let named = |flag: &str| more.iter().any(|word| word.starts_with(flag));
        if !named("--seed") {
            command.arg(format!("--seed={seed}"));
        }
        if !named("--root-file") {
            command.arg("--root-file=good");
        }
        let ran = run(command.args(more));
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{more:?} {}", ran.stderr);
        assert_eq!(ran.stderr, expected, "{more:?}");
    };
    write(&fixture.path().join("good"), &[1; 32], 0o600);
    write(&fixture.path().join("open"), &[1; 32], 0o640);
    write(&fixture.path().join("long"), &[b'\n'; 33], 0o400);
    check(
        &["--root-file=missing"],
        3,
        "coffer: cannot read missing: No such file or directory (os error 2)\n  \
         name a file that is there and that this user may read with --root-file\n",
    );
    check(
        &["--root-file=open"],
        1,
        "coffer: open holds a root secret, but others may use it (mode 0640)\n  type: chmod 600 open\n",
    );
    check(
        &["--root-file=long"],
        1,
        "coffer: long: root secret must be 32 bytes, got 33 (a newline at its end?)\n  \
         make one with: openssl rand -out FILE 32\n",
    );
    check(
        &["--seed=abc"],
        2,
        "coffer: --seed: seed is not hexadecimal text\n  \
         write the seed as 64 hexadecimal digits, as the seed bundle holds it\n",
    );
    check(
        &["--seed=abcd"],
        2,
        "coffer: --seed: seed must decode to 32 bytes, got 2\n  \
         write the seed as 64 hexadecimal digits, as the seed bundle holds it\n",
    );
    check(
        &["--algorithm=hkdf-sha384-v1"],
        2,
        "coffer: --algorithm: unsupported derivation algorithm \"hkdf-sha384-v1\"\n  \
         name hkdf-sha512-v1 or hkdf-sha256-v1\n",
    );
    let mut command = coffer(fixture.path());
    let ran = run(command.args(["keys", "derive", "--revision=18446744073709551616"]));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
