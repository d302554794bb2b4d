//! Watches: each ends by `timeoutSeconds`. What happens is told after it happened, from a version before it.

use serde_json::json;

use super::super::request::{MERGE, PARTIAL, PARTIALS, PROTOBUF, TABLE, Theme, YAML};
use super::kinds::{CONFIG_MAPS, CUSTOM, Kind, PODS, SECRETS};

pub(super) fn themes() -> Vec<Theme> {
    let mut themes: Vec<Theme> = [SECRETS, CONFIG_MAPS, PODS].iter().map(theme).collect();
    let mut custom = Theme::new("watchwidgets");
    let kind = Kind { root: "/apis/watch.example.com/v1", api_version: "watch.example.com/v1", ..CUSTOM };
    super::definitions::define(&mut custom, "watch.example.com");
    story(&mut custom, &kind);
    themes.push(custom);
    themes.push(refusals());
    themes
}

fn theme(kind: &Kind) -> Theme {
    let mut theme = Theme::new(&format!("watch{}", kind.plural));
    story(&mut theme, kind);
    theme
}

fn story(theme: &mut Theme, kind: &Kind) {
    let all = kind.collection();
    let object = |name: &str, color: &str| kind.object_with(name, json!({ "labels": { "color": color } }));
    theme.post(&all, object("first", "red")).keep("start");
    theme.post(&all, object("second", "blue"));
    // In and out of a selector, and with no other change.
    theme.patch(&kind.path("second"), MERGE, r#"{"metadata":{"labels":{"color":"red"}}}"#);
    theme.patch(&kind.path("second"), MERGE, r#"{"metadata":{"annotations":{"a":"1"}}}"#);
    theme.patch(&kind.path("second"), MERGE, r#"{"metadata":{"annotations":{"a":"1"}}}"#);
    theme.patch(&kind.path("first"), MERGE, r#"{"metadata":{"labels":{"color":"blue"}}}"#);
    theme.patch(&kind.path("first"), MERGE, r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
    theme.delete(&format!("{}?gracePeriodSeconds=0", kind.path("first")));
    theme.patch(&kind.path("first"), MERGE, r#"{"metadata":{"finalizers":null}}"#);
    theme.post(&all, object("third", "red"));
    theme.delete(&format!("{}?gracePeriodSeconds=0", kind.path("third")));
    theme.post(&all, object("third", "green")).keep("end");
    theme.get(&all).keep("list");
    let since = "resourceVersion=<<start/metadata/resourceVersion>>";
    let watch = format!("{all}?watch=1&timeoutSeconds=3&{since}");
    for query in [
        "",
        "&labelSelector=color%3Dred",
        "&labelSelector=color!%3Dred",
        "&labelSelector=!color",
        "&fieldSelector=metadata.name%3Dsecond",
        "&fieldSelector=metadata.name!%3Dsecond",
        "&fieldSelector=metadata.name%3Dsecond&labelSelector=color%3Dred",
        "&fieldSelector=metadata.name%3Dnone",
        "&pretty=1",
        "&limit=1",
        "&includeObject=Object",
        "&includeObject=None",
        "&resourceVersionMatch=",
    ] {
        theme.get(&format!("{watch}{query}"));
    }
    for accept in [
        TABLE,
        PARTIAL,
        PARTIALS,
        YAML,
        PROTOBUF,
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        "application/json;stream=watch",
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        "application/json;as=Table;v=v2;g=meta.k8s.io, application/json",
        "text/html, */*",
        "*/*",
        "application/cbor",
        "application/cbor-seq",
        "text/html",
    ] {
        theme.get(&watch).accept(accept);
    }
    theme.get(&format!("{watch}&includeObject=None")).accept(TABLE);
    theme.get(&format!("{watch}&includeObject=Object&labelSelector=color%3Dred")).accept(TABLE);
    theme.get(&format!("{watch}&labelSelector=color%3Dred")).accept(PROTOBUF);
    let fresh = format!("{all}?watch=1&timeoutSeconds=3");
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for query in [
        "",
        "&resourceVersion=0",
        "&resourceVersion=",
        "&resourceVersion=<<end/metadata/resourceVersion>>",
        "&resourceVersion=<<list/metadata/resourceVersion>>",
        "&labelSelector=color%3Dred",
        "&fieldSelector=metadata.name%3Dthird",
        &format!("&{initial}"),
        &format!("&{initial}&resourceVersion=0"),
        &format!("&{initial}&resourceVersion=<<end/metadata/resourceVersion>>"),
        &format!("&{initial}&labelSelector=color%3Dred"),
        &format!("&{initial}&fieldSelector=metadata.name%3Dthird"),
        "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<<start/metadata/resourceVersion>>",
    ] {
        theme.get(&format!("{fresh}{query}"));
    }
    for accept in [TABLE, PARTIAL, PROTOBUF] {
        theme.get(&format!("{fresh}&{initial}")).accept(accept);
        theme.get(&fresh).accept(accept);
    }
    theme.get(&format!(
        "{}/watch{}?timeoutSeconds=3",
        kind.root,
        kind.path("third").replacen(kind.root, "", 1)
    ));
    theme.get(&format!("{}/watch{}?timeoutSeconds=3", kind.root, all.replacen(kind.root, "", 1)));
    theme.get(&format!("{}?watch=1&timeoutSeconds=3", kind.path("third")));
}

/// Watches that never begin, or end with an error.
fn refusals() -> Theme {
    let mut theme = Theme::new("watchrefusals");
    let all = "/api/v1/namespaces/$NS/secrets";
    theme.post(all, json!({ "metadata": { "name": "s" } })).keep("s");
    theme.get(all);
    let watch = format!("{all}?watch=1&timeoutSeconds=3");
    for query in [
        "resourceVersion=x",
        "resourceVersion=-1",
        "resourceVersion=1.5",
        "resourceVersion=99999999999",
        "resourceVersion=99999999999999999999999",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Odd",
        "resourceVersionMatch=Exact&resourceVersion=5",
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "sendInitialEvents=x",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=x",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=x",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=99999999999",
        "continue=x",
        "allowWatchBookmarks=x",
        "labelSelector=a+b",
        "fieldSelector=bogus%3Dx",
        "fieldSelector=x",
        "limit=x",
        "timeout=x",
        "includeObject=x",
        "bogus=x",
    ] {
        theme.get(&format!("{watch}&{query}"));
        theme.get(&format!("{watch}&{query}")).accept(TABLE);
    }
    for query in [
        "watch=1&timeoutSeconds=x",
        "watch=x&timeoutSeconds=3",
        "watch=true&timeoutSeconds=3",
        "watch=&timeoutSeconds=3",
        "watch=0&timeoutSeconds=3",
        "watch=1&timeoutSeconds=3&watch=0",
    ] {
        theme.get(&format!("{all}?{query}"));
    }
    theme.get("/api/v1/namespaces/nowhere/secrets?watch=1&timeoutSeconds=3");
    theme.get("/api/v1/namespaces/$NS/nothing?watch=1&timeoutSeconds=3");
    theme.get("/apis/authentication.k8s.io/v1/tokenreviews?watch=1&timeoutSeconds=3");
    theme.get(&format!("{watch}&resourceVersion=99999999999")).accept(PROTOBUF);
    theme
}
