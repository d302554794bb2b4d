//! Bad input over HTTP: the exact answer of kube-apiserver 1.37.2, observed on the original.

use crate::support::{Client, server};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Method, URL below the Secrets of a namespace (or an absolute one), content type, body, and the Status:
/// code, reason, message, details.
type Case =
    (&'static str, &'static str, &'static str, &'static str, u16, &'static str, &'static str, &'static str);

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// What kube-apiserver answers to each.
const CASES: &[Case] = &[
    ("GET", "/api/v2", "", "", 404, "NotFound", "the server could not find the requested resource", "{}"),
    ("GET", "/api/v1/foo", "", "", 404, "NotFound", "the server could not find the requested resource", "{}"),
    (
        "GET",
        "/api/v1/namespaces/default/nodes",
        "",
        "",
        404,
        "NotFound",
        "the server could not find the requested resource",
        "{}",
    ),
    (
        "GET",
        "/api/v1/secrets/x",
        "",
        "",
        404,
        "NotFound",
        "the server could not find the requested resource",
        "{}",
    ),
    ("GET", "/x/status", "", "", 404, "NotFound", "the server could not find the requested resource", "{}"),
    ("GET", "/x/a/b", "", "", 404, "NotFound", "the server could not find the requested resource", "{}"),
    (
        "POST",
        "/x",
        JSON,
        "{}",
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        "{}",
    ),
    ("HEAD", "", "", "", 405, "", "", ""),
    (
        "OPTIONS",
        "",
        "",
        "",
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        "{}",
    ),
    ("GET", "/x", "", "", 404, "NotFound", "secrets \"x\" not found", r#"{"name":"x","kind":"secrets"}"#),
    ("GET", "/%2e%2e", "", "", 400, "BadRequest", "Name parameter invalid: \"..\": may not be '..'", ""),
    (
        "GET",
        "?timeout=abc",
        "",
        "",
        400,
        "BadRequest",
        "invalid timeout specified in the request URL - time: invalid duration \"abc\"",
        "",
    ),
    ("GET", "?limit=abc", "", "", 400, "BadRequest", "strconv.ParseInt: parsing \"abc\": invalid syntax", ""),
    (
        "GET",
        "?labelSelector=a%20b%20c",
        "",
        "",
        400,
        "BadRequest",
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        "",
    ),
    ("GET", "?fieldSelector=a", "", "", 400, "BadRequest", "invalid selector: 'a'; can't understand 'a'", ""),
    ("GET", "?fieldSelector=a%3Db", "", "", 400, "BadRequest", "field label not supported: a", ""),
    (
        "GET",
        "/api/v1/namespaces/default/configmaps?fieldSelector=a%3Db",
        "",
        "",
        400,
        "BadRequest",
        "\"a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        "",
    ),
    (
        "GET",
        "?resourceVersion=abc",
        "",
        "",
        400,
        "BadRequest",
        "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        "",
    ),
    (
        "GET",
        "?resourceVersion=abc&watch=1",
        "",
        "",
        500,
        "",
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        "",
    ),
    (
        "GET",
        "/x?resourceVersion=abc",
        "",
        "",
        500,
        "",
        "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        "",
    ),
    (
        "GET",
        "?continue=abc",
        "",
        "",
        400,
        "BadRequest",
        "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value",
        "",
    ),
    (
        "GET",
        "?resourceVersionMatch=Exact",
        "",
        "",
        422,
        "Invalid",
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        r#"{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided","field":"resourceVersionMatch"}]}"#,
    ),
    (
        "GET",
        "?sendInitialEvents=true&watch=1",
        "",
        "",
        422,
        "Invalid",
        "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        r#"{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan","field":"resourceVersionMatch"}]}"#,
    ),
    (
        "POST",
        "",
        "text/plain",
        "x",
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        "",
    ),
    (
        "POST",
        "",
        "application/cbor",
        "x",
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        "",
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Secret): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        "{",
        400,
        "BadRequest",
        "the object provided is unrecognized (must be of type Secret): couldn't get version/kind; json parse error: unexpected end of JSON input ({)",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"a":1}"#,
        422,
        "Invalid",
        "Secret \"\" is invalid: metadata.name: Required value: name or generateName is required",
        r#"{"kind":"Secret","causes":[{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}]}"#,
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}"#,
        400,
        "BadRequest",
        "ConfigMap in version \"v1\" cannot be handled as a Secret: converting (v1.ConfigMap) to (core.Secret): unknown conversion",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"kind":"Secret","apiVersion":"v2","metadata":{"name":"a"}}"#,
        400,
        "BadRequest",
        "Secret in version \"v2\" cannot be handled as a Secret: no kind \"Secret\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"a"},"data":{"a":1}}"#,
        400,
        "BadRequest",
        "Secret in version \"v1\" cannot be handled as a Secret: json: cannot unmarshal number into Go struct field Secret.data of type []uint8",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"a"},"data":{"a":"x"}}"#,
        400,
        "BadRequest",
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0",
        "",
    ),
    (
        "POST",
        "?fieldValidation=Strict",
        JSON,
        r#"{"metadata":{"name":"a","x":1},"data":{"a":"","a":""},"foo":1}"#,
        400,
        "BadRequest",
        "Secret in version \"v1\" cannot be handled as a Secret: strict decoding error: unknown field \"metadata.x\", duplicate field \"data.a\", unknown field \"foo\"",
        "",
    ),
    (
        "POST",
        "?fieldValidation=Foo&dryRun=x&fieldManager=%01",
        JSON,
        "{}",
        422,
        "Invalid",
        "CreateOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: \"\\x01\": invalid character U+0001 (at position 0), dryRun: Unsupported value: [\"x\"]: supported values: \"All\", fieldValidation: Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"]",
        r#"{"group":"meta.k8s.io","kind":"CreateOptions","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"\\x01\": invalid character U+0001 (at position 0)","field":"fieldManager"},{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"x\"]: supported values: \"All\"","field":"dryRun"},{"reason":"FieldValueNotSupported","message":"Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"","field":"fieldValidation"}]}"#,
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"seed"}}"#,
        409,
        "AlreadyExists",
        "secrets \"seed\" already exists",
        r#"{"name":"seed","kind":"secrets"}"#,
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"a","namespace":"foo"}}"#,
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#,
        500,
        "",
        "resourceVersion should not be set on objects to be created",
        "",
    ),
    (
        "POST",
        "",
        JSON,
        r#"{"metadata":{"name":"t"},"type":"kubernetes.io/tls"}"#,
        422,
        "Invalid",
        "Secret \"t\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]",
        r#"{"name":"t","kind":"Secret","causes":[{"reason":"FieldValueRequired","message":"Required value","field":"data[tls.crt]"},{"reason":"FieldValueRequired","message":"Required value","field":"data[tls.key]"}]}"#,
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{"name":"tu"}}"#,
        400,
        "BadRequest",
        "the name of the object (tu) does not match the name on the URL (seed)",
        "",
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{}}"#,
        400,
        "BadRequest",
        "the name of the object (seed based on URL) was undeterminable: name must be provided",
        "",
    ),
    (
        "PUT",
        "/nope",
        JSON,
        r#"{"metadata":{"name":"nope"}}"#,
        404,
        "NotFound",
        "secrets \"nope\" not found",
        r#"{"name":"nope","kind":"secrets"}"#,
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{"name":"seed","resourceVersion":"1"}}"#,
        409,
        "Conflict",
        "Operation cannot be fulfilled on secrets \"seed\": the object has been modified; please apply your changes to the latest version and try again",
        r#"{"name":"seed","kind":"secrets"}"#,
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{"name":"seed","resourceVersion":"x"}}"#,
        500,
        "",
        "strconv.ParseUint: parsing \"x\": invalid syntax",
        "",
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{"name":"seed"},"type":"x"}"#,
        422,
        "Invalid",
        "Secret \"seed\" is invalid: type: Invalid value: \"x\": field is immutable",
        r#"{"name":"seed","kind":"Secret","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"x\": field is immutable","field":"type"}]}"#,
    ),
    (
        "PUT",
        "/seed",
        JSON,
        r#"{"metadata":{"name":"seed","namespace":"x"}}"#,
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
        "",
    ),
    ("PATCH", "/seed", JSON, "{}", 415, "UnsupportedMediaType", "415: Unsupported Media Type", "{}"),
    ("PATCH", "/seed", MERGE, "{", 400, "BadRequest", "invalid JSON patch", ""),
    (
        "PATCH",
        "/nope",
        MERGE,
        "{}",
        404,
        "NotFound",
        "secrets \"nope\" not found",
        r#"{"name":"nope","kind":"secrets"}"#,
    ),
    (
        "PATCH",
        "/seed",
        PATCH,
        "{}",
        400,
        "BadRequest",
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        "",
    ),
    (
        "PATCH",
        "/seed",
        PATCH,
        r#"[{"op":"test","path":"/a","value":1}]"#,
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        "{}",
    ),
    (
        "PATCH",
        "/seed",
        STRATEGIC,
        "[]",
        400,
        "BadRequest",
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
        "",
    ),
    (
        "PATCH",
        "/seed?force=true",
        MERGE,
        "{}",
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
        r#"{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: may not be specified for non-apply patch","field":"force"}]}"#,
    ),
    (
        "DELETE",
        "/seed?propagationPolicy=x",
        "",
        "",
        422,
        "Invalid",
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        r#"{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[{"reason":"FieldValueNotSupported","message":"Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"","field":"propagationPolicy"}]}"#,
    ),
    (
        "DELETE",
        "/seed",
        JSON,
        r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#,
        422,
        "Invalid",
        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set",
        r#"{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set","field":"propagationPolicy"}]}"#,
    ),
    (
        "DELETE",
        "/seed",
        "text/plain",
        "{}",
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        "",
    ),
    (
        "DELETE",
        "/nope",
        "",
        "",
        404,
        "NotFound",
        "secrets \"nope\" not found",
        r#"{"name":"nope","kind":"secrets"}"#,
    ),
    ("GET", "/api/v1/namespaces/%2e%2e/secrets", "", "", 500, "", "invalid key: \"/secrets/..\"", ""),
    ("GET", "/api/v1/namespaces/%2e/secrets", "", "", 500, "", "invalid key: \"/secrets/.\"", ""),
    ("GET", "/api/v1/namespaces/%2e/secrets/x", "", "", 500, "", "invalid key: \"/secrets/./x\"", ""),
    (
        "GET",
        "?resourceVersion=999999",
        "",
        "",
        504,
        "Timeout",
        "Timeout: Too large resource version: 999999, current: 3",
        r#"{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1}"#,
    ),
];

#[tokio::test]
async fn s1_bad_requests_are_answered_as_upstream() {
    let api = server().await;
    let client = Client::new(&api);
    let seed = client.post(SECRETS, r#"{"metadata":{"name":"seed"}}"#).await;
    assert_eq!(seed.code, 201, "{}", seed.text);
    let mut failures = Vec::new();
    for (method, url, content_type, body, code, reason, message, details) in CASES {
        let url = if url.starts_with("/api") { (*url).to_owned() } else { format!("{SECRETS}{url}") };
        let headers: &[(&str, &str)] =
            if content_type.is_empty() { &[] } else { &[("content-type", content_type)] };
        let answer = client.send(method, &url, headers, body.as_bytes()).await;
        if answer.code != *code {
            failures.push(format!("{method} {url} {body}: {} {}", answer.code, answer.text));
            continue;
        }
        if *method == "HEAD" {
            continue;
        }
        let status = answer.json();
        let mut expected = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": code,
        });
        if !reason.is_empty() {
            expected["reason"] = (*reason).into();
        }
        if !details.is_empty() {
            expected["details"] = serde_json::from_str(details).expect("details");
        }
        if status != expected {
            failures.push(format!("{method} {url} {body}:\n  got      {status}\n  expected {expected}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), CASES.len(), failures.join("\n"));
    let seed = client.get(&format!("{SECRETS}/seed")).await;
    assert_eq!(seed.code, 200, "nothing of that changed the Secret: {}", seed.text);
}

#[tokio::test]
async fn s29_large_bodies_are_refused_and_deep_ones_too() {
    let api = server().await;
    let client = Client::new(&api);
    let large =
        format!(r#"{{"metadata":{{"name":"a"}},"stringData":{{"a":"{}"}}}}"#, "x".repeat(3 * 1024 * 1024));
    let answer = client.post(SECRETS, &large).await;
    assert_eq!(answer.code, 413);
    assert_eq!(answer.json()["message"], "Request entity too large: limit is 3145728");
    let deep =
        format!(r#"{{"metadata":{{"name":"a"}},"x":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let answer = client.post(SECRETS, &deep).await;
    assert_eq!(answer.code, 400, "{}", answer.text);
    // Refused before the user is even known.
    let stranger = Client::named(&api, "nobody");
    assert_eq!(stranger.send("POST", SECRETS, &[("content-length", "9999999999")], b"").await.code, 413);
}

#[tokio::test]
async fn s5_a_patch_of_too_many_operations_is_refused() {
    let api = server().await;
    let client = Client::new(&api);
    client.post(SECRETS, r#"{"metadata":{"name":"seed"}}"#).await;
    let operation = r#"{"op":"test","path":"/a"}"#;
    let patch = format!("[{}]", vec![operation; 10_001].join(","));
    let answer = client.patch(&format!("{SECRETS}/seed"), "json", &patch).await;
    assert_eq!(answer.code, 413);
    assert_eq!(
        answer.json()["message"],
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[tokio::test]
async fn who_may_not_is_told_so() {
    let api = server().await;
    let client = Client::named(&api, "nobody");
    for (method, url, message, details) in [
        (
            "GET",
            SECRETS,
            "secrets is forbidden: User \"nobody\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\"",
            r#"{"kind":"secrets"}"#,
        ),
        (
            "GET",
            "/api/v1/nodes/n",
            "nodes \"n\" is forbidden: User \"nobody\" cannot get resource \"nodes\" in API group \"\" at the cluster scope",
            r#"{"name":"n","kind":"nodes"}"#,
        ),
        ("GET", "/version", "forbidden: User \"nobody\" cannot get path \"/version\"", "{}"),
        (
            "GET",
            "/apis/apps/v1/deployments",
            "deployments.apps is forbidden: User \"nobody\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope",
            r#"{"group":"apps","kind":"deployments"}"#,
        ),
    ] {
        let answer = client.send(method, url, &[], b"").await;
        assert_eq!(answer.code, 403, "{url}");
        assert_eq!(answer.json()["message"], message, "{url}");
        assert_eq!(
            answer.json()["details"],
            serde_json::from_str::<serde_json::Value>(details).expect("details"),
            "{url}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cache-control"), "no-cache, private");
        assert_eq!(answer.header("audit-id").len(), 36);
    }
}
