//! Helpers of the tests of this folder.

use crate::validation::field::FieldError;
use crate::{Map, Value};

/// An object from JSON text, untyped.
#[track_caller]
pub(crate) fn object(json: &str) -> Value {
    from_json(&serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}")))
}

/// Each error as text.
pub(crate) fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => {
            number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap_or_default()), Value::Int)
        }
        serde_json::Value::String(text) => Value::String(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        serde_json::Value::Object(members) => {
            let members: Map = members.iter().map(|(key, value)| (key.clone(), from_json(value))).collect();
            Value::Object(members)
        }
    }
}
