//! Validation of values.

use crate::crd::list_type;
use crate::crd::testing::{schema, texts, tree};
use crate::crd::validate::{validate, validate_status};

/// Holds `{"x": value}` against a schema whose field `x` is `rules`.
fn check(rules: &str, value: &str, expected: &[&str]) {
    let schema = schema(&format!(r#"{{"type":"object","properties":{{"x":{rules}}}}}"#));
    let found = texts(&validate(&tree(&format!(r#"{{"x":{value}}}"#)), None, &schema));
    assert_eq!(found, expected, "{rules} {value}");
}

#[test]
fn types() {
    let wrong = |of: &str, found: &str| {
        format!("x: Invalid value: \"{found}\": x in body must be of type {of}: \"{found}\"")
    };
    let kinds = [
        ("string", r#""a""#),
        ("integer", "1"),
        ("number", "1.5"),
        ("boolean", "true"),
        ("array", "[]"),
        ("object", "{}"),
    ];
    for (of, _) in kinds {
        let items = if of == "array" { r#","items":{"type":"string"}"# } else { "" };
        for (found, value) in kinds {
            let rules = format!(r#"{{"type":"{of}"{items}}}"#);
            if of == found || (of == "number" && found == "integer") {
                check(&rules, value, &[]);
            } else {
                check(&rules, value, &[&wrong(of, found)]);
            }
        }
    }
    check(r#"{"type":"integer"}"#, "2.0", &[]);
    check(r#"{"type":"string"}"#, "null", &[&wrong("string", "null")]);
    check(r#"{"type":"string","nullable":true}"#, "null", &[]);
    check("{}", r#"{"anything":[1,null]}"#, &[]);
}

#[test]
fn int_or_string() {
    let rules = r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}"#;
    check(rules, "1", &[]);
    check(rules, r#""10%""#, &[]);
    check(
        r#"{"x-kubernetes-int-or-string":true}"#,
        "true",
        &["x: Invalid value: \"boolean\": x in body must be of type integer,string: \"boolean\""],
    );
}

#[test]
fn text() {
    check(
        r#"{"type":"string","minLength":2}"#,
        r#""a""#,
        &["x: Invalid value: \"a\": x in body should be at least 2 chars long"],
    );
    check(r#"{"type":"string","minLength":2}"#, r#""éé""#, &[]);
    check(r#"{"type":"string","maxLength":2}"#, r#""abc""#, &["x: Too long: may not be more than 2 bytes"]);
    check(
        r#"{"type":"string","pattern":"^[a-z]+$"}"#,
        r#""A""#,
        &["x: Invalid value: \"A\": x in body should match '^[a-z]+$'"],
    );
    check(
        r#"{"type":"string","enum":["a","b"]}"#,
        r#""c""#,
        &["x: Unsupported value: \"c\": supported values: \"a\", \"b\""],
    );
    check(r#"{"type":"string","enum":["a","b"]}"#, r#""b""#, &[]);
    check(
        r#"{"type":"string","format":"date-time"}"#,
        r#""soon""#,
        &["x: Invalid value: \"soon\": x in body must be of type date-time: \"soon\""],
    );
    check(r#"{"type":"string","format":"no-such-format"}"#, r#""soon""#, &[]);
}

#[test]
fn numbers() {
    check(
        r#"{"type":"integer","minimum":1}"#,
        "0",
        &["x: Invalid value: 0: x in body should be greater than or equal to 1"],
    );
    check(
        r#"{"type":"integer","minimum":1,"exclusiveMinimum":true}"#,
        "1",
        &["x: Invalid value: 1: x in body should be greater than 1"],
    );
    check(
        r#"{"type":"integer","maximum":8192}"#,
        "8193",
        &["x: Invalid value: 8193: x in body should be less than or equal to 8192"],
    );
    check(
        r#"{"type":"number","maximum":1.5,"exclusiveMaximum":true}"#,
        "1.5",
        &["x: Invalid value: 1.5: x in body should be less than 1.5"],
    );
    check(
        r#"{"type":"integer","multipleOf":3}"#,
        "4",
        &["x: Invalid value: 4: x in body should be a multiple of 3"],
    );
    check(
        r#"{"type":"integer","enum":[1,2]}"#,
        "3",
        &["x: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
    check(r#"{"type":"integer","minimum":1,"maximum":3,"multipleOf":1}"#, "2", &[]);
}

#[test]
fn lists_and_objects() {
    let list = |rules: &str| format!(r#"{{"type":"array","items":{{"type":"string"}}{rules}}}"#);
    check(&list(r#","minItems":1"#), "[]", &["x: Invalid value: 0: x in body should have at least 1 items"]);
    check(&list(r#","maxItems":2"#), r#"["a","b","c"]"#, &["x: Too many: 3: must have at most 2 items"]);
    check(
        &list(""),
        r#"["a",1]"#,
        &["x[1]: Invalid value: \"integer\": x[1] in body must be of type string: \"integer\""],
    );
    check(
        &list(""),
        "[null]",
        &["x[0]: Invalid value: \"null\": x[0] in body must be of type string: \"null\""],
    );
    let object = r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"object","required":["c"]}}}"#;
    check(object, r#"{"a":"1"}"#, &["x.b: Required value"]);
    check(object, r#"{"a":"1","b":{}}"#, &["x.b.c: Required value"]);
    check(
        r#"{"type":"object","minProperties":1}"#,
        "{}",
        &["x: Invalid value: 0: x in body should have at least 1 properties"],
    );
    check(
        r#"{"type":"object","maxProperties":1,"additionalProperties":{"type":"string"}}"#,
        r#"{"a":"1","b":2}"#,
        &[
            "x: Too many: 2: must have at most 1 item",
            "x.b: Invalid value: \"integer\": x.b in body must be of type string: \"integer\"",
        ],
    );
}

#[test]
fn composed() {
    let required = |name: &str| format!(r#"{{"required":["{name}"]}}"#);
    let (a, b) = (required("a"), required("b"));
    let one_of = format!(r#"{{"type":"object","oneOf":[{a},{b}]}}"#);
    check(&one_of, r#"{"a":1}"#, &[]);
    check(
        &one_of,
        "{}",
        &[
            "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found none valid",
            "x.a: Required value",
        ],
    );
    check(
        &one_of,
        r#"{"a":1,"b":1}"#,
        &[
            "<nil>: Invalid value: \"\": \"x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    let any_of = format!(r#"{{"type":"object","anyOf":[{a},{b}]}}"#);
    check(&any_of, r#"{"b":1}"#, &[]);
    check(
        &any_of,
        "{}",
        &[
            "<nil>: Invalid value: \"\": \"x\" must validate at least one schema (anyOf)",
            "x.a: Required value",
        ],
    );
    let all_of = format!(r#"{{"type":"object","allOf":[{a},{b}]}}"#);
    check(&all_of, r#"{"a":1,"b":1}"#, &[]);
    check(
        &all_of,
        r#"{"a":1}"#,
        &["x.b: Required value", "<nil>: Invalid value: \"\": \"x\" must validate all the schemas (allOf)"],
    );
    check(
        &format!(r#"{{"type":"object","not":{a}}}"#),
        r#"{"a":1}"#,
        &["<nil>: Invalid value: \"\": \"x\" must not validate the schema (not)"],
    );
}

#[test]
fn metadata_is_checked_for_its_name_only() {
    let schema = schema(
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}}}}"#,
    );
    let object = tree(r#"{"metadata":{"name":"abcd","labels":{"a":"b"}}}"#);
    assert_eq!(
        texts(&validate(&object, None, &schema)),
        ["metadata.name: Too long: may not be more than 3 bytes"]
    );
}

#[test]
fn a_status_is_named_from_the_status_on() {
    let schema =
        schema(r#"{"type":"object","required":["phase"],"properties":{"count":{"type":"integer"}}}"#);
    assert_eq!(
        texts(&validate_status(&tree(r#"{"count":"1"}"#), None, &schema)),
        [
            "status.phase: Required value",
            "status.count: Invalid value: \"string\": count in body must be of type integer: \"string\""
        ]
    );
}

#[test]
fn sets_and_maps() {
    let check = |rules: &str, value: &str, expected: &[&str]| {
        let schema = schema(&format!(r#"{{"type":"object","properties":{{"x":{rules}}}}}"#));
        assert_eq!(texts(&list_type::validate(&tree(&format!(r#"{{"x":{value}}}"#)), &schema)), expected);
    };
    let set = r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}"#;
    check(set, r#"["a","b"]"#, &[]);
    check(set, r#"["a","b","a"]"#, &["x[2]: Duplicate value: \"a\""]);
    let map = r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"string"}}}}"#;
    check(map, r#"[{"name":"a","value":"1"},{"name":"b","value":"1"}]"#, &[]);
    check(
        map,
        r#"[{"name":"a","value":"1"},{"name":"a","value":"2"}]"#,
        &["x[1]: Duplicate value: {\"name\":\"a\"}"],
    );
    check(r#"{"type":"array","items":{"type":"string"}}"#, r#"["a","a"]"#, &[]);
}

/// Rules that upstream's TestRatchetingFunctionality tries: what was invalid and is unchanged is forgiven.
#[test]
fn what_was_invalid_may_stay_as_it_is() {
    let schema = crate::crd::schema::Schema::parse(&crate::crd::testing::yaml(
        r#"
type: object
required: [needed]
properties:
  needed: {type: string}
  text: {type: string, maxLength: 3}
  count: {type: integer, minimum: 5}
  choice: {type: string, enum: [a, b]}
  nested: {type: object, required: [x], maxProperties: 1, properties: {x: {type: integer}, w: {type: integer}}}
  atomic: {type: array, maxItems: 1, items: {type: string, maxLength: 1}}
  keyed:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], properties: {name: {type: string}, value: {type: string, maxLength: 1}}}
  map: {type: object, additionalProperties: {type: string, maxLength: 1}}
  one: {oneOf: [{required: [a]}, {required: [b]}], type: object, properties: {a: {type: string}, b: {type: string}}}
"#,
    ));
    let check = |old: &str, new: &str, expected: &[&str]| {
        let [old, new] = [old, new].map(crate::crd::testing::yaml);
        assert_eq!(texts(&validate(&new, Some(&old), &schema)), expected, "{new:?}");
    };
    check("{text: abcd}", "{text: abcd}", &[]);
    check("{text: abcd}", "{text: abcd, needed: x, count: 9}", &[]);
    check(
        "{text: abcd, needed: x}",
        "{text: abcde, needed: x}",
        &["text: Too long: may not be more than 3 bytes"],
    );
    check("{text: abcd}", "{text: abcd, count: 9}", &["needed: Required value"]);
    check("{count: 1, choice: c}", "{count: 1, choice: c, needed: x}", &[]);
    check(
        "{needed: x, count: 1}",
        "{needed: x, count: 2}",
        &["count: Invalid value: 2: count in body should be greater than or equal to 5"],
    );
    check("{needed: x, nested: {w: 1}}", "{needed: z, nested: {w: 1}}", &[]);
    check("{needed: x, nested: {w: 1}}", "{needed: x, nested: {w: 2}}", &["nested.x: Required value"]);
    // Items of a list are known again by their keys alone.
    check("{needed: x, atomic: [ab, cd]}", "{needed: z, atomic: [ab, cd]}", &[]);
    check(
        "{needed: x, atomic: [ab]}",
        "{needed: x, atomic: [ab, c]}",
        &[
            "atomic[0]: Too long: may not be more than 1 byte",
            "atomic: Too many: 2: must have at most 1 item",
        ],
    );
    check(
        "{needed: x, keyed: [{name: a, value: ab}, {name: b, value: c}]}",
        "{needed: x, keyed: [{name: b, value: c}, {name: a, value: ab}]}",
        &[],
    );
    check(
        "{needed: x, keyed: [{name: a, value: ab}]}",
        "{needed: x, keyed: [{name: a, value: abc}]}",
        &["keyed[0].value: Too long: may not be more than 1 byte"],
    );
    check("{needed: x, map: {a: ab}}", "{needed: x, map: {a: ab, b: c}}", &[]);
    check(
        "{needed: x, map: {a: ab}}",
        "{needed: x, map: {a: ab, b: cd}}",
        &["map.b: Too long: may not be more than 1 byte"],
    );
    check("{needed: x, one: {}}", "{needed: z, one: {}}", &[]);
}
