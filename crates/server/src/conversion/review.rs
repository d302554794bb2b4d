//! ConversionReview: what a conversion webhook is asked, and what of its answer is taken.
//!
//! No error holds a value of an object.

use coffer_types::codec::json;
use coffer_types::meta::Meta as _;
use coffer_types::validation::field::{Path, aggregate, go_json};
use coffer_types::validation::meta;
use coffer_types::{Map, Value};

use crate::crd::go_value::go_type;
use crate::quote;
use crate::webhook::ReviewVersion;

fn api_version_of(version: ReviewVersion) -> &'static str {
    match version {
        ReviewVersion::V1 => "apiextensions.k8s.io/v1",
        ReviewVersion::V1Beta1 => "apiextensions.k8s.io/v1beta1",
    }
}

impl ReviewVersion {
    /// The body of a request about encoded objects.
    pub(crate) fn request(self, uid: &str, desired: &str, objects: &[Vec<u8>]) -> Vec<u8> {
        let head = format!(
            r#"{{"kind":"ConversionReview","apiVersion":"{}","request":{{"uid":{},"desiredAPIVersion":{},"objects":["#,
            api_version_of(self),
            go_json(&uid.into()),
            go_json(&desired.into()),
        );
        // Upstream sends an empty response along.
        const TAIL: &[u8] =
            b"]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}\n";
        let size: usize = objects.iter().map(|object| object.len() + 1).sum();
        let mut body = Vec::with_capacity(head.len() + size + TAIL.len());
        body.extend_from_slice(head.as_bytes());
        for (index, object) in objects.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(object);
        }
        body.extend_from_slice(TAIL);
        body
    }

    /// The converted objects of an answer.
    pub(crate) fn answer(self, uid: &str, body: &[u8]) -> Result<Vec<Value>, String> {
        let tree = json::decode_untyped(body)
            .map_err(|_| "couldn't get version/kind; json parse error: the answer is not JSON".to_owned())?;
        let mut review = tree.object;
        if review.as_object().is_none() {
            return Err("couldn't get version/kind; json parse error: the answer is no object".to_owned());
        }
        if self == Self::V1 {
            let (group, version) = meta_version(&review);
            let found = format!("{group}/{version}, Kind={}", review.kind());
            let expected = format!("{}, Kind=ConversionReview", api_version_of(self));
            if found != expected {
                return Err(format!("expected webhook response of {expected}, got {found}"));
            }
        }
        let Some(response) = review.get_mut("response").filter(|response| !response.is_null()) else {
            return Err("no response provided".to_owned());
        };
        let found = response.str_at(&["uid"]);
        if self == Self::V1 && found != uid {
            return Err(format!("expected response.uid={}, got {}", quote(uid), quote(found)));
        }
        let status = response.str_at(&["result", "status"]);
        if status != "Success" {
            let message = response.str_at(&["result", "message"]);
            return Err(if message.is_empty() {
                format!("response.result.status was '{status}', not 'Success'")
            } else {
                message.to_owned()
            });
        }
        match response.remove(&["convertedObjects"]) {
            Some(Value::Array(objects)) => Ok(objects),
            _ => Ok(Vec::new()),
        }
    }
}

fn meta_version(object: &Value) -> (&str, &str) {
    coffer_types::meta::split_api_version(object.api_version())
}

/// `group/version, Kind=kind`, as upstream prints the type of an object.
pub(crate) fn type_of(object: &Value) -> String {
    let (group, version) = meta_version(object);
    format!("{group}/{version}, Kind={}", object.kind())
}

/// A converted object as it may be used: of the version that was asked for, the same object,
/// with its own metadata but for labels and annotations. `of` is the type of what was converted.
pub(crate) fn check(original: &Value, mut converted: Value, desired: &str) -> Result<Value, String> {
    let of = type_of(original);
    if converted.as_object().is_none() {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            converted.json_kind()
        ));
    }
    if converted.kind().is_empty() {
        return Err("Object 'Kind' is missing in '<content redacted>'".to_owned());
    }
    let invalid =
        |why: String| format!("conversion webhook for {of} returned invalid object at index 0: {why}");
    if converted.api_version() != desired {
        return Err(invalid(format!(
            "invalid groupVersion (expected {desired}, received {})",
            converted.api_version()
        )));
    }
    if converted.kind() != original.kind() {
        return Err(invalid(format!(
            "invalid kind (expected {}, received {})",
            original.kind(),
            converted.kind()
        )));
    }
    for (what, expected, found) in [
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ] {
        if expected != found {
            return Err(format!(
                "conversion webhook for {of} returned invalid object: must have the same {what}: {expected} != {found}"
            ));
        }
    }
    restore(original, &mut converted)
        .map_err(|why| format!("conversion webhook for {of} returned invalid metadata: {why}"))?;
    Ok(converted)
}

/// Gives a converted object the metadata of its original, but for labels and annotations.
fn restore(original: &Value, converted: &mut Value) -> Result<(), String> {
    let Some(answered) = converted.remove(&["metadata"]) else {
        return Err("missing metadata in converted object".to_owned());
    };
    let Value::Object(mut answered) = answered else {
        return Err(format!("invalid metadata of type {} in converted object", go_type(&answered)));
    };
    let mut metadata = match original.get("metadata") {
        None => Map::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", go_type(other))),
    };
    for name in ["labels", "annotations"] {
        let field = match answered.remove(name) {
            None | Some(Value::Null) => {
                metadata.remove(name);
                continue;
            }
            Some(Value::Object(field)) => field,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{name} of type {} in converted object",
                    go_type(&other)
                ));
            }
        };
        let before = match metadata.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::Object(before)) => Some(before),
            Some(other) => {
                return Err(format!("invalid metadata.{name} of type {} in original object", go_type(other)));
            }
        };
        if let Some((key, value)) = field.iter().find(|(_, value)| value.as_str().is_none()) {
            return Err(format!(
                "metadata.{name}[{key}] must be a string, but is {} in converted object",
                go_type(value)
            ));
        }
        if before != Some(&field) && !(before.is_none() && field.is_empty()) {
            let errors = match name {
                "labels" => meta::labels(&field, &Path::of(&["metadata", "labels"])),
                _ => meta::annotations(&field, &Path::of(&["metadata", "annotation"])),
            };
            if !errors.is_empty() {
                return Err(aggregate(&errors));
            }
        }
        metadata.insert(name.to_owned(), Value::Object(field));
    }
    converted.set(&["metadata"], Value::Object(metadata));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Value {
        json::decode_untyped(text.as_bytes()).expect("JSON").object
    }

    #[test]
    fn a_request_names_objects_and_version() {
        let objects = [br#"{"kind":"A"}"#.to_vec(), br#"{"kind":"B"}"#.to_vec()];
        let body = tree(&String::from_utf8(ReviewVersion::V1.request("u", "g/v2", &objects)).expect("text"));
        let expected = r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"g/v2","objects":[{"kind":"A"},{"kind":"B"}]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#;
        assert!(body == tree(expected));
    }

    /// Cases of upstream's TestGetConvertedObjectsFromResponse.
    #[test]
    fn answers_are_checked() {
        use ReviewVersion::{V1, V1Beta1};
        let check = |version: ReviewVersion, answer: &str, expected: Result<usize, &str>| {
            let found = version.answer("uid1", answer.as_bytes()).map(|objects| objects.len());
            assert_eq!(found, expected.map_err(str::to_owned), "{answer}");
        };
        const TYPED: &str = r#""apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview""#;
        let v1 = |response: &str| format!("{{{TYPED},\"response\":{response}}}");
        check(V1, "x", Err("couldn't get version/kind; json parse error: the answer is not JSON"));
        check(V1, "[]", Err("couldn't get version/kind; json parse error: the answer is no object"));
        check(
            V1,
            r#"{"response":{"uid":"uid1","result":{"status":"Success"}}}"#,
            Err("expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="),
        );
        check(V1, &v1("null"), Err("no response provided"));
        check(V1, &v1(r#"{"uid":"2"}"#), Err(r#"expected response.uid="uid1", got "2""#));
        check(V1, &v1(r#"{"uid":"uid1"}"#), Err("response.result.status was '', not 'Success'"));
        check(
            V1,
            &v1(r#"{"uid":"uid1","result":{"status":"failure"}}"#),
            Err("response.result.status was 'failure', not 'Success'"),
        );
        check(
            V1,
            &v1(r#"{"uid":"uid1","result":{"status":"failure","message":"some failure message"}}"#),
            Err("some failure message"),
        );
        check(V1, &v1(r#"{"uid":"uid1","result":{"status":"Success"},"convertedObjects":[{},{}]}"#), Ok(2));
        check(V1, &v1(r#"{"uid":"uid1","result":{"status":"Success"}}"#), Ok(0));
        check(V1Beta1, "{}", Err("no response provided"));
        check(V1Beta1, r#"{"response":{"result":{"status":"Success"},"convertedObjects":[{}]}}"#, Ok(1));
        check(V1Beta1, r#"{"response":{}}"#, Err("response.result.status was '', not 'Success'"));
    }

    #[test]
    fn only_the_same_object_in_the_wanted_version_is_taken() {
        let original = tree(
            r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"n","namespace":"s","uid":"u","generation":3}}"#,
        );
        let check = |converted: &str, expected: &str| {
            let found = super::check(&original, tree(converted), "g/v2").err().unwrap_or_default();
            assert_eq!(found, expected, "{converted}");
        };
        let meta = r#""metadata":{"name":"n","namespace":"s","uid":"u"}"#;
        let of = "conversion webhook for g/v1, Kind=K returned invalid object";
        check(&format!(r#"{{"apiVersion":"g/v2","kind":"K",{meta}}}"#), "");
        check("7", "json: cannot unmarshal number into Go value of type map[string]interface {}");
        check("{}", "Object 'Kind' is missing in '<content redacted>'");
        check(
            &format!(r#"{{"apiVersion":"g/v1","kind":"K",{meta}}}"#),
            &format!("{of} at index 0: invalid groupVersion (expected g/v2, received g/v1)"),
        );
        check(
            &format!(r#"{{"apiVersion":"g/v2","kind":"L",{meta}}}"#),
            &format!("{of} at index 0: invalid kind (expected K, received L)"),
        );
        for (changed, why) in [
            (r#""name":"m","namespace":"s","uid":"u""#, "name: n != m"),
            (r#""name":"n","namespace":"t","uid":"u""#, "namespace: s != t"),
            (r#""name":"n","namespace":"s","uid":"v""#, "UID: u != v"),
        ] {
            check(
                &format!(r#"{{"apiVersion":"g/v2","kind":"K","metadata":{{{changed}}}}}"#),
                &format!("{of}: must have the same {why}"),
            );
        }
    }

    /// Cases of upstream's TestRestoreObjectMeta.
    #[test]
    fn metadata_is_restored_but_for_labels_and_annotations() {
        let check = |original: &str, converted: &str, expected: Result<&str, &str>| {
            let object = |meta: &str| tree(&format!(r#"{{"kind":"foo","spec":{{}}{meta}}}"#));
            let mut found = object(converted);
            let outcome = restore(&object(original), &mut found);
            match expected {
                Ok(meta) => {
                    assert_eq!(outcome, Ok(()), "{converted}");
                    assert!(found == object(meta), "{converted}");
                }
                Err(why) => assert_eq!(outcome, Err(why.to_owned()), "{converted}"),
            }
        };
        check(r#","metadata":{}"#, "", Err("missing metadata in converted object"));
        check(
            r#","metadata":{}"#,
            r#","metadata":"x""#,
            Err("invalid metadata of type string in converted object"),
        );
        check(
            "",
            r#","metadata":{"name":"x","labels":{"a":"b"}}"#,
            Ok(r#","metadata":{"labels":{"a":"b"}}"#),
        );
        check(
            r#","metadata":{"name":"x"}"#,
            r#","metadata":{"name":"y"}"#,
            Ok(r#","metadata":{"name":"x"}"#),
        );
        check(
            r#","metadata":{"name":"x","labels":{"a":"b"},"annotations":{"c":"d"}}"#,
            r#","metadata":{"labels":{"e":"f"}}"#,
            Ok(r#","metadata":{"name":"x","labels":{"e":"f"}}"#),
        );
        check(
            r#","metadata":{"labels":{"a":"b"}}"#,
            r#","metadata":{"labels":null,"annotations":{"c":"d"}}"#,
            Ok(r#","metadata":{"annotations":{"c":"d"}}"#),
        );
        check(
            r#","metadata":{}"#,
            r#","metadata":{"labels":7}"#,
            Err("invalid metadata.labels of type int64 in converted object"),
        );
        check(
            r#","metadata":{}"#,
            r#","metadata":{"labels":{"a":7}}"#,
            Err("metadata.labels[a] must be a string, but is int64 in converted object"),
        );
        check(
            r#","metadata":{}"#,
            r#","metadata":{"labels":{"a":"-"}}"#,
            Err(
                "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
        );
        // What was invalid before may stay so.
        let invalid = r#","metadata":{"labels":{"a":"-"}}"#;
        check(invalid, invalid, Ok(invalid));
    }
}
