//! Fills in defaults and settles what `null` means.

use coffer_types::{Map, Value};

use super::schema::Schema;

/// Gives absent fields their defaults, deeply; a `null` that is not allowed becomes the
/// default, or goes away where there is none.
pub fn apply(object: &mut Value, schema: &Schema) {
    fill(object, schema);
    drop_nulls(object, schema);
}

/// Gives absent fields their defaults, and leaves every other `null` to validation.
pub fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(members) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                let absent = members.get(name).is_none_or(|value| value.is_null() && !property.nullable);
                if absent {
                    members.insert(name.clone(), default.clone());
                }
            }
            for (name, member) in members.iter_mut() {
                if let Some(property) = schema.property(name) {
                    fill(member, property);
                } else if let Some(Some(additional)) = schema.additional_schema() {
                    replace_null(member, additional);
                    fill(member, additional);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for item in items {
                replace_null(item, schema);
                fill(item, schema);
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, schema: &Schema) {
    if let (true, false, Some(default)) = (value.is_null(), schema.nullable, &schema.default) {
        *value = default.clone();
    }
}

/// Drops every `null` that is not allowed and has no default to become.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(members) => drop_null_members(members, schema),
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(item, schema));
            }
        }
        _ => {}
    }
}

fn drop_null_members(members: &mut Map, schema: &Schema) {
    members.retain(|name, member| {
        let known = match schema.property(name) {
            Some(property) => Some(property),
            None => schema.additional_schema().flatten(),
        };
        let Some(schema) = known else { return true };
        if member.is_null() && !schema.nullable && schema.default.is_none() {
            return false;
        }
        drop_nulls(member, schema);
        true
    });
}
