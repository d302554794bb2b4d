//! Fields by which objects of a definition are selected.

use coffer_types::Value;

use super::go_value;
use super::schema::{Additional, Schema};

/// One of `selectableFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectableField {
    /// As a selector names it: the path without its leading dot.
    pub name: String,
    names: Vec<String>,
}

impl SelectableField {
    /// Those of one entry of `spec.versions`.
    pub fn of_version(version: &Value) -> Vec<Self> {
        let fields = version.get("selectableFields").and_then(Value::as_array).unwrap_or_default();
        fields.iter().map(|field| Self::new(field.str_at(&["jsonPath"]))).collect()
    }

    fn new(json_path: &str) -> Self {
        let name = json_path.strip_prefix('.').unwrap_or(json_path);
        Self { name: name.to_owned(), names: name.split('.').map(str::to_owned).collect() }
    }

    /// What a selector compares; "" when the object does not have the field.
    pub fn value(&self, object: &Value) -> String {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        match object.at(&names) {
            None | Some(Value::Null) => String::new(),
            Some(value) => go_value::printed(value),
        }
    }
}

/// The schema that a path of fields leads to, and the path as errors name it.
pub(super) fn resolve<'s>(
    json_path: &str,
    root: &'s Schema,
) -> Result<(Vec<String>, Option<&'s Schema>), String> {
    const NO_FIELD: &str = "does not refer to a valid field";
    let mut tokens = tokens(json_path).into_iter();
    let mut path = Vec::new();
    let mut schema = Some(root);
    while let Some(token) = tokens.next() {
        match token {
            "[" => return Err("array notation is not allowed".to_owned()),
            "." => {}
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        let name = tokens.next().ok_or("unexpected end of JSON path")?;
        let parent = schema.ok_or(NO_FIELD)?;
        if !parent.properties.is_empty() {
            schema = Some(parent.property(name).ok_or(NO_FIELD)?);
            path.push(name.to_owned());
        } else {
            schema = match &parent.additional {
                Additional::Absent => return Err(NO_FIELD.to_owned()),
                Additional::Flag(_) => None,
                Additional::Schema(schema) => Some(schema),
            };
            path.push(format!("[{name}]"));
        }
    }
    Ok((path, schema))
}

/// Dots and brackets, and what is between them; a text in single quotes is one.
fn tokens(mut text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    while !text.is_empty() {
        let end = if text.starts_with('\'') {
            let bytes = text.as_bytes();
            (1..bytes.len())
                .find(|index| bytes[*index] == b'\'' && bytes[*index - 1] != b'\\')
                .map_or(text.len(), |index| index + 1)
        } else if text.starts_with(['.', '[', ']']) {
            1
        } else {
            text.find(['.', '[', ']']).unwrap_or(text.len())
        };
        let (token, rest) = text.split_at(end);
        tokens.push(token);
        text = rest;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::testing::yaml;

    /// Cases of upstream's TestValidateFieldPath that have no brackets, and what becomes of those that do.
    #[test]
    fn paths_lead_to_fields() {
        let schema = Schema::parse(&yaml(
            r#"
type: object
properties:
  foo: {type: object, additionalProperties: {type: object, properties: {subAdd: {type: number}}}}
  any: {type: object, additionalProperties: true}
  "white space": {type: number}
  a:
    type: object
    properties:
      "foo's": {type: number}
      bbb: {type: object, properties: {c: {type: number}, "34": {type: number}}}
  list: {type: array, items: {type: object, properties: {a: {type: number}}}}
"#,
        ));
        for (path, expected) in [
            (".a", Ok("object")),
            (".\\'foo\\'bar", Err("does not refer to a valid field")),
            (". a", Err("does not refer to a valid field")),
            (".white space", Ok("number")),
            (".a.bb[b", Err("does not refer to a valid field")),
            (".a['bbb.c']", Err("array notation is not allowed")),
            (".", Err("unexpected end of JSON path")),
            (".foo.subAdd", Ok("object")),
            (".foo.subAdd.subAdd", Ok("number")),
            (".a.foo's", Ok("number")),
            (".a.foo", Err("does not refer to a valid field")),
            (".a.bbb[0]", Err("array notation is not allowed")),
            (".a.bbb.34", Ok("number")),
            (".list", Ok("array")),
            (".list.a", Err("does not refer to a valid field")),
            (".any.x", Ok("")),
            (".any.x.y", Err("does not refer to a valid field")),
            ("a", Err("expected [ or . but got: a")),
            (".a]", Err("expected [ or . but got: ]")),
            ("..a", Err("does not refer to a valid field")),
        ] {
            let found = resolve(path, &schema).map(|(_, schema)| schema.map_or("", |schema| &schema.kind));
            assert_eq!(found, expected.map_err(str::to_owned), "{path}");
        }
    }

    #[test]
    fn values_are_texts() {
        let object = yaml("{spec: {color: blue, quantity: 2, branded: false, gone: null}}");
        for (path, expected) in [
            (".spec.color", "blue"),
            (".spec.quantity", "2"),
            (".spec.branded", "false"),
            (".spec.gone", ""),
            (".spec.absent", ""),
            (".spec.color.deeper", ""),
        ] {
            assert_eq!(SelectableField::new(path).value(&object), expected, "{path}");
        }
    }
}
