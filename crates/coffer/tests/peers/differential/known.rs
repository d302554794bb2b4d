//! Where answers may differ: each with its row in COMPATIBILITY.md, and regular expressions of what differs.

/// How many rows there may be.
pub(super) const AT_MOST: usize = 20;

/// One difference.
pub(super) struct Known {
    /// The first cell of its row in COMPATIBILITY.md.
    pub(super) row: &'static str,
    /// The titles of the requests whose answers may differ.
    pub(super) requests: &'static str,
    /// JSON pointers into the answer that may differ.
    pub(super) fields: &'static str,
    /// What kube-apiserver says there; nothing when the field is absent.
    pub(super) theirs: &'static str,
    /// What Coffer says there.
    pub(super) ours: &'static str,
}

const ANY: &str = ".*";

pub(super) const KNOWN: &[Known] = &[
    Known {
        row: "patch whose result does not decode",
        requests: ".*: PATCH .*",
        fields: "/body/message|/body/details/causes/0/message",
        theirs: r#"( "" is invalid: patch: )?Invalid value: ".*"#,
        ours: r#"( "" is invalid: patch: )?Invalid value: "<secret contents redacted>": .*"#,
    },
    Known {
        row: "body of a Secret, token or custom resource that does not decode",
        requests: ANY,
        fields: "/body/message",
        theirs: "the object provided is unrecognized .*",
        ours: "the object provided is unrecognized .*<content redacted>.*",
    },
    Known {
        row: "value in the error of a strategic merge patch",
        requests: ".*: PATCH .*strategic-merge-patch.*",
        fields: "/body/message",
        theirs: r"unknown patch type: .*|The order in patch list.*|map: map\[.*",
        ours: "unknown patch type in map|The order in patch list doesn't match .*|map does not contain .*",
    },
    Known {
        row: "value of the wrong type in an applied object",
        requests: ".*: PATCH .*apply-patch.*",
        fields: "/body/message",
        theirs: "failed to (create typed patch|convert new) object .*",
        ours: r"failed to create typed patch object .*: expected \w+, got .*|illegal base64 data at input byte \d+",
    },
    Known {
        row: "groups, kinds and subresources of the API",
        requests: r"discovery: GET /apis?\b.*|transport: (GET /(apis?/|api/v1/|index.html)|\w+ /apis|GET \S+/pods/x/log)|subresources: POST \S+/bindings .*",
        fields: r"/body/(groups|resources|paths|items/\d+/versions/\d+/resources)|/code|/body/(code|details|message|reason|status|metadata).*",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "OpenAPI documents over HTTP",
        requests: r"(transport|discovery): \w+ /openapi/.*",
        fields: "/headers/(last-modified|vary|etag|content-type|x-content-type-options)(/0)?|/form|/body",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "aggregated discovery in YAML and protobuf",
        requests: r"discovery: GET /apis? \[accept: application/(vnd.kubernetes.protobuf|yaml);g=apidiscovery.*",
        fields: "/form|/headers/.*",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "what a server says of itself",
        requests: r"transport: (GET /version/|POST /metrics|GET /healthz\?verbose.*)",
        fields: "/body(/(buildDate|compiler|gitCommit|gitVersion|gitTreeState|goVersion|platform))?|/headers/content-type/0",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "exact list of a future revision",
        requests: "collections: GET .*resourceVersion=99999999999&resourceVersionMatch=Exact.*",
        fields: "/body/details/retryAfterSeconds|/headers/retry-after",
        theirs: r#"1|\["1"\]"#,
        ours: "",
    },
    Known {
        row: "watch with a `continue` token",
        requests: "watchrefusals: GET .*&continue=x.*",
        fields: "/code|/form|/body.*|/headers/.*",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "watch of PartialObjectMetadataList",
        requests: r"watch\w+: GET .*as=PartialObjectMetadataList.*",
        fields: "/body|/form",
        theirs: r#"\[\]|\[""\]|events|text"#,
        ours: ANY,
    },
    Known {
        row: "JSON and YAML nesting",
        requests: r"transport: POST .*\[\[\[\[.*",
        fields: "/body/message",
        theirs: ".*unexpected end of JSON input.*",
        ours: ".*exceeded max depth.*",
    },
    Known {
        row: "managedFields of a token request",
        requests: r"(subresources|access): POST \S+/token\b.*",
        fields: r"/body/metadata/managedFields/0/fieldsV1/f:spec/f:boundObjectRef(/\.)?",
        theirs: "",
        ours: r"\{\}",
    },
    Known {
        row: "pods",
        requests: "(pods|update|patch): .*/pods.*",
        fields: "/code|/body/.*|/headers/warning",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "invalid definitions and custom resources",
        requests: "(definitions|customresourcedefinitions|widgets): .*",
        fields: "/code|/body/(message|details|code|reason|status/conditions).*|/headers/warning",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "malformed JSON patches",
        requests: "patch: .*json-patch.*",
        fields: "/code|/body/(message|details|code|reason)|/headers/warning",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "selectors and metadata of access reviews",
        requests: "access: POST /apis/authorization.k8s.io/.*",
        fields: "/code|/body/.*",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "words about what does not decode",
        requests: "(validation|apply|collections|access|discovery): .*",
        fields: "/body/message|/body/status/error",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "list that goes on from the cache",
        requests: "collections: GET .*resourceVersion=0&continue=.*",
        fields: "/body/(items|metadata/continue|metadata/remainingItemCount)",
        theirs: ANY,
        ours: ANY,
    },
    Known {
        row: "apply that only drops fields of no owner",
        requests: "applywidgets: PATCH .*",
        fields: "/body/metadata/resourceVersion",
        theirs: "NEW VERSION",
        ours: "LAST VERSION",
    },
];
