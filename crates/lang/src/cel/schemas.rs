//! Declared types of the schemas that custom resources have.

use std::sync::Arc;

use coffer_types::Value as Tree;

use super::declared::{DeclaredType, Field, Fields, ListIdentity, NO_MAXIMUM, Scalar, Shape, escape};
use super::estimate::{Range, SizeEstimator};
use super::types::Type;

/// The largest request, in bytes: nothing in an object can be larger.
const REQUEST_SIZE: u64 = 3 * 1024 * 1024;
/// The longest text of a duration or a time in JSON.
const TIME_SIZE: u64 = 32;
/// The text of a date in JSON.
const DATE_SIZE: u64 = 12;
/// The longest name of a resource.
const NAME_SIZE: u64 = 253;

/// The declared type of `schema`, with names of object types that begin with `name`.
/// `root` says that it is that of a whole resource. None where rules cannot see the values.
pub fn declared_type(schema: &Tree, root: bool, name: &str) -> Option<Arc<DeclaredType>> {
    convert(schema, root, name).map(Arc::new)
}

fn flag(schema: &Tree, name: &str) -> bool {
    schema.get(name).and_then(Tree::as_bool).unwrap_or(false)
}

fn number(schema: &Tree, name: &str) -> Option<u64> {
    let number = match schema.get(name)? {
        Tree::Int(number) => *number,
        Tree::Float(number) => *number as i64,
        _ => return None,
    };
    Some(u64::try_from(number).unwrap_or(0))
}

fn convert(schema: &Tree, root: bool, name: &str) -> Option<DeclaredType> {
    let nullable = flag(schema, "nullable");
    let scalar = |cel: Type, scalar: Scalar, maximum: u64, minimum_serialized: u64| {
        Some(DeclaredType { cel, shape: Shape::Scalar(scalar), nullable, maximum, minimum_serialized })
    };
    let longest = number(schema, "maxLength");
    if flag(schema, "x-kubernetes-int-or-string") {
        let maximum = longest.map_or(REQUEST_SIZE - 2, |length| length.saturating_mul(4));
        return scalar(Type::Dyn, Scalar::IntOrString, maximum, 1);
    }
    match schema.str_at(&["type"]) {
        "array" => list(schema, nullable, name),
        "object" => object(schema, root, nullable, name),
        "string" => match schema.str_at(&["format"]) {
            "byte" => scalar(Type::Bytes, Scalar::Bytes, longest.unwrap_or(REQUEST_SIZE - 2), 2),
            "duration" => scalar(Type::Duration, Scalar::Duration, TIME_SIZE, 3),
            "date" => scalar(Type::Timestamp, Scalar::Date, DATE_SIZE, DATE_SIZE),
            "date-time" => scalar(Type::Timestamp, Scalar::DateTime, TIME_SIZE, 21),
            _ => scalar(Type::String, Scalar::String, text_maximum(schema, longest), 2),
        },
        "boolean" => scalar(Type::Bool, Scalar::Bool, 0, 4),
        "number" => scalar(Type::Double, Scalar::Double, 0, 1),
        "integer" => scalar(Type::Int, Scalar::Int, 0, 1),
        _ => None,
    }
}

fn text_maximum(schema: &Tree, longest: Option<u64>) -> u64 {
    if let Some(longest) = longest {
        return longest.saturating_mul(4);
    }
    let values = schema.get("enum").and_then(Tree::as_array).unwrap_or_default();
    if values.is_empty() {
        return REQUEST_SIZE - 2;
    }
    values.iter().filter_map(Tree::as_str).map(|text| text.len() as u64).max().unwrap_or(0)
}

fn list(schema: &Tree, nullable: bool, name: &str) -> Option<DeclaredType> {
    let items = schema.get("items")?;
    let element = convert(items, flag(items, "x-kubernetes-embedded-resource"), &format!("{name}.@idx"))?;
    let maximum = number(schema, "maxItems").unwrap_or((REQUEST_SIZE - 2) / (element.minimum_serialized + 1));
    let identity = match schema.str_at(&["x-kubernetes-list-type"]) {
        "set" => ListIdentity::Set,
        "map" => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Tree::as_array).unwrap_or_default();
            ListIdentity::Map(keys.iter().filter_map(Tree::as_str).filter_map(escape).collect())
        }
        _ => ListIdentity::Atomic,
    };
    Some(DeclaredType {
        cel: Type::list(element.cel.clone()),
        shape: Shape::List { element: Arc::new(element), identity },
        nullable,
        maximum,
        minimum_serialized: 2,
    })
}

fn object(schema: &Tree, root: bool, nullable: bool, name: &str) -> Option<DeclaredType> {
    if !root && let Some(values @ Tree::Object(_)) = schema.get("additionalProperties") {
        let element =
            convert(values, flag(values, "x-kubernetes-embedded-resource"), &format!("{name}.@elem"))?;
        let maximum =
            number(schema, "maxProperties").unwrap_or((REQUEST_SIZE - 2) / (element.minimum_serialized + 6));
        return Some(DeclaredType {
            cel: Type::map(Type::String, element.cel.clone()),
            shape: Shape::Map { element: Arc::new(element) },
            nullable,
            maximum,
            minimum_serialized: 2,
        });
    }
    let mut fields = Fields::default();
    let mut minimum_serialized = 2;
    let required = schema.get("required").and_then(Tree::as_array).unwrap_or_default();
    let with_meta;
    let properties = if root {
        with_meta = with_object_meta(schema);
        with_meta.as_object()
    } else {
        schema.get("properties").and_then(Tree::as_object)
    };
    for (property, schema) in properties.into_iter().flatten() {
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let escaped = escape(property);
        let inner_name = format!("{name}.{}", escaped.as_deref().unwrap_or(property));
        let Some(declared) = convert(schema, embedded, &inner_name) else { continue };
        let is_required = required.iter().any(|name| name.as_str() == Some(property));
        if is_required && schema.get("default").is_none() {
            minimum_serialized += property.len() as u64 + declared.minimum_serialized + 4;
        }
        let Some(escaped) = escaped else { continue };
        let (field, property) = (Arc::from(escaped), Arc::from(property.as_str()));
        fields.insert(Field { name: field, property, declared: Arc::new(declared) });
    }
    Some(DeclaredType {
        cel: Type::object(name),
        shape: Shape::Object(fields),
        nullable,
        maximum: 0,
        minimum_serialized,
    })
}

/// The properties of a resource's schema with those that each resource has.
fn with_object_meta(schema: &Tree) -> Tree {
    let mut properties = schema.get("properties").cloned().unwrap_or_else(Tree::object);
    let complete = properties.str_at(&["kind", "type"]) == "string"
        && properties.str_at(&["apiVersion", "type"]) == "string"
        && properties.str_at(&["metadata", "type"]) == "object"
        && properties.str_at(&["metadata", "properties", "name", "type"]) == "string"
        && properties.str_at(&["metadata", "properties", "generateName", "type"]) == "string";
    if complete {
        return properties;
    }
    let capped = |name: &str, most: u64| {
        let declared =
            properties.at(&["metadata", "properties", name]).and_then(|schema| number(schema, "maxLength"));
        let most = declared.map_or(most, |declared| declared.min(most));
        Tree::from([("type", Tree::from("string")), ("maxLength", Tree::Int(most as i64))])
    };
    let names = Tree::from([
        ("name", capped("name", NAME_SIZE)),
        ("generateName", capped("generateName", NAME_SIZE - 1)),
    ]);
    let text = || Tree::from([("type", "string")]);
    properties.set(&["kind"], text());
    properties.set(&["apiVersion"], text());
    properties.set(&["metadata"], Tree::from([("type", Tree::from("object")), ("properties", names)]));
    properties
}

/// Tells sizes of what is inside one declared type, whatever the variable.
pub struct SchemaSizes<'d>(pub &'d DeclaredType);

impl SizeEstimator for SchemaSizes<'_> {
    fn size(&self, path: &[String], _: &Type) -> Option<Range> {
        let (_, steps) = path.split_first()?;
        let mut declared = self.0;
        for step in steps {
            declared = match (step.as_str(), &declared.shape) {
                ("@items" | "@values", Shape::List { element, .. } | Shape::Map { element }) => element,
                // A map's keys are texts of which nothing is declared.
                ("@keys", Shape::Map { .. }) => return Some(Range::fixed(0)),
                (name, Shape::Object(fields)) => &fields.get(name)?.declared,
                _ => return None,
            };
        }
        Some(Range::new(0, declared.maximum.min(NO_MAXIMUM)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coffer_types::codec::json;

    fn declared(schema: &str) -> Arc<DeclaredType> {
        declared_type(&json::decode_untyped(schema.as_bytes()).expect("JSON").object, false, "self")
            .expect("a declared type")
    }

    #[test]
    fn sizes_are_those_that_fit_a_request() {
        let cases = [
            (r#"{"type": "string"}"#, 3_145_726),
            (r#"{"type": "string", "maxLength": 10}"#, 40),
            (r#"{"type": "string", "enum": ["a", "abc"]}"#, 3),
            (r#"{"type": "string", "format": "byte", "maxLength": 10}"#, 10),
            (r#"{"type": "string", "format": "date-time"}"#, 32),
            (r#"{"type": "array", "items": {"type": "integer"}}"#, 1_572_863),
            (r#"{"type": "array", "maxItems": 3, "items": {"type": "integer"}}"#, 3),
            (r#"{"type": "object", "additionalProperties": {"type": "string"}}"#, 393_215),
            (r#"{"x-kubernetes-int-or-string": true}"#, 3_145_726),
        ];
        for (schema, maximum) in cases {
            assert_eq!(declared(schema).maximum, maximum, "{schema}");
        }
    }

    #[test]
    fn properties_are_called_by_escaped_names() {
        let schema = r#"{"type": "object", "properties": {"a.b-c/d": {"type": "string"}, "__x": {"type": "string"},
            "namespace": {"type": "string"}, "a$": {"type": "string"}, "any": {}}}"#;
        let declared = declared(schema);
        for name in ["a__dot__b__dash__c__slash__d", "__underscores__x", "__namespace__", "namespace"] {
            assert!(declared.field(name).is_some(), "{name}");
        }
        assert!(declared.field("a$").is_none() && declared.field("any").is_none());
    }
}
