//! What the test's webhook does to a review; the path of the call says it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::webhook::Reply;

/// Answers a call of `path`.
pub(super) fn answer(path: &str, review: &Value) -> Reply {
    let Some(response) = response(path) else { return raw(path, review) };
    let mut response = response;
    if response.get("uid").is_none() {
        response["uid"] = review["request"]["uid"].clone();
    }
    Reply::Json(json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}))
}

/// A response of the right form, whatever it says.
fn response(path: &str) -> Option<Value> {
    let denied = |status: Value| json!({"allowed": false, "status": status});
    let patch =
        |patch: &str| json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch)});
    Some(match path {
        "/allow" => json!({"allowed": true}),
        "/deny" => json!({"allowed": false}),
        "/deny-message" => denied(json!({"message": "not here"})),
        "/deny-reason" => denied(json!({"reason": "NotToday"})),
        "/deny-code" => denied(json!({"code": 451, "message": "by law", "reason": "Unavailable"})),
        "/deny-low-code" => denied(json!({"code": 200, "status": "Success", "message": "fine"})),
        "/deny-details" => denied(json!({"code": 422, "reason": "Invalid", "message": "see below",
            "details": {"name": "n", "group": "g", "kind": "k", "uid": "u", "retryAfterSeconds": 7,
                        "causes": [{"reason": "FieldValueInvalid", "message": "wrong", "field": "data.a"}]}})),
        "/deny-warned" => {
            json!({"allowed": false, "warnings": ["first", "second"], "status": {"message": "no"}})
        }
        "/warn" => {
            json!({"allowed": true, "warnings": ["one", "two \"quoted\" \\ words", "one", "größer", "", "a\nb"]})
        }
        "/warn-long" => {
            json!({"allowed": true, "warnings": ["x".repeat(300), "y".repeat(4000), "z".repeat(300)]})
        }
        "/annotate" => json!({"allowed": true, "auditAnnotations": {"a": "b", "not a key": "c"}}),
        "/wrong-uid" => json!({"allowed": true, "uid": "other"}),
        "/no-uid" => json!({"allowed": true, "uid": ""}),
        "/patch-label" => patch(r#"[{"op":"add","path":"/metadata/labels","value":{"patched":"yes"}}]"#),
        "/patch-more" => patch(r#"[{"op":"add","path":"/metadata/labels/more","value":"yes"}]"#),
        "/patch-data" => patch(r#"[{"op":"add","path":"/data","value":{"by":"webhook"}}]"#),
        "/patch-test" => patch(r#"[{"op":"test","path":"/metadata/name","value":"other"}]"#),
        "/patch-nowhere" => patch(r#"[{"op":"add","path":"/metadata/a/b","value":1}]"#),
        "/patch-remove" => patch(r#"[{"op":"remove","path":"/metadata/nothing"}]"#),
        "/patch-unknown-op" => patch(r#"[{"op":"spoil","path":"/metadata"}]"#),
        "/patch-empty" => patch("[]"),
        "/patch-object" => patch("{}"),
        "/patch-number" => patch("[7]"),
        "/patch-text" => patch("hello"),
        "/patch-kind" => patch(r#"[{"op":"replace","path":"/kind","value":"Secret"}]"#),
        "/patch-no-kind" => patch(r#"[{"op":"remove","path":"/kind"}]"#),
        "/patch-name" => patch(r#"[{"op":"replace","path":"/metadata/name","value":"renamed"}]"#),
        "/patch-type" => patch(r#"[{"op":"add","path":"/metadata/labels","value":{"a":1}}]"#),
        "/patch-invalid" => patch(r#"[{"op":"add","path":"/metadata/labels","value":{"-":"a"}}]"#),
        "/patch-unknown-field" => patch(r#"[{"op":"add","path":"/nothing","value":1}]"#),
        "/patch-managers" => patch(
            r#"[{"op":"replace","path":"/metadata/managedFields","value":[{"operation":"Spoil","apiVersion":"v1"}]}]"#,
        ),
        "/patch-spec" => patch(
            r#"[{"op":"add","path":"/stage","value":"one"},{"op":"add","path":"/unknown","value":"x"}]"#,
        ),
        "/patch-untyped" => json!({"allowed": true, "patch": STANDARD.encode("[]")}),
        "/patch-type-only" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "/patch-other-type" => {
            json!({"allowed": true, "patchType": "Merge", "patch": STANDARD.encode(r#"[{"op":"add","path":"/a","value":1}]"#)})
        }
        "/patch-not-base64" => json!({"allowed": true, "patchType": "JSONPatch", "patch": "!!!!"}),
        "/allowed-text" => json!({"allowed": "yes"}),
        "/warnings-text" => json!({"allowed": true, "warnings": "careful"}),
        _ => return None,
    })
}

/// Anything else.
fn raw(path: &str, review: &Value) -> Reply {
    const JSON: &str = "content-type: application/json\r\n";
    let uid = review["request"]["uid"].as_str().unwrap_or_default();
    let typed = |api_version: &str, kind: &str| {
        Reply::Json(
            json!({"apiVersion": api_version, "kind": kind, "response": {"uid": uid, "allowed": true}}),
        )
    };
    let body = |body: &str| Reply::Raw("200 OK", JSON, body.as_bytes().to_vec());
    match path {
        "/no-response" => {
            Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}))
        }
        "/response-text" => Reply::Json(
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": "yes"}),
        ),
        "/other-version" => typed("admission.k8s.io/v1beta1", "AdmissionReview"),
        "/other-group" => typed("example.com/v1", "AdmissionReview"),
        "/other-kind" => typed("admission.k8s.io/v1", "Review"),
        "/untyped" => Reply::Json(json!({"response": {"uid": uid, "allowed": true}})),
        "/no-kind" => Reply::Json(
            json!({"apiVersion": "admission.k8s.io/v1", "response": {"uid": uid, "allowed": true}}),
        ),
        "/not-json" => body("hello"),
        "/list" => body("[]"),
        "/truncated" => body("{\"apiVersion\":\"admission.k8s.io/v1\","),
        "/empty" => body(""),
        "/yaml" => body(&format!(
            "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {{uid: \"{uid}\", allowed: true}}\n"
        )),
        "/code-400" => Reply::Raw("400 Bad Request", JSON, b"{}".to_vec()),
        "/code-404" => Reply::Raw("404 Not Found", JSON, b"{}".to_vec()),
        "/code-500" => Reply::Raw("500 Internal Server Error", JSON, b"{}".to_vec()),
        "/code-503" => Reply::Raw("503 Service Unavailable", JSON, b"{}".to_vec()),
        "/redirect" => Reply::Raw("302 Found", "location: /allow\r\n", Vec::new()),
        // Where who follows the redirect comes to, without the review.
        "/" => Reply::Json(
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "unknown", "allowed": true}}),
        ),
        "/hang" => Reply::Hang,
        "/hang-inside" => Reply::HangInside,
        "/close" => Reply::Close,
        "/flood" => Reply::Flood,
        other => panic!("no behaviour is called {other}"),
    }
}
