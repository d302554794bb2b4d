//! Schemas in the words of version 2, where only one type, or none, may be said.
//!
//! What kubectl of version 2 stumbles over is left out, as apiextensions-apiserver does
//! (`pkg/controller/openapi/v2`).

use serde_json::{Map, Value, json};

use super::super::schemas::{INT_OR_STRING, QUANTITY};

/// A named schema.
pub(super) fn definition(name: &str, mut schema: Value) -> Value {
    match name {
        INT_OR_STRING => json!({ "type": "string", "format": "int-or-string" }),
        QUANTITY => json!({ "type": "string" }),
        _ => {
            if whole_and_open(&schema) {
                // With the fields of every object kubectl would refuse all others.
                let kinds = schema["x-kubernetes-group-version-kind"].take();
                return json!({ "type": "object", "x-kubernetes-group-version-kind": kinds });
            }
            convert(&mut schema);
            schema
        }
    }
}

/// A custom resource that keeps whatever it is given.
fn whole_and_open(schema: &Value) -> bool {
    schema.get("x-kubernetes-group-version-kind").is_some() && keeps_unknown(schema)
}

fn keeps_unknown(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

fn nullable(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

/// A schema in any place.
pub(super) fn convert(schema: &mut Value) {
    let open = keeps_unknown(schema);
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(all)) = members.remove("allOf")
        && let [Value::Object(only)] = &all[..]
        && only.contains_key("$ref")
    {
        members.extend(only.clone());
    }
    if let Some(Value::String(reference)) = members.get_mut("$ref") {
        *reference = reference.replace("#/components/schemas/", "#/definitions/");
    }
    for word in ["oneOf", "anyOf", "not", "default"] {
        members.remove(word);
    }
    if members.remove("nullable") == Some(Value::Bool(true)) {
        for word in ["type", "items", "properties"] {
            members.remove(word);
        }
    }
    if open {
        members.remove("items");
        members.remove("properties");
        // Nothing is said of an object within either.
        if members.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true))
            && let Some(Value::Array(required)) = members.get_mut("required")
        {
            required.retain(|field| field != "kind" && field != "apiVersion");
        }
    }
    let kind = members.get("type").and_then(Value::as_str);
    if (kind == Some("array") && !members.contains_key("items")) || (kind == Some("object") && open) {
        members.remove("type");
    }
    require_less(members);
    for (word, value) in members {
        match word.as_str() {
            "properties" => value.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(convert),
            "items" | "additionalProperties" => convert(value),
            _ => {}
        }
    }
}

/// Where null may stand nothing is said of the type, and so nothing can be required.
fn require_less(members: &mut Map<String, Value>) {
    let Some(Value::Array(mut required)) = members.remove("required") else { return };
    if let Some(Value::Object(properties)) = members.get("properties") {
        required.retain(|name| !name.as_str().and_then(|name| properties.get(name)).is_some_and(nullable));
    }
    if !required.is_empty() && !members.get("additionalProperties").is_some_and(nullable) {
        members.insert("required".into(), required.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of `TestConvertJSONSchemaPropsToOpenAPIv2Schema` of apiextensions-apiserver that structural schemas can have.
    #[test]
    fn convert_json_schema_props_to_open_apiv2_schema() {
        for (name, given, expected) in [
            ("nothing to convert", json!({ "type": "string" }), json!({ "type": "string" })),
            ("default", json!({ "type": "object", "default": { "a": 1 } }), json!({ "type": "object" })),
            ("nullable", json!({ "type": "object", "nullable": true }), json!({})),
            (
                "nullable with items",
                json!({ "type": "array", "nullable": true, "items": { "type": "string" }, "minItems": 1 }),
                json!({ "minItems": 1 }),
            ),
            (
                "required and nullable",
                json!({
                    "type": "object",
                    "required": ["a", "b"],
                    "properties": { "a": { "type": "string", "nullable": true }, "b": { "type": "string" } },
                }),
                json!({
                    "type": "object",
                    "required": ["b"],
                    "properties": { "a": {}, "b": { "type": "string" } },
                }),
            ),
            (
                "additional properties and nullable",
                json!({
                    "type": "object",
                    "required": ["a"],
                    "additionalProperties": { "type": "string", "nullable": true },
                }),
                json!({ "type": "object", "additionalProperties": {} }),
            ),
            ("allOf", json!({ "allOf": [{ "required": ["a"] }] }), json!({})),
            ("anyOf", json!({ "anyOf": [{ "required": ["a"] }] }), json!({})),
            ("oneOf", json!({ "oneOf": [{ "required": ["a"] }] }), json!({})),
            ("not", json!({ "not": { "required": ["a"] } }), json!({})),
            (
                "nested",
                json!({ "type": "object", "properties": { "a": { "type": "string", "not": { "enum": ["x"] } } } }),
                json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            ),
            (
                "preserve-unknown-fields of an object",
                json!({
                    "type": "object",
                    "properties": { "a": { "type": "string" } },
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
                json!({ "x-kubernetes-preserve-unknown-fields": true }),
            ),
            (
                "preserve-unknown-fields of a list",
                json!({
                    "type": "array",
                    "items": { "type": "string" },
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
                json!({ "x-kubernetes-preserve-unknown-fields": true }),
            ),
            (
                "preserve-unknown-fields of an object within",
                json!({
                    "type": "object",
                    "required": ["kind", "apiVersion", "a"],
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
                json!({
                    "required": ["a"],
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                }),
            ),
            (
                "a field that is called as a word is",
                json!({ "type": "object", "properties": { "default": { "type": "string", "default": "x" } } }),
                json!({ "type": "object", "properties": { "default": { "type": "string" } } }),
            ),
        ] {
            let mut schema = given;
            convert(&mut schema);
            assert_eq!(schema, expected, "{name}");
        }
    }

    #[test]
    fn references_lead_to_definitions() {
        let mut schema = json!({ "allOf": [{ "$ref": "#/components/schemas/a.B" }], "default": {} });
        convert(&mut schema);
        assert_eq!(schema, json!({ "$ref": "#/definitions/a.B" }));
    }

    #[test]
    fn an_open_custom_resource_has_no_fields() {
        let schema = json!({
            "type": "object",
            "properties": { "metadata": {} },
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [{ "kind": "A" }],
        });
        assert_eq!(
            definition("a.A", schema),
            json!({ "type": "object", "x-kubernetes-group-version-kind": [{ "kind": "A" }] })
        );
    }
}
