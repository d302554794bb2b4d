//! The situations: webhooks, and requests that they are asked about.

/// Webhooks of one namespace and what is asked there.
pub(super) struct Situation {
    /// Its namespace and the name of its configurations.
    pub(super) name: &'static str,
    /// The webhooks: their phase, the path of their behaviour, and fields that are not the usual ones.
    pub(super) hooks: &'static str,
    /// Method, path below the namespace (or from the root, with a `/`), content type and body.
    pub(super) requests: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

impl Situation {
    pub(super) fn path(&self, path: &str) -> String {
        match path.strip_prefix('/') {
            Some(_) => path.to_owned(),
            None => match path.split_once(':') {
                Some((api, rest)) => format!("/apis/{api}/namespaces/{}/{rest}", self.name),
                None => format!("/api/v1/namespaces/{}/{path}", self.name),
            },
        }
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Two versions that nothing converts, with both subresources.
pub(super) const DEFINITIONS: &[&str] = &[r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "stages.hook.example.com"},
    "spec": {"group": "hook.example.com", "scope": "Namespaced", "names": {"plural": "stages", "kind": "Stage"},
        "versions": [
            {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}},
             "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "stage": {"type": "string"}, "filled": {"type": "string", "default": "by schema"}, "spec": {"type": "object", "properties": {"count": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"count": {"type": "integer"}}}}}}},
            {"name": "v2", "served": true, "storage": false, "subresources": {"status": {}},
             "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "stage": {"type": "string"}, "filled": {"type": "string", "default": "by schema"}, "spec": {"type": "object", "properties": {"count": {"type": "integer"}}},
                "status": {"type": "object", "properties": {"count": {"type": "integer"}}}}}}}]}}"#];

/// What must be served before anything is asked.
pub(super) const SERVED: &[&str] = &["/apis/hook.example.com/v1/stages", "/apis/hook.example.com/v2/stages"];

/// Requests whose answers differ, each with the reason.
pub(super) const DIFFERENCES: &[(&str, &str)] = &[
    (
        "POST /api/v1/namespaces/v-redirect/configmaps?fieldManager=m application/json {\"metadata\":{\"name\":\"a\"}}",
        "a redirect is not followed",
    ),
    ("reviews token", "a token request is shown without the account's UID, and as it was asked for"),
];

/// One webhook of the usual kind.
macro_rules! hook {
    ($phase:literal, $path:literal) => {
        concat!(r#"[{"phase":""#, $phase, r#"","path":""#, $path, r#""}]"#)
    };
    ($phase:literal, $path:literal, $more:literal) => {
        concat!(r#"[{"phase":""#, $phase, r#"","path":""#, $path, r#"","#, $more, "}]")
    };
}

/// A ConfigMap is created.
const CREATE: &[(&str, &str, &str, &str)] =
    &[("POST", "configmaps?fieldManager=m", JSON, r#"{"metadata":{"name":"a"}}"#)];

macro_rules! create {
    ($name:literal, $phase:literal, $path:literal) => {
        Situation { name: $name, hooks: hook!($phase, $path), requests: CREATE }
    };
    ($name:literal, $phase:literal, $path:literal, $more:literal) => {
        Situation { name: $name, hooks: hook!($phase, $path, $more), requests: CREATE }
    };
}

const STAGE_RULES: &str = r#"[{"phase":"mutating","path":"/patch-spec","rules":[{"apiGroups":["hook.example.com"],"apiVersions":["v1"],"resources":["stages","stages/*"],"operations":["*"]}]},
    {"phase":"validating","path":"/allow","rules":[{"apiGroups":["hook.example.com"],"apiVersions":["v2"],"resources":["stages","stages/*"],"operations":["*"]}]},
    {"phase":"validating","path":"/deny","matchPolicy":"Exact","rules":[{"apiGroups":["hook.example.com"],"apiVersions":["v3"],"resources":["*/*"],"operations":["*"]}]}]"#;

pub(super) const SITUATIONS: &[Situation] = &[
    // What is told, and what is heard.
    create!("v-allow", "validating", "/allow"),
    create!("v-deny", "validating", "/deny"),
    create!("v-deny-message", "validating", "/deny-message"),
    create!("v-deny-reason", "validating", "/deny-reason"),
    create!("v-deny-code", "validating", "/deny-code"),
    create!("v-deny-low-code", "validating", "/deny-low-code"),
    create!("v-deny-details", "validating", "/deny-details"),
    create!("v-deny-warned", "validating", "/deny-warned"),
    create!("v-warn", "validating", "/warn"),
    create!("v-warn-long", "validating", "/warn-long"),
    create!("v-annotate", "validating", "/annotate"),
    create!("m-allow", "mutating", "/allow"),
    create!("m-deny-details", "mutating", "/deny-details"),
    create!("m-warn", "mutating", "/warn"),
    create!("v-beta", "validating", "/allow", r#""admissionReviewVersions":["v1beta1"]"#),
    create!("v-beta-uid", "validating", "/wrong-uid", r#""admissionReviewVersions":["v1beta1","v1"]"#),
    create!("v-versions", "validating", "/allow", r#""admissionReviewVersions":["v9","v1"]"#),
    // Lies.
    create!("v-wrong-uid", "validating", "/wrong-uid"),
    create!("v-no-uid", "validating", "/no-uid"),
    create!("v-no-response", "validating", "/no-response"),
    create!("v-response-text", "validating", "/response-text"),
    create!("v-other-version", "validating", "/other-version"),
    create!("v-other-group", "validating", "/other-group"),
    create!("v-other-kind", "validating", "/other-kind"),
    create!("v-untyped", "validating", "/untyped"),
    create!("v-no-kind", "validating", "/no-kind"),
    create!("v-not-json", "validating", "/not-json"),
    create!("v-list", "validating", "/list"),
    create!("v-truncated", "validating", "/truncated"),
    create!("v-empty", "validating", "/empty"),
    create!("v-yaml", "validating", "/yaml"),
    create!("v-allowed-text", "validating", "/allowed-text"),
    create!("v-warnings-text", "validating", "/warnings-text"),
    create!("v-patch", "validating", "/patch-label"),
    create!("v-patch-type", "validating", "/patch-type-only"),
    create!("v-ignored-lie", "validating", "/wrong-uid", r#""failurePolicy":"Ignore""#),
    // Faults on the way.
    create!("v-code-400", "validating", "/code-400"),
    create!("v-code-404", "validating", "/code-404"),
    create!("v-code-500", "validating", "/code-500"),
    create!("v-code-503", "validating", "/code-503"),
    create!("v-ignored-500", "validating", "/code-500", r#""failurePolicy":"Ignore""#),
    create!("v-redirect", "validating", "/redirect"),
    create!("v-close", "validating", "/close"),
    create!("v-hang", "validating", "/hang", r#""timeoutSeconds":1"#),
    create!("v-hang-inside", "validating", "/hang-inside", r#""timeoutSeconds":1"#),
    create!("v-flood", "validating", "/flood", r#""timeoutSeconds":1"#),
    create!("v-ignored-hang", "validating", "/hang", r#""timeoutSeconds":1,"failurePolicy":"Ignore""#),
    create!("m-hang", "mutating", "/hang", r#""timeoutSeconds":1"#),
    create!(
        "v-refused",
        "validating",
        "/allow",
        r#""clientConfig":{"url":"https://127.0.0.1:1/x","caBundle":"RIGHT"}"#
    ),
    create!(
        "v-service",
        "validating",
        "/allow",
        r#""clientConfig":{"service":{"namespace":"v-service","name":"absent"},"caBundle":"RIGHT"}"#
    ),
    create!("v-untrusted", "validating", "/allow", r#""clientConfig":{"url":"RIGHT"}"#),
    // Patches.
    create!("m-label", "mutating", "/patch-label"),
    create!("m-data", "mutating", "/patch-data"),
    create!("m-test", "mutating", "/patch-test"),
    create!("m-nowhere", "mutating", "/patch-nowhere"),
    create!("m-remove", "mutating", "/patch-remove"),
    create!("m-unknown-op", "mutating", "/patch-unknown-op"),
    create!("m-empty", "mutating", "/patch-empty"),
    create!("m-object", "mutating", "/patch-object"),
    create!("m-number", "mutating", "/patch-number"),
    create!("m-text", "mutating", "/patch-text"),
    create!("m-kind", "mutating", "/patch-kind"),
    create!("m-no-kind", "mutating", "/patch-no-kind"),
    create!("m-name", "mutating", "/patch-name"),
    create!("m-type", "mutating", "/patch-type"),
    create!("m-invalid", "mutating", "/patch-invalid"),
    create!("m-unknown-field", "mutating", "/patch-unknown-field"),
    create!("m-managers", "mutating", "/patch-managers"),
    create!("m-untyped", "mutating", "/patch-untyped"),
    create!("m-type-only", "mutating", "/patch-type-only"),
    create!("m-other-type", "mutating", "/patch-other-type"),
    create!("m-not-base64", "mutating", "/patch-not-base64"),
    create!("m-beta", "mutating", "/patch-label", r#""admissionReviewVersions":["v1beta1"]"#),
    create!("m-ignored-patch", "mutating", "/patch-test", r#""failurePolicy":"Ignore""#),
    create!("m-ignored-text", "mutating", "/patch-text", r#""failurePolicy":"Ignore""#),
    // Several.
    Situation {
        name: "order",
        hooks: r#"[{"phase":"mutating","path":"/patch-label"},{"phase":"mutating","path":"/patch-more"},{"phase":"validating","path":"/allow"},{"phase":"validating","path":"/warn"}]"#,
        requests: CREATE,
    },
    Situation {
        name: "again",
        hooks: r#"[{"phase":"mutating","path":"/allow","reinvocationPolicy":"IfNeeded"},{"phase":"mutating","path":"/patch-label"},{"phase":"mutating","path":"/patch-more","reinvocationPolicy":"IfNeeded"}]"#,
        requests: CREATE,
    },
    Situation {
        name: "first-denies",
        hooks: r#"[{"phase":"mutating","path":"/deny-warned"},{"phase":"mutating","path":"/patch-more"},{"phase":"validating","path":"/warn"}]"#,
        requests: CREATE,
    },
    // Who is asked.
    create!(
        "other-operation",
        "validating",
        "/deny",
        r#""rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["UPDATE"]}]"#
    ),
    create!(
        "cluster-scope",
        "validating",
        "/deny",
        r#""rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["configmaps"],"operations":["*"],"scope":"Cluster"}]"#
    ),
    create!(
        "namespaced-scope",
        "validating",
        "/deny",
        r#""rules":[{"apiGroups":["*"],"apiVersions":["*"],"resources":["*"],"operations":["*"],"scope":"Namespaced"}]"#
    ),
    Situation {
        name: "object-selector",
        hooks: hook!("validating", "/deny", r#""objectSelector":{"matchLabels":{"ask":"yes"}}"#),
        requests: &[
            ("POST", "configmaps", JSON, r#"{"metadata":{"name":"a"}}"#),
            ("POST", "configmaps", JSON, r#"{"metadata":{"name":"b","labels":{"ask":"yes"}}}"#),
            ("PATCH", "configmaps/a", MERGE, r#"{"metadata":{"labels":{"ask":"yes"}}}"#),
            ("PATCH", "configmaps/a", MERGE, r#"{"metadata":{"labels":{"other":"yes"}}}"#),
        ],
    },
    Situation {
        name: "namespaces",
        hooks: r#"[{"phase":"mutating","path":"/patch-more","namespaceSelector":{"matchLabels":{"team":"hooks"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["namespaces"],"operations":["*"]}]},
            {"phase":"validating","path":"/allow","namespaceSelector":{"matchLabels":{"team":"hooks"}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["namespaces"],"operations":["*"]}]}]"#,
        requests: &[
            (
                "POST",
                "/api/v1/namespaces?fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"of-hooks","labels":{"team":"hooks"}}}"#,
            ),
            (
                "PATCH",
                "/api/v1/namespaces/of-hooks?fieldManager=m",
                MERGE,
                r#"{"metadata":{"annotations":{"a":"b"}}}"#,
            ),
        ],
    },
    // Conditions.
    create!(
        "c-true",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"object.metadata.name == 'a' && request.operation == 'CREATE'"}]"#
    ),
    create!(
        "c-false",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"request.name == 'other'"}]"#
    ),
    create!(
        "c-error",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"object.nothing == 1"}]"#
    ),
    create!(
        "c-error-open",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"object.nothing == 1"}],"failurePolicy":"Ignore""#
    ),
    create!(
        "c-absent",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"request.subResource == ''"}]"#
    ),
    create!(
        "c-authorizer",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"authorizer.requestResource.check('delete').allowed() && authorizer.group('apps').resource('deployments').check('get').allowed()"}]"#
    ),
    create!(
        "c-user",
        "validating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"'system:masters' in request.userInfo.groups && request.options.fieldManager == 'm' && oldObject == null"}]"#
    ),
    create!(
        "c-two",
        "mutating",
        "/deny",
        r#""matchConditions":[{"name":"c","expression":"object.nothing == 1"},{"name":"d","expression":"object.metadata.labels.x == 'y'"}]"#
    ),
    Situation {
        name: "c-written",
        hooks: "[]",
        requests: &[
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"bad-type"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"a","expression":"1 + 1"}]}]}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"bad-field"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"a","expression":"request.nothing == 1"}]}]}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"bad-syntax"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"a","expression":"object.x ="}]}]}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"bad-name"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"a b","expression":"true"},{"name":"","expression":""}]}]}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"bad-twice"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"a","expression":"true"},{"name":"a","expression":"params.x"}]}]}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"good"},"webhooks":[{"name":"a.b.c","clientConfig":{"url":"https://127.0.0.1:1/x"},"sideEffects":"None","admissionReviewVersions":["v1"],"matchConditions":[{"name":"example.com/a","expression":"namespaceObject == null || object.spec.x.matches('^a')"}]}]}"#,
            ),
        ],
    },
    // Operations.
    Situation {
        name: "operations",
        hooks: r#"[{"phase":"mutating","path":"/patch-data"},{"phase":"validating","path":"/allow"}]"#,
        requests: &[
            (
                "POST",
                "configmaps?fieldManager=m&fieldValidation=Strict",
                JSON,
                r#"{"metadata":{"generateName":"gen-"}}"#,
            ),
            ("POST", "configmaps?fieldManager=m&dryRun=All", JSON, r#"{"metadata":{"name":"dry"}}"#),
            ("POST", "configmaps?fieldManager=m", JSON, r#"{"metadata":{"name":"a"}}"#),
            ("PUT", "configmaps/a?fieldManager=m", JSON, r#"{"metadata":{"name":"a"},"data":{"c":"d"}}"#),
            ("PATCH", "configmaps/a?fieldManager=m", MERGE, r#"{"data":{"e":"f"}}"#),
            (
                "PATCH",
                "configmaps/applied?fieldManager=m",
                APPLY,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"e":"f"}}"#,
            ),
            (
                "PATCH",
                "configmaps/applied?fieldManager=m&force=true",
                APPLY,
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},"data":{"e":"g"}}"#,
            ),
            ("DELETE", "configmaps/a?propagationPolicy=Background", "", ""),
            (
                "DELETE",
                "configmaps/applied",
                JSON,
                r#"{"gracePeriodSeconds":3,"preconditions":{"uid":"other"}}"#,
            ),
            ("DELETE", "configmaps/applied?dryRun=All", "", ""),
            (
                "DELETE",
                "configmaps?fieldSelector=metadata.name=applied",
                JSON,
                r#"{"orphanDependents":true}"#,
            ),
        ],
    },
    Situation {
        name: "delete-patched",
        hooks: hook!(
            "mutating",
            "/patch-label",
            r#""rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["DELETE"]}]"#
        ),
        requests: &[
            ("POST", "configmaps?fieldManager=m", JSON, r#"{"metadata":{"name":"a"}}"#),
            ("DELETE", "configmaps/a", "", ""),
        ],
    },
    Situation {
        name: "delete-denied",
        hooks: hook!(
            "validating",
            "/deny-message",
            r#""rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["DELETE"]}]"#
        ),
        requests: &[
            (
                "POST",
                "configmaps?fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"a","finalizers":["example.com/f"]}}"#,
            ),
            ("POST", "configmaps?fieldManager=m", JSON, r#"{"metadata":{"name":"b"}}"#),
            ("DELETE", "configmaps/a", "", ""),
            ("DELETE", "configmaps/b", "", ""),
            ("DELETE", "configmaps?fieldSelector=metadata.name=b", "", ""),
        ],
    },
    Situation {
        name: "secrets",
        hooks: r#"[{"phase":"mutating","path":"/patch-label","rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"],"operations":["*"]}]},{"phase":"validating","path":"/allow","rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"],"operations":["*"]}]}]"#,
        requests: &[
            ("POST", "secrets?fieldManager=m", JSON, r#"{"metadata":{"name":"a"},"stringData":{"k":"v"}}"#),
            ("PATCH", "secrets/a?fieldManager=m", MERGE, r#"{"stringData":{"k":"w"}}"#),
        ],
    },
    Situation {
        name: "leases",
        hooks: hook!(
            "validating",
            "/allow",
            r#""rules":[{"apiGroups":["coordination.k8s.io"],"apiVersions":["*"],"resources":["leases"],"operations":["*"]}]"#
        ),
        requests: &[
            (
                "PUT",
                "coordination.k8s.io/v1:leases/made?fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"made"}}"#,
            ),
            (
                "PUT",
                "coordination.k8s.io/v1:leases/made?fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"made"},"spec":{"holderIdentity":"x"}}"#,
            ),
        ],
    },
    Situation {
        name: "token",
        hooks: hook!(
            "validating",
            "/deny-message",
            r#""rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["serviceaccounts/token"],"operations":["CREATE"]}]"#
        ),
        requests: &[
            ("POST", "serviceaccounts?fieldManager=m", JSON, r#"{"metadata":{"name":"robot"}}"#),
            (
                "POST",
                "serviceaccounts/robot/token",
                JSON,
                r#"{"spec":{"audiences":["a"],"expirationSeconds":600}}"#,
            ),
        ],
    },
    Situation {
        name: "events",
        hooks: r#"[{"phase":"mutating","path":"/patch-label","rules":[{"apiGroups":["events.k8s.io"],"apiVersions":["v1"],"resources":["events"],"operations":["*"]}]},{"phase":"validating","path":"/deny","matchPolicy":"Exact","rules":[{"apiGroups":["events.k8s.io"],"apiVersions":["v1"],"resources":["events"],"operations":["*"]}]}]"#,
        requests: &[(
            "POST",
            "events?fieldManager=m",
            JSON,
            r#"{"metadata":{"name":"e"},"involvedObject":{"kind":"ConfigMap","namespace":"events","name":"a"},"reason":"R","message":"m","type":"Normal"}"#,
        )],
    },
    Situation {
        name: "stages",
        hooks: STAGE_RULES,
        requests: &[
            (
                "POST",
                "hook.example.com/v1:stages?fieldManager=m",
                JSON,
                r#"{"apiVersion":"hook.example.com/v1","kind":"Stage","metadata":{"name":"a"},"spec":{"count":1}}"#,
            ),
            (
                "POST",
                "hook.example.com/v2:stages?fieldManager=m",
                JSON,
                r#"{"apiVersion":"hook.example.com/v2","kind":"Stage","metadata":{"name":"b"}}"#,
            ),
            ("GET", "hook.example.com/v2:stages/a", "", ""),
            ("PATCH", "hook.example.com/v2:stages/a?fieldManager=m", MERGE, r#"{"spec":{"count":2}}"#),
            (
                "PATCH",
                "hook.example.com/v1:stages/a/status?fieldManager=m",
                MERGE,
                r#"{"status":{"count":2}}"#,
            ),
            ("DELETE", "hook.example.com/v2:stages/b", "", ""),
        ],
    },
    Situation {
        name: "scale",
        hooks: hook!(
            "validating",
            "/allow",
            r#""rules":[{"apiGroups":["hook.example.com"],"apiVersions":["v1"],"resources":["stages/scale"],"operations":["*"]}]"#
        ),
        requests: &[
            (
                "POST",
                "hook.example.com/v1:stages?fieldManager=m",
                JSON,
                r#"{"apiVersion":"hook.example.com/v1","kind":"Stage","metadata":{"name":"a"},"spec":{"count":1}}"#,
            ),
            (
                "PATCH",
                "hook.example.com/v1:stages/a/scale?fieldManager=m",
                MERGE,
                r#"{"spec":{"replicas":3}}"#,
            ),
        ],
    },
    // The webhooks' own configurations, and reviews, are nobody's business.
    Situation {
        name: "exempt",
        hooks: hook!(
            "validating",
            "/deny",
            r#""namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"exempt"}},"rules":[{"apiGroups":["admissionregistration.k8s.io","authorization.k8s.io","authentication.k8s.io"],"apiVersions":["*"],"resources":["*/*"],"operations":["*"]}]"#
        ),
        requests: &[
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"more"}}"#,
            ),
            (
                "POST",
                "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?dryRun=All&fieldManager=m",
                JSON,
                r#"{"metadata":{"name":"more"},"spec":{"policyName":"p","validationActions":["Deny"]}}"#,
            ),
            (
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                JSON,
                r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#,
            ),
            (
                "POST",
                "authorization.k8s.io/v1:localsubjectaccessreviews",
                JSON,
                r#"{"metadata":{"namespace":"exempt"},"spec":{"user":"u","resourceAttributes":{"namespace":"exempt","resource":"pods","verb":"get"}}}"#,
            ),
        ],
    },
];
