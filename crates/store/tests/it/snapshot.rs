//! A snapshot file that etcd 3.7 made: one key written twice and deleted, so few records that
//! they lie within their bucket's head. Larger ones are read in the tests beside etcd.

use coffer_store::snapshot::{Snapshot, SnapshotError};

const FILE: &[u8] = include_bytes!("../golden/few-records.db");

/// Whether the hash is checked too.
const HASHED: bool = true;

/// What is read: revision, whether it deletes, key and value.
fn records(file: &[u8], hashed: bool) -> Result<Vec<String>, SnapshotError> {
    let snapshot = Snapshot::open(file)?;
    let mut found = Vec::new();
    let mut visit = |record: coffer_store::snapshot::Record<'_>| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (key, value) = (text(record.key), text(record.value));
        found.push(format!("{}.{} {} {key} {value}", record.revision, record.sub, record.deleted));
    };
    snapshot.records(&mut visit, &mut |_| {})?;
    if hashed {
        snapshot.check_hash()?;
    }
    Ok(found)
}

#[test]
fn every_record_is_read() {
    let expected = [
        "2.0 false /registry/secrets/ns/a one",
        "3.0 false /registry/secrets/ns/a two",
        "4.0 true /registry/secrets/ns/a ",
    ];
    assert_eq!(records(FILE, HASHED).expect("records"), expected);
    let snapshot = Snapshot::open(FILE).expect("a snapshot");
    assert_eq!((snapshot.has_hash(), snapshot.compacted()), (true, 0));
    // The data file of a member has no hash.
    let plain = &FILE[..FILE.len() - 32];
    assert_eq!(records(plain, HASHED).expect("records"), expected);
    assert!(!Snapshot::open(plain).expect("a file").has_hash());
}

#[test]
fn another_file_is_refused_with_its_reason() {
    let check = |file: &[u8], expected: &str| {
        let error = records(file, HASHED).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    let not = "it is no etcd snapshot: it does not begin as a bbolt database does";
    check(b"", not);
    check(b"k8s:enc:aesgcm:v1:key1:", not);
    check(&[0; 4096], not);
    check(&FILE[32..], not);
    check(&FILE[..12_288], "it is cut: 20480 bytes of pages are expected, 12288 are there");
    let mut changed = FILE.to_vec();
    // Within a free page, where nothing else would notice.
    let hash = "its SHA-256 does not fit its content: the file was changed or is damaged";
    let last = changed.len() - 1;
    changed[last] ^= 1;
    check(&changed, hash);
    assert!(records(&changed, !HASHED).is_ok());
}

/// Whatever bit is wrong: records or an error, and with the hash an error each time.
#[test]
fn no_flipped_bit_is_a_panic_or_goes_unnoticed() {
    for position in 0..FILE.len() {
        let mut changed = FILE.to_vec();
        changed[position] ^= 1 << (position % 8);
        let _ = records(&changed, !HASHED);
        if position % 7 == 0 {
            assert!(records(&changed, HASHED).is_err(), "byte {position}");
        }
    }
}

#[test]
fn no_cut_is_a_panic() {
    for end in 0..FILE.len() {
        let _ = records(&FILE[..end], HASHED);
    }
}
