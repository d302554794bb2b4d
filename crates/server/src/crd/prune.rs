//! Removes what a schema does not name.

use coffer_types::Value;

use super::schema::Schema;

/// The fields that every object has, whatever its schema says.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes every field of `object` that `schema` does not name, and returns their paths
/// in order, for warnings or for an error. Metadata is left alone.
pub fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), pruned: Vec::new() };
    pruner.prune(object, Some(schema), true);
    pruner.pruned.sort();
    pruner.pruned
}

struct Pruner {
    path: String,
    pruned: Vec<String>,
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>, is_root: bool) {
        if let Some(schema) = schema.filter(|schema| schema.preserve_unknown) {
            return self.keep(value, schema, is_root);
        }
        match value {
            Value::Object(members) => {
                let is_object = is_root || schema.is_some_and(|schema| schema.embedded_resource);
                members.retain(|name, member| {
                    let of_every_object = OF_EVERY_OBJECT.contains(&name.as_str());
                    if is_object && schema.is_some() && of_every_object {
                        return true;
                    }
                    let known = schema.and_then(|schema| match schema.property(name) {
                        Some(property) => Some(Some(property)),
                        None => schema.additional_schema(),
                    });
                    match known {
                        Some(schema) => {
                            self.inside(name, |pruner| pruner.prune(member, schema, false));
                            true
                        }
                        None => {
                            if !of_every_object || !self.path.is_empty() {
                                self.inside(name, |pruner| pruner.pruned.push(pruner.path.clone()));
                            }
                            false
                        }
                    }
                });
            }
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    self.inside(&format!("[{index}]"), |pruner| pruner.prune(item, schema, false));
                }
            }
            _ => {}
        }
    }

    /// Keeps unknown fields here, and goes on pruning below the known ones.
    fn keep(&mut self, value: &mut Value, schema: &Schema, is_root: bool) {
        match value {
            Value::Object(members) => {
                let is_object = is_root || schema.embedded_resource;
                for (name, member) in members.iter_mut() {
                    if is_object && OF_EVERY_OBJECT.contains(&name.as_str()) {
                        continue;
                    }
                    let known = schema.property(name).map(Some).or_else(|| schema.additional_schema());
                    if let Some(schema) = known {
                        self.inside(name, |pruner| pruner.prune(member, schema, false));
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.items.as_deref() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.inside(&format!("[{index}]"), |pruner| pruner.keep(item, schema, false));
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, element: &str, act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 && !element.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(element);
        act(self);
        self.path.truncate(length);
    }
}
