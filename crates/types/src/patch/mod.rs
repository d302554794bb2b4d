//! The three patches: JSON patch (RFC 6902), merge patch (RFC 7396) and strategic merge patch.
//!
//! They work on the JSON form of an object, in which binary data is base64
//! text; [`to_json_form`] makes it. The result is decoded like any request
//! body, by the codec. Nothing here knows HTTP: the caller words its answers.

pub mod json;
pub mod merge;
pub mod strategic;

use base64_simd::STANDARD;

use crate::Value;

/// The object with every [`Value::Bytes`] as base64 text.
pub fn to_json_form(value: &Value) -> Value {
    match value {
        Value::Bytes(bytes) => Value::String(STANDARD.encode_to_string(bytes.expose())),
        Value::Array(items) => Value::Array(items.iter().map(to_json_form).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), to_json_form(value))).collect())
        }
        scalar => scalar.clone(),
    }
}

/// The same without what is at `path`, which is not copied first.
pub(crate) fn to_json_form_without(value: &Value, path: &[&str]) -> Value {
    let (Value::Object(members), Some((first, rest))) = (value, path.split_first()) else {
        return to_json_form(value);
    };
    let kept = members.iter().filter(|(key, _)| !rest.is_empty() || key != first);
    Value::Object(
        kept.map(|(key, value)| {
            let value = if key == first { to_json_form_without(value, rest) } else { to_json_form(value) };
            (key.clone(), value)
        })
        .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_left_out_there_only() {
        let inner = || Value::from([("managedFields", Value::from("x")), ("name", Value::from("y"))]);
        let object = Value::from([("managedFields", Value::from("z")), ("metadata", inner())]);
        let path = ["metadata", "managedFields"];
        let mut expected = to_json_form(&object);
        expected.remove(&path);
        assert!(to_json_form_without(&object, &path) == expected);
        assert!(to_json_form_without(&expected, &path) == expected);
        assert!(to_json_form_without(&Value::from("text"), &path) == Value::from("text"));
    }

    #[test]
    fn bytes_become_base64() {
        let value = Value::from([("data", Value::from([("a", Value::Bytes(b"v".to_vec().into()))]))]);
        assert!(to_json_form(&value) == Value::from([("data", Value::from([("a", "dg==")]))]));
    }
}
