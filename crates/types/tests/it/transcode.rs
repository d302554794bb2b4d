//! The read path gives what decoding, setting the revision and encoding gives.

use coffer_types::codec::transcode::{
    ListHead, METADATA_V1, Part, Source, attributes, begin_json, begin_protobuf, end_json, end_protobuf,
    item_protobuf, items_json, list_json, list_protobuf, plan_protobuf,
};
use coffer_types::codec::transcode::{watch_json, watch_protobuf};
use coffer_types::codec::{json, proto};
use coffer_types::meta::Meta;
use coffer_types::schema;

use crate::codec::{Golden, goldens, same, text};

const REVISION: i64 = 9_007_199_254_740_993;

/// The golden objects that can be stored: those with an `ObjectMeta`.
fn stored() -> Vec<&'static Golden> {
    let stored: Vec<_> = goldens()
        .iter()
        .filter(|golden| golden.kind.item().is_none() && golden.kind.message.field("metadata").is_some())
        .filter(|golden| golden.kind.kind != "Status")
        .collect();
    assert!(stored.len() > 90);
    stored
}

fn source(golden: &Golden) -> Source<'_> {
    Source { kind: Some(golden.kind), bytes: &golden.envelope, revision: REVISION }
}

#[test]
fn json_equals_decode_and_encode() {
    for golden in stored() {
        let mut object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        object.set_meta_str("resourceVersion", &REVISION.to_string());
        let expected = text(|out| json::encode(golden.kind.message, &object, out));
        let actual = text(|out| source(golden).to_json(Part::Whole, true, out).expect("valid"));
        same(&actual, &expected, golden.kind.kind);
        if !golden.json.contains("\"resourceVersion\"") {
            // Nothing but the revision differs from Go's own text.
            let without = actual.replace(&format!(",\"resourceVersion\":\"{REVISION}\""), "");
            let without =
                without.replace(&format!("\"resourceVersion\":\"{REVISION}\""), "").replace("{,", "{");
            same(&without, golden.json, golden.kind.kind);
        }
        object.remove(&["kind"]);
        object.remove(&["apiVersion"]);
        let expected = text(|out| json::encode(golden.kind.message, &object, out));
        same(&text(|out| source(golden).to_json(Part::Whole, false, out).expect("valid")), &expected, "item");
    }
}

#[test]
fn protobuf_equals_decode_and_encode() {
    for golden in stored() {
        let mut object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        object.set_meta_str("resourceVersion", &REVISION.to_string());
        let mut actual = Vec::new();
        source(golden).to_envelope(Part::Whole, &mut actual).expect("valid");
        assert!(actual == proto::encode_enveloped(golden.kind, &object), "{}", golden.kind.kind);
        let (mut expected, mut actual) = (Vec::new(), Vec::new());
        proto::encode(golden.kind.message, &object, &mut expected);
        source(golden).to_message(Part::Whole, &mut actual).expect("valid");
        assert!(actual == expected, "{}", golden.kind.kind);
    }
}

#[test]
fn metadata_equals_decode_and_encode() {
    let partial = schema::lookup("meta.k8s.io", "v1", "PartialObjectMetadata").expect("built in");
    for golden in stored() {
        let mut object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        object.set_meta_str("resourceVersion", &REVISION.to_string());
        object.as_object_mut().expect("an object").retain(|name, _| name == "metadata");
        object.set_type("meta.k8s.io/v1", "PartialObjectMetadata");
        let actual =
            text(|out| source(golden).to_json(Part::Metadata(METADATA_V1), true, out).expect("valid"));
        same(&actual, &text(|out| json::encode(partial.message, &object, out)), golden.kind.kind);
        let mut actual = Vec::new();
        source(golden).to_envelope(Part::Metadata(METADATA_V1), &mut actual).expect("valid");
        assert!(actual == proto::encode_enveloped(partial, &object), "{}", golden.kind.kind);
    }
}

/// What the server's own parts follow when they need no more.
#[test]
fn metadata_alone_equals_that_of_the_whole_object() {
    for golden in stored() {
        let mut expected = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        expected.set_type(&golden.kind.api_version(), golden.kind.kind);
        let members = expected.as_object_mut().expect("an object");
        members.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        expected.remove(&["metadata", "managedFields"]);
        let actual = proto::decode_metadata(&golden.envelope, golden.kind).expect("valid");
        assert!(actual == expected, "{}: {actual:?} is not {expected:?}", golden.kind.kind);
    }
}

/// A server told to store JSON leaves built-in kinds in JSON behind.
#[test]
fn built_in_kinds_stored_as_json_are_read_too() {
    for golden in stored() {
        let line = format!("{}\n", golden.json);
        let as_json = Source { bytes: line.as_bytes(), ..source(golden) };
        for part in [Part::Whole, Part::Metadata(METADATA_V1)] {
            let actual = text(|out| as_json.to_json(part, true, out).expect("valid"));
            let expected = text(|out| source(golden).to_json(part, true, out).expect("valid"));
            same(&actual, &expected, golden.kind.kind);
            let (mut actual, mut expected) = (Vec::new(), Vec::new());
            as_json.to_envelope(part, &mut actual).expect("valid");
            source(golden).to_envelope(part, &mut expected).expect("valid");
            assert!(actual == expected, "{}", golden.kind.kind);
        }
    }
}

#[test]
fn messages_in_parts_and_unsorted_maps_are_merged() {
    let kind = schema::lookup("", "v1", "Secret").expect("built in");
    // metadata{name a}, data b, data a, metadata{namespace n}, data b again.
    let raw = b"\x0a\x03\x0a\x01a\x12\x06\x0a\x01b\x12\x01x\x12\x06\x0a\x01a\x12\x01y\x0a\x03\x1a\x01n\x12\x06\x0a\x01b\x12\x01z";
    let mut bytes = Vec::new();
    proto::wrap(&mut bytes, "v1", "Secret", |out| out.extend_from_slice(raw));
    let source = Source { kind: Some(kind), bytes: &bytes, revision: 5 };
    let actual = text(|out| source.to_json(Part::Whole, false, out).expect("valid"));
    let expected =
        r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"5"},"data":{"a":"eQ==","b":"eg=="}}"#;
    assert_eq!(actual, expected);
}

#[test]
fn custom_resources_get_their_revision_at_its_place() {
    for (stored, expected) in [
        (
            r#"{"apiVersion":"a/v1","kind":"X","metadata":{"name":"n"},"spec":{}}"#,
            r#"{"name":"n","resourceVersion":"5"}"#,
        ),
        (r#"{"metadata":{}}"#, r#"{"resourceVersion":"5"}"#),
        (r#"{"metadata":{"uid":"u"}}"#, r#"{"resourceVersion":"5","uid":"u"}"#),
        (
            r#"{"metadata":{"labels":{"metadata":"}"},"name":"\"{","uid":"u"}}"#,
            r#"{"labels":{"metadata":"}"},"name":"\"{","resourceVersion":"5","uid":"u"}"#,
        ),
        (r#"{"metadata":{"name":"n","resourceVersion":"1"}}"#, r#"{"name":"n","resourceVersion":"5"}"#),
        (
            r#"{"metadata":{"name":"n","resourceVersion":"1","uid":"u"}}"#,
            r#"{"name":"n","resourceVersion":"5","uid":"u"}"#,
        ),
    ] {
        let with_line = format!("{stored}\n");
        let source = Source { kind: None, bytes: with_line.as_bytes(), revision: 5 };
        let actual = text(|out| source.to_json(Part::Whole, true, out).expect("valid"));
        let mut object = json::decode_untyped(stored.as_bytes()).expect("valid").object;
        object.set_meta_str("resourceVersion", "5");
        assert_eq!(actual, text(|out| json::encode_untyped(&object, out)));
        assert!(actual.contains(expected), "{actual}");
        let metadata = text(|out| source.to_json(Part::Metadata(METADATA_V1), true, out).expect("valid"));
        assert!(
            metadata
                .starts_with(r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"#)
        );
        let mut envelope = Vec::new();
        source.to_envelope(Part::Metadata(METADATA_V1), &mut envelope).expect("valid");
        let again = proto::decode_enveloped(&envelope, None).expect("valid");
        assert_eq!(again.resource_version(), "5");
        assert!(source.to_envelope(Part::Whole, &mut Vec::new()).is_err());
    }
}

#[test]
fn selectors_read_labels_and_fields() {
    let paths: &[&[&str]] = &[
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["type"],
        &["spec", "nodeName"],
        &["spec", "hostNetwork"],
    ];
    for golden in stored() {
        let object = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        let found = attributes(Some(golden.kind), &golden.envelope, paths).expect("valid");
        let labels: Vec<_> = object
            .labels()
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        assert!(found.labels == labels, "{}", golden.kind.kind);
        for (path, field) in paths.iter().zip(&found.fields) {
            let expected = object.at(path).map_or(String::new(), |value| match value {
                coffer_types::Value::Bool(flag) => flag.to_string(),
                value => value.as_str().unwrap_or_default().to_owned(),
            });
            let unset = expected.is_empty() && field == "false";
            assert!(*field == expected || unset, "{} {path:?}", golden.kind.kind);
        }
        let custom = attributes(None, golden.json.as_bytes(), paths).expect("valid");
        assert!(custom.labels == labels);
    }
}

/// Lengths stand before what they measure: lists whose lengths take one byte, two, three and four.
#[test]
fn protobuf_lists_equal_encode() {
    for golden in stored() {
        let Golden { kind, .. } = golden;
        let name = format!("{}List", kind.kind);
        let Some(list) = schema::lookup(kind.group, kind.version, &name) else { continue };
        let head = ListHead {
            api_version: &list.api_version(),
            kind: &name,
            revision: 12,
            continue_token: "",
            remaining: None,
            part: Part::Whole,
            typed_items: false,
        };
        let mut item = proto::decode_enveloped(&golden.envelope, None).expect("valid");
        item.set_meta_str("resourceVersion", &REVISION.to_string());
        let counts: &[usize] = if kind.kind == "Secret" { &[0, 1, 30, 4000] } else { &[1, 2] };
        for &count in counts {
            let mut object = coffer_types::Value::object();
            object.set_type(head.api_version, &name);
            object.set_meta_str("resourceVersion", "12");
            object.set(&["items"], vec![item.clone(); count]);
            let mut encoded = Vec::new();
            list_protobuf(&head, vec![source(golden); count], &mut encoded).expect("valid");
            assert!(encoded == proto::encode_enveloped(list, &object), "{count} {name}");
        }
    }
}

#[test]
fn lists_and_events_are_framed_as_upstream() {
    let golden = stored().into_iter().find(|golden| golden.kind.kind == "Secret").expect("a Secret");
    let head = ListHead {
        api_version: "v1",
        kind: "SecretList",
        revision: 12,
        continue_token: "t<",
        remaining: Some(3),
        part: Part::Whole,
        typed_items: false,
    };
    let list = text(|out| list_json(&head, false, [source(golden), source(golden)], out).expect("valid"));
    let kind = schema::lookup("", "v1", "SecretList").expect("built in");
    let object = json::decode(kind.message, list.as_bytes()).expect("valid").object;
    same(&text(|out| json::encode_line(kind.message, &object, out)), &list, "list");
    let mut encoded = Vec::new();
    list_protobuf(&head, [source(golden), source(golden)], &mut encoded).expect("valid");
    assert!(encoded == proto::encode_enveloped(kind, &object));
    let custom = Source { kind: None, bytes: b"{\"metadata\":{}}\n", revision: 2 };
    let head = ListHead {
        api_version: "a/v1",
        kind: "XList",
        continue_token: "",
        remaining: None,
        typed_items: true,
        ..head
    };
    assert_eq!(
        text(|out| list_json(&head, true, [custom], out).expect("valid")),
        "{\"apiVersion\":\"a/v1\",\"items\":[{\"metadata\":{\"resourceVersion\":\"2\"}}],\"kind\":\"XList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"12\"}}\n"
    );
    assert_eq!(text(|out| watch_json("ADDED", b"{}", out)), "{\"type\":\"ADDED\",\"object\":{}}\n");
    let mut frame = Vec::new();
    watch_protobuf("ADDED", b"k8s\0x", &mut frame);
    assert_eq!(frame, b"\0\0\0\x10\x0a\x05ADDED\x12\x07\x0a\x05k8s\0x");
}

/// What a list is written in when it is too large for one piece.
#[test]
fn a_list_in_pieces_equals_the_whole_list() {
    let items: Vec<_> = stored().into_iter().map(source).collect();
    let custom = Source { kind: None, bytes: b"{\"metadata\":{\"name\":\"c\"}}\n", revision: 2 };
    for (part, items, is_custom) in [
        (Part::Whole, items.clone(), false),
        (Part::Metadata(METADATA_V1), items.clone(), false),
        (Part::Metadata(METADATA_V1), vec![custom; 3], true),
        (Part::Whole, vec![custom; 3], true),
        (Part::Whole, Vec::new(), false),
    ] {
        let head = ListHead {
            api_version: "v1",
            kind: "XList",
            revision: 12,
            continue_token: "t",
            remaining: Some(3),
            part,
            typed_items: is_custom,
        };
        let whole = text(|out| list_json(&head, is_custom, items.clone(), out).expect("valid"));
        for full in [1, 3000, usize::MAX] {
            let mut pieces = Vec::new();
            begin_json(&head, is_custom, &mut pieces);
            let mut next = 0;
            while next < items.len() {
                let mut piece = Vec::new();
                let rest = items[next..].iter().copied();
                let written = items_json(&head, next == 0, rest, full, &mut piece).expect("valid");
                assert!(0 < written && (full != 1 || written == 1), "{written}");
                next += written;
                pieces.extend(piece);
            }
            end_json(&head, is_custom, &mut pieces);
            same(&String::from_utf8(pieces).expect("text"), &whole, "a list");
        }
        if is_custom && part == Part::Whole {
            continue;
        }
        let (mut whole, mut pieces) = (Vec::new(), Vec::new());
        list_protobuf(&head, items.clone(), &mut whole).expect("valid");
        let plans: Vec<_> = items.iter().map(|item| plan_protobuf(item, part).expect("valid")).collect();
        begin_protobuf(&head, plans.iter().map(|planned| planned.length()).sum(), &mut pieces);
        for (planned, item) in plans.iter().zip(&items) {
            item_protobuf(planned, item, part, &mut pieces).expect("valid");
        }
        end_protobuf(&mut pieces);
        assert!(pieces == whole);
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn damaged_stored_bytes_never_panic(index: proptest::sample::Index, at: proptest::sample::Index, byte: u8) {
            let goldens = stored();
            let golden = &goldens[index.index(goldens.len())];
            let mut envelope = golden.envelope.clone();
            let at = at.index(envelope.len());
            envelope[at] = byte;
            let damaged = Source { kind: Some(golden.kind), bytes: &envelope, revision: 1 };
            let mut out = Vec::new();
            let _ = damaged.to_json(Part::Whole, true, &mut out);
            let _ = damaged.to_envelope(Part::Whole, &mut out);
            let _ = damaged.to_json(Part::Metadata(METADATA_V1), true, &mut out);
            let _ = attributes(damaged.kind, damaged.bytes, &[&["metadata", "name"]]);
        }

        #[test]
        fn damaged_json_never_panics(text: String, at: proptest::sample::Index, byte: u8) {
            let mut stored = format!("{{\"metadata\":{{\"name\":{text:?}}}}}").into_bytes();
            let at = at.index(stored.len());
            stored[at] = byte;
            let damaged = Source { kind: None, bytes: &stored, revision: 1 };
            let _ = damaged.to_json(Part::Whole, true, &mut Vec::new());
            let _ = damaged.to_json(Part::Metadata(METADATA_V1), true, &mut Vec::new());
            let _ = attributes(None, &stored, &[]);
        }
    }
}
