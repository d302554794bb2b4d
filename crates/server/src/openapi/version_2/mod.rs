//! OpenAPI v2: all documents of version 3 as one, in the words of version 2.

mod protobuf;
mod schema;

use serde_json::{Map, Value, json};

use super::schemas::Components;
use crate::discovery::version::MINOR_VERSION;

pub(super) use protobuf::encode;

/// One document of all paths and schemas, as version 3 has them.
pub(super) fn document(paths: Map<String, Value>, components: Components) -> Value {
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": MINOR_VERSION },
        "paths": paths.into_iter().map(|(path, item)| (path, path_item(item))).collect::<Map<_, _>>(),
        "definitions": components
            .into_iter()
            .map(|(name, definition)| {
                let definition = schema::definition(&name, definition);
                (name, definition)
            })
            .collect::<Map<_, _>>(),
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            },
        },
        "security": [{ "BearerToken": [] }],
    })
}

fn path_item(mut item: Value) -> Value {
    if let Value::Object(members) = &mut item {
        for (key, value) in members {
            match key.as_str() {
                "parameters" => parameters(value),
                _ => operation(value),
            }
        }
    }
    item
}

/// Parameters say their type themselves.
fn parameters(all: &mut Value) {
    for parameter in all.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(Value::Object(schema)) = parameter.remove("schema") {
            parameter.extend(schema);
        }
    }
}

/// A body is a parameter, and media types stand beside it.
fn operation(operation: &mut Value) {
    let Value::Object(members) = operation else { return };
    let mut produces = Vec::new();
    for answer in members["responses"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        let (media, schema) = content(answer);
        if let (Some(schema), Value::Object(answer)) = (schema, answer) {
            answer.insert("schema".into(), schema);
            produces = media;
        }
    }
    let mut consumes = match produces.iter().any(|media| media == PROTOBUF) {
        true => vec![json!("*/*")],
        false => produces.clone(),
    };
    let mut own = members.remove("parameters").unwrap_or_else(|| json!([]));
    parameters(&mut own);
    if let (Some(mut body), Value::Array(own)) = (members.remove("requestBody"), &mut own) {
        let (media, schema) = content(&mut body);
        consumes = media;
        let mut parameter = json!({ "name": "body", "in": "body", "schema": schema });
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        own.insert(0, parameter);
    }
    if own.as_array().is_some_and(|own| !own.is_empty()) {
        members.insert("parameters".into(), own);
    }
    members.insert("consumes".into(), consumes.into());
    members.insert("produces".into(), produces.into());
    members.insert("schemes".into(), json!(["https"]));
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Takes the `content` away: its media types, and the schema that they share.
fn content(holder: &mut Value) -> (Vec<Value>, Option<Value>) {
    let Some(Value::Object(content)) = holder.as_object_mut().and_then(|members| members.remove("content"))
    else {
        return (Vec::new(), None);
    };
    let media = content.keys().map(|media| media.as_str().into()).collect();
    let mut schema = content.into_values().next().map(|mut media| media["schema"].take());
    if let Some(schema) = &mut schema {
        schema::convert(schema);
    }
    (media, schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_a_parameter_and_media_types_stand_beside() {
        let paths = json!({ "/a/{name}": {
            "parameters": [{ "name": "name", "in": "path", "required": true, "schema": { "type": "string", "uniqueItems": true } }],
            "put": {
                "operationId": "replaceA",
                "parameters": [{ "name": "dryRun", "in": "query", "schema": { "type": "string", "uniqueItems": true } }],
                "requestBody": { "required": true, "content": { "*/*": { "schema": { "$ref": "#/components/schemas/A" } } } },
                "responses": {
                    "200": { "description": "OK", "content": {
                        "application/json": { "schema": { "$ref": "#/components/schemas/A" } },
                        "application/vnd.kubernetes.protobuf": { "schema": { "$ref": "#/components/schemas/A" } },
                    } },
                    "401": { "description": "Unauthorized" },
                },
            },
        } });
        let paths = paths.as_object().expect("an object").clone();
        let document = document(paths, Map::new());
        assert_eq!(
            document["paths"]["/a/{name}"],
            json!({
                "parameters": [{ "name": "name", "in": "path", "required": true, "type": "string", "uniqueItems": true }],
                "put": {
                    "operationId": "replaceA",
                    "consumes": ["*/*"],
                    "produces": ["application/json", "application/vnd.kubernetes.protobuf"],
                    "schemes": ["https"],
                    "parameters": [
                        { "name": "body", "in": "body", "required": true, "schema": { "$ref": "#/definitions/A" } },
                        { "name": "dryRun", "in": "query", "type": "string", "uniqueItems": true },
                    ],
                    "responses": {
                        "200": { "description": "OK", "schema": { "$ref": "#/definitions/A" } },
                        "401": { "description": "Unauthorized" },
                    },
                },
            })
        );
    }
}
