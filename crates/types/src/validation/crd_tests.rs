use super::*;
use crate::names;
use crate::validation::testing::{object, texts};

const RULES: MetaRules =
    MetaRules { namespaced: false, name: names::dns_subdomain, qualified_finalizers: false };

/// A good definition, changed.
#[track_caller]
fn check(change: impl FnOnce(&mut Value), expected: &[&str]) {
    let mut definition = definition();
    change(&mut definition);
    assert_eq!(texts(&validate(&definition, RULES)), expected);
}

fn definition() -> Value {
    let mut definition = object(
        r#"{"metadata":{"name":"xs.g.io","resourceVersion":"1"},"spec":{"group":"g.io","scope":"Namespaced",
            "names":{"plural":"xs","kind":"X"},"versions":[{"name":"v1","served":true,"storage":true,
            "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":
            {"a":{"type":"string"}}}}}}}]}}"#,
    );
    default(&mut definition);
    definition
}

/// The good definition with another schema.
#[track_caller]
fn check_schema(schema: &str, expected: &[&str]) {
    let at = "spec.versions[0].schema.openAPIV3Schema";
    let expected: Vec<_> = expected.iter().map(|text| format!("{at}{text}")).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    check(
        |definition| {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).expect("a list");
            let mut version = versions[0].clone();
            version.set(&["schema", "openAPIV3Schema"], object(schema));
            definition.set(&["spec", "versions"], vec![version]);
        },
        &expected,
    );
}

#[test]
fn defaults() {
    let definition = definition();
    for (path, expected) in [
        (&["spec", "names", "singular"][..], "x"),
        (&["spec", "names", "listKind"], "XList"),
        (&["spec", "conversion", "strategy"], "None"),
    ] {
        assert_eq!(definition.str_at(path), expected);
    }
    assert!(definition.at(&["status", "storedVersions"]) == Some(&Value::Array(vec!["v1".into()])));
    check(|_| (), &[]);
}

#[test]
fn names_and_groups() {
    check(
        |definition| definition.set(&["metadata", "name"], "y"),
        &["metadata.name: Invalid value: \"y\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        |definition| {
            definition.set(&["spec", "group"], "g");
            definition.set(&["metadata", "name"], "xs.g");
        },
        &["spec.group: Invalid value: \"g\": should be a domain with at least one dot"],
    );
    check(
        |definition| definition.set(&["spec", "scope"], "x"),
        &["spec.scope: Unsupported value: \"x\": supported values: \"Cluster\", \"Namespaced\""],
    );
    check(
        |definition| definition.set(&["spec", "names", "listKind"], "X"),
        &["spec.names.listKind: Invalid value: \"X\": kind and listKind may not be the same"],
    );
    let label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                 character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                 validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    check(
        |definition| definition.set(&["spec", "names", "kind"], "X_Y"),
        &[&format!(
            "spec.names.kind: Invalid value: \"X_Y\": may have mixed case, but should otherwise match: {label}"
        )],
    );
    check(
        |definition| definition.set(&["spec", "names", "shortNames"], vec![Value::from("1")]),
        &[&format!("spec.names.shortNames[0]: Invalid value: \"1\": {label}")],
    );
    check(
        |definition| {
            definition.set(&["spec", "group"], "a.k8s.io");
            definition.set(&["metadata", "name"], "xs.a.k8s.io");
        },
        &[
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
           annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ],
    );
}

#[test]
fn versions_are_named_once_and_one_is_stored() {
    let version = |name: &str, storage: bool| {
        let mut version = object(r#"{"served":true,"schema":{"openAPIV3Schema":{"type":"object"}}}"#);
        version.set(&["name"], name);
        version.set(&["storage"], storage);
        version
    };
    check(
        |definition| definition.set(&["spec", "versions"], vec![version("v1", true), version("v1", true)]),
        &[
            "spec.versions: Invalid value: must contain unique version names",
            "spec.versions: Invalid value: must have exactly one version marked as storage version",
        ],
    );
    check(
        |definition| {
            let mut bare = version("v2", true);
            bare.remove(&["schema"]);
            definition.set(&["spec", "versions"], vec![bare]);
        },
        &[
            "spec.versions[0].schema.openAPIV3Schema: Required value",
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2",
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage \
             version, and must remain in spec.versions until a storage migration ensures no data remains persisted in \
             v1 and removes v1 from status.storedVersions",
        ],
    );
    check(
        |definition| definition.set(&["spec", "preserveUnknownFields"], true),
        &["spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
           x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"],
    );
}

#[test]
fn columns_and_selectable_fields() {
    let with = |field: &'static str, json: &'static str| {
        move |definition: &mut Value| {
            let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).expect("a list");
            let mut version = versions[0].clone();
            version.set(&[field], object(json));
            definition.set(&["spec", "versions"], vec![version]);
        }
    };
    let at = "spec.versions[0]";
    check(with("additionalPrinterColumns", r#"[{"name":"A","type":"string","jsonPath":".spec.a"}]"#), &[]);
    check(
        with("additionalPrinterColumns", r#"[{"type":"x","format":"y","jsonPath":"z"}]"#),
        &[
            &format!("{at}.additionalPrinterColumns[0].name: Required value"),
            &format!(
                "{at}.additionalPrinterColumns[0].type: Invalid value: \"x\": must be one of \
                 boolean,date,integer,number,string"
            ),
            &format!(
                "{at}.additionalPrinterColumns[0].format: Invalid value: \"y\": must be one of \
                 byte,date,date-time,double,float,int32,int64,password"
            ),
            &format!(
                "{at}.additionalPrinterColumns[0].JSONPath: Invalid value: \"z\": must be a simple json path starting \
                 with ."
            ),
        ],
    );
    check(with("selectableFields", r#"[{"jsonPath":".spec.a"}]"#), &[]);
    check(
        with(
            "selectableFields",
            r#"[{},{"jsonPath":".spec.a"},{"jsonPath":".spec.a"},{"jsonPath":".spec"}]"#,
        ),
        &[
            &format!("{at}.selectableFields[0].jsonPath: Required value"),
            &format!("{at}.selectableFields[2].jsonPath: Duplicate value: \".spec.a\""),
            &format!(
                "{at}.selectableFields[3].jsonPath: Invalid value: \".spec\": must point to a field of type string, \
                 boolean or integer. Enum string fields and strings with formats are allowed."
            ),
        ],
    );
}

#[test]
fn schemas_are_structural() {
    check_schema(r#"{"type":"object"}"#, &[]);
    check_schema("{}", &[".type: Required value: must not be empty at the root"]);
    check_schema(
        r#"{"type":"array","items":{"type":"string"}}"#,
        &[".type: Invalid value: \"array\": must be object at the root"],
    );
    check_schema(
        r#"{"type":"object","properties":{"a":{},"b":{"type":"array"},"c":{"type":"array","items":{}}}}"#,
        &[
            ".properties[a].type: Required value: must not be empty for specified object fields",
            ".properties[b].items: Required value: must be specified",
            ".properties[c].items.type: Required value: must not be empty for specified array items",
        ],
    );
    check_schema(
        r#"{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},
            {"type":"string"}]},"b":{"x-kubernetes-preserve-unknown-fields":true}}}"#,
        &[],
    );
    check_schema(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"type":"object","description":"d",
            "properties":{"a":{"minLength":1},"b":{"minLength":1},"metadata":{}}}],"not":{"nullable":true}}"#,
        &[
            ".allOf[0].description: Forbidden: must be empty to be structural",
            ".allOf[0].properties[metadata]: Forbidden: must not be specified in a nested context",
            ".allOf[0].type: Forbidden: must be empty to be structural",
            ".not.nullable: Forbidden: must be false to be structural",
            ".properties[b]: Required value: because it is defined in \
             spec.versions[0].schema.openAPIV3Schema.allOf[0].properties[b]",
            ".properties[metadata]: Required value: because it is defined in \
             spec.versions[0].schema.openAPIV3Schema.allOf[0].properties[metadata]",
        ],
    );
    check_schema(
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"}}}}}"#,
        &[],
    );
    check_schema(
        r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}"#,
        &[
            ".properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
           is implicitly specified",
        ],
    );
    check_schema(
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        &[".additionalProperties: Forbidden: must not be used at the root"],
    );
}

#[test]
fn keywords_are_supported_and_consistent() {
    let property = |schema: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|text| format!(".properties[p]{text}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check_schema(&format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#), &expected);
    };
    property(r##"{"type":"string","$ref":"#/x"}"##, &[".$ref: Forbidden: $ref is not supported"]);
    property(
        r#"{"type":"x"}"#,
        &[
            ".type: Unsupported value: \"x\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \
           \"object\", \"string\"",
        ],
    );
    property(
        r#"{"type":"array","items":{"type":"string"},"uniqueItems":true}"#,
        &[
            ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    property(
        r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}"#,
        &[".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    property(
        r#"{"type":"string","x-kubernetes-list-type":"x"}"#,
        &[
            ".type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified",
            ".x-kubernetes-list-type: Unsupported value: \"x\": supported values: \"atomic\", \"set\", \"map\"",
        ],
    );
    property(
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object",
            "properties":{"a":{"type":"string"}}}}"#,
        &[],
    );
    property(
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["b"],"items":{"type":"object",
            "properties":{"a":{"type":"string"}}}}"#,
        &[
            ".x-kubernetes-list-map-keys: Invalid value: [\"b\"]: entries must all be names of item properties",
        ],
    );
}

#[test]
fn updates() {
    let old = definition();
    let check = |old: &Value, change: &dyn Fn(&mut Value), expected: &[&str]| {
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(texts(&validate_update(&new, old, RULES)), expected);
    };
    check(&old, &|_| (), &[]);
    check(
        &old,
        &|new| new.set(&["spec", "names", "plural"], "ys"),
        &["spec.names.plural: Invalid value: \"ys\": field is immutable"],
    );
    check(&old, &|new| new.set(&["spec", "scope"], "Cluster"), &[]);
    let mut established = old.clone();
    established
        .set(&["status", "conditions"], vec![Value::from([("type", "Established"), ("status", "True")])]);
    check(
        &established,
        &|new| new.set(&["spec", "scope"], "Cluster"),
        &["spec.scope: Invalid value: \"Cluster\": field is immutable"],
    );
    let mut new = established.clone();
    let mut version = list(&new, &["spec", "versions"])[0].clone();
    version.set(&["name"], "v2");
    new.set(&["spec", "versions"], vec![version]);
    prepare_update(&mut new, &established);
    assert!(new.at(&["status", "storedVersions"]) == Some(&Value::Array(vec!["v1".into(), "v2".into()])));
}
