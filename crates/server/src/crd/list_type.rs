//! Lists that are sets or maps hold nothing twice.

use std::collections::BTreeSet;

use coffer_types::validation::field::{FieldError, FieldErrors, Path, Shown, go_json};
use coffer_types::{Map, Value};

use super::schema::Schema;

/// Every item that is there twice in a list of type `set` or `map`.
pub fn validate(object: &Value, schema: &Schema) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(object, schema, None, &mut errors);
    errors
}

fn walk(value: &Value, schema: &Schema, path: Option<&Path>, errors: &mut FieldErrors) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let here = |structured: bool| match (path, structured) {
                    (Some(path), true) => path.child(name),
                    (Some(path), false) => path.key(name),
                    (None, _) => Path::new(name),
                };
                if let Some(property) = schema.property(name) {
                    walk(member, property, Some(&here(true)), errors);
                } else if let Some(Some(additional)) = schema.additional_schema() {
                    walk(member, additional, Some(&here(false)), errors);
                }
            }
        }
        Value::Array(items) => {
            let root = Path::new("<nil>");
            let path = path.unwrap_or(&root);
            match schema.list_type.as_deref() {
                Some("set") => {
                    repeated(items.iter().map(go_json), |index| Shown::from(&items[index]), path, errors)
                }
                Some("map") => {
                    let keys: Vec<_> = items.iter().map(|item| key_of(item, schema)).collect();
                    repeated(keys.iter().map(go_json), |index| Shown::from(&keys[index]), path, errors);
                }
                _ => {}
            }
            if let Some(schema) = schema.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    walk(item, schema, Some(&path.index(index)), errors);
                }
            }
        }
        _ => {}
    }
}

fn repeated(
    items: impl Iterator<Item = String>,
    shown: impl Fn(usize) -> Shown,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.enumerate() {
        if !seen.insert(item) {
            errors.push(FieldError::duplicate(&path.index(index), shown(index)));
        }
    }
}

/// The fields that make an item of a map what it is.
fn key_of(item: &Value, schema: &Schema) -> Value {
    let keys = schema.list_map_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(keys.collect::<Map>())
}
