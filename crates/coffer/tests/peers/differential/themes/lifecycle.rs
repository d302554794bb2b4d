//! The life of an object of each kind: every verb, medium and option once.

use serde_json::{Value, json};

use super::super::protobuf::{Field, envelope, message};
use super::super::request::{
    APPLY, CBOR, JSON, MERGE, PARTIAL, PARTIALS, PATCH, PROTOBUF, STRATEGIC, TABLE, Theme, YAML,
};
use super::kinds::{KINDS, Kind};

/// One for each kind.
pub(super) fn themes() -> Vec<Theme> {
    KINDS.iter().map(theme).collect()
}

fn theme(kind: &Kind) -> Theme {
    let group = if kind.root.starts_with("/apis/events") { "new" } else { "" };
    let mut theme = Theme::new(&format!("{group}{}", kind.plural));
    theme.steady = kind.plural != "customresourcedefinitions";
    let theme_ref = &mut theme;
    if kind.plural == "widgets" {
        super::definitions::widgets(theme_ref);
    }
    created(theme_ref, kind);
    read(theme_ref, kind);
    updated(theme_ref, kind);
    patched(theme_ref, kind);
    applied(theme_ref, kind);
    deleted(theme_ref, kind);
    if !theme.steady {
        // Whose write is the older one is luck, and other media than JSON tell it by their order; so is how
        // many changes a watch sees.
        for request in &mut theme.requests {
            let other = |value: &String| value.starts_with(YAML) || value.starts_with(PROTOBUF);
            let other = request.headers.iter().any(|(name, value)| *name == "accept" && other(value));
            if other || request.lasts() {
                request.head_only();
            }
        }
    }
    theme
}

/// A definition changes until its names are accepted.
fn established(theme: &mut Theme, kind: &Kind, name: &str) {
    if kind.plural == "customresourcedefinitions" {
        theme.get(&kind.path(name)).until("/status/conditions/1/status", "True");
    }
}

/// Only objects that the theme made itself.
fn own(kind: &Kind) -> String {
    let label = if kind.root.starts_with("/apis/events") { "newevents" } else { kind.plural };
    format!("labelSelector=differ%3D{label}")
}

fn labelled(kind: &Kind, name: &str) -> Value {
    let label = if kind.root.starts_with("/apis/events") { "newevents" } else { kind.plural };
    kind.object_with(name, json!({ "labels": { "differ": label, "name": name } }))
}

fn bytes(kind: &Kind, name: &str) -> Vec<u8> {
    let name = kind.name(name);
    let mut object = message(&[Field::Message(1, message(&[Field::Text(1, &name)]))]);
    object.extend((kind.protobuf)());
    envelope(kind.api_version, kind.kind, object)
}

fn created(theme: &mut Theme, kind: &Kind) {
    let all = kind.collection();
    let with = |query: &str| format!("{all}?{query}");
    theme.post(&all, labelled(kind, "a")).keep("a");
    established(theme, kind, "a");
    theme.post(&all, labelled(kind, "a"));
    theme.post(&with("dryRun=All"), kind.object("dry"));
    theme.post(&with("dryRun=All"), kind.object("a"));
    theme.get(&kind.path("dry"));
    let yaml = serde_yaml_like(&labelled(kind, "b"));
    theme.post(&all, yaml).sent_as(YAML).header("user-agent", "tool/1.2 (x)");
    established(theme, kind, "b");
    if kind.plural != "widgets" {
        theme.post(&all, bytes(kind, "p")).sent_as(PROTOBUF).accept(PROTOBUF);
    }
    if kind.plural != "widgets" {
        theme.post(&with("dryRun=All"), bytes(kind, "q")).sent_as(PROTOBUF);
    }
    theme.post(&with("dryRun=All"), kind.object("q")).accept(YAML);
    theme.post(&with("dryRun=All"), kind.object("q")).accept(TABLE);
    theme.post(&with("dryRun=All"), kind.object("q")).accept(PARTIAL);
    theme.post(&with("dryRun=All"), kind.object("q")).accept("text/html");
    theme.post(&with("dryRun=All"), kind.object("q")).sent_as("text/plain");
    theme.post(&with("dryRun=All"), kind.object("q")).sent_as(CBOR);
    let mut unknown = kind.object("u");
    unknown["bogus"] = 1.into();
    unknown["metadata"]["bogus"] = 2.into();
    for validation in ["Strict", "Warn", "Ignore", "Other"] {
        theme.post(&with(&format!("dryRun=All&fieldValidation={validation}")), &unknown);
        let twice = format!("{{\"apiVersion\":\"v0\",{}", &kind.object("u").to_string()[1..]);
        theme.post(&with(&format!("dryRun=All&fieldValidation={validation}")), twice);
    }
    theme.post(&with("dryRun=All&fieldManager=robot"), kind.object("q"));
    for (field, value) in [
        ("kind", json!("Gadget")),
        ("apiVersion", json!("v9")),
        ("apiVersion", json!("example.com/v1")),
        ("kind", json!("")),
        ("apiVersion", json!("")),
        ("metadata", json!({})),
        ("metadata", json!(null)),
        ("metadata", json!("text")),
        ("metadata", json!({ "name": 1 })),
        ("metadata", json!({ "name": "UPPER" })),
        ("metadata", json!({ "name": "a b" })),
        ("metadata", json!({ "name": "a/b" })),
        ("metadata", json!({ "name": ".." })),
        ("metadata", json!({ "name": "x".repeat(254) })),
        ("metadata", json!({ "generateName": "gen-" })),
        ("metadata", json!({ "generateName": "Bad_" })),
        ("metadata", json!({ "name": "n", "namespace": "elsewhere" })),
        ("metadata", json!({ "name": "n", "resourceVersion": "5" })),
        ("metadata", json!({ "name": "n", "labels": { "a b": "c" } })),
        ("metadata", json!({ "name": "n", "labels": ["a"] })),
        ("metadata", json!({ "name": "n", "annotations": { "": "x" } })),
        ("metadata", json!({ "name": "n", "finalizers": ["bare"] })),
        ("metadata", json!({ "name": "n", "finalizers": ["example.com/a", "example.com/a"] })),
        ("metadata", json!({ "name": "n", "ownerReferences": [{}] })),
        ("metadata", json!({ "name": "n", "generation": -1 })),
    ] {
        let mut object = kind.object("n");
        object[field] = value;
        theme.post(&with("dryRun=All"), object);
    }
    for body in ["", "{", "{}", "[]", "null", "1", "\"text\"", "{\"metadata\":{}}garbage", "\u{feff}{}"] {
        theme.post(&with("dryRun=All"), body);
    }
    for body in ["", "a: [b", "- a", "text", "{", "a: 1\na: 2\n", "--- \n", "\tx: 1"] {
        theme.post(&with("dryRun=All"), body).sent_as(YAML);
    }
    if kind.plural == "widgets" {
        // Upstream panics and closes the connection: there is no answer to compare with.
        return;
    }
    for body in ["k8s", "k8s\0\u{1}", "{}", ""] {
        theme.post(&with("dryRun=All"), body).sent_as(PROTOBUF);
    }
}

/// YAML that is JSON line by line.
fn serde_yaml_like(object: &Value) -> String {
    let fields = object.as_object().expect("an object");
    fields.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn read(theme: &mut Theme, kind: &Kind) {
    let (all, a) = (kind.collection(), kind.path("a"));
    let own = own(kind);
    theme.get(&a);
    theme.get(&kind.path("missing"));
    theme.get(&kind.path("UPPER"));
    for accept in
        [YAML, PROTOBUF, TABLE, PARTIAL, PARTIALS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io"]
    {
        theme.get(&a).accept(accept);
        theme.get(&format!("{all}?{own}")).accept(accept);
    }
    for accept in [
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/yaml;as=Table;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Other;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
        "application/xml, */*;q=0.1",
        "application/cbor",
        "text/html",
    ] {
        theme.get(&a).accept(accept);
    }
    theme.get(&format!("{all}?{own}"));
    theme
        .get(&format!("{all}?{own}"))
        .accept("application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    theme.get(&format!("{all}?{own}&limit=1")).keep("page");
    theme.get(&format!("{all}?{own}&limit=1&continue=<<page/metadata/continue>>"));
    theme.get(&format!("{all}?{own}&fieldSelector=metadata.name%3D{}", kind.name("a")));
    theme.get(&format!("{all}?{own}&fieldSelector=metadata.name!%3D{}", kind.name("a")));
    theme.get(&format!("{all}?{own}&fieldSelector=metadata.namespace%3D$NS"));
    theme.get(&format!("{all}?{own}&fieldSelector=spec.bogus%3Da"));
    theme.get(&format!("{all}?labelSelector=differ+in+(none,nothing)"));
    theme.get(&format!("{all}?{own}&resourceVersion=0&resourceVersionMatch=Exact"));
    theme.get(&format!("{a}?resourceVersion=<<a/metadata/resourceVersion>>"));
    theme.get(&format!("{a}?resourceVersion=0"));
    theme.get(&format!("{a}?pretty=true"));
    theme.other("HEAD", &a);
    theme.other("OPTIONS", &a);
    theme.post(&a, kind.object("a"));
    theme.get(&format!("{a}/bogus"));
    theme.get(&format!("{a}/status"));
    theme
        .get(&format!("{all}?watch=1&timeoutSeconds=2&resourceVersion=<<a/metadata/resourceVersion>>&{own}"));
    theme.get(&format!("{all}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3D{}", kind.name("a")));
    theme
        .get(&format!("{all}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3D{}", kind.name("a")))
        .accept(TABLE);
    theme
        .get(&format!("{all}?watch=1&timeoutSeconds=2&fieldSelector=metadata.name%3D{}", kind.name("a")))
        .accept(PROTOBUF);
}

fn updated(theme: &mut Theme, kind: &Kind) {
    let a = kind.path("a");
    let object = labelled(kind, "a");
    let rewritten = |metadata: &[(&str, Value)]| {
        let mut object = object.clone();
        for (key, value) in metadata {
            object["metadata"][*key] = value.clone();
        }
        object
    };
    theme.get(&a).keep("now");
    theme.put(&a, &object);
    let current = json!("<<now/metadata/resourceVersion>>");
    theme.put(&a, rewritten(&[("resourceVersion", current.clone())]));
    theme.get(&a).keep("now");
    theme.put(&a, rewritten(&[("resourceVersion", json!("1"))]));
    theme.put(&a, rewritten(&[("resourceVersion", json!("x"))]));
    theme.put(&a, rewritten(&[("resourceVersion", json!("0"))]));
    theme.put(
        &a,
        rewritten(&[
            ("uid", json!("00000000-0000-0000-0000-000000000000")),
            ("resourceVersion", current.clone()),
        ]),
    );
    theme.put(&a, rewritten(&[("name", json!("other"))]));
    theme.put(&a, rewritten(&[("name", json!(""))]));
    theme.put(&a, rewritten(&[("namespace", json!("other"))]));
    theme
        .put(&a, rewritten(&[("labels", json!({ "bad value": "-" })), ("resourceVersion", current.clone())]));
    theme.put(
        &a,
        rewritten(&[
            ("creationTimestamp", json!("2001-02-03T04:05:06Z")),
            ("resourceVersion", current.clone()),
        ]),
    );
    theme.put(
        &a,
        rewritten(&[
            ("deletionTimestamp", json!("2001-02-03T04:05:06Z")),
            ("resourceVersion", current.clone()),
        ]),
    );
    theme.get(&a).keep("now");
    let labels = object["metadata"]["labels"].clone();
    let mut more = labels.clone();
    more["more"] = "yes".into();
    theme.put(
        &format!("{a}?dryRun=All"),
        rewritten(&[("labels", more.clone()), ("resourceVersion", current.clone())]),
    );
    theme.put(
        &format!("{a}?fieldManager=writer"),
        rewritten(&[("labels", more), ("resourceVersion", current.clone())]),
    );
    theme.put(&a, rewritten(&[("resourceVersion", current)]));
    theme.put(&kind.path("missing"), kind.object("missing"));
    theme.put(&a, "{");
    theme.put(&a, "");
    theme.put(&a, r#"{"kind":"Gadget","apiVersion":"v1"}"#);
    theme.put(&a, kind.object("a")).sent_as("text/plain");
    theme.put(&kind.collection(), kind.object("a"));
}

fn patched(theme: &mut Theme, kind: &Kind) {
    let a = kind.path("a");
    theme.patch(&a, MERGE, (kind.change)());
    theme.patch(&a, MERGE, (kind.change)());
    theme.patch(&format!("{a}?dryRun=All"), MERGE, r#"{"metadata":{"labels":{"dry":"run"}}}"#);
    // By now two have written, and the order in which protobuf names them is luck.
    theme.patch(&a, MERGE, r#"{"metadata":{"annotations":{"x":"1"}}}"#).accept(PROTOBUF).head_only();
    theme.patch(&a, MERGE, r#"{"metadata":{"annotations":{"x":null}}}"#).accept(PARTIAL);
    theme.patch(&a, MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#);
    theme.patch(&a, MERGE, r#"{"metadata":{"name":"other"}}"#);
    theme.patch(&a, MERGE, r#"{"metadata":{"uid":"00000000-0000-0000-0000-000000000000"}}"#);
    theme.patch(&a, MERGE, r#"{"kind":"Gadget"}"#);
    theme.patch(&a, MERGE, "{");
    theme.patch(&a, MERGE, "");
    theme.patch(&a, STRATEGIC, r#"{"metadata":{"labels":{"strategic":"yes"}}}"#);
    theme.patch(&a, STRATEGIC, r#"{"metadata":{"labels":{"strategic":null}}}"#);
    theme.patch(&a, STRATEGIC, r#"{"metadata":{"finalizers":["example.com/x"]}}"#);
    theme.patch(&a, STRATEGIC, r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/x"]}}"#);
    theme.patch(&a, PATCH, r#"[{"op":"add","path":"/metadata/labels/json","value":"yes"}]"#);
    theme.patch(&a, PATCH, r#"[{"op":"remove","path":"/metadata/labels/json"}]"#);
    theme.patch(&a, PATCH, r#"[{"op":"remove","path":"/metadata/labels/json"}]"#);
    theme.patch(&a, PATCH, r#"[{"op":"test","path":"/metadata/name","value":"none"}]"#);
    theme.patch(&a, PATCH, r#"{"op":"add"}"#);
    theme.patch(&a, JSON, "{}");
    theme.patch(&a, "", "{}");
    theme.patch(&kind.path("missing"), MERGE, "{}");
    theme.patch(
        &format!("{a}?fieldValidation=Strict"),
        MERGE,
        r#"{"metadata":{"labels":{"a":"b"},"labels":{"a":"b"}}}"#,
    );
    theme.patch(&kind.collection(), MERGE, "{}");
}

fn applied(theme: &mut Theme, kind: &Kind) {
    let applied =
        |name: &str, manager: &str, more: &str| format!("{}?fieldManager={manager}{more}", kind.path(name));
    let object = kind.object_with("apply", json!({ "labels": { "one": "1" } }));
    theme.patch(&applied("apply", "one", "&dryRun=All"), APPLY, &object);
    theme.patch(&applied("apply", "one", ""), APPLY, &object);
    established(theme, kind, "apply");
    theme.patch(&applied("apply", "one", ""), APPLY, &object);
    let other = kind.object_with("apply", json!({ "labels": { "one": "2", "two": "2" } }));
    theme.patch(&applied("apply", "two", ""), APPLY, &other);
    theme.patch(&applied("apply", "two", "&force=true"), APPLY, &other);
    let mut bare = json!({ "apiVersion": kind.api_version, "kind": kind.kind });
    bare["metadata"] = json!({ "name": kind.name("apply") });
    theme.patch(&applied("apply", "one", ""), APPLY, &bare);
    theme.patch(&kind.path("apply"), APPLY, &bare);
    theme.patch(&applied("other", "one", ""), APPLY, &bare);
    let mut unknown = object.clone();
    unknown["bogus"] = json!(1);
    theme.patch(&applied("apply", "one", ""), APPLY, unknown);
    theme.patch(&applied("apply", "one", ""), APPLY, "kind: [");
    theme.patch(&applied("apply", "one", ""), MERGE, r#"{"metadata":{"labels":{"two":"3"}}}"#);
    theme.patch(&applied("apply", "two", ""), APPLY, &other);
    theme.get(&kind.path("apply"));
}

fn deleted(theme: &mut Theme, kind: &Kind) {
    let (a, apply) = (kind.path("a"), kind.path("apply"));
    theme.delete(&kind.path("missing"));
    for body in [
        json!({ "preconditions": { "uid": "00000000-0000-0000-0000-000000000000" } }),
        json!({ "preconditions": { "resourceVersion": "1" } }),
        json!({ "propagationPolicy": "Sometimes" }),
        json!({ "propagationPolicy": "Orphan", "orphanDependents": true }),
        json!({ "gracePeriodSeconds": "x" }),
        json!({ "dryRun": ["None"] }),
        json!({ "kind": "Gadget", "apiVersion": "v1" }),
        json!([]),
    ] {
        theme.delete_with(&a, body);
    }
    theme.delete_with(&a, json!({ "dryRun": ["All"], "gracePeriodSeconds": 0 }));
    theme.delete_with(&a, "").sent_as("text/plain");
    if kind.plural == "namespaces" || kind.plural == "customresourcedefinitions" {
        // The rest is done by controllers, in their own time.
        return;
    }
    theme.patch(&a, MERGE, r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
    theme.delete_with(&a, json!({ "propagationPolicy": "Background", "gracePeriodSeconds": 0 }));
    theme.delete(&a);
    theme.patch(&a, MERGE, r#"{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}"#);
    theme.patch(&a, MERGE, r#"{"metadata":{"finalizers":null}}"#);
    theme.get(&a);
    theme.get(&apply).keep("last");
    theme
        .delete_with(&apply, json!({
            "gracePeriodSeconds": 0,
            "preconditions": { "uid": "<<last/metadata/uid>>", "resourceVersion": "<<last/metadata/resourceVersion>>" },
        }))
        .accept(PROTOBUF);
    theme.get(&apply);
    if kind.namespaced {
        let all = kind.collection();
        theme.delete(&format!("{all}?labelSelector=%21"));
        theme.delete(&format!("{all}?fieldSelector=spec.bogus%3Da"));
        theme.delete(&format!("{all}?dryRun=All&{}", own(kind)));
        theme.delete(&format!("{all}?gracePeriodSeconds=0&{}", own(kind)));
        theme.get(&format!("{all}?{}", own(kind)));
    }
}
