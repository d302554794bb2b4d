//! What values are taken: formats, lists, nulls, objects within objects; and what is told of them.

use super::{DEFINITIONS, JSON, MERGE, Request};

pub(super) const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.values.example.com}
spec:
  group: values.example.com
  scope: Cluster
  names: {plural: lamps, kind: Lamp, categories: [lights]}
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
              id: {type: string, format: bsonobjectid}
              uri: {type: string, format: uri}
              email: {type: string, format: email}
              host: {type: string, format: hostname}
              mac: {type: string, format: mac}
              isbn: {type: string, format: isbn}
              card: {type: string, format: creditcard}
              ssn: {type: string, format: ssn}
              hex: {type: string, format: hexcolor}
              rgb: {type: string, format: rgbcolor}
              byte: {type: string, format: byte}
              date: {type: string, format: date}
              time: {type: string, format: date-time}
              span: {type: string, format: duration}
              short: {type: string, format: k8s-short-name}
              uuid4: {type: string, format: uuid4}
              cidr: {type: string, format: cidr}
              number: {type: integer, format: int32}
              given: {type: string, default: yes please}
              nullable: {type: string, nullable: true}
              nullableGiven: {type: string, nullable: true, default: x}
              set: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              map:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, port]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, port: {type: integer, default: 80}}
              pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              any: {x-kubernetes-int-or-string: true}
              open: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1alpha1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: better not
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

pub(super) const LAMPS: &str = "/apis/values.example.com/v1alpha1/lamps";

pub(super) const DIFFERENCES: &[(&str, &str)] = &[(
    r#"PATCH /apis/values.example.com/v1/lamps/a?fieldValidation=Strict application/merge-patch+json {"spec":{"unknown":1,"map":[{"name":"x","more":1}]}}"#,
    "upstream prints what is stored; Coffer never does",
)];

const V1: &str = "/apis/values.example.com/v1/lamps";
const A: &str = "/apis/values.example.com/v1/lamps/a";

macro_rules! lamp {
    ($name:literal, $spec:literal) => {
        concat!(
            r#"{"apiVersion":"values.example.com/v1","kind":"Lamp","metadata":{"name":""#,
            $name,
            r#""},"spec":"#,
            $spec,
            "}"
        )
    };
}

/// In the order in which they are sent.
pub(super) const REQUESTS: &[Request] = &[
    (
        "POST",
        V1,
        JSON,
        lamp!("a", r#"{"nullable":null,"nullableGiven":null,"given":null,"set":null,"any":null}"#),
    ),
    ("GET", A, "", ""),
    ("GET", "/apis/values.example.com/v1beta1/lamps/a", "", ""),
    ("GET", "/apis/values.example.com/v1alpha1/lamps/none", "", ""),
    ("GET", "/apis/values.example.com/v1alpha1/lamps/a/none", "", ""),
    ("GET", A, "text/html", ""),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"id":"507f1f77bcf86cd799439011","uri":"http://a.b/c","email":"a@b.c","host":"a.example"}}"#,
    ),
    ("PATCH", A, MERGE, r#"{"spec":{"id":"x","uri":"a.b","email":"a","host":"-a"}}"#),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"mac":"3D:F2:C9:A6:B3:4F","isbn":"3836221195","card":"4111-1111-1111-1111","ssn":"111-22-3333"}}"#,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"mac":"3D:F2","isbn":"3836221196","card":"4111-1111-1111-1112","ssn":"1"}}"#,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r##"{"spec":{"hex":"#fff","rgb":"rgb(1, 2,255)","byte":"YQ==","date":"2026-02-28","time":"2026-02-28T01:02:03Z"}}"##,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r##"{"spec":{"hex":"#ffff","rgb":"rgb(1,2,256)","byte":"Y","date":"2026-02-30","time":"2026-02-28"}}"##,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"span":"3h","short":"a-b","uuid4":"11111111-2222-4333-8444-555555555555","cidr":"10.0.0.0/8","number":7}}"#,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"span":"3 moons","short":"A","uuid4":"11111111-2222-3333-8444-555555555555","cidr":"10.0.0.0","number":"7"}}"#,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"set":["a","b","a"],"map":[{"name":"x"},{"name":"x","port":81},{"name":"x","port":80}]}}"#,
    ),
    ("PATCH", A, MERGE, r#"{"spec":{"set":["a","b"],"map":[{"name":"x"},{"name":"x","port":81}]}}"#),
    ("PATCH", A, MERGE, r#"{"spec":{"map":[{"port":81}]}}"#),
    ("PATCH", A, MERGE, r#"{"spec":{"map":[null,{"name":null}]}}"#),
    ("PATCH", A, MERGE, r#"{"spec":{"any":true}}"#),
    ("PATCH", A, MERGE, r#"{"spec":{"any":"5","open":{"a":{"b":null}},"unknown":1}}"#),
    (
        "PATCH",
        "/apis/values.example.com/v1/lamps/a?fieldValidation=Strict",
        MERGE,
        r#"{"spec":{"unknown":1,"map":[{"name":"x","more":1}]}}"#,
    ),
    ("PATCH", A, MERGE, r#"{"spec":{"pod":{}}}"#),
    ("PATCH", A, MERGE, r#"{"spec":{"pod":{"apiVersion":"a/b/c","kind":"7"}}}"#),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a/b","labels":{"a":"-"}}}}}"#,
    ),
    (
        "PATCH",
        A,
        MERGE,
        r#"{"spec":{"pod":{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"x-"},"extra":[1]}}}"#,
    ),
    ("GET", A, "", ""),
    ("DELETE", A, "", ""),
    // Definitions: remarks and conversions.
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"bulbs.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"bulbs","kind":"Bulb"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string","format":"poem"},"b":{"type":"integer","format":"int33"},"c":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic"}}}}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"wires.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"wires","kind":"Wire"},"conversion":{"strategy":"Webhook"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"wires.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"wires","kind":"Wire"},"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1","v1","0"],"clientConfig":{"url":"http://u@a.b?c=d#e"}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"wires.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"wires","kind":"Wire"},"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v7"],"clientConfig":{"url":"https://a","service":{"name":"a","namespace":"b"}}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"wires.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"wires","kind":"Wire"},"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"name":"","namespace":"","path":"a//b","port":70000}}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
    (
        "POST",
        DEFINITIONS,
        JSON,
        r#"{"metadata":{"name":"wires.values.example.com"},"spec":{"group":"values.example.com","scope":"Cluster","names":{"plural":"wires","kind":"Wire"},"conversion":{"strategy":"None","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://a"}}},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
];
