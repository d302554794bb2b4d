//! Pruning, defaulting, and what a write may change.

use crate::crd::testing::{json, schema, texts, tree};
use crate::crd::{defaults, prune, resource};

#[test]
fn unknown_fields_are_pruned_and_named() {
    let check = |rules: &str, object: &str, expected: &str, pruned: &[&str]| {
        let mut object = tree(object);
        assert_eq!(prune::prune(&mut object, &schema(rules)), pruned, "{rules}");
        assert_eq!(json(&object), expected, "{rules}");
    };
    let rules = r#"{"type":"object","properties":{
        "spec":{"type":"object","properties":{"a":{"type":"string"},
            "list":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}}}},
            "map":{"type":"object","additionalProperties":{"type":"object","properties":{"c":{"type":"string"}}}}}}}}"#;
    check(
        rules,
        r#"{"apiVersion":"v1","kind":"K","metadata":{"name":"n","x":1},"spec":{"a":"1","z":1,"list":[{"b":"1","y":1}],"map":{"k":{"c":"1","w":1}}},"top":1}"#,
        r#"{"apiVersion":"v1","kind":"K","metadata":{"name":"n","x":1},"spec":{"a":"1","list":[{"b":"1"}],"map":{"k":{"c":"1"}}}}"#,
        &["spec.list[0].y", "spec.map.k.w", "spec.z", "top"],
    );
    // Unknown fields stay where they are preserved, but not below the known ones.
    check(
        r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}}}}}"#,
        r#"{"spec":{"a":"1","b":1},"other":{"b":1}}"#,
        r#"{"other":{"b":1},"spec":{"a":"1"}}"#,
        &["spec.b"],
    );
    // `additionalProperties: true` names the fields, but not what is in them.
    check(
        r#"{"type":"object","properties":{"spec":{"type":"object","additionalProperties":true}}}"#,
        r#"{"spec":{"a":1,"b":{"c":1}}}"#,
        r#"{"spec":{"a":1,"b":{}}}"#,
        &["spec.b.c"],
    );
    // An embedded resource keeps what every object has.
    check(
        r#"{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"data":{"type":"string"}}}}}"#,
        r#"{"spec":{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"data":"1","other":1}}"#,
        r#"{"spec":{"apiVersion":"v1","data":"1","kind":"K","metadata":{"name":"n"}}}"#,
        &["spec.other"],
    );
    check(r#"{"type":"object"}"#, r#"{"kind":"K","spec":{}}"#, r#"{"kind":"K"}"#, &["spec"]);
}

#[test]
fn defaults_and_nulls() {
    let check = |property: &str, object: &str, expected: &str| {
        let rules = format!(r#"{{"type":"object","properties":{{"x":{property}}}}}"#);
        let mut object = tree(object);
        defaults::apply(&mut object, &schema(&rules));
        assert_eq!(json(&object), expected, "{property}");
    };
    let text = r#"{"type":"string","default":"d"}"#;
    check(text, "{}", r#"{"x":"d"}"#);
    check(text, r#"{"x":null}"#, r#"{"x":"d"}"#);
    check(text, r#"{"x":""}"#, r#"{"x":""}"#);
    check(r#"{"type":"string","nullable":true,"default":"d"}"#, r#"{"x":null}"#, r#"{"x":null}"#);
    check(r#"{"type":"string"}"#, r#"{"x":null}"#, "{}");
    check(r#"{"type":"string","nullable":true}"#, r#"{"x":null}"#, r#"{"x":null}"#);
    let nested = r#"{"type":"object","default":{},"properties":{"y":{"type":"integer","default":7}}}"#;
    check(nested, "{}", r#"{"x":{"y":7}}"#);
    check(nested, r#"{"x":{"y":1}}"#, r#"{"x":{"y":1}}"#);
    // Without a default of its own an absent object stays absent.
    check(r#"{"type":"object","properties":{"y":{"type":"integer","default":7}}}"#, "{}", "{}");
    let items = r#"{"type":"array","items":{"type":"object","default":{"z":1},"properties":{"y":{"type":"integer","default":7}}}}"#;
    check(items, r#"{"x":[{},null]}"#, r#"{"x":[{"y":7},{"y":7,"z":1}]}"#);
    let map = r#"{"type":"object","additionalProperties":{"type":"string","default":"d"}}"#;
    check(map, r#"{"x":{"a":null,"b":"1"}}"#, r#"{"x":{"a":"d","b":"1"}}"#);
    check(
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        r#"{"x":{"a":null}}"#,
        r#"{"x":{}}"#,
    );
    check(r#"{"type":"array","items":{"type":"string"}}"#, r#"{"x":[null]}"#, r#"{"x":[null]}"#);
}

#[test]
fn generations_and_status() {
    let check = |new: &str, old: &str, has_status: bool, expected: &str| {
        let mut new = tree(new);
        resource::prepare_update(&mut new, &tree(old), has_status);
        assert_eq!(json(&new), expected);
    };
    let old = r#"{"metadata":{"generation":3},"spec":{"a":1},"status":{"s":1}}"#;
    check(
        r#"{"metadata":{"generation":9,"labels":{"a":"b"}},"spec":{"a":1},"status":{"s":2}}"#,
        old,
        true,
        r#"{"metadata":{"generation":3,"labels":{"a":"b"}},"spec":{"a":1},"status":{"s":1}}"#,
    );
    check(
        r#"{"metadata":{},"spec":{"a":2}}"#,
        old,
        true,
        r#"{"metadata":{"generation":4},"spec":{"a":2},"status":{"s":1}}"#,
    );
    check(
        r#"{"metadata":{},"spec":{"a":1},"status":{"s":2}}"#,
        old,
        false,
        r#"{"metadata":{"generation":4},"spec":{"a":1},"status":{"s":2}}"#,
    );
    check(
        r#"{"metadata":{},"extra":1,"status":{"s":2}}"#,
        r#"{"metadata":{"generation":1},"extra":1}"#,
        true,
        r#"{"extra":1,"metadata":{"generation":1}}"#,
    );

    let mut created = tree(r#"{"metadata":{"generation":7},"spec":{},"status":{"s":1}}"#);
    resource::prepare_create(&mut created, true);
    assert_eq!(json(&created), r#"{"metadata":{"generation":1},"spec":{}}"#);

    let mut status =
        tree(r#"{"metadata":{"labels":{"a":"b"},"managedFields":[1]},"spec":{"a":2},"status":{"s":2}}"#);
    resource::prepare_status_update(&mut status, &tree(old));
    assert_eq!(
        json(&status),
        r#"{"metadata":{"generation":3,"managedFields":[1]},"spec":{"a":1},"status":{"s":2}}"#
    );
}

#[test]
fn versions_and_types() {
    let mut object = tree(r#"{"apiVersion":"a.example/v1","kind":"K"}"#);
    resource::convert(&mut object, "a.example", "v1beta1");
    assert_eq!(json(&object), r#"{"apiVersion":"a.example/v1beta1","kind":"K"}"#);
    assert_eq!(
        texts(&resource::check_type(&object, "a.example/v1", "L")),
        [
            "kind: Invalid value: \"K\": must be L",
            "apiVersion: Invalid value: \"a.example/v1beta1\": must be a.example/v1"
        ]
    );
}
