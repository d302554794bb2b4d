//! The rules of the stored object of version 2, with upstream's texts.

use coffer_crypto::kms::{Annotations, EncryptedObject, validate_key_id, wire};
use prost::Message;

fn good() -> wire::EncryptedObject {
    wire::EncryptedObject {
        encrypted_data: vec![1],
        key_id: "1".to_owned(),
        encrypted_dek_source: vec![2],
        annotations: Annotations::new(),
        encrypted_dek_source_type: 1,
    }
}

fn decoded(object: &wire::EncryptedObject) -> Result<(), String> {
    EncryptedObject::decode(&object.encode_to_vec()).map(|_| ()).map_err(|error| error.to_string())
}

/// Upstream's TestValidateEncryptedObject, TestValidateEncryptedDEKSource.
#[test]
fn test_validate_encrypted_object() {
    let check = |change: fn(&mut wire::EncryptedObject), expected: &str| {
        let mut object = good();
        change(&mut object);
        let found = decoded(&object).err().unwrap_or_default();
        assert_eq!(found, expected);
    };
    check(|_| {}, "");
    check(|object| object.encrypted_dek_source_type = 0, "");
    check(|object| object.encrypted_dek_source_type = 55, "unknown encryptedDEKSourceType: 55");
    check(|object| object.encrypted_dek_source_type = -1, "unknown encryptedDEKSourceType: -1");
    check(|object| object.encrypted_data.clear(), "encrypted data is empty");
    check(
        |object| object.encrypted_dek_source.clear(),
        "failed to validate encrypted DEK source: encrypted DEK source is empty",
    );
    check(|object| object.encrypted_dek_source = vec![0; 1024], "");
    check(
        |object| object.encrypted_dek_source = vec![0; 1025],
        "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024",
    );
    check(|object| object.key_id.clear(), "failed to validate key id: keyID is empty");
    check(|object| object.key_id = "k".repeat(1024), "");
    check(
        |object| object.key_id = "k".repeat(1025),
        "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
    );
    // The first rule that is broken is told.
    check(
        |object| *object = wire::EncryptedObject { encrypted_dek_source_type: 2, ..Default::default() },
        "unknown encryptedDEKSourceType: 2",
    );
}

/// Upstream's TestValidateKeyID: ok, empty, too_long.
#[test]
fn test_validate_key_id() {
    let code = |id: &str| validate_key_id(id).map_err(|error| error.code());
    assert_eq!(code("1234"), Ok(()));
    assert_eq!(code(""), Err("empty"));
    assert_eq!(code(&"a".repeat(1025)), Err("too_long"));
}

/// Upstream's TestValidateAnnotations.
#[test]
fn test_validate_annotations() {
    let check = |name: &str, expected: Option<&str>| {
        let mut object = good();
        object.annotations.insert(name.to_owned(), b"bar".to_vec());
        let head = "failed to validate annotations: annotations: ";
        let found = decoded(&object).err();
        match expected {
            None => assert_eq!(found, None, "{name}"),
            Some(text) => {
                let found = found.unwrap_or_else(|| panic!("{name}: accepted"));
                assert!(found.starts_with(&format!("{head}{text}")), "{name}: {found}");
            }
        }
    };
    let segments = "should be a domain with at least two segments separated by dots";
    check("local-kek.kms.kubernetes.io", None);
    check("fqdn.example.com.", None);
    check("10.0.0.1", None);
    check("a.b", None);
    check("", Some("Required value"));
    check("com", Some(&format!("Invalid value: \"com\": {segments}")));
    check("simple", Some(&format!("Invalid value: \"simple\": {segments}")));
    check("com.", Some(&format!("Invalid value: \"com\": {segments}")));
    check(".", Some("Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of"));
    check(
        "Dev.k8s.io",
        Some("Invalid value: \"Dev.k8s.io\": a lowercase RFC 1123 subdomain must consist of"),
    );
    check("*.example.com", Some("Invalid value: \"*.example.com\": a lowercase RFC 1123 subdomain"));
    check("http://foo.example.com", Some("Invalid value: \"http://foo.example.com\": a lowercase"));
    check("a..b", Some("Invalid value: \"a..b\": a lowercase"));
    let label = "a".repeat(64);
    check(&format!("{label}.com"), Some(&format!("Invalid value: \"{label}\": must be no more than 63 ")));
    check(&format!("{}.b", "a.".repeat(130)), Some("Invalid value: "));
}

#[test]
fn the_size_of_annotations_counts_names_and_values() {
    let check = |size: usize, refused: bool| {
        let mut object = good();
        object.annotations.insert("a.b".to_owned(), vec![0; size - 3]);
        let expected = format!(
            "failed to validate annotations: total size of annotations is {size}, which exceeds the max size of 32768"
        );
        assert_eq!(decoded(&object).err(), refused.then_some(expected));
    };
    check(32_768, false);
    check(32_769, true);
}

/// Upstream's TestEncodeDecode, and what a newer server may add.
#[test]
fn fields_that_are_not_known_are_skipped() {
    let mut bytes = good().encode_to_vec();
    assert!(EncryptedObject::decode(&bytes).is_ok());
    // Field 15, a varint.
    bytes.extend([0x78, 0x01]);
    assert!(EncryptedObject::decode(&bytes).is_ok());
    bytes.push(0x0a);
    let error = EncryptedObject::decode(&bytes).map(|_| ()).expect_err("is cut");
    assert_eq!(error.to_string(), "proto: cannot parse invalid wire-format data");
    assert!(EncryptedObject::decode(b"").is_err());
}

/// Messages as Go's protobuf reads them; the derived decoder refuses some.
#[test]
fn messages_are_read_as_go_reads_them() {
    let good = good().encode_to_vec();
    let read = |more: &[u8]| {
        let message = [&good, more].concat();
        EncryptedObject::decode(&message)
            .map(|object| object.data.to_vec())
            .map_err(|error| error.to_string())
    };
    let wire = || Err("proto: cannot parse invalid wire-format data".to_owned());
    let same = || Ok(vec![1]);
    // A known field of another type, fixed fields, a group with a group in it.
    assert_eq!(read(&[0x08, 0x05]), same());
    assert_eq!(read(&[0x0d, 1, 2, 3, 4]), same());
    assert_eq!(read(&[0x09, 1, 2, 3, 4, 5, 6, 7, 8]), same());
    assert_eq!(read(&[0x0b, 0x13, 0x08, 0x01, 0x14, 0x0c]), same());
    // The last one counts; a number is cut to its low half.
    assert_eq!(read(&[0x0a, 0x01, 0x07]), Ok(vec![7]));
    assert_eq!(read(&[0x28, 0x80, 0x80, 0x80, 0x80, 0x10]), same());
    assert_eq!(read(&[0x28, 0x02]), Err("unknown encryptedDEKSourceType: 2".to_owned()));
    // An annotation without a name; twice the same; a field in it that is not known.
    assert_eq!(
        read(&[0x22, 0x00]),
        Err("failed to validate annotations: annotations: Required value".to_owned())
    );
    assert_eq!(read(&[0x22, 0x07, 0x0a, 0x03, b'a', b'.', b'b', 0x18, 0x01]), same());
    for bad in [
        &[0x00][..],
        &[0x0a],
        &[0x0a, 0x02, 0x01],
        &[0x0e, 0x00],
        &[0x0c],
        &[0x0b, 0x14],
        &[0x0b],
        &[0x0d, 1, 2, 3],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        &[0x80, 0x80, 0x80, 0x80, 0x10, 0x00],
    ] {
        assert_eq!(read(bad), wire(), "{bad:x?}");
    }
    assert_eq!(read(&[0x0b; 100]), wire());
    for bad in [&[0x12, 0x01, 0xff][..], &[0x22, 0x03, 0x0a, 0x01, 0xff]] {
        assert_eq!(read(bad), Err("string field contains invalid UTF-8".to_owned()), "{bad:x?}");
    }
}

#[test]
fn messages_with_keys_in_them_do_not_show_them() {
    let request = wire::v2::EncryptRequest { plaintext: b"hunter2".to_vec(), uid: "u".to_owned() };
    let answer = wire::v2::DecryptResponse { plaintext: b"hunter2".to_vec() };
    let text = format!("{request:?} {answer:?}");
    assert!(!text.contains("hunter2") && !text.contains("104") && text.contains("[REDACTED]"), "{text}");
}
