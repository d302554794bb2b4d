//! Rules of expressions: what a definition may have, and what they say against objects.

use coffer_types::Value;
use coffer_types::validation::field::Path;

use crate::crd::definition::{prepare_create, validate, versions};
use crate::crd::rule;
use crate::crd::rule_checks::{self, Stored};
use crate::crd::schema::Schema;
use crate::crd::testing::{texts, tree, yaml};
use crate::crd::validations::{Validations, blocked};

/// What is wrong with the rules of a schema, whose stored form has the expressions of `before`.
fn refused(schema: &str, before: Option<&str>) -> Vec<String> {
    let mut expressions = rule::Stored::default();
    if let Some(before) = before {
        expressions.add(&Schema::parse(&tree(before)));
    }
    let unchanged = before == Some(schema);
    let tree = tree(schema);
    let stored = Stored { expressions: &expressions, unchanged };
    texts(&rule_checks::check(&tree, &Schema::parse(&tree), &Path::new("s"), &[], stored))
}

fn property(schema: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"x":{schema}}}}}"#)
}

#[track_caller]
fn define(schema: &str, expected: &[&str]) {
    assert_eq!(refused(&property(schema), None), expected, "{schema}");
}

/// Errors and warnings of an object under a schema.
fn said(schema: &str, new: &str, old: Option<&str>) -> (Vec<String>, Vec<String>) {
    let schema_tree = tree(schema);
    let schema = Schema::parse(&schema_tree);
    let rules = Validations::compile(&schema_tree, &schema, true).expect("there are rules");
    let (new, old) = (tree(new), old.map(tree));
    let said = rules.validate(&new, old.as_ref(), &schema);
    (texts(&said.errors), said.warnings)
}

#[track_caller]
fn create(schema: &str, object: &str, expected: &[&str]) {
    assert_eq!(said(schema, object, None), (strings(expected), Vec::new()), "{schema} {object}");
}

#[track_caller]
fn update(schema: &str, old: &str, new: &str, errors: &[&str], warnings: &[&str]) {
    assert_eq!(said(schema, new, Some(old)), (strings(errors), strings(warnings)), "{schema} {old} {new}");
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

const RULE: &str = "s.properties[x].x-kubernetes-validations[0]";

#[test]
fn expressions_must_compile_to_the_right_type() {
    define(r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}"#, &[]);
    define(
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self + 1"}]}"#,
        &[&format!(
            r#"{RULE}.rule: Invalid value: {{"Rule":"self + 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}}: cel expression must evaluate to a bool"#
        )],
    );
    define(
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self.a"}]}"#,
        &[&format!(
            "{RULE}.rule: Invalid value: {{\"Rule\":\"self.a\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}}: compilation failed: ERROR: <input>:1:5: type 'int' does not support field selection\n | self.a\n | ....^"
        )],
    );
    define(
        r#"{"type":"integer","x-kubernetes-validations":
            [{"rule":"self > 0","messageExpression":"self","reason":"FieldValueForbidden"}]}"#,
        &[&format!(
            r#"{RULE}.messageExpression: Invalid value: {{"Rule":"self \u003e 0","Message":"","MessageExpression":"self","Reason":"FieldValueForbidden","FieldPath":"","OptionalOldSelf":null}}: messageExpression must evaluate to a string"#
        )],
    );
}

#[test]
fn expressions_may_not_be_too_dear() {
    let dear = r#"{"type":"array","items":{"type":"string"},
        "x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}]}"#;
    let found = refused(&property(dear), None);
    let (cost, rest) = found.split_first().expect("too dear");
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                strings are declared)";
    assert_eq!(
        *cost,
        format!(
            "{RULE}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {hint}"
        )
    );
    assert_eq!(
        rest,
        [
            format!(
                "{RULE}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire \
                 OpenAPIv3 schema"
            ),
            format!(
                "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
                 budget by factor of more than 100x {hint}"
            ),
        ]
    );
    let small = dear.replace("\"items\":{", "\"maxItems\":10,\"items\":{\"maxLength\":10,");
    define(&small, &[]);
}

#[test]
fn an_expression_costs_as_often_as_its_value_can_be_there() {
    let schema = |limit: &str| {
        format!(
            r#"{{"type":"array"{limit},"items":{{"type":"string","maxLength":1000,
            "x-kubernetes-validations":[{{"rule":"self.matches('^[a-z]+$')"}}]}}}}"#
        )
    };
    let found = refused(&property(&schema("")), None);
    assert!(found.iter().any(|text| text.contains("estimated rule cost exceeds budget")), "{found:?}");
    define(&schema(r#","maxItems":100"#), &[]);
}

#[test]
fn a_schema_that_has_not_changed_is_not_too_dear() {
    let dear = property(
        r#"{"type":"array","items":{"type":"array","items":{"type":"boolean"}},
        "x-kubernetes-validations":[{"rule":"self.all(x, x.all(y, y))"}]}"#,
    );
    let single = |text: &String| text.contains("estimated rule cost exceeds");
    assert!(refused(&dear, None).iter().any(single));
    assert!(!refused(&dear, Some(&dear)).iter().any(single));
}

#[test]
fn what_is_new_in_this_version_is_for_stored_expressions() {
    let schema = property(
        r#"{"type":"array","maxItems":5,"items":{"type":"integer"},
        "x-kubernetes-validations":[{"rule":"self.includes(1)"}]}"#,
    );
    let found = refused(&schema, None);
    assert!(matches!(&found[..], [text] if text.contains("undeclared reference to 'includes'")), "{found:?}");
    assert_eq!(refused(&schema, Some(&schema)), Vec::<String>::new());
}

#[test]
fn what_was_must_be_known_again() {
    let list = |list_type: &str| {
        format!(
            r#"{{"type":"array","maxItems":5{list_type},"items":{{"type":"object","required":["k"],
            "properties":{{"k":{{"type":"string","maxLength":5}},"v":{{"type":"integer",
              "x-kubernetes-validations":[{{"rule":"self >= oldSelf"}}]}}}}}}}}"#
        )
    };
    let at = "s.properties[x].items.properties[v].x-kubernetes-validations[0].rule";
    define(
        &list(""),
        &[&format!(
            r#"{at}: Invalid value: "self >= oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[x]"#
        )],
    );
    define(&list(r#","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]"#), &[]);
    define(
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0","optionalOldSelf":true}]}"#,
        &[&format!(
            "{RULE}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        )],
    );
    define(
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf.orValue(0)","optionalOldSelf":true}]}"#,
        &[],
    );
}

#[test]
fn rules_must_see_the_values() {
    define(
        r#"{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true},
            "x-kubernetes-validations":[{"rule":"true"}]}"#,
        &[
            "s.properties[x].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations",
        ],
    );
}

const SPEC: &str = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
    "min":{"type":"integer"},"max":{"type":"integer"},"name":{"type":"string"}},
    "x-kubernetes-validations":[RULES]}}}"#;

fn spec(rules: &str) -> String {
    SPEC.replace("RULES", rules)
}

#[test]
fn rules_that_do_not_hold_are_told() {
    let object = r#"{"spec":{"min":3,"max":2,"name":"a"}}"#;
    create(&spec(r#"{"rule":"self.min <= self.max"}"#), r#"{"spec":{"min":1,"max":2}}"#, &[]);
    create(
        &spec(r#"{"rule":" self.min <= self.max "}"#),
        object,
        &["spec: Invalid value: failed rule: self.min <= self.max"],
    );
    create(
        &spec(r#"{"rule":"self.min <= self.max","message":" min is too large ","fieldPath":".min"}"#),
        object,
        &["spec.min: Invalid value: min is too large"],
    );
    for (reason, expected) in [
        ("FieldValueForbidden", "spec: Forbidden: no"),
        ("FieldValueRequired", "spec: Required value: no"),
        ("FieldValueDuplicate", "spec: Duplicate value"),
        ("FieldValueInvalid", "spec: Invalid value: no"),
    ] {
        let rule = format!(r#"{{"rule":"self.min <= self.max","message":"no","reason":"{reason}"}}"#);
        create(&spec(&rule), object, &[expected]);
    }
    let scalar = property(r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self > 5"}]}"#);
    create(&scalar, r#"{"x":3}"#, &["x: Invalid value: 3: failed rule: self > 5"]);
}

#[test]
fn messages_can_be_expressions() {
    let object = r#"{"spec":{"min":3,"max":2,"name":"a"}}"#;
    let message = |expression: &str| {
        spec(&format!(
            r#"{{"rule":"self.min <= self.max","messageExpression":"{expression}","message":"plain"}}"#
        ))
    };
    create(&message("' at most ' + string(self.max) + ' '"), object, &["spec: Invalid value: at most 2"]);
    for unusable in ["''", "'a\\\\nb'", "string(1 / (self.max - 2))"] {
        create(&message(unusable), object, &["spec: Invalid value: plain"]);
    }
    let long = |length: usize| {
        let name = "n".repeat(length);
        (message("self.name"), format!(r#"{{"spec":{{"min":3,"max":2,"name":"{name}"}}}}"#))
    };
    let (schema, object) = long(5 * 1024);
    create(&schema, &object, &[&format!("spec: Invalid value: {}", "n".repeat(5 * 1024))]);
    let (schema, object) = long(5 * 1024 + 1);
    create(&schema, &object, &["spec: Invalid value: plain"]);
}

#[test]
fn evaluations_can_fail() {
    create(
        &spec(r#"{"rule":"self.min <= self.max"}"#),
        r#"{"spec":{"max":2}}"#,
        &["spec: Invalid value: \"object\": no such key: min evaluating rule: self.min <= self.max"],
    );
    let either = property(
        r#"{"x-kubernetes-int-or-string":true,"x-kubernetes-validations":[{"rule":"self < 5","message":"small"}]}"#,
    );
    create(&either, r#"{"x":3}"#, &[]);
    create(
        &either,
        r#"{"x":"a"}"#,
        &[
            "x: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: small",
        ],
    );
}

#[test]
fn transitions_are_held_against_what_was() {
    let schema = property(
        r#"{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf","message":"must not shrink"}]}"#,
    );
    create(&schema, r#"{"x":3}"#, &[]);
    update(&schema, r#"{}"#, r#"{"x":3}"#, &[], &[]);
    update(&schema, r#"{"x":null}"#, r#"{"x":3}"#, &[], &[]);
    update(&schema, r#"{"x":3}"#, r#"{"x":4}"#, &[], &[]);
    update(&schema, r#"{"x":4}"#, r#"{"x":3}"#, &["x: Invalid value: 3: must not shrink"], &[]);
    let optional = property(
        r#"{"type":"integer","x-kubernetes-validations":
            [{"rule":"oldSelf.hasValue() ? self >= oldSelf.value() : self == 1","message":"from one up","optionalOldSelf":true}]}"#,
    );
    create(&optional, r#"{"x":1}"#, &[]);
    create(&optional, r#"{"x":2}"#, &["x: Invalid value: 2: from one up"]);
    update(&optional, r#"{"x":1}"#, r#"{"x":2}"#, &[], &[]);
    update(&optional, r#"{"x":2}"#, r#"{"x":1}"#, &["x: Invalid value: 1: from one up"], &[]);
}

#[test]
fn items_of_a_map_are_known_by_their_keys() {
    let schema = property(
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","n"],
        "items":{"type":"object","properties":{"k":{"type":"string"},"n":{"type":"integer"},"v":{"type":"integer"}},
        "x-kubernetes-validations":[{"rule":"self.v >= oldSelf.v","fieldPath":".v"}]}}"#,
    );
    let old = r#"{"x":[{"k":"a","n":1,"v":1},{"k":"a","n":2,"v":5}]}"#;
    update(
        &schema,
        old,
        r#"{"x":[{"k":"a","n":2,"v":6},{"k":"a","n":1,"v":2},{"k":"b","n":1,"v":0}]}"#,
        &[],
        &[],
    );
    update(
        &schema,
        old,
        r#"{"x":[{"k":"a","n":2,"v":4},{"k":"a","n":1,"v":2}]}"#,
        &["x[0].v: Invalid value: failed rule: self.v >= oldSelf.v"],
        &[],
    );
}

#[test]
fn what_has_not_changed_is_only_warned_of() {
    let schema = r#"{"type":"object","properties":{
        "a":{"type":"object","properties":{"n":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.n > 5"}]},
        "l":{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 5"}]}},
        "b":{"type":"integer"}}}"#;
    let bad = r#"{"a":{"n":1},"l":[1],"b":1}"#;
    let (of_a, of_l) =
        ("a: Invalid value: failed rule: self.n > 5", "l[0]: Invalid value: 1: failed rule: self > 5");
    create(schema, bad, &[of_a, of_l]);
    update(schema, bad, r#"{"a":{"n":1},"l":[1],"b":2}"#, &[], &[of_a, of_l]);
    update(schema, bad, r#"{"a":{"n":2},"l":[1,7],"b":2}"#, &[of_a, of_l], &[]);
}

#[test]
fn every_object_has_a_name_and_a_type() {
    let schema = r#"{"type":"object","properties":{"pod":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true,
        "x-kubernetes-validations":[{"rule":"self.kind == 'Pod' && self.metadata.name == 'p'"}]}},
        "x-kubernetes-validations":[{"rule":"self.metadata.name.startsWith('x-') && self.apiVersion == 'v1'"}]}"#;
    let object = |name: &str, kind: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"X","metadata":{{"name":"{name}"}},
            "pod":{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"p"}}}}}}"#
        )
    };
    create(schema, &object("x-a", "Pod"), &[]);
    create(
        schema,
        &object("a", "Pod"),
        &[
            "<nil>: Invalid value: failed rule: self.metadata.name.startsWith('x-') && self.apiVersion == 'v1'",
        ],
    );
    create(
        schema,
        &object("x-a", "Job"),
        &["pod: Invalid value: failed rule: self.kind == 'Pod' && self.metadata.name == 'p'"],
    );
    let labels =
        property(r#"{"type":"object","x-kubernetes-validations":[{"rule":"has(self.metadata.labels)"}]}"#);
    assert!(refused(&labels, None)[0].contains("compilation failed"));
}

#[test]
fn values_and_properties_of_any_name_are_seen() {
    let schema = r#"{"type":"object","properties":{"a.b-c/d__e":{"type":"integer"},"namespace":{"type":"integer"},
        "$id":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'bad'"}]},
        "m":{"type":"object","additionalProperties":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}},
        "at":{"type":"string","format":"date-time"},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
        "x-kubernetes-validations":[
          {"rule":"!has(self.a__dot__b__dash__c__slash__d__underscores__e) || self.a__dot__b__dash__c__slash__d__underscores__e == self.__namespace__"},
          {"rule":"!has(self.at) || self.at < timestamp('2030-01-01T00:00:00Z')","fieldPath":".at","message":"too late"}]}"#;
    create(
        schema,
        r#"{"a.b-c/d__e":1,"namespace":1,"$id":"a","m":{"x":1},"at":"2029-01-01T00:00:00Z"}"#,
        &[],
    );
    create(schema, r#"{"$id":"bad"}"#, &["$id: Invalid value: \"bad\": failed rule: self != 'bad'"]);
    create(schema, r#"{"m":{"x":0}}"#, &["m[x]: Invalid value: 0: failed rule: self > 0"]);
    create(schema, r#"{"at":"2031-01-01T00:00:00Z"}"#, &["at: Invalid value: too late"]);
}

/// A number for each of `count` items, so that a rule over pairs of them costs the square.
fn numbers(count: usize) -> String {
    let items: Vec<_> = (0..count).map(|number| number.to_string()).collect();
    format!(r#"{{"x":[{}]}}"#, items.join(","))
}

#[test]
fn costs_end_a_validation() {
    let list = |rules: &str| {
        property(&format!(
            r#"{{"type":"array","items":{{"type":"integer"}},"x-kubernetes-validations":[{rules}]}}"#
        ))
    };
    let pairs = r#"{"rule":"self.all(a, self.all(b, a + b >= 0))"}"#;
    create(&list(pairs), &numbers(50), &[]);
    create(
        &list(&format!(r#"{pairs},{{"rule":"false"}}"#)),
        &numbers(1000),
        &[
            "x: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.all(a, self.all(b, a + b >= 0))",
        ],
    );
    let many = vec![pairs; 40].join(",");
    create(
        &list(&format!(r#"{many},{{"rule":"false"}}"#)),
        &numbers(300),
        &[
            "x: Invalid value: \"array\": validation failed due to running out of cost budget, no further validation rules will be run",
        ],
    );
    let message = r#"{"rule":"false","messageExpression":"self.all(a, self.all(b, a + b >= 0)) ? 'a' : 'b'"},{"rule":"false"}"#;
    create(
        &list(message),
        &numbers(1000),
        &[
            "x: Invalid value: \"array\": no further validation rules will be run due to call cost exceeds limit for messageExpression: \"self.all(a, self.all(b, a + b >= 0)) ? 'a' : 'b'\"",
        ],
    );
    let growing = r#"{"rule":"['a'].map(x, [x,x,x,x,x,x,x,x]).all(l, self.all(n, self.map(m, self.map(k, l + l)).size() > 0))"}"#;
    let (errors, _) = said(&list(growing), &numbers(1000), None);
    assert!(
        matches!(&errors[..], [error] if error.contains("no further validation rules will be run")),
        "{errors:?}"
    );
}

#[test]
fn an_expression_that_takes_much_memory_ends_a_validation() {
    // A character costs a tenth however many bytes it has: more than 12 MiB are within the budget.
    let text = "😀".repeat(1000);
    let schema = property(&format!(
        r#"{{"type":"array","items":{{"type":"integer"}},"x-kubernetes-validations":[
            {{"rule":"self.all(i, (string(i) + '{text}').size() > 0)","message":"no"}},{{"rule":"false"}}]}}"#
    ));
    let (errors, _) = said(&schema, &numbers(5000), None);
    assert!(
        matches!(&errors[..], [error] if error.contains("too much memory") && error.contains("no further validation rules")),
        "{errors:?}"
    );
}

#[test]
fn objects_that_fail_their_schema_are_not_shown_to_rules() {
    use coffer_types::validation::field::FieldError;
    let at = Path::new("spec");
    assert!(blocked(&vec![FieldError::invalid(&at, "a", "b")]).is_none());
    let blocking = blocked(&vec![FieldError::required(&at, "")]).expect("blocks");
    assert_eq!(
        blocking.to_string(),
        "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
    );
}

#[test]
fn a_schema_without_rules_has_nothing_to_run() {
    let tree: Value = tree(r#"{"type":"object","properties":{"x":{"type":"string"}}}"#);
    assert!(Validations::compile(&tree, &Schema::parse(&tree), true).is_none());
}

#[test]
fn definitions_of_the_external_secrets_operator_are_taken_and_their_rules_hold() {
    let sources = [
        include_str!("../../../../../deploy/crds/external-secrets.io_secretstores.yaml"),
        include_str!("../../../../../deploy/crds/external-secrets.io_clustersecretstores.yaml"),
    ];
    for source in sources {
        let mut definition = yaml(source);
        prepare_create(&mut definition);
        assert_eq!(texts(&validate(&definition)), Vec::<String>::new());
        let schema = versions(&definition)[0].at(&["schema", "openAPIV3Schema"]).expect("a schema");
        let bao = |given: &str| {
            let parsed = Schema::parse(schema);
            let rules = Validations::compile(schema, &parsed, true).expect("rules");
            let object = tree(&format!(r#"{{"spec":{{"provider":{{"openBao":{given}}}}}}}"#));
            texts(&rules.validate(&object, None, &parsed).errors)
        };
        let none: Vec<String> = Vec::new();
        assert_eq!(bao(r#"{"auth":{"appRole":{"roleId":"a"}},"caBundle":"YQ=="}"#), none);
        assert_eq!(
            bao(r#"{"auth":{"appRole":{}}}"#),
            [
                "spec.provider.openBao.auth.appRole: Invalid value: exactly one of the fields in [roleId roleRef] must be set"
            ]
        );
        assert_eq!(
            bao(r#"{"auth":{},"caBundle":"YQ==","caProvider":{}}"#),
            [
                "spec.provider.openBao: Invalid value: at most one of the fields in [caBundle caProvider] may be set",
                "spec.provider.openBao.auth: Invalid value: exactly one of the fields in [appRole tokenSecretRef userPass] must be set",
            ]
        );
    }
}
