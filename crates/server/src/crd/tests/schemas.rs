//! What may be a schema.

use coffer_types::validation::field::Path;

use crate::crd::schema::Schema;
use crate::crd::testing::{schema, texts, tree};
use crate::crd::{schema_rules, structural};

fn structure(rules: &str, expected: &[&str]) {
    assert_eq!(texts(&structural::validate(&schema(rules), &Path::new("s"))), expected, "{rules}");
}

fn field(rules: &str, expected: &[&str]) {
    structure(&format!(r#"{{"type":"object","properties":{{"x":{rules}}}}}"#), expected);
}

#[test]
fn types_must_be_there() {
    structure(r#"{"type":"object"}"#, &[]);
    structure("{}", &["s.type: Required value: must not be empty at the root"]);
    structure(r#"{"type":"string"}"#, &["s.type: Invalid value: \"string\": must be object at the root"]);
    field("{}", &["s.properties[x].type: Required value: must not be empty for specified object fields"]);
    field(r#"{"type":"array"}"#, &["s.properties[x].items: Required value: must be specified"]);
    field(
        r#"{"type":"array","items":{}}"#,
        &["s.properties[x].items.type: Required value: must not be empty for specified array items"],
    );
    field(
        r#"{"type":"object","additionalProperties":{}}"#,
        &[
            "s.properties[x].additionalProperties.type: Required value: must not be empty for specified object fields",
        ],
    );
    field(r#"{"x-kubernetes-preserve-unknown-fields":true}"#, &[]);
    structure(
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    );
}

#[test]
fn int_or_string_may_say_so_in_two_ways() {
    let either = r#""anyOf":[{"type":"integer"},{"type":"string"}]"#;
    field(&format!(r#"{{"x-kubernetes-int-or-string":true,{either}}}"#), &[]);
    field(&format!(r#"{{"x-kubernetes-int-or-string":true,"allOf":[{{{either}}},{{"pattern":"a"}}]}}"#), &[]);
    field(r#"{"x-kubernetes-int-or-string":true}"#, &[]);
    field(
        r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}"#,
        &[
            "s.properties[x].anyOf[0].type: Forbidden: must be empty to be structural",
            "s.properties[x].anyOf[1].type: Forbidden: must be empty to be structural",
        ],
    );
    field(
        r#"{"x-kubernetes-int-or-string":true,"x-kubernetes-preserve-unknown-fields":true}"#,
        &[
            "s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true",
        ],
    );
}

#[test]
fn nested_schemas_hold_rules_only() {
    field(
        r#"{"type":"string","allOf":[{"type":"string","description":"d","title":"t","default":"a","nullable":true}]}"#,
        &[
            "s.properties[x].allOf[0].default: Forbidden: must be undefined to be structural",
            "s.properties[x].allOf[0].description: Forbidden: must be empty to be structural",
            "s.properties[x].allOf[0].nullable: Forbidden: must be false to be structural",
            "s.properties[x].allOf[0].title: Forbidden: must be empty to be structural",
            "s.properties[x].allOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    structure(
        r#"{"type":"object","oneOf":[{"properties":{"a":{"minimum":1}}}]}"#,
        &["s.properties[a]: Required value: because it is defined in s.oneOf[0].properties[a]"],
    );
    // Upstream looks at the root's rules only.
    field(r#"{"type":"object","oneOf":[{"properties":{"a":{"minimum":1}}}]}"#, &[]);
    field(
        r#"{"type":"string","not":{"pattern":"("}}"#,
        &[
            "s.properties[x].not.pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: `(`",
        ],
    );
    structure(r#"{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}"#, &[]);
}

#[test]
fn metadata_may_only_restrict_names() {
    let metadata = |rules: &str, expected: &[&str]| {
        structure(&format!(r#"{{"type":"object","properties":{{"metadata":{rules}}}}}"#), expected);
    };
    let refused = "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified";
    metadata(r#"{"type":"object"}"#, &[]);
    metadata(r#"{"type":"object","properties":{"name":{"type":"string","pattern":"a"}}}"#, &[]);
    metadata(r#"{"type":"object","properties":{"labels":{"type":"object"}}}"#, &[refused]);
    metadata(r#"{"type":"object","required":["name"]}"#, &[refused]);
    structure(
        r#"{"type":"object","properties":{"kind":{"type":"integer"}}}"#,
        &["s.properties[kind].type: Invalid value: \"integer\": must be string"],
    );
}

#[test]
fn embedded_resources() {
    let embedded = |rules: &str, expected: &[&str]| {
        field(&format!(r#"{{"x-kubernetes-embedded-resource":true{rules}}}"#), expected)
    };
    embedded(r#","type":"object","x-kubernetes-preserve-unknown-fields":true"#, &[]);
    embedded(
        "",
        &[
            "s.properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
            "s.properties[x].type: Required value: must be object if x-kubernetes-embedded-resource is true",
        ],
    );
}

#[test]
fn keywords_and_list_types() {
    let check = |rules: &str, expected: &[&str]| {
        let schema = schema(&format!(r#"{{"type":"object","properties":{{"x":{rules}}}}}"#));
        assert_eq!(texts(&schema_rules::check(&schema, &Path::new("s"))), expected, "{rules}");
    };
    check(r#"{"type":"string"}"#, &[]);
    check(
        r#"{"type":"text"}"#,
        &[
            "s.properties[x].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ],
    );
    check(r##"{"type":"string","$ref":"#/a"}"##, &["s.properties[x].$ref: Forbidden: $ref is not supported"]);
    check(
        r#"{"type":"array","items":{"type":"string"},"uniqueItems":true}"#,
        &[
            "s.properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    check(
        r#"{"type":"array","items":[{"type":"string"}]}"#,
        &["s.properties[x].items: Forbidden: items must be a schema object and not an array"],
    );
    check(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#,
        &[
            "s.properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    check(
        r#"{"type":"object","x-kubernetes-preserve-unknown-fields":false}"#,
        &[
            "s.properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ],
    );
    check(
        r#"{"type":"string","x-kubernetes-map-type":"atomic"}"#,
        &[
            "s.properties[x].type: Invalid value: \"string\": must be object if x-kubernetes-map-type is specified",
        ],
    );
    check(
        r#"{"type":"object","x-kubernetes-map-type":"loose"}"#,
        &[
            "s.properties[x].x-kubernetes-map-type: Unsupported value: \"loose\": supported values: \"atomic\", \"granular\"",
        ],
    );
    let list = |rules: &str, items: &str| format!(r#"{{"type":"array","items":{items}{rules}}}"#);
    check(
        &list(r#","x-kubernetes-list-type":"bag""#, r#"{"type":"string"}"#),
        &[
            "s.properties[x].x-kubernetes-list-type: Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
        ],
    );
    check(
        &list(r#","x-kubernetes-list-map-keys":["a"]"#, r#"{"type":"object"}"#),
        &[
            "s.properties[x].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ],
    );
    check(
        &list(
            r#","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]"#,
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        &[
            "s.properties[x].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    check(
        &list(
            r#","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]"#,
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#,
        ),
        &[],
    );
    check(
        r#"{"type":"string","x-kubernetes-validations":[{"rule":" "}]}"#,
        &["s.properties[x].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    );
    check(
        r#"{"type":"string","x-kubernetes-validations":[{"rule":"a\nb"}]}"#,
        &[
            "s.properties[x].x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks",
        ],
    );
}

#[test]
fn defaults_must_be_what_a_write_would_leave() {
    let check = |rules: &str, expected: &[&str]| {
        let tree = tree(&format!(r#"{{"type":"object","properties":{{"x":{rules}}}}}"#));
        let (mut errors, mut budget) = (Vec::new(), 10_000_000);
        schema_rules::check_defaults(&tree, &Schema::parse(&tree), &Path::new("s"), &mut budget, &mut errors);
        assert_eq!(texts(&errors), expected, "{rules}");
    };
    check(r#"{"type":"string","default":"a"}"#, &[]);
    check(
        r#"{"type":"integer","default":"a"}"#,
        &["s.properties[x].default: Invalid value: \"string\":  in body must be of type integer: \"string\""],
    );
    check(
        r#"{"type":"object","default":{"b":1}}"#,
        &["s.properties[x].default: Invalid value: {\"b\":1}: must not have unknown fields"],
    );
    check(
        r#"{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 1"},{"rule":"self > 0"}]}"#,
        &["s.properties[x].default: Invalid value: 1: failed rule: self > 1"],
    );
    check(
        r#"{"type":"integer","default":1,"x-kubernetes-validations":
            [{"rule":"oldSelf.hasValue()","optionalOldSelf":true}]}"#,
        &["s.properties[x].default: Invalid value: 1: failed rule: oldSelf.hasValue()"],
    );
}
