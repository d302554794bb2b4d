//! Field management, patches and JSON errors held to the originals (`peers/go/rules`).

use coffer_types::codec::json;
use coffer_types::fields::{OneVersion, PathElement, Schema, Set, Write, compare, ignore_timestamps, update};
use coffer_types::meta::Meta;
use coffer_types::patch::{json as json_patch, merge, strategic};
use coffer_types::validation::go_json;
use coffer_types::{Value, print, schema};

fn cases(text: &str) -> Vec<Value> {
    let golden = parse(text);
    assert!(golden.get("modules").and_then(Value::as_array).is_some_and(|modules| modules.len() > 1));
    golden.get("cases").and_then(Value::as_array).expect("a list").to_vec()
}

fn parse(text: &str) -> Value {
    json::decode_untyped(text.as_bytes()).expect("golden files are JSON").object
}

fn shown(value: &Value) -> String {
    let mut text = Vec::new();
    json::encode_untyped(value, &mut text);
    String::from_utf8(text).expect("JSON is text")
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).unwrap_or_default()
}

/// What a write of a kind cannot change.
fn reset(kind: &str, subresource: &str) -> Set {
    match (kind, subresource) {
        ("Pod", "") => Set::of_fields(&[&["status"]]),
        ("Pod", "status") => {
            Set::of_fields(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        _ => Set::default(),
    }
}

#[test]
fn every_update_gives_the_entries_of_the_original() {
    let cases = cases(include_str!("../golden/rules/fields.json"));
    assert!(cases.len() >= 25);
    for case in &cases {
        let kind = case.str_at(&["kind"]);
        let message = schema::lookup("", "v1", kind).expect("built in").message;
        let mut live = Value::object();
        for (number, step) in list(case, "steps").iter().enumerate() {
            let object = step.get("object").expect("every step has one");
            let mut new = json::retype(message, object).expect("well-formed").object;
            let subresource = step.str_at(&["subresource"]);
            let versions = OneVersion {
                api_version: "v1",
                schema: Schema::Message(message),
                reset: reset(kind, subresource),
            };
            let write = Write {
                versions: &versions,
                api_version: "v1",
                subresource,
                manager: step.str_at(&["manager"]),
                time: &format!("2001-01-01T00:00:{number:02}Z"),
            };
            update(&live, &mut new, &write);
            new.set_meta_str("uid", "stored");
            let entries = Value::Array(
                new.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default().to_vec(),
            );
            let expected = Value::Array(list(step, "managedFields").to_vec());
            assert_eq!(shown(&entries), shown(&expected), "{}, step {number}", case.str_at(&["name"]));
            live = new;
        }
    }
}

#[test]
fn times_alone_are_no_change() {
    let entry =
        |time: &str| format!(r#"[{{"manager":"m","operation":"Update","time":"{time}","fieldsV1":{{}}}}]"#);
    let object = |time: &str, version: &str, data: &str| {
        let fields = entry(time);
        parse(&format!(
            r#"{{"metadata":{{"resourceVersion":"{version}","managedFields":{fields}}},"data":"{data}"}}"#
        ))
    };
    let old = object("2001-01-01T00:00:00Z", "1", "x");
    let mut new = object("2001-01-01T00:00:05Z", "2", "x");
    ignore_timestamps(&mut new, &old);
    assert_eq!(shown(&new), shown(&object("2001-01-01T00:00:00Z", "2", "x")));
    let mut changed = object("2001-01-01T00:00:05Z", "1", "y");
    ignore_timestamps(&mut changed, &old);
    assert_eq!(shown(&changed), shown(&object("2001-01-01T00:00:05Z", "1", "y")));
}

#[test]
fn custom_resources_are_compared_by_their_schema() {
    let schema = parse(
        r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
            "list":{"type":"array","items":{"type":"object"}},
            "set":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
            "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
                "items":{"type":"object","properties":{"n":{"type":"string"},"v":{"type":"string"}}}},
            "atomic":{"type":"object","x-kubernetes-map-type":"atomic"}}}}}"#,
    );
    let check = |old: &str, new: &str, added: &str, modified: &str, removed: &str| {
        let found = compare(Schema::CustomResource(&schema), &parse(old), &parse(new)).expect("comparable");
        let sets = [&found.added, &found.modified, &found.removed].map(|set| shown(&set.to_value()));
        let expected = [added, modified, removed].map(|text| shown(&parse(text)));
        assert_eq!(sets, expected, "{old} to {new}");
    };
    check(r#"{"spec":{"list":[1]}}"#, r#"{"spec":{"list":[2]}}"#, "{}", r#"{"f:spec":{"f:list":{}}}"#, "{}");
    check(
        r#"{"spec":{"set":["a","b"]}}"#,
        r#"{"spec":{"set":["b","c"]}}"#,
        r#"{"f:spec":{"f:set":{"v:\"c\"":{}}}}"#,
        "{}",
        r#"{"f:spec":{"f:set":{"v:\"a\"":{}}}}"#,
    );
    check(
        r#"{"spec":{"map":[{"n":"a","v":"1"}]}}"#,
        r#"{"spec":{"map":[{"n":"a","v":"2"}]}}"#,
        "{}",
        r#"{"f:spec":{"f:map":{"k:{\"n\":\"a\"}":{"f:v":{}}}}}"#,
        "{}",
    );
    check(
        r#"{"spec":{"atomic":{"a":1}}}"#,
        r#"{"spec":{"atomic":{"b":1}}}"#,
        "{}",
        r#"{"f:spec":{"f:atomic":{}}}"#,
        "{}",
    );
    check(
        "{}",
        r#"{"spec":{"free":{"a":1}}}"#,
        r#"{"f:spec":{".":{},"f:free":{".":{},"f:a":{}}}}"#,
        "{}",
        "{}",
    );
    check(
        r#"{"metadata":{"finalizers":["a/b"]}}"#,
        r#"{"metadata":{"finalizers":["a/b","c/d"]}}"#,
        r#"{"f:metadata":{"f:finalizers":{"v:\"c/d\"":{}}}}"#,
        "{}",
        "{}",
    );
}

#[test]
fn an_owner_finds_its_keys() {
    let fields = parse(r#"{"f:data":{".":{},"f:a":{},"f:b":{}},"f:type":{}}"#);
    let set = Set::from_value(&fields).expect("well-formed");
    assert_eq!(set.fields_below(&["data"]), ["a", "b"]);
    assert!(set.contains(&[PathElement::field("type")]));
}

#[test]
fn strategic_merge_patches_give_what_the_original_gives() {
    for case in cases(include_str!("../golden/rules/strategic.json")) {
        let kind = if case.str_at(&["kind"]) == "Pod" { "Pod" } else { "Secret" };
        let message = schema::lookup("", "v1", kind).expect("built in").message;
        let part = |field: &str| case.get(field).cloned().unwrap_or_default();
        let patch = shown(&part("patch"));
        match (strategic::apply(part("document"), part("patch"), message), case.str_at(&["error"])) {
            (Ok(result), "") => assert_eq!(shown(&result), shown(&part("result")), "{patch}"),
            (Err(error), expected) if !expected.is_empty() => {
                let error = error.to_string();
                // The original's text goes on with values.
                let class = error.split(':').next().unwrap_or_default();
                let expected = expected.split(['\n', ':']).next().unwrap_or_default();
                assert!(
                    class.starts_with(expected) || expected.starts_with(class),
                    "{patch}: {error} instead of {expected}"
                );
            }
            (result, expected) => panic!("{patch}: {result:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn json_patches_give_what_the_original_gives() {
    for case in cases(include_str!("../golden/rules/jsonpatch.json")) {
        let part = |field: &str| case.get(field).cloned().unwrap_or_default();
        let patch = shown(&part("patch"));
        let mut document = part("document");
        match (json_patch::apply(&mut document, &part("patch")), case.str_at(&["error"])) {
            (Ok(()), "") => assert_eq!(shown(&document), shown(&part("result")), "{patch}"),
            (Err(_), "failed") => {}
            (result, expected) => panic!("{patch}: {result:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn merge_patches_give_what_the_original_gives() {
    for case in cases(include_str!("../golden/rules/merge.json")) {
        let part = |field: &str| case.get(field).cloned().unwrap_or_default();
        let result = merge::apply(part("document"), part("patch"));
        assert_eq!(shown(&result), shown(&part("result")), "{}", shown(&part("patch")));
    }
}

#[test]
fn json_errors_are_worded_as_by_the_original() {
    for case in cases(include_str!("../golden/rules/jsonerror.json")) {
        let text = case.str_at(&["text"]);
        let error = go_json::check_object(text.as_bytes()).err().unwrap_or_default();
        assert_eq!(error, case.str_at(&["error"]), "{text:?}");
    }
}

#[test]
fn durations_print_as_by_the_original() {
    for case in cases(include_str!("../golden/rules/durations.json")) {
        let seconds = case.get("seconds").and_then(Value::as_i64).expect("a number");
        assert_eq!(print::human_duration(seconds), case.str_at(&["text"]), "{seconds}");
    }
}
