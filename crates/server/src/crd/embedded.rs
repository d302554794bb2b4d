//! Objects within an object: each has a type, and metadata that holds by itself.

use coffer_types::Value;
use coffer_types::meta::Meta as _;
use coffer_types::names::{is_dns1035_label, path_segment};
use coffer_types::validation::field::{FieldError, FieldErrors, Path};
use coffer_types::validation::meta::{self, MetaRules};

use super::schema::Schema;

/// What is wrong with the types and the metadata of objects within `object`.
pub fn validate(object: &Value, schema: &Schema) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(object, schema, None, &mut errors);
    errors
}

fn walk(value: &Value, schema: &Schema, path: Option<&Path>, errors: &mut FieldErrors) {
    match value {
        Value::Object(members) => {
            if let (true, Some(path)) = (schema.embedded_resource, path) {
                check(value, path, errors);
            }
            for (name, member) in members {
                let below = |structured: bool| match (path, structured) {
                    (Some(path), true) => path.child(name),
                    (Some(path), false) => path.key(name),
                    (None, _) => Path::new(name),
                };
                if let Some(property) = schema.property(name) {
                    walk(member, property, Some(&below(true)), errors);
                } else if let Some(Some(additional)) = schema.additional_schema() {
                    walk(member, additional, Some(&below(false)), errors);
                }
            }
        }
        Value::Array(items) => {
            let (Some(schema), Some(path)) = (schema.items.as_deref(), path) else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, schema, Some(&path.index(index)), errors);
            }
        }
        _ => {}
    }
}

fn check(object: &Value, path: &Path, errors: &mut FieldErrors) {
    for name in ["apiVersion", "kind"] {
        let at = path.child(name);
        let text = match object.get(name) {
            None => {
                errors.push(FieldError::required(&at, ""));
                continue;
            }
            Some(Value::String(text)) => text,
            Some(other) => {
                errors.push(FieldError::invalid(&at, other, "must be a string"));
                continue;
            }
        };
        if text.is_empty() {
            errors.push(FieldError::invalid(&at, text, "must not be empty"));
        } else if name == "apiVersion" && text.matches('/').count() > 1 {
            errors.push(FieldError::invalid(&at, text, format!("unexpected GroupVersion string: {text}")));
        } else if name == "kind" {
            let broken = is_dns1035_label(&text.to_lowercase());
            if !broken.is_empty() {
                let detail = format!("may have mixed case, but should otherwise match: {}", broken.join(","));
                errors.push(FieldError::invalid(&at, text, detail));
            }
        }
    }
    if object.get("metadata").is_some_and(|metadata| metadata.as_object().is_some()) {
        let mut named = Value::object();
        named.set(&["metadata"], object.get("metadata").cloned().unwrap_or_default());
        if named.name().is_empty() {
            // The name of an object within another may be left out.
            named.set_meta_str("name", "fakename");
        }
        let namespaced = !named.namespace().is_empty();
        let rules = MetaRules { namespaced, name: path_segment, qualified_finalizers: false };
        for mut error in meta::validate(&named, rules) {
            error.field = format!("{}.{}", path.as_str(), error.field);
            errors.push(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::testing::{texts, yaml};

    /// Cases of upstream's TestValidate for embedded objects.
    #[test]
    fn objects_within_objects_are_checked() {
        let schema = Schema::parse(&yaml(
            r#"
type: object
properties:
  one: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  many:
    type: array
    items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  plain: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#,
        ));
        let check = |object: &str, expected: &[&str]| {
            assert_eq!(texts(&validate(&yaml(object), &schema)), expected, "{object}");
        };
        check("{one: {apiVersion: v1, kind: Pod}, plain: {kind: 7}}", &[]);
        check("{one: {apiVersion: v1, kind: Pod, metadata: {generateName: x-}}}", &[]);
        check("{one: {}}", &["one.apiVersion: Required value", "one.kind: Required value"]);
        check(
            "{one: {apiVersion: 7, kind: []}}",
            &[
                "one.apiVersion: Invalid value: 7: must be a string",
                "one.kind: Invalid value: []: must be a string",
            ],
        );
        check(
            "{many: [{apiVersion: '', kind: ''}]}",
            &[
                "many[0].apiVersion: Invalid value: \"\": must not be empty",
                "many[0].kind: Invalid value: \"\": must not be empty",
            ],
        );
        check(
            "{one: {apiVersion: a/b/c, kind: Pod}}",
            &["one.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"],
        );
        check(
            "{one: {apiVersion: v1, kind: '7'}}",
            &[
                "one.kind: Invalid value: \"7\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
            ],
        );
        check(
            "{one: {apiVersion: v1, kind: Pod, metadata: {name: a/b}}}",
            &["one.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        );
        check(
            "{one: {apiVersion: v1, kind: Pod, metadata: {labels: {a: '-'}}}}",
            &[
                "one.metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ],
        );
    }
}
