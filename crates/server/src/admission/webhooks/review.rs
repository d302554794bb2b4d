//! AdmissionReview: what a webhook is asked, and what of its answer is taken.
//!
//! No error holds a value of an object or of an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use coffer_types::codec::{json, yaml};
use coffer_types::meta::{GroupVersionKind, Meta as _, split_api_version};
use coffer_types::status::{Cause, Details};
use coffer_types::{SecretBytes, Status, Value};

use super::Phase;
use crate::admission::rule::{Invocation, name_of};
use crate::ports::Admission;
use crate::quote;
use crate::webhook::{Pieces, ReviewVersion};

/// The kind of requests and answers.
const KIND: &str = "AdmissionReview";

fn api_version_of(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1 => "admission.k8s.io/v1",
        ReviewVersion::V1Beta1 => "admission.k8s.io/v1beta1",
    }
}

/// The object as it is sent, encoded once for all webhooks that see the same version of it.
#[derive(Clone)]
pub(super) struct Encoded(Bytes);

impl Encoded {
    /// Wiped when nobody holds it any more.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(Bytes::from_owner(SecretBytes::new(bytes)))
    }

    /// No object.
    pub(super) fn absent() -> Self {
        Self(Bytes::from_static(b"null"))
    }
}

/// The body of a request.
pub(super) fn request(
    version: ReviewVersion,
    uid: &str,
    invocation: &Invocation,
    admission: &Admission<'_>,
    [object, old]: [Encoded; 2],
) -> Pieces {
    let mut request = told(invocation, admission);
    request.set(&["uid"], uid);
    let mut head = format!(r#"{{"kind":"{KIND}","apiVersion":"{}","request":"#, api_version_of(version));
    let mut encoded = Vec::with_capacity(1024);
    json::encode_untyped(&request, &mut encoded);
    // The objects are members of the request too.
    encoded.pop();
    head.push_str(&String::from_utf8_lossy(&encoded));
    head.push_str(r#","object":"#);
    let mut pieces = Pieces::from(head.into_bytes());
    pieces.push(object.0);
    pieces.push(Bytes::from_static(br#","oldObject":"#));
    pieces.push(old.0);
    pieces.push(Bytes::from_static(b"}}"));
    pieces
}

/// What of a request is told beside its objects; conditions see the same.
pub(in crate::admission) fn told(invocation: &Invocation, admission: &Admission<'_>) -> Value {
    let context = admission.context;
    let attributes = admission.attributes;
    let kind = |kind: &GroupVersionKind| {
        Value::from([
            ("group", Value::from(kind.group.as_str())),
            ("version", kind.version.as_str().into()),
            ("kind", kind.kind.as_str().into()),
        ])
    };
    let resource = |[group, version, resource]: [&str; 3]| {
        Value::from([("group", group), ("version", version), ("resource", resource)])
    };
    let own = [attributes.group.as_str(), &attributes.version, &attributes.resource];
    let mut request = Value::from([
        ("kind", kind(&invocation.kind)),
        ("resource", resource(invocation.resource.each_ref().map(String::as_str))),
        ("requestKind", kind(context.forms.kind())),
        ("requestResource", resource(own)),
        ("operation", name_of(admission.operation).into()),
        ("dryRun", admission.dry_run.into()),
        ("options", context.options.clone()),
    ]);
    request.set_str(&["subResource"], &attributes.subresource);
    request.set_str(&["requestSubResource"], &attributes.subresource);
    request.set_str(&["name"], context.name);
    request.set_str(&["namespace"], &attributes.namespace);
    request.set(&["userInfo"], user(admission));
    request
}

fn user(admission: &Admission<'_>) -> Value {
    let user = &admission.attributes.user;
    let texts =
        |texts: &[String]| Value::from(texts.iter().map(|text| text.as_str().into()).collect::<Vec<Value>>());
    let mut told = Value::object();
    told.set_str(&["username"], &user.name);
    told.set_str(&["uid"], &user.uid);
    if !user.groups.is_empty() {
        told.set(&["groups"], texts(&user.groups));
    }
    for (key, values) in &user.extra {
        told.set(&["extra", key], texts(values));
    }
    told
}

/// What a webhook has answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    /// The bytes of a JSON patch.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    /// Why not.
    pub(super) result: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Why an answer cannot be used, and whether it was not even understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It could not be decoded.
    Undecodable(String),
    /// It says what it may not say.
    Invalid(String),
}

/// Reads an answer.
pub(super) fn answer(
    version: ReviewVersion,
    phase: Phase,
    uid: &str,
    body: &[u8],
) -> Result<Answer, Unusable> {
    let review = decode(body).map_err(Unusable::Undecodable)?;
    check_type(version, &review).map_err(Unusable::Undecodable)?;
    let response = review.get("response").filter(|response| !response.is_null());
    let read = response.map(Response::of).transpose().map_err(Unusable::Undecodable)?;
    let Some(response) = read else {
        return Err(Unusable::Invalid("webhook response was absent".to_owned()));
    };
    match version {
        ReviewVersion::V1 => {
            if response.uid != uid {
                let found = quote(&response.uid);
                return Err(Unusable::Invalid(format!("expected response.uid={}, got {found}", quote(uid))));
            }
            let (group, version) = split_api_version(review.api_version());
            let found = format!("{group}/{version}, Kind={}", review.kind());
            let expected = format!("{}, Kind={KIND}", api_version_of(ReviewVersion::V1));
            if found != expected {
                return Err(Unusable::Invalid(format!(
                    "expected webhook response of {expected}, got {found}"
                )));
            }
            response.check_patch(phase).map_err(Unusable::Invalid)?;
        }
        // Nothing of this was looked at in that version.
        ReviewVersion::V1Beta1 => {}
    }
    let mut answer = response.answer;
    if phase == Phase::Validating {
        answer.patch.clear();
    }
    if version == ReviewVersion::V1Beta1 {
        answer.patch_type = if answer.patch.is_empty() { String::new() } else { JSON_PATCH.to_owned() };
    }
    Ok(answer)
}

/// The only type of patch.
pub(super) const JSON_PATCH: &str = "JSONPatch";

/// Upstream takes YAML too.
fn decode(body: &[u8]) -> Result<Value, String> {
    let unread = |why: &str| format!("couldn't get version/kind; json parse error: {why}");
    let is_json = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let tree = if is_json {
        json::peek_type(body).map_err(|error| error.0)?;
        json::decode_untyped(body)
    } else {
        yaml::decode_untyped(body)
    };
    let tree = tree.map_err(|error| error.0)?.object;
    if tree.as_object().is_none() && !tree.is_null() {
        return Err(unread(&format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            tree.json_kind()
        )));
    }
    Ok(tree)
}

/// What names another type is not even decoded. What names none is taken for what was expected.
fn check_type(version: ReviewVersion, review: &Value) -> Result<(), String> {
    let (api_version, kind) = (review.api_version(), review.kind());
    let named =
        |text: &str, own: &'static str| if text.is_empty() { own.to_owned() } else { text.to_owned() };
    let own = api_version_of(version);
    let (api_version, kind) = (named(api_version, own), named(kind, KIND));
    if kind == KIND && api_version == own {
        return Ok(());
    }
    let known = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
    if kind == KIND && known.contains(&api_version.as_str()) {
        let short = |api_version: &str| split_api_version(api_version).1.to_owned();
        return Err(format!(
            "converting ({}.{KIND}) to ({}.{KIND}): unknown conversion",
            short(&api_version),
            short(own)
        ));
    }
    Err(format!(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        quote(&kind),
        quote(&api_version)
    ))
}

/// A response whose fields are of the right types.
struct Response {
    uid: String,
    has_patch_type: bool,
    answer: Answer,
}

impl Response {
    fn of(response: &Value) -> Result<Self, String> {
        let mistyped = |found: &Value, field: &str, of: &str| {
            format!(
                "json: cannot unmarshal {} into Go struct field AdmissionResponse.response.{field} of type {of}",
                found.json_kind()
            )
        };
        if response.as_object().is_none() {
            return Err(format!(
                "json: cannot unmarshal {} into Go struct field AdmissionReview.response of type v1.AdmissionResponse",
                response.json_kind()
            ));
        }
        let present = |field: &str| response.get(field).filter(|value| !value.is_null());
        let text = |field: &str, of: &str| match present(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(mistyped(other, field, of)),
        };
        let allowed = match present("allowed") {
            None => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => return Err(mistyped(other, "allowed", "bool")),
        };
        let mut warnings = Vec::new();
        match present("warnings") {
            None => {}
            Some(Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::String(text) => warnings.push(text.clone()),
                        Value::Null => warnings.push(String::new()),
                        other => return Err(mistyped(other, "warnings", "string")),
                    }
                }
            }
            Some(other) => return Err(mistyped(other, "warnings", "[]string")),
        }
        match present("auditAnnotations") {
            None => {}
            Some(Value::Object(annotations)) => {
                let wrong =
                    annotations.values().find(|value| !matches!(value, Value::String(_) | Value::Null));
                if let Some(other) = wrong {
                    return Err(mistyped(other, "auditAnnotations", "string"));
                }
            }
            Some(other) => return Err(mistyped(other, "auditAnnotations", "map[string]string")),
        }
        let result = match present("status") {
            Some(result) if result.as_object().is_none() => {
                return Err(mistyped(result, "status", "v1.Status"));
            }
            result => result.cloned(),
        };
        let patch = STANDARD.decode(text("patch", "[]uint8")?).map_err(|error| match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
                format!("illegal base64 data at input byte {at}")
            }
            _ => "illegal base64 data".to_owned(),
        })?;
        Ok(Self {
            uid: text("uid", "types.UID")?,
            has_patch_type: present("patchType").is_some(),
            answer: Answer {
                allowed,
                patch,
                patch_type: text("patchType", "v1.PatchType")?,
                result,
                warnings,
            },
        })
    }

    fn check_patch(&self, phase: Phase) -> Result<(), String> {
        let (has_patch, has_type) = (!self.answer.patch.is_empty(), self.has_patch_type);
        let why = match phase {
            Phase::Mutating => match (has_patch, has_type) {
                (true, false) => "webhook returned response.patch but not response.patchType",
                (false, true) => "webhook returned response.patchType but not response.patch",
                (true, true) if self.answer.patch_type.is_empty() => {
                    "webhook returned invalid response.patchType of \"\""
                }
                _ => return Ok(()),
            },
            Phase::Validating => match (has_patch, has_type) {
                (true, _) => "validating webhook may not return response.patch",
                (_, true) => "validating webhook may not return response.patchType",
                _ => return Ok(()),
            },
        };
        Err(why.to_owned())
    }
}

/// The status of a refusal: the webhook's own, as far as it makes one.
pub(super) fn refusal(webhook: &str, result: Option<&Value>) -> Status {
    let nothing = Value::object();
    let result = result.unwrap_or(&nothing);
    let code = result.get("code").and_then(Value::as_i64).unwrap_or_default();
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let (message, reason) = (result.str_at(&["message"]), result.str_at(&["reason"]));
    let mut status = Status::new(u16::try_from(code.clamp(400, 65_535)).unwrap_or(400), "", "");
    status.reason = reason.to_owned().into();
    status.message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    result.str_at(&["metadata", "continue"]).clone_into(&mut status.continue_token);
    status.details = result.get("details").filter(|details| !details.is_null()).map(|details| {
        let text = |field: &str| details.str_at(&[field]).to_owned();
        let causes = details.get("causes").and_then(Value::as_array).unwrap_or_default();
        let seconds = details.get("retryAfterSeconds").and_then(Value::as_i64).unwrap_or_default();
        Box::new(Details {
            name: text("name"),
            group: text("group"),
            kind: text("kind"),
            uid: text("uid"),
            causes: causes
                .iter()
                .map(|cause| Cause {
                    reason: cause.str_at(&["reason"]).to_owned(),
                    message: cause.str_at(&["message"]).to_owned(),
                    field: cause.str_at(&["field"]).to_owned(),
                })
                .collect(),
            retry_after_seconds: i32::try_from(seconds).unwrap_or_default(),
        })
    });
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases of upstream's TestVerifyAdmissionResponse.
    #[test]
    fn answers_are_checked() {
        use Phase::{Mutating, Validating};
        use ReviewVersion::{V1, V1Beta1};
        let check = |version: ReviewVersion, phase: Phase, response: &str, expected: Result<(), &str>| {
            let kind = r#""kind":"AdmissionReview""#;
            let body =
                format!(r#"{{"apiVersion":"{}",{kind},"response":{response}}}"#, api_version_of(version));
            let found = answer(version, phase, "123", body.as_bytes()).map(drop);
            let expected = expected.map_err(|why| Unusable::Invalid(why.to_owned()));
            assert_eq!(found, expected, "{version:?} {phase:?} {response}");
        };
        let wrong_uid = Err("expected response.uid=\"123\", got \"\"");
        for phase in [Mutating, Validating] {
            check(V1, phase, "null", Err("webhook response was absent"));
            check(V1Beta1, phase, "null", Err("webhook response was absent"));
            check(V1, phase, "{}", wrong_uid);
            check(V1Beta1, phase, "{}", Ok(()));
            check(V1, phase, r#"{"uid":"123"}"#, Ok(()));
        }
        let patch = STANDARD.encode("[{\"op\":\"add\",\"path\":\"/foo\",\"value\":\"bar\"}]");
        let with_patch = format!(r#"{{"uid":"123","patch":"{patch}"}}"#);
        let with_both = format!(r#"{{"uid":"123","patch":"{patch}","patchType":"JSONPatch"}}"#);
        let untyped = format!(r#"{{"uid":"123","patch":"{patch}","patchType":""}}"#);
        let with_type = r#"{"uid":"123","patchType":"JSONPatch"}"#;
        check(V1, Mutating, &with_patch, Err("webhook returned response.patch but not response.patchType"));
        check(V1, Mutating, with_type, Err("webhook returned response.patchType but not response.patch"));
        check(V1, Mutating, &untyped, Err("webhook returned invalid response.patchType of \"\""));
        check(V1, Mutating, &with_both, Ok(()));
        check(V1, Validating, &with_patch, Err("validating webhook may not return response.patch"));
        check(V1, Validating, &with_both, Err("validating webhook may not return response.patch"));
        check(V1, Validating, with_type, Err("validating webhook may not return response.patchType"));
        check(V1Beta1, Mutating, &with_patch, Ok(()));
        check(V1Beta1, Validating, &with_both, Ok(()));
        let body = format!(r#"{{"response":{with_both}}}"#);
        assert_eq!(
            answer(V1, Mutating, "123", body.as_bytes()).map(drop),
            Err(Unusable::Invalid(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
                    .to_owned()
            ))
        );
        let beta = answer(V1Beta1, Mutating, "", body.as_bytes()).expect("nothing is checked");
        assert_eq!(beta.patch_type, JSON_PATCH);
    }

    /// Cases of upstream's TestToStatusErr.
    #[test]
    fn refusals_are_statuses() {
        let check = |result: Option<&str>, expected: (u16, &str, &str)| {
            let result = result.map(|text| json::decode_untyped(text.as_bytes()).expect("JSON").object);
            let status = refusal("foo", result.as_ref());
            assert_eq!((status.code, &*status.reason, status.message.as_str()), expected);
        };
        let denied = "admission webhook \"foo\" denied the request";
        check(None, (400, "", &format!("{denied} without explanation")));
        check(Some(r#"{"reason":"test"}"#), (400, "test", &format!("{denied}: test")));
        check(Some(r#"{"message":"m"}"#), (400, "", &format!("{denied}: m")));
        check(Some(r#"{"message":"m","reason":"r","code":200}"#), (400, "r", &format!("{denied}: m")));
        check(Some(r#"{"message":"m","code":403}"#), (403, "", &format!("{denied}: m")));
    }
}
