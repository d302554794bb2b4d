use super::*;
use crate::validation::testing::{object, texts};

const RULES: MetaRules =
    MetaRules { namespaced: true, name: names::dns_subdomain, qualified_finalizers: true };

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

#[track_caller]
fn check(metadata: &str, expected: &[&str]) {
    assert_eq!(texts(&validate(&object(&format!(r#"{{"metadata":{metadata}}}"#)), RULES)), expected);
}

/// `metadata` with a name, a namespace and `more`.
#[track_caller]
fn check_more(more: &str, expected: &[&str]) {
    check(&format!(r#"{{"name":"a","namespace":"b",{more}}}"#), expected);
}

#[test]
fn names_and_namespaces() {
    check(r#"{"name":"a","namespace":"b"}"#, &[]);
    check(
        "{}",
        &[
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ],
    );
    check(
        r#"{"name":"A","namespace":"b.c"}"#,
        &[
            &format!("metadata.name: Invalid value: \"A\": {SUBDOMAIN}"),
            "metadata.namespace: Invalid value: \"b.c\": must not contain dots",
        ],
    );
    check(r#"{"generateName":"a-","name":"a-x","namespace":"b"}"#, &[]);
    check(
        r#"{"generateName":"_","name":"a","namespace":"b"}"#,
        &[&format!("metadata.generateName: Invalid value: \"_\": {SUBDOMAIN}")],
    );
    let cluster = MetaRules { namespaced: false, ..RULES };
    let value = object(r#"{"metadata":{"name":"a","namespace":"b"}}"#);
    assert_eq!(
        texts(&validate(&value, cluster)),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
}

#[test]
fn generation_is_not_negative() {
    check_more(r#""generation":0"#, &[]);
    check_more(
        r#""generation":-1"#,
        &["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
    );
}

#[test]
fn labels_and_annotations() {
    check_more(r#""labels":{"a":"","x.y/z":"v"}"#, &[]);
    check_more(
        r#""labels":{"/a":"v"}"#,
        &["metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"],
    );
    let long = "v".repeat(64);
    check_more(
        &format!(r#""labels":{{"a":"{long}"}}"#),
        &[&format!("metadata.labels: Invalid value: \"{long}\": must be no more than 63 bytes")],
    );
    check_more(r#""annotations":{"A.B/C":"any thing\n"}"#, &[]);
    check_more(
        r#""annotations":{"a/":"v"}"#,
        &[
            "metadata.annotations: Invalid value: \"a/\": name part must be non-empty",
            "metadata.annotations: Invalid value: \"a/\": name part must consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
             '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ],
    );
    let at_limit = "v".repeat(ANNOTATIONS_LIMIT - 1);
    check_more(&format!(r#""annotations":{{"k":"{at_limit}"}}"#), &[]);
    check_more(
        &format!(r#""annotations":{{"k":"{at_limit}v"}}"#),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn owner_references_are_complete() {
    let good = r#"{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}"#;
    check_more(&format!(r#""ownerReferences":[{good}]"#), &[]);
    check_more(
        r#""ownerReferences":[{}]"#,
        &[
            "metadata.ownerReferences[0].apiVersion: Required value: must not be empty",
            "metadata.ownerReferences[0].kind: Required value: must not be empty",
            "metadata.ownerReferences[0].name: Required value: must not be empty",
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
        ],
    );
    check_more(
        r#""ownerReferences":[{"apiVersion":"a/b/c","kind":"Pod","name":"p","uid":"u"}]"#,
        &[
            "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
        ],
    );
    check_more(
        r#""ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}]"#,
        &[
            "metadata.ownerReferences[0]: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"p\",\
           \"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner",
        ],
    );
    check_more(
        r#""ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},
           {"apiVersion":"v1","kind":"Pod","name":"q","uid":"w","controller":true}]"#,
        &[
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\
           \"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"q\",\"uid\":\"w\",\
           \"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references \
           for Pod/p and Pod/q",
        ],
    );
}

#[test]
fn finalizers_are_qualified() {
    check_more(r#""finalizers":["kubernetes","x.io/y"]"#, &[]);
    check_more(
        r#""finalizers":["foo"]"#,
        &[
            "metadata.finalizers[0]: Invalid value: \"foo\": name is neither a standard finalizer name nor is it \
           fully qualified",
        ],
    );
    check_more(
        r#""finalizers":["orphan","foregroundDeletion"]"#,
        &["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
           foregroundDeletion cannot be both set"],
    );
}

#[test]
fn managed_fields_are_well_formed() {
    check_more(r#""managedFields":[{"operation":"Update","manager":"m","fieldsType":"FieldsV1"}]"#, &[]);
    check_more(
        r#""managedFields":[{}]"#,
        &["metadata.managedFields[0].operation: Required value: must not be empty"],
    );
    check_more(
        r#""managedFields":[{"operation":"X","fieldsType":"Y","manager":"a\u0007"}]"#,
        &[
            "metadata.managedFields[0].operation: Unsupported value: \"X\": supported values: \"Apply\", \"Update\"",
            "metadata.managedFields[0].fieldsType: Invalid value: \"Y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
        ],
    );
    for (length, expected) in [
        (128, &[][..]),
        (129, &["metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"][..]),
    ] {
        let manager = "m".repeat(length);
        check_more(&format!(r#""managedFields":[{{"operation":"Apply","manager":"{manager}"}}]"#), expected);
    }
    for (length, expected) in [
        (256, &[][..]),
        (257, &["metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"][..]),
    ] {
        let sub = "s".repeat(length);
        check_more(&format!(r#""managedFields":[{{"operation":"Apply","subresource":"{sub}"}}]"#), expected);
    }
}

#[test]
fn updates_keep_what_is_immutable() {
    let old = r#"{"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1","generation":2,
        "creationTimestamp":"2023-11-14T22:13:20Z"}}"#;
    let check = |old: &str, new: &str, expected: &[&str]| {
        assert_eq!(texts(&validate_update(&object(new), &object(old), RULES)), expected);
    };
    check(old, old, &[]);
    check(
        old,
        r#"{"metadata":{"name":"x","namespace":"y","uid":"z","generation":1}}"#,
        &[
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"x\": field is immutable",
            "metadata.namespace: Invalid value: \"y\": field is immutable",
            "metadata.uid: Invalid value: \"z\": field is immutable",
            "metadata.creationTimestamp: Invalid value: null: field is immutable",
        ],
    );
    let deleting = r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"1",
        "deletionTimestamp":"2023-11-14T22:13:20Z","finalizers":["x.io/y"]}}"#;
    check(
        deleting,
        r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"1",
            "deletionTimestamp":"2023-11-14T22:13:20Z","finalizers":["x.io/y","x.io/z","x.io/a"]}}"#,
        &[
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
           finalizers []string{\"x.io/a\", \"x.io/z\"}",
        ],
    );
}

#[test]
fn updates_take_over_what_clients_leave_out() {
    let old = object(
        r#"{"metadata":{"uid":"u","generation":2,"creationTimestamp":"c","deletionTimestamp":"d",
            "deletionGracePeriodSeconds":0}}"#,
    );
    let mut new = object(r#"{"metadata":{"generation":9,"creationTimestamp":"x"}}"#);
    take_over(&mut new, &old);
    assert!(new == old);
    let mut new = object(r#"{"metadata":{"uid":"other","generation":9}}"#);
    take_over(&mut new, &object("{}"));
    assert!(new == object(r#"{"metadata":{"uid":"other"}}"#));
}

#[test]
fn equal_owner_references_are_merged_with_a_warning() {
    let mut value =
        object(r#"{"metadata":{"ownerReferences":[{"uid":"u"},{"uid":"u"},{"uid":"w"},{"uid":"u"}]}}"#);
    let warning = deduplicate_owner_references(&mut value, false);
    assert_eq!(
        warning.as_deref(),
        Some(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u"
        )
    );
    assert_eq!(value.owner_references().len(), 2);
    assert_eq!(deduplicate_owner_references(&mut value, false), None);
}

#[test]
fn selectors_in_objects() {
    let check = |selector: &str, expected: &[&str]| {
        assert_eq!(texts(&label_selector(&object(selector), &Path::new("s"))), expected);
    };
    check(
        r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#,
        &[],
    );
    check(
        r#"{"matchExpressions":[{"key":"a","operator":"In"},{"key":"a","operator":"Exists","values":["b"]},
            {"key":"a","operator":"X"}]}"#,
        &[
            "s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "s.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or \
             'DoesNotExist'",
            "s.matchExpressions[2].operator: Invalid value: \"X\": not a valid selector operator",
        ],
    );
}

#[test]
fn custom_finalizers_draw_a_warning_once() {
    let new = object(r#"{"metadata":{"finalizers":["foo","a.b","a.b/c","orphan"]}}"#);
    assert_eq!(
        finalizer_warnings(&new, None),
        [
            "metadata.finalizers: \"foo\": prefer a domain-qualified finalizer name to avoid accidental conflicts with \
             other finalizer writers",
            "metadata.finalizers: \"a.b\": prefer a domain-qualified finalizer name including a path (/) to avoid \
             accidental conflicts with other finalizer writers",
        ]
    );
    assert!(finalizer_warnings(&new, Some(&new)).is_empty());
}
