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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        let value = Value::from([("data", Value::from([("a", Value::Bytes(b"v".to_vec().into()))]))]);
        assert!(to_json_form(&value) == Value::from([("data", Value::from([("a", "dg==")]))]));
    }
}
