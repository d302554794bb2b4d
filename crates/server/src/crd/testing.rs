//! Trees from JSON text.

use coffer_types::Value;

use super::schema::Schema;

pub(super) fn tree(json: &str) -> Value {
    coffer_types::codec::json::decode_untyped(json.as_bytes()).expect("is JSON").object
}

pub(super) fn yaml(text: &str) -> Value {
    coffer_types::codec::yaml::decode_untyped(text.as_bytes()).expect("is YAML").object
}

pub(super) fn schema(json: &str) -> Schema {
    Schema::parse(&tree(json))
}

pub(super) fn json(value: &Value) -> String {
    coffer_types::validation::field::go_json(value)
}

pub(super) fn texts(errors: &[coffer_types::validation::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
