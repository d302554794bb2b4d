//! Server-side apply, well formed and not.

use super::table::{Request, TABLE};

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// In the order in which they are sent, after those of the table.
pub(super) const REQUESTS: &[Request] = &[
    // Options and content types.
    ("PATCH", "/ssa", APPLY, "apiVersion: v1\nkind: Secret\nmetadata: {name: ssa}\n"),
    ("PATCH", "/ssa?fieldManager=", APPLY, "{}"),
    ("PATCH", "/ssa?fieldManager=one&force=maybe", APPLY, "{}"),
    ("PATCH", "/a?force=true", MERGE, "{}"),
    ("PATCH", "/a?force=false", MERGE, "{}"),
    ("PATCH", "/ssa?fieldManager=one", "application/apply-patch+cbor", "{}"),
    ("PATCH", "/ssa?fieldManager=one", "application/apply-patch+json", "{}"),
    (
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/requests/leases/l?fieldManager=one",
        "application/apply-patch+cbor",
        "{}",
    ),
    // Bodies.
    ("PATCH", "/ssa?fieldManager=one", APPLY, ""),
    ("PATCH", "/ssa?fieldManager=one", APPLY, "null"),
    ("PATCH", "/ssa?fieldManager=one", APPLY, "{}"),
    ("PATCH", "/ssa?fieldManager=one", APPLY, r#"{"apiVersion":"v1"}"#),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v2","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa"}}"#,
    ),
    ("PATCH", "/ssa?fieldManager=one", APPLY, r#"{"apiVersion":"a/b/c","kind":"Secret"}"#),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","managedFields":[]}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","managedFields":[{"manager":"x"}]}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","namespace":"default"}}"#,
    ),
    ("PATCH", "/ssa?fieldManager=one", APPLY, r#"{"apiVersion":"v1","kind":"Secret","bogus":1}"#),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","bogus":1}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","uid":"00000000-0000-0000-0000-000000000000"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","resourceVersion":"7"}}"#,
    ),
    (
        "PATCH",
        "/Bad?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"Bad"}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/nowhere/secrets/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    // Creation, with and without writing.
    (
        "PATCH",
        "/ssa?fieldManager=one&dryRun=All",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"a":"MQ=="}}"#,
    ),
    ("GET", "/ssa", JSON, ""),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ssa\n  labels: {l: v}\ndata:\n  a: MQ==\n  b: Mg==\n",
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ssa\n  labels: {l: v}\ndata:\n  a: MQ==\n  b: Mg==\n",
    ),
    // Duplicate keys.
    (
        "PATCH",
        "/ssa?fieldManager=one&fieldValidation=Strict",
        APPLY,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ssa\n  name: ssa\ndata:\n  a: MQ==\n  b: Mg==\n",
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one&fieldValidation=Ignore",
        APPLY,
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: ssa\n  labels: {l: v}\ndata:\n  a: MQ==\n  b: Mg==\n  b: Mg==\n",
    ),
    // Conflicts.
    (
        "PATCH",
        "/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"a":"Mw=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","labels":{"l":"w"}},"data":{"a":"Mw==","b":"Mw=="}}"#,
    ),
    ("PATCH", "/ssa?fieldManager=edit", MERGE, r#"{"data":{"c":"Mw=="}}"#),
    (
        "PATCH",
        "/ssa?fieldManager=two&dryRun=All",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"a":"Mw==","c":"NA=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=two&dryRun=All&force=true",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"a":"Mw==","c":"NA=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=two&force=true",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"a":"Mw==","c":"NA=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=three",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    // What the write functions of a kind do with it: Secrets turn text into data.
    (
        "PATCH",
        "/ssa?fieldManager=ta",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"stringData":{"t":"x"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=ta",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"stringData":{"u":"y"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=tb",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"stringData":{"u":"z"}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=tc",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"type":"x/y"}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=td",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"n":null}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=td",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":null}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=te",
        APPLY,
        "apiVersion: v1\nkind: Secret\nmetadata: {name: ssa}\nstringData: {yes: a}\n---\nkind: Nothing\n",
    ),
    // Preconditions in what is applied.
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","resourceVersion":"1"},"data":{"a":"NQ=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","resourceVersion":"x"},"data":{"z":"NQ=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa","uid":"00000000-0000-0000-0000-000000000000"},"data":{"z":"NQ=="}}"#,
    ),
    // Managed fields of other writes.
    ("PATCH", "/ssa?fieldManager=reset", MERGE, r#"{"metadata":{"managedFields":[{}]}}"#),
    ("PATCH", "/ssa?fieldManager=after", MERGE, r#"{"data":{"after":"MQ=="}}"#),
    (
        "PATCH",
        "/ssa?fieldManager=first",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"},"data":{"after":"MQ==","own":"MQ=="}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=set",
        MERGE,
        r#"{"metadata":{"managedFields":[{"manager":"me","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:own":{}}}}]}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=bad",
        MERGE,
        r#"{"metadata":{"managedFields":[{"manager":"me","operation":"Never","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{}}]}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=bad",
        MERGE,
        r#"{"metadata":{"managedFields":[{"manager":"me","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"bad":{}}}]}}"#,
    ),
    (
        "PATCH",
        "/ssa?fieldManager=me",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"ssa"}}"#,
    ),
    ("GET", "/ssa", JSON, ""),
    // Other kinds.
    (
        "PATCH",
        "/api/v1/namespaces/requests/configmaps/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa","finalizers":["a.b/c"]},"data":{"a":"1"},"binaryData":{"b":"MQ=="}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/requests/configmaps/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa","finalizers":["a.b/d"]},"data":{"a":"1"}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/requests/configmaps/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa"}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/requests/configmaps/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ssa"}}"#,
    ),
    (
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/requests/leases/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"ssa"},"spec":{"holderIdentity":"me","leaseDurationSeconds":5}}"#,
    ),
    (
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/requests/leases/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"ssa"},"spec":{"holderIdentity":"you"}}"#,
    ),
    (
        "PATCH",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/requests/roles/ssa?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"ssa"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}"#,
    ),
    (
        "PATCH",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/requests/roles/ssa?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"ssa"},"rules":[]}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/requests?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"requests","labels":{"x":"y"}}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/requests/status?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"requests"},"status":{"conditions":[{"type":"T","status":"True","lastTransitionTime":"2001-01-01T00:00:00Z"}]}}"#,
    ),
    (
        "PATCH",
        "/api/v1/namespaces/nowhere/status?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"nowhere"}}"#,
    ),
    (
        "PATCH",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gizmos.example.com?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gizmos.example.com"},"spec":{"names":{"plural":"gizmos","kind":"Gizmo","shortNames":["gi"]}}}"#,
    ),
    // A custom resource without a schema to speak of.
    (
        "PATCH",
        "/apis/example.com/v3/gizmos/g?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"example.com/v3","kind":"Gizmo","metadata":{"name":"g","labels":{"l":"v"}}}"#,
    ),
    (
        "PATCH",
        "/apis/example.com/v3/gizmos/g?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"example.com/v1beta1","kind":"Gizmo","metadata":{"name":"g"}}"#,
    ),
    (
        "PATCH",
        "/apis/example.com/v1beta1/gizmos/g?fieldManager=two",
        APPLY,
        r#"{"apiVersion":"example.com/v1beta1","kind":"Gizmo","metadata":{"name":"g","labels":{"l":"w"}}}"#,
    ),
    (
        "PATCH",
        "/apis/example.com/v1beta1/gizmos/g?fieldManager=two&force=true",
        APPLY,
        r#"{"apiVersion":"example.com/v1beta1","kind":"Gizmo","metadata":{"name":"g","labels":{"l":"w"}}}"#,
    ),
    ("PATCH", "/apis/example.com/v3/gizmos/g?fieldManager=one", "application/apply-patch+cbor", "{}"),
    (
        "PATCH",
        "/apis/example.com/v3/gizmos/g?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"example.com/v3","kind":"Gizmo","metadata":{"name":"g","labels":"none"}}"#,
    ),
    (
        "PATCH",
        "/apis/example.com/v3/gizmos/g?fieldManager=one",
        APPLY,
        r#"{"apiVersion":"example.com/v3","kind":"Gizmo","metadata":{"name":"g"},"spec":{"x":1}}"#,
    ),
    // By now the definition is established.
    (
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dgizmos.example.com&includeObject=None",
        TABLE,
        "",
    ),
];
