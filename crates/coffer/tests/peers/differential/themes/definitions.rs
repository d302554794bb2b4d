//! Custom resources: definitions good and bad, and objects under their schemas.

use serde_json::{Value, json};

use super::super::request::{JSON, MERGE, PATCH, STRATEGIC, TABLE, Theme, YAML};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Defines `widgets` in a group and waits until they are served.
pub(super) fn define(theme: &mut Theme, group: &str) {
    let schema = json!({ "type": "object", "required": ["spec"], "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer", "minimum": 0, "maximum": 100 },
            "color": { "type": "string", "enum": ["red", "green"], "default": "green" },
            "code": { "type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2 },
            "ratio": { "type": "number" },
            "ready": { "type": "boolean" },
            "port": { "x-kubernetes-int-or-string": true },
            "maybe": { "type": "string", "nullable": true },
            "when": { "type": "string", "format": "date-time" },
            "blob": { "type": "string", "format": "byte" },
            "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "tags": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "set", "maxItems": 3 },
            "whole": { "type": "array", "items": { "type": "string" }, "x-kubernetes-list-type": "atomic" },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "required": ["name"], "properties": {
                    "name": { "type": "string" },
                    "count": { "type": "integer", "default": 7 },
                } },
            },
            "one": {
                "type": "object",
                "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
                "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
            },
        } },
        "status": { "type": "object", "properties": { "phase": { "type": "string" }, "seen": { "type": "integer" } } },
    } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "singular": "widget", "shortNames": ["wi"], "categories": ["all"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "TEXT" },
                    { "name": "When", "type": "date", "jsonPath": ".spec.when", "priority": 1 },
                    { "name": "Part", "type": "string", "jsonPath": ".spec.parts[*].name" },
                ],
            }],
        },
    });
    theme.post(DEFINITIONS, definition);
    theme.get(&format!("{DEFINITIONS}/widgets.{group}")).until("/status/conditions/1/status", "True");
    theme.get(&format!("/apis/{group}/v1/namespaces/$NS/widgets")).until("/kind", "WidgetList");
}

/// The definition that the kind of the lifecycle has.
pub(super) fn widgets(theme: &mut Theme) {
    define(theme, "differ.example.com");
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("definitions");
    bad_definitions(&mut theme);
    define(&mut theme, "schemas.example.com");
    objects(&mut theme);
    status(&mut theme);
    evolution(&mut theme);
    theme
}

/// A definition with one thing changed.
fn changed(pointer: &str, value: Value) -> Value {
    let mut definition = json!({
        "metadata": { "name": "gadgets.bad.example.com" },
        "spec": {
            "group": "bad.example.com", "scope": "Cluster",
            "names": { "plural": "gadgets", "kind": "Gadget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    definition.pointer_mut(parent).expect("a place")[key] = value;
    definition
}

fn bad_definitions(theme: &mut Theme) {
    let create = format!("{DEFINITIONS}?dryRun=All");
    let versions = "/spec/versions";
    let version = |name: &str, served: bool, storage: bool| json!({ "name": name, "served": served, "storage": storage, "schema": { "openAPIV3Schema": { "type": "object" } } });
    let cases = [
        ("/metadata/name", json!("other.bad.example.com")),
        ("/spec/group", json!("")),
        ("/spec/group", json!("bad")),
        ("/spec/group", json!("Bad.example.com")),
        ("/spec/scope", json!("")),
        ("/spec/scope", json!("Everywhere")),
        ("/spec/names", json!({})),
        ("/spec/names", json!({ "plural": "gadgets", "kind": "gadget list" })),
        ("/spec/names", json!({ "plural": "gadgets", "kind": "Gadget", "listKind": "Gadget" })),
        (
            "/spec/names",
            json!({ "plural": "gadgets", "kind": "Gadget", "singular": "A_b", "shortNames": ["X"], "categories": ["Y"] }),
        ),
        (versions, json!([])),
        (versions, json!([version("v1", true, false)])),
        (versions, json!([version("v1", true, true), version("v2", true, true)])),
        (versions, json!([version("v1", true, true), version("v1", true, false)])),
        (versions, json!([version("V_1", true, true)])),
        (versions, json!([{ "name": "v1", "served": true, "storage": true }])),
        ("/spec/preserveUnknownFields", json!(true)),
        ("/spec/conversion", json!({ "strategy": "Magic" })),
        ("/spec/conversion", json!({ "strategy": "Webhook" })),
    ];
    for (pointer, value) in cases {
        theme.post(&create, changed(pointer, value));
    }
    let schemas = [
        json!({}),
        json!({ "type": "string" }),
        json!({ "type": "object", "properties": { "spec": {} } }),
        json!({ "type": "object", "properties": { "spec": { "type": "thing" } } }),
        json!({ "type": "object", "properties": { "spec": { "type": "array" } } }),
        json!({ "type": "object", "properties": { "spec": { "type": "array", "items": {} } } }),
        json!({ "type": "object", "properties": { "spec": { "type": "string", "pattern": "(" } } }),
        json!({ "type": "object", "properties": { "spec": { "type": "integer", "default": "x" } } }),
        json!({ "type": "object", "properties": { "metadata": { "type": "object", "properties": { "labels": { "type": "object" } } } } }),
        json!({ "type": "object", "additionalProperties": true, "properties": { "a": { "type": "string" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "object", "additionalProperties": true, "properties": { "b": { "type": "string" } } } } }),
        json!({ "type": "object", "anyOf": [{ "type": "object" }] }),
        json!({ "type": "object", "properties": { "a": { "type": "string", "oneOf": [{ "description": "x" }] } } }),
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": false }),
        json!({ "type": "object", "properties": { "a": { "type": "array", "items": { "type": "string" }, "uniqueItems": true } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/definitions/x" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "array", "x-kubernetes-list-type": "map", "items": { "type": "object" } } } }),
        json!({ "type": "object", "properties": { "a": { "type": "array", "x-kubernetes-list-type": "heap", "items": { "type": "string" } } } }),
        json!({ "type": "object", "properties": { "a": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "object" } } } }),
        json!({ "type": "object", "properties": { "a": { "type": "object", "x-kubernetes-map-type": "odd" } } }),
        json!({ "type": "object", "properties": { "a": { "x-kubernetes-int-or-string": true, "type": "string" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "object", "x-kubernetes-embedded-resource": true } } }),
        json!({ "type": "object", "bogus": 1 }),
        json!({ "type": "object", "nullable": true }),
    ];
    for schema in schemas {
        theme.post(&create, changed("/spec/versions/0/schema", json!({ "openAPIV3Schema": schema })));
    }
    let columns = [
        json!([{ "name": "A", "type": "string", "jsonPath": ".spec.a" }]),
        json!([{ "name": "A", "type": "text", "jsonPath": ".spec.a" }]),
        json!([{ "name": "", "type": "string", "jsonPath": "" }]),
        json!([{ "name": "A", "type": "string", "jsonPath": "spec.a" }]),
        json!([{ "name": "A", "type": "integer", "format": "odd", "jsonPath": ".spec.a" }]),
    ];
    for columns in columns {
        theme.post(&create, changed("/spec/versions/0/additionalPrinterColumns", columns));
    }
    theme.post(&create, changed("/spec/group", json!("bad.k8s.io")));
    theme.post(&create, "{}");
    theme.post(&create, json!({ "spec": { "versions": "x" } }));
    theme.post(&format!("{create}&fieldValidation=Strict"), changed("/spec/bogus", json!(1)));
}

fn objects(theme: &mut Theme) {
    let all = "/apis/schemas.example.com/v1/namespaces/$NS/widgets";
    let create = format!("{all}?dryRun=All");
    let with = |spec: Value| json!({ "apiVersion": "schemas.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "spec": spec });
    let specs = [
        json!({}),
        json!(null),
        json!([]),
        json!("x"),
        json!({ "size": "x" }),
        json!({ "size": 1.5 }),
        json!({ "size": 2.0 }),
        json!({ "size": -1 }),
        json!({ "size": 101 }),
        json!({ "size": null }),
        json!({ "color": "blue" }),
        json!({ "color": null }),
        json!({ "code": "A" }),
        json!({ "code": "abcdef" }),
        json!({ "code": "" }),
        json!({ "ratio": 1 }),
        json!({ "ratio": 1e3 }),
        json!({ "ratio": "1" }),
        json!({ "ready": "yes" }),
        json!({ "port": 80 }),
        json!({ "port": "http" }),
        json!({ "port": true }),
        json!({ "maybe": null }),
        json!({ "when": "2001-02-03T04:05:06Z" }),
        json!({ "when": "yesterday" }),
        json!({ "blob": "AA==" }),
        json!({ "blob": "!" }),
        json!({ "any": { "x": [1, { "y": null }] } }),
        json!({ "tags": ["a", "b"] }),
        json!({ "tags": ["a", "a"] }),
        json!({ "tags": ["a", "b", "c", "d"] }),
        json!({ "tags": "a" }),
        json!({ "tags": [1] }),
        json!({ "labels": { "a": "b", "c": null } }),
        json!({ "labels": { "a": 1 } }),
        json!({ "parts": [{ "name": "a" }, { "name": "b", "count": 2 }] }),
        json!({ "parts": [{ "name": "a" }, { "name": "a" }] }),
        json!({ "parts": [{ "count": 1 }] }),
        json!({ "parts": [null] }),
        json!({ "one": { "a": "x" } }),
        json!({ "one": { "a": "x", "b": "y" } }),
        json!({ "one": {} }),
        json!({ "unknown": 1, "size": 1 }),
        json!({ "size": "x", "code": "A", "tags": ["a", "a"] }),
    ];
    for spec in specs {
        theme.post(&create, with(spec));
    }
    theme.post(
        &create,
        json!({ "apiVersion": "schemas.example.com/v1", "kind": "Widget", "metadata": { "name": "w" } }),
    );
    theme.post(&create, json!({ "kind": "Widget", "metadata": { "name": "w" }, "spec": {} }));
    theme.post(
        &create,
        json!({ "apiVersion": "schemas.example.com/v1", "metadata": { "name": "w" }, "spec": {} }),
    );
    theme.post(&create, json!({ "apiVersion": "schemas.example.com/v2", "kind": "Widget", "metadata": { "name": "w" }, "spec": {} }));
    theme.post(&create, json!({ "apiVersion": "schemas.example.com/v1", "kind": "Gadget", "metadata": { "name": "w" }, "spec": {} }));
    theme.post(&format!("{create}&fieldValidation=Strict"), with(json!({ "unknown": 1 })));
    theme.post(&format!("{create}&fieldValidation=Strict"), r#"{"apiVersion":"schemas.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1,"size":2}}"#);
    theme.post(&create, "apiVersion: schemas.example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 1, size: 2, port: 0x10}\n").sent_as(YAML);
    theme
        .post(
            &create,
            "apiVersion: schemas.example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {code: yes}\n",
        )
        .sent_as(YAML);
    let mut full = with(
        json!({ "size": 5, "when": "2001-02-03T04:05:06Z", "parts": [{ "name": "p" }, { "name": "q" }] }),
    );
    full["status"] = json!({ "phase": "dropped" });
    theme.post(all, full).keep("w");
    theme.get(all).accept(TABLE);
    theme.get(&format!("{all}?includeObject=Object")).accept(TABLE);
    theme.get(&format!("{all}?fieldSelector=spec.size%3D5"));
    let one = format!("{all}/w");
    theme.patch(&one, STRATEGIC, "{}");
    theme.patch(&one, MERGE, r#"{"spec":{"size":"x"}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"size":6}}"#);
    theme.patch(&one, MERGE, r#"{"spec":{"color":null,"unknown":1}}"#);
    theme.patch(&format!("{one}?fieldValidation=Strict"), MERGE, r#"{"spec":{"unknown":1}}"#);
    theme.patch(&one, PATCH, r#"[{"op":"add","path":"/spec/parts/-","value":{"name":"r"}}]"#);
    theme.patch(&one, PATCH, r#"[{"op":"add","path":"/spec/parts/-","value":{"name":"r"}}]"#);
    theme.patch(&one, PATCH, r#"[{"op":"replace","path":"/spec/size","value":-3}]"#);
    theme.patch(&one, MERGE, r#"{"status":{"phase":"ignored"}}"#);
    theme.patch(&one, MERGE, r#"{"metadata":{"generation":77}}"#);
    theme.patch(&one, MERGE, r#"{"spec":null}"#);
    theme.patch(&one, MERGE, r#"{"apiVersion":"schemas.example.com/v2"}"#);
    theme.put(&one, with(json!({ "size": 7 })));
    theme.get(&one).keep("w");
    let mut replaced = with(json!({ "size": 7 }));
    replaced["metadata"]["resourceVersion"] = "<<w/metadata/resourceVersion>>".into();
    theme.put(&one, &replaced).keep("w");
    theme.put(&one, &replaced);
    theme.get(&one);
}

fn status(theme: &mut Theme) {
    let one = "/apis/schemas.example.com/v1/namespaces/$NS/widgets/w";
    let status = format!("{one}/status");
    theme.get(&status);
    theme.patch(&status, MERGE, r#"{"status":{"phase":"Ready","seen":1}}"#);
    theme.patch(&status, MERGE, r#"{"status":{"seen":"x"}}"#);
    theme.patch(&status, MERGE, r#"{"spec":{"size":9},"metadata":{"labels":{"a":"b"}}}"#);
    theme.patch(&status, PATCH, r#"[{"op":"replace","path":"/status/phase","value":"Done"}]"#);
    theme.get(one).keep("w");
    theme.put(
        &status,
        json!({
            "apiVersion": "schemas.example.com/v1", "kind": "Widget",
            "metadata": { "name": "w", "resourceVersion": "<<w/metadata/resourceVersion>>" },
            "spec": { "size": 99 }, "status": { "phase": "Put" },
        }),
    );
    theme.put(&status, json!({
        "apiVersion": "schemas.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "status": {},
    }));
    theme.post(&status, "{}");
    theme.delete(&status);
    theme.get(&status).accept(TABLE);
    theme.get(&format!("{one}/other"));
    theme.patch(&status, "application/apply-patch+yaml", "{}");
    theme.patch(&format!("{status}?fieldManager=s&force=true"), "application/apply-patch+yaml", json!({
        "apiVersion": "schemas.example.com/v1", "kind": "Widget", "metadata": { "name": "w" }, "status": { "phase": "Applied" },
    }));
    theme.get(one);
}

fn evolution(theme: &mut Theme) {
    let one = format!("{DEFINITIONS}/widgets.schemas.example.com");
    for patch in [
        r#"{"spec":{"group":"other.example.com"}}"#,
        r#"{"spec":{"scope":"Cluster"}}"#,
        r#"{"spec":{"names":{"plural":"others"}}}"#,
        r#"{"spec":{"names":{"kind":"Other"}}}"#,
        r#"{"spec":{"versions":[]}}"#,
        r#"{"spec":{"preserveUnknownFields":true}}"#,
        r#"{"status":{"storedVersions":[]}}"#,
    ] {
        theme.patch(&format!("{one}?dryRun=All"), MERGE, patch);
    }
    theme.patch(&format!("{one}/status?dryRun=All"), MERGE, r#"{"status":{"storedVersions":[]}}"#);
    theme.patch(&format!("{one}/status?dryRun=All"), MERGE, r#"{"status":{"storedVersions":["v0"]}}"#);
    theme.get(&format!("{one}/status"));
    theme.get(&one).accept(TABLE);
    // In the order of who wrote first, which is luck.
    theme.get(&one).accept(YAML).head_only();
    theme.patch(&one, JSON, "{}");
    theme.get("/apis/schemas.example.com");
    theme.get("/apis/schemas.example.com/v1");
    theme.get("/apis/schemas.example.com/v2");
    theme.get("/apis/schemas.example.com/v1/widgets?labelSelector=none");
    theme.delete("/apis/schemas.example.com/v1/widgets");
    theme.delete("/apis/schemas.example.com/v1/namespaces/$NS/widgets/w");
}
