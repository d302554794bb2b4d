//! The `scale` subresource.

use super::{APPLY, JSON, MERGE, PARTIAL, PATCH, Request, STRATEGIC, TABLE, YAML};

pub(super) const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.scale.example.com}
spec:
  group: scale.example.com
  scope: Namespaced
  names: {plural: gears, singular: gear, kind: Gear}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer}, note: {type: string}}}
          status: {type: object, properties: {replicas: {type: integer}, selector: {type: string}}}
";

pub(super) const GEARS: &str = "/apis/scale.example.com/v1/namespaces/default/gears";

const UNOWNED: &str =
    "upstream's field manager cannot make a Scale of a custom resource out of nothing; Coffer applies it";
const UNREADABLE: &str = "upstream cannot word its refusal of a body; Coffer says what is wrong with it";
const BODY: &str = "upstream prints what was sent and what is stored; Coffer never does";

pub(super) const DIFFERENCES: &[(&str, &str)] = &[
    (
        r#"PATCH /apis/scale.example.com/v1/namespaces/default/gears/a/scale?fieldManager=applier application/apply-patch+yaml {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":4}}"#,
        UNOWNED,
    ),
    (
        r#"PATCH /apis/scale.example.com/v1/namespaces/default/gears/c/scale?fieldManager=scaler&force=true application/apply-patch+yaml {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"c"},"spec":{"replicas":5}}"#,
        UNOWNED,
    ),
    (
        r#"PATCH /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/merge-patch+json {"spec":{"replicas":3000000000}}"#,
        BODY,
    ),
    (
        r#"PATCH /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/merge-patch+json {"spec":{"replicas":"x"}}"#,
        BODY,
    ),
    (
        r#"PATCH /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/merge-patch+json {"apiVersion":"apps/v1"}"#,
        BODY,
    ),
    (
        r#"PUT /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/json {"apiVersion":"autoscaling/v2","kind":"Scale","metadata":{"name":"b"},"spec":{"replicas":8}}"#,
        UNREADABLE,
    ),
    (
        r#"PUT /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/json {"apiVersion":"autoscaling/v1","kind":"Scales","metadata":{"name":"b"},"spec":{"replicas":8}}"#,
        UNREADABLE,
    ),
    ("PUT /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/json x", UNREADABLE),
    ("PUT /apis/scale.example.com/v1/namespaces/default/gears/b/scale application/json", UNREADABLE),
    (
        r#"PUT /apis/scale.example.com/v1/namespaces/default/gears/b/scale?fieldValidation=Strict application/json {"metadata":{"name":"b"},"spec":{"replicas":9,"more":1}}"#,
        UNREADABLE,
    ),
];

const A: &str = "/apis/scale.example.com/v1/namespaces/default/gears/a/scale";
const B: &str = "/apis/scale.example.com/v1/namespaces/default/gears/b/scale";

/// In the order in which they are sent.
pub(super) const REQUESTS: &[Request] = &[
    ("GET", "/apis/scale.example.com/v1", "", ""),
    // An object that does not say how many are wanted.
    (
        "POST",
        "/apis/scale.example.com/v1/namespaces/default/gears?fieldManager=maker",
        JSON,
        r#"{"apiVersion":"scale.example.com/v1","kind":"Gear","metadata":{"name":"a"},"spec":{"note":"x"}}"#,
    ),
    ("GET", A, "", ""),
    ("PATCH", A, MERGE, r#"{"metadata":{"labels":{"a":"b"}}}"#),
    ("PATCH", A, PATCH, r#"[{"op":"test","path":"/spec/replicas","value":1}]"#),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/a/scale?fieldManager=scaler",
        MERGE,
        r#"{"spec":{"replicas":3}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/a", "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/a/scale?fieldManager=applier",
        APPLY,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":4}}"#,
    ),
    // One that does.
    (
        "POST",
        "/apis/scale.example.com/v1/namespaces/default/gears?fieldManager=maker",
        JSON,
        r#"{"apiVersion":"scale.example.com/v1","kind":"Gear","metadata":{"name":"b"},"spec":{"note":"x","replicas":1}}"#,
    ),
    ("GET", B, "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/scale?fieldManager=scaler",
        MERGE,
        r#"{"spec":{"replicas":3}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/b", "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/scale?fieldManager=other",
        MERGE,
        r#"{"spec":{"replicas":3}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/b", "", ""),
    ("PATCH", B, PATCH, r#"[{"op":"replace","path":"/spec/replicas","value":7}]"#),
    ("PATCH", B, PATCH, r#"[{"op":"test","path":"/spec/replicas","value":1}]"#),
    ("PATCH", B, STRATEGIC, "{}"),
    ("PATCH", B, MERGE, r#"{"spec":{"replicas":-5}}"#),
    ("PATCH", B, MERGE, r#"{"spec":{"replicas":3000000000}}"#),
    ("PATCH", B, MERGE, r#"{"spec":{"replicas":"x"}}"#),
    ("PATCH", B, MERGE, r#"{"metadata":{"resourceVersion":"1"}}"#),
    ("PATCH", B, MERGE, r#"{"metadata":{"name":"zz"}}"#),
    ("PATCH", B, MERGE, r#"{"bogus":1}"#),
    ("PATCH", B, MERGE, r#"{"status":{"replicas":9}}"#),
    ("PATCH", B, MERGE, r#"{"apiVersion":"apps/v1"}"#),
    ("PATCH", B, MERGE, r#"{"spec":null}"#),
    ("GET", B, "", ""),
    (
        "PUT",
        B,
        JSON,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"b"},"spec":{"replicas":8}}"#,
    ),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b"},"spec":{"replicas":9}}"#),
    ("PUT", B, YAML, "metadata: {name: b}\nspec: {replicas: 10}\n"),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b"}}"#),
    ("PUT", B, JSON, r#"{"spec":{"replicas":9}}"#),
    ("PUT", B, JSON, r#"{"metadata":{"name":"c"},"spec":{"replicas":9}}"#),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b","namespace":"other"},"spec":{"replicas":9}}"#),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b","resourceVersion":"1"},"spec":{"replicas":8}}"#),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b","uid":"x"},"spec":{"replicas":8}}"#),
    ("PUT", B, JSON, r#"{"metadata":{"name":"b"},"spec":{"replicas":-1}}"#),
    (
        "PUT",
        B,
        JSON,
        r#"{"apiVersion":"autoscaling/v2","kind":"Scale","metadata":{"name":"b"},"spec":{"replicas":8}}"#,
    ),
    (
        "PUT",
        B,
        JSON,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scales","metadata":{"name":"b"},"spec":{"replicas":8}}"#,
    ),
    ("PUT", B, JSON, "x"),
    ("PUT", B, JSON, ""),
    (
        "PUT",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/scale?fieldValidation=Strict",
        JSON,
        r#"{"metadata":{"name":"b"},"spec":{"replicas":9,"more":1}}"#,
    ),
    (
        "PUT",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/scale?dryRun=All",
        JSON,
        r#"{"metadata":{"name":"b"},"spec":{"replicas":12}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/b", "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/status",
        MERGE,
        r#"{"status":{"replicas":-2}}"#,
    ),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/b/status",
        MERGE,
        r#"{"status":{"replicas":2,"selector":"a=b"}}"#,
    ),
    ("GET", B, "", ""),
    ("GET", B, TABLE, ""),
    ("GET", B, PARTIAL, ""),
    ("GET", B, YAML, ""),
    ("GET", B, "text/html", ""),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/b/scale?resourceVersion=0", "", ""),
    ("DELETE", B, "", ""),
    ("POST", B, JSON, "{}"),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/none/scale", "", ""),
    (
        "PUT",
        "/apis/scale.example.com/v1/namespaces/default/gears/none/scale",
        JSON,
        r#"{"metadata":{"name":"none"}}"#,
    ),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/none/scale?fieldManager=x",
        APPLY,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"none"},"spec":{"replicas":8}}"#,
    ),
    (
        "POST",
        "/apis/scale.example.com/v1/namespaces/default/gears",
        JSON,
        r#"{"apiVersion":"scale.example.com/v1","kind":"Gear","metadata":{"name":"e"},"spec":{"replicas":-1}}"#,
    ),
    (
        "POST",
        "/apis/scale.example.com/v1/namespaces/default/gears",
        JSON,
        r#"{"apiVersion":"scale.example.com/v1","kind":"Gear","metadata":{"name":"e"},"spec":{"replicas":3000000000}}"#,
    ),
    // An applier owns the number, and loses it.
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/c?fieldManager=applier",
        APPLY,
        r#"{"apiVersion":"scale.example.com/v1","kind":"Gear","metadata":{"name":"c"},"spec":{"note":"x","replicas":1}}"#,
    ),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/c/scale?fieldManager=scaler",
        APPLY,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"c"},"spec":{"replicas":5}}"#,
    ),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/c/scale?fieldManager=scaler",
        APPLY,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"c"},"spec":{"replicas":1}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/c", "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/c/scale?fieldManager=merger",
        MERGE,
        r#"{"spec":{"replicas":3}}"#,
    ),
    ("GET", "/apis/scale.example.com/v1/namespaces/default/gears/c", "", ""),
    (
        "PATCH",
        "/apis/scale.example.com/v1/namespaces/default/gears/c/scale?fieldManager=scaler&force=true",
        APPLY,
        r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"c"},"spec":{"replicas":5}}"#,
    ),
];
