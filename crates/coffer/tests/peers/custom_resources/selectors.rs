//! Field selectors on declared fields.

use super::{DEFINITIONS, JSON, MERGE, Request};

pub(super) const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shirts.select.example.com}
spec:
  group: select.example.com
  scope: Namespaced
  names: {plural: shirts, kind: Shirt}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string}
              hue: {type: string}
              quantity: {type: integer, default: 1}
              branded: {type: boolean}
    selectableFields: [{jsonPath: .spec.color}, {jsonPath: .spec.quantity}, {jsonPath: .spec.branded}]
  - name: v1beta1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {hue: {type: string}}}
    selectableFields: [{jsonPath: .spec.hue}]
";

pub(super) const SHIRTS: &str = "/apis/select.example.com/v1beta1/namespaces/default/shirts";

pub(super) const DIFFERENCES: &[(&str, &str)] = &[];

macro_rules! shirts {
    ($query:literal) => {
        concat!("/apis/select.example.com/v1/namespaces/default/shirts", $query)
    };
}

macro_rules! beta {
    ($query:literal) => {
        concat!("/apis/select.example.com/v1beta1/namespaces/default/shirts", $query)
    };
}

/// In the order in which they are sent.
pub(super) const REQUESTS: &[Request] = &[
    (
        "POST",
        shirts!(""),
        JSON,
        r#"{"apiVersion":"select.example.com/v1","kind":"Shirt","metadata":{"name":"a"},"spec":{"color":"blue","quantity":2,"branded":true}}"#,
    ),
    (
        "POST",
        shirts!(""),
        JSON,
        r#"{"apiVersion":"select.example.com/v1","kind":"Shirt","metadata":{"name":"b"},"spec":{"color":"blue","branded":false}}"#,
    ),
    (
        "POST",
        shirts!(""),
        JSON,
        r#"{"apiVersion":"select.example.com/v1","kind":"Shirt","metadata":{"name":"c"},"spec":{"hue":"red"}}"#,
    ),
    ("GET", shirts!("?fieldSelector=spec.color=blue"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.color!=blue"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.color="), "", ""),
    ("GET", shirts!("?fieldSelector=spec.quantity=1"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.quantity=2,spec.color=blue"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.branded=false&resourceVersion=0"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.color=blue&limit=1"), "", ""),
    ("GET", beta!("?fieldSelector=spec.hue=red"), "", ""),
    ("GET", beta!("?fieldSelector=spec.hue!=red"), "", ""),
    ("GET", "/apis/select.example.com/v1/shirts?fieldSelector=spec.color=blue", "", ""),
    ("GET", shirts!("?fieldSelector=spec.nothing=x"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.hue=x"), "", ""),
    ("GET", beta!("?fieldSelector=spec.color=x"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.nothing=x&watch=1&timeoutSeconds=1"), "", ""),
    ("GET", shirts!("?fieldSelector=spec.color=blue&watch=1&timeoutSeconds=1"), "", ""),
    ("GET", beta!("?fieldSelector=spec.hue=red&watch=1&timeoutSeconds=1"), "", ""),
    ("DELETE", shirts!("?fieldSelector=spec.nothing=x"), "", ""),
    ("PATCH", shirts!("/b"), MERGE, r#"{"spec":{"color":"green"}}"#),
    ("GET", shirts!("?fieldSelector=spec.color=blue"), "", ""),
    ("DELETE", shirts!("?fieldSelector=spec.color=blue"), "", ""),
    ("GET", shirts!(""), "", ""),
    // What may be declared.
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hats.select.example.com"},"spec":{"group":"select.example.com","scope":"Cluster","names":{"plural":"hats","kind":"Hat"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"}}}},"selectableFields":[{"jsonPath":".a"}]},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"}}}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hats.select.example.com"},"spec":{"group":"select.example.com","scope":"Cluster","names":{"plural":"hats","kind":"Hat"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object","additionalProperties":{"type":"string"}},"n":{"type":"number"},"l":{"type":"array","items":{"type":"string"}}}}},"selectableFields":[{"jsonPath":".b"},{"jsonPath":".a"},{"jsonPath":".a"},{"jsonPath":".o"},{"jsonPath":".n"},{"jsonPath":"a"},{"jsonPath":""},{"jsonPath":"."},{"jsonPath":".l[0]"},{"jsonPath":".o.x"},{"jsonPath":".metadata.name"},{"jsonPath":".a]"}]}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"hats.select.example.com"},"spec":{"group":"select.example.com","scope":"Cluster","names":{"plural":"hats","kind":"Hat"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"},"e":{"type":"string"},"f":{"type":"string"},"g":{"type":"string"},"h":{"type":"string"},"i":{"type":"string"}}}},"selectableFields":[{"jsonPath":".a"},{"jsonPath":".b"},{"jsonPath":".c"},{"jsonPath":".d"},{"jsonPath":".e"},{"jsonPath":".f"},{"jsonPath":".g"},{"jsonPath":".h"},{"jsonPath":".i"}]},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
];
