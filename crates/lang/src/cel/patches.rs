//! The types that mutations make: `JSONPatch{…}` and `Object{…}`.

use super::types::Type;

/// The type of a mutation's `JSONPatch{…}`.
pub const JSON_PATCH: &str = "JSONPatch";
/// The type of a mutation's `Object{…}`; those of its fields are called `Object.spec` and so on.
pub const OBJECT: &str = "Object";

/// Whether `name` is a type that mutations make.
pub(crate) fn is_patch_type(name: &str) -> bool {
    name == JSON_PATCH || name == OBJECT || name.starts_with("Object.")
}

/// The type of a field of a type that mutations make.
pub(crate) fn patch_field(type_name: &str, field: &str) -> Option<Type> {
    if type_name != JSON_PATCH {
        return Some(Type::Dyn);
    }
    match field {
        "op" | "path" | "from" => Some(Type::String),
        "value" => Some(Type::Dyn),
        _ => None,
    }
}
