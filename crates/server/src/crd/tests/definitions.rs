//! Definitions: defaults, rules, names.

use coffer_types::Value;

use crate::crd::definition::{
    apply_defaults, prepare_create, prepare_update, validate, validate_name, validate_update,
};
use crate::crd::names::{accept, establish, is_established};
use crate::crd::testing::{json, texts, tree};

/// A good definition, shaped like those of an operator: two versions, one of them served.
fn good() -> Value {
    let mut definition = tree(
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{"name":"pandas.bears.example"},
        "spec":{"group":"bears.example","scope":"Namespaced",
          "names":{"plural":"pandas","kind":"Panda","shortNames":["pd"],"categories":["bears"]},
          "versions":[
            {"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
             "additionalPrinterColumns":[{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],
             "selectableFields":[{"jsonPath":".spec.name"}],
             "schema":{"openAPIV3Schema":{"type":"object","description":"A panda.","properties":{
               "apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
               "spec":{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1},
                 "interval":{"type":"string","default":"1h"},
                 "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
                 "data":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{"k":{"type":"string"}}}},
                 "free":{"x-kubernetes-preserve-unknown-fields":true}},
                 "x-kubernetes-validations":[{"rule":"has(self.name)","message":"a name"}]},
               "status":{"type":"object"}}}}},
            {"name":"v1beta1","served":false,"storage":false,"subresources":{"status":{}},
             "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}"#,
    );
    prepare_create(&mut definition);
    definition
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut definition = good();
    change(&mut definition);
    definition
}

fn version(definition: &mut Value, index: usize) -> &mut Value {
    let versions = definition.get_mut("spec").and_then(|spec| spec.get_mut("versions"));
    &mut versions.and_then(Value::as_array_mut).expect("a list")[index]
}

#[test]
fn a_definition_is_completed() {
    let definition = good();
    assert_eq!(definition.str_at(&["spec", "names", "singular"]), "panda");
    assert_eq!(definition.str_at(&["spec", "names", "listKind"]), "PandaList");
    assert_eq!(json(definition.at(&["spec", "conversion"]).expect("a default")), r#"{"strategy":"None"}"#);
    assert_eq!(json(definition.at(&["status", "storedVersions"]).expect("a default")), r#"["v1"]"#);
    let mut webhook = tree(
        r#"{"spec":{"names":{},"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"a"}}}}}}"#,
    );
    apply_defaults(&mut webhook);
    assert_eq!(
        json(webhook.at(&["spec", "conversion", "webhook"]).expect("kept")),
        r#"{"clientConfig":{"service":{"name":"a","port":443}}}"#
    );
}

/// Cases of upstream's TestValidateCustomResourceDefinition about conversion.
#[test]
fn conversions() {
    let with = |conversion: &str| {
        let mut definition = changed(|_| {});
        definition.set(&["spec", "conversion"], tree(conversion));
        definition
    };
    let check = |conversion: &str, expected: &[&str]| {
        assert_eq!(texts(&validate(&with(conversion))), expected, "{conversion}");
    };
    let webhook = |config: &str, versions: &str| {
        format!(
            r#"{{"strategy":"Webhook","webhook":{{"clientConfig":{config},"conversionReviewVersions":{versions}}}}}"#
        )
    };
    let at = "spec.conversion.webhookClientConfig";
    let url = r#"{"url":"https://example.com/webhook"}"#;
    check(&webhook(url, r#"["v1"]"#), &[]);
    check(&webhook(url, r#"["v1beta1"]"#), &[]);
    check(&webhook(url, r#"["invalid-version","v1beta1"]"#), &[]);
    check(
        &webhook(url, r#"["invalid-version","v1beta2"]"#),
        &[
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["invalid-version","v1beta2"]: must include at least one of v1, v1beta1"#,
        ],
    );
    check(
        &webhook(url, r#"["v1beta1","v1beta1"]"#),
        &[r#"spec.conversion.conversionReviewVersions[1]: Invalid value: "v1beta1": duplicate version"#],
    );
    check(
        &webhook(url, r#"["0v1","v1"]"#),
        &[
            r#"spec.conversion.conversionReviewVersions[0]: Invalid value: "0v1": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"#,
        ],
    );
    check(
        &webhook(r#"{"url":"http://example.com#f"}"#, r#"["v1"]"#),
        &[
            &format!(
                "{at}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"
            ),
            &format!("{at}.url: Invalid value: \"f\": fragments are not permitted in the URL"),
        ],
    );
    check(
        &webhook(r#"{"service":{"name":"s","namespace":"ns","port":0}}"#, r#"["v1"]"#),
        &[&format!(
            "{at}.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"
        )],
    );
    check(
        &webhook(r#"{"url":"https://a","service":{"name":"s","namespace":"ns","port":1}}"#, r#"["v1"]"#),
        &[&format!("{at}: Required value: exactly one of url or service is required")],
    );
    check(
        r#"{"strategy":"None","webhook":{"clientConfig":{"url":"https://a"},"conversionReviewVersions":["v1"]}}"#,
        &[
            &format!("{at}: Forbidden: should not be set when strategy is not set to Webhook"),
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ],
    );

    // Authorities that cannot be read keep a definition from being established; later they are refused.
    let junk = with(&webhook(r#"{"url":"https://a","caBundle":"aGVsbG8="}"#, r#"["v1"]"#));
    assert!(validate(&junk).is_empty());
    let mut old = with(&webhook(url, r#"["v1"]"#));
    assert!(validate_update(&junk, &old).is_empty());
    old.set(&["status", "conditions"], tree(r#"[{"type":"Established","status":"True"}]"#));
    assert_eq!(
        texts(&validate_update(&junk, &old)),
        [format!(
            "{at}.caBundle: Invalid value: \"aGVsbG8=\": unable to load root certificates: unable to parse bytes as PEM block"
        )]
    );
    let mut invalid = junk.clone();
    invalid.set(&["status", "conditions"], tree(r#"[{"type":"Established","status":"True"}]"#));
    assert!(validate_update(&junk, &invalid).is_empty(), "what was invalid may stay so");
    let unknown = with(&webhook(url, r#"["v9"]"#));
    assert!(validate_update(&unknown, &unknown).is_empty(), "what was invalid may stay so");
}

#[test]
fn rules() {
    let check = |change: fn(&mut Value), expected: &[&str]| {
        let changed = changed(change);
        let mut errors = validate_name(&changed);
        errors.extend(validate(&changed));
        assert_eq!(texts(&errors), expected);
    };
    check(|_| {}, &[]);
    check(
        |d| d.set(&["metadata", "name"], "x"),
        &["metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group"],
    );
    check(
        |d| {
            d.set(&["metadata", "name"], "pandas.bears");
            d.set(&["spec", "group"], "bears");
        },
        &["spec.group: Invalid value: \"bears\": should be a domain with at least one dot"],
    );
    check(
        |d| d.set(&["spec", "scope"], "World"),
        &["spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \"Namespaced\""],
    );
    check(
        |d| d.set(&["spec", "names", "listKind"], "Panda"),
        &["spec.names.listKind: Invalid value: \"Panda\": kind and listKind may not be the same"],
    );
    check(
        |d| drop(version(d, 1).remove(&["schema"])),
        &["spec.versions[1].schema.openAPIV3Schema: Required value"],
    );
    check(
        |d| d.set(&["spec", "preserveUnknownFields"], true),
        &[
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ],
    );
    check(
        |d| d.set(&["spec", "conversion", "strategy"], "Magic"),
        &["spec.conversion.strategy: Unsupported value: \"Magic\": supported values: \"None\", \"Webhook\""],
    );
    check(
        |d| d.set(&["spec", "conversion", "strategy"], "Webhook"),
        &[
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ],
    );
    check(
        |d| version(d, 0).set(&["schema", "openAPIV3Schema", "type"], "string"),
        &[
            "spec.versions[0].schema.openAPIV3Schema.type: Invalid value: \"string\": only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
            "spec.versions[0].schema.openAPIV3Schema.type: Invalid value: \"string\": must be object at the root",
        ],
    );
    check(
        |d| {
            version(d, 0)
                .set(&["schema", "openAPIV3Schema", "properties", "spec", "properties", "name", "type"], "")
        },
        &[
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[name].type: Required value: must not be empty for specified object fields",
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec.name\": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.",
        ],
    );
    check(
        |d| {
            version(d, 0)
                .set(&["selectableFields"], Value::Array(vec![Value::from([("jsonPath", ".metadata.name")])]))
        },
        &[
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".metadata.name\": is an invalid path: does not refer to a valid field",
        ],
    );
    check(
        |d| {
            version(d, 0).set(
                &["additionalPrinterColumns"],
                Value::Array(vec![Value::from([("name", "A"), ("type", "text"), ("jsonPath", "a")])]),
            )
        },
        &[
            "spec.versions[0].additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.versions[0].additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": must be a simple json path starting with .",
        ],
    );
    check(
        |d| {
            d.set(&["spec", "group"], "bears.k8s.io");
            d.set(&["metadata", "name"], "pandas.bears.k8s.io");
        },
        &[
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ],
    );
}

#[test]
fn exactly_one_version_is_stored() {
    let none = changed(|d| version(d, 0).set(&["storage"], false));
    let found = texts(&validate(&none));
    assert!(found[0].ends_with("must have exactly one version marked as storage version"), "{found:?}");
    let same = changed(|d| version(d, 1).set(&["name"], "v1"));
    let found = texts(&validate(&same));
    assert!(found[0].ends_with("must contain unique version names"), "{found:?}");
}

/// As kube-apiserver 1.37 was seen to say it of a definition with one version.
#[test]
fn what_the_only_version_says_is_named_at_the_top() {
    let check = |change: fn(&mut Value), expected: &[&str]| {
        let definition = changed(|d| {
            let first = version(d, 0).clone();
            d.set(&["spec", "versions"], Value::Array(vec![first]));
            change(d);
        });
        assert_eq!(texts(&validate(&definition)), expected);
    };
    check(|_| {}, &[]);
    check(
        |d| version(d, 0).set(&["selectableFields"], tree(r#"[{"jsonPath":".y"}]"#)),
        &[
            "spec.selectableFields[0].jsonPath: Invalid value: \".y\": is an invalid path: does not refer to a valid field",
        ],
    );
    check(
        |d| {
            version(d, 0)
                .set(&["additionalPrinterColumns"], tree(r#"[{"name":"a","type":"text","jsonPath":"a"}]"#))
        },
        &[
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of boolean,date,integer,number,string",
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"a\": must be a simple json path starting with .",
        ],
    );
    check(
        |d| {
            version(d, 0).set(&["storage"], false);
            d.remove(&["status"]);
        },
        &[
            "spec.versions: Invalid value: [{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}]: must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    check(
        |d| version(d, 0).set(&["schema", "openAPIV3Schema", "type"], "string"),
        &[
            "spec.validation.openAPIV3Schema.type: Invalid value: \"string\": only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled",
            "spec.validation.openAPIV3Schema.type: Invalid value: \"string\": must be object at the root",
        ],
    );
}

#[test]
fn a_schema_that_all_versions_share_is_named_at_the_top() {
    let definition = changed(|d| {
        version(d, 0).remove(&["selectableFields"]);
        for index in 0..2 {
            version(d, index)
                .set(&["schema", "openAPIV3Schema"], tree(r#"{"type":"object","properties":{"spec":{}}}"#));
        }
    });
    assert_eq!(
        texts(&validate(&definition)),
        [
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"
        ]
    );
}

#[test]
fn what_may_not_change() {
    let mut old = good();
    let check = |old: &Value, change: fn(&mut Value), expected: &[&str]| {
        let mut new = old.clone();
        change(&mut new);
        prepare_update(&mut new, old);
        assert_eq!(texts(&validate_update(&new, old)), expected);
    };
    check(&old, |d| d.set(&["spec", "scope"], "Cluster"), &[]);
    check(
        &old,
        |d| d.set(&["spec", "names", "plural"], "bears"),
        &["spec.names.plural: Invalid value: \"bears\": field is immutable"],
    );
    set_established(&mut old);
    check(
        &old,
        |d| d.set(&["spec", "scope"], "Cluster"),
        &["spec.scope: Invalid value: \"Cluster\": field is immutable"],
    );
    check(
        &old,
        |d| d.set(&["spec", "names", "kind"], "Bear"),
        &["spec.names.kind: Invalid value: \"Bear\": field is immutable"],
    );
    check(
        &old,
        |d| {
            version(d, 0).set(&["name"], "v2");
        },
        &[
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        ],
    );
    let mut moved = old.clone();
    version(&mut moved, 0).set(&["storage"], false);
    version(&mut moved, 1).set(&["storage"], true);
    prepare_update(&mut moved, &old);
    assert_eq!(json(moved.at(&["status", "storedVersions"]).expect("kept")), r#"["v1","v1beta1"]"#);
    assert_eq!(moved.at(&["metadata", "generation"]), Some(&Value::Int(2)));
}

fn set_established(definition: &mut Value) {
    let condition = Value::from([("type", "Established"), ("status", "True")]);
    definition.set(&["status", "conditions"], Value::Array(vec![condition]));
}

#[test]
fn names_are_given_once() {
    let mut first = good();
    let (names, verdict) = accept(&first, [&first.clone()].into_iter());
    assert_eq!((verdict.holds, verdict.reason), (true, "NoConflicts"));
    assert_eq!(Some(&names), first.at(&["spec", "names"]));
    assert!(!is_established(&first));
    let verdict = establish(&first, true).expect("it was not established");
    assert_eq!((verdict.holds, verdict.reason), (true, "InitialNamesAccepted"));
    first.set(&["status", "acceptedNames"], names);
    set_established(&mut first);
    assert!(is_established(&first) && establish(&first, true).is_none());

    // Another definition of the group wants the same short name and kind. The last conflict is told.
    let mut second = changed(|d| {
        d.set(&["spec", "names", "plural"], "grizzlies");
        d.set(&["spec", "names", "singular"], "grizzly");
    });
    let (names, verdict) = accept(&second, [&first].into_iter());
    assert_eq!(
        (verdict.holds, verdict.reason, verdict.message.as_str()),
        (false, "ListKindConflict", "\"PandaList\" is already in use")
    );
    assert_eq!(json(&names), r#"{"categories":["bears"],"plural":"grizzlies","singular":"grizzly"}"#);
    let verdict = establish(&second, false).expect("it is not established");
    assert_eq!(
        (verdict.holds, verdict.reason, verdict.message.as_str()),
        (false, "NotAccepted", "not all names are accepted")
    );

    // Once the first one is gone, or is of another group, the second gets everything.
    let mut elsewhere = first.clone();
    elsewhere.set(&["spec", "group"], "other.example");
    for all in [Vec::new(), vec![elsewhere]] {
        assert!(accept(&second, all.iter()).1.holds);
    }
    second.set(&["status", "acceptedNames"], accept(&second, std::iter::empty()).0);
    // Names that are its own are no conflict, and an established definition stays so.
    assert!(accept(&first, [&first.clone()].into_iter()).1.holds);
    first.set(&["spec", "names", "shortNames"], Value::Array(vec!["pd".into(), "grizzly".into()]));
    let (names, verdict) = accept(&first, [&second].into_iter());
    assert_eq!((verdict.holds, verdict.reason), (false, "ShortNamesConflict"));
    assert_eq!(names.at(&["shortNames"]), Some(&Value::Array(vec!["pd".into()])), "it keeps what it had");
    assert!(establish(&first, false).is_none());
}

/// Cases of upstream's TestWarningsOnCreate and TestWarningsOnUpdate.
#[test]
fn what_has_no_effect_is_told() {
    let with = |properties: &str| {
        let mut definition = changed(|_| {});
        for index in 0..2 {
            version(&mut definition, index)
                .set(&["schema", "openAPIV3Schema", "properties", "more"], tree(properties));
        }
        definition
    };
    let format = |kind: &str, format: &str| {
        with(&format!(r#"{{"type":"object","properties":{{"a":{{"type":"{kind}","format":"{format}"}}}}}}"#))
    };
    for (kind, name, known) in [
        ("string", "date-time", true),
        ("string", "k8s-short-name", true),
        ("string", "ipv4", true),
        ("string", "custom", false),
        ("integer", "int32", true),
        ("integer", "int33", false),
        ("number", "double", true),
        ("number", "int64", false),
        ("boolean", "yes", false),
    ] {
        let expected: &[String] = if known { &[] } else { &[format!("unrecognized format \"{name}\"")] };
        assert_eq!(super::super::definition::warnings(&format(kind, name), None), expected, "{kind} {name}");
    }
    let (old, new) = (format("string", "old"), format("string", "new"));
    assert!(super::super::definition::warnings(&old, Some(&old)).is_empty());
    assert_eq!(super::super::definition::warnings(&new, Some(&old)), ["unrecognized format \"new\""]);
    let set = with(
        r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic"}}"#,
    );
    assert_eq!(
        super::super::definition::warnings(&set, None),
        [
            "x-kubernetes-list-type: set for items of type \"object\" is not supported by server-side apply or CEL validation rules"
        ]
    );
}
