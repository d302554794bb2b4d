//! The kinds of the test: what their objects look like, and the definition of the custom one.

use serde_json::{Value, json};

use crate::generate::Shape;

/// A kind, and how its objects are made.
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// Everything but metadata and status.
    pub(crate) body: Shape,
    pub(crate) status: Option<Shape>,
}

fn one(values: &[Value]) -> Shape {
    Shape::One(values.to_vec())
}

fn text() -> Shape {
    one(&[json!("x"), json!("y"), json!("")])
}

fn bytes() -> Shape {
    one(&[json!("MQ=="), json!("Mg=="), json!("")])
}

fn flag() -> Shape {
    one(&[json!(true), json!(false)])
}

fn map(of: Shape) -> Shape {
    Shape::Map(&["a", "b", "c"], Box::new(of))
}

fn keyed(key: &'static str, of: Shape) -> Shape {
    Shape::Keyed(vec![(key, vec![json!("a"), json!("b"), json!("c")])], Box::new(of))
}

/// Metadata as writers set it.
pub(crate) fn metadata() -> Shape {
    let owner = Shape::Keyed(
        vec![("uid", vec![json!("1"), json!("2")])],
        Box::new(Shape::Struct(vec![
            ("apiVersion", one(&[json!("v1")])),
            ("kind", one(&[json!("Pod"), json!("Node")])),
            ("name", text()),
            ("controller", flag()),
        ])),
    );
    Shape::Struct(vec![
        ("labels", map(text())),
        ("annotations", map(text())),
        ("finalizers", Shape::Set(&["a.b/c", "d.e/f", "g.h/i"])),
        ("ownerReferences", owner),
    ])
}

pub(crate) fn kinds() -> Vec<Kind> {
    vec![secret(), config_map(), service_account(), pod(), widget()]
}

fn secret() -> Kind {
    let body = Shape::Struct(vec![
        ("data", map(bytes())),
        ("stringData", map(text())),
        ("type", one(&[json!("Opaque"), json!("x/y")])),
        ("immutable", flag()),
    ]);
    Kind { api_version: "v1", kind: "Secret", body, status: None }
}

fn config_map() -> Kind {
    let body = Shape::Struct(vec![
        ("data", map(text())),
        ("binaryData", Shape::Map(&["d", "e"], Box::new(bytes()))),
        ("immutable", flag()),
    ]);
    Kind { api_version: "v1", kind: "ConfigMap", body, status: None }
}

fn service_account() -> Kind {
    let body = Shape::Struct(vec![
        ("secrets", keyed("name", Shape::Struct(vec![("namespace", text())]))),
        ("imagePullSecrets", keyed("name", Shape::Struct(vec![]))),
        ("automountServiceAccountToken", flag()),
    ]);
    Kind { api_version: "v1", kind: "ServiceAccount", body, status: None }
}

fn pod() -> Kind {
    let ports = Shape::Keyed(
        vec![
            ("containerPort", vec![json!(80), json!(443)]),
            ("protocol", vec![json!("TCP"), json!("UDP"), json!(null)]),
        ],
        Box::new(Shape::Struct(vec![("name", text()), ("hostPort", one(&[json!(1), json!(0)]))])),
    );
    let env = keyed(
        "name",
        Shape::Struct(vec![
            ("value", text()),
            (
                "valueFrom",
                Shape::Struct(vec![(
                    "secretKeyRef",
                    Shape::Struct(vec![("name", text()), ("key", text()), ("optional", flag())]),
                )]),
            ),
        ]),
    );
    let probe = Shape::Struct(vec![(
        "httpGet",
        Shape::Struct(vec![("port", one(&[json!(80), json!("http")])), ("path", text())]),
    )]);
    let quantities = || {
        let amounts = one(&[json!("1"), json!("1000m"), json!("2Gi"), json!("0.5")]);
        Shape::Map(&["cpu", "memory"], Box::new(amounts))
    };
    let container = Shape::Struct(vec![
        ("image", text()),
        ("args", Shape::List(Box::new(text()))),
        ("env", env),
        ("ports", ports),
        ("resources", Shape::Struct(vec![("limits", quantities()), ("requests", quantities())])),
        (
            "volumeMounts",
            Shape::Keyed(
                vec![("mountPath", vec![json!("/a"), json!("/b")])],
                Box::new(Shape::Struct(vec![("name", text()), ("readOnly", flag())])),
            ),
        ),
        ("livenessProbe", probe),
        ("securityContext", Shape::Struct(vec![("runAsUser", one(&[json!(0), json!(1000)]))])),
    ]);
    let volume = Shape::Struct(vec![
        (
            "secret",
            Shape::Struct(vec![("secretName", text()), ("defaultMode", one(&[json!(420), json!(256)]))]),
        ),
        ("emptyDir", Shape::Struct(vec![("medium", text())])),
    ]);
    let spread = Shape::Keyed(
        vec![
            ("topologyKey", vec![json!("zone"), json!("host")]),
            ("whenUnsatisfiable", vec![json!("DoNotSchedule"), json!("ScheduleAnyway")]),
        ],
        Box::new(Shape::Struct(vec![
            ("maxSkew", one(&[json!(1), json!(2)])),
            ("labelSelector", Shape::Struct(vec![("matchLabels", map(text()))])),
        ])),
    );
    let spec = Shape::Struct(vec![
        ("containers", keyed("name", container)),
        ("volumes", keyed("name", volume)),
        ("nodeSelector", map(text())),
        ("tolerations", Shape::List(Box::new(Shape::Struct(vec![("key", text()), ("operator", text())])))),
        ("topologySpreadConstraints", spread),
        ("securityContext", Shape::Struct(vec![("fsGroup", one(&[json!(1), json!(2)]))])),
        ("hostNetwork", flag()),
        ("imagePullSecrets", keyed("name", Shape::Struct(vec![]))),
        ("terminationGracePeriodSeconds", one(&[json!(0), json!(30)])),
    ]);
    let status = Shape::Struct(vec![
        ("phase", text()),
        (
            "conditions",
            Shape::Keyed(
                vec![("type", vec![json!("Ready"), json!("Initialized")])],
                Box::new(Shape::Struct(vec![("status", one(&[json!("True"), json!("False")]))])),
            ),
        ),
    ]);
    Kind { api_version: "v1", kind: "Pod", body: Shape::Struct(vec![("spec", spec)]), status: Some(status) }
}

fn widget() -> Kind {
    let ports = Shape::Keyed(
        vec![("port", vec![json!(1), json!(2)]), ("protocol", vec![json!("tcp"), json!("udp"), json!(null)])],
        Box::new(Shape::Struct(vec![("weight", one(&[json!(1), json!(1.5), json!(2)]))])),
    );
    let parts =
        keyed("n", Shape::Struct(vec![("v", text()), ("ports", ports), ("tags", Shape::Set(&["p", "q"]))]));
    let free = one(&[
        json!({}),
        json!({"a": 1}),
        json!({"a": {"b": "x"}, "list": [1, 2]}),
        json!({"a": "x", "known": "y"}),
        json!({"list": [3]}),
    ]);
    let anything = one(&[
        json!("x"),
        json!(1),
        json!({"a": {"b": 1}}),
        json!({"a": {"c": 2}}),
        json!([1, "x"]),
        json!([]),
    ]);
    let spec = Shape::Struct(vec![
        ("note", text()),
        ("size", one(&[json!(1), json!("2"), json!(3)])),
        ("count", one(&[json!(0), json!(1), json!(2.5)])),
        ("on", flag()),
        ("when", one(&[json!("2001-01-01T00:00:00Z"), json!("2002-01-01T00:00:00Z")])),
        ("set", Shape::Set(&["x", "y", "z"])),
        ("numbers", Shape::One(vec![json!([1, 2]), json!([2, 3, 1]), json!([]), json!([3])])),
        ("parts", parts),
        ("order", Shape::List(Box::new(text()))),
        ("whole", map(text())),
        ("bag", map(text())),
        ("bags", map(Shape::Struct(vec![("x", text()), ("set", Shape::Set(&["m", "n"]))]))),
        ("free", free),
        ("anything", anything),
        ("deep", Shape::Struct(vec![("deeper", Shape::Struct(vec![("x", text()), ("y", text())]))])),
        ("turn", Shape::Struct(vec![("a", text()), ("b", text())])),
        ("turns", keyed("n", Shape::Struct(vec![("v", text())]))),
    ]);
    let status = Shape::Struct(vec![(
        "conditions",
        Shape::Keyed(
            vec![("type", vec![json!("Ready"), json!("Synced")])],
            Box::new(Shape::Struct(vec![("status", one(&[json!("True"), json!("False")]))])),
        ),
    )]);
    Kind {
        api_version: "example.com/v1",
        kind: "Widget",
        body: Shape::Struct(vec![("spec", spec)]),
        status: Some(status),
    }
}

/// The schema of a Widget. What turns was granular once and is not any more.
fn schema(turned: bool) -> Value {
    let text = json!({"type": "string"});
    let map_type = if turned { "atomic" } else { "granular" };
    let mut turns = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "required": ["n"], "properties": {"n": text, "v": text}}});
    if turned {
        turns["x-kubernetes-list-type"] = json!("atomic");
        turns.as_object_mut().expect("one").remove("x-kubernetes-list-map-keys");
    }
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "note": text,
            "size": {"x-kubernetes-int-or-string": true},
            "count": {"type": "number"},
            "on": {"type": "boolean"},
            "when": {"type": "string", "format": "date-time"},
            "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "required": ["n"], "properties": {
                    "n": text,
                    "v": text,
                    "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
                    "ports": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {"type": "object", "required": ["port"], "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "tcp"},
                            "weight": {"type": "number"}}}}}}},
            "order": {"type": "array", "items": text},
            "whole": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
            "bag": {"type": "object", "additionalProperties": text},
            "bags": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "x": text,
                "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": text}},
            "anything": {"x-kubernetes-preserve-unknown-fields": true},
            "deep": {"type": "object", "properties": {"deeper": {"type": "object", "properties": {
                "x": text, "y": text}}}},
            "turn": {"type": "object", "x-kubernetes-map-type": map_type, "properties": {"a": text, "b": text}},
            "turns": turns}},
        "status": {"type": "object", "properties": {
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {
                    "type": text, "status": text}}}}}}})
}

/// The definition of Widgets in two versions; the schemas may have turned.
pub(crate) fn definition(turned: bool) -> Value {
    let version = |name: &str, storage: bool, turned: bool| {
        json!({"name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema(turned)}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "conversion": {"strategy": "None"},
            "versions": [version("v1", true, turned), version("v2", false, !turned)]}})
}
