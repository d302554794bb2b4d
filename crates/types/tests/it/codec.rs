//! Golden objects: protobuf and JSON both ways, byte for byte.

use std::sync::LazyLock;

use coffer_types::codec::{definitions, json, proto};
use coffer_types::meta::Meta;
use coffer_types::schema::{self, Kind};

pub(crate) struct Golden {
    pub(crate) kind: &'static Kind,
    pub(crate) envelope: Vec<u8>,
    pub(crate) json: &'static str,
}

pub(crate) fn goldens() -> &'static [Golden] {
    static GOLDENS: LazyLock<Vec<Golden>> = LazyLock::new(|| {
        let lines = include_str!("../golden/objects.txt").lines().filter(|line| !line.starts_with('#'));
        lines.map(golden).collect()
    });
    assert!(GOLDENS.len() > 100, "the golden file holds many objects");
    &GOLDENS
}

fn golden(line: &'static str) -> Golden {
    let mut columns = line.splitn(5, '\t');
    let mut next = || columns.next().expect("five columns");
    let (group, version, kind, hex, json) = (next(), next(), next(), next(), next());
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    Golden {
        kind: schema::lookup(group, version, kind).expect("a built-in kind"),
        envelope: (0..hex.len()).step_by(2).map(digit).collect(),
        json,
    }
}

pub(crate) fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[track_caller]
pub(crate) fn same(actual: &str, expected: &str, what: &str) {
    if actual != expected {
        let at = actual.bytes().zip(expected.bytes()).take_while(|(left, right)| left == right).count();
        let around = |text: &str| {
            let bytes = &text.as_bytes()[at.saturating_sub(120).min(text.len())..(at + 80).min(text.len())];
            String::from_utf8_lossy(bytes).into_owned()
        };
        panic!("{what}: at byte {at}\n  got {}\n want {}", around(actual), around(expected));
    }
}

#[test]
fn protobuf_to_json_is_go_s() {
    for golden in goldens() {
        let object = proto::decode_enveloped(&golden.envelope, None).expect(golden.kind.kind);
        same(&text(|out| json::encode(golden.kind.message, &object, out)), golden.json, golden.kind.kind);
    }
}

#[test]
fn json_to_protobuf_is_go_s() {
    for golden in goldens() {
        let decoded = json::decode(golden.kind.message, golden.json.as_bytes()).expect(golden.kind.kind);
        assert_eq!(decoded.strict_errors, [""; 0], "{}", golden.kind.kind);
        let encoded = proto::encode_enveloped(golden.kind, &decoded.object);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        same(&hex(&encoded), &hex(&golden.envelope), golden.kind.kind);
    }
}

#[test]
fn both_decoders_agree() {
    for golden in goldens() {
        let from_json = json::decode(golden.kind.message, golden.json.as_bytes()).expect("valid").object;
        let from_proto = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        assert!(from_json == from_proto, "{}", golden.kind.kind);
        let again = json::retype(golden.kind.message, &from_json).expect("valid").object;
        assert!(again == from_json, "{}", golden.kind.kind);
        assert_eq!(from_json.kind(), golden.kind.kind);
    }
}

#[test]
fn every_truncation_is_an_error() {
    for golden in goldens().iter().filter(|golden| golden.envelope.len() < 3_000) {
        let raw = proto::open(&golden.envelope).expect("valid").raw;
        // The envelope ends with two empty fields of two bytes each, before them comes the message.
        let end = golden.envelope.len() - 4;
        let start = end - raw.len();
        for length in 0..end {
            let result = proto::decode_enveloped(&golden.envelope[..length], None);
            // Right before the message's tag the envelope of an empty object ends, as upstream has it.
            let before_message = start.checked_sub(length).is_some_and(|missing| (2..=4).contains(&missing));
            assert!(result.is_err() || before_message, "{} cut at {length}", golden.kind.kind);
        }
    }
}

#[test]
fn json_cases_read_as_in_go() {
    let lines = include_str!("../golden/json.txt").lines().filter(|line| !line.starts_with('#'));
    let mut failures = Vec::new();
    for line in lines {
        let [kind, input, problem, expected]: [String; 4] = serde_json::from_str(line).expect("four strings");
        let input: Vec<u8> =
            input.chars().map(|char| u8::try_from(u32::from(char)).expect("Latin-1")).collect();
        let table = schema::lookup("", "v1", &kind).expect("a built-in kind");
        let result = json::peek_type(&input).and_then(|_| json::decode(table.message, &input));
        let (actual_problem, actual) = match result {
            Err(error) => (error.0, String::new()),
            Ok(decoded) => {
                let problem = match decoded.strict_errors.join(", ") {
                    errors if errors.is_empty() => errors,
                    errors => format!("strict decoding error: {errors}"),
                };
                (problem, text(|out| json::encode(table.message, &decoded.object, out)))
            }
        };
        if actual_problem != problem || actual != expected {
            let input = String::from_utf8_lossy(&input).into_owned();
            failures
                .push(format!("{input}\n  got  {actual_problem} | {actual}\n  want {problem} | {expected}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn pretty_json_is_indented_json() {
    for golden in goldens().iter().take(30) {
        let object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        let pretty = text(|out| json::encode_pretty(golden.kind.message, &object, out));
        let again = json::decode(golden.kind.message, pretty.as_bytes()).expect("valid").object;
        assert!(again == object);
        assert!(!pretty.ends_with('\n'));
    }
}

#[test]
fn envelope_errors_read_as_upstream() {
    for (data, error) in [
        (&b""[..], "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x0a", "unexpected EOF"),
        (b"k8s\0\x0a\x05a", "unexpected EOF"),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\x00", "proto: Unknown: illegal tag 0 (wire type 0)"),
        (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
    ] {
        let result = proto::decode_enveloped(data, schema::lookup("", "v1", "Secret"));
        assert_eq!(result.map_err(|error| error.0), Err(error.to_owned()));
    }
}

/// The worked vectors of the reference: kubectl's own body, and a stored Secret.
#[test]
fn known_bytes_of_secrets() {
    for (json, hex) in [
        (
            r#"{"metadata":{"name":"s1"},"data":{"a":"Yg=="}}"#,
            "6b3873000a0c0a0276311206536563726574121e0a120a0273311200\
             1a0022002a00320038004200120"
                .to_owned()
                + "60a01611201621a001a002200",
        ),
        (
            r#"{"metadata":{"name":"a","namespace":"b","uid":"11111111-2222-3333-4444-555555555555",
                "creationTimestamp":"2023-11-14T22:13:20Z"},"data":{"k":"dg=="},"type":"Opaque"}"#,
            "6b3873000a0c0a027631120653656372657412500a3e0a016112001a016222002a2431313131313131312d323232322d\
             333333332d343434342d3535353535353535353535353200380042080880e2cfaa06100012060a016b1201761a064f70\
             617175651a002200"
                .to_owned(),
        ),
    ] {
        let kind = schema::lookup("", "v1", "Secret").expect("built in");
        let object = json::decode(kind.message, json.as_bytes()).expect("valid").object;
        let encoded = proto::encode_enveloped(kind, &object);
        assert_eq!(encoded.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), hex);
    }
}

/// A null in `data` is a key without a value, which reads back as empty bytes.
#[test]
fn null_in_data_is_a_key_without_value() {
    let kind = schema::lookup("", "v1", "Secret").expect("built in");
    let object = json::decode(kind.message, br#"{"data":{"a":null,"b":""}}"#).expect("valid").object;
    assert_eq!(
        text(|out| json::encode(kind.message, &object, out)),
        r#"{"metadata":{},"data":{"a":null,"b":""}}"#
    );
    let encoded = proto::encode_enveloped(kind, &object);
    let entries = [&b"\x12\x03\x0a\x01a"[..], b"\x12\x05\x0a\x01b\x12\x00"].concat();
    assert!(encoded.windows(entries.len()).any(|window| window == entries));
    let back = proto::decode_enveloped(&encoded, None).expect("valid");
    let back = text(|out| json::encode(kind.message, &back, out));
    assert_eq!(back, r#"{"kind":"Secret","apiVersion":"v1","metadata":{},"data":{"a":"","b":""}}"#);
}

/// One form of one value: keys in order, of doubled ones the last, in JSON and through protobuf.
#[test]
fn json_inside_an_object_has_one_form() {
    let secret = schema::lookup("", "v1", "Secret").expect("built in");
    let definition =
        schema::lookup("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("built in");
    let fields = |fields: &str| {
        format!(
            r#"{{"metadata":{{"managedFields":[{{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{fields}}}]}}}}"#
        )
    };
    let default = |value: &str| {
        format!(
            r#"{{"spec":{{"versions":[{{"name":"v1","schema":{{"openAPIV3Schema":{{"default":{value}}}}}}}]}}}}"#
        )
    };
    let cases = [
        (
            secret,
            fields(r#"{"f:b":{},"f:a":{"f:y":{}, "f:x":{},"f:x":{".":{}}}}"#),
            r#""fieldsV1":{"f:a":{"f:x":{".":{}},"f:y":{}},"f:b":{}}"#,
        ),
        (secret, fields(r#"{ }"#), r#""fieldsV1":{}"#),
        (
            definition,
            default(r#"{"b": 1, "a": {"z":1,"y":[3, 2],"z":"last"}}"#),
            r#""default":{"a":{"y":[3,2],"z":"last"},"b":1}"#,
        ),
    ];
    for (kind, body, expected) in cases {
        let object = json::decode(kind.message, body.as_bytes()).expect("valid").object;
        let stored = proto::encode_enveloped(kind, &object);
        let back = proto::decode_enveloped(&stored, None).expect("our own");
        for object in [&object, &back] {
            let written = text(|out| json::encode(kind.message, object, out));
            assert!(written.contains(expected), "{body}:\n{written}");
        }
    }
}

#[test]
fn nesting_is_limited() {
    let kind = schema::lookup("apiextensions.k8s.io", "v1", "CustomResourceDefinition").expect("built in");
    let deep = format!("{}1{}", "[".repeat(512), "]".repeat(512));
    assert!(json::decode_untyped(deep.as_bytes()).is_ok());
    for too_deep in [format!("[{deep}]"), "[".repeat(1_000_000), r#"{"a":"#.repeat(513)] {
        assert_eq!(
            json::decode_untyped(too_deep.as_bytes()).map_err(|error| error.0),
            Err("exceeded max depth".to_owned())
        );
    }
    // The definition, its specification, a version, its schema, the outermost schema: 5 of 257 messages, of which
    // 256 are nested.
    for (schemas, fits) in [(252, true), (253, false)] {
        let schema = format!("{}{{}}{}", r#"{"not":"#.repeat(schemas), "}".repeat(schemas));
        let body = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#);
        let object = json::decode(kind.message, body.as_bytes()).expect("JSON may be deeper").object;
        let decoded = proto::decode_enveloped(&proto::encode_enveloped(kind, &object), None);
        let too_deep = "proto: message is nested too deeply or has too many parts";
        assert_eq!(
            decoded.map(drop).map_err(|error| error.0),
            if fits { Ok(()) } else { Err(too_deep.to_owned()) }
        );
    }
    let schema = format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(250), "}}".repeat(250));
    let body = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#);
    let object = json::decode(kind.message, body.as_bytes()).expect("deep, but not too deep").object;
    let encoded = proto::encode_enveloped(kind, &object);
    assert!(proto::decode_enveloped(&encoded, None).is_ok());
    // A message inside itself, deeper than any stack.
    let mut nested = Vec::new();
    for _ in 0..200_000 {
        let mut outer = vec![0x1a];
        let mut length = nested.len();
        while length >= 0x80 {
            outer.push(length as u8 | 0x80);
            length >>= 7;
        }
        outer.push(length as u8);
        if nested.len() > 40_000 {
            break;
        }
        outer.extend(&nested);
        nested = outer;
    }
    let _ = proto::decode(kind.message, &nested);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>, index: proptest::sample::Index) {
            let kind = &schema::kinds()[index.index(schema::kinds().len())];
            let _ = proto::decode(kind.message, &bytes);
            let _ = proto::decode_enveloped(&[&b"k8s\0"[..], &bytes].concat(), Some(kind));
            let _ = json::decode(kind.message, &bytes);
            let _ = json::decode_untyped(&bytes);
        }

        #[test]
        fn damaged_objects_never_panic(index: proptest::sample::Index, at: proptest::sample::Index, byte: u8) {
            let golden = golden_at(index);
            let mut envelope = golden.envelope.clone();
            let at = at.index(envelope.len());
            envelope[at] = byte;
            if let Ok(object) = proto::decode_enveloped(&envelope, None) {
                let kind = schema::lookup("", "v1", "Secret").expect("built in");
                let _ = text(|out| json::encode(kind.message, &object, out));
            }
        }

        #[test]
        fn decoding_undoes_encoding(index: proptest::sample::Index) {
            let golden = golden_at(index);
            let object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
            prop_assert!(proto::encode_enveloped(golden.kind, &object) == golden.envelope);
        }

        #[test]
        fn any_json_text_survives(content: String, number: i64, float in proptest::num::f64::NORMAL) {
            let value = coffer_types::Value::Array(vec![
                content.into(), number.into(), coffer_types::Value::Float(float),
            ]);
            let encoded = text(|out| json::encode_untyped(&value, out));
            let back = json::decode_untyped(encoded.as_bytes()).expect("valid").object;
            let again = text(|out| json::encode_untyped(&back, out));
            prop_assert_eq!(encoded, again);
        }
    }

    fn golden_at(index: proptest::sample::Index) -> &'static Golden {
        index.get(goldens())
    }
}

#[test]
fn definitions_are_stored_as_upstream_stores_them() {
    let lines = include_str!("../golden/definitions.txt").lines().filter(|line| !line.starts_with('#'));
    let table = |version| {
        schema::lookup("apiextensions.k8s.io", version, "CustomResourceDefinition").expect("built in")
    };
    let (v1, v1beta1) = (table("v1"), table("v1beta1"));
    for line in lines {
        let columns: Vec<_> = line.split('\t').collect();
        let [served, stored, again] = columns[..] else { panic!("three columns") };
        let object = json::decode(v1.message, served.as_bytes()).expect("valid").object;
        let converted = definitions::to_stored(&object);
        same(&text(|out| json::encode(v1beta1.message, &converted, out)), stored, "stored");
        let object = json::decode(v1beta1.message, stored.as_bytes()).expect("valid").object;
        let converted = definitions::to_served(&object);
        same(&text(|out| json::encode(v1.message, &converted, out)), again, "served again");
    }
}
