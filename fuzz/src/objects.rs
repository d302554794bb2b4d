//! Objects in each form, and what changes them.

use coffer_types::Value;
use coffer_types::codec::transcode::{METADATA_V1, Part, Source, attributes};
use coffer_types::codec::{identity, json as json_codec, proto, yaml as yaml_codec};
use coffer_types::fields::{self, Apply, OneVersion, PathElement, Schema, Set, Write};
use coffer_types::patch;
use coffer_types::schema::{self, Kind};

/// The first byte chooses the kind.
fn choose(data: &[u8]) -> Option<(&'static Kind, &[u8])> {
    let (first, rest) = data.split_first()?;
    let kinds = schema::kinds();
    Some((&kinds[usize::from(*first) % kinds.len()], rest))
}

/// Two texts with a zero byte between them.
fn two(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let middle = data.iter().position(|byte| *byte == 0)?;
    Some((&data[..middle], &data[middle + 1..]))
}

fn json_of(kind: &'static Kind, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    json_codec::encode(kind.message, object, &mut out);
    out
}

/// The stored protobuf of an object: read, written, and sent as JSON without being decoded.
pub(crate) fn protobuf(data: &[u8]) {
    drop(identity::identity(data));
    let Ok(envelope) = proto::open(data) else { return };
    let (group, version) = coffer_types::meta::split_api_version(&envelope.api_version);
    let Some(kind) = schema::lookup(group, version, &envelope.kind) else { return };
    let source = Source { kind: Some(kind), bytes: data, revision: 7 };
    let mut straight = Vec::new();
    let transcoded = source.to_json(Part::Whole, true, &mut straight);
    for part in [Part::Whole, Part::Metadata(METADATA_V1)] {
        drop(source.to_message(part, &mut Vec::new()));
        drop(source.to_envelope(part, &mut Vec::new()));
        drop(source.to_json(part, false, &mut Vec::new()));
    }
    drop(attributes(Some(kind), data, &[&["metadata", "name"], &["type"]]));
    let Ok(object) = proto::decode_enveloped(data, Some(kind)) else { return };
    let written = proto::encode_enveloped(kind, &object);
    let again = proto::decode_enveloped(&written, Some(kind)).expect("what was written is read");
    assert_eq!(json_of(kind, &object), json_of(kind, &again), "writing keeps the object");
    let mut second = Vec::new();
    let source = Source { kind: Some(kind), bytes: &written, revision: 7 };
    source.to_json(Part::Whole, true, &mut second).expect("what was written is sent");
    if transcoded.is_ok() {
        // Not of the kind: a time beyond the year 9999 is sent as it is stored, and taken from nobody.
        json_codec::decode_untyped(&straight).expect("what is sent is JSON");
    }
}

/// JSON of a built-in kind, and of any other.
pub(crate) fn json(data: &[u8]) {
    drop(json_codec::peek_type(data));
    if let Ok(decoded) = json_codec::decode_untyped(data) {
        let mut written = Vec::new();
        json_codec::encode_untyped(&decoded.object, &mut written);
        let again = json_codec::decode_untyped(&written).expect("what was written is read");
        // By its text: a floating point number that is whole is written as Go does, and so read as an integer.
        let mut second = Vec::new();
        json_codec::encode_untyped(&again.object, &mut second);
        assert!(second == written, "writing keeps the object");
        json_codec::encode_fields(&decoded.object, &mut Vec::new());
    }
    let source = Source { kind: None, bytes: data, revision: 7 };
    drop(source.to_json(Part::Whole, true, &mut Vec::new()));
    drop(source.to_json(Part::Metadata(METADATA_V1), true, &mut Vec::new()));
    drop(attributes(None, data, &[&["metadata", "name"]]));
    let Some((kind, rest)) = choose(data) else { return };
    let Ok(decoded) = json_codec::decode(kind.message, rest) else { return };
    let written = json_of(kind, &decoded.object);
    let again = json_codec::decode(kind.message, &written).expect("what was written is read");
    assert_eq!(written, json_of(kind, &again.object), "writing keeps the object");
    json_codec::encode_pretty(kind.message, &decoded.object, &mut Vec::new());
    let stored = proto::encode_enveloped(kind, &decoded.object);
    proto::decode_enveloped(&stored, Some(kind)).expect("what was stored is read");
}

/// YAML of a built-in kind, and of any other.
pub(crate) fn yaml(data: &[u8]) {
    for document in yaml_codec::documents(data).take(8) {
        let Ok(decoded) = document else { continue };
        let mut written = Vec::new();
        yaml_codec::encode_untyped(&decoded.object, &mut written);
        yaml_codec::decode_untyped(&written).expect("what was written is read");
    }
    let Some((kind, rest)) = choose(data) else { return };
    drop(yaml_codec::decode_coercing(kind.message, rest));
    let Ok(decoded) = yaml_codec::decode(kind.message, rest) else { return };
    let mut written = Vec::new();
    yaml_codec::encode(kind.message, &decoded.object, &mut written);
    yaml_codec::decode(kind.message, &written).expect("what was written is read");
}

fn document_and_patch(data: &[u8]) -> Option<(Value, Value)> {
    let (document, patch) = two(data)?;
    Some((json_codec::decode_untyped(document).ok()?.object, json_codec::decode_untyped(patch).ok()?.object))
}

/// A JSON patch (RFC 6902).
pub(crate) fn json_patch(data: &[u8]) {
    let Some((mut document, patch)) = document_and_patch(data) else { return };
    if patch::json::apply(&mut document, &patch).is_ok() {
        json_codec::encode_untyped(&document, &mut Vec::new());
    }
}

/// A JSON merge patch (RFC 7386).
pub(crate) fn merge_patch(data: &[u8]) {
    let Some((document, patch)) = document_and_patch(data) else { return };
    let once = patch::merge::apply(document, patch.clone());
    let twice = patch::merge::apply(once.clone(), patch);
    assert!(once == twice, "a merge patch changes nothing the second time");
}

/// A strategic merge patch of a kind that the first byte chooses.
pub(crate) fn strategic_patch(data: &[u8]) {
    let Some((kind, rest)) = choose(data) else { return };
    let Some((document, patch)) = document_and_patch(rest) else { return };
    if let Ok(patched) = patch::strategic::apply(document, patch, kind.message) {
        drop(json_codec::retype(kind.message, &patched));
    }
}

/// The sets of `managedFields`.
pub(crate) fn managed_fields(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(Some(element)) = PathElement::deserialize(text)
    {
        let again = PathElement::deserialize(&element.serialize()).expect("what was written is read");
        assert!(again.as_ref() == Some(&element), "writing keeps the element");
        drop(element.to_string());
    }
    let Ok(decoded) = json_codec::decode_untyped(data) else { return };
    let Ok(set) = Set::from_value(&decoded.object) else { return };
    let again = Set::from_value(&set.to_value()).expect("what was written is read");
    assert!(again == set, "writing keeps the set");
    assert!(set.union(&set) == set && set.intersection(&set) == set && set.difference(&set).is_empty());
    let leaves = set.leaves();
    assert!(leaves.len() <= set.len() && leaves.difference(&set).is_empty(), "leaves are of the set");
    set.for_each(&mut |path| assert!(set.contains(path), "every path is in the set"));
}

/// A server-side apply: of a built-in kind that the first byte chooses, and of any custom resource,
/// to an object with managed fields and to nothing.
pub(crate) fn server_side_apply(data: &[u8]) {
    let Some((kind, rest)) = choose(data) else { return };
    let Some((live, applied)) = two(rest) else { return };
    let Ok(applied) = yaml_codec::decode_untyped(applied) else { return };
    let mut applied = applied.object;
    fields::numbers::read_numbers(&mut applied);
    let api_version = kind.api_version();
    if let Some(members) = applied.as_object_mut() {
        members.insert("apiVersion".to_owned(), api_version.as_str().into());
        members.insert("kind".to_owned(), kind.kind.into());
    }
    let typed = json_codec::decode(kind.message, live).ok().map(|decoded| decoded.object);
    let untyped = json_codec::decode_untyped(live).ok().map(|decoded| decoded.object);
    for (schema, live) in [(Schema::Message(kind.message), typed), (Schema::Untyped, untyped)] {
        let versions = OneVersion { api_version: &api_version, schema, reset: Set::default() };
        let live = live.filter(|live| live.as_object().is_some()).map(|mut live| {
            live.set(&["apiVersion"], api_version.as_str());
            live.set(&["kind"], kind.kind);
            live
        });
        for (manager, force) in [("kubectl", false), ("other", true)] {
            let time = "2001-01-01T00:00:00Z";
            let write =
                Write { versions: &versions, api_version: &api_version, subresource: "", manager, time };
            let apply = Apply { write, kind: kind.kind, force };
            let Ok(mut outcome) = apply.run(live.as_ref(), &applied) else { continue };
            let Some(mut object) = outcome.object.take() else { continue };
            outcome.finish(&mut object);
            fields::check(&object).expect("what was written is read");
        }
    }
}
